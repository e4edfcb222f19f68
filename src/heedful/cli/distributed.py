"""Commands in several processes: the inputs are divided among them, and only the first process prints."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import torch

from ..data.loader import Shard
from ..generation import Hypothesis
from ..training.parallel import SingleProcess, world
from .console import console, errors


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
    name = model.batch_method
    if group.size == 1 or name is None:
        return
    local = getattr(model, name)
    to_plain, from_plain = PLAIN[name]

    def shared(items: Sequence[Any], *arguments: Any) -> list[Any]:
        if name == "generate" and arguments[0].sample:  # samples must equal those of one process
            return list(local(items, *arguments))
        if name == "outputs":
            for index, text in enumerate(items):
                model._numbered(text, index)  # the first process reports texts that are invalid or cut
        share = Shard(group.rank, group.size).rows(items)
        results = [to_plain(result) for result in local(share, *arguments)] if share else []
        gathered = group.broadcast_object(group.gather_objects(results))
        return [from_plain(gathered[index % group.size][index // group.size]) for index in range(len(items))]

    setattr(model, name, shared)


def _hypothesis(tokens: list[int], token_logprobs: list[float], **values: Any) -> Hypothesis:
    return Hypothesis(tokens=tuple(tokens), token_logprobs=tuple(token_logprobs), **values)


# By `batch_method`, how a result becomes plain values and back: objects travel between processes as JSON.
PLAIN: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "generate": (
        lambda n_best: [asdict(hypothesis) for hypothesis in n_best],
        lambda n_best: [_hypothesis(**values) for values in n_best],
    ),
    "outputs": (
        lambda output: (list(output.shape), output.flatten().tolist()),
        lambda plain: torch.tensor(plain[1]).reshape(plain[0]),
    ),
    "look": (lambda answer: answer, lambda answer: answer),
}
