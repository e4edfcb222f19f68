"""PreNorm and PostNorm."""

from collections.abc import Callable

from torch import Tensor

Part = Callable[[Tensor], Tensor]


def pre_norm(x: Tensor, sublayer: Part, norm: Part) -> Tensor:
    """(B, T, D) → (B, T, D)"""
    return x + sublayer(norm(x))


def post_norm(x: Tensor, sublayer: Part, norm: Part) -> Tensor:
    """(B, T, D) → (B, T, D)"""
    return norm(x + sublayer(x))


def pre_norm_stack(x: Tensor, sublayers: list[Part], norms: list[Part], final_norm: Part) -> Tensor:
    """(B, T, D) → (B, T, D)"""
    for sublayer, norm in zip(sublayers, norms, strict=True):
        x = pre_norm(x, sublayer, norm)
    return final_norm(x)
