"""Position schemes. Each implements one of three methods; the others do nothing:

- `embed(x, pos)`: add position vectors to the input (sinusoidal, learned);
- `rotation(q_pos, k_pos)`: rotate queries and keys before their product (rotary);
- `bias(q_pos, k_pos)`: add a bias to the scores (relative buckets, ALiBi).

A stack calls them once per forward pass, with explicit position ids: (T,) for all rows, or (B, T). Cross-attention
does not use positions. `LayerPositions` holds a scheme for each layer.
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
MAX_CACHED = 1 << 16  # encodings of later positions are computed at every call


class Positions(nn.Module):
    """The interface of all position schemes; by itself it uses no positions."""

    limit: int | None = None  # positions must be below it

    def embed(self, x: Tensor, pos: Tensor) -> Tensor:
        """Add position vectors to x: (B, T, D) → (B, T, D)."""
        return x

    def rotation(self, q_pos: Tensor, k_pos: Tensor) -> Rotate | None:
        """Return a function that rotates queries (B, H, Tq, K) and keys (B, G, Tk, K); None for no rotation."""
        return None

    def rotate(self, query: Tensor, key: Tensor, q_pos: Tensor, k_pos: Tensor) -> tuple[Tensor, Tensor]:
        """Return queries and keys, rotated by their positions."""
        rotate = self.rotation(q_pos, k_pos)
        return (query, key) if rotate is None else rotate(query, key)

    def bias(self, q_pos: Tensor, k_pos: Tensor) -> Tensor | None:
        """Return the bias (H, Tq, Tk), or (B, H, Tq, Tk) if positions differ by row; None for no bias."""
        return None

    def of_layer(self, layer: int) -> Positions:
        """Return the scheme that rotates or biases in this layer; here it is the same in all layers."""
        return self


def _check_width(x: Tensor, width: int) -> None:
    if x.shape[-1] != width:
        raise ValueError(f"the positions are {width} wide, but the input is {x.shape[-1]}")


class Sinusoidal(Positions):
    """PE(pos, 2i) = sin(pos / 10000^(2i/D)), PE(pos, 2i+1) = cos of the same, added to the input.

    Args:
        d_model: Width D of the encodings. An odd D has one cosine less.
        max_length: Number of rows that `table()` returns by default. It does not limit the input: every position is
            computed from the formula.
        layout: "interleaved" puts sines on the even dimensions (the paper), "halves" into the first half (Marian).
    """

    def __init__(self, d_model: int, max_length: int = 5000, *, layout: str = "interleaved") -> None:
        super().__init__()
        if layout not in ("interleaved", "halves"):
            raise ValueError(f"unknown sinusoidal layout {layout!r}; choose interleaved or halves")
        self.d_model = d_model
        self.max_length = max_length
        self.layout = layout
        self._cached = torch.empty(0, d_model)  # encodings of the first positions, so that a step only looks them up

    def table(self, length: int | None = None) -> Tensor:
        """Return the encodings of positions 0 to length − 1: (T, D)."""
        pos = torch.arange(self.max_length if length is None else length)
        return self._encode(pos).to(torch.get_default_dtype())

    def embed(self, x: Tensor, pos: Tensor) -> Tensor:
        _check_width(x, self.d_model)
        return x + self._look_up(pos, x.dtype)

    def _look_up(self, pos: Tensor, dtype: torch.dtype) -> Tensor:
        """Return the encodings of these positions, on the CPU from the cached ones."""
        needed = int(pos.max()) + 1 if can_read(pos) and pos.numel() and int(pos.min()) >= 0 else 0
        if not 0 < needed <= MAX_CACHED:
            return self._encode(pos).to(dtype)
        cached = self._cached
        if cached.dtype != dtype or len(cached) < needed:
            cached = self._cached = self._encode(torch.arange(2 * needed, device=pos.device)).to(dtype)
        return nn.functional.embedding(pos, cached)

    def _encode(self, pos: Tensor) -> Tensor:
        exact = torch.float32 if pos.device.type == "mps" else torch.float64  # float32 loses digits of large angles
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
    """A learned vector for each position. `offset` unused rows precede position 0 (BART has two)."""

    def __init__(self, max_length: int, d_model: int, *, offset: int = 0) -> None:
        super().__init__()
        self.limit = self.max_length = max_length
        self.offset = offset
        self.weight = table(max_length + offset, d_model)

    def table(self, length: int | None = None) -> Tensor:
        """Return the vectors of positions 0 to length − 1: (T, D)."""
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
    """T5's relative positions: a learned bias per head and bucket of distances, shared by all layers of a stack.

    Small distances have a bucket each; larger ones share buckets of growing size. With `causal`, all buckets are for
    keys before the query.
    """

    def __init__(self, n_heads: int, *, n_buckets: int = 32, max_distance: int = 128, causal: bool = False) -> None:
        super().__init__()
        exact = n_buckets // (2 if causal else 4)  # distances below have a bucket each
        if exact < 1 or max_distance <= exact:
            raise ValueError(f"n_buckets={n_buckets} is too few, or max_distance={max_distance} too small for it")
        self.n_buckets = n_buckets
        self.max_distance = max_distance
        self.causal = causal
        self.weight = table(n_buckets, n_heads)

    def bias(self, q_pos: Tensor, k_pos: Tensor) -> Tensor:
        ahead = k_pos[..., None, :] - q_pos[..., :, None]  # (…, Tq, Tk)
        return nn.functional.embedding(self.buckets(ahead), self.weight).movedim(-1, -3)

    def buckets(self, ahead: Tensor) -> Tensor:
        """Return the bucket of each distance, key position − query position."""
        n = self.n_buckets
        if self.causal:
            first, distance = torch.zeros_like(ahead), (-ahead).clamp(min=0)
        else:
            n //= 2
            first, distance = (ahead > 0).long() * n, ahead.abs()
        exact = n // 2  # distances below have a bucket each
        # float32 and this order of operations give exactly the borders that published tables were trained with.
        far = torch.log(distance.clamp(min=1).float() / exact) / math.log(self.max_distance / exact) * (n - exact)
        return first + torch.where(distance < exact, distance, (exact + far.long()).clamp(max=n - 1))

    def extra_repr(self) -> str:
        kind = "causal" if self.causal else "both ways"
        return f"{self.n_buckets} buckets to {self.max_distance}, {kind}"


class ALiBi(Positions):
    """Adds −slope · distance to the scores, with a fixed slope per head (Press et al. 2022)."""

    def __init__(self, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads

    def slopes(self, device: torch.device | None = None) -> Tensor:
        """Return the slopes (H,): 2^(−8/n), 2^(−16/n), …; beyond a power of two, every second slope of 2n heads."""
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
    """RoPE: rotates pairs of features of queries and keys by an angle proportional to the position.

    Args:
        d_head: Width of a head.
        base: The angles per position are base^(−2i/width).
        width: Number of features that are rotated; the whole head by default.
        interleaved: Pair neighboring features, as the paper does; otherwise pair i with i + width/2, as LLaMA does.
        scaling: Changes the frequencies, for models extended to longer inputs.
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
                f"rotary positions rotate pairs: width={self.width} must be even, above 0 and at most d_head={d_head}"
            )
        self.base = base
        self.interleaved = interleaved
        self.scaling = scaling

    def frequencies(self, device: torch.device | None = None) -> Tensor:
        """Return radians per position (width/2,). Not a buffer, which would follow the model to bf16."""
        even = torch.arange(0, self.width, 2, device=device, dtype=torch.float32)
        frequencies = 1.0 / self.base ** (even / self.width)
        return frequencies if self.scaling is None else self.scaling(frequencies)

    def rotation(self, q_pos: Tensor, k_pos: Tensor) -> Rotate:
        rotate_query = self._rotate_by(q_pos)
        rotate_key = rotate_query if k_pos is q_pos else self._rotate_by(k_pos)
        return lambda query, key: (rotate_query(query), rotate_key(key))

    def _rotate_by(self, pos: Tensor) -> Callable[[Tensor], Tensor]:
        angle = pos[..., None].float() * self.frequencies(pos.device)  # (…, T, width/2)
        if angle.dim() == 3:
            angle = angle[:, None]  # (B, 1, T, width/2)
        cos, sin = angle.cos(), angle.sin()

        def rotate(x: Tensor) -> Tensor:
            if x.shape[-1] != self.d_head:
                raise ValueError(f"these rotary positions are for heads of width {self.d_head}, not {x.shape[-1]}")
            head, rest = x[..., : self.width], x[..., self.width :]
            a, b = (head[..., 0::2], head[..., 1::2]) if self.interleaved else head.chunk(2, dim=-1)
            c, s = cos.to(x.dtype), sin.to(x.dtype)
            pair = (a * c - b * s, b * c + a * s)
            pairs = torch.stack(pair, dim=-1).flatten(-2) if self.interleaved else torch.cat(pair, dim=-1)
            return torch.cat([pairs, rest], dim=-1) if rest.shape[-1] else pairs

        return rotate

    def extra_repr(self) -> str:
        return f"width={self.width}, {'neighbors' if self.interleaved else 'halves'}"


