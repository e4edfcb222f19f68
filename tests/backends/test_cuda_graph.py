"""The step in fixed slots, which a GPU replays: the same answers as the step that grows."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from every_model import DECODERS, build, sentences
from heedful.backends import prepare
from heedful.backends.single_step import GraphProgram
from heedful.generation import GenerationConfig, generate, stream
from heedful.generation.runners import Runner
from slow_search import same

LENGTHS = (5, 1, 9, 3, 9, 2, 7, 4)


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> list[GraphProgram]:
    """Let every batch run in a program, as on a GPU. Returns the programs that ran."""
    programs: list[GraphProgram] = []

    def allocate(runner: Any, width: int, capacity: int) -> Any:
        if runner._single_step is None:
            return runner
        in_slots = runner.in_slots(width, capacity)
        programs.append(in_slots._program)
        return in_slots

    monkeypatch.setattr(Runner, "allocate", allocate)
    return programs


@pytest.mark.parametrize(("name", "beam"), list(product(DECODERS, [1, 3])))
def test_slots_give_the_same_answers(name: str, beam: int, programs: list[GraphProgram], monkeypatch: Any) -> None:
    """Few at once, so that some leave and others take their slots."""
    model, inputs = build(name), sentences(*LENGTHS)
    config = GenerationConfig(beam=beam, n_best=beam, max_new_tokens=11, batch_tokens=16 * 3 * beam)
    got = generate(model, inputs, config)
    assert bool(programs) == (prepare(model).single_step is not None)
    monkeypatch.undo()
    for answers, wanted in zip(got, generate(model, inputs, config), strict=True):
        same(answers, wanted)


def test_more_short_sentences_than_there_are_slots_wait_their_turn(
    programs: list[GraphProgram], monkeypatch: Any
) -> None:
    """Once the long ones have left, the budget would allow more than the program has slots for."""
    model, inputs = build("sinusoidal"), sentences(*[30] * 3, *[2] * 40)
    got = generate(model, inputs, max_new_tokens=6, batch_tokens=100)
    assert programs
    monkeypatch.undo()
    for answers, wanted in zip(got, generate(model, inputs, max_new_tokens=6), strict=True):
        same(answers, wanted)


def test_two_streams_at_once_do_not_share_slots(programs: list[GraphProgram]) -> None:
    model = build("sinusoidal")
    alone = [list(stream(model, ids, max_new_tokens=9, suppress_tokens=[2])) for ids in ([5, 6], [7, 8])]
    pairs = zip(*(stream(model, ids, max_new_tokens=9, suppress_tokens=[2]) for ids in ([5, 6], [7, 8])), strict=True)
    assert [list(tokens) for tokens in zip(*pairs, strict=True)] == alone
    assert len({id(program) for program in programs[-2:]}) == 2
