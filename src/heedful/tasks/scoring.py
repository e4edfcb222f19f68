"""Scores of generated text: BLEU, chrF and ROUGE with signatures and intervals, exact matches, calibration.

ROUGE is the F1 of the tokens that an output shares with its reference, of pairs of tokens, and of their order. A token
is a run of letters and digits of any script, in lower case; a character of a script without spaces between words
(Chinese, Japanese, Thai, …) is a token by itself. Nothing is stemmed. For English this is what other tools count;
unlike them, it covers every script. With the unit "characters" every letter and digit is a token: a wrong particle in
Korean then costs its own syllables, not the whole word.
"""

import re
import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

# BLEU needs another tokenizer for languages without spaces between words; chrF needs none.
BLEU_TOKENIZERS = {"zh": "zh", "ja": "char", "th": "char"}
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
    """A score; its signature says how it was computed. `interval` is half of the 95 % interval, in points."""

    metric: str
    value: float
    interval: float | None = None
    signature: str = ""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        around = "" if self.interval is None else f" ± {self.interval:.1f}"
        return f"{self.metric} {self.value:.2f}{around}"


def corpus_scores(
    outputs: Sequence[str], references: Sequence[str], language: str, *, bootstrap: int = 0
) -> dict[str, Score]:
    """Return cased BLEU and chrF of a corpus, with 95 % intervals from `bootstrap` resamplings."""
    tokenizer = BLEU_TOKENIZERS.get(_main_code(language), "13a")
    metrics = {"bleu": ("BLEU", BLEU(tokenize=tokenizer, force=True)), "chrf": ("chrF2", CHRF())}
    scores = {}
    for key, (name, metric) in metrics.items():
        value = metric.corpus_score(list(outputs), [list(references)]).score
        interval = _interval(metric, outputs, references, bootstrap) if bootstrap > 1 else None
        scores[key] = Score(name, float(value), interval, str(metric.get_signature()))
    return scores


def _interval(metric: Any, outputs: Sequence[str], references: Sequence[str], bootstrap: int) -> float:
    """Return sacreBLEU's interval, with its samples drawn one at a time.

    The library draws all of them at once, which takes gigabytes for a large set, and fails at a sample that scores 0.
    """
    metric.n_bootstrap, metric.seed = bootstrap, str(SEED)  # for the signature
    statistics = np.array(metric._extract_corpus_statistics(list(outputs), [list(references)]), dtype=np.float32)

    def score(rows: NDArray[np.int64]) -> float:
        return float(metric._compute_score_from_stats(statistics[rows].sum(0)).score)

    return bootstrap_interval(score, len(statistics), bootstrap)


def bootstrap_interval(score: Callable[[NDArray[np.int64]], float], n: int, bootstrap: int) -> float:
    """Return half the width of the interval that holds 95 % of the scores of resampled rows."""
    random = np.random.default_rng(SEED)
    ranked = sorted(score(random.choice(n, n)) for _ in range(bootstrap))
    outside = bootstrap // 40
    return 0.5 * (ranked[bootstrap - outside - 1] - ranked[outside])


def main_metric(language: str) -> str:
    """Return the metric that selects a model: BLEU, or chrF where words have many endings."""
    return "chrf" if _main_code(language) == "ko" else "bleu"


def _main_code(language: str) -> str:
    """Return the language of a code such as zh-CN, without the region."""
    return language.split("-")[0].lower()


def sentence_score(output: str, reference: str) -> float:
    """Return chrF of one sentence; BLEU means little for less than a corpus."""
    return float(CHRF().sentence_score(output, [reference]).score)


def exact_share(outputs: Sequence[str], accepted: Sequence[Sequence[str]]) -> float:
    """Return the percentage of outputs that are one of their accepted answers."""
    hits = sum(output in answers for output, answers in zip(outputs, accepted, strict=True))
    return 100.0 * hits / max(1, len(outputs))


def calibration_error(probabilities: Sequence[float], right: Sequence[bool], bins: int = 10) -> float:
    """Return the expected calibration error of stated probabilities, in percent.

    The answers are sorted by probability into `bins` groups of equal size; the distance between a group's mean
    probability and its share of right answers is averaged over all answers.
    """
    order = np.argsort(np.asarray(probabilities, dtype=np.float64), kind="stable")
    stated, true = np.asarray(probabilities, dtype=np.float64)[order], np.asarray(right, dtype=np.float64)[order]
    groups = np.array_split(stated - true, min(bins, max(1, len(order))))
    return 100.0 * sum(abs(float(group.sum())) for group in groups) / max(1, len(order))


