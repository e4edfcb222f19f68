"""`heedful evaluate`: scores a model on test data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from ..config import write_mapping
from ..errors import ConfigError, DataError, NonFiniteOutputError
from .console import say, warn
from .options import COLUMNS, Device, Model, option, with_generation

if TYPE_CHECKING:
    from ..tasks.run import Files, Refusals
    from ..tasks.translation.predictor import Translator


@with_generation("beam", "length_penalty", "precision")
def evaluate(
    model: Model,
    data: Annotated[
        list[str], option("Test data, in any format that heedful train reads. Repeatable.", metavar="FILE")
    ],
    columns: Annotated[str | None, option(f"{COLUMNS} The same as for heedful train.")] = None,
    alignments: Annotated[
        Path | None,
        option("For translation: reference word alignments, one line per pair, such as 0-0 1-2 2?1 (? for possible)."),
    ] = None,
    samples: Annotated[int, option("For translation: the number of best and worst samples to show.", min=0)] = 5,
    out: Annotated[
        Path | None, option("Write the scores to a JSON file; for translation, also all translations.")
    ] = None,
    strict: Annotated[bool, option("Stop at the first example that the model refuses.", "--strict")] = False,
    device: Device = "auto",
    *,
    overrides: dict[str, Any],
) -> None:
    """Score a model on test data with the metrics of its task; examples that it refuses are counted and named.

    For translation: BLEU and chrF with signatures and 95 % intervals, scores by source length, and samples.
    """
    from ..tasks import load
    from ..tasks.run import Files, Refusals
    from .distributed import joined_processes, share_work

    with joined_processes() as group:
        if out is not None and out.suffix != ".json":
            raise ConfigError(f"--out {out}: scores are written as JSON; the file name must end in .json")
        predictor = load(model, device=group.device(device))
        share_work(predictor, group)
        files = Files(tuple(data), columns=tuple(name.strip() for name in columns.split(",")) if columns else None)
        if predictor.output_kind == "translation":
            translator, refusals = cast("Translator", predictor), Refusals(strict=strict)
            results = _evaluate_translator(translator, model, files, refusals, overrides, alignments, samples)
        else:
            results = _evaluate_task(predictor, model, files, strict, {"alignments": alignments, **overrides})
        if refused := results.get("refused"):
            warn(_refused_warning(refused))
        if out is not None and group.rank == 0:
            write_mapping(out, results)
            say(f"wrote {out}")


def _refused_warning(refused: Mapping[str, Any]) -> str:
    more = "; …" if refused["count"] > len(refused["first"]) else ""
    return (
        f"warning: {refused['count']:,} of {refused['of']:,} examples were refused and are not scored "
        f"(--strict makes this an error): {'; '.join(refused['first'])}{more}"
    )


def _evaluate_task(predictor: Any, model: Path, files: Files, strict: bool, options: dict[str, Any]) -> dict[str, Any]:
    from ..tasks.registry import task_of
    from ..tasks.scoring import Score
    from .tables import refused_note, show_classes, show_scores, show_unfinished

    for name, value in options.items():
        if value:
            option = name.replace("_", "-")
            raise ConfigError(f"--{option} is for translation models; this model is for {predictor.task}")
    task = task_of(model)
    results = task.evaluate(predictor, files, strict=strict)
    scores = [Score(**score) for score in results["scores"].values()]
    for score in scores:
        if not math.isfinite(score.value):
            raise NonFiniteOutputError(score.metric)
    show_scores(f"{results['n']:,} {task.example_name}{refused_note(results)}", {"all": scores})
    if "classes" in results:
        show_classes(results)
    if "unfinished" in results:
        show_unfinished(results["unfinished"], results["n"])
    for sentence in results.get("verdict", ()):
        say(sentence)
    return results


def _evaluate_translator(
    translator: Translator,
    model: Path,
    files: Files,
    refusals: Refusals,
    overrides: dict[str, Any],
    alignments: Path | None,
    n_samples: int,
) -> dict[str, Any]:
    from ..data.report import PairReport
    from ..tasks.translation.data import read_set
    from ..tasks.translation.inspection import alignment_score, has_attention, read_alignments
    from ..tasks.translation.task import evaluate as score_translations
    from .tables import refused_note, show_alignment, show_evaluation

    report = PairReport()
    pairs = read_set(files, translator.settings.source, translator.settings.target, report)
    for reason, tally in report.dropped.items():
        warn(f"warning: dropped, {reason}: {tally}")
    for sentence in (*report.to_dict().get("notes", ()), *report.cautions):
        warn(sentence)
    gold = None if alignments is None else read_alignments(alignments, pairs)
    if gold is not None and not has_attention(translator):
        raise DataError(f"{model} has no attention to compare with --alignments")
    rows = zip(pairs, repeat(None) if gold is None else gold, strict=gold is not None)
    linked = list(
        refusals.accepted(rows, lambda row: translator.validation_error(row[0].source), lambda row: row[0].place)
    )
    sources, targets = [pair.source for pair, _ in linked], [pair.target for pair, _ in linked]
    evaluation = score_translations(translator, sources, targets, **overrides)
    results = {
        **evaluation.to_dict(),
        "samples": [vars(sample) for sample in evaluation.samples],
        **refusals.to_dict(),
    }
    show_evaluation(evaluation, n_samples, translator.settings.target, refused_note(results))
    if gold is not None:
        triples = [(pair.source, pair.target, links) for pair, links in linked if links is not None]
        half = (len(triples) + 1) // 2
        score = alignment_score(translator, triples[:half], triples[half:] or triples)
        show_alignment(score, half)
        results["alignment"] = {**vars(score), "head": str(score.head)}
    return results
