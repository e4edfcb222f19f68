"""Text in, numbers out: what every model that reads has in common, whether it classifies, compares or fills gaps.

Shapes: B batch, T tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import torch
from torch import Tensor, nn

from ..config import FamilyConfig
from ..data.published_tokenizer import NAME, PublishedTokenizer
from ..errors import DataError
from .bundle import Bundle
from .predictor import Predictor
from .texts import plain, within

BATCH_TOKENS = 4096  # read at once, padding included
SEGMENTS = "token_type_ids"  # as transformers calls them

Text = str | tuple[str, str]  # two texts where a model compares them


class Row(NamedTuple):
    """A text in ids, and which of two texts each id belongs to, where the model wants to know."""

    ids: list[int]
    segments: list[int] | None


class Reader(Predictor):
    """An encoder over a tokeniser of any make; a task says what its output means."""

    what: ClassVar[str] = "text"
    batch_method: ClassVar[str] = "outputs"

    def __init__(self, config: FamilyConfig, module: nn.Module, settings: Any, tokenizer: PublishedTokenizer) -> None:
        super().__init__(config, module, settings)
        self.tokenizer = tokenizer

    def outputs(self, texts: Sequence[Text]) -> list[Tensor]:
        """What the module says of each text, on the CPU: (C,), (D,), or of each token that is `needed`, (…, V).

        Texts of similar length are read together; an answer does not depend on the others.
        """
        rows = [self._numbered(text, index) for index, text in enumerate(self._listed(texts))]
        found: dict[int, Tensor] = {}
        for batch in _batches([len(row.ids) for row in rows]):
            for index, output in zip(batch, self._read([rows[index] for index in batch]), strict=True):
                found[index] = self.needed(rows[index], output)
        return [found[index] for index in range(len(rows))]

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
        return Row(ids, segments[: len(ids)] if tells_apart(self.module, self.tokenizer) else None)

    def fitted(self, ids: list[int], *, alone: bool) -> list[int]:
        """No more ids than the model reads, of a text `alone` or of two: what is too long is refused."""
        return within(ids, self.module.encoder.positions.limit)

    def save(self, folder: str | Path) -> None:
        """Write the bundle."""
        names = self.tokenizer.save(Path(folder) / NAME)
        Bundle(self.task, self.config, self.settings.to_dict()).write(folder, self.module, beside=names)

    @classmethod
    def from_bundle(cls, folder: Path, bundle: Bundle) -> Self:
        """The one in a folder."""
        tokenizer = PublishedTokenizer.load(folder / NAME)
        return cls(bundle.model, bundle.module(folder), bundle.settings_as(cls.kind, folder), tokenizer)


def tells_apart(module: Any, tokenizer: PublishedTokenizer) -> bool:
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
