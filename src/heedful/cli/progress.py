"""The progress of a training run: a live view on a terminal, lines of text elsewhere."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.cells import cell_len
from rich.console import Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Column, Table

from ..lens.terminal import sparkline
from ..tasks.run import AnyTask
from ..training.metrics import Event, Finished, Observer, Planned, Spiked, Trained, Validated
from .console import console, plain, say, seconds
from .language import translate

# Why a kind of tokenizer was chosen.
MAX_PLACES = 5  # of the input of a step
REASONS = {
    "words": "few different words, each of them frequent",
    "characters": "few letters, and strings that hardly repeat",
    "bpe": "running text",
    "bytes": "no characters to learn",
}


@contextmanager
def watching() -> Iterator[Callable[[AnyTask], Sequence[Observer]]]:
    """Yield a function that makes the observers of a run; at the end the live view is stopped in any case."""
    views: list[LiveView] = []

    def watch(task: AnyTask) -> Sequence[Observer]:
        parameters = sum(parameter.numel() for parameter in task.module.parameters())
        say(f"Training {parameters:,} parameters on {task.summary}")
        for line in settings_lines(task):
            say(line)
        if not console.is_terminal or console.is_dumb_terminal:
            return [LineView(task)]
        views.append(LiveView(task))
        return views

    try:
        yield watch
    finally:
        for view in views:
            view.live.stop()


class LineView:
    """Prints a line for each entry of the log."""

    def __init__(self, task: AnyTask) -> None:
        self.task = task

    def __call__(self, event: Event) -> None:
        if isinstance(event, Planned):
            say(_plan(event))
        elif isinstance(event, Trained):
            say(f"step {event.step:,}/{event.total_steps:,}  loss {event.loss:.3f}  {_pace(self.task, event)}")
        elif isinstance(event, Spiked):
            say(_spike(event))
        elif isinstance(event, Validated):
            say(f"step {event.step:,}  validation: {_scores(event)}{'  (best so far)' if event.is_best else ''}")
            if share := event.scores.get("unfinished"):
                say(f"  {share:.0f} % of these answers are cut off at their length limit (generation.max_new_tokens)")
            for source, _, output in self.task.samples[:1]:
                console.print(plain(f"  {source} → {output}"), no_wrap=True, overflow="ellipsis")
        elif isinstance(event, Finished):
            say(f"Trained for {seconds(event.outcome.seconds)}: {event.outcome.why}. Scoring the validation data …")


class LiveView(LineView):
    """Shows loss, speed, remaining time, validation scores and sample outputs, updated in place."""

    def __init__(self, task: AnyTask) -> None:
        super().__init__(task)
        self.trained: list[Trained] = []
        self.validated: list[Validated] = []
        self.live = Live(console=console, auto_refresh=False)
        self.live.start()

    def __call__(self, event: Event) -> None:
        if isinstance(event, Finished):
            self.live.stop()
        if isinstance(event, Finished | Planned | Spiked):
            super().__call__(event)
            return
        if isinstance(event, Trained):
            self.trained.append(event)
        elif isinstance(event, Validated):
            self.validated.append(event)
        self.live.update(self._view(), refresh=True)

    def _view(self) -> Group:
        step, loss, validation = map(translate, ("step", "loss", "validation"))
        names = Column(no_wrap=True, min_width=cell_len(validation))
        rows = Table.grid(names, Column(no_wrap=True, overflow="ellipsis"), padding=(0, 2))
        if self.trained:
            last = self.trained[-1]
            rows.add_row(step, ProgressBar(total=last.total_steps, completed=last.step, width=30))
            rows.add_row("", f"{last.step:,}/{last.total_steps:,}  {_pace(self.task, last)}")
            rows.add_row(loss, f"{last.loss:.3f}  {sparkline([event.loss for event in self.trained])}")
        if self.validated:
            history = sparkline([event.scores[self.task.monitor.name] for event in self.validated])
            rows.add_row(validation, f"{_scores(self.validated[-1])}  {history}")
            for source, reference, output in self.task.samples[:2]:
                rows.add_row("", plain(source, "dim"))
                rows.add_row("", plain(output, "green" if output == reference else "yellow"))
        return Group(rows)


def _pace(task: AnyTask, event: Trained) -> str:
    rate = event.items_per_second / task.counts_each
    return translate(f"{rate:,.0f} {task.counted}/s  {seconds(event.seconds_left)} left")


def settings_lines(task: AnyTask) -> Iterator[str]:
    """Yield the settings of a run that matter most, and those that were chosen from the data."""
    config, training, tokenizer = task.config, task.config.training, task.data.tokenizer
    explicit = config.explicit or {}
    model = explicit.get("model") or {}
    preset = model if isinstance(model, str) else model.get("preset", model.get("family"))
    name = preset or (f"{config.model.title} from {explicit['base']}" if explicit.get("base") else config.preset)
    parts = [str(name)]
    if (dropout := getattr(config.model, "dropout", None)) is not None:
        parts.append(f"dropout {dropout:g}")
    tokenizer = getattr(tokenizer, "source", tokenizer)  # a translator has one for each language
    if tokenizer is not None:
        parts.append(f"tokens: {tokenizer.kind} ({tokenizer.vocab_size:,})")
    total, batches = training.total_steps(task.batches.steps_per_epoch), task.batches.steps_per_epoch(0)
    epochs = total * training.gradient_accumulation_steps / max(batches, 1)
    limit = f" or {training.max_minutes:g} min" if training.max_minutes else ""
    parts += [f"at most {total:,} steps ({epochs:.3g} epochs){limit}", f"batches of {training.batch_tokens:,} tokens"]
    parts.append(f"learning rate {training.learning_rate:g} ({training.schedule}, {training.optimizer})")
    yield f"Settings: {', '.join(map(translate, parts))}"
    chosen = {name: f"{value:g}" if isinstance(value, float) else value for name, value in config.chosen.items()}
    is_auto = getattr(getattr(config, "tokenizer", None), "kind", "") == "auto" and not explicit.get("base")
    if is_auto and tokenizer is not None:
        chosen["tokenizer.kind"] = f"{tokenizer.kind} ({translate(REASONS[tokenizer.kind])})"
    if listed := ", ".join(f"{name}={value}" for name, value in chosen.items()):
        yield f"Chosen from the data: {listed}; --set changes any of them"


def _plan(event: Planned) -> str:
    pace = f"{event.steps:,} steps ({event.epochs:.1f} epochs) at {event.steps_per_second:.3g} steps/s"
    if event.limited:
        return f"The time allows about {pace}; the learning rate falls until then (training.max_minutes)"
    return f"This takes about {seconds(event.seconds)}, without validations: {pace}"


def _spike(event: Spiked) -> str:
    applied = "the step was not applied" if event.skipped else "training.loss_spikes=skip leaves such steps out"
    return (
        f"step {event.step:,}: the loss, {event.loss:.4g}, is {event.deviations:.0f} standard deviations above its "
        f"mean, {event.mean:.4g}; {translate(applied)}. Its input: {', '.join(event.places[:MAX_PLACES])}"
    )


def _scores(event: Validated) -> str:
    formats = {"loss": "loss {:.3f}", "bleu": "BLEU {:.1f}", "chrf": "chrF {:.1f}", "exact": "exact {:.1f} %"}
    return "  ".join(
        translate(formats[name].format(score)) if name in formats else f"{translate(name)} {score:.4g}"
        for name, score in event.scores.items()
        if name != "unfinished"
    )
