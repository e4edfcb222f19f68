"""What every model that encodes texts shares, whether it classifies, compares or fills gaps; and its pretrained base.

Shapes: B batch, T tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

import torch
from torch import Tensor, nn

from ..config import FamilyConfig
from ..data.published_tokenizer import NAME, PublishedTokenizer
from ..errors import ConfigError, DataError
from ..families.checkpoint import read_checkpoint
from ..families.reader import ReaderConfig
from ..families.weights import put_weights, weights_of
from .bundle import Bundle, is_bundle
from .predictor import Predictor, plain, within

BATCH_TOKENS = 4096  # read at once, padding included
SEGMENTS = "token_type_ids"  # as transformers calls them
HEAD = "head."  # before the names of a head's weights

Text = str | tuple[str, str]  # two texts where a model compares them
Output = TypeVar("Output")


class Row(NamedTuple):
    """A text in ids, and which of two texts each id belongs to, where the model wants to know."""

    ids: list[int]
    segments: list[int] | None


class TextEncoderPredictor(Predictor[Text, Output], Generic[Output]):
    """An encoder over a tokenizer of any make; a task says what its output means."""

    batch_method: ClassVar[str | None] = "outputs"
    tokenizer: PublishedTokenizer

    def __init__(self, config: FamilyConfig, module: nn.Module, settings: Any, tokenizer: PublishedTokenizer) -> None:
        super().__init__(config, module, settings)
        self.tokenizer = tokenizer

    def outputs(self, texts: Sequence[Text]) -> list[Tensor]:
        """What the module says of each text, on the CPU: (C,), (D,), or of each token that is `needed`, (…, V).

        Texts of similar length are read together; an answer does not depend on the others.
        """
        rows = [self._numbered(text, index) for index, text in enumerate(self._listed(texts))]
        outputs: dict[int, Tensor] = {}
        for batch in _batches([len(row.ids) for row in rows]):
            for index, output in zip(batch, self._read([rows[index] for index in batch]), strict=True):
                outputs[index] = self.needed(rows[index], output)
        return [outputs[index] for index in range(len(rows))]

    def needed(self, row: Row, output: Tensor) -> Tensor:
        """What is kept of a text's output: all of it, unless a task needs less."""
        return output

    @torch.inference_mode()
    def _read(self, rows: Sequence[Row]) -> list[Tensor]:
        device = next(self.module.parameters()).device
        lengths = [len(row.ids) for row in rows]
        ids, segments = torch.zeros(2, len(rows), max(lengths), dtype=torch.long)
        for place, row in enumerate(rows):
            ids[place, : lengths[place]] = torch.tensor(row.ids)
            if row.segments is not None:
                segments[place, : lengths[place]] = torch.tensor(row.segments)
        keep = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
        known = segments.to(device) if rows[0].segments is not None else None
        out = self.module(ids.to(device), keep.to(device), segments=known).float().cpu()
        return [row[:length] if out.dim() == 3 else row for row, length in zip(out, lengths, strict=True)]

    def prepared(self, text: Any) -> Row:
        """In ids, with what belongs around it."""
        first, second = text if isinstance(text, tuple) and len(text) == 2 else (text, None)
        one, other = plain(first), None if second is None else plain(second)
        ids, segments = self.tokenizer.encode_pair(one, other)
        if not ids:
            raise DataError("it is empty, and this model's tokeniser puts nothing around a text")
        ids = self.fitted(ids, alone=other is None)
        return Row(ids, segments[: len(ids)] if uses_segments(self.module, self.tokenizer) else None)

    def fitted(self, ids: list[int], *, alone: bool) -> list[int]:
        """No more ids than the model reads, of a text `alone` or of two: what is too long is refused."""
        return within(ids, self.module.encoder.positions.limit)

    def save_files(self, folder: Path) -> Sequence[str]:
        """The tokenizer."""
        return self.tokenizer.save(folder / NAME)

    @classmethod
    def from_bundle(cls, folder: Path, bundle: Bundle) -> Self:
        """The model in a folder."""
        tokenizer = PublishedTokenizer.load(folder / NAME)
        return cls(bundle.model, bundle.module(folder), bundle.settings_as(cls.settings_class, folder), tokenizer)


def uses_segments(module: Any, tokenizer: PublishedTokenizer) -> bool:
    """Whether a model is told which of two texts a token is of; a table with one row says nothing (RoBERTa)."""
    table = module.embedding.segments
    return table is not None and len(table) > 1 and SEGMENTS in tokenizer.roles.get("model_input_names", [SEGMENTS])


def _batches(lengths: Sequence[int]) -> list[list[int]]:
    """Which texts are read together: the longest first, so that what does not fit is known at once."""
    batches: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        if batches and (len(batches[-1]) + 1) * lengths[batches[-1][0]] <= BATCH_TOKENS:
            batches[-1].append(index)
        else:
            batches.append([index])
    return batches


@dataclass(frozen=True, eq=False)
class PretrainedEncoder:
    """A model to start from: a bundle of masked words, of classes or of embeddings, or a published one."""

    config: ReaderConfig
    module: nn.Module
    tokenizer: PublishedTokenizer

    @classmethod
    def read(cls, folder: str | Path) -> PretrainedEncoder:
        """A bundle's folder, or one in Hugging Face's layout."""
        folder = Path(folder)
        if is_bundle(folder):
            bundle = Bundle.read(folder)
            config: Any = bundle.model
            module = bundle.module(folder) if isinstance(config, ReaderConfig) else nn.Identity()
        else:
            checkpoint = read_checkpoint(folder)
            config, module = checkpoint.config, checkpoint.module
        if not isinstance(config, ReaderConfig):
            raise ConfigError(f"{folder} is of the family {config.family}, which does not read as BERT and its kin do")
        if not (folder / NAME).is_file():
            raise DataError(f"{folder} has no {NAME}; the weights mean nothing without their tokeniser")
        tokenizer = PublishedTokenizer.load(folder / NAME)
        if tokenizer.largest >= config.vocab_size:
            sizes = f"has ids up to {tokenizer.largest:,}, but the model has {config.vocab_size:,} tokens"
            raise DataError(f"{folder / NAME} {sizes}; they are not of one model")
        return cls(config, module, tokenizer)

    def weights(self, head: str) -> dict[str, Tensor]:
        """All of them where the head is the same and has no classes, otherwise those below it."""
        whole = head == self.config.head != "classes"
        return {name: tensor for name, tensor in weights_of(self.module).items() if whole or not name.startswith(HEAD)}


def load_start_weights(module: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Put weights into a module: all below its head and no others, every shape right, or nothing is changed.

    Of the head, what is not given stays as it is.
    """
    head = {name: tensor for name, tensor in weights_of(module).items() if name.startswith(HEAD)}
    put_weights(module, {**head, **weights})
