"""How a stack knows where its tokens stand. A scheme does one of three things and nothing in the others:

- `embed(x, pos)`: add something to the input (sinusoidal, learned);
- `rotation(q_pos, k_pos)`: turn queries and keys before their product (rotary);
- `bias(q_pos, k_pos)`: add something to the scores (relative buckets, ALiBi).

A stack asks once per call, with explicit position ids: (T,) for all rows, or (B, T). Cross-attention
never asks. `LayerPositions` holds a scheme for each layer, where they differ.
Shapes: B batch, H heads, T tokens (Tq, Tk), D d_model, K head width.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from .attention import Rotate
from .embeddings import check_range
from .init import table
from .masks import can_read

Scaling = Callable[[Tensor], Tensor]
MEMORABLE = 1 << 16  # positions beyond are computed every time


class Positions(nn.Module):
    """No positions at all, and the interface of all schemes."""

    limit: int | None = None  # positions a stack may use are below it

    def embed(self, x: Tensor, pos: Tensor) -> Tensor:
        """(B, T, D) → (B, T, D)."""
        return x

    def rotation(self, q_pos: Tensor, k_pos: Tensor) -> Rotate | None:
        """A function of queries (B, H, Tq, K) and keys (B, G, Tk, K), shared by all layers; None for none."""
        return None

    def rotate(self, query: Tensor, key: Tensor, q_pos: Tensor, k_pos: Tensor) -> tuple[Tensor, Tensor]:
        """Queries and keys, turned by their positions."""
        turn = self.rotation(q_pos, k_pos)
        return (query, key) if turn is None else turn(query, key)

    def bias(self, q_pos: Tensor, k_pos: Tensor) -> Tensor | None:
        """(H, Tq, Tk), or (B, H, Tq, Tk) where the positions differ by row; None for none."""
        return None

    def of_layer(self, layer: int) -> Positions:
        """The scheme that turns queries and keys, or biases the scores, in this layer: the same in all."""
        return self


def _check_width(x: Tensor, width: int) -> None:
    if x.shape[-1] != width:
        raise ValueError(f"the positions are {width} wide, but the input is {x.shape[-1]}")


class Sinusoidal(Positions):
    """PE(pos, 2i) = sin(pos / 10000^(2i/D)), PE(pos, 2i+1) = cos of the same, added to the input.

    `layout` says where the sines stand: "interleaved" on the even dimensions (the paper), "halves" in
    the first half (Marian, Pegasus). An odd D has one cosine less. Every position is computed from the
    formula, so there is no table to run out of; `max_length` is only what `table()` shows by default.
    """

    def __init__(self, d_model: int, max_length: int = 5000, *, layout: str = "interleaved") -> None:
        super().__init__()
        if layout not in ("interleaved", "halves"):
            raise ValueError(f"unknown sinusoidal layout {layout!r}; known: interleaved, halves")
        self.d_model = d_model
        self.max_length = max_length
        self.layout = layout
        self._known = torch.empty(0, d_model)  # encodings that were computed before, so that a step looks them up

    def table(self, length: int | None = None) -> Tensor:
        """(T, D) the encodings of positions 0 to length − 1."""
        pos = torch.arange(self.max_length if length is None else length)
        return self._encode(pos).to(torch.get_default_dtype())

    def embed(self, x: Tensor, pos: Tensor) -> Tensor:
        _check_width(x, self.d_model)
        return x + self._look_up(pos, x.dtype)

    def _look_up(self, pos: Tensor, dtype: torch.dtype) -> Tensor:
        """The encodings of these positions: from the formula, and on the CPU from memory where they are there."""
        if not can_read(pos) or not pos.numel() or int(pos.min()) < 0:
            return self._encode(pos).to(dtype)
        needed = int(pos.max()) + 1
        if needed > MEMORABLE:
            return self._encode(pos).to(dtype)
        known = self._known
        if known.dtype != dtype or len(known) < needed:
            known = self._known = self._encode(torch.arange(2 * needed, device=pos.device)).to(dtype)
        return nn.functional.embedding(pos, known)

    def _encode(self, pos: Tensor) -> Tensor:
        exact = torch.float32 if pos.device.type == "mps" else torch.float64  # a wide angle loses digits in float32
        even = torch.arange(0, self.d_model, 2, device=pos.device, dtype=exact)
        angle = pos.to(exact)[..., None] / 10000.0 ** (even / self.d_model)  # (…, T, ⌈D/2⌉)
        sines, cosines = angle.sin(), angle.cos()[..., : self.d_model // 2]
        if self.layout == "halves":
            return torch.cat([sines, cosines], dim=-1)
        table = sines.new_empty(*pos.shape, self.d_model)
        table[..., 0::2] = sines
        table[..., 1::2] = cosines
        return table

    def extra_repr(self) -> str:
        return f"{self.d_model}, layout={self.layout}"


class Learned(Positions):
    """A vector for each position, learned. `offset` rows stand unused before position 0 (BART has two)."""

    def __init__(self, max_length: int, d_model: int, *, offset: int = 0) -> None:
        super().__init__()
        self.limit = self.max_length = max_length
        self.offset = offset
        self.weight = table(max_length + offset, d_model)

    def table(self, length: int | None = None) -> Tensor:
        """(T, D) the vectors of positions 0 to length − 1."""
        n = self.max_length if length is None else length
        check_range(torch.arange(n), self.max_length, "learned positions")
        return self.weight.detach()[self.offset : self.offset + n]

    def embed(self, x: Tensor, pos: Tensor) -> Tensor:
        _check_width(x, self.weight.shape[1])
        check_range(pos, self.max_length, "learned positions")
        return x + nn.functional.embedding(pos + self.offset, self.weight)

    def extra_repr(self) -> str:
        return f"{self.limit}, {self.weight.shape[1]}, offset={self.offset}"


class Relative(Positions):
    """T5: a learned bias per head and distance, near distances each on their own, far ones in growing buckets.

    One table serves a whole stack. `causal` spends all buckets on the past.
    """

    def __init__(self, n_heads: int, *, n_buckets: int = 32, max_distance: int = 128, causal: bool = False) -> None:
        super().__init__()
        exact = n_buckets // (2 if causal else 4)  # distances with a bucket each
        if exact < 1 or max_distance <= exact:
            raise ValueError(f"{n_buckets} buckets to a distance of {max_distance} leave no near or no far distances")
        self.n_buckets = n_buckets
        self.max_distance = max_distance
        self.causal = causal
        self.weight = table(n_buckets, n_heads)

    def bias(self, q_pos: Tensor, k_pos: Tensor) -> Tensor:
        ahead = k_pos[..., None, :] - q_pos[..., :, None]  # (…, Tq, Tk)
        return nn.functional.embedding(self.buckets(ahead), self.weight).movedim(-1, -3)

    def buckets(self, ahead: Tensor) -> Tensor:
        """The bucket of each distance key − query."""
        n = self.n_buckets
        if self.causal:
            first, distance = torch.zeros_like(ahead), (-ahead).clamp(min=0)
        else:
            n //= 2
            first, distance = (ahead > 0).long() * n, ahead.abs()
        exact = n // 2  # distances below have a bucket each
        # In float32 and in this order: published tables were trained with exactly these borders.
        far = torch.log(distance.clamp(min=1).float() / exact) / math.log(self.max_distance / exact) * (n - exact)
        return first + torch.where(distance < exact, distance, (exact + far.long()).clamp(max=n - 1))

    def extra_repr(self) -> str:
        kind = "causal" if self.causal else "both ways"
        return f"{self.n_buckets} buckets to {self.max_distance}, {kind}"


class ALiBi(Positions):
    """−slope · distance, a fixed slope per head (Press et al. 2022); for heads not a power of two, theirs too."""

    def __init__(self, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads

    def slopes(self, device: torch.device | None = None) -> Tensor:
        """(H,) 2^(−8/n), 2^(−16/n), …; beyond a power of two, every second slope of twice as many heads."""
        power = 2 ** math.floor(math.log2(self.n_heads))
        first = torch.arange(1, power + 1, device=device) * (8 / power)
        more = (2 * torch.arange(self.n_heads - power, device=device) + 1) * (4 / power)
        return torch.exp2(-torch.cat([first, more]).float())

    def bias(self, q_pos: Tensor, k_pos: Tensor) -> Tensor:
        distance = (k_pos[..., None, :] - q_pos[..., :, None]).abs()  # (…, Tq, Tk)
        return -self.slopes(q_pos.device)[:, None, None] * distance[..., None, :, :]

    def extra_repr(self) -> str:
        return f"{self.n_heads} heads"


class Rotary(Positions):
    """RoPE: pairs of features of queries and keys are turned by an angle that grows with the position.

    `width` (the whole head unless given) is how many features are turned. Pairs are (i, i + width/2),
    as LLaMA pairs them, or neighbours where `interleaved`, as the paper does. `scaling` changes the
    frequencies, for models stretched to longer inputs.
    """

    def __init__(
        self,
        d_head: int,
        *,
        base: float = 10000.0,
        width: int | None = None,
        interleaved: bool = False,
        scaling: Scaling | None = None,
    ) -> None:
        super().__init__()
        self.d_head = d_head
        self.width = d_head if width is None else width
        if self.width % 2 or not 0 < self.width <= d_head:
            raise ValueError(
                f"rotary turns pairs: width={self.width} must be even, above 0 and at most d_head={d_head}"
            )
        self.base = base
        self.interleaved = interleaved
        self.scaling = scaling

    def frequencies(self, device: torch.device | None = None) -> Tensor:
        """(width/2,) turns per position, in radians. Made anew each time: a buffer would follow the model to bf16."""
        even = torch.arange(0, self.width, 2, device=device, dtype=torch.float32)
        frequencies = 1.0 / self.base ** (even / self.width)
        return frequencies if self.scaling is None else self.scaling(frequencies)

    def rotation(self, q_pos: Tensor, k_pos: Tensor) -> Rotate:
        turn_query = self._turn(q_pos)
        turn_key = turn_query if k_pos is q_pos else self._turn(k_pos)
        return lambda query, key: (turn_query(query), turn_key(key))

    def _turn(self, pos: Tensor) -> Callable[[Tensor], Tensor]:
        angle = pos[..., None].float() * self.frequencies(pos.device)  # (…, T, width/2)
        if angle.dim() == 3:
            angle = angle[:, None]  # (B, 1, T, width/2)
        cos, sin = angle.cos(), angle.sin()

        def turn(x: Tensor) -> Tensor:
            if x.shape[-1] != self.d_head:
                raise ValueError(f"rotary was made for heads of width {self.d_head}, but these are {x.shape[-1]} wide")
            head, rest = x[..., : self.width], x[..., self.width :]
            a, b = (head[..., 0::2], head[..., 1::2]) if self.interleaved else head.chunk(2, dim=-1)
            c, s = cos.to(x.dtype), sin.to(x.dtype)
            turned = (a * c - b * s, b * c + a * s)
            pairs = torch.stack(turned, dim=-1).flatten(-2) if self.interleaved else torch.cat(turned, dim=-1)
            return torch.cat([pairs, rest], dim=-1) if rest.shape[-1] else pairs

        return turn

    def extra_repr(self) -> str:
        return f"width={self.width}, {'neighbours' if self.interleaved else 'halves'}"


class LayerPositions(Positions):
    """A scheme for each layer: rotary in some layers and none in others, or a table of relative distances each.

    What is added to the input is added once, before the first layer, so such schemes have no place here.
    """

    def __init__(self, schemes: Iterable[Positions]) -> None:
        super().__init__()
        self.schemes = nn.ModuleList(schemes)
        for scheme in self.schemes:
            if not isinstance(scheme, Positions) or type(scheme).embed is not Positions.embed:
                name = type(scheme).__name__
                raise ValueError(f"positions by layer turn queries and keys or bias the scores, and {name} does not")

    def of_layer(self, layer: int) -> Positions:
        return cast("Positions", self.schemes[layer])

    def rotation(self, q_pos: Tensor, k_pos: Tensor) -> Rotate | None:
        raise ValueError("the positions of this stack differ by layer: ask of_layer(index)")

    def bias(self, q_pos: Tensor, k_pos: Tensor) -> Tensor | None:
        raise ValueError("the positions of this stack differ by layer: ask of_layer(index)")


@dataclass(frozen=True, kw_only=True)
class LinearScaling:
    """Every position counts as 1/factor of one."""

    factor: float

    def __call__(self, frequencies: Tensor) -> Tensor:
        return frequencies / self.factor


@dataclass(frozen=True, kw_only=True)
class Llama3Scaling:
    """LLaMA 3.1: slow turns are stretched by `factor`, fast ones left, those between blended.

    A frequency is slow when it turns less than `low` times over the original length, fast above `high`.
    """

    factor: float = 8.0
    low: float = 1.0
    high: float = 4.0
    original_length: int = 8192

    def __call__(self, frequencies: Tensor) -> Tensor:
        turns = self.original_length * frequencies / (2 * math.pi)
        share = ((turns - self.low) / (self.high - self.low)).clamp(0.0, 1.0)  # 1 for fast
        return frequencies * (share + (1 - share) / self.factor)
