"""Translates texts. `group_texts` detects languages and splits texts; `translate_group` sends the segments to a model.

The model does not see tags. In the translation, a tag encloses the words that align, by the model's attention, with the
words that it encloses in the source.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...tasks.predictor import ItemError
from ...tasks.text_generator import Answer
from ...tasks.translation.inspection import has_attention, look
from ..errors import APIError
from ..models import Served
from ..state import Metrics
from ..threads import run_in_thread
from .documents import Document, Segment, Span, assemble, html, plain, texts_of
from .languages import DetectedLanguage, Translators, detect
from .parameters import TranslateRequest

AUTO = "auto"
BATCH_SEGMENTS = 128  # sent to a worker at once
MAX_SEGMENTS = 16_384  # of a request: every one is an object with its own text, however short


@dataclass(frozen=True)
class TextTranslation:
    """The best translation of a text, and the next best ones; no text and the reason if it was refused."""

    text: str
    alternatives: list[str]
    error: str | None = None


@dataclass(frozen=True)
class TextGroup:
    """The texts of a request that one model translates, with their indices."""

    model: Served
    indices: list[int]
    documents: list[Document]


def group_texts(request: TranslateRequest, translators: Translators) -> tuple[list[TextGroup], list[DetectedLanguage]]:
    """Split the texts into segments and group them by language, which is detected if the source is auto.

    A text without letters, or one that was detected to be in the target language, is in no group: it is not changed.
    """
    target = translators.code(request.target)
    documents: list[Document] = []
    n_segments = 0
    for text in request.texts:
        documents.append(html(text) if request.html else plain(text))
        n_segments += len(documents[-1])
        if n_segments > MAX_SEGMENTS:
            raise APIError(400, f"the texts have more than {MAX_SEGMENTS:,} lines or tags; send several requests")
    detected: list[DetectedLanguage] = []
    if request.source == AUTO:
        likely = translators.likely_sources(target)
        detected = [detect("\n".join(texts_of(document)), likely)[0] for document in documents]
        sources = [item.language for item in detected]
    else:
        sources = [translators.code(request.source)] * len(documents)
        translators.between(sources[0], target)
    by_source: dict[str, list[int]] = {}
    for index, (source, document) in enumerate(zip(sources, documents, strict=True)):
        if texts_of(document) and not (request.source == AUTO and source == target):
            by_source.setdefault(source, []).append(index)
    groups = []
    for source, indices in by_source.items():
        model = translators.between(source, target)
        groups.append(TextGroup(model, indices, [_for_model(documents[index], model) for index in indices]))
    return groups, detected


def _for_model(document: Document, model: Served) -> Document:
    """Split sentences at their tags where the model could not place these."""
    result: list[str | Segment] = []
    for part in document:
        if isinstance(part, Segment) and part.spans and not can_project(model.predictor, part.text):
            result += part.pieces
        else:
            result.append(part)
    return tuple(result)


async def translate_group(group: TextGroup, alternatives: int, metrics: Metrics) -> list[TextTranslation]:
    """Translate the texts of a group, those apart that the model refuses."""
    answers = AnswerCache(group.model, {"n_best": alternatives + 1} if alternatives else {})
    await answers.fetch(group.documents)
    documents = [await answers.place_tags(document) for document in group.documents]
    await answers.fetch(documents)
    n_tokens = sum(answer.n_tokens for candidates in answers.by_text.values() for answer in candidates)
    errors = [answers.error(document) for document in documents]
    metrics.answered(group.model.name, items=errors.count(None), tokens=n_tokens)
    size = sum(len(part if isinstance(part, str) else part.text) for document in documents for part in document)

    def translations() -> list[TextTranslation]:
        return [
            TextTranslation("", [], error)
            if error
            else _assemble(document, [answers.by_text[text] for text in texts_of(document)], alternatives)
            for document, error in zip(documents, errors, strict=True)
        ]

    return await run_in_thread(size, translations)


class AnswerCache:
    """A model's answers by text, and where it places the tags of sentences, so that each text is translated once."""

    def __init__(self, model: Served, overrides: dict[str, Any]) -> None:
        self.by_text: dict[str, list[Answer]] = {}
        self._refused: dict[str, str] = {}  # the reasons by text
        self._projections: dict[tuple[str, tuple[Span, ...]], list[Span] | None] = {}
        self._model, self._overrides = model, overrides

    def error(self, document: Document) -> str | None:
        """Return why a segment of a document was refused; None if all are translated."""
        return next((self._refused[text] for text in texts_of(document) if text in self._refused), None)

    async def fetch(self, documents: Sequence[Document]) -> None:
        """Translate all segments of documents."""
        done = self.by_text.keys() | self._refused.keys()
        texts = list(dict.fromkeys(text for each in documents for text in texts_of(each) if text not in done))
        for begin in range(0, len(texts), BATCH_SEGMENTS):
            batch = texts[begin : begin + BATCH_SEGMENTS]
            answers = await self._model.worker.candidates(batch, errors="return", **self._overrides)
            for text, candidates in zip(batch, answers, strict=True):
                if isinstance(candidates, ItemError):
                    self._refused[text] = candidates.reason
                else:
                    self.by_text[text] = candidates

    async def place_tags(self, document: Document) -> Document:
        """Replace sentences with tags by their translations, or by their pieces if the tags cannot be placed."""
        if self.error(document):
            return document
        result: list[str | Segment] = []
        for part in document:
            if isinstance(part, str) or not part.spans:
                result.append(part)
                continue
            translation, key = self.by_text[part.text][0].text, (part.text, part.spans)
            if key not in self._projections:
                project = partial(project_spans, self._model.predictor, part.text, translation, part.spans)
                self._projections[key] = await self._model.worker.call(project)
            spans = self._projections[key]
            result += part.pieces if spans is None else [part.render(translation, spans)]
        return tuple(result)


