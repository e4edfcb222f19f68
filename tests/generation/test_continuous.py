"""A batch that never ends: who joins it and when changes nobody's answer, and who leaves it frees a place at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import cycle
from typing import Any

import pytest
import torch

from every_model import build, sentences
from heedful.generation import GenerationError, Hypothesis, generate
from heedful.generation.continuous import Continuous
from heedful.generation.engine import Asked
from heedful.generation.models import FromSource
from heedful.generation.sentence import Sentence
from slow_search import END, same

MODELS = ["sinusoidal", "additive", "rotary language model"]
WAYS: list[dict[str, Any]] = [
    {},
    {"beam": 3, "n_best": 2},
    {"sample": True, "seed": 5, "n_best": 2},
    {"beam": 3, "length_penalty": 0.2},
    {"sample": True, "seed": 6, "n_best": 2},
    {"min_new_tokens": 3},
]


class Answers:
    """What came of one call."""

    def __init__(self, model: Any, inputs: list[list[int]], **words: Any) -> None:
        self.asked = Asked.of(model, inputs, **words)
        self.found: dict[int, list[Hypothesis]] = {}
        self.errors: list[Exception] = []

    def told(self, sentence: Sentence) -> None:
        if sentence.error is not None:
            self.errors.append(sentence.error)
        elif sentence.settled:
            self.found[sentence.request.index] = sentence.best


def put(writing: Continuous, model: Any, *inputs: list[int], **words: Any) -> Answers:
    answers = Answers(model, list(inputs), **words)
    writing.put(answers.asked, answers.told)
    return answers


def finish(writing: Continuous) -> None:
    while writing.has_work:
        writing.step()
    assert (writing.waiting, writing.running) == (0, 0)


@pytest.mark.parametrize("name", MODELS)
def test_whoever_joins_whenever_is_answered_as_if_alone(name: str) -> None:
    torch.manual_seed(1)
    model, inputs = build(name), sentences(5, 1, 9, 3, 9, 2, 7, 4, 11, 6, 3, 8)
    writing, asked, most = Continuous(), [], 0
    for index, (row, words) in enumerate(zip(inputs, cycle(WAYS))):
        words = words | {"max_new_tokens": 5 + index, "boosted": {END: 2.5}}
        asked.append((row, words, put(writing, model, row, row, **words)))  # twice: a sample is drawn twice
        for _ in range(index % 3):  # others come between two steps
            writing.step()
            most = max(most, writing.running)
    finish(writing)
    lengths = set()
    for row, words, answers in asked:
        alone = generate(model, [row, row], **words)
        for place, found in enumerate(alone):
            same(answers.found[place], found)
            lengths.add(len(found[0].tokens))
    assert len(lengths) > 3
    assert most > 6


def test_several_hands_write_what_one_writes() -> None:
    torch.manual_seed(1)
    model, inputs = build("sinusoidal"), sentences(*range(1, 31))
    words: dict[str, Any] = {"beam": 2, "max_new_tokens": 12, "boosted": {END: 2.5}}
    writing, steps = Continuous(hands=2), [0, 0]
    asked = [put(writing, model, row, row, **words) for row in inputs]

    def write(hand: int) -> None:
        while writing.has_work:
            if writing.has_work_for(hand):
                writing.step(hand)
                steps[hand] += 1

    with ThreadPoolExecutor(2) as threads:
        assert [*threads.map(write, range(2))] == [None, None]
    assert all(steps)
    assert (writing.waiting, writing.running) == (0, 0)
    for row, answers in zip(inputs, asked, strict=True):
        for place, found in enumerate(generate(model, [row, row], **words)):
            same(answers.found[place], found)


def test_another_hand_begins_only_when_one_has_enough() -> None:
    model, writing = build("sinusoidal"), Continuous(hands=2)
    words: dict[str, Any] = {"end": (), "max_new_tokens": 9}
    put(writing, model, *sentences(3, 3, 3), **words)
    assert writing.has_work_for(1)  # whoever comes first
    writing.step(0)
    put(writing, model, *sentences(*[3] * 10), **words)
    assert not writing.has_work_for(1)
    writing.step(1)
    assert (writing.running, writing.waiting) == (3, 10)
    writing.step(0)
    put(writing, model, *sentences(*[3] * 19), **words)  # 32: each may have 16
    writing.step(0)
    assert writing.waiting == 16
    assert writing.has_work_for(1)
    writing.step(1)
    assert (writing.running, writing.waiting) == (32, 0)


@pytest.mark.parametrize("beam", [1, 3, 5, 10])
def test_nobody_waits_for_a_hand_that_waits_for_another(beam: int) -> None:
    model, writing = build("sinusoidal"), Continuous(hands=4)
    for _ in range(12):
        put(writing, model, *sentences(3), end=(), max_new_tokens=9, beam=beam)
        for hand in range(4):
            if writing.has_work_for(hand):
                writing.step(hand)
        assert writing.waiting == 0


def test_a_hand_has_no_work_with_those_for_whom_there_is_no_room() -> None:
    model, writing = build("sinusoidal"), Continuous(hands=2)
    put(writing, model, *sentences(*[3] * 20), end=(), max_new_tokens=9, batch_tokens=16 * 16)
    writing.step(0)
    assert (writing.running, writing.waiting) == (16, 4)
    assert not writing.has_work_for(1)
    while writing.running:
        writing.step(0)
    assert writing.has_work_for(1)


def test_those_who_ask_for_the_same_way_share_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    model = build("sinusoidal")
    rows: list[int] = []
    step = FromSource.step

    def noted(self: FromSource, tokens: torch.Tensor) -> torch.Tensor:
        rows.append(len(tokens))
        return step(self, tokens)

    monkeypatch.setattr(FromSource, "step", noted)
    writing = Continuous()
    for seed in range(4):
        put(writing, model, *sentences(3), sample=True, seed=seed, max_new_tokens=4 + seed, end=())
    put(writing, model, *sentences(3), end=(), max_new_tokens=4)
    finish(writing)
    # Four samples together until the shortest is done; greedy search takes three steps of its own between them.
    assert sorted(rows) == [1, 1, 1, 1, 2, 3, 4, 4, 4]


def test_who_leaves_frees_a_place_at_the_next_step_and_disturbs_nobody() -> None:
    model, (gone, staying, late) = build("rotary language model"), sentences(4, 6, 2)
    writing = Continuous()
    words: dict[str, Any] = {"end": (), "max_new_tokens": 9}
    leaving = put(writing, model, gone, gone, **words)
    stays = put(writing, model, staying, **words)
    writing.step()
    waits = put(writing, model, late, **words)
    assert (writing.running, writing.waiting) == (3, 1)
    writing.leave(leaving.asked)
    writing.leave(waits.asked)
    assert writing.waiting == 0
    writing.step()
    assert writing.running == 1
    finish(writing)
    assert not leaving.found
    assert not leaving.errors
    assert not waits.found
    same(stays.found[0], generate(model, [staying], **words)[0])


def test_who_came_first_begins_first_whatever_way_they_ask_for() -> None:
    model, writing = build("sinusoidal"), Continuous()
    rows, began = sentences(*[3] * 12), list[int]()

    def note(index: int, sentence: Sentence) -> None:
        if index not in began:
            began.append(index)

    words: dict[str, Any] = {"end": (), "batch_tokens": 2 * 3 * 16}  # room for two beams of three, or six without
    for index, row in enumerate(rows):
        more: dict[str, Any] = {"beam": 3} if index in (3, 7) else {}
        asked = Asked.of(model, [row], **words, **more, max_new_tokens=3 + index % 4)
        writing.put(asked, partial(note, index))
    writing.step()
    assert writing.waiting == 12 - 4  # three, and the beam behind them, fill it
    finish(writing)
    assert [index for index in began if index not in (3, 7)] == [n for n in range(12) if n not in (3, 7)]
    assert began.index(3) <= 4
    assert began.index(7) <= 8


def test_one_that_fails_fails_alone() -> None:
    torch.manual_seed(0)
    model = build("sinusoidal")
    with torch.no_grad():
        model.source_embedding.weight[7] = torch.nan
    writing = Continuous()
    words: dict[str, Any] = {"end": (), "max_new_tokens": 5}
    broken, whole = put(writing, model, [3, 7, 4], **words), put(writing, model, [3, 5, 4], **words)
    finish(writing)
    assert "NaN" in str(broken.errors[0])
    assert isinstance(broken.errors[0], GenerationError)
    same(whole.found[0], generate(model, [[3, 5, 4]], **words)[0])


def test_a_batch_that_breaks_tells_everyone_and_the_next_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    model, writing = build("sinusoidal"), Continuous()
    answers = put(writing, model, *sentences(3, 4), end=())
    writing.step()
    with monkeypatch.context() as broken:
        broken.setattr(FromSource, "step", lambda self, tokens: 1 / 0)
        finish(writing)
    assert [type(error) for error in answers.errors] == [ZeroDivisionError] * 2
    again = put(writing, model, [5, 6])
    finish(writing)
    same(again.found[0], generate(model, [[5, 6]])[0])
    left = put(writing, model, *sentences(3, 4), end=())
    writing.step()
    waiting = put(writing, model, [5])
    writing.close(OSError("closed"))
    assert [str(error) for error in [*left.errors, *waiting.errors]] == ["closed"] * 3
    assert not writing.has_work


def test_what_does_not_fit_the_memory_is_begun_again_with_less(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(2)
    model, rows = build("sinusoidal"), sentences(3, 9, 4, 6, 2, 8, 5, 7)
    words: dict[str, Any] = {"sample": True, "max_new_tokens": 6}
    alone = [generate(model, [row], **words)[0] for row in rows]
    step, most = FromSource.step, [0]

    def with_little_room(self: FromSource, tokens: torch.Tensor) -> torch.Tensor:
        if len(tokens) > 3:
            raise torch.OutOfMemoryError("no room")
        most.append(len(tokens))
        return step(self, tokens)

    monkeypatch.setattr(FromSource, "step", with_little_room)
    writing = Continuous()
    asked = [put(writing, model, row, **words) for row in rows]
    finish(writing)
    for answers, found in zip(asked, alone, strict=True):
        same(answers.found[0], found)
    assert max(most) in (2, 3)
