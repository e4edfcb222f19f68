"""Faster versions of the core's modules for small models on a GPU.

For many short rows, torch's attention, its elementwise operations, and its sums for the gradients of biases, norms and
token tables take longer than the matrix products. torch.compile fuses some of them; these modules serve recorded steps.
The kernel after a product adds its bias and sums that bias's gradient; the gradient of a residual connection is added
in a kernel that runs anyway.

Shapes: B batch, T tokens, H heads, G key/value heads, K head width, D d_model.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from ... import core
from ...core.heads import OutputEmbedding
from ...core.mask_preparation import PreparedMask
from ...core.masks import Grid
from ...families.description import activation_name
from ..description import Reason, only, within
from ..registry import IMPLEMENTATIONS, ModuleImplementation, apply, machine_check, register, use_backend
from . import HAVE_TRITON, SIDES, available, block_of
from .deferred import AddressTables, BackwardPass
from .linear import Map, rows_of

if TYPE_CHECKING:
    from .dropout import Dropping

WIDEST_HEAD = 128  # numbers in a head that attention's kernel holds
WIDEST = 4096  # features of a norm or of a token, so that one program can hold them
LARGEST = 2**26  # numbers in a token table, whose gradient is added up in a float32 copy
KNOWN_ACTIVATIONS = "relu", "gelu", "gelu_tanh", "silu"  # those that have a kernel


class TritonModule(ModuleImplementation):
    """A mixin for module classes that run by Triton kernels."""

    shared: BackwardPass

    def finish(self, context: Any) -> None:
        self.shared = context

    def dropping(self, dropout: nn.Dropout) -> Dropping:
        """Return what a kernel must drop, with a number that is unique in the pass."""
        from .dropout import Dropping

        return Dropping(dropout.p if dropout.training else 0.0, *self.shared.draw())


@machine_check("triton")
def _machine(module: nn.Module) -> Iterator[str]:
    if not HAVE_TRITON:
        yield "Triton is not installed"
    if any(not tensor.is_cuda for tensor in module.parameters()):
        yield "its kernels need a CUDA device, and the model is not on one"


def fused_on_gpu(
    module: nn.Module, device: torch.device, tables: AddressTables | None = None
) -> tuple[Any, BackwardPass]:
    """Return a copy with these parts, and the state they share, whose `begin` must be called before every pass."""
    shared = BackwardPass(device, tables or AddressTables(device))
    return use_backend(module, "triton", shared), shared


def is_fused(x: Tensor) -> bool:
    """Return True in eager passes with gradients, for tensors that kernels support."""
    return torch.is_grad_enabled() and not torch.compiler.is_compiling() and available(x)


@register("triton", nn.Linear)
class FusedLinear(TritonModule, nn.Linear):
    """A linear map that defers the gradients of its bias and of a small weight to the end of a pass."""

    @classmethod
    def refusals(cls, part: Any) -> Iterator[Reason]:
        yield from super().refusals(part)
        if part.bias is None:
            yield Reason("", "it has no bias")

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002  # torch's name
        if not is_fused(input) or input.dtype != self.weight.dtype:
            return super().forward(input)
        return Map.of(self)(self.shared, input)[0]


@register("triton", core.LayerNorm)
class FusedLayerNorm(TritonModule, core.LayerNorm):
    """A layer norm with one kernel for each direction."""

    @classmethod
    def refusals(cls, part: Any) -> Iterator[Reason]:
        yield from super().refusals(part)
        if part.bias is None:
            yield Reason("", "it has no bias")
        if part.weight.shape[0] > WIDEST:
            yield Reason("", f"it is wider than {WIDEST}")

    def forward(self, x: Tensor) -> Tensor:
        return self.with_residual(x)[0] if is_fused(x) else super().forward(x)

    def with_residual(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the norm, and x for a residual connection, whose gradient the kernel adds."""
        from .residual import Normed

        y, residual = apply(Normed, self.shared, rows_of(x), self.weight, self.bias, self.eps)
        return y.view(x.shape), residual.view(x.shape)


