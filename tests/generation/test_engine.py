"""The engine around the search: sequences that join a running batch, traces, streams, memory that runs out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product, takewhile
from typing import Any

import pytest
import torch

from every_model import DECODERS, V, build, sentences
from heedful.errors import ConfigError, DataError
from heedful.generation import GenerationConfig, Hypothesis, generate, stream
from heedful.generation.runners import DecoderOnlyRunner, EncoderDecoderRunner, Runner
from heedful.generation.sequence import SearchStep
from slow_search import END, same, translator_as_function

LENGTHS = (5, 1, 9, 3, 9, 2, 7, 4, 11, 6)
MODELS = ["sinusoidal", "additive", "rotary language model"]


class Watched:
    """How many rows each step had, and how many sentences joined one that ran."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fits: float = math.inf) -> None:
        self.steps: list[int] = []
        self.joined: list[int] = []
        begin, extend = Runner.__init__, Runner.extend

        def noted_extend(rows: Runner, other: Any) -> None:
            self.joined.append(len(other.starts))
            extend(rows, other)

        def noted_begin(rows: Runner, model: Any, starts: Sequence[int], device: Any) -> None:
            self._refuse(len(starts), fits)
            begin(rows, model, starts, device)

        monkeypatch.setattr(Runner, "extend", noted_extend)
        monkeypatch.setattr(Runner, "__init__", noted_begin)
        for kind in (EncoderDecoderRunner, DecoderOnlyRunner):
            self._watch(monkeypatch, kind, fits)

    def _watch(self, monkeypatch: pytest.MonkeyPatch, kind: Any, fits: float) -> None:
        step = kind.step

        def noted_step(rows: Any, tokens: torch.Tensor) -> torch.Tensor:
            self._refuse(len(tokens), fits)
            self.steps.append(len(tokens))
            return step(rows, tokens)

        monkeypatch.setattr(kind, "step", noted_step)

    @staticmethod
    def _refuse(rows: int, fits: float) -> None:
        if rows > fits:
            raise torch.OutOfMemoryError(f"no room for {rows} rows")


