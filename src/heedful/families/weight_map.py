"""Maps a model's tensors to their names in a published checkpoint: one table, used in both directions.

A name may hold stars, each for one part of a dotted name: "encoder.layers.*.norm.*" is the weight and the
bias of every layer's norm. The published name repeats the stars in the same order.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import NamedTuple

import torch
from torch import Tensor

from .weights import NAMED, check_finite, first_names, refuse

DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64)


class Layout(NamedTuple):
    """How to convert a tensor to its published layout and back."""

    to_hf: Callable[[Tensor], Tensor]
    from_hf: Callable[[Tensor], Tensor]


PLAIN = Layout(lambda tensor: tensor, lambda tensor: tensor)
TRANSPOSED = Layout(lambda tensor: tensor.t(), lambda tensor: tensor.t())  # a vector does not change
ONE_ROW = Layout(lambda tensor: tensor[None], lambda tensor: tensor[0])


class Link(NamedTuple):
    """The concatenated rows of the local tensors equal those of the published ones.

    Several published tensors have the same number of rows. `absent` computes a missing tensor from all published
    ones and the local tensor, which gives its shape.
    """

    local: tuple[str, ...]
    hf: tuple[str, ...]
    layout: Layout = PLAIN
    absent: Callable[[Mapping[str, Tensor], Tensor], Tensor] | None = None


def link(
    local: str | tuple[str, ...],
    hf: str | tuple[str, ...],
    layout: Layout = PLAIN,
    absent: Callable[[Mapping[str, Tensor], Tensor], Tensor] | None = None,
) -> Link:
    """Return one line of a table; it has no effect for a model without a tensor of that name."""
    names = [(side,) if isinstance(side, str) else side for side in (local, hf)]
    return Link(names[0], names[1], layout, absent)


def layer_links(
    local: str,
    hf: str,
    *,
    self_attention: Sequence[str],
    feed_forward: Sequence[str],
    cross_attention: Sequence[str] = (),
) -> Iterator[Link]:
    """Yield the links of a layer, or with a star of all layers of a stack.

    Args:
        local: The name of the layer.
        hf: Its published name, to which the following names are relative.
        self_attention: The projections to queries, keys and values, the projection of the output, and the norm.
        feed_forward: The first matrix or, if it is gated, the gate and the first matrix; the last matrix; the norm.
        cross_attention: The same as of the self-attention.
    """
    for part, names in (("self_attention", self_attention), ("cross_attention", cross_attention)):
        if names:
            query, key, value, out, norm = (f"{hf}.{name}.*" for name in names)
            yield link(f"{local}.{part}.sublayer.q_proj.*", query)
            yield link(f"{local}.{part}.sublayer.kv_proj.*", (key, value))
            yield link(f"{local}.{part}.sublayer.out_proj.*", out)
            yield link(f"{local}.{part}.norm.*", norm)
    *up, down, norm = (f"{hf}.{name}.*" for name in feed_forward)
    yield link(f"{local}.feed_forward.sublayer.{'gate_up_proj' if up[1:] else 'up_proj'}.*", tuple(up))
    yield link(f"{local}.feed_forward.sublayer.down_proj.*", down)
    yield link(f"{local}.feed_forward.norm.*", norm)


def zeros(published: Mapping[str, Tensor], local: Tensor) -> Tensor:
    """Return a bias that was left out; for `Link.absent`."""
    return torch.zeros(local.shape)


class Formula(NamedTuple):
    """A tensor that checkpoints store and Heedful computes."""

    shape: tuple[int, ...]
    compute: Callable[[], Tensor]


@dataclass(frozen=True)
class WeightMap:
    """The table of a checkpoint.

    Attributes:
        links: The names of all tensors.
        computed: Stored tensors that Heedful computes; the stored values must be the same.
        ignored: Names of stored tensors without effect, each with the reason.
        prefix: A prefix that names have or lack, depending on the head.
        older: Endings of names in older checkpoints, and their present form.
    """

    links: tuple[Link, ...]
    computed: Mapping[str, Formula] = field(default_factory=dict)
    ignored: Mapping[str, str] = field(default_factory=dict)
    prefix: str = ""
    older: Mapping[str, str] = field(default_factory=dict)


def to_hf(state: Mapping[str, Tensor], names: WeightMap) -> dict[str, Tensor]:
    """Return a state_dict under its published names; shared tensors stand under all of theirs."""
    published = _renamed(state, names)
    like = next(iter(published.values()))
    return published | {name: formula.compute().to(like) for name, formula in names.computed.items()}


def from_hf(published: Mapping[str, Tensor], names: WeightMap, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return published tensors as a state_dict of one dtype on one device, not copied where the layout allows.

    Args:
        published: The published tensors by name.
        names: The table of the checkpoint.
        state: The model's state_dict with `keep_vars=True`, usually on the meta device. It gives the shapes and tells
            which names share a tensor.

    Raises:
        WeightsError: Some tensors do not fit; the message names the first few.
    """
    expected = _renamed(state, names)
    tensors = _normalized(published, names, expected)
    links = list(_links(names, state))
    owner = first_names(state)
    refuse([*_missing(tensors, links, owner), *_unfit(tensors, names, expected)])

    used = [tensor for name, tensor in tensors.items() if name in expected]
    dtype, device = reduce(torch.promote_types, {tensor.dtype for tensor in used}), used[0].device
    loaded: dict[str, Tensor] = {}
    source: dict[str, str] = {}
    problems = []
    for local, hf, layout, absent in links:
        if all(name in tensors for name in hf):
            parts = [layout.from_hf(tensors[name].detach()) for name in hf]
        elif absent is not None:
            parts = [absent(tensors, state[local[0]]).detach()]
        else:
            continue  # stored under another name
        rows = (parts[0] if len(parts) == 1 else torch.cat(parts)).to(device, dtype)
        for name, tensor in zip(local, rows.split([len(state[name]) for name in local]), strict=True):
            other = loaded.setdefault(owner[name], tensor.contiguous())
            other_name = source.setdefault(owner[name], hf[0])
            if other_name != hf[0] and not torch.equal(other, tensor):
                problems.append(f"{hf[0]} differs from {other_name}, but this model shares one tensor for both")
    refuse(problems)
    check_finite({source[name]: tensor for name, tensor in loaded.items()})
    return {name: loaded[owner[name]] for name in state}


