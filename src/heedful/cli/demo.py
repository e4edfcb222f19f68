"""`heedful demo`: Korean becomes English in a few minutes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from ..config import assign
from .console import console, say
from .options import option

if TYPE_CHECKING:
    from ..demo.experiment import DemoResult, SetResult
    from ..lens.report import ScoredSample
    from ..tasks.scoring import Score


def demo(
    direction: Annotated[Literal["ko-en", "en-ko"], option("From which language to which.")] = "ko-en",
    out: Annotated[Path, option("Where the model and its report go.")] = Path("runs/demo"),
    model: Annotated[Literal["original", "recurrent"] | None, option("The Transformer, or what came before.")] = None,
    attention: Annotated[Literal["additive", "none"] | None, option("For recurrent.")] = None,
    seed: Annotated[int, option("Of corpus, weights and order.", min=0)] = 0,
    setting: Annotated[
        list[str] | None, option("One setting, such as training.steps=800. Repeatable.", "--set", metavar="NAME=VALUE")
    ] = None,
    language: Annotated[Literal["en", "ko"], option("Of the report.")] = "en",
    overwrite: Annotated[bool, option("Replace a run in --out that is no demo.", "--overwrite")] = False,
) -> None:
    """Train a Korean-English translator on the built-in corpus, score it on what it has not seen, and look inside."""
    from ..demo.experiment import recipe, run_demo
    from ..lens.terminal import fit
    from ..tasks.translation.inspection import has_attention
    from ..tasks.translation.task import TranslationConfig
    from .progress import watching
    from .tables import show_data_report, show_samples, show_scores

    family = model or ("original" if attention is None else "recurrent")
    changes = {} if attention is None else {"attention": attention}
    settings = recipe(direction, family, changes, seed=seed).to_dict()
    for assignment in setting or ():
        assign(settings, assignment)
    with watching() as watch:
        result = run_demo(
            out,
            TranslationConfig.from_dict(settings),
            seed=seed,
            overwrite=overwrite,
            language=language,
            say=say,
            on_read=show_data_report,
            watch=watch,
        )
    show_scores(
        "Sentences it has not seen (exact: one of the accepted answers; look-up: templates with words put in)",
        {part.title: _scores(part) for part in result.sets},
    )
    say("Right on these sets without T5, by what the sentence holds:")
    for name, (right, total) in result.probes.items():
        say(f"  {fit(name, 32)}{100 * right / total:5.1f} %  of {total:,}")
    first = result.sets[0].evaluation.samples
    show_samples("Ten translations", first[:10])
    if has_attention(result.translator):
        _show_attention(result, max(first[:10], key=lambda sample: (sample.exact, len(sample.source))))
    say(f"The model is in {out}, its report in {result.report}.")
    say(f'Try it: heedful predict {out} "{first[1].source}"')


def _scores(result: SetResult) -> list[Score]:
    from ..tasks.scoring import Score

    scores = [Score("exact %", result.evaluation.exact), *result.evaluation.scores.values()]
    return scores if result.lookup is None else [*scores, Score("look-up %", result.lookup)]


def _show_attention(result: DemoResult, sample: ScoredSample) -> None:
    """Where the best head looked while it wrote one sentence."""
    from ..lens.terminal import attention_text
    from ..tasks.translation.inspection import look

    if result.alignment is None or not sample.output.split():
        return
    seen = look(result.translator, sample.source, sample.output)
    title = f"What each word was made from ({result.alignment.head})"
    console.print(
        attention_text(seen.weights[result.alignment.head], seen.target, seen.source, width=console.width, title=title)
    )
    say(
        f"Alignment error rate of that head: {result.alignment.error_rate:.1f} %; "
        f"of a diagonal: {result.alignment.diagonal:.1f} %"
    )
