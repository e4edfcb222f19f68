"""Change what parts of a model compute while it runs, from outside: hooks on its modules, removed at the end.

A place is a stack ("encoder" or "decoder"), the number of a layer, and a part of it:

    "self", "cross"                                       the outputs of the heads, (B, H, T, K), before W_O
    "self_attention", "cross_attention", "feed_forward"   the output of a sublayer, (B, T, D), before the addition
    "layer"                                               the output of the layer, (B, T, D)
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

from torch import Tensor, nn

from ..core import Decoder, Encoder, MultiHeadAttention, Stack
from ..errors import RecordingError
from .recorder import refuse_compiled

ATTENTIONS = {"self": "self_attention", "cross": "cross_attention"}
SUBLAYERS = (*ATTENTIONS.values(), "feed_forward")

Edit = Callable[[Tensor, Tensor], Tensor | None]  # (input, output) → new output, None for no change


class Place(NamedTuple):
    """A part of a layer of a stack."""

    stack: str
    layer: int
    part: str


def module_of(model: Any) -> nn.Module:
    """Return a module, or the module of a predictor."""
    module = model if isinstance(model, nn.Module) else getattr(model, "module", None)
    if not isinstance(module, nn.Module):
        raise RecordingError(f"a {type(model).__name__} is neither a module nor what heedful.load returns")
    refuse_compiled(module)
    return module


def stacks_of(module: nn.Module) -> dict[str, Stack]:
    """Return the encoder and the decoder of a model, those that it has."""
    kinds = {"encoder": Encoder, "decoder": Decoder}
    stacks = {name: [part for part in module.modules() if isinstance(part, kind)] for name, kind in kinds.items()}
    if not any(stacks.values()) or any(len(parts) > 1 for parts in stacks.values()):
        raise RecordingError(f"a {type(module).__name__} needs an encoder, a decoder or both, of attention layers")
    return {name: parts[0] for name, parts in stacks.items() if parts}


def parts_of(layer: nn.Module) -> dict[str, nn.Module]:
    """Return the modules of a layer by the names of their parts."""
    wraps = {name: wrap for name in SUBLAYERS if isinstance(wrap := getattr(layer, name, None), nn.Module)}
    parts = {name: getattr(wrap, "sublayer", wrap) for name, wrap in wraps.items()}
    attentions = {name: parts[wrap] for name, wrap in ATTENTIONS.items() if wrap in parts}
    heads = {name: part.attention for name, part in attentions.items() if isinstance(part, MultiHeadAttention)}
    return {**parts, **heads, "layer": layer}


@contextmanager
def intervene(module: nn.Module, edits: Mapping[Place, Edit]) -> Iterator[None]:
    """Apply edits to the outputs of these places whenever the module runs inside the block."""
    with ExitStack() as hooks:
        for name, stack in stacks_of(module).items():
            current = {"layer": 0}
            for layer in dict.fromkeys(stack.layers):  # one module may be several layers
                hooks.callback(layer.register_forward_pre_hook(_note(current), with_kwargs=True).remove)
                for part, target in parts_of(layer).items():
                    if any((place.stack, place.part) == (name, part) for place in edits):
                        hook = _edit(edits, name, part, current)
                        hooks.callback(target.register_forward_hook(hook, with_kwargs=True).remove)
        yield


def _note(current: dict[str, int]) -> Callable[..., None]:
    def before(_: nn.Module, args: Any, kwargs: dict[str, Any]) -> None:
        current["layer"] = kwargs.get("layer") or 0

    return before


def _edit(edits: Mapping[Place, Edit], stack: str, part: str, current: dict[str, int]) -> Callable[..., Tensor | None]:
    def after(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Tensor) -> Tensor | None:
        edit = edits.get(Place(stack, current["layer"], part))
        return None if edit is None else edit(args[0] if args else kwargs["x"], output)

    return after


@contextmanager
def collect(module: nn.Module, places: list[Place]) -> Iterator[dict[Place, list[Tensor]]]:
    """Collect the outputs of these places whenever the module runs inside the block."""
    outputs: dict[Place, list[Tensor]] = {place: [] for place in places}
    with intervene(module, {place: _store(outputs[place]) for place in places}):
        yield outputs


def _store(outputs: list[Tensor]) -> Edit:
    def store(_: Tensor, output: Tensor) -> None:
        outputs.append(output)

    return store
