"""Single parts: a map, a norm, a table, attention. Each says whether it can take a part's place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from ...core import DotProduct, LayerNorm, Mask, TokenEmbedding, VocabularyHead
from ...core.heads import Table
from ...core.mask_preparation import PreparedMask
from ..kernels import SIDES, available
from .maps import Map, rows_of
from .passes import Pass

if TYPE_CHECKING:
    from ..kernels.dropping import Dropping

WIDEST_HEAD = 128  # numbers in a head that attention's kernel holds
WIDEST = 4096  # features of a norm or of a token, so that one program can hold them
LARGEST = 2**26  # numbers in a token table, whose gradient is added up in a float32 copy


class Quick:
    """Beside the class of a part: one that may take its place."""

    shared: Pass

    @classmethod
    def fits(cls, part: Any) -> bool:
        """Whether it can, of a part which is of just the class that it stands for."""
        return True

    def settle(self) -> None:
        """What is to be done once, when it has taken it."""

    def dropping(self, dropout: nn.Dropout) -> Dropping:
        """What a kernel shall drop, which nobody else does."""
        from ..kernels.dropping import Dropping

        return Dropping(dropout.p if dropout.training else 0.0, *self.shared.draw())


def pays(x: Tensor) -> bool:
    """Whether this is a pass that shall be quick, on a device where it can be."""
    return torch.is_grad_enabled() and not torch.compiler.is_compiling() and available(x)


class QuickLinear(Quick, nn.Linear):
    """The gradients of its weight, where that is small, and of its bias are left for the end of a pass."""

    @classmethod
    def fits(cls, part: nn.Linear) -> bool:
        return part.bias is not None

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002  # torch's name
        if not pays(input) or input.dtype != self.weight.dtype:
            return super().forward(input)
        return Map.of(self)(self.shared, input)[0]


class QuickLayerNorm(Quick, LayerNorm):
    """Both directions in one kernel each."""

    @classmethod
    def fits(cls, part: LayerNorm) -> bool:
        return part.bias is not None and part.weight.shape[0] <= WIDEST

    def forward(self, x: Tensor) -> Tensor:
        return self.with_itself(x)[0] if pays(x) else super().forward(x)

    def with_itself(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The norm, and x for whoever adds it to something later: the kernel adds their gradients."""
        from ..kernels.residual import Normed

        made: Any = Normed.apply
        y, kept = made(self.shared, rows_of(x), self.weight, self.bias, self.eps)
        return y.view(x.shape), kept.view(x.shape)


class QuickTokenEmbedding(Quick, TokenEmbedding):
    """With its scale in one kernel. The gradient is added up without sorting the ids: in another order each time, by a
    rounding. An id that the table does not have gives NaN."""

    @classmethod
    def fits(cls, part: TokenEmbedding) -> bool:
        return part.weight.shape[1] <= WIDEST and part.weight.numel() <= LARGEST

    def look_up(self, ids: Tensor) -> Tensor:
        if not pays(self.weight) or torch.are_deterministic_algorithms_enabled():
            return super().look_up(ids)
        from ..kernels.embedding import LookedUp

        made: Any = LookedUp.apply
        out: Tensor = made(ids.flatten().contiguous(), self.weight, self.scale)
        return out.view(*ids.shape, self.weight.shape[1])


class QuickVocabularyHead(Quick, VocabularyHead):
    """The gradient of its bias, a sum over all logits, comes from the product that its table's needs."""

    def forward(self, x: Tensor, keep: Mask | None = None) -> Tensor:
        if not pays(x) or x.dtype != self.weight.dtype:
            return super().forward(x, keep)
        x = self.transform(x)
        if type(self.table) is not Table:  # but an embedding, whose own use is not counted
            self.shared.counting(self.weight)
        own = Map(self.weight, self.bias, (self.weight,), () if self.bias is None else (self.bias,))
        return own(self.shared, x if self.scale == 1.0 else x * self.scale)[0]


class QuickDotProduct(Quick, DotProduct):
    """Over rows as short as sentences, a kernel that holds a whole head."""

    def forward(self, query: Tensor, key: Tensor, value: Tensor, keep: PreparedMask) -> Tensor:
        found = None
        if query.dim() == key.dim() == 4 and key.shape == value.shape:  # if not, there is one who says what is wrong
            parts = [part.transpose(1, 2) for part in (query, key, value)]
            found = self.over_short_rows((query.shape[1], key.shape[1]), parts, keep)
        return super().forward(query, key, value, keep) if found is None else found.transpose(1, 2)

    def over_short_rows(self, heads: tuple[int, int], stacked: Sequence[Tensor], keep: PreparedMask) -> Tensor | None:
        """(B, Tq, H, K), or None where the kernel does not know how. H heads of queries, G of keys and G of values come
        in one to three tensors (B, T, heads, K), stacked in this order."""
        if not self._knows(heads, stacked, keep):
            return None
        query, value = stacked[0][:, :, : heads[0]].transpose(1, 2), stacked[-1][:, :, -heads[1] :].transpose(1, 2)
        from ..kernels.short_attention import Seen, ShortAttention

        keep.check(query, value)
        scale = 1 / math.sqrt(query.shape[-1]) if self.scale is None else self.scale
        made: Any = ShortAttention.apply
        out: Tensor = made(Seen(keep.additive, keep.fully_masked, keep.is_causal, scale), heads, *stacked)
        return out

    def _knows(self, heads: tuple[int, int], stacked: Sequence[Tensor], keep: PreparedMask) -> bool:
        first, last = stacked[0], stacked[-1]
        if not pays(first) or first.dtype == torch.float32 or (self.training and self.dropout):
            return False
        if any(part.dtype != first.dtype or part.shape[3] != first.shape[3] for part in stacked) or heads[0] % heads[1]:
            return False
        fits = max(first.shape[1], last.shape[1]) <= SIDES[-1] and first.shape[3] <= WIDEST_HEAD and last.shape[1] > 0
        learned = keep.additive is not None and keep.additive.requires_grad
        by_head = keep.fully_masked is not None and keep.fully_masked.shape[1] != 1
        special = learned or by_head or keep.unpad_index is not None
        return fits and not special and torch.cuda.get_device_capability(first.device)[0] >= 8  # which multiply bf16
