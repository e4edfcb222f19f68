"""`heedful demo`: trains a Korean-English translator in a few minutes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from ..config import assign
from .console import console, echo, say
from .language import current, translate
from .options import SEED, Device, Overwrite, Settings, option

if TYPE_CHECKING:
    from ..demo.experiment import DemoResult, SetResult
    from ..lens.report import ScoredSample
    from ..tasks.scoring import Score


def demo(
    direction: Annotated[Literal["ko-en", "en-ko"], option("The source and the target language.")] = "ko-en",
    out: Annotated[Path, option("The folder for the model and its report.")] = Path("runs/demo"),
    model: Annotated[
        Literal["original", "recurrent"] | None,
        option("The model family: original (the Transformer) or recurrent (GRUs)."),
    ] = None,
    attention: Annotated[
        Literal["additive", "none"] | None, option("The attention of a recurrent model: additive or none.")
    ] = None,
    level: Annotated[
        Literal["demo", "course"],
        option("The words: demo (239, four minutes) or course (383 and fixed expressions, larger model, slower)."),
    ] = "demo",
    seed: Annotated[int, option(SEED, min=0)] = 0,
    device: Device = "auto",
    setting: Settings = None,
    overwrite: Overwrite = False,
) -> None:
    """Train a Korean-English translator on a built-in corpus, test it on unseen sentences and show its attention."""
    from ..demo.experiment import recipe, run_demo
    from ..lens.terminal import fit
    from ..tasks.translation.inspection import has_attention
    from ..tasks.translation.task import TranslationConfig
    from .progress import watching
    from .tables import show_data_report, show_samples, show_scores

    family = model or ("original" if attention is None else "recurrent")
    changes = {} if attention is None else {"attention": attention}
    settings = recipe(direction, family, changes, level, seed=seed).to_dict()
    settings["training"]["device"] = device
    for assignment in setting or ():
        assign(settings, assignment)
    with watching() as watch:
        result = run_demo(
            out,
            TranslationConfig.from_dict(settings),
            level=level,
            seed=seed,
            overwrite=overwrite,
            language=current(),
            say=say,
            on_read=show_data_report,
            watch=watch,
        )
    show_scores(
        "Unseen sentences (exact: equals an accepted translation; look-up: a baseline that fills templates)",
        {part.title: _scores(part) for part in result.sets},
    )
    say("Exact translations on all sets but T5, by construction:")
    for name, (right, total) in result.probes.items():
        echo(f"  {fit(translate(name), 32)}{100 * right / total:5.1f} %  {translate(f'of {total:,}')}")
    first = result.sets[0].evaluation.samples
    show_samples("Ten translations", first[:10])
    if has_attention(result.translator):
        _show_attention(result, max(first[:10], key=lambda sample: (sample.exact, len(sample.source))))
    say(f"The model is in {out}, and its report in {result.report}.")
    say(f'Try it: heedful predict {out} "{first[1].source}"')


def _scores(result: SetResult) -> list[Score]:
    from ..tasks.scoring import Score

    scores = [Score("exact %", result.evaluation.exact), *result.evaluation.scores.values()]
    return scores if result.lookup is None else [*scores, Score("look-up %", result.lookup)]


def _show_attention(result: DemoResult, sample: ScoredSample) -> None:
    """Print the attention of the head that aligns words best, for one sentence."""
    from ..lens.terminal import attention_text
    from ..tasks.translation.inspection import look

    if result.alignment is None or not sample.output.split():
        return
    attention = look(result.translator, sample.source, sample.output)
    head = result.alignment.head
    title = f"The source words that each target word attends to ({head})"
    weights = attention.weights[head]
    console.print(
        attention_text(weights, attention.target, attention.source, width=console.width, title=translate(title))
    )
    say(
        f"Alignment error rate of this head: {result.alignment.error_rate:.1f} %; "
        f"of the diagonal: {result.alignment.diagonal:.1f} %"
    )
