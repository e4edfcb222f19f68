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
from ..class_scores import EntitySpan, entity_spans, marks_entities
from ..predictor import OutputKind, plain
from ..text_encoder import STRIDE, InspectedText, Text, WindowPredictor, checkpoint_labels

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
        self.require(len(set(self.labels)) == len(self.labels), "a tag occurs twice")


class Tagger(WindowPredictor[list[TaggedSpan]]):
    """Tags the words of texts, or of lists of words: what `heedful.load` returns for tagging.

    `predict` returns the entities of each text, in order; if the tags mark none (NOUN, VERB …), every word with its
    tag. An entity's probability is the mean of its words'.
    """

    task: ClassVar[str] = "tagging"
    output_kind: ClassVar[OutputKind] = "spans"
    head: ClassVar[str] = "token-classes"
    settings_class: ClassVar[type[Config]] = TaggerSettings

    def predict_valid(self, items: Sequence[Text | Sequence[str]]) -> list[list[TaggedSpan]]:
        spans_of = entity_spans if marks_entities(self.settings.labels) else word_spans
        return [[_tagged_span(tagged, span) for span in spans_of(tagged.tags)] for tagged in self.tag_words(items)]

    def tag_words(self, items: Sequence[Text | Sequence[str]]) -> list[WordTags]:
        """Return the words of each text with their tags and probabilities."""
        results, items = [], self._listed(items)
        for item, (windows, outputs) in zip(items, self.run_windows(items), strict=True):
            text, spans = self.split_words(item)
            shares = word_probabilities(spans, windows, outputs)
            labels = [self.settings.labels[tag] for tag in shares.argmax(axis=1)]
            tags = continue_within_tokens(labels, spans, windows)
            results.append(WordTags(text, tuple(spans), tags, shares.max(axis=1, initial=0.0).tolist()))
        return results

    def split_words(self, item: Any) -> tuple[str, Spans]:
        """Return an item as a text, and the characters of each of its words."""
        if isinstance(item, list | tuple):
            return join_tokens([plain(word) for word in item])
        text = plain(item)
        if self.settings.characters:
            return text, [(place, place + 1) for place in range(len(text))]
        return text, [match.span() for match in WORD.finditer(text)]

    def windows(self, item: Any) -> list[EncodedWindow]:
        """Return a text as the module reads it; DataError if it has no words."""
        text, spans = self.split_words(item)
        if not spans:
            raise DataError("it is empty, so there is no word to tag")
        stride = min(self.settings.stride, self.limit // 2)
        return self.tokenizer.encode_windows(text, max_tokens=self.limit, stride=stride)

    def run_inspected(self, item: Any) -> InspectedText:
        """Return the tagged spans with their probabilities; a page shows one window."""
        if len(self.windows(item)) > 1:
            raise DataError("the text is read in several windows, and a page shows one; give a shorter text")
        (spans,) = self.predict([item])
        probabilities = {f"{span['text']}: {span['label']}": span["probability"] for span in spans}
        return InspectedText(self.prepared(item), ", ".join(probabilities) or "–", probabilities or None)

    @classmethod
    def checkpoint_settings(cls, checkpoint: Imported, folder: Path, tokenizer: PublishedTokenizer) -> TaggerSettings:
        """Return the names of the tags."""
        return TaggerSettings(labels=checkpoint_labels(checkpoint))


def word_spans(tags: Sequence[str]) -> list[EntitySpan]:
    """Return every word as a span of its own, with its tag."""
    return [EntitySpan(tag, place, place + 1) for place, tag in enumerate(tags)]


def first_tokens(spans: Spans, window: EncodedWindow) -> list[int | None]:
    """Return (W,): the first token of a window that covers each word's first character; None if there is none."""
    covering: dict[int, int] = {}
    for place, span in enumerate(window.offsets):
        for character in range(*span) if span is not None else ():
            covering.setdefault(character, place)
    return [covering.get(start) for start, _ in spans]


def word_probabilities(
    spans: Spans, windows: Sequence[EncodedWindow], outputs: Sequence[Tensor]
) -> NDArray[np.float64]:
    """Return (W, C): the tags' probabilities at each word's first token.

    Of several windows, the one with the most context around the word counts. A word that no token covers, such as a
    space, has the probabilities of the word before it.
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
    """Continue the entity of the first word over the other words that the same token covers."""
    first = first_tokens(spans, windows[0])
    return [
        f"I-{tag[2:]}" if tag.startswith("B-") and place is not None and place == before else tag
        for tag, place, before in zip(tags, first, (None, *first[:-1]), strict=True)
    ]


def _tagged_span(tagged: WordTags, span: EntitySpan) -> TaggedSpan:
    label, first, stop = span
    start, end = tagged.spans[first][0], tagged.spans[stop - 1][1]
    probability = float(np.mean(tagged.probabilities[first:stop]))
    return TaggedSpan(text=tagged.text[start:end], label=label, start=start, end=end, probability=probability)
