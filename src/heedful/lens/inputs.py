"""The inputs of the tools that run a model themselves: tensors for a module, texts for what `heedful.load` returns."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ..errors import RecordingError
from .intervention import module_of


class TeacherForced(NamedTuple):
    """A module's arguments, of one row where they come from texts, and the answer that the last logits predict."""

    inputs: tuple[Tensor, ...]
    answer: list[int]
    spell: Callable[[int], str] | None = None  # returns the text of a token


def teacher_forced(model: Any, item: Any, answer: Any = None) -> TeacherForced:
    """Return what a model reads.

    Args:
        model: A module, or what `heedful.load` returns for a model that writes text.
        item: For a module, its argument or a tuple of them. For a predictor, a text, or a text and its answer; a
            translator without an answer writes one.
        answer: For a module, the ids that the last rows of the logits should predict. For a predictor, the answer.
    """
    if isinstance(model, nn.Module):
        inputs = item if isinstance(item, tuple) else (item,)
        if not inputs or not all(isinstance(each, Tensor) for each in inputs):
            raise RecordingError(
                "a module takes a tensor or a tuple of tensors; a text needs what heedful.load returns"
            )
        return TeacherForced(inputs, [answer] if isinstance(answer, int) else list(answer or ()))
    read = getattr(model, "teacher_forced", None)
    if read is None:
        raise RecordingError(f"a {type(model).__name__} writes no text; pass its module with tensors")
    text, written = item if isinstance(item, tuple) else (item, None)
    forced: TeacherForced = read(text, answer if written is None else written)
    return forced


def run(model: Any, item: Any) -> Tensor:
    """Return the output of a model's module for one item."""
    output: Tensor = module_of(model)(*teacher_forced(model, item).inputs)
    return output


def evaluated(model: Any) -> nn.Module:
    """Return the module; an error in training mode, where dropout changes what runs."""
    module = module_of(model)
    if module.training:
        raise RecordingError("the model is in training mode, so dropout changes what runs; call model.eval() first")
    return module


def log_probability(logits: Tensor, answer: Sequence[int]) -> Tensor:
    """Return the log-probability of an answer that the last rows of the logits predict: (B, T, V) → (B,)."""
    if not answer or len(answer) > logits.shape[1]:
        raise RecordingError(f"an answer has 1 to {logits.shape[1]} tokens here, not {len(answer)}")
    logprobs = logits[:, -len(answer) :].double().log_softmax(dim=-1)
    ids = torch.tensor(list(answer), device=logits.device).expand(len(logits), -1)
    return logprobs.gather(2, ids[..., None])[..., 0].sum(dim=-1)