def by_length(
    sources: Sequence[str], outputs: Sequence[str], references: Sequence[str], language: str
) -> list[tuple[str, int, float]]:
    """Return the groups of sentences by the number of words of their source: that range, their number, their score.

    The score is the main one of the language.
    """
    groups: dict[int, list[int]] = {}
    for index, source in enumerate(sources):
        groups.setdefault(bisect_left(LENGTH_EDGES, len(source.split())), []).append(index)
    lower, metric = [1, *(edge + 1 for edge in LENGTH_EDGES)], main_metric(language)
    scores = []
    for group, members in sorted(groups.items()):
        label = f"{lower[group]}-{LENGTH_EDGES[group]}" if group < len(LENGTH_EDGES) else f"{lower[group]}+"
        values = corpus_scores([outputs[i] for i in members], [references[i] for i in members], language)
        scores.append((label, len(members), values[metric].value))
    return scores


def rouge_tokens(text: str, unit: Unit = "words") -> list[str]:
    """Return the tokens of a text that ROUGE counts."""
    spaced = "".join(map(_letter_or_space, unicodedata.normalize("NFC", text).lower()))
    if unit == "characters":
        return [character for character in spaced if character != " "]
    return SOLID.sub(r" \1 ", spaced).split()


@cache
def _letter_or_space(character: str) -> str:
    """Keep letters, the marks on them and digits; anything else separates tokens."""
    return character if unicodedata.category(character)[0] in "LMN" else " "


def rouge(output: str, reference: str, unit: Unit = "words") -> dict[str, float]:
    """Return the F1 scores of one output from 0 to 1: "rouge1", "rouge2", "rougeL".

    ROUGE-L takes the longest common subsequence of the two whole texts. Where neither text has a token (both are "?"),
    the score is 1 if they are the same.
    """
    first, second = rouge_tokens(output, unit), rouge_tokens(reference, unit)
    if not first and not second:
        return dict.fromkeys(ROUGE, float(output.strip() == reference.strip()))
    pairs = Counter(pairwise(first)) & Counter(pairwise(second))
    shared = {
        "rouge1": (Counter(first) & Counter(second)).total(),
        "rouge2": pairs.total(),
        "rougeL": longest_common_subsequence(first, second),
    }
    sizes = {"rouge2": max(0, len(first) - 1) + max(0, len(second) - 1)}
    return {key: 2 * n / sizes.get(key, len(first) + len(second)) if n else 0.0 for key, n in shared.items()}


def rouge_scores(
    outputs: Sequence[str], references: Sequence[str], *, unit: Unit = "words", bootstrap: int = 0
) -> dict[str, Score]:
    """Return the mean scores in percent, with 95 % intervals from `bootstrap` resamplings."""
    each = [rouge(output, reference, unit) for output, reference in zip(outputs, references, strict=True)]
    drawn = f"|bs:{bootstrap}|seed:{SEED}" if bootstrap > 1 else ""
    signature = f"f1|mean|tok:{unit}|script:all|case:lc|stem:no{drawn}"

    def score(metric: str, values: NDArray[np.float64]) -> Score:
        draw = bootstrap > 1 and len(values) > 0
        interval = bootstrap_interval(lambda rows: float(values[rows].mean()), len(values), bootstrap) if draw else None
        name = metric if unit == "words" else f"{metric} ({unit})"
        return Score(name, float(values.mean()) if len(values) else 0.0, interval, signature)

    return {key: score(metric, 100.0 * np.array([f1[key] for f1 in each])) for key, metric in ROUGE.items()}


def rouge_share(texts: Sequence[str]) -> float:
    """Return the share of the visible characters of some texts that ROUGE counts: the letters and digits."""
    counted = sum(len(rouge_tokens(text, "characters")) for text in texts)
    return counted / max(1, sum(len("".join(text.split())) for text in texts))


def mostly_hangul(texts: Sequence[str]) -> bool:
    """Whether most letters and digits of some texts are Korean."""
    n_characters = sum(len(rouge_tokens(text, "characters")) for text in texts)
    return 2 * sum(len(HANGUL.findall(unicodedata.normalize("NFC", text))) for text in texts) > n_characters


def longest_common_subsequence(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the length of the longest common subsequence.

    A row of the usual table is an integer with a bit for each column: 0 where the length grows. Each token of `first`
    makes the next row from the last one with one addition (Hyyrö 2004).
    """
    columns: dict[str, int] = {}
    for place, token in enumerate(second):
        columns[token] = columns.get(token, 0) | 1 << place
    row = all_columns = (1 << len(second)) - 1
    for token in first:
        matches = row & columns.get(token, 0)
        row = ((row + matches) | (row - matches)) & all_columns
    return len(second) - row.bit_count()
