"""Texts translated: each taken apart, its language found where asked, all runs at the desks together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from ...tasks.predictor import ItemError
from ...tasks.text_generator import Answer
from ..metrics import Metrics
from ..models import Served
from ..worker import ModelWorker
from .detecting import Detected, detect
from .documents import Document, Marked, Run, Span, filled, plain, runs
from .html import html
from .parameters import Wish
from .placing import can_place, placed
from .translators import Translators

AUTO = "auto"
TOGETHER = 128  # runs that one request has at a desk at once: a long page leaves room for others


@dataclass(frozen=True)
class Translated:
    """A translation, and others that came close to it."""

    text: str
    alternatives: list[str]


@dataclass(frozen=True)
class Part:
    """Texts of a request that one translator answers, and their places in it; without a model they stay as they are."""

    model: Served | None
    places: list[int]
    texts: list[str]
    documents: list[Document]


def parts(wish: Wish, translators: Translators) -> tuple[list[Part], list[Detected]]:
    """The texts taken apart, by their languages; with what was detected, where that was asked. Long texts take time.

    A text with nothing to translate, or that was found to be in the target language, stays as it is.
    """
    target = translators.code(wish.target)
    documents = [html(text) if wish.html else plain(text) for text in wish.q.texts]
    detected: list[Detected] = []
    if wish.source == AUTO:
        likely = translators.before(target)
        detected = [detect("\n".join(runs(document)), likely)[0] for document in documents]
        sources = [one.language for one in detected]
    else:
        sources = [translators.code(wish.source)] * len(documents)
        translators.between(sources[0], target)
    places: dict[str | None, list[int]] = {}
    for place, (source, document) in enumerate(zip(sources, documents, strict=True)):
        stays = not runs(document) or (wish.source == AUTO and source == target)
        places.setdefault(None if stays else source, []).append(place)
    found = []
    for one, own in places.items():
        model = None if one is None else translators.between(one, target)
        taken = [documents[place] if model is None else _taken(documents[place], model) for place in own]
        found.append(Part(model, own, [wish.q.texts[place] for place in own], taken))
    return found, detected


def _taken(document: Document, model: Served) -> Document:
    """As a model can take it: sentences in which it could not find the tags' places are in pieces."""
    found: list[str | Run | Marked] = []
    for part in document:
        if isinstance(part, Marked) and not can_place(model.predictor, part.text):
            found += part.pieces
        else:
            found.append(part)
    return tuple(found)


async def translated(part: Part, alternatives: int, metrics: Metrics) -> list[Translated]:
    """Its texts; an ItemError says which text of the request cannot be translated."""
    if part.model is None:
        return [Translated(text, []) for text in part.texts]
    answers = Answers(part.model.desk, {"n_best": alternatives + 1} if alternatives else {})
    await answers.ask(part.documents, part.places)
    places = Places(part.model)
    settled = [await _settled(document, places, answers) for document in part.documents]
    await answers.ask(settled, part.places)
    written = sum(answer.n_tokens for found in answers.to.values() for answer in found)
    metrics.answered(part.model.name, items=len(part.places), tokens=written)
    return [_whole(document, [answers.to[text] for text in runs(document)], alternatives) for document in settled]


class Answers:
    """What a desk answered, by text: the same text is asked once."""

    def __init__(self, desk: ModelWorker, words: dict[str, int]) -> None:
        self.to: dict[str, list[Answer]] = {}
        self._desk, self._words = desk, words

    async def ask(self, documents: Sequence[Document], places: Sequence[int]) -> None:
        """All runs of documents that have these places in the request."""
        owners: dict[str, int] = {}
        for document, place in zip(documents, places, strict=True):
            owners |= {text: place for text in runs(document) if text not in self.to and text not in owners}
        texts = list(owners)
        for begin in range(0, len(texts), TOGETHER):
            some = texts[begin : begin + TOGETHER]
            try:
                self.to |= zip(some, await self._desk.candidates(some, **self._words), strict=True)
            except ItemError as error:
                raise ItemError("text", owners[some[error.index]], error.reason) from None


class Places:
    """Where tags belong in translations: the same sentence is looked into once."""

    def __init__(self, model: Served) -> None:
        self._model = model
        self._known: dict[tuple[str, tuple[Span, ...]], list[Span] | None] = {}

    async def of(self, part: Marked, translation: str) -> list[Span] | None:
        """Those of one sentence; None where that cannot be told."""
        key = part.text, part.spans
        if key not in self._known:
            place = partial(placed, self._model.predictor, part.text, translation, part.spans)
            self._known[key] = await self._model.desk.call(place)
        return self._known[key]


async def _settled(document: Document, places: Places, answers: Answers) -> tuple[str | Run, ...]:
    """With tags where they belong in the translation; a sentence where that cannot be told is in pieces again."""
    found: list[str | Run] = []
    for part in document:
        if isinstance(part, Marked):
            translation = answers.to[part.text][0].text
            spans = await places.of(part, translation)
            found += part.pieces if spans is None else [part.spell(translation, spans)]
        else:
            found.append(part)
    return tuple(found)


def _whole(document: Sequence[str | Run], answers: Sequence[Sequence[Answer]], alternatives: int) -> Translated:
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
