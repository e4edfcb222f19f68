"""`heedful evaluate`: how good a model is on data it has not seen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ..config import write_mapping
from ..data.pairs import Pair, Reading
from ..errors import ConfigError, DataError
from ..tasks import load, translation
from ..tasks.predictor import ItemError
from ..tasks.registry import task_of
from ..tasks.run import Files
from ..tasks.scoring import Score, main_metric
from ..tasks.translation.data import read_set
from ..tasks.translation.inspection import AlignmentScore, alignment_score, has_attention, read_alignments
from ..tasks.translation.predictor import Translator
from ..tasks.translation.task import Evaluation
from .generation import Beam, LengthPenalty, Precision, given
from .tables import show_by_length, show_samples, show_scores
from .together import deal, together
from .words import say, warn


def evaluate(
    context: typer.Context,
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The folder of a trained model.")],
    data: Annotated[
        list[str], typer.Option(help="Data it has not seen, in any form that train reads. Repeatable.", metavar="FILE")
    ],
    columns: Annotated[str | None, typer.Option(help="Columns, as for train: en,ko.")] = None,
    beam: Beam = None,
    length_penalty: LengthPenalty = None,
    precision: Precision = None,
    alignments: Annotated[
        Path | None, typer.Option(help="True word alignments, a line a pair: 0-0 1-2 2?1 (? for possible).")
    ] = None,
    samples: Annotated[int, typer.Option(min=0, help="How many of the best and of the worst to show.")] = 5,
    out: Annotated[Path | None, typer.Option(help="Write the scores as JSON; of a translator, all sentences.")] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda, or auto.")] = "auto",
) -> None:
    """Score a model on data it has not seen, by what its task is judged by.

    A translator gets BLEU and chrF with signatures and 95 % intervals, samples, and scores by length.
    """
    with together() as here:
        if out is not None and out.suffix != ".json":
            raise ConfigError(f"--out {out}: the scores are written as JSON; give the file the ending .json")
        out = out if here.rank == 0 else None
        translator = load(model, device=here.device(device))
        deal(translator, here)
        files = Files(tuple(data), columns=tuple(name.strip() for name in columns.split(",")) if columns else None)
        if not isinstance(translator, Translator):
            only = {"alignments": alignments, **given(context)}
            _of_other_tasks(translator, model, files, {name: value for name, value in only.items() if value}, out)
            return
        pairs = _pairs(translator, files)
        gold = None if alignments is None else read_alignments(alignments, pairs)
        if gold is not None and not has_attention(translator):
            raise DataError(f"{model} has no attention that --alignments could be compared with")
        words = given(context)
        result = _evaluated(translator, pairs, words)
        _show(result, samples, translator.settings.target)
        found = {**result.to_dict(), "samples": [vars(sample) for sample in result.samples]}
        if gold is not None:
            triples = [(pair.source, pair.target, true) for pair, true in zip(pairs, gold, strict=True)]
            half = (len(triples) + 1) // 2
            score = alignment_score(translator, triples[:half], triples[half:] or triples)
            _show_alignment(score, half)
            found["alignment"] = {**vars(score), "head": str(score.head)}
        if out is not None:
            write_mapping(out, found)
            say(f"wrote {out}")


def _of_other_tasks(predictor: Any, model: Path, files: Files, words: dict[str, Any], out: Path | None) -> None:
    if words:
        option = next(iter(words)).replace("_", "-")
        raise ConfigError(f"--{option} is for translators; a model for {predictor.task} is scored as it is")
    task = task_of(model)
    found = task.evaluate(predictor, files)
    scores = [Score(**score) for score in found["scores"].values()]
    show_scores(f"{found['n']:,} {task.example_name}", {"all": scores})
    for sentence in found.get("verdict", ()):
        say(sentence)
    if out is not None:
        write_mapping(out, found)
        say(f"wrote {out}")


def _pairs(translator: Translator, files: Files) -> list[Pair]:
    reading = Reading()
    pairs = read_set(files, translator.settings.source, translator.settings.target, reading)
    for why, tally in reading.dropped.items():
        warn(f"warning: left out, {why}: {tally}")
    return pairs


def _evaluated(translator: Translator, pairs: Sequence[Pair], words: dict[str, Any]) -> Evaluation:
    try:
        return translation.evaluate(
            translator, [pair.source for pair in pairs], [pair.target for pair in pairs], **words
        )
    except ItemError as error:
        raise DataError(f"{pairs[error.index].place}: {error.reason}") from None


def _show(result: Evaluation, count: int, language: str) -> None:
    show_scores(f"{len(result.samples):,} pairs", {"all": [*result.scores.values(), Score("exact %", result.exact)]})
    show_by_length(result.by_length, result.scores[main_metric(language)].metric)
    _show_calibration(result.calibration)
    if result.unfinished:
        warn(f"warning: {result.unfinished:,} outputs had not come to an end when their room did")
    ranked = result.best
    best = ranked[:count]
    worst = ranked[len(best) :][-count:][::-1] if count else []
    for title, some in (("Best", best), ("Worst", worst)):
        if some:
            show_samples(title, some)


def _show_calibration(found: dict[str, float]) -> None:
    confidence = f"{found['confidence']:.1f} %" if "confidence" in found else "none (the model was not taught it)"
    say(
        f"Calibration error against exact match, ten bins: of the confidence {confidence}, "
        f"of the model's own probability {found['probability']:.1f} %"
    )


def _show_alignment(score: AlignmentScore, half: int) -> None:
    say(
        f"Alignment error rate: {score.error_rate:.1f} % by {score.head}, chosen on the first {half:,} pairs; "
        f"by a diagonal: {score.diagonal:.1f} %"
    )
