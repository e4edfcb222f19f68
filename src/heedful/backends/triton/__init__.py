"""Triton kernels for a GPU, which read memory once or twice where torch's operations read it several times.

Each kernel is tested against its reference in torch. Modules of kernels need Triton, which comes with torch for CUDA:
import them only where `available` allows it. Each kernel takes a third of a second to compile for every specialization,
so numbers of rows, which change from batch to batch, are not specialized.
"""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

SIDES = 32, 64  # of a tile of short attention; compiling a third size would cost more than it saves
HAVE_TRITON = getattr(find_spec("triton"), "origin", None) is not None  # not a folder of that name
DTYPES = (torch.bfloat16, torch.float16, torch.float32)


def available(tensor: Tensor) -> bool:
    """Return True if kernels support the device and dtype of a tensor."""
    return tensor.is_cuda and tensor.dtype in DTYPES and HAVE_TRITON


def over_tables(weight: Tensor) -> bool:
    """Return True if kernels over many tensors support a weight: contiguous float32."""
    return weight.dtype == torch.float32 and weight.is_contiguous() and available(weight)


def block_of(n: int, most: int) -> int:
    """Return the power of two that holds n numbers, or `most` of them."""
    return 1 << (min(n, most) - 1).bit_length()


# ---- losses as operators ----

Costs = tuple[Tensor, Tensor, Tensor]
Back = Callable[..., tuple[Tensor | None, ...]]


def with_gradient(
    name: str, costs: Callable[..., Costs], slopes: Callable[..., Tensor], outputs: Callable[[Tensor], Costs]
) -> Callable[..., tuple[Tensor, Tensor]]:
    """Return a loss function from kernels: an operator for torch.compile, and an autograd function otherwise.

    (An operator would do for both, but torch imports its compiler, which takes seconds, when it first calls one.) The
    function returns the loss of each token (N) and its plain cross-entropy, which has no gradient.

    Args:
        name: the name of the operator.
        costs: computes, from logits, target, keep and some numbers, these two and a tensor for the backward pass.
        slopes: computes the gradient of the logits from logits, target, keep, that tensor, the gradient of the loss of
            each token, and the numbers.
        outputs: allocates the result of `costs` for given logits.
    """
    operator = torch.library.custom_op(f"heedful::{name}", costs, mutates_args=())
    gradient = torch.library.custom_op(f"heedful::{name}_gradient", slopes, mutates_args=())
    operator.register_fake(lambda logits, *_: outputs(logits))
    gradient.register_fake(lambda logits, *_: torch.empty_like(logits))
    operator.register_autograd(_back(gradient), setup_context=_save)

    class Uncompiled(torch.autograd.Function):
        forward = staticmethod(costs)
        setup_context = staticmethod(_save_uncompiled)
        backward: Any = staticmethod(once_differentiable(_back(slopes)))

    def apply(logits: Tensor, target: Tensor, keep: Tensor, *numbers: float) -> tuple[Tensor, Tensor]:
        run: Any = operator if torch.compiler.is_compiling() else Uncompiled.apply
        loss, plain, _ = run(logits.contiguous(), target.contiguous(), keep.contiguous(), *numbers)
        return loss, plain.detach()

    return apply


def _save(ctx: Any, inputs: tuple[Any, ...], output: Costs) -> None:
    ctx.numbers = inputs[3:]
    ctx.save_for_backward(*inputs[:3], output[2])


def _save_uncompiled(ctx: Any, inputs: tuple[Any, ...], output: Costs) -> None:
    _save(ctx, inputs, output)
    ctx.mark_non_differentiable(*output[1:])
    ctx.set_materialize_grads(False)  # make no zeros for missing gradients


def _back(slopes: Callable[..., Tensor]) -> Back:
    def back(ctx: Any, slope: Tensor | None, *_: Tensor | None) -> tuple[Tensor | None, ...]:
        nothing = (None,) * (2 + len(ctx.numbers))
        if slope is None:
            return None, *nothing
        return slopes(*ctx.saved_tensors, slope.contiguous(), *ctx.numbers), *nothing

    return back
