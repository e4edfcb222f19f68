"""Ablation: run a model without some of its heads, feed-forwards or layers, and see what is lost."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

import torch
from torch import Tensor

from ..core import Stack
from ..errors import ConfigError, unknown
from .alignment import Head
from .inputs import run
from .intervention import Edit, Place, collect, intervene, module_of, parts_of, stacks_of

Name = str | int | Head
KINDS = {"encoder": ("encoder", "self"), "decoder": ("decoder", "self"), "cross": ("decoder", "cross")}


@contextmanager
def ablate(
    model: Any,
    *,
    heads: Iterable[Name] | Literal["all"] = (),
    feed_forward: Iterable[Name] | Literal["all"] = (),
    layers: Iterable[Name] | Literal["all"] = (),
    mean: Iterable[Any] | None = None,
) -> Iterator[None]:
    """Run the model inside the block without these parts; afterwards it is as before, also after an error.

    Names are those of `Recording`: "encoder.2.5" is head 5 of layer 2 of the encoder, "decoder.2.5" one of the
    decoder's self-attention, "cross.2.5" one of its cross-attention; "cross.2" has all heads of a layer, "cross" all
    layers.

    Args:
        model: A module, or what `heedful.load` returns. Generation runs without the parts, too.
        heads: Heads whose output becomes zero, before the output projection; a `Head` of an alignment is one of the
            cross-attention.
        feed_forward: Layers whose feed-forward adds nothing: "encoder.0", "decoder", or 0 if there is one stack.
        layers: Layers that return their input, named in the same way.
        mean: Inputs, each as `logit_lens` takes it, without padding. Heads and feed-forwards then give their mean
            output over all tokens of these inputs instead of zero.

    Raises:
        ConfigError: A name that the model does not have, or `mean` with `layers`.

    >>> with heedful.ablate(model, heads=["cross.5"], feed_forward=["encoder.0"]):
    ...     model(source, target)
    """
    module = module_of(model)
    stacks = stacks_of(module)
    if mean is not None and layers:
        raise ConfigError("a layer without its sublayers returns its input and has no mean; leave out mean or layers")
    silent: dict[Place, set[int]] = {}
    for kind, layer, head in _selected("head", heads, _head_counts(stacks)):
        stack, part = KINDS[kind]
        silent.setdefault(Place(stack, layer, part), set()).add(head)
    depths = {name: [1] * len(stack.layers) for name, stack in stacks.items()}
    for part, names in (("feed_forward", feed_forward), ("layer", layers)):
        for stack, layer, _ in _selected(part.replace("_", "-"), names, depths):
            silent[Place(stack, layer, part)] = set()
    means = {} if mean is None else _means(model, mean, list(silent))
    with intervene(module, {place: _edit(place, sorted(off), means.get(place)) for place, off in silent.items()}):
        yield


def _head_counts(stacks: Mapping[str, Stack]) -> dict[str, list[int]]:
    """Return the number of heads of each layer, by the kind of attention."""
    counts = {}
    for kind, (name, part) in KINDS.items():
        layers = [parts_of(layer) for layer in stacks[name].layers] if name in stacks else []
        if any(part in parts for parts in layers):
            attention = {"self": "self_attention", "cross": "cross_attention"}[part]
            counts[kind] = [getattr(parts.get(attention), "n_heads", 0) for parts in layers]
    return counts


def _selected(
    what: str, names: Iterable[Name] | str, counts: Mapping[str, list[int]]
) -> Iterator[tuple[str, int, int]]:
    """Yield kind, layer and number of everything that the names select; `counts` says how many a layer has."""
    if isinstance(names, str) and names != "all":
        raise ConfigError(f"a list of names is needed, such as [{names!r}], or 'all'; got {names!r}")
    for name in counts if names == "all" else names:
        kind, *numbers = _steps(what, name, list(counts))
        if kind not in counts:
            raise ConfigError(unknown(what, name, counts))
        sizes = counts[kind]
        if len(numbers) > (2 if what == "head" else 1):
            raise ConfigError(f"{what} {name!r} has too many numbers; write {kind}.0")
        if numbers and numbers[0] >= len(sizes):
            raise ConfigError(f"there is no {what} {name}; {kind} has layers 0 to {len(sizes) - 1}")
        for layer in numbers[:1] or range(len(sizes)):
            if len(numbers) > 1 and numbers[1] >= sizes[layer]:
                raise ConfigError(f"there is no head {name}; {kind}.{layer} has heads 0 to {sizes[layer] - 1}")
            yield from ((kind, layer, number) for number in (numbers[1:] or range(sizes[layer])))


def _steps(what: str, name: Name, kinds: list[str]) -> tuple[Any, ...]:
    if isinstance(name, Head):
        return "cross", *(number for number in (name.layer, name.head) if number is not None)
    if isinstance(name, int):
        if len(kinds) != 1:
            raise ConfigError(f"which {what} is {name}? write {' or '.join(f'{kind}.{name}' for kind in kinds)}")
        return kinds[0], name
    kind, *numbers = str(name).split(".")
    if not all(number.isdecimal() for number in numbers):
        raise ConfigError(f"{what} {name!r} is not a name such as {kinds[0]}.0; numbers follow the points")
    return kind, *map(int, numbers)


def _means(model: Any, inputs: Iterable[Any], places: list[Place]) -> dict[Place, Tensor]:
    """Return the mean output of each place over all tokens: (H, 1, K) of heads, (D,) of a feed-forward."""
    with torch.no_grad(), collect(module_of(model), places) as outputs:
        for item in inputs:
            run(model, item)
    if not any(outputs.values()):
        raise ConfigError("mean needs at least one input; leave it out to ablate to zero")
    return {place: _mean(tensors) for place, tensors in outputs.items()}


def _mean(tensors: list[Tensor]) -> Tensor:
    rows = torch.cat([tensor.transpose(1, -2).flatten(0, 1) for tensor in tensors])  # (tokens, H, K), or (tokens, D)
    return rows.mean(dim=0)[:, None] if rows.dim() == 3 else rows.mean(dim=0)


def _edit(place: Place, heads: list[int], mean: Tensor | None) -> Edit:
    def replace(x: Tensor, output: Tensor) -> Tensor:
        if place.part == "layer":
            return x
        instead = torch.zeros_like(output) if mean is None else mean.expand_as(output)
        if not heads:
            return instead
        output = output.clone()
        output[:, heads] = instead[:, heads]
        return output

    return replace
