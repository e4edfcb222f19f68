"""How good answers are: ROUGE, the share that is exactly right, chrF; and beside them what no model is needed for."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from ...errors import DataError
from ...lens.report import Sample
from ..class_scores import share_interval
from ..predictor import ItemError
from ..rouge import mostly_hangul, rouge, rouge_scores
from ..scoring import Score, corpus_scores, exact_share
from ..text_generator import Answer
from .examples import Example, ExampleReading, read_examples
from .rewriter import CutWarning, TextToTextGenerator

BOOTSTRAP = 1000
TASKS = 50  # prefixes whose scores are told apart


def evaluate_files(
    rewriter: TextToTextGenerator, paths: Sequence[str], columns: Sequence[str] | None = None
) -> dict[str, Any]:
    """On every pair of the files, as a user would ask; what is left out is said."""
    reading = ExampleReading()
    prefix = rewriter.settings.prefix
    examples = list(read_examples(paths, columns=columns, prefix=prefix, reading=reading))
    if not examples:
        raise DataError(f"{', '.join(paths)}: there is no pair to evaluate on")
    left_out = [f"left out: {reason}: {tally}" for reason, tally in reading.dropped.items()]
    answers = answers_to(rewriter, examples)
    return judged(answers, examples) | ({"verdict": left_out} if left_out else {})


def answers_to(rewriter: TextToTextGenerator, examples: Sequence[Example], **search: Any) -> list[Answer]:
    """To the texts as they stand before the model puts its own prefix there; what it cannot read is named."""
    try:
        return rewriter.answers([one.text.removeprefix(rewriter.settings.prefix) for one in examples], **search)
    except ItemError as error:
        raise DataError(f"{examples[error.index].pair.place}: {error.reason}") from None


def quiet_answers(rewriter: TextToTextGenerator, examples: Sequence[Example], **search: Any) -> list[Answer]:
    """Of a run's own data: that some sources are cut was told when they were read."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CutWarning)
        return answers_to(rewriter, examples, **search)


def judged(answers: Sequence[Answer], examples: Sequence[Example]) -> dict[str, Any]:
    """What "validation" says in metrics.json."""
    outputs = [answer.text for answer in answers]
    return {
        "n": len(examples),
        "scores": {name: score.to_dict() for name, score in all_scores(outputs, examples).items()},
        "tasks": by_prefix(outputs, examples),
        "unfinished": sum(not answer.finished for answer in answers),
    }


def quick_scores(outputs: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    """What a validation tells, in percent."""
    exact = exact_share(outputs, [[reference] for reference in references])
    return {name: score.value for name, score in rouge_scores(outputs, references).items()} | {"exact": exact}


def all_scores(outputs: Sequence[str], examples: Sequence[Example]) -> dict[str, Score]:
    """Everything there is to say; and what as many first words of a source would reach as a reference has on average.

    Where the references are Korean, ROUGE-L of their syllables stands beside that of the words.
    """
    lead = max(1, round(sum(len(one.target.split()) for one in examples) / len(examples)))
    references = [one.target for one in examples]
    exact = exact_share(outputs, [[reference] for reference in references])
    scores = {"exact": Score("exact %", exact, share_interval(exact, len(outputs)))}
    scores |= rouge_scores(outputs, references, bootstrap=BOOTSTRAP)
    if mostly_hangul(references):
        syllables = rouge_scores(outputs, references, unit="characters", bootstrap=BOOTSTRAP)
        scores["rougeL_characters"] = syllables["rougeL"]
    scores["chrf"] = corpus_scores(outputs, references, "en", bootstrap=BOOTSTRAP)["chrf"]  # the same in any language
    first = rouge_scores([first_words(one.source, lead) for one in examples], references)["rougeL"]
    scores["lead"] = Score(f"ROUGE-L, first {lead} words", first.value, None, first.signature)
    return scores


def first_words(text: str, count: int) -> str:
    """The beginning of a text."""
    return " ".join(text.split()[:count])


def by_prefix(outputs: Sequence[str], examples: Sequence[Example]) -> list[dict[str, Any]]:
    """The scores of each task, where there are several: by what stands before its texts."""
    rows: dict[str, list[int]] = {}
    for row, one in enumerate(examples):
        rows.setdefault(one.prefix, []).append(row)
    if len(rows) < 2:
        return []
    return [
        {
            "prefix": prefix,
            "n": len(members),
            **quick_scores([outputs[row] for row in members], [examples[row].target for row in members]),
        }
        for prefix, members in sorted(rows.items())[:TASKS]
    ]


def sample_of(output: str, one: Example) -> Sample:
    """With its ROUGE-L in percent."""
    score = 100.0 * rouge(output, one.target)["rougeL"]
    return Sample(one.text, one.target, output, score, output == one.target)