@pytest.mark.parametrize(("name", "way"), [*product(DECODERS, ["beam"]), *product(MODELS, ["greedy", "sample"])])
def test_those_that_join_later_are_answered_as_if_alone(name: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Room for three: when one is done, another takes its place, while the others are in the middle of theirs."""
    model, inputs = build(name), sentences(*LENGTHS)
    ways: dict[str, dict[str, Any]] = {"beam": {"beam": 3, "n_best": 3}, "sample": {"sample": True, "n_best": 2}}
    config = GenerationConfig(**ways.get(way, {}))
    monkeypatch.setattr(GenerationConfig, "limit", lambda config, length, room: 2 + length % 7)  # of many lengths
    alone = [generate(model, [ids], config)[0] for ids in inputs]
    watched = Watched(monkeypatch)
    together = generate(model, inputs, config, batch_tokens=16 * 3 * config.width)
    assert watched.joined
    assert max(watched.steps) == 3 * config.width
    for got, wanted in zip(together, alone, strict=True):
        same(got, wanted, tolerance=1e-11)
        for one, other in zip(got, wanted, strict=True):
            assert one.token_logprobs == pytest.approx(other.token_logprobs, rel=1e-11)


@pytest.mark.parametrize("name", MODELS)
def test_token_logprobs_are_those_of_one_forward_pass(name: str) -> None:
    model, inputs = build(name), sentences(5, 1, 9)
    for ids, answers in zip(inputs, generate(model, inputs, beam=4, n_best=4, max_new_tokens=7), strict=True):
        function = translator_as_function(model, ids)
        for answer in answers:
            written = (*answer.tokens, END) if answer.finished else answer.tokens
            assert answer.token_logprobs == pytest.approx([function(written[:i])[t] for i, t in enumerate(written)])
            assert answer.logprob == pytest.approx(sum(answer.token_logprobs), rel=1e-12)
            assert answer.probability == pytest.approx(math.exp(answer.logprob))


# Search traces


@pytest.mark.parametrize("name", MODELS)
def test_a_history_tells_the_whole_search(name: str) -> None:
    """Replayed from the candidates alone, it gives the answers."""
    model, inputs, beam = build(name), sentences(5, 1, 9, 3), 3
    config = GenerationConfig(beam=beam, n_best=beam, max_new_tokens=7, length_penalty=0.8, batch_tokens=16 * 2 * beam)
    met = set()
    for boost in (0.0, 1.0, 2.0, 4.0):
        traces: list[list[SearchStep]] = []
        found = generate(model, inputs, config, logit_bias={END: boost}, search_trace=traces)
        assert len(traces) == len(inputs)
        for history, answers in zip(traces, found, strict=True):
            met |= {each.outcome for step in history for each in step}
            replayed = sorted(replay(history, beam, config), key=lambda answer: -answer.score)
            assert replayed[:beam] == answers
    assert met == {"open", "ended", "cut", "below the beam", "end below the beam"}


def replay(history: Sequence[SearchStep], beam: int, config: GenerationConfig) -> Iterator[Hypothesis]:
    prefixes: list[tuple[tuple[int, ...], tuple[float, ...], float]] = [((), (), 0.0)]
    for length, step in enumerate(history, 1):
        assert len(step) == (beam + 1 if length == 1 else 2 * beam)  # one prefix has no more than can be needed
        totals = [each.candidate.total for each in step]
        assert totals == sorted(totals, reverse=True)
        assert len({(each.candidate.beam, each.candidate.token) for each in step}) == len(step)
        following = []
        for each in step:
            tokens, own, total = prefixes[each.candidate.beam]
            assert each.candidate.total <= total + 1e-12  # it can only fall
            tokens, own = (*tokens, each.candidate.token), (*own, each.candidate.logprob)
            if each.outcome == "open":
                following.append((tokens, own, each.candidate.total))
            elif each.outcome in ("ended", "cut"):
                ended = each.outcome == "ended"
                assert ended == (tokens[-1] == END)
                score = each.candidate.total / length**config.length_penalty
                yield Hypothesis(tokens[:-1] if ended else tokens, sum(own), score, ended, own)
        assert len(following) <= beam
        prefixes = following


@pytest.mark.parametrize("n_best", [1, 3])
def test_the_history_of_samples_is_what_was_drawn(n_best: int) -> None:
    model, inputs = build("sinusoidal"), sentences(5, 2)
    traces: list[list[SearchStep]] = []
    found = generate(
        model, inputs, sample=True, n_best=n_best, logit_bias={END: 1.0}, max_new_tokens=8, search_trace=traces
    )
    for history, answers in zip(traces, found, strict=True):
        drawn = []
        for row in range(n_best):
            fates = [history[0][row], *(each for step in history[1:] for each in step if each.candidate.beam == row)]
            assert [each.outcome for each in fates[:-1]] == ["open"] * (len(fates) - 1)
            assert fates[-1].outcome in ("ended", "cut")
            drawn.append(tuple(each.candidate.token for each in fates if each.outcome != "ended"))
        assert sorted(drawn) == sorted(answer.tokens for answer in answers)


# Streams


@pytest.mark.parametrize("way", [{}, {"beam": 4}, {"sample": True, "temperature": 0.7}, {"beam": 3, "n_best": 3}])
@pytest.mark.parametrize("name", MODELS)
def test_a_stream_gives_the_tokens_of_the_answer(name: str, way: dict[str, Any]) -> None:
    model, inputs = build(name), sentences(5, 1, 9, 3)
    for ids in inputs:
        settings = {"max_new_tokens": 9, "logit_bias": {END: 1.0}, **way}
        ((best, *_),) = generate(model, [ids], prefixes=[[4]], **settings)
        tokens = stream(model, ids, prefix=[4], **settings)
        came = [(token, tokens.answer) for token in tokens]
        assert tuple(token for token, _ in came) == best.tokens
        assert {answer for _, answer in came} == {None}  # while they come
        assert list(tokens) == []  # there is no more, and the answer stays
        assert tokens.answer == best


def test_a_beam_streams_what_all_that_is_left_agrees_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A token comes as soon as every open answer, and the best that ended, begins with those up to it."""
    model, waits = build("additive"), set()
    watched = Watched(monkeypatch)
    for ids in sentences(5, 1, 9, 3, 2, 4):
        watched.steps.clear()
        traces: list[list[SearchStep]] = []
        seen = [(token, len(watched.steps)) for token in stream(model, ids, beam=2, max_new_tokens=12)]
        ((best,),) = generate(model, [ids], beam=2, max_new_tokens=12, search_trace=traces)
        agreed = [agreement(traces[0][:n], best) for n in range(1, len(traces[0]) + 1)]
        for place, (token, step) in enumerate(seen):
            assert token == best.tokens[place]
            sure = next((n for n, length in enumerate(agreed) if length > place), len(agreed) - 1)
            assert step == sure
            waits.add(len(agreed) - 1 - step)
    assert len(waits) > 3  # some came long before the end


def agreement(history: Sequence[SearchStep], best: Hypothesis) -> int:
    """With how many tokens all begin that are still possible after these steps."""
    prefixes: list[tuple[int, ...]] = [()]
    ended: list[tuple[float, tuple[int, ...]]] = []
    for length, step in enumerate(history, 1):
        grown = [(each, (*prefixes[each.candidate.beam], each.candidate.token)) for each in step]
        ended += [(each.candidate.total / length, tokens[:-1]) for each, tokens in grown if each.outcome == "ended"]
        prefixes = [tokens for each, tokens in grown if each.outcome == "open"]
    possible = [*prefixes, *([max(ended)[1]] if ended else [])] or [best.tokens]
    return sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, zip(*possible, strict=False)))


