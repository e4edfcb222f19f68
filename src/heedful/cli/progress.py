"""A run while one watches it: on a terminal a view that changes in place, elsewhere a line now and then."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Column, Table

from ..lens.terminal import sparkline
from ..tasks.run import AnyTask
from ..training.metrics import Event, Finished, Observer, Outcome, Saved, Trained, Validated
from .console import console, plain, say, seconds


@contextmanager
def watching() -> Iterator[Callable[[AnyTask], Sequence[Observer]]]:
    """What to hand to training as `watch`; whatever happens inside, the terminal is left in order."""
    views: list[LiveView] = []

    def watch(task: AnyTask) -> Sequence[Observer]:
        parameters = sum(parameter.numel() for parameter in task.module.parameters())
        say(f"Training {parameters:,} parameters on {task.summary}")
        if not console.is_terminal or console.is_dumb_terminal:
            return [Lines(task)]
        views.append(LiveView(task))
        return views

    try:
        yield watch
    finally:
        for view in views:
            view.live.stop()


class Lines:
    """One line for each row of the log."""

    def __init__(self, task: AnyTask) -> None:
        self.task = task

    def __call__(self, event: Event) -> None:
        match event:
            case Trained():
                say(
                    f"step {event.step:,}/{event.total_steps:,}  loss {event.loss:.3f}  "
                    f"{event.tokens_per_second:,.0f} tokens/s  {seconds(event.seconds_left)} left"
                )
            case Validated():
                say(f"step {event.step:,}  validation: {_scores(event)}{'  (best so far)' if event.is_best else ''}")
                for source, _, output in self.task.samples[:1]:
                    console.print(plain(f"  {source} → {output}"), no_wrap=True, overflow="ellipsis")
            case Finished(outcome):
                _say_finished(outcome)
            case Saved():
                pass


class LiveView:
    """Loss, speed, time left, validation, and one sentence getting better."""

    def __init__(self, task: AnyTask) -> None:
        self.task = task
        self.losses: list[float] = []
        self.trained: Trained | None = None
        self.validated: list[Validated] = []
        self.live = Live(console=console, auto_refresh=False)
        self.live.start()

    def __call__(self, event: Event) -> None:
        match event:
            case Trained():
                self.trained = event
                self.losses.append(event.loss)
            case Validated():
                self.validated.append(event)
            case Finished(outcome):
                self.live.stop()
                _say_finished(outcome)
                return
            case Saved():
                return
        self.live.update(self._view(), refresh=True)

    def _view(self) -> Group:
        names = Column(no_wrap=True, min_width=len("validation"))
        rows = Table.grid(names, Column(no_wrap=True, overflow="ellipsis"), padding=(0, 2))
        if (now := self.trained) is not None:
            rows.add_row("step", ProgressBar(total=now.total_steps, completed=now.step, width=30))
            speed = f"{now.tokens_per_second:,.0f} tokens/s"
            rows.add_row("", f"{now.step:,}/{now.total_steps:,}  {speed}  {seconds(now.seconds_left)} left")
            rows.add_row("loss", f"{now.loss:.3f}  {sparkline(self.losses)}")
        if self.validated:
            course = sparkline([event.scores[self.task.monitor.name] for event in self.validated])
            rows.add_row("validation", f"{_scores(self.validated[-1])}  {course}")
            for source, reference, output in self.task.samples[:2]:
                rows.add_row("", plain(source, "dim"))
                rows.add_row("", plain(output, "green" if output == reference else "yellow"))
        return Group(rows)


def _say_finished(outcome: Outcome) -> None:
    say(f"Trained for {seconds(outcome.seconds)}: {outcome.why}. Now the validation data is scored …")


def _scores(event: Validated) -> str:
    named = {"loss": "loss {:.3f}", "bleu": "BLEU {:.1f}", "chrf": "chrF {:.1f}", "exact": "exact {:.1f} %"}
    return "  ".join(named.get(name, f"{name} {{:.4g}}").format(score) for name, score in event.scores.items())
