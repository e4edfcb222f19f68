"""Commands in several processes: the inputs are divided among them, and only the first process prints."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, TypeVar

import torch
from torch import Tensor

from ..data.loader import Shard
from ..generation import GenerationConfig, Hypothesis
from ..tasks.text_encoder import Text
from ..training.parallel import SingleProcess, world
from .console import console, errors

T = TypeVar("T")


@contextmanager
def joined_processes() -> Iterator[SingleProcess]:
    """Join the process group. Only the first process prints, including errors of the other ones."""
    group = world()
    console.quiet = errors.quiet = group.rank > 0
    with group.guarded():
        yield group


def share_work(model: Any, group: SingleProcess) -> None:
    """Replace the model's batch method by one that divides its inputs among the processes; all get all results.

    Without a `batch_method`, each process computes everything. The method is replaced in this object only, so that
    tasks need not know of processes.
    """
    if group.size > 1 and model.batch_method is not None:
        setattr(model, model.batch_method, SHARED[model.batch_method](model, group))


def _shared_generate(model: Any, group: SingleProcess) -> Callable[..., list[list[Hypothesis]]]:
    local = model.generate

    def generate(inputs: Sequence[Sequence[int]], config: GenerationConfig) -> list[list[Hypothesis]]:
        if config.sample:  # samples must equal those of one process
            return local(inputs, config)

        def generate_share(share: Sequence[Sequence[int]]) -> list[list[dict[str, Any]]]:
            return [[asdict(hypothesis) for hypothesis in n_best] for n_best in local(share, config)]

        gathered = _gather(group, inputs, generate_share)
        return [[_hypothesis(**values) for values in n_best] for n_best in gathered]

    return generate


def _hypothesis(tokens: list[int], token_logprobs: list[float], **values: Any) -> Hypothesis:
    return Hypothesis(tokens=tuple(tokens), token_logprobs=tuple(token_logprobs), **values)


def _shared_outputs(model: Any, group: SingleProcess) -> Callable[..., list[Tensor]]:
    local = model.outputs

    def outputs_of_share(share: Sequence[Text]) -> list[tuple[list[int], list[float]]]:
        return [(list(output.shape), output.flatten().tolist()) for output in local(share)]

    def outputs(texts: Sequence[Text]) -> list[Tensor]:
        for index, text in enumerate(texts):
            model._numbered(text, index)  # the first process reports texts that are invalid or cut
        return [torch.tensor(values).reshape(shape) for shape, values in _gather(group, texts, outputs_of_share)]

    return outputs


def _shared_look(model: Any, group: SingleProcess) -> Callable[..., list[Any]]:
    local = model.look
    return lambda prepared: _gather(group, prepared, local)


SHARED: dict[str, Callable[[Any, SingleProcess], Callable[..., Any]]] = {  # by `batch_method`
    "generate": _shared_generate,
    "outputs": _shared_outputs,
    "look": _shared_look,
}


def _gather(group: SingleProcess, items: Sequence[T], work: Callable[[Sequence[T]], Sequence[Any]]) -> list[Any]:
    """Return the results of all items in order; each process does the work for its share."""
    share = Shard(group.rank, group.size).rows(items)
    answers = group.broadcast_object(group.gather_objects(work(share) if share else []))
    return [answers[index % group.size][index // group.size] for index in range(len(items))]
