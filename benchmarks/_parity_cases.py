"""What both sides of the parity ledger are given, and how each is called.

B batch, T tokens, V vocabulary or classes. Answers are at real places only, as (positions, V).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

# The pairs are made beside the tests that also use them.
sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from published_pairs import Pair

PLAIN, RIGHT, LEFT = "no padding", "padded right", "padded left"
EXTRA = 2  # places of padding even in the longest row
BATCHES = (1, 3)  # of images and series, which have one size
MOST_STEPS = 32  # tokens that are read one by one; those before them are read at once
ANSWERS = ("logits", "prediction_outputs", "pooler_output", "last_hidden_state")  # transformers' names for them


class Side(NamedTuple):
    """What an encoder or a decoder reads: tokens (B, T), images or series; `real` (B, T) is None without padding."""

    inputs: Tensor
    real: Tensor | None = None

    def at_real(self, out: Tensor) -> Tensor:
        """(B, T, V) → (positions, V), where there is an answer for every token."""
        if self.inputs.is_floating_point() or out.dim() == 2:
            return out
        return out.flatten(0, 1) if self.real is None else out[self.real]

    def unpadded(self, row: int) -> Side:
        """Return one row as a batch, without its padding."""
        return Side(self.inputs[row][None] if self.real is None else self.inputs[row, self.real[row]][None])


class Case(NamedTuple):
    """One batch. A source is there where a model has an encoder and a decoder."""

    size: str
    padding: str
    target: Side
    source: Side | None = None

    def rows(self) -> Iterator[Case]:
        """Yield a batch without padding for every row."""
        for row in range(len(self.target.inputs)):
            source = None if self.source is None else self.source.unpadded(row)
            yield Case(self.size, PLAIN, self.target.unpadded(row), source)


class Answer(NamedTuple):
    """The output of a model, and whether it is logits, from which one of many is chosen."""

    values: Tensor
    chosen: bool


def cases(both: Pair, lengths: Sequence[int]) -> Iterator[Case]:
    """Tokens of all lengths with padding of all kinds; of images and series, batches."""
    if both.inputs(1, 1).is_floating_point():
        yield from (Case(f"batch of {rows}", PLAIN, Side(both.inputs(rows, 1))) for rows in BATCHES)
        return
    for length in lengths:
        for padding in (PLAIN, RIGHT, LEFT):
            target = _side(both, padding, [length, (length + 1) // 2, 1])
            source = _side(both, padding, [2, (length + 1) // 2, length + 1])
            yield Case(str(length), padding, target, source if both.reference.config.is_encoder_decoder else None)


def _side(both: Pair, padding: str, lengths: Sequence[int]) -> Side:
    width = max(lengths) + (0 if padding == PLAIN else EXTRA)
    tokens = both.inputs(len(lengths), width)
    if (pad := both.reference.config.pad_token_id) is not None:  # some models of transformers do not count it
        tokens = tokens.masked_fill(tokens == pad, 0 if pad else 1)
    if padding == PLAIN:
        return Side(tokens)
    places, real = torch.arange(width), torch.tensor(lengths)[:, None]
    return Side(tokens, places < real if padding == RIGHT else places >= width - real)


@torch.no_grad()
def reference_output(reference: Any, case: Case) -> Answer:
    """Return the output of a model of transformers.

    With padding on the left, decoder-only models are passed their positions, as `generate` does. Other models read one
    row at a time: some take no positions, and some pool the first position even if it is padding.
    """
    if case.padding != LEFT or _is_decoder(reference):
        return _output(reference, case)
    rows = [_output(reference, row) for row in case.rows()]
    return Answer(torch.cat([row.values for row in rows]), rows[0].chosen)


def _is_decoder(reference: Any) -> bool:
    return reference.can_generate() and not reference.config.is_encoder_decoder


def _output(reference: Any, case: Case) -> Answer:
    inputs, real = _as(reference, case.target.inputs), case.target.real
    mask = None if real is None else real.long()
    if case.source is not None:
        source_mask = None if case.source.real is None else case.source.real.long()
        masks = {"attention_mask": source_mask, "decoder_attention_mask": mask}
        out = reference(case.source.inputs, decoder_input_ids=inputs, **masks)
    elif mask is None:
        out = reference(inputs)
    elif case.padding == LEFT:
        out = reference(inputs, attention_mask=mask, position_ids=(mask.cumsum(dim=1) - 1).clamp(min=0))
    else:
        out = reference(inputs, attention_mask=mask)
    field = next(name for name in ANSWERS if getattr(out, name, None) is not None)
    return Answer(case.target.at_real(getattr(out, field)), field == "logits")


@torch.no_grad()
def at_once(module: Any, case: Case) -> Tensor:
    """Return the output of a model of Heedful."""
    inputs, real = _as(module, case.target.inputs), case.target.real
    if case.source is None:
        return case.target.at_real(module(inputs, real))
    return case.target.at_real(module(case.source.inputs, inputs, case.source.real, real))


@torch.no_grad()
def cached(module: Any, case: Case) -> Tensor:
    """The same with a cache: most tokens at once, the last ones each alone."""
    decode = module
    if case.source is not None:
        memory = module.encode(case.source.inputs, case.source.real)
        decode = partial(module.decode, memory=memory, memory_keep=case.source.real)
    tokens, real = case.target
    length, cache, steps = tokens.shape[1], module.new_cache(), []
    for start, end in pairwise([0, *range(max(1, length // 2, length - MOST_STEPS), length + 1)]):
        seen = None if real is None else real[:, :end]
        steps.append(decode(tokens[:, start:end], keep=seen, cache=cache))
    return case.target.at_real(torch.cat(steps, dim=1))


def _as(model: Any, inputs: Tensor) -> Tensor:
    """Images and series in the model's own dtype."""
    return inputs.to(next(model.parameters()).dtype) if inputs.is_floating_point() else inputs
