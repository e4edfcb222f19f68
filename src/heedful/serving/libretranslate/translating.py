"""Texts translated: each taken apart, its language detected where asked, all runs at the workers together.

The tags of a sentence belong around the words that were made from those they stood around. Which those are, the
model's own attention says.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...tasks.predictor import ItemError
from ...tasks.text_generator import Answer
from ...tasks.translation.inspection import has_attention, look
from ..metrics import Metrics
from ..models import Served
from ..worker import ModelWorker
from .documents import Document, Marked, Run, Span, filled, html, plain, runs
from .languages import Detected, Translators, detect
from .parameters import TranslateRequest


def can_place(translator: Any, text: str) -> bool:
    """Whether a model can be asked: it is a translator with attention, and takes the whole sentence."""
    attends = translator.output_kind == "translation" and has_attention(translator)
    return attends and translator.validation_error(text) is None


def placed(translator: Any, source: str, target: str, spans: Sequence[Span]) -> list[Span] | None:
    """The spans of a source in its translation, in the same order; None where that cannot be told."""
    if source == target:
        return list(spans)
    if not target.strip():
        return None
    maps = look(translator, " ".join(source.split()), target).weights
    widest = max(maps, key=lambda head: (head.layer is None, head.head is None))  # the mean of as much as there is
    weights: list[list[float]] = maps[widest].tolist()  # (target words, source words)
    words = _word_spans(source)
    inside = [
        [index for index, (start, stop) in enumerate(words) if start < end and begin < stop] for begin, end in spans
    ]
    if len({index for indices in inside for index in indices}) < sum(map(len, inside)):
        return None  # a word that two tags share
    chosen_words = made_from(inside, weights)
    if chosen_words is None:
        return None
    there = _word_spans(target)
    result = [(there[first][0], there[last][1]) for first, last in chosen_words]
    return [trimmed(target, new, source[begin:end]) for new, (begin, end) in zip(result, spans, strict=True)]


def made_from(inside: Sequence[Sequence[int]], weights: Sequence[Sequence[float]]) -> list[Span] | None:
    """For each group of source words, the first and the last target word: the one that looks at the group most, and
    those beside it that look at the group and are what it is looked at from. No word is in two groups.
    """
    forth = [max(range(len(row)), key=row.__getitem__) for row in weights]
    back = [max(range(len(column)), key=column.__getitem__) for column in zip(*weights, strict=True)]
    free = set(range(len(weights)))
    result: list[Span] = []
    for group in inside:
        if not free:
            return None
        look_at_group = {word: sum(weights[word][source] for source in group) for word in sorted(free)}
        first = last = max(look_at_group, key=look_at_group.__getitem__)
        both = (
            free & {back[source] for source in group} & {word for word, source in enumerate(forth) if source in group}
        )
        while first - 1 in both:
            first -= 1
        while last + 1 in both:
            last += 1
        free -= set(range(first, last + 1))
        result.append((first, last))
    return result


def _word_spans(text: str) -> list[Span]:
    return [word.span() for word in re.finditer(r"\S+", text)]


def trimmed(text: str, span: Span, source: str) -> Span:
    """Without signs at an end where the source has none: a full stop stays outside."""
    begin, end = span
    while end > begin and source[-1].isalnum() and not text[end - 1].isalnum():
        end -= 1
    while end > begin and source[0].isalnum() and not text[begin].isalnum():
        begin += 1
    return (begin, end) if begin < end else span


AUTO = "auto"
TOGETHER = 128  # runs that one request has at a worker at once: a long page leaves room for others


@dataclass(frozen=True)
class Translated:
    """A translation, and others that came close to it."""

    text: str
    alternatives: list[str]


@dataclass(frozen=True)
class TextGroup:
    """Texts of a request that one translator answers, and their places in it; without a model they stay as they are."""

    model: Served | None
    places: list[int]
    texts: list[str]
    documents: list[Document]


def parts(translate: TranslateRequest, translators: Translators) -> tuple[list[TextGroup], list[Detected]]:
    """The texts taken apart, by their languages; with what was detected, where that was asked. Long texts take time.

    A text with nothing to translate, or that was found to be in the target language, stays as it is.
    """
    target = translators.code(translate.target)
    documents = [html(text) if translate.html else plain(text) for text in translate.q.texts]
    detected: list[Detected] = []
    if translate.source == AUTO:
        likely = translators.before(target)
        detected = [detect("\n".join(runs(document)), likely)[0] for document in documents]
        sources = [item.language for item in detected]
    else:
        sources = [translators.code(translate.source)] * len(documents)
        translators.between(sources[0], target)
    places: dict[str | None, list[int]] = {}
    for place, (source, document) in enumerate(zip(sources, documents, strict=True)):
        stays = not runs(document) or (translate.source == AUTO and source == target)
        places.setdefault(None if stays else source, []).append(place)
    result = []
    for item, indices in places.items():
        model = None if item is None else translators.between(item, target)
        taken = [documents[place] if model is None else _taken(documents[place], model) for place in indices]
        result.append(TextGroup(model, indices, [translate.q.texts[place] for place in indices], taken))
    return result, detected


def _taken(document: Document, model: Served) -> Document:
    """As a model can take it: sentences in which it could not find the tags' places are in pieces."""
    result: list[str | Run | Marked] = []
    for part in document:
        if isinstance(part, Marked) and not can_place(model.predictor, part.text):
            result += part.pieces
        else:
            result.append(part)
    return tuple(result)