def test_a_greedy_token_comes_as_soon_as_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    model, (ids,) = build("sinusoidal"), sentences(5)
    watched = Watched(monkeypatch)
    steps = [len(watched.steps) for _ in stream(model, ids, suppress_tokens=[END], max_new_tokens=6)]
    assert steps == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_between_tokens_the_world_is_as_it_was(precision: Any) -> None:
    """The reader of a stream may train, and the model is as it was, dropout included."""
    model, (ids,) = build("sinusoidal", dropout=0.5).float().train(), sentences(5)
    for _ in stream(model, ids, precision=precision, max_new_tokens=4):
        assert not torch.is_inference_mode_enabled()
        assert torch.is_grad_enabled()
        assert all(part.training for part in model.modules())
    broken = stream(model, ids, max_new_tokens=4)
    next(broken)
    broken.close()
    assert all(part.training for part in model.modules())


def test_what_cannot_be_streamed_is_said_at_once() -> None:
    model = build("sinusoidal")
    with pytest.raises(ConfigError, match="several samples cannot be streamed"):
        stream(model, [3], sample=True, n_best=2)
    with pytest.raises(DataError, match="input 0 is empty"):
        stream(model, [])
    with pytest.raises(DataError, match="suppress_tokens"):
        stream(model, [3], prefix=[5], suppress_tokens=[5])


# Memory


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("name", MODELS)
def test_what_does_not_fit_is_done_in_smaller_batches(name: str, beam: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model, inputs = build(name), sentences(*LENGTHS)
    traces: list[list[SearchStep]] = []
    config = GenerationConfig(beam=beam, n_best=beam, max_new_tokens=7)
    wanted = generate(model, inputs, config, search_trace=traces)
    watched = Watched(monkeypatch, fits=4 * beam)
    again: list[list[SearchStep]] = []
    for got, answers in zip(generate(model, inputs, config, search_trace=again), wanted, strict=True):
        same(got, answers)
    assert 0 < max(watched.steps) <= 4 * beam
    assert [[len(step) for step in trace] for trace in again] == [[len(step) for step in trace] for trace in traces]
    monkeypatch.undo()
    Watched(monkeypatch, fits=beam - 1)
    with pytest.raises(torch.OutOfMemoryError, match=f"no room for {beam or 1} rows"):
        generate(model, inputs, config)


def test_the_same_samples_come_out_when_memory_runs_out(monkeypatch: pytest.MonkeyPatch) -> None:
    model, inputs = build("sinusoidal"), sentences(*LENGTHS)
    wanted = generate(model, inputs, sample=True, max_new_tokens=7)
    Watched(monkeypatch, fits=3)
    got = generate(model, inputs, sample=True, max_new_tokens=7)
    assert [answer.tokens for (answer,) in got] == [answer.tokens for (answer,) in wanted]


def test_a_beam_wider_than_the_vocabulary_gives_all_there_is() -> None:
    model = build("sinusoidal", vocab_size=4)
    (answers,) = generate(model, [[3, 1]], beam=60, n_best=60, max_new_tokens=2)
    assert len(answers) == 1 + 3 * 4  # the end at once, or one of three and then any of four
    assert len({(answer.tokens, answer.finished) for answer in answers}) == 13
    assert sum(answer.probability for answer in answers) == pytest.approx(1)
    (answers,) = generate(build("sinusoidal"), [[3, 1]], beam=V + 5, n_best=V + 5, max_new_tokens=1)
    assert len(answers) == V
