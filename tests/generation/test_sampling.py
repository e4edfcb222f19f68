"""Drawing: what is left to draw from, against transformers' own; that draws follow it; that a seed says all."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product
from random import Random
from typing import Any

import pytest
import torch

from every_model import V, build, sentences
from heedful.errors import ConfigError
from heedful.generation import GenerationConfig, GenerationError, generate
from heedful.generation.strategies import draw, truncated_probabilities
from slow_search import END, START, translator_as_function

RULES = list(product([0.3, 1.0, 2.5], [None, 1, 5, 40], [None, 0.4, 0.95, 1.0], [None, 0.1, 1.0]))


def spread(left: torch.Tensor, tokens: torch.Tensor, size: int) -> torch.Tensor:
    """Shares in the order of the vocabulary."""
    return torch.zeros(*left.shape[:-1], size, dtype=left.dtype).scatter_(-1, tokens, left)


@pytest.mark.parametrize(("temperature", "top_k", "top_p", "min_p"), RULES)
def test_what_is_left_is_what_theirs_leave(
    temperature: float, top_k: int | None, top_p: float | None, min_p: float | None
) -> None:
    """In their order: temperature, top-k, top-p, min-p, each over what the one before left."""
    theirs = pytest.importorskip("transformers")
    logits = 3 * torch.randn(16, 40, dtype=torch.float64)
    rules = [
        (temperature, theirs.TemperatureLogitsWarper),
        (top_k, theirs.TopKLogitsWarper),
        (top_p, theirs.TopPLogitsWarper),
        (min_p, theirs.MinPLogitsWarper),
    ]
    wanted = logits
    for value, rule in rules:
        wanted = wanted if value is None else rule(value)(None, wanted)
    config = GenerationConfig(sample=True, temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p)
    left, tokens = truncated_probabilities(logits.log_softmax(dim=-1), config)
    torch.testing.assert_close(spread(left, tokens, 40), wanted.softmax(dim=-1))
    assert (left.diff(dim=-1) <= 0).all()  # most likely first


def test_a_draw_falls_where_its_number_does() -> None:
    left = torch.tensor([[0.5, 0.25, 0.25, 0.0], [1.0, 0.0, 0.0, 0.0]])
    numbers = torch.tensor([[0.0, 0.499, 0.5, 0.749, 0.75, 1 - 1e-16]] * 2, dtype=torch.float64)
    assert draw(left, numbers).tolist() == [[0, 0, 1, 1, 2, 2], [0] * 6]


def test_draws_follow_the_shares() -> None:
    config = GenerationConfig(sample=True, temperature=1.5, top_k=9, top_p=0.9)
    left, tokens = truncated_probabilities(torch.randn(1, 12).log_softmax(dim=-1), config)
    random, n = Random(0), 20_000
    found = Counter(draw(left, torch.tensor([[random.random() for _ in range(n)]])).flatten().tolist())
    assert chi_square(found, left[0].tolist(), n) < 30  # 8 degrees of freedom: less than one in 4,000
    assert tokens.shape == (1, 9)


def chi_square(found: Counter[int], wanted: list[float], n: int) -> float:
    assert all(wanted[place] > 0 for place in found)
    return sum((found[place] - n * share) ** 2 / (n * share) for place, share in enumerate(wanted) if share)


@pytest.mark.parametrize("name", ["sinusoidal", "rotary language model"])
def test_the_samples_of_a_model_follow_its_own_probabilities(name: str) -> None:
    """Two tokens long: every pair as often as a forward pass says. Each copy of the input is a draw of its own."""
    model, n = build(name, vocab_size=5), 4000
    function = translator_as_function(model, [3, 1])
    given: dict[str, Any] = {"temperature": 1.3, "top_k": 4}
    found: Counter[tuple[int, ...]] = Counter()
    for (answer,) in generate(model, [[3, 1]] * n, sample=True, max_new_tokens=2, batch_tokens=16 * n, **given):
        found[(*answer.tokens, END) if answer.finished else answer.tokens] += 1

    def after(prefix: tuple[int, ...]) -> list[float]:
        config = GenerationConfig(sample=True, temperature=1.3, top_k=4)
        left, tokens = truncated_probabilities(torch.tensor(function(prefix)), config)
        return spread(left, tokens, 5).tolist()

    wanted: dict[tuple[int, ...], float] = {}
    for first, share in enumerate(after(())):
        if first == END:
            wanted[(END,)] = share
        else:
            wanted |= {(first, second): share * other for second, other in enumerate(after((first,)))}
    likely = {answer: share for answer, share in wanted.items() if share > 0}
    assert found.keys() <= likely.keys()
    statistic = sum((found[answer] - n * share) ** 2 / (n * share) for answer, share in likely.items())
    assert statistic < len(likely) + 5 * math.sqrt(2 * len(likely))  # five deviations above its mean


def test_a_seed_says_all_but_what_is_drawn_before() -> None:
    """Neither order, nor company, nor the budget, nor torch's own randomness."""
    model, inputs = build("sinusoidal"), sentences(5, 1, 8, 3, 8, 4)
    settings: dict[str, Any] = {"sample": True, "top_p": 0.9, "max_new_tokens": 9, "n_best": 2}
    alone = [generate(model, [ids], **settings)[0] for ids in inputs]
    torch.manual_seed(99)
    for budget, order in ((4096, [0, 1, 2, 3, 4, 5]), (70, [5, 2, 0, 4, 3, 1])):
        together = generate(model, [inputs[index] for index in order], batch_tokens=budget, **settings)
        for index, answers in zip(order, together, strict=True):
            assert [answer.tokens for answer in answers] == [answer.tokens for answer in alone[index]]
            for one, other in zip(answers, alone[index], strict=True):
                assert math.isclose(one.logprob, other.logprob, rel_tol=1e-9)
    elsewhere = [generate(model, [ids], seed=1, **settings)[0] for ids in inputs]
    assert sum(one == two for one, two in zip(alone, elsewhere, strict=True)) < 2


