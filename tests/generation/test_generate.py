"""generate() over models of every wiring, against slow searches over their uncached forward pass."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from every_model import CLASSIFIERS, DECODERS, LIMIT, build, sentences
from heedful.errors import ConfigError, DataError
from heedful.generation import GenerationConfig, GenerationError, Hypothesis, generate
from slow_search import END, START, beam_search, exhaustive, greedy_search, same, translator_as_function

LENGTHS = (5, 1, 8, 3, 8)


def as_functions(model: Any, inputs: list[list[int]]) -> list[Any]:
    return [translator_as_function(model, ids) for ids in inputs]


@pytest.mark.parametrize("penalty", ["power", "google"])
@pytest.mark.parametrize("name", ["sinusoidal", "relative", "additive", "one vector", "rotary language model"])
def test_a_beam_that_holds_everything_finds_the_best_answers(name: str, penalty: Any) -> None:
    vocab_size = 4
    model = build(name, vocab_size=vocab_size)
    config = GenerationConfig(beam=200, n_best=8, max_new_tokens=4, min_new_tokens=1, length_penalty_kind=penalty)
    inputs = [[3, 1, 2], [0, 2], [1, 3, 3, 0, 2]]
    for got, function in zip(generate(model, inputs, config), as_functions(model, inputs), strict=True):
        same(got, exhaustive(function, vocab_size, 4, config)[:8])


@pytest.mark.parametrize("name", DECODERS)
def test_cached_and_batched_equals_uncached_and_alone(name: str) -> None:
    """The slow search knows neither cache, batch, padding nor early stopping."""
    model, inputs = build(name), sentences(*LENGTHS)
    config = GenerationConfig(beam=3, n_best=3, max_new_tokens=8)
    functions = as_functions(model, inputs)
    for got, function in zip(generate(model, inputs, config), functions, strict=True):
        same(got, beam_search(function, 8, config))
    for (best,), function in zip(generate(model, inputs, max_new_tokens=8), functions, strict=True):
        assert best.tokens == greedy_search(function, 8)


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("name", ["sinusoidal", "relative", "additive", "rotary language model"])
def test_an_answer_does_not_depend_on_its_neighbours(name: str, beam: int) -> None:
    """Order, company and padding change nothing, nor does the default limit, which is each input's own."""
    model, inputs = build(name), sentences(*LENGTHS)
    alone = [generate(model, [ids], beam=beam, n_best=beam)[0] for ids in inputs]
    for budget, order in ((4096, [0, 1, 2, 3, 4]), (100, [4, 2, 1, 3, 0])):
        answers = generate(model, [inputs[index] for index in order], beam=beam, n_best=beam, batch_tokens=budget)
        for index, answer in zip(order, answers, strict=True):
            same(answer, alone[index], tolerance=1e-12)


@pytest.mark.parametrize("name", ["alibi", "additive", "learned language model"])
def test_a_logprob_is_that_of_a_forward_pass(name: str) -> None:
    model, inputs = build(name), sentences(4, 7)
    found = generate(model, inputs, beam=5, n_best=5, length_penalty=0.7, max_new_tokens=12)
    for ids, answers in zip(inputs, found, strict=True):
        assert len({answer.tokens for answer in answers}) == 5
        assert [answer.score for answer in answers] == sorted((answer.score for answer in answers), reverse=True)
        for answer in answers:
            function = translator_as_function(model, ids)
            written = (*answer.tokens, END) if answer.finished else answer.tokens
            assert math.isclose(answer.logprob, sum(function(written[:i])[token] for i, token in enumerate(written)))
            assert math.isclose(answer.score, answer.logprob / len(written) ** 0.7)


def test_float32_says_what_float64_says() -> None:
    model, inputs = build("sinusoidal"), sentences(*LENGTHS)
    exact = generate(model, inputs, beam=3, max_new_tokens=12)
    for (got,), (wanted,) in zip(generate(model.float(), inputs, beam=3, max_new_tokens=12), exact, strict=True):
        assert got.tokens == wanted.tokens
        assert math.isclose(got.logprob, wanted.logprob, rel_tol=1e-4)


@pytest.mark.parametrize("beam", [1, 3])
def test_low_precision_runs(beam: int) -> None:
    model, inputs = build("sinusoidal").float(), sentences(*LENGTHS)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        automatic = generate(model, inputs, beam=beam, max_new_tokens=5)
    for answers in (automatic, generate(model.bfloat16(), inputs, beam=beam, max_new_tokens=5)):
        assert all(math.isfinite(answer.logprob) for (answer,) in answers)