def _missing(tensors: Mapping[str, Tensor], links: list[Link], owner: Mapping[str, str]) -> Iterator[str]:
    """Yield what is missing; a shared tensor is present if it has one of its names."""
    present = {owner[name] for local, hf, *_ in links if all(name in tensors for name in hf) for name in local}
    for local, hf, _, absent in links:
        if absent is None and not all(owner[name] in present for name in local):
            yield from (f"{name} is missing" for name in hf if name not in tensors)


def _unfit(tensors: Mapping[str, Tensor], names: WeightMap, expected: Mapping[str, Tensor]) -> Iterator[str]:
    """Yield the tensors that have no place, or the wrong shape, dtype or value."""
    for name, tensor in tensors.items():
        formula = names.computed.get(name)
        target = expected.get(name) if formula is None else formula
        if target is None:
            yield f"{name} has no place in this model"
        elif tuple(tensor.shape) != tuple(target.shape):
            yield f"{name} is {tuple(tensor.shape)} and should be {tuple(target.shape)}"
        elif tensor.dtype not in DTYPES:
            yield f"{name} holds {tensor.dtype}, not floating-point numbers"
        elif formula is not None and not torch.allclose(tensor.float(), formula.compute().to(tensor.device), atol=1e-2):
            yield f"{name} is not what its formula gives"  # the tolerance allows for half precision


def _renamed(state: Mapping[str, Tensor], names: WeightMap) -> dict[str, Tensor]:
    published = {}
    for local, hf, layout, _ in _links(names, state):
        rows = state[local[0]] if len(local) == 1 else torch.cat([state[name] for name in local])
        for name, part in zip(hf, rows.chunk(len(hf)), strict=True):
            published[name] = layout.to_hf(part).contiguous()
    return published


def _links(names: WeightMap, state: Iterable[str]) -> Iterator[Link]:
    """Yield the links of a model's tensors, with the stars filled in."""
    state_names = list(state)
    linked: set[str] = set()
    for local, hf, layout, absent in names.links:
        for name in state_names:
            stars = _match(local[0], name)
            if stars is not None:
                local_names, hf_names = (tuple(_fill(pattern, stars) for pattern in side) for side in (local, hf))
                linked.update(local_names)
                yield Link(local_names, hf_names, layout, absent)
    if unlinked := [name for name in state_names if name not in linked]:
        raise ValueError(f"the table gives no published name for {', '.join(unlinked[:NAMED])}")


def _match(pattern: str, name: str) -> tuple[str, ...] | None:
    match = re.fullmatch(re.escape(pattern).replace(r"\*", r"([^.]+)"), name)
    return None if match is None else match.groups()


def _fill(pattern: str, stars: tuple[str, ...]) -> str:
    return pattern.replace("*", "{}").format(*stars)


def _normalized(published: Mapping[str, Tensor], names: WeightMap, expected: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors under the names of the table: with or without the prefix, with present endings.

    Tensors that the table ignores are left out.
    """

    def ignored(name: str) -> bool:
        return any(_match(pattern, name) is not None for pattern in names.ignored)

    def normalized(name: str) -> str:
        new = name
        for old_ending, ending in names.older.items():
            new = new.removesuffix(old_ending) + ending if new.endswith(old_ending) else new
        for candidate in (new, names.prefix + new, new.removeprefix(names.prefix)):
            in_table = candidate in expected or candidate in names.computed or ignored(candidate)
            if in_table and (candidate == name or candidate not in published):
                return candidate
        return name

    tensors: dict[str, Tensor] = {}
    for name, tensor in published.items():
        new = normalized(name)
        tensors[name if new in tensors else new] = tensor  # a second tensor of the same name has no place
    return {name: tensor for name, tensor in tensors.items() if not ignored(name)}
