"""What torch does in several readings of the memory, in one or two: Triton kernels for a GPU.

Each stands for something that is written out in torch beside it, and is tested against that. Modules of kernels need
Triton, which torch brings along where there is CUDA: import them where `available` says so, and not before. Each
kernel takes a third of a second to compile, once for every kind of number it is specialised for; so numbers of rows,
which change from batch to batch, are not.
"""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

SIDES = 32, 64  # of a tile of short attention; a third size would take longer to compile than it saves
HAVE_TRITON = getattr(find_spec("triton"), "origin", None) is not None  # a folder of that name is none
DTYPES = (torch.bfloat16, torch.float16, torch.float32)


def available(tensor: Tensor) -> bool:
    """Whether a kernel can work on this tensor."""
    return tensor.is_cuda and tensor.dtype in DTYPES and HAVE_TRITON


def over_tables(weight: Tensor) -> bool:
    """Whether kernels over many tensors can work on it, which take plain numbers, one behind the other."""
    return weight.dtype == torch.float32 and weight.is_contiguous() and available(weight)


def block_of(n: int, most: int) -> int:
    """The power of two that holds n numbers, or the most that a program shall hold at once."""
    return 1 << (min(n, most) - 1).bit_length()


# ---- losses as operators ----

Found = tuple[Tensor, Tensor, Tensor]
Back = Callable[..., tuple[Tensor | None, ...]]


def with_gradient(
    name: str, costs: Callable[..., Found], slopes: Callable[..., Tensor], room: Callable[[Tensor], Found]
) -> Callable[..., tuple[Tensor, Tensor]]:
    """A loss whose kernels a compiler takes as they are: an operator to it, and else a function of autograd. It could
    always be an operator, but torch imports its compiler, which takes seconds, when it first calls one.

    What each token costs (N) and its plain cross-entropy, which has no gradient; zero where it does not count.

    `costs` takes logits, target, keep and some numbers, and fills what `room` makes for such logits: the two, and what
    it keeps for `slopes`. That takes logits, target, keep, what was kept, the slope of what each token costs and the
    numbers, and gives the gradient of the logits, which itself has none.
    """
    operator = torch.library.custom_op(f"heedful::{name}", costs, mutates_args=())
    gradient = torch.library.custom_op(f"heedful::{name}_gradient", slopes, mutates_args=())
    operator.register_fake(lambda logits, *_: room(logits))
    gradient.register_fake(lambda logits, *_: torch.empty_like(logits))
    operator.register_autograd(_back(gradient), setup_context=_remember)

    class Uncompiled(torch.autograd.Function):
        forward = staticmethod(costs)
        setup_context = staticmethod(_remember_sparingly)
        backward: Any = staticmethod(once_differentiable(_back(slopes)))

    def apply(logits: Tensor, target: Tensor, keep: Tensor, *numbers: float) -> tuple[Tensor, Tensor]:
        run: Any = operator if torch.compiler.is_compiling() else Uncompiled.apply
        loss, plain, _ = run(logits.contiguous(), target.contiguous(), keep.contiguous(), *numbers)
        return loss, plain.detach()

    return apply


def _remember(ctx: Any, inputs: tuple[Any, ...], output: Found) -> None:
    ctx.numbers = inputs[3:]
    ctx.save_for_backward(*inputs[:3], output[2])


def _remember_sparingly(ctx: Any, inputs: tuple[Any, ...], output: Found) -> None:
    _remember(ctx, inputs, output)
    ctx.mark_non_differentiable(*output[1:])
    ctx.set_materialize_grads(False)  # of what has none, no zeros are made


def _back(slopes: Callable[..., Tensor]) -> Back:
    def back(ctx: Any, slope: Tensor | None, *_: Tensor | None) -> tuple[Tensor | None, ...]:
        nothing = (None,) * (2 + len(ctx.numbers))
        if slope is None:
            return None, *nothing
        return slopes(*ctx.saved_tensors, slope.contiguous(), *ctx.numbers), *nothing

    return back
