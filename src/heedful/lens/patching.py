"""Activation patching: which activations carry the difference between two inputs.

A clean and a corrupted input run. Then the corrupted input runs again with one activation of the clean run in its
place; how far that moves the answer's log-probability is the effect of the activation.

Shapes: L layers, P groups of positions, H heads, T tokens.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..errors import ConfigError, RecordingError, unknown
from .inputs import evaluated, log_probability, teacher_forced
from .intervention import Edit, Place, collect, intervene, parts_of, stacks_of

PARTS = ("layer", "self_attention", "cross_attention", "feed_forward", "self", "cross")
BATCH_TOKENS = 4096  # that run together: the logits of all groups at once may take gigabytes


@dataclass(frozen=True, eq=False)
class PatchEffects:
    """How the log-probability of the answer changes, and what it is in the two runs.

    `effects` are (L, P), by layer and group of positions; for heads (L, H).
    """

    effects: Tensor
    clean: float
    corrupted: float

    @property
    def restored(self) -> Tensor:
        """The effects as shares of the difference between the runs: 1 is the whole difference."""
        return self.effects / (self.clean - self.corrupted)


@torch.no_grad()
def patch(
    model: Any,
    clean: Any,
    corrupted: Any,
    answer: Any,
    *,
    against: int | Iterable[int] | None = None,
    part: str = "layer",
    stack: str | None = None,
    positions: Iterable[int | Iterable[int]] | None = None,
) -> PatchEffects:
    """Patch activations of the clean run into the corrupted run, and return how the answer's log-probability changes.

    Args:
        model: A module, or what `heedful.load` returns for a model that writes text.
        clean: As `logit_lens` takes it, without the answer. For a module, one row.
        corrupted: An input of as many tokens.
        answer: The text of the answer; for a module the id, or ids, that the last rows of the logits predict.
        against: For a module, another id or other ids. The log-probability is then the answer's minus theirs.
        part: "layer", the stream after each layer; "self_attention", "cross_attention" or "feed_forward", what a
            sublayer adds; "self" or "cross", each head at all positions.
        stack: "encoder" or "decoder"; the decoder where there is one.
        positions: Positions, or groups of them that are patched together, such as the tokens of a word; each position
            by itself by default.

    Raises:
        ConfigError: A part, a stack or a position that the model does not have.
        RecordingError: Inputs of different lengths.

    >>> heedful.lens.patch(translator, "고양이가 잤어요", "강아지가 잤어요", "The cat slept", stack="encoder").restored
    """
    module = evaluated(model)
    stacks = stacks_of(module)
    stack = list(stacks)[-1] if stack is None else stack
    if stack not in stacks:
        raise ConfigError(unknown("stack", stack, stacks))
    layers = [parts_of(layer) for layer in stacks[stack].layers]
    if part not in PARTS or any(part not in parts for parts in layers):
        raise ConfigError(unknown("part", part, [name for name in PARTS if name in layers[0]]))
    right, wrong = (teacher_forced(model, item, answer) for item in (clean, corrupted))
    if against is not None and model is not module:
        raise ConfigError("against takes token ids: pass the module and its tensors")
    other = [against] if isinstance(against, int) else list(against or ())

    def measure(inputs: Iterable[Tensor]) -> Tensor:
        logits = module(*inputs)
        logprob = log_probability(logits, right.answer)
        return logprob - log_probability(logits, other) if other else logprob

    shapes = [[tuple(each.shape) for each in forced.inputs] for forced in (right, wrong)]
    if shapes[0] != shapes[1] or shapes[0][0][0] != 1:
        raise RecordingError(f"patching needs two inputs of one row and equal length, not {shapes[0]} and {shapes[1]}")
    places = [Place(stack, layer, part) for layer in range(len(layers))]
    with collect(module, places) as outputs:
        before = float(measure(right.inputs))
    after = float(measure(wrong.inputs))
    sample = outputs[places[0]][0]
    if part in ("self", "cross") and positions is not None:
        raise ConfigError("heads are patched at all positions; leave out positions, or patch the attention")
    groups = _groups(sample.shape[1], positions)
    size = max(1, BATCH_TOKENS // max(each.shape[1] for each in wrong.inputs))
    batches = [groups[start : start + size] for start in range(0, len(groups), size)]
    effects = []
    for place in places:
        for batch in batches:
            with intervene(module, {place: _patched(outputs[place][0], batch)}):
                effects.append(measure(each.expand(len(batch), *each.shape[1:]) for each in wrong.inputs) - after)
    return PatchEffects(torch.cat(effects).view(len(places), -1), before, after)


def _groups(length: int, positions: Iterable[int | Iterable[int]] | None) -> list[list[int]]:
    """Return the indices of dimension 1 of an activation, which are heads or positions, that are patched together."""
    chosen = range(length) if positions is None else positions
    groups = [[each] if isinstance(each, int) else list(each) for each in chosen]
    for index in (index for group in groups for index in group):
        if not 0 <= index < length:
            raise ConfigError(f"there is no position {index}; this input has positions 0 to {length - 1}")
    return groups


def _patched(clean: Tensor, groups: list[list[int]]) -> Edit:
    """Replace in row i of the output the indices of group i by those of the clean run."""

    def replace(_: Tensor, output: Tensor) -> Tensor:
        output = output.clone()
        for row, group in enumerate(groups):
            output[row, group] = clean[0, group]
        return output

    return replace
