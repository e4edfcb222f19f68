"""`heedful demo`: Korean becomes English in a few minutes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from ..config import assign
from ..lens.report import Sample
from ..lens.terminal import attention_text, fit
from ..tasks.scoring import Score
from ..tasks.translation.demo import DemoResult, SetResult, recipe, run_demo
from ..tasks.translation.inspection import has_attention, look
from ..tasks.translation.task import TranslationConfig
from .progress import watching
from .tables import show_data_report, show_samples, show_scores
from .words import console, say


def demo(
    direction: Annotated[Literal["ko-en", "en-ko"], typer.Option(help="From which language to which.")] = "ko-en",
    out: Annotated[Path, typer.Option(help="Where the model and its report go.")] = Path("runs/demo"),
    model: Annotated[
        Literal["original", "recurrent"] | None, typer.Option(help="The Transformer, or what came before.")
    ] = None,
    attention: Annotated[Literal["additive", "none"] | None, typer.Option(help="For recurrent.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of corpus, weights and order.")] = 0,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="One setting, such as training.steps=800. Repeatable."),
    ] = None,
    language: Annotated[Literal["en", "ko"], typer.Option(help="Of the report.")] = "en",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a run in --out that is no demo.")] = False,
) -> None:
    """Train a Korean-English translator on the built-in corpus, score it on what it has not seen, and look inside."""
    family = model or ("original" if attention is None else "recurrent")
    changes = {} if attention is None else {"attention": attention}
    settings = recipe(direction, family, changes, seed=seed).to_dict()
    for assignment in setting or ():
        assign(settings, assignment)
    with watching() as watch:
        found = run_demo(
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
        {result.title: _scores(result) for result in found.sets},
    )
    say("Right on these sets without T5, by what the sentence holds:")
    for name, (right, total) in found.probes.items():
        say(f"  {fit(name, 32)}{100 * right / total:5.1f} %  of {total:,}")
    first = found.sets[0].evaluation.samples
    show_samples("Ten translations", first[:10])
    if has_attention(found.translator):
        _show_attention(found, max(first[:10], key=lambda sample: (sample.exact, len(sample.source))))
    say(f"The model is in {out}, its report in {found.report}.")
    say(f'Try it: heedful predict {out} "{first[1].source}"')


def _scores(result: SetResult) -> list[Score]:
    scores = [Score("exact %", result.evaluation.exact), *result.evaluation.scores.values()]
    return scores if result.lookup is None else [*scores, Score("look-up %", result.lookup)]


def _show_attention(found: DemoResult, sample: Sample) -> None:
    """Where the best head looked while it wrote one sentence."""
    if found.alignment is None or not sample.output.split():
        return
    seen = look(found.translator, sample.source, sample.output)
    title = f"What each word was made from ({found.alignment.head})"
    console.print(
        attention_text(seen.weights[found.alignment.head], seen.target, seen.source, width=console.width, title=title)
    )
    say(
        f"Alignment error rate of that head: {found.alignment.error_rate:.1f} %; "
        f"of a diagonal: {found.alignment.diagonal:.1f} %"
    )
