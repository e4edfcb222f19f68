"""A batch that never ends: who joins it and when changes nobody's answer, and who leaves it frees a place at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from typing import Any

import pytest
import torch

from every_model import build, sentences
from heedful.errors import NonFiniteOutputError
from heedful.generation import (
    GenerationConfig,
    GenerationEngine,
    Hypothesis,
    RequestState,
    create_requests,
    generate,
)
from heedful.generation.runners import EncoderDecoderRunner
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

    def __init__(self, model: Any, inputs: list[list[int]], **options: Any) -> None:
        special = {"start": 1, "end": 2} | {n: options.pop(n) for n in ("end", "logit_bias") if n in options}
        self.requests = create_requests(model, inputs, GenerationConfig(**options), **special)
        self.hypotheses: dict[int, list[Hypothesis]] = {}
        self.errors: list[Exception] = []
        for request in self.requests:
            request.on_token = self.on_token

    def on_token(self, state: RequestState) -> None:
        if state.error is not None:
            self.errors.append(state.error)
        elif state.finished:
            self.hypotheses[state.request.index] = state.hypotheses


def put(engine: GenerationEngine, model: Any, *inputs: list[int], **options: Any) -> Answers:
    answers = Answers(model, list(inputs), **options)
    for request in answers.requests:
        engine.add_request(request)
    return answers


def finish(engine: GenerationEngine) -> None:
    while engine.has_unfinished_requests:
        engine.step()
    assert (engine.n_waiting, engine.n_running) == (0, 0)


@pytest.mark.parametrize("name", MODELS)
def test_whoever_joins_whenever_is_answered_as_if_alone(name: str) -> None:
    torch.manual_seed(1)
    model, inputs = build(name), sentences(5, 1, 9, 3, 9, 2, 7, 4, 11, 6, 3, 8)
    engine, asked, most = GenerationEngine(model), [], 0
    for index, (row, options) in enumerate(zip(inputs, cycle(WAYS))):
        options = options | {"max_new_tokens": 5 + index, "logit_bias": {END: 2.5}}
        asked.append((row, options, put(engine, model, row, row, **options)))  # twice: a sample is drawn twice
        for _ in range(index % 3):  # others come between two steps
            engine.step()
            most = max(most, engine.n_running)
    finish(engine)
    lengths = set()
    for row, options, answers in asked:
        alone = generate(model, [row, row], **options)
        for place, found in enumerate(alone):
            same(answers.hypotheses[place], found)
            lengths.add(len(found[0].tokens))
    assert len(lengths) > 3
    assert most > 6


def test_several_workers_write_what_one_writes() -> None:
    torch.manual_seed(1)
    model, inputs = build("sinusoidal"), sentences(*range(1, 31))
    options: dict[str, Any] = {"beam": 2, "max_new_tokens": 12, "logit_bias": {END: 2.5}}
    engine, steps = GenerationEngine(model, n_workers=2), [0, 0]
    asked = [put(engine, model, row, row, **options) for row in inputs]

    def write(worker: int) -> None:
        while engine.has_unfinished_requests:
            if engine.has_work_for(worker):
                engine.step(worker)
                steps[worker] += 1

    with ThreadPoolExecutor(2) as threads:
        assert [*threads.map(write, range(2))] == [None, None]
    assert all(steps)
    assert (engine.n_waiting, engine.n_running) == (0, 0)
    for row, answers in zip(inputs, asked, strict=True):
        for place, found in enumerate(generate(model, [row, row], **options)):
            same(answers.hypotheses[place], found)


def test_another_worker_begins_only_when_one_has_enough() -> None:
    model = build("sinusoidal")
    engine = GenerationEngine(model, n_workers=2)
    options: dict[str, Any] = {"end": (), "max_new_tokens": 9}
    put(engine, model, *sentences(3, 3, 3), **options)
    assert engine.has_work_for(1)  # whoever comes first
    engine.step(0)
    put(engine, model, *sentences(*[3] * 10), **options)
    assert not engine.has_work_for(1)
    engine.step(1)
    assert (engine.n_running, engine.n_waiting) == (3, 10)
    engine.step(0)
    put(engine, model, *sentences(*[3] * 19), **options)  # 32: each may have 16
    engine.step(0)
    assert engine.n_waiting == 16
    assert engine.has_work_for(1)
    engine.step(1)
    assert (engine.n_running, engine.n_waiting) == (32, 0)


@pytest.mark.parametrize("beam", [1, 3, 5, 10])
def test_nobody_waits_for_a_worker_that_waits_for_another(beam: int) -> None:
    model = build("sinusoidal")
    engine = GenerationEngine(model, n_workers=4)
    for _ in range(12):
        put(engine, model, *sentences(3), end=(), max_new_tokens=9, beam=beam)
        for worker in range(4):
            if engine.has_work_for(worker):
                engine.step(worker)
        assert engine.n_waiting == 0


def test_a_worker_has_no_work_with_those_for_whom_there_is_no_room() -> None:
    model = build("sinusoidal")
    engine = GenerationEngine(model, n_workers=2)
    put(engine, model, *sentences(*[3] * 20), end=(), max_new_tokens=9, batch_tokens=16 * 16)
    engine.step(0)
    assert (engine.n_running, engine.n_waiting) == (16, 4)
    assert not engine.has_work_for(1)
    while engine.n_running:
        engine.step(0)
    assert engine.has_work_for(1)


def test_those_who_ask_for_the_same_way_share_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    model = build("sinusoidal")
    rows: list[int] = []
    step = EncoderDecoderRunner.step

    def noted(self: EncoderDecoderRunner, tokens: torch.Tensor) -> torch.Tensor:
        rows.append(len(tokens))
        return step(self, tokens)

    monkeypatch.setattr(EncoderDecoderRunner, "step", noted)
    engine = GenerationEngine(model)
    for seed in range(4):
        put(engine, model, *sentences(3), sample=True, seed=seed, max_new_tokens=4 + seed, end=())
    put(engine, model, *sentences(3), end=(), max_new_tokens=4)
    finish(engine)
    # Four samples together until the shortest is done; greedy search takes three steps of its own between them.
    assert sorted(rows) == [1, 1, 1, 1, 2, 3, 4, 4, 4]


def test_who_leaves_frees_a_place_at_the_next_step_and_disturbs_nobody() -> None:
    model, (gone, staying, late) = build("rotary language model"), sentences(4, 6, 2)
    engine = GenerationEngine(model)
    options: dict[str, Any] = {"end": (), "max_new_tokens": 9}
    leaving = put(engine, model, gone, gone, **options)
    stays = put(engine, model, staying, **options)
    engine.step()
    waits = put(engine, model, late, **options)
    assert (engine.n_running, engine.n_waiting) == (3, 1)
    engine.abort(*leaving.requests)
    engine.abort(*waits.requests)
    assert engine.n_waiting == 0
    engine.step()
    assert engine.n_running == 1
    finish(engine)
    assert not leaving.hypotheses
    assert not leaving.errors
    assert not waits.hypotheses
    same(stays.hypotheses[0], generate(model, [staying], **options)[0])


def test_who_came_first_begins_first_whatever_way_they_ask_for() -> None:
    model = build("sinusoidal")
    engine = GenerationEngine(model)
    rows, began = sentences(*[3] * 12), list[int]()

    def note(state: RequestState) -> None:
        if state.request.index not in began:
            began.append(state.request.index)

    options: dict[str, Any] = {"batch_tokens": 2 * 3 * 16}  # room for two beams of three, or six without
    for index, row in enumerate(rows):
        more: dict[str, Any] = {"beam": 3} if index in (3, 7) else {}
        config = GenerationConfig(**options, **more, max_new_tokens=3 + index % 4)
        (request,) = create_requests(model, [row], config, start=1, end=())
        request.index, request.on_token = index, note
        engine.add_request(request)
    engine.step()
    assert engine.n_waiting == 12 - 4  # three, and the beam behind them, fill it
    finish(engine)
    assert [index for index in began if index not in (3, 7)] == [n for n in range(12) if n not in (3, 7)]
    assert began.index(3) <= 4
    assert began.index(7) <= 8


def test_one_that_fails_fails_alone() -> None:
    torch.manual_seed(0)
    model = build("sinusoidal")
    with torch.no_grad():
        model.source_embedding.weight[7] = torch.nan
    engine = GenerationEngine(model)
    options: dict[str, Any] = {"end": (), "max_new_tokens": 5}
    broken, whole = put(engine, model, [3, 7, 4], **options), put(engine, model, [3, 5, 4], **options)
    finish(engine)
    assert "NaN" in str(broken.errors[0])
    assert isinstance(broken.errors[0], NonFiniteOutputError)
    same(whole.hypotheses[0], generate(model, [[3, 5, 4]], **options)[0])


def test_a_batch_that_breaks_tells_everyone_and_the_next_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    model = build("sinusoidal")
    engine = GenerationEngine(model)
    answers = put(engine, model, *sentences(3, 4), end=())
    engine.step()
    with monkeypatch.context() as broken:
        broken.setattr(EncoderDecoderRunner, "step", lambda self, tokens: 1 / 0)
        finish(engine)
    assert [type(error) for error in answers.errors] == [ZeroDivisionError] * 2
    again = put(engine, model, [5, 6])
    finish(engine)
    same(again.hypotheses[0], generate(model, [[5, 6]])[0])
    left = put(engine, model, *sentences(3, 4), end=())
    engine.step()
    waiting = put(engine, model, [5])
    engine.fail_all(OSError("closed"))
    assert [str(error) for error in [*left.errors, *waiting.errors]] == ["closed"] * 3
    assert not engine.has_unfinished_requests


def test_what_does_not_fit_the_memory_is_begun_again_with_less(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(2)
    model, rows = build("sinusoidal"), sentences(3, 9, 4, 6, 2, 8, 5, 7)
    options: dict[str, Any] = {"sample": True, "max_new_tokens": 6}
    alone = [generate(model, [row], **options)[0] for row in rows]
    step, most = EncoderDecoderRunner.step, [0]

    def with_little_room(self: EncoderDecoderRunner, tokens: torch.Tensor) -> torch.Tensor:
        if len(tokens) > 3:
            raise torch.OutOfMemoryError("no room")
        most.append(len(tokens))
        return step(self, tokens)

    monkeypatch.setattr(EncoderDecoderRunner, "step", with_little_room)
    engine = GenerationEngine(model)
    asked = [put(engine, model, row, **options) for row in rows]
    finish(engine)
    for answers, found in zip(asked, alone, strict=True):
        same(answers.hypotheses[0], found)
    assert max(most) in (2, 3)