async def translated(part: TextGroup, alternatives: int, metrics: Metrics) -> list[Translated]:
    """Its texts; an ItemError says which text of the request cannot be translated."""
    if part.model is None:
        return [Translated(text, []) for text in part.texts]
    answers = Answers(part.model.worker, {"n_best": alternatives + 1} if alternatives else {})
    await answers.ask(part.documents, part.places)
    placements: dict[tuple[str, tuple[Span, ...]], Any] = {}
    placed_documents = [await _with_tags_placed(each, part.model, answers, placements) for each in part.documents]
    await answers.ask(placed_documents, part.places)
    written = sum(answer.n_tokens for result in answers.to.values() for answer in result)
    metrics.answered(part.model.name, items=len(part.places), tokens=written)
    return [
        _assembled(document, [answers.to[text] for text in runs(document)], alternatives)
        for document in placed_documents
    ]


class Answers:
    """What a worker answered, by text: the same text is asked once."""

    def __init__(self, worker: ModelWorker, overrides: dict[str, int]) -> None:
        self.to: dict[str, list[Answer]] = {}
        self._worker, self._overrides = worker, overrides

    async def ask(self, documents: Sequence[Document], places: Sequence[int]) -> None:
        """All runs of documents that have these places in the request."""
        owners: dict[str, int] = {}
        for document, place in zip(documents, places, strict=True):
            owners |= {text: place for text in runs(document) if text not in self.to and text not in owners}
        texts = list(owners)
        for begin in range(0, len(texts), TOGETHER):
            some = texts[begin : begin + TOGETHER]
            try:
                self.to |= zip(some, await self._worker.candidates(some, **self._overrides), strict=True)
            except ItemError as error:
                raise ItemError("text", owners[some[error.index]], error.reason) from None


async def _with_tags_placed(
    document: Document, model: Served, answers: Answers, placements: dict[tuple[str, tuple[Span, ...]], Any]
) -> tuple[str | Run, ...]:
    """With tags where they belong in the translation; a sentence where that cannot be told is in pieces again.

    `placements` remembers: the same sentence is looked into once.
    """
    result: list[str | Run] = []
    for part in document:
        if not isinstance(part, Marked):
            result.append(part)
            continue
        translation, key = answers.to[part.text][0].text, (part.text, part.spans)
        if key not in placements:
            place = partial(placed, model.predictor, part.text, translation, part.spans)
            placements[key] = await model.worker.call(place)
        spans = placements[key]
        result += part.pieces if spans is None else [part.spell(translation, spans)]
    return tuple(result)


def _assembled(document: Sequence[str | Run], answers: Sequence[Sequence[Answer]], alternatives: int) -> Translated:
    """An alternative differs from the translation in one run: those that cost least, first."""
    best = [run[0].text for run in answers]
    others = sorted(
        (run[0].score - other.score, index, other.text)
        for index, run in enumerate(answers)
        for other in run[1:]
        if other.text != best[index]
    )
    different = list(dict.fromkeys((index, other) for _, index, other in others))[:alternatives]
    return Translated(
        filled(document, best),
        [filled(document, [*best[:index], other, *best[index + 1 :]]) for index, other in different],
    )
