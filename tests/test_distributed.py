"""A model that several processes ask: each answers its share of the items, and all have all answers."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from threading import Barrier
from typing import Any, ClassVar

import numpy as np
import pytest

from every_task import TINY
from heedful.cli.distributed import share_work
from heedful.training.parallel import SingleProcess

SIZE = 2
TEXTS = ["I read.", "The cat sleeps in the garden.", "We drink water.", "She was far from here.", "He ran."]
IMAGES = [np.full((16, 16), value, dtype=np.uint8) for value in (0, 60, 120, 180, 240)]
CASES: dict[str, tuple[str, list[Any], Callable[[Any], int]]] = {  # the hook that is shared out, and how much it got
    "en-ko": ("generate", TEXTS, len),
    "writer": ("generate", TEXTS, len),
    "feelings": ("outputs", TEXTS, len),
    "pictures": ("look", IMAGES, len),
}


class Thread(SingleProcess):
    """One of some threads that do as processes would."""

    size = SIZE
    meeting = Barrier(SIZE)
    said: ClassVar[dict[int, Any]] = {}

    def __init__(self, rank: int) -> None:
        self.rank = rank

    def broadcast_object(self, value: Any) -> Any:
        return self._shared(value)[0]

    def gather_objects(self, value: Any) -> list[Any]:
        return self._shared(value)

    def _shared(self, value: Any) -> list[Any]:
        self.said[self.rank] = value
        self.meeting.wait(60)
        all_said = [self.said[rank] for rank in range(SIZE)]
        self.meeting.wait(60)
        return all_said


def about(answers: list[Any]) -> list[Any]:
    """Other neighbours in a batch, other last digits."""
    return [pytest.approx(one, abs=1e-5) if isinstance(one, dict) else one for one in answers]


@pytest.mark.parametrize("name", CASES)
def test_each_answers_its_share_and_all_have_all_answers(name: str) -> None:
    hook, items, count = CASES[name]
    model = TINY[name]()
    alone = model.predict(items)
    models = [model, copy(model)]  # what is put in the place of a method is an object's own
    asked = [0] * SIZE

    def answers(rank: int) -> Any:
        model = models[rank]
        own = getattr(model, hook)

        def counted(given: Any, *more: Any) -> Any:
            asked[rank] += count(given)
            return own(given, *more)

        setattr(model, hook, counted)
        share_work(model, Thread(rank))
        return model.predict(items)

    with ThreadPoolExecutor(SIZE) as threads:
        for found in threads.map(answers, range(SIZE)):
            assert found == about(alone)
    assert asked == [3, 2]


def test_chance_falls_as_it_does_for_one_process() -> None:
    words = {"sample": True, "seed": 3, "max_new_tokens": 6}
    model = TINY["writer"]()
    share_work(model, Thread(0))  # alone: nobody else comes to the meeting
    assert model.predict(TEXTS, **words) == TINY["writer"]().predict(TEXTS, **words)
