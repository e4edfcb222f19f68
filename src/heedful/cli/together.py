"""A verb in one of several processes: each does its share of the work, and the first one speaks for all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, TypeVar

import torch
from torch import Tensor

from ..data.share import Share
from ..generation import GenerationConfig, Hypothesis, SearchStep
from ..tasks.images import ImageClassifier
from ..tasks.reader import Reader, Text
from ..tasks.text_generator import TextGenerator
from ..training.parallel import Alone, world
from .words import console, errors

T = TypeVar("T")


@contextmanager
def together() -> Iterator[Alone]:
    """The world of this process. In all but the first the terminal is quiet; what one dies of, the first one says."""
    here = world()
    console.quiet = errors.quiet = here.rank > 0
    with here.guarded():
        yield here


def deal(model: Any, here: Alone) -> None:
    """From now on each process answers a share of what the model is asked, and all get all answers.

    A model that is asked in another way is asked all of it by each.
    """
    if here.size == 1:
        return
    # Of this one object alone: the tasks know nothing of processes, and nothing is asked of it in another way.
    if isinstance(model, TextGenerator):
        model.generate = _generating(model, here)  # type: ignore[method-assign]  # of this object alone
    elif isinstance(model, Reader):
        model.outputs = _reading(model, here)  # type: ignore[method-assign]  # of this object alone
    elif isinstance(model, ImageClassifier):
        look = model.look
        model.look = lambda prepared: _dealt(here, prepared, look)  # type: ignore[method-assign]  # of this object alone


def _generating(model: TextGenerator, here: Alone) -> Callable[..., list[list[Hypothesis]]]:
    generate = model.generate

    def dealt(
        inputs: Sequence[Sequence[int]], config: GenerationConfig, search_trace: list[list[SearchStep]] | None = None
    ) -> list[list[Hypothesis]]:
        if config.sample or search_trace is not None:  # chance falls as it does for one process; a trace is of all
            return generate(inputs, config, search_trace)

        def work(share: Sequence[Sequence[int]]) -> list[list[dict[str, Any]]]:
            return [[asdict(hypothesis) for hypothesis in several] for several in generate(share, config)]

        return [[_hypothesis(**values) for values in several] for several in _dealt(here, inputs, work)]

    return dealt


def _hypothesis(tokens: list[int], token_logprobs: list[float], **values: Any) -> Hypothesis:
    return Hypothesis(tokens=tuple(tokens), token_logprobs=tuple(token_logprobs), **values)


def _reading(model: Reader, here: Alone) -> Callable[..., list[Tensor]]:
    own = model.outputs

    def outputs(texts: Sequence[Text]) -> list[Tensor]:
        for index, text in enumerate(texts):
            model._numbered(text, index)  # what is wrong with one, or cut from it, is said by the first process
        found = _dealt(here, texts, lambda share: [(list(one.shape), one.flatten().tolist()) for one in own(share)])
        return [torch.tensor(values).reshape(shape) for shape, values in found]

    return outputs


def _dealt(here: Alone, items: Sequence[T], work: Callable[[Sequence[T]], Sequence[Any]]) -> list[Any]:
    """Plain values for all items, in order, each from the process in whose share it is."""
    share = Share(here.rank, here.size).rows(items)
    found = here.tell(here.collect(work(share) if share else []))
    return [found[index % here.size][index // here.size] for index in range(len(items))]
