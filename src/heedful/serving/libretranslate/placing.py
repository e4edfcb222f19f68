"""Where the tags of a sentence belong in its translation: around the words that were made from those they stood around.

Which those are, the model's own attention says.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Any

from ...tasks.translation.inspection import has_attention, look
from ...tasks.translation.predictor import Translator
from .documents import Span


def can_place(translator: Any, text: str) -> bool:
    """Whether a model can be asked: it is a translator with attention, and takes the whole sentence."""
    return (
        isinstance(translator, Translator) and has_attention(translator) and translator.validation_error(text) is None
    )


def placed(translator: Any, source: str, target: str, spans: Sequence[Span]) -> list[Span] | None:
    """The spans of a source in its translation, in the same order; None where that cannot be told."""
    if source == target:
        return list(spans)
    if not target.strip():
        return None
    maps = look(translator, " ".join(source.split()), target).weights
    widest = max(maps, key=lambda head: (head.layer is None, head.head is None))  # the mean of as much as there is
    weights: list[list[float]] = maps[widest].tolist()  # (target words, source words)
    words = _words(source)
    inside = [[index for index, word in enumerate(words) if _meet(word, span)] for span in spans]
    if len({index for own in inside for index in own}) < sum(map(len, inside)):
        return None  # a word that two tags share
    chosen_words = made_from(inside, weights)
    if chosen_words is None:
        return None
    there = _words(target)
    found = [(there[first][0], there[last][1]) for first, last in chosen_words]
    return [trimmed(target, new, source[begin:end]) for new, (begin, end) in zip(found, spans, strict=True)]


def made_from(inside: Sequence[Sequence[int]], weights: Sequence[Sequence[float]]) -> list[Span] | None:
    """For each group of source words, the first and the last target word: the one that looks at the group most, and
    those beside it that look at the group and are what it is looked at from. No word is in two groups.
    """
    forth = [max(range(len(row)), key=row.__getitem__) for row in weights]
    back = [max(range(len(column)), key=column.__getitem__) for column in zip(*weights, strict=True)]
    free = set(range(len(weights)))
    found: list[Span] = []
    for own in inside:
        if not free:
            return None
        first = last = max(sorted(free), key=partial(_looks, weights, own))
        both = free & {back[source] for source in own} & {word for word, source in enumerate(forth) if source in own}
        while first - 1 in both:
            first -= 1
        while last + 1 in both:
            last += 1
        free -= set(range(first, last + 1))
        found.append((first, last))
    return found


def _looks(weights: Sequence[Sequence[float]], sources: Sequence[int], word: int) -> float:
    return sum(weights[word][source] for source in sources)


def _words(text: str) -> list[Span]:
    return [word.span() for word in re.finditer(r"\S+", text)]


def _meet(one: Span, other: Span) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def trimmed(text: str, span: Span, source: str) -> Span:
    """Without signs at an end where the source has none: a full stop stays outside."""
    begin, end = span
    while end > begin and source[-1].isalnum() and not text[end - 1].isalnum():
        end -= 1
    while end > begin and source[0].isalnum() and not text[begin].isalnum():
        begin += 1
    return (begin, end) if begin < end else span