def _assemble(document: Document, answers: Sequence[Sequence[Answer]], alternatives: int) -> TextTranslation:
    """Assemble the best translation and the alternatives, which differ in one segment; the best ones come first."""
    best = [candidates[0].text for candidates in answers]
    others = sorted(
        (candidates[0].score - other.score, index, other.text)
        for index, candidates in enumerate(answers)
        for other in candidates[1:]
        if other.text != best[index]
    )
    different = list(dict.fromkeys((index, other) for _, index, other in others))[:alternatives]
    return TextTranslation(
        assemble(document, best),
        [assemble(document, [*best[:index], other, *best[index + 1 :]]) for index, other in different],
    )


def can_project(translator: Any, text: str) -> bool:
    """Return whether a model can place the tags of a sentence: it has attention, and the sentence fits into it."""
    attends = translator.output_kind == "translation" and has_attention(translator)
    return attends and translator.validation_error(text) is None


def project_spans(translator: Any, source: str, target: str, spans: Sequence[Span]) -> list[Span] | None:
    """Return the spans of the translation that correspond to spans of the source; None if that is undecidable."""
    if source == target:
        return list(spans)
    if not target.strip():
        return None
    maps = look(translator, " ".join(source.split()), target).weights
    mean = max(maps, key=lambda head: (head.layer is None, head.head is None))  # over layers and heads where there is
    weights: list[list[float]] = maps[mean].tolist()  # (target words, source words)
    source_words = _word_spans(source)
    groups = [
        [index for index, (start, stop) in enumerate(source_words) if start < end and begin < stop]
        for begin, end in spans
    ]
    if len({index for group in groups for index in group}) < sum(map(len, groups)):
        return None  # two tags share a word
    aligned = aligned_words(groups, weights)
    if aligned is None:
        return None
    target_words = _word_spans(target)
    result = [(target_words[first][0], target_words[last][1]) for first, last in aligned]
    return [trim(target, new, source[begin:end]) for new, (begin, end) in zip(result, spans, strict=True)]


def aligned_words(groups: Sequence[Sequence[int]], weights: Sequence[Sequence[float]]) -> list[Span] | None:
    """Return the first and the last target word for each group of source words; None if too few words are left.

    The target word with the most attention on the group is chosen, and its neighbors that are aligned with the group
    in both directions. No word is in two groups.
    """
    forward = [max(range(len(row)), key=row.__getitem__) for row in weights]
    backward = [max(range(len(column)), key=column.__getitem__) for column in zip(*weights, strict=True)]
    free = set(range(len(weights)))
    result: list[Span] = []
    for group in groups:
        if not free:
            return None
        attention = {word: sum(weights[word][source] for source in group) for word in sorted(free)}
        first = last = max(attention, key=attention.__getitem__)
        aligned = {word for word in free & {backward[source] for source in group} if forward[word] in group}
        while first - 1 in aligned:
            first -= 1
        while last + 1 in aligned:
            last += 1
        free -= set(range(first, last + 1))
        result.append((first, last))
    return result


def _word_spans(text: str) -> list[Span]:
    return [word.span() for word in re.finditer(r"\S+", text)]


def trim(text: str, span: Span, source: str) -> Span:
    """Exclude punctuation at an end of a span where the source has none, such as a full stop."""
    begin, end = span
    while end > begin and source[-1].isalnum() and not text[end - 1].isalnum():
        end -= 1
    while end > begin and source[0].isalnum() and not text[begin].isalnum():
        begin += 1
    return (begin, end) if begin < end else span
