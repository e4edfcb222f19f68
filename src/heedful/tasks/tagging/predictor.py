"""`Tagger`: a text in, its entities (or its words with their tags) out.

Shapes: T tokens of a window, C tags, W words.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypedDict

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...config import Config
from ...data.published_tokenizer import EncodedWindow, PublishedTokenizer
from ...data.tagged import join_tokens
from ...errors import DataError
from ...families import Imported
from ..predictor import OutputKind, plain
from ..span_scores import entity_spans, marks_entities
from ..text_encoder import InspectedText, Row, Text, TextEncoderPredictor, uses_segments

STRIDE = 32  # tokens that neighboring windows share
WORD = re.compile(r"\S+")

Spans = Sequence[tuple[int, int]]  # where words stand in a text


class TaggedSpan(TypedDict):
    """A part of a text, the characters `start` to `end`, with its label."""

    text: str
    label: str
    start: int
    end: int
    probability: float


class WordTags(NamedTuple):
    """The words of a text, where they stand in it, and the tag of each with its probability."""

    text: str
    spans: tuple[tuple[int, int], ...]
    tags: list[str]
    probabilities: list[float]


@dataclass(frozen=True, kw_only=True)
class TaggerSettings(Config):
    """The tags in the order of the model's output.

    A text of more than `max_tokens` (None: than the model reads) is read in windows that share `stride` tokens.
    With `characters`, every character is a word, as in the corpus that it has learned from.
    """

    title: ClassVar[str] = "tagging"

    labels: tuple[str, ...]
    max_tokens: int | None = None
    stride: int = STRIDE
    characters: bool = False

    def check(self) -> None:
        self.require_positive("max_tokens")
        self.require(self.stride >= 0, f"stride must be 0 or more, not {self.stride}")
        self.require(len(set(self.labels)) == len(self.labels), "a tag stands there twice")


class Tagger(TextEncoderPredictor[list[TaggedSpan]]):
    """What `heedful.load` gives for a bundle of tagging; an item is a text, or a list of its words."""

    task: ClassVar[str] = "tagging"
    output_kind: ClassVar[OutputKind] = "spans"
    head: ClassVar[str] = "token-classes"
    settings_class: ClassVar[type[Config]] = TaggerSettings

    def predict(self, items: Sequence[Text | Sequence[str]]) -> list[list[TaggedSpan]]:
        """The entities of each text, in order; where the tags mark none (NOUN, VERB …), every word with its tag.

        An entity's probability is the mean of its words'.
        """
        entities = marks_entities(self.settings.labels)
        results = []
        for words in self.tag_words(items):
            spans = (
                [(label, start, stop) for label, start, stop in entity_spans(words.tags)]
                if entities
                else [(tag, place, place + 1) for place, tag in enumerate(words.tags)]
            )
            results.append([_tagged_span(words, *span) for span in spans])
        return results

    def tag_words(self, items: Sequence[Text | Sequence[str]]) -> list[WordTags]:
        """The words of each text with their tags and probabilities."""
        texts = [self._numbered_text(item, index) for index, item in enumerate(self._listed(items))]
        windows = [self.windows(text) for text, _ in texts]
        segments = uses_segments(self.module, self.tokenizer)
        rows = [Row(window.ids, window.segments if segments else None) for text in windows for window in text]
        outputs = iter(self.read_rows(rows))
        results = []
        for (text, spans), own in zip(texts, windows, strict=True):
            shares = word_probabilities(spans, own, [next(outputs) for _ in own])
            best = shares.argmax(axis=1)
            tags = continue_within_tokens([self.settings.labels[tag] for tag in best], spans, own)
            results.append(WordTags(text, tuple(spans), tags, shares.max(axis=1, initial=0.0).tolist()))
        return results

    def words(self, item: Any) -> tuple[str, Spans]:
        """An item as a text, and where its words stand."""
        if isinstance(item, list | tuple):
            return join_tokens([plain(word) for word in item])
        text = plain(item)
        if self.settings.characters:
            return text, [(place, place + 1) for place in range(len(text))]
        return text, [match.span() for match in WORD.finditer(text)]

    def windows(self, text: str) -> list[EncodedWindow]:
        """A text as the module reads it."""
        limits = (self.settings.max_tokens, self.module.encoder.positions.limit)
        longest = min((limit for limit in limits if limit is not None), default=512)
        return self.tokenizer.encode_windows(text, max_tokens=longest, stride=min(self.settings.stride, longest // 2))

    def prepared(self, item: Any) -> Row:
        """The first window of an item."""
        text, spans = self.words(item)
        if not spans:
            raise DataError("it is empty, so there is no word to tag")
        first, *_ = self.windows(text)
        return Row(first.ids, first.segments if uses_segments(self.module, self.tokenizer) else None)

    def run_inspected(self, item: Any) -> InspectedText:
        """The spans that are marked, each with its label and its probability; a page shows one window."""
        if len(self.windows(self.words(item)[0])) > 1:
            raise DataError("the text is read in several windows, and a page shows one; give a shorter text")
        (spans,) = self.predict([item])
        probabilities = {f"{span['text']}: {span['label']}": span["probability"] for span in spans}
        return InspectedText(self.prepared(item), ", ".join(probabilities) or "–", probabilities or None)

    @classmethod
    def checkpoint_settings(cls, checkpoint: Imported, folder: Path, tokenizer: PublishedTokenizer) -> TaggerSettings:
        """The names of the tags."""
        n_classes: int = checkpoint.module.head.out.out_features
        return TaggerSettings(labels=checkpoint.labels or tuple(map(str, range(n_classes))))

    def _numbered_text(self, item: Any, index: int) -> tuple[str, Spans]:
        self._numbered(item, index)
        return self.words(item)


def first_tokens(spans: Spans, window: EncodedWindow) -> list[int | None]:
    """(W,): for each word the first token of a window that covers its first character; None if none does."""
    covering: dict[int, int] = {}
    for place, span in enumerate(window.offsets):
        for character in range(*span) if span is not None else ():
            covering.setdefault(character, place)
    return [covering.get(start) for start, _ in spans]


def word_probabilities(
    spans: Spans, windows: Sequence[EncodedWindow], outputs: Sequence[Tensor]
) -> NDArray[np.float64]:
    """(W, C): the tags' probabilities at each word's first token, from the window that shows most around it.

    A word that no token covers, such as a space, has the probabilities of the word before it.
    """
    shares = np.zeros((len(spans), outputs[0].shape[-1]))
    around = np.full(len(spans), -1)
    for window, output in zip(windows, outputs, strict=True):
        probabilities = torch.softmax(output.double(), dim=-1).numpy()
        for word, place in enumerate(first_tokens(spans, window)):
            if place is not None and (distance := min(place, len(window.ids) - 1 - place)) > around[word]:
                shares[word], around[word] = probabilities[place], distance
    for word in range(1, len(spans)):
        if around[word] < 0:
            shares[word] = shares[word - 1]
    return shares


def continue_within_tokens(tags: Sequence[str], spans: Spans, windows: Sequence[EncodedWindow]) -> list[str]:
    """Where one token covers several words, the entity that begins with the first goes on with the others."""
    first = first_tokens(spans, windows[0])
    return [
        f"I-{tag[2:]}" if tag.startswith("B-") and place is not None and place == before else tag
        for tag, place, before in zip(tags, first, (None, *first[:-1]), strict=True)
    ]


def _tagged_span(words: WordTags, label: str, first: int, stop: int) -> TaggedSpan:
    start, end = words.spans[first][0], words.spans[stop - 1][1]
    probability = float(np.mean(words.probabilities[first:stop]))
    return TaggedSpan(text=words.text[start:end], label=label, start=start, end=end, probability=probability)