class LayerPositions(Positions):
    """A position scheme for each layer, such as rotary in some layers and none in others.

    Schemes that add to the input are refused, since the input is embedded once, before the first layer.
    """

    def __init__(self, schemes: Iterable[Positions]) -> None:
        super().__init__()
        self.schemes = nn.ModuleList(schemes)
        for scheme in self.schemes:
            if not isinstance(scheme, Positions) or type(scheme).embed is not Positions.embed:
                name = type(scheme).__name__
                raise ValueError(f"positions by layer must rotate queries and keys or bias the scores; not {name}")

    def of_layer(self, layer: int) -> Positions:
        return cast("Positions", self.schemes[layer])

    def rotation(self, q_pos: Tensor, k_pos: Tensor) -> Rotate | None:
        raise ValueError("the positions of this stack differ by layer: call of_layer(index)")

    def bias(self, q_pos: Tensor, k_pos: Tensor) -> Tensor | None:
        raise ValueError("the positions of this stack differ by layer: call of_layer(index)")


@dataclass(frozen=True, kw_only=True)
class LinearScaling:
    """Divides all positions by `factor` (linear position interpolation)."""

    factor: float

    def __call__(self, frequencies: Tensor) -> Tensor:
        return frequencies / self.factor


@dataclass(frozen=True, kw_only=True)
class Llama3Scaling:
    """LLaMA 3.1: divides low frequencies by `factor`, keeps high ones and interpolates between.

    A frequency is low if it makes fewer than `low` turns over the original length, and high above `high` turns.
    """

    factor: float = 8.0
    low: float = 1.0
    high: float = 4.0
    original_length: int = 8192

    def __call__(self, frequencies: Tensor) -> Tensor:
        turns = self.original_length * frequencies / (2 * math.pi)
        share = ((turns - self.low) / (self.high - self.low)).clamp(0.0, 1.0)  # 1 for fast
        return frequencies * (share + (1 - share) / self.factor)