def test_the_same_input_twice_is_drawn_twice_and_several_samples_are_several() -> None:
    model = build("sinusoidal")
    ids, other = sentences(6, 4)
    first, second = (answer for (answer,) in generate(model, [ids, ids], sample=True, max_new_tokens=9))
    assert first.tokens != second.tokens
    (again,), _, (twin,) = generate(model, [ids, other, ids], sample=True, max_new_tokens=9)
    assert (again.tokens, twin.tokens) == (first.tokens, second.tokens)
    (several,) = generate(model, [ids], sample=True, n_best=5, max_new_tokens=9)
    assert len({answer.tokens for answer in several}) > 1
    assert [answer.score for answer in several] == sorted((answer.score for answer in several), reverse=True)


def test_numbers_of_any_kind_are_the_same_input() -> None:
    model, (ids,) = build("sinusoidal"), sentences(6)
    (wanted,) = generate(model, [ids], sample=True, max_new_tokens=9)
    for given in (tuple(ids), torch.tensor(ids), torch.tensor(ids).numpy()):
        assert generate(model, [given], sample=True, max_new_tokens=9) == [wanted]  # type: ignore[list-item]


def test_as_it_gets_cold_the_draw_is_the_most_likely() -> None:
    model, inputs = build("rotary language model"), sentences(5, 2, 7)
    greedy = generate(model, inputs, max_new_tokens=8)
    colds: list[dict[str, Any]] = [{"temperature": 1e-4}, {"top_k": 1}, {"min_p": 1.0}, {"top_p": 1e-9}]
    for cold in colds:
        answers = generate(model, inputs, sample=True, max_new_tokens=8, **cold)
        assert [answer.tokens for (answer,) in answers] == [answer.tokens for (answer,) in greedy]


def test_a_logprob_is_the_model_s_whatever_was_drawn_from() -> None:
    model, (ids,) = build("sinusoidal"), sentences(4)
    function = translator_as_function(model, ids)
    (answers,) = generate(model, [ids], sample=True, n_best=4, temperature=3.0, top_k=3, max_new_tokens=6)
    for answer in answers:
        written = (*answer.tokens, END) if answer.finished else answer.tokens
        expected = [function(written[:i])[token] for i, token in enumerate(written)]
        assert answer.token_logprobs == pytest.approx(expected)
        assert answer.logprob == pytest.approx(sum(expected))


def test_what_sampling_cannot_do_is_said() -> None:
    model = build("sinusoidal")
    for wrong, said in (
        ({"sample": True, "temperature": 0.0}, "for the most likely tokens, turn sample off"),
        ({"sample": True, "temperature": -1.0}, "temperature must be above 0, not -1.0"),
        ({"sample": True, "beam": 2}, "sampling has no beam"),
        ({"sample": True, "top_k": 0}, "at least 1"),
        ({"sample": True, "top_p": 0.0}, "top_p must be above 0 and at most 1"),
        ({"sample": True, "min_p": 1.1}, "min_p must be above 0 and at most 1"),
        ({"top_k": 5}, "top_k is for sampling, which is off; turn sample on"),
        ({"top_p": 0.5}, "top_p is for sampling"),
        ({"min_p": 0.5}, "min_p is for sampling"),
        ({"temperature": 0.5}, "temperature is for sampling"),
    ):
        with pytest.raises(ConfigError, match=said):
            GenerationConfig(**wrong)
    with pytest.raises(GenerationError, match="suppress fewer tokens"):
        generate(model, [[3]], sample=True, suppress_tokens=range(V))
    assert generate(model, [[3]], sample=True, suppress_tokens=[t for t in range(V) if t != START], max_new_tokens=2)
    assert generate(model, [[3]], sample=True, top_k=10 * V, max_new_tokens=2)