def test_the_length_of_an_answer_is_bounded_and_a_cut_is_marked() -> None:
    model, inputs = build("additive"), sentences(4, 11)
    never_ends = generate(model, inputs, suppress_tokens=[END])
    assert [len(answer.tokens) for (answer,) in never_ends] == [2 * 4 + 20, 2 * 11 + 20]
    assert not any(answer.finished for (answer,) in never_ends)
    for answers in generate(model, inputs, beam=3, n_best=3, min_new_tokens=4, max_new_tokens=6):
        for answer in answers:
            assert 4 <= len(answer.tokens) <= (5 if answer.finished else 6)


@pytest.mark.parametrize("beam", [1, 3])
def test_a_model_without_an_end_writes_to_the_limit(beam: int) -> None:
    model, inputs = build("rotary language model"), sentences(4, 7)
    for ids, (best,) in zip(inputs, generate(model, inputs, beam=beam, max_new_tokens=6, end=()), strict=True):
        assert len(best.tokens) == 6
        assert not best.finished
        if beam == 1:
            logits = model(torch.tensor([[*ids, *best.tokens]]))[0]
            assert logits.argmax(dim=-1)[len(ids) - 1 : -1].tolist() == list(best.tokens)


def test_batches_keep_to_their_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    model, inputs = build("none"), sentences(*range(1, 40))
    read, encode = [], model.encode

    def noted(ids: torch.Tensor, keep: Any) -> torch.Tensor:
        read.append(tuple(ids.shape))
        return encode(ids, keep)

    monkeypatch.setattr(model, "encode", noted)
    generate(model, inputs, beam=2, batch_tokens=200, max_new_tokens=2)
    assert [rows for rows, _ in read] == [2, 2, 2, 3, 3, 3, 4, 5, 6, 6, 3]
    assert all(2 * rows * max(length, 16) <= 200 for rows, length in read)
    read.clear()
    generate(model, inputs[-2:], batch_tokens=1, max_new_tokens=2)
    assert read == [(1, 39), (1, 38)]


def test_the_model_s_own_positions_end_an_answer_too() -> None:
    translator, language_model = build("learned"), build("learned language model")
    (answer,), *_ = generate(translator, [[3] * LIMIT], suppress_tokens=[END])
    assert len(answer.tokens) == LIMIT
    (answer,), *_ = generate(language_model, [[3] * 30], suppress_tokens=[END])
    assert len(answer.tokens) == LIMIT - 30 + 1  # the last one is written and never read
    assert not answer.finished
    for model in (translator, language_model):
        with pytest.raises(DataError, match="input 1 has 41 tokens, more than this model's positions"):
            generate(model, [[3], [3] * 41])


def test_what_cannot_be_generated_is_said() -> None:
    model = build("sinusoidal")
    assert generate(model, []) == []
    with pytest.raises(DataError, match="input 1 is empty"):
        generate(model, [[3], []])
    with pytest.raises(GenerationError, match="EncoderOnly has no decoder"):
        generate(build(next(iter(CLASSIFIERS))), [[3]])
    with pytest.raises(ConfigError, match="did you mean 'beam'"):
        generate(model, [[3]], beams=3)  # type: ignore[call-arg]  # a type checker refuses it, too
    for wrong, said in (
        ({"beam": 0}, "at least 1"),
        ({"n_best": 3, "beam": 2}, "cannot give the 3 best"),
        ({"min_new_tokens": -1}, "must be 0 or more, not -1"),
        ({"max_new_tokens": 3, "min_new_tokens": 3}, "includes the end token"),
        ({"length_penalty_kind": "square"}, "unknown value"),
        ({"length_penalty": 11}, "from -10 to 10"),
    ):
        with pytest.raises(ConfigError, match=said):
            generate(model, [[3]], **wrong)


def test_the_start_is_the_one_given() -> None:
    model = build("sinusoidal")
    by_start = [generate(model, [[4, 5]], start=start, max_new_tokens=1, beam=5)[0][0].logprob for start in (1, 7)]
    for start, logprob in zip((START, 7), by_start, strict=True):
        logits = model(torch.tensor([[4, 5]]), torch.tensor([[start]]))[0, -1].detach()
        assert math.isclose(logprob, float(logits.log_softmax(dim=-1).max()))


def test_the_model_is_left_as_it_was() -> None:
    model = build("sinusoidal", dropout=0.5)
    quiet = generate(model, [[4, 5]])
    model.train()
    model.encoder.eval()
    before = {name: part.training for name, part in model.named_modules()}
    assert generate(model, [[4, 5]]) == quiet  # no dropout
    with pytest.raises(DataError):
        generate(model, [[]])
    assert {name: part.training for name, part in model.named_modules()} == before
    with pytest.raises(TypeError):
        generate(model, [[0.5]])  # type: ignore[list-item]
    assert {name: part.training for name, part in model.named_modules()} == before
    assert all(parameter.grad is None for parameter in model.parameters())


def test_a_hypothesis_says_what_it_is() -> None:
    assert Hypothesis((3, 4), -1.5, -0.5) == Hypothesis(tokens=(3, 4), logprob=-1.5, score=-0.5, finished=True)