@register("triton", core.TokenEmbedding)
class FusedTokenEmbedding(TritonModule, core.TokenEmbedding):
    """A scaled embedding in one kernel. An id outside the table gives NaN.

    The gradient is summed without sorting the ids, so its rounding differs from run to run.
    """

    @classmethod
    def refusals(cls, part: Any) -> Iterator[Reason]:
        yield from super().refusals(part)
        if part.weight.shape[1] > WIDEST or part.weight.numel() > LARGEST:
            yield Reason("", f"it is wider than {WIDEST}, or has more than {LARGEST} numbers")

    def look_up(self, ids: Tensor) -> Tensor:
        if not is_fused(self.weight) or torch.are_deterministic_algorithms_enabled():
            return super().look_up(ids)
        from .embedding import LookedUp

        out: Tensor = apply(LookedUp, ids.flatten().contiguous(), self.weight, self.scale)
        return out.view(*ids.shape, self.weight.shape[1])


@register("triton", core.VocabularyHead)
class FusedVocabularyHead(TritonModule, core.VocabularyHead):
    """A vocabulary head that computes the gradients of its bias and its table in one product."""

    def forward(self, x: Tensor, keep: core.Mask | None = None) -> Tensor:
        if not is_fused(x) or x.dtype != self.weight.dtype:
            return super().forward(x, keep)
        x = self.transform(x)
        if type(self.embedding) is not OutputEmbedding:  # but an embedding, which does not count its own use
            self.shared.counting(self.weight)
        head = Map(self.weight, self.bias, (self.weight,), () if self.bias is None else (self.bias,))
        return head(self.shared, x if self.scale == 1.0 else x * self.scale)[0]


@register("triton", core.DotProduct)
class FusedDotProduct(TritonModule, core.DotProduct):
    """Attention whose kernel holds a whole head, for rows as short as sentences."""

    def forward(self, query: Tensor, key: Tensor, value: Tensor, keep: PreparedMask) -> Tensor:
        mixed = None
        if query.dim() == key.dim() == 4 and key.shape == value.shape:  # else the core raises the error
            parts = [part.transpose(1, 2) for part in (query, key, value)]
            mixed = self.over_short_rows((query.shape[1], key.shape[1]), parts, keep)
        return super().forward(query, key, value, keep) if mixed is None else mixed.transpose(1, 2)

    def over_short_rows(self, heads: tuple[int, int], stacked: Sequence[Tensor], keep: PreparedMask) -> Tensor | None:
        """Return (B, Tq, H, K), or None if the kernel does not support the arguments.

        H heads of queries, G of keys and G of values come in one to three tensors (B, T, heads, K), in this order.
        """
        if not self._supports(heads, stacked, keep):
            return None
        query, value = stacked[0][:, :, : heads[0]].transpose(1, 2), stacked[-1][:, :, -heads[1] :].transpose(1, 2)
        from .short_attention import ShortAttention, VisibleKeys

        keep.check(query, value)
        scale = 1 / math.sqrt(query.shape[-1]) if self.scale is None else self.scale
        out: Tensor = apply(
            ShortAttention, VisibleKeys(keep.additive, keep.fully_masked, keep.is_causal, scale), heads, *stacked
        )
        return out

    def _supports(self, heads: tuple[int, int], stacked: Sequence[Tensor], keep: PreparedMask) -> bool:
        first, last = stacked[0], stacked[-1]
        if not is_fused(first) or first.dtype == torch.float32 or (self.training and self.dropout):
            return False
        if any(part.dtype != first.dtype or part.shape[3] != first.shape[3] for part in stacked) or heads[0] % heads[1]:
            return False
        fits = max(first.shape[1], last.shape[1]) <= SIDES[-1] and first.shape[3] <= WIDEST_HEAD and last.shape[1] > 0
        learned = keep.additive is not None and keep.additive.requires_grad
        by_head = keep.fully_masked is not None and keep.fully_masked.shape[1] != 1
        special = learned or by_head or keep.unpad_index is not None
        return fits and not special and torch.cuda.get_device_capability(first.device)[0] >= 8  # with bf16 tensor cores


# ---- layers ----


