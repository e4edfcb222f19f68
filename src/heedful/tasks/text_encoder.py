"""The predictor of every task on a text encoder: tokenization, batching, inspection, loading.

A task subclasses `TextEncoderPredictor` and says what the head's output means. `masked/` and `classification/` are
examples. A `WindowPredictor` reads long texts in windows. `text_encoder_task` has the training side.

Shapes: B batch, T tokens.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

import torch
from torch import Tensor, nn

from ..config import FamilyConfig
from ..data.published_tokenizer import NAME, EncodedWindow, PublishedTokenizer
from ..errors import ConfigError, DataError
from ..families import Imported
from ..lens.tokens import token_text, tokens_of
from ..lens.trace import trace
from .bundle import Bundle, hf_tokenizer
from .inspection.document import EMPTY, Inspection, check_options, ranked_classes
from .predictor import Predictor, finite, in_chunks, plain, within

BATCH_TOKENS = 4096  # of one batch, padding included
SEGMENTS = "token_type_ids"  # as transformers calls them
CHUNK = 256  # items whose windows are run together
STRIDE = 32  # tokens that neighboring windows share
DEFAULT_LIMIT = 512  # tokens of a window, where neither settings nor model have a limit
SEPARATOR = " | "  # between two texts that are displayed as one

Text = str | tuple[str, str]  # two texts where a model compares them
Output = TypeVar("Output")


class EncodedText(NamedTuple):
    """The token ids of a text, and which of two texts each token is from."""

    ids: list[int]
    segments: list[int]


class InspectedText(NamedTuple):
    """The tokens that the model read, its answer as a person reads it, and probabilities to display, if it has any."""

    encoded: EncodedText
    answer: str | None = None
    probabilities: Mapping[str, float] | None = None


class TextEncoderPredictor(Predictor[Sequence[str], Output], Generic[Output]):
    """An encoder with a published tokenizer; a task says what its output means.

    A published model is loaded with the `head` of a task, and `checkpoint_settings` returns the task's settings.
    """

    head: ClassVar[str]
    batch_method: ClassVar[str | None] = "outputs"
    tokenizer: PublishedTokenizer

    def __init__(self, config: FamilyConfig, module: nn.Module, settings: Any, tokenizer: PublishedTokenizer) -> None:
        super().__init__(config, module, settings)
        self.tokenizer = tokenizer
        labels, n_classes = getattr(settings, "labels", ()), getattr(config, "n_classes", None)
        if labels and n_classes and len(labels) != n_classes:
            raise ConfigError(f"the model tells {n_classes} classes apart, but has {len(labels)} labels")

    @property
    def limit(self) -> int | None:
        """The largest number of tokens read at once, by the settings and the model; None if neither has a limit."""
        limits = (getattr(self.settings, "max_tokens", None), self.module.encoder.positions.limit)
        return min((limit for limit in limits if limit is not None), default=None)

    def outputs(self, texts: Sequence[Text]) -> list[Tensor]:
        """Return the module's output for each text, on the CPU: (C,), (D,), or what `select` keeps of (T, …).

        Texts of similar length share a batch; the result does not depend on the other texts.
        """
        return self.run_encoded([self._numbered(text, index) for index, text in enumerate(self._listed(texts))])

    def run_encoded(self, texts: Sequence[EncodedText]) -> list[Tensor]:
        """Return `outputs` of texts that are token ids already."""
        outputs: dict[int, Tensor] = {}
        for batch in _batches([len(text.ids) for text in texts]):
            for index, output in zip(batch, self._run_batch([texts[index] for index in batch]), strict=True):
                outputs[index] = self.select(texts[index], output)
        return [outputs[index] for index in range(len(texts))]

    def select(self, text: EncodedText, output: Tensor) -> Tensor:
        """Return the part of a text's output that the task needs; all of it by default."""
        return output

    @torch.inference_mode()
    def _run_batch(self, texts: Sequence[EncodedText]) -> list[Tensor]:
        device = next(self.module.parameters()).device
        lengths = [len(text.ids) for text in texts]
        ids, segments = torch.zeros(2, len(texts), max(lengths), dtype=torch.long)
        for row, text in enumerate(texts):
            ids[row, : lengths[row]] = torch.tensor(text.ids)
            segments[row, : lengths[row]] = torch.tensor(text.segments)
        keep = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
        segment_ids = segments.to(device) if uses_segments(self.module, self.tokenizer) else None
        out = self.module(ids.to(device), keep.to(device), segments=segment_ids).float().cpu()
        rows = (row[:length] if out.dim() == 3 else row for row, length in zip(out, lengths, strict=True))
        return [finite(row) for row in rows]

    def prepared(self, text: Any) -> EncodedText:
        """Return the token ids of a text or a pair, special tokens included."""
        first, second = text if isinstance(text, tuple) and len(text) == 2 else (text, None)
        ids, segments = self.tokenizer.encode_pair(plain(first), None if second is None else plain(second))
        if not ids:
            raise DataError("it is empty, and this model's tokenizer adds no tokens to a text")
        ids = self.fit_length(ids, is_pair=second is not None)
        return EncodedText(ids, segments[: len(ids)])

    def fit_length(self, ids: list[int], *, is_pair: bool) -> list[int]:
        """Return ids that the model can read; DataError if there are too many, unless a task truncates."""
        return within(ids, self.limit)

    def inspect(self, item: Any, inspection: Inspection, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the look document of one item: its tokens, the answer and what happened inside the model."""
        check_options(options, self)
        predictor = self.hookable_copy()
        with trace(predictor.module) as traced:
            encoded, answer, probabilities = predictor.run_inspected(item)
        if not any(text.strip() for text in (item if isinstance(item, tuple) else (item,))):
            raise DataError(EMPTY)
        return {
            "kind": "reading",
            "question": display_text(item),
            "answer": answer,
            "sequences": {"source": tokens_of(self.tokenizer, encoded.ids)},
            "classes": None if probabilities is None else ranked_classes(probabilities),
            **inspection.internals(self.module, traced, lambda index: token_text(self.tokenizer, [index])),
        }

    def run_inspected(self, item: Any) -> InspectedText:
        """Run one item through the module, once, as one row; a task adds the answer to display."""
        encoded = self.prepared(item)
        self.run_encoded([encoded])
        return InspectedText(encoded)

    @classmethod
    def from_checkpoint(cls, checkpoint: Imported, folder: Path) -> Self:
        """Return the predictor of a published model that has this task's head."""
        tokenizer = hf_tokenizer(folder, len(checkpoint.module.embedding.weight))
        settings = cls.checkpoint_settings(checkpoint, folder, tokenizer)
        return cls(checkpoint.config, checkpoint.module, settings, tokenizer)

    @classmethod
    def checkpoint_settings(cls, checkpoint: Imported, folder: Path, tokenizer: PublishedTokenizer) -> Any:
        """Return the task's settings as a published folder has them; the defaults unless a task reads more."""
        return cls.settings_class()

    @classmethod
    def from_bundle(cls, folder: Path, bundle: Bundle) -> Self:
        """Load the model from a folder."""
        tokenizer = PublishedTokenizer.load(folder / NAME)
        return cls(bundle.model, bundle.module(folder), bundle.settings_as(cls.settings_class, folder), tokenizer)


class WindowPredictor(TextEncoderPredictor[Output], Generic[Output]):
    """A predictor that reads an item in one or several windows."""

    @abstractmethod
    def windows(self, item: Any) -> list[EncodedWindow]:
        """Return an item as the module reads it; DataError for one that it cannot read."""

    @property
    def limit(self) -> int:
        """The largest number of tokens in a window."""
        return super().limit or DEFAULT_LIMIT

    def prepared(self, item: Any) -> EncodedText:
        """Return the first window of an item."""
        window = self.windows(item)[0]
        return EncodedText(window.ids, window.segments)

    def run_windows(self, items: object) -> Iterator[tuple[list[EncodedWindow], list[Tensor]]]:
        """Yield the windows of each item, and the module's output for each window."""
        for chunk in in_chunks(enumerate(self._listed(items)), CHUNK):
            windows: list[list[EncodedWindow]] = [self._numbered(item, index, self.windows) for index, item in chunk]
            texts = [EncodedText(window.ids, window.segments) for item in windows for window in item]
            outputs = iter(self.run_encoded(texts))
            yield from ((item, [next(outputs) for _ in item]) for item in windows)


def checkpoint_labels(checkpoint: Imported) -> tuple[str, ...]:
    """Return the class names of a published model with a class head; numbers if it has no names."""
    return checkpoint.labels or tuple(map(str, range(checkpoint.module.head.out_proj.out_features)))


def display_text(text: Text) -> str:
    """Return one text, or two joined, for a page."""
    return text if isinstance(text, str) else SEPARATOR.join(text)


def uses_segments(module: Any, tokenizer: PublishedTokenizer) -> bool:
    """Return True if a model reads segment ids; a segment table with one row means nothing (RoBERTa)."""
    table = module.embedding.segments
    return table is not None and len(table) > 1 and SEGMENTS in tokenizer.roles.get("model_input_names", [SEGMENTS])


def _batches(lengths: Sequence[int]) -> list[list[int]]:
    """Divide texts into batches, the longest first, so that running out of memory shows at once."""
    batches: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        if batches and (len(batches[-1]) + 1) * lengths[batches[-1][0]] <= BATCH_TOKENS:
            batches[-1].append(index)
        else:
            batches.append([index])
    return batches
