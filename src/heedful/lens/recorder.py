"""Record attention from outside: hooks recompute the weights of what runs; the model is not changed.

The fused kernel keeps running and its output is untouched; the weights are those of `attention_weights`
on the same queries and keys, before dropout.
"""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor, nn

from ..core import Decoder, Encoder, MultiHeadAttention, NoAttention, RecurrentDecoder, Stack
from ..errors import RecordingError

StackName = Literal["encoder", "decoder", "alone"]


@dataclass(frozen=True, eq=False)
class Look:
    """The attention weights of one call of an attention module, and the `heads` that they are of, in order."""

    path: str  # of the module, from the one that was recorded
    stack: StackName
    kind: Literal["self", "cross"]
    layer: int
    heads: tuple[int, ...]
    weights: Tensor = field(repr=False)  # (B, heads, Tq, Tk)


@dataclass
class Recording:
    """The attention weights of all calls, in order (`looks`), and those of the last call by layer.

    Generation with a cache calls the module once for each token; `looks` has all these calls.
    """

    looks: list[Look] = field(default_factory=list)
    over: bool = field(default=False, init=False, repr=False)  # a copy of the module made meanwhile keeps its hooks

    @property
    def encoder(self) -> dict[int, Tensor]:
        """Encoder self-attention by layer, each (B, H, S, S)."""
        return self._latest("encoder", "self")

    @property
    def decoder(self) -> dict[int, Tensor]:
        """Decoder self-attention by layer, each (B, H, T, T)."""
        return self._latest("decoder", "self")

    @property
    def cross(self) -> dict[int, Tensor]:
        """The decoder's attention over the memory by layer, each (B, H, T, S)."""
        return self._latest("decoder", "cross")

    def _latest(self, stack: str, kind: str) -> dict[int, Tensor]:
        return {look.layer: look.weights for look in self.looks if (look.stack, look.kind) == (stack, kind)}


@contextmanager
def record(
    module: nn.Module, layers: int | Iterable[int] | None = None, heads: int | Iterable[int] | None = None
) -> Iterator[Recording]:
    """Record the attention weights of what runs inside the block, for these layers and heads (all by default).

    The weights of padded queries are undefined, like their outputs.

    >>> with heedful.record(model, layers=[0, 5]) as recording:
    ...     model(source, target)
    >>> recording.cross[5]  # (B, H, T, S)
    """
    chosen_layers, chosen_heads = _chosen(layers, "layers"), _chosen(heads, "heads")
    refuse_compiled(module)
    _refuse_missing_layers(module, chosen_layers or ())
    recording = Recording()
    with ExitStack() as hooks:
        for path, part in module.named_modules():
            if isinstance(part, MultiHeadAttention | RecurrentDecoder):
                _refuse_missing_heads(path, part, chosen_heads or ())
                _hook(recording, path, part, _stack_of(module, path), chosen_layers, chosen_heads, hooks)
        yield recording
    recording.over = True
    if not recording.looks:
        raise RecordingError(
            "nothing with attention ran inside record(); call the module itself there, "
            "not a compiled or captured copy of it, and ask for layers it has"
        )


def _chosen(numbers: int | Iterable[int] | None, what: str) -> tuple[int, ...] | None:
    if numbers is None:
        return None
    chosen = tuple(numbers) if isinstance(numbers, Iterable) else (numbers,)
    if not chosen or not all(isinstance(number, int) and number >= 0 for number in chosen):
        raise RecordingError(f"{what} are numbers from 0, or None for all; got {numbers!r}")
    return chosen


def _refuse_missing_layers(module: nn.Module, layers: tuple[int, ...]) -> None:
    depths = [len(part.layers) for part in module.modules() if isinstance(part, Stack)]
    for layer in layers:
        if depths and layer >= max(depths):
            raise RecordingError(f"there is no layer {layer}; the deepest stack has layers 0 to {max(depths) - 1}")


def _refuse_missing_heads(path: str, part: nn.Module, heads: tuple[int, ...]) -> None:
    """Raise for heads that this attention does not have, and for a decoder without attention."""
    if isinstance(part, RecurrentDecoder) and isinstance(part.attention, NoAttention):
        raise RecordingError("this recurrent model has no attention, so there are no weights to record")
    n_heads = part.n_heads if isinstance(part, MultiHeadAttention) else 1
    for head in heads:
        if head >= n_heads:
            raise RecordingError(f"{path or 'this attention'} has heads 0 to {n_heads - 1}, not {head}")


def _stack_of(module: nn.Module, path: str) -> StackName:
    """Return the kind of stack that contains a module."""
    steps = path.split(".") if path else []
    around = [module.get_submodule(".".join(steps[:n])) for n in range(len(steps) + 1)]
    if any(isinstance(part, Encoder) for part in around):
        return "encoder"
    return "decoder" if any(isinstance(part, Decoder | RecurrentDecoder) for part in around) else "alone"


def refuse_compiled(module: nn.Module) -> None:
    """Raise RecordingError for a compiled model, whose parts run without their hooks."""
    for path, part in module.named_modules():
        if hasattr(part, "_orig_mod") or getattr(part, "_compiled_call_impl", None) is not None:
            raise RecordingError(
                f"{path or type(part).__name__} is compiled, and compiled models cannot be recorded; "
                "record the eager module (model._orig_mod, or a copy loaded without compiling)"
            )


def _hook(
    recording: Recording,
    path: str,
    part: nn.Module,
    stack: StackName,
    layers: tuple[int, ...] | None,
    heads: tuple[int, ...] | None,
    hooks: ExitStack,
) -> None:
    """Register two hooks: the outer one notes the layer and its input, the inner one has queries and keys."""
    seen: dict[str, Any] = {"kind": "cross", "layer": 0}
    rows: list[int] = []

    def outside(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        x = args[0] if args else kwargs["x"]
        memory = args[1] if len(args) > 1 else kwargs.get("memory")
        seen.update(kind="self" if memory is None else "cross", layer=kwargs.get("layer") or 0)
        rows[:] = [x.shape[0]]

    def inside(mixer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if recording.over or (layers is not None and seen["layer"] not in layers):
            return
        _refuse_unfaithful(mixer)
        with torch.no_grad():
            weights: Tensor = mixer.weights(*args, heads=heads, **kwargs)
        if rows:
            weights = _unfolded(weights, rows[0])
        recorded = heads if heads is not None else tuple(range(weights.shape[1]))
        recording.looks.append(Look(path, stack, heads=recorded, weights=weights, **seen))

    mixer = part
    if isinstance(part, MultiHeadAttention):
        hooks.callback(part.register_forward_pre_hook(outside, with_kwargs=True).remove)
        mixer = part.attention
    hooks.callback(mixer.register_forward_pre_hook(inside, with_kwargs=True).remove)


def _unfolded(weights: Tensor, rows: int) -> Tensor:
    """Undo the folding of beams into the query length: (B, H, n·T, S) → (B·n, H, T, S)."""
    beams = rows // max(1, weights.shape[0])
    return weights if beams == 1 else weights.unflatten(2, (beams, -1)).transpose(1, 2).flatten(0, 1)


def _refuse_unfaithful(mixer: nn.Module) -> None:
    if mixer.training:
        raise RecordingError("the model is in training mode, so dropout changes what runs; call model.eval() first")
    if torch.compiler.is_compiling() or (torch.cuda.is_available() and torch.cuda.is_current_stream_capturing()):
        raise RecordingError("attention cannot be recorded while a model is being compiled or captured; run it eagerly")
