"""Where a model's tensors stand in a published checkpoint: one table of names, read in both directions.

A name may hold stars, each for one part of a dotted name: "encoder.layers.*.norm.*" is the weight and the
bias of every layer's norm, and its stars are those of its published name, in order.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import NamedTuple

import torch
from torch import Tensor

from .weights import NAMED, refuse

DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64)


class Layout(NamedTuple):
    """How a tensor of ours is written there, and read back."""

    to_hf: Callable[[Tensor], Tensor]
    from_hf: Callable[[Tensor], Tensor]


PLAIN = Layout(lambda tensor: tensor, lambda tensor: tensor)
TRANSPOSED = Layout(lambda tensor: tensor.t(), lambda tensor: tensor.t())  # a vector stays as it is
ONE_ROW = Layout(lambda tensor: tensor[None], lambda tensor: tensor[0])


class Link(NamedTuple):
    """The rows of ours, one below the other, are the rows of theirs, one below the other.

    Several of theirs have equally many. `absent` makes what is not there from all that is, given ours for its shape.
    """

    ours: tuple[str, ...]
    theirs: tuple[str, ...]
    layout: Layout = PLAIN
    absent: Callable[[Mapping[str, Tensor], Tensor], Tensor] | None = None


def link(
    ours: str | tuple[str, ...],
    theirs: str | tuple[str, ...],
    layout: Layout = PLAIN,
    absent: Callable[[Mapping[str, Tensor], Tensor], Tensor] | None = None,
) -> Link:
    """One line of a table. Where a model has no tensor of that name, the line says nothing."""
    return Link(_several(ours), _several(theirs), layout, absent)


def zeros(published: Mapping[str, Tensor], ours: Tensor) -> Tensor:
    """For `absent`: a bias that was left out."""
    return torch.zeros(ours.shape)


class Formula(NamedTuple):
    """A tensor that is stored there and computed here."""

    shape: tuple[int, ...]
    compute: Callable[[], Tensor]


@dataclass(frozen=True)
class WeightMap:
    """A checkpoint's table.

    What is `computed` must say the same there. `ignored` names tensors that say nothing here, each with the reason.
    The `prefix` is what a checkpoint may have or leave out, depending on its head. `older` are endings of names as
    older checkpoints have them, and what they are now.
    """

    links: tuple[Link, ...]
    computed: Mapping[str, Formula] = field(default_factory=dict)
    ignored: Mapping[str, str] = field(default_factory=dict)
    prefix: str = ""
    older: Mapping[str, str] = field(default_factory=dict)


def to_hf(state: Mapping[str, Tensor], names: WeightMap) -> dict[str, Tensor]:
    """A state_dict under its published names; what is shared stands under all of them."""
    published = _renamed(state, names)
    like = next(iter(published.values()))
    return published | {name: formula.compute().to(like) for name, formula in names.computed.items()}


def from_hf(published: Mapping[str, Tensor], names: WeightMap, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The state_dict that published tensors make: of one dtype, on one device, not copied where the layout allows.

    `state` is the model's own, with its variables kept: on the meta device it says every shape, and what is shared,
    before anything is allocated. All that does not fit is said at once.
    """
    wanted = _renamed(state, names)
    given = _as_named_here(published, names, wanted)
    links = list(_links(names, state))
    first: dict[int, str] = {}
    place = {name: first.setdefault(id(tensor), name) for name, tensor in state.items()}  # shared tensors have one
    refuse([*_missing(given, links, place), *_unfit(given, names, wanted)])

    used = [tensor for name, tensor in given.items() if name in wanted]
    dtype, device = reduce(torch.promote_types, {tensor.dtype for tensor in used}), used[0].device
    carried: dict[str, Tensor] = {}
    source: dict[str, str] = {}
    problems = []
    for ours, theirs, layout, absent in links:
        if all(name in given for name in theirs):
            parts = [layout.from_hf(given[name].detach()) for name in theirs]
        elif absent is not None:
            parts = [absent(given, state[ours[0]]).detach()]
        else:
            continue  # said under another name
        rows = (parts[0] if len(parts) == 1 else torch.cat(parts)).to(device, dtype)
        for name, tensor in zip(ours, rows.split([len(state[name]) for name in ours]), strict=True):
            known = carried.setdefault(place[name], tensor.contiguous())
            before = source.setdefault(place[name], theirs[0])
            if before != theirs[0] and not torch.equal(known, tensor):
                problems.append(f"{theirs[0]} differs from {before}, with which it is one here")
    refuse(problems)
    return {name: carried[place[name]] for name in state}