@register("triton", core.FeedForward)
class FusedFeedForward(TritonModule, core.FeedForward):
    """A feed-forward part: two products, and a kernel for bias and activation between them."""

    @classmethod
    def refusals(cls, part: Any) -> Iterator[Reason]:
        yield from super().refusals(part)
        yield from _linear_refusals(part, "up_proj", "down_proj")
        if activation_name(part.activation) not in KNOWN_ACTIVATIONS:
            yield Reason("", f"its activation is not one of {', '.join(KNOWN_ACTIVATIONS)}")

    @property
    def last(self) -> nn.Linear:
        return self.down_proj

    def unbiased(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return (…, D) without the last bias, and x for the residual connection."""
        from .activation import Activated

        wide, residual = Map.of(self.up_proj, bias=False)(self.shared, x)
        hidden = apply(Activated, self.shared, rows_of(wide), self.up_proj.bias, activation_name(self.activation)).view(
            wide.shape
        )
        return Map.of(self.down_proj, bias=False)(self.shared, self.dropout(hidden))[0], residual


def _linear_refusals(part: nn.Module, *names: str) -> Iterator[Reason]:
    """Require plain linear maps with biases."""
    for name in names:
        linear = getattr(part, name)
        yield from within(name, only(linear, nn.Linear))
        if linear.bias is None:
            yield Reason(name, "it has no bias")


@register("triton", core.MultiHeadAttention)
class FusedMultiHeadAttention(TritonModule, core.MultiHeadAttention):
    """Attention whose queries, keys and values come from one product in self-attention."""

    attention: FusedDotProduct

    @classmethod
    def refusals(cls, part: Any) -> Iterator[Reason]:
        yield from super().refusals(part)
        yield from within("attention", only(part.attention, core.DotProduct))
        yield from _linear_refusals(part, "q_proj", "kv_proj", "out_proj")

    def finish(self, context: Any) -> None:
        super().finish(context)
        alike = self.q_proj.in_features == self.kv_proj.in_features
        self.joined = Map.stacked(self.q_proj, self.kv_proj) if alike else None

    @property
    def last(self) -> nn.Linear:
        return self.out_proj

    def unbiased(self, x: Tensor, memory: Tensor | None = None, **context: Any) -> tuple[Tensor, Tensor]:
        """Return (B, T, D) without the last bias, and x for the residual connection."""
        keep, others = context.get("keep"), [context.get(name) for name in ("bias", "cache")]
        if isinstance(keep, PreparedMask) and others == [None, None] and (memory is None or len(memory) == len(x)):
            mixed, residual = self._attend(x, memory, keep, context.get("rotate") if memory is None else None)
        else:
            mixed, residual = self.mixed(x, memory, **context), x
        return Map.of(self.out_proj, bias=False)(self.shared, mixed)[0].view(x.shape), residual

    def _attend(self, x: Tensor, memory: Tensor | None, keep: PreparedMask, rotate: Any) -> tuple[Tensor, Tensor]:
        """Return the output of the heads (B, T, H·K), and x."""
        self._check_widths(x, memory)
        if memory is None and self.joined is not None:
            joined, residual = self.joined(self.shared, x)
            stacked = [joined.unflatten(-1, (-1, self.d_head))]  # (B, T, H + 2G, K)
        else:
            query, residual = Map.of(self.q_proj)(self.shared, x)
            source = self.kv_proj(x if memory is None else memory)
            stacked = [part.unflatten(-1, (-1, self.d_head)) for part in (query, source)]
        heads = self.n_heads, self.n_kv_heads
        mixed = self.attention.over_short_rows(heads, stacked, keep) if rotate is None else None
        if mixed is None:
            from .short_attention import unstacked

            query, key, value = (part.transpose(1, 2) for part in unstacked(stacked, heads))
            if rotate is not None:
                query, key = rotate(query, key)
            mixed = self.attention(query, key, value, keep).transpose(1, 2)
        return mixed.flatten(2), residual


class _FusedResidual(TritonModule):
    """A residual around a part whose last bias it adds, and a norm that has a kernel."""

    sublayer: Any
    norm: Any

    @classmethod
    def refusals(cls, part: Any) -> Iterator[Reason]:
        yield from super().refusals(part)
        for name, *kinds in (("norm", core.LayerNorm), ("sublayer", core.FeedForward, core.MultiHeadAttention)):
            inner = getattr(part, name)
            yield from within(name, only(inner, *kinds))
            if type(inner) in kinds:
                yield from within(name, IMPLEMENTATIONS[type(inner), "triton"].refusals(inner))
        if part.dropout.p >= 1:
            yield Reason("", "its dropout probability is 1")


@register("triton", core.PreNorm)
class FusedPreNorm(_FusedResidual, core.PreNorm):
    """A pre-norm residual with one kernel before the part and one after it."""

    def forward(self, x: Tensor, *args: Any, **context: Any) -> Tensor:
        if not is_fused(x):
            return super().forward(x, *args, **context)
        from .residual import Added

        normed, residual = self.norm.with_residual(x)
        mixed, _ = self.sublayer.unbiased(normed, *args, **context)
        out: Tensor = apply(
            Added, self.shared, rows_of(residual), rows_of(mixed), self.sublayer.last.bias, self.dropping(self.dropout)
        )
        return out.view(x.shape)


@register("triton", core.PostNorm)
class FusedPostNorm(_FusedResidual, core.PostNorm):
    """A post-norm residual with one kernel after the part."""

    def forward(self, x: Tensor, *args: Any, **context: Any) -> Tensor:
        if not is_fused(x):
            return super().forward(x, *args, **context)
        from .residual import AddedAndNormed

        mixed, residual = self.sublayer.unbiased(x, *args, **context)
        norm, bias = (self.norm.weight, self.norm.bias, self.norm.eps), self.sublayer.last.bias
        out: Tensor = apply(
            AddedAndNormed, self.shared, rows_of(residual), rows_of(mixed), bias, *norm, self.dropping(self.dropout)
        )
        return out.view(x.shape)


# ---- stacks ----


class _FusedStack(TritonModule, core.Stack):
    """A stack whose positions are computed from a formula, or do not change the input."""

    @classmethod
    def refusals(cls, part: Any) -> Iterator[Reason]:
        yield from super().refusals(part)
        if type(part.positions) is not core.Sinusoidal and type(part.positions).embed is not core.Positions.embed:
            yield Reason("positions", f"{type(part.positions).__name__} adds positions without a formula")
        yield from within("entry", only(part.entry, nn.Identity))
        if part.dropout.p >= 1:
            yield Reason("", "its dropout probability is 1")

    def finish(self, context: Any) -> None:
        super().finish(context)
        self.encodings: dict[int, Tensor] = {}  # by length; none is ever freed, since recorded steps read them

    def embed_positions(self, x: Tensor, real: Tensor | None, grid: Grid) -> Tensor:
        if not is_fused(x) or x.shape[2] > WIDEST:
            return super().embed_positions(x, real, grid)
        encodings = None
        if isinstance(self.positions, core.Sinusoidal):
            encodings = self._in_slots(grid, x, self.positions)
            if encodings is None:
                return super().embed_positions(x, real, grid)
        from .embedding import Entered

        out: Tensor = apply(Entered, x, real, encodings, self.dropping(self.dropout))
        return out

    def _in_slots(self, grid: Grid, x: Tensor, positions: core.Sinusoidal) -> Tensor | None:
        """Return the encodings (at least T, D) of tokens whose positions are their slots; None for other positions."""
        if grid.query_positions is not None or not grid.square or x.shape[2] != positions.d_model:
            return None
        n = block_of(grid.n_queries, grid.n_queries)
        if n not in self.encodings and not torch.cuda.is_current_stream_capturing():
            self.encodings[n] = positions.table(n).to(x.device, torch.float32)
        return self.encodings.get(n)


@register("triton", core.Encoder)
class FusedEncoder(_FusedStack, core.Encoder):
    """An encoder whose input is computed in one kernel."""


@register("triton", core.Decoder)
class FusedDecoder(_FusedStack, core.Decoder):
    """A decoder whose input is computed in one kernel."""
