"""Scores of answers that are spans: exact match and F1 of answers to questions, entity-level F1 of tag sequences.

All of them are in percent, and pure functions of texts or tags.
"""

import re
import string
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from .class_scores import ClassScore, share_interval
from .scoring import Score

ARTICLES = re.compile(r"\b(a|an|the)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)
KOREAN_QUOTES = str.maketrans("", "", "'\"《》<>〈〉‘’()")  # what KorQuAD's script removes besides
UNSPACED = re.compile("[\u1100-\u11ff\u3040-\u30ff\u3130-\u318f\u3400-\u9fff\uac00-\ud7a3]")  # Hangul, kana, Han


def normalize_answer(text: str) -> str:
    """Return a text as answers are compared: lower-case, without punctuation and extra spaces.

    English loses its articles, as in SQuAD's script; a text with Hangul, kana or Han loses its quotation marks instead,
    as in KorQuAD's.
    """
    if UNSPACED.search(text):
        return " ".join(text.translate(KOREAN_QUOTES).lower().translate(PUNCTUATION).split())
    return " ".join(ARTICLES.sub(" ", text.lower().translate(PUNCTUATION)).split())


def answer_tokens(text: str) -> list[str]:
    """Return the tokens that F1 counts: words (SQuAD), or characters for Hangul, kana and Han (KorQuAD)."""
    tokens = normalize_answer(text).split()
    return list("".join(tokens)) if UNSPACED.search(text) else tokens


def exact_match(prediction: str, references: Sequence[str]) -> float:
    """Return 1.0 if the prediction equals a reference after normalization. No references: there is no answer."""
    normalized = normalize_answer(prediction)
    return float(any(normalized == normalize_answer(reference) for reference in references or ("",)))


def token_f1(prediction: str, references: Sequence[str]) -> float:
    """Return the best F1, from 0 to 1, of the tokens that the prediction shares with a reference."""
    return max(_f1(answer_tokens(prediction), answer_tokens(reference)) for reference in references or ("",))


def _f1(predicted: list[str], true: list[str]) -> float:
    if not predicted or not true:  # an empty answer is right where there is none, and nowhere else
        return float(predicted == true)
    common = sum((Counter(predicted) & Counter(true)).values())
    return 2 * common / (len(predicted) + len(true))


def answer_scores(predictions: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, Score]:
    """Exact match and F1 over all questions; with unanswerable ones, also over each kind on its own.

    Args:
        predictions: An answer for each question, "" where the model gives none.
        references: The right answers to each question, none where it cannot be answered.
    """
    exact = [exact_match(*pair) for pair in zip(predictions, references, strict=True)]
    shared = [token_f1(*pair) for pair in zip(predictions, references, strict=True)]
    value = _percent(exact)
    scores = {
        "exact_match": Score("exact match", value, share_interval(value, len(exact)), "squad"),
        "f1": Score("F1", _percent(shared), signature="squad; characters for Hangul, kana and Han"),
    }
    if not all(references) and any(references):
        answerable = [f1 for f1, right in zip(shared, references, strict=True) if right]
        refused = [f1 for f1, right in zip(shared, references, strict=True) if not right]
        scores["answerable_f1"] = Score("F1 of answerable questions", _percent(answerable))
        scores["unanswerable"] = Score("refused unanswerable questions", _percent(refused))
    return scores


def _percent(values: Sequence[float]) -> float:
    return 100.0 * sum(values) / max(1, len(values))


class EntitySpan(NamedTuple):
    """An entity in a sequence of tags: words from `start` up to, not including, `stop`."""

    label: str
    start: int
    stop: int


def entity_spans(tags: Sequence[str]) -> list[EntitySpan]:
    """Return the entities that IOB1, IOB2, IOE or IOBES tags mark, as CoNLL's script reads them.

    An entity begins at B- or S-, or where the label changes or an O or an end stood before.
    """
    spans: list[EntitySpan] = []
    start, label, prefix = 0, "", "O"
    for place, tag in enumerate((*tags, "O")):
        next_prefix, _, next_label = tag.partition("-")
        if tag == "O" or not next_label:
            next_prefix, next_label = "O", ""
        begins = next_label and (next_label != label or next_prefix in "BS" or prefix in "ESO")
        if label and (begins or not next_label):
            spans.append(EntitySpan(label, start, place))
        start, label, prefix = place if begins else start, next_label, next_prefix
    return spans


def marks_entities(tags: Sequence[str]) -> bool:
    """True if a tag set marks spans (B-PER, I-PER …), False if every word has a tag of its own (NOUN, VERB …)."""
    return "O" in tags and any(re.match(r"[BIESLU]-.", tag) for tag in tags)


def entity_scores(
    predicted: Sequence[Sequence[str]], true: Sequence[Sequence[str]]
) -> tuple[dict[str, Score], list[ClassScore]]:
    """Micro-averaged F1, precision and recall of whole entities over all sentences, and the same of each label.

    Args:
        predicted: The tags of each sentence, as many as in `true`.
        true: The right tags.
    """
    right, guessed, wanted = Counter[str](), Counter[str](), Counter[str]()
    for predicted_tags, true_tags in zip(predicted, true, strict=True):
        if len(predicted_tags) != len(true_tags):
            raise ValueError(f"a sentence has {len(true_tags)} words and {len(predicted_tags)} predicted tags")
        spans, true_spans = set(entity_spans(predicted_tags)), set(entity_spans(true_tags))
        guessed.update(span.label for span in spans)
        wanted.update(span.label for span in true_spans)
        right.update(span.label for span in spans & true_spans)
    total = ClassScore.of("all", right.total(), guessed.total(), wanted.total())
    scores = {
        "f1": Score("entity F1", total.f1, signature="micro-averaged, whole entities (CoNLL)"),
        "precision": Score("entity precision", total.precision),
        "recall": Score("entity recall", total.recall),
    }
    labels = sorted({*wanted, *guessed})
    return scores, [ClassScore.of(label, right[label], guessed[label], wanted[label]) for label in labels]
