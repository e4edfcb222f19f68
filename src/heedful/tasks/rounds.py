"""Calls of `generate` that follow from each other's answers, apart from who makes them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Generic, NamedTuple, TypeVar

from ..generation import GenerationConfig, Hypothesis

T = TypeVar("T")


class Call(NamedTuple):
    """What `generate` is asked for: inputs in ids, and how to answer them."""

    inputs: Sequence[Sequence[int]]
    words: GenerationConfig


Found = list[list[Hypothesis]]  # to one call
Rounds = Generator[list[Call], list[Found], T]  # calls that may be made together, and what was found, until it is done


class Done(NamedTuple, Generic[T]):
    """What came of it all."""

    result: T


def after(rounds: Rounds[T], found: list[Found] | None) -> list[Call] | Done[T]:
    """What is to be asked next, once this was found; None before the first round."""
    try:
        return rounds.send(found) if found is not None else next(rounds)
    except StopIteration as end:
        return Done(end.value)


def played(rounds: Rounds[T], generate: Callable[[Call], Found]) -> T:
    """Make every call, one after the other, and give back what comes of it."""
    calls = after(rounds, None)
    while not isinstance(calls, Done):
        calls = after(rounds, [generate(call) for call in calls])
    return calls.result
