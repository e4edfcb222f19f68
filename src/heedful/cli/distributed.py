"""A command in one of several processes: each does its share of the work, and the first one speaks for all."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, TypeVar

import torch
from torch import Tensor

from ..data.loader import Shard
from ..generation import GenerationConfig, Hypothesis, SearchStep
from ..tasks.text_encoder import Text
from ..training.parallel import SingleProcess, world
from .console import console, errors

T = TypeVar("T")


@contextmanager
def joined_processes() -> Iterator[SingleProcess]:
    """The process group. In all processes but the first the terminal is quiet; what one dies of, the first one says."""
    group = world()
    console.quiet = errors.quiet = group.rank > 0
    with group.guarded():
        yield group


def share_work(model: Any, group: SingleProcess) -> None:
    """From now on each process answers a share of what the model is asked, and all get all answers.

    A model that has no `batch_method` is asked all of it by each. The method is replaced in this one object alone:
    the tasks know nothing of processes.
    """
    if group.size > 1 and model.batch_method is not None:
        setattr(model, model.batch_method, SHARED[model.batch_method](model, group))


def _generation(model: Any, group: SingleProcess) -> Callable[..., list[list[Hypothesis]]]:
    local = model.generate

    def generate(
        inputs: Sequence[Sequence[int]], config: GenerationConfig, search_trace: list[list[SearchStep]] | None = None
    ) -> list[list[Hypothesis]]:
        if config.sample or search_trace is not None:  # chance falls as it does for one process; a trace is of all
            return local(inputs, config, search_trace)

        def work(share: Sequence[Sequence[int]]) -> list[list[dict[str, Any]]]:
            return [[asdict(hypothesis) for hypothesis in several] for several in local(share, config)]

        return [[_hypothesis(**values) for values in several] for several in _gathered(group, inputs, work)]

    return generate


def _hypothesis(tokens: list[int], token_logprobs: list[float], **values: Any) -> Hypothesis:
    return Hypothesis(tokens=tuple(tokens), token_logprobs=tuple(token_logprobs), **values)


def _reading(model: Any, group: SingleProcess) -> Callable[..., list[Tensor]]:
    local = model.outputs

    def work(share: Sequence[Text]) -> list[tuple[list[int], list[float]]]:
        return [(list(output.shape), output.flatten().tolist()) for output in local(share)]

    def outputs(texts: Sequence[Text]) -> list[Tensor]:
        for index, text in enumerate(texts):
            model._numbered(text, index)  # what is wrong with one, or cut from it, is said by the first process
        return [torch.tensor(values).reshape(shape) for shape, values in _gathered(group, texts, work)]

    return outputs


def _looking(model: Any, group: SingleProcess) -> Callable[..., list[Any]]:
    local = model.look
    return lambda prepared: _gathered(group, prepared, local)


SHARED: dict[str, Callable[[Any, SingleProcess], Callable[..., Any]]] = {  # by `batch_method`
    "generate": _generation,
    "outputs": _reading,
    "look": _looking,
}


def _gathered(group: SingleProcess, items: Sequence[T], work: Callable[[Sequence[T]], Sequence[Any]]) -> list[Any]:
    """Plain values for all items, in order, each from the process in whose share it is."""
    share = Shard(group.rank, group.size).rows(items)
    answers = group.broadcast_object(group.gather_objects(work(share) if share else []))
    return [answers[index % group.size][index // group.size] for index in range(len(items))]
