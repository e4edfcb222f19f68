"""How good an output is: corpus scores with their signatures and intervals, scores of a sentence, scores by length.

ROUGE says how much of a reference an output brings, and how much else: F1 of tokens, of pairs of them, of their order.
A token is a run of letters and digits of any script, in lower case; a character of a script that puts no spaces
between words (Chinese, Japanese, Thai, …) is a token of its own. Nothing is stemmed. For English that is what the
usual tools count; unlike them, no script is left out. With the unit "characters" every letter and digit is a token:
a wrong particle of Korean then costs its own syllables, not the whole word.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

# Languages that write no spaces between words need their own cutting for BLEU; chrF needs none.
BLEU_CUTTING = {"zh": "zh", "ja": "char", "th": "char"}
SEED = 12345  # sacreBLEU's
LENGTH_EDGES = (5, 10, 15, 20, 30, 50)
Unit = Literal["words", "characters"]
ROUGE = {"rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeL": "ROUGE-L"}
HANGUL = re.compile(r"[가-힣]")
# Thai, Lao, Burmese, Khmer, kana, Han: where one word ends and the next begins is not written.
SOLID = re.compile(
    r"([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u3096\u30a1-\u30fe\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])"
)


@dataclass(frozen=True)
class Score:
    """A figure that can be compared: its signature says how it was computed. `interval` is ± 95 %, in points."""

    metric: str
    value: float
    interval: float | None = None
    signature: str = ""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        around = "" if self.interval is None else f" ± {self.interval:.1f}"
        return f"{self.metric} {self.value:.2f}{around}"


@dataclass(frozen=True)
class LengthScore:
    """The score of the sentences whose source has a number of words within a range."""

    label: str
    count: int
    score: float


def corpus_scores(
    outputs: Sequence[str], references: Sequence[str], language: str, *, bootstrap: int = 0
) -> dict[str, Score]:
    """BLEU and chrF of a corpus, cased; with `bootstrap` resamplings, the 95 % interval too."""
    cutting = BLEU_CUTTING.get(_main_code(language), "13a")
    metrics = {"bleu": ("BLEU", BLEU(tokenize=cutting, force=True)), "chrf": ("chrF2", CHRF())}
    scores = {}
    for key, (name, metric) in metrics.items():
        value = metric.corpus_score(list(outputs), [list(references)]).score
        interval = _interval(metric, outputs, references, bootstrap) if bootstrap > 1 else None
        scores[key] = Score(name, float(value), interval, str(metric.get_signature()))
    return scores


def _interval(metric: Any, outputs: Sequence[str], references: Sequence[str], bootstrap: int) -> float:
    """sacreBLEU's figure, its samples drawn one at a time.

    The library itself draws all of them at once, which takes gigabytes for a large set, and stops at a sample
    that scores 0.
    """
    metric.n_bootstrap, metric.seed = bootstrap, str(SEED)  # for the signature
    statistics = np.array(metric._extract_corpus_statistics(list(outputs), [list(references)]), dtype=np.float32)

    def score(rows: NDArray[np.int64]) -> float:
        return float(metric._compute_score_from_stats(statistics[rows].sum(0)).score)

    return bootstrap_interval(score, len(statistics), bootstrap)


def bootstrap_interval(score: Callable[[NDArray[np.int64]], float], n: int, bootstrap: int) -> float:
    """Half of what 95 % of the scores of resampled rows lie within."""
    random = np.random.default_rng(SEED)
    ranked = sorted(score(random.choice(n, n)) for _ in range(bootstrap))
    outside = bootstrap // 40
    return 0.5 * (ranked[bootstrap - outside - 1] - ranked[outside])


def main_metric(language: str) -> str:
    """What a model is chosen by: BLEU, or chrF where words carry many endings."""
    return "chrf" if _main_code(language) == "ko" else "bleu"


def _main_code(language: str) -> str:
    """zh of zh-CN: how a language is written does not hang on where."""
    return language.split("-")[0].lower()


def sentence_score(output: str, reference: str) -> float:
    """chrF of one sentence: BLEU means little below a corpus."""
    return float(CHRF().sentence_score(output, [reference]).score)


def exact_share(outputs: Sequence[str], accepted: Sequence[Sequence[str]]) -> float:
    """The share of outputs, in percent, that are one of their accepted answers."""
    hits = sum(output in answers for output, answers in zip(outputs, accepted, strict=True))
    return 100.0 * hits / max(1, len(outputs))


def calibration_error(probabilities: Sequence[float], right: Sequence[bool], bins: int = 10) -> float:
    """How far, in percent, stated probabilities lie from what came true: the expected calibration error.

    The answers are put into `bins` groups of equal size by their probability; the distance between a group's mean
    probability and its share of right answers is averaged over all answers.
    """
    order = np.argsort(np.asarray(probabilities, dtype=np.float64), kind="stable")
    stated, true = np.asarray(probabilities, dtype=np.float64)[order], np.asarray(right, dtype=np.float64)[order]
    groups = np.array_split(stated - true, min(bins, max(1, len(order))))
    return 100.0 * sum(abs(float(group.sum())) for group in groups) / max(1, len(order))


def by_length(
    sources: Sequence[str], outputs: Sequence[str], references: Sequence[str], language: str
) -> list[LengthScore]:
    """The main score over sentences grouped by the words of their source; groups without sentences are left out."""
    groups: dict[int, list[int]] = {}
    for index, source in enumerate(sources):
        words = len(source.split())
        groups.setdefault(sum(words > edge for edge in LENGTH_EDGES), []).append(index)
    metric = main_metric(language)
    found = []
    for group, members in sorted(groups.items()):
        scores = corpus_scores([outputs[i] for i in members], [references[i] for i in members], language)
        found.append(LengthScore(_label(group), len(members), scores[metric].value))
    return found


def _label(group: int) -> str:
    if group == len(LENGTH_EDGES):
        return f"{LENGTH_EDGES[-1] + 1}+"
    return f"{LENGTH_EDGES[group - 1] + 1 if group else 1}-{LENGTH_EDGES[group]}"


def rouge_tokens(text: str, unit: Unit = "words") -> list[str]:
    """What is counted of a text."""
    kept = "".join(map(_kept, unicodedata.normalize("NFC", text).lower()))
    if unit == "characters":
        return [character for character in kept if character != " "]
    return SOLID.sub(r" \1 ", kept).split()


@cache
def _kept(character: str) -> str:
    """Letters, the marks on them and digits; all else separates."""
    return character if unicodedata.category(character)[0] in "LMN" else " "


def rouge(output: str, reference: str, unit: Unit = "words") -> dict[str, float]:
    """The F1 of one output, from 0 to 1: "rouge1", "rouge2", "rougeL".

    ROUGE-L is of the longest common subsequence of the two texts as wholes. Where neither has a token (both are "?"),
    the score is 1 if they are the same.
    """
    ours, theirs = rouge_tokens(output, unit), rouge_tokens(reference, unit)
    if not ours and not theirs:
        return dict.fromkeys(ROUGE, float(output.strip() == reference.strip()))
    return {
        "rouge1": _overlap(ours, theirs, 1),
        "rouge2": _overlap(ours, theirs, 2),
        "rougeL": _f1(longest_common_subsequence(ours, theirs), len(ours), len(theirs)),
    }


def rouge_scores(
    outputs: Sequence[str], references: Sequence[str], *, unit: Unit = "words", bootstrap: int = 0
) -> dict[str, Score]:
    """The means over all outputs, in percent; with `bootstrap` resamplings, the 95 % interval too."""
    each = [rouge(output, reference, unit) for output, reference in zip(outputs, references, strict=True)]
    drawn = f"|bs:{bootstrap}|seed:{SEED}" if bootstrap > 1 else ""
    signature = f"f1|mean|tok:{unit}|script:all|case:lc|stem:no{drawn}"
    scores = {}
    for key, metric in ROUGE.items():
        values = 100.0 * np.array([one[key] for one in each])
        interval = (
            bootstrap_interval(partial(_mean, values), len(values), bootstrap) if bootstrap > 1 and each else None
        )
        named = metric if unit == "words" else f"{metric} ({unit})"
        scores[key] = Score(named, float(values.mean()) if len(values) else 0.0, interval, signature)
    return scores


def _mean(values: NDArray[np.float64], rows: NDArray[np.int64]) -> float:
    return float(values[rows].mean())


def mostly_hangul(texts: Sequence[str]) -> bool:
    """Whether most letters and digits of some texts are Korean."""
    counted = sum(len(rouge_tokens(text, "characters")) for text in texts)
    return 2 * sum(len(HANGUL.findall(unicodedata.normalize("NFC", text))) for text in texts) > counted


def longest_common_subsequence(first: Sequence[str], second: Sequence[str]) -> int:
    """The length of the longest common subsequence.

    The rows of the usual table, a bit a column: a 0 stands where the length grows. Each token of `first` makes the
    next row from the last with one addition (Hyyrö 2004).
    """
    where: dict[str, int] = {}
    for place, token in enumerate(second):
        where[token] = where.get(token, 0) | 1 << place
    whole = (1 << len(second)) - 1
    row = whole
    for token in first:
        met = row & where.get(token, 0)
        row = ((row + met) | (row - met)) & whole
    return len(second) - row.bit_count()


def _overlap(ours: Sequence[str], theirs: Sequence[str], n: int) -> float:
    """F1 of the runs of n tokens, each counted as often as both texts have it."""
    first, second = (Counter(zip(*(row[start:] for start in range(n)), strict=False)) for row in (ours, theirs))
    return _f1((first & second).total(), first.total(), second.total())


def _f1(shared: int, n_ours: int, n_theirs: int) -> float:
    return 2 * shared / (n_ours + n_theirs) if shared else 0.0