def _missing(given: Mapping[str, Tensor], links: list[Link], place: Mapping[str, str]) -> Iterator[str]:
    """A shared tensor is there when it is there under one of its names."""
    served = {place[name] for ours, theirs, *_ in links if all(name in given for name in theirs) for name in ours}
    for ours, theirs, _, absent in links:
        if absent is None and not all(place[name] in served for name in ours):
            yield from (f"{name} is missing" for name in theirs if name not in given)


def _unfit(given: Mapping[str, Tensor], names: WeightMap, wanted: Mapping[str, Tensor]) -> Iterator[str]:
    """Tensors that have no place, or another shape or dtype than theirs."""
    for name, tensor in given.items():
        formula = names.computed.get(name)
        fits = wanted.get(name) if formula is None else formula
        if fits is None:
            yield f"{name} has no place in this model"
        elif tuple(tensor.shape) != tuple(fits.shape):
            yield f"{name} is {tuple(tensor.shape)} and should be {tuple(fits.shape)}"
        elif tensor.dtype not in DTYPES:
            yield f"{name} holds {tensor.dtype}, not floating-point numbers"
        elif formula is not None and not torch.allclose(tensor.float(), formula.compute().to(tensor.device), atol=1e-2):
            yield f"{name} is not what its formula gives"  # half precision rounds, but not that much


def _several(names: str | tuple[str, ...]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else names


def _renamed(state: Mapping[str, Tensor], names: WeightMap) -> dict[str, Tensor]:
    published = {}
    for ours, theirs, layout, _ in _links(names, state):
        rows = state[ours[0]] if len(ours) == 1 else torch.cat([state[name] for name in ours])
        for name, part in zip(theirs, rows.chunk(len(theirs)), strict=True):
            published[name] = layout.to_hf(part).contiguous()
    return published


def _links(names: WeightMap, state: Iterable[str]) -> Iterator[Link]:
    """The table with its stars filled in, for the tensors that there are."""
    known = list(state)
    named: set[str] = set()
    for ours, theirs, layout, absent in names.links:
        for name in known:
            found = _match(ours[0], name)
            if found is not None:
                filled = tuple(_fill(pattern, found) for pattern in ours)
                named.update(filled)
                yield Link(filled, tuple(_fill(pattern, found) for pattern in theirs), layout, absent)
    if forgotten := [name for name in known if name not in named]:
        raise ValueError(f"the table gives no published name for {', '.join(forgotten[:NAMED])}")


def _match(pattern: str, name: str) -> tuple[str, ...] | None:
    found = re.fullmatch(re.escape(pattern).replace(r"\*", r"([^.]+)"), name)
    return None if found is None else found.groups()


def _fill(pattern: str, parts: tuple[str, ...]) -> str:
    return pattern.replace("*", "{}").format(*parts)


def _as_named_here(
    published: Mapping[str, Tensor], names: WeightMap, wanted: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """The tensors under the names of the table, without those ignored.

    A checkpoint may have or lack the prefix, and have older endings.
    """

    def ignored(name: str) -> bool:
        return any(_match(pattern, name) is not None for pattern in names.ignored)

    def renamed(name: str) -> str:
        new = name
        for old, now in names.older.items():
            new = new.removesuffix(old) + now if new.endswith(old) else new
        for form in (new, names.prefix + new, new.removeprefix(names.prefix)):
            known = form in wanted or form in names.computed or ignored(form)
            if known and (form == name or form not in published):
                return form
        return name

    given: dict[str, Tensor] = {}
    for name, tensor in published.items():
        new = renamed(name)
        given[name if new in given else new] = tensor  # what comes twice has no place the second time
    return {name: tensor for name, tensor in given.items() if not ignored(name)}
