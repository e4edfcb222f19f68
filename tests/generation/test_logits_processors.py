"""What may be written: penalties, n-grams, bans, boosts, prefixes and the least length, against what they say."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import permutations, product
from typing import Any

import pytest
import torch

from every_model import LANGUAGE_MODELS, LIMIT, V, build, sentences
from heedful.errors import DataError
from heedful.generation import GenerationConfig, GenerationError, Hypothesis, generate
from heedful.generation.strategies import repeating_tokens
from slow_search import END, beam_search, same, translator_as_function

WAYS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "beam": {"beam": 3, "n_best": 3},
    "sample": {"sample": True, "n_best": 3, "temperature": 2.0},
}
MODELS = ["sinusoidal", "additive", "alibi language model"]


def answers_of(found: Sequence[Sequence[Hypothesis]]) -> list[Hypothesis]:
    return [answer for answers in found for answer in answers]


def test_the_tokens_that_would_complete_a_run() -> None:
    """Against: write each token, and look for its run among those before."""
    some = 0
    for size, tokens in product((1, 2, 3, 4), (each for n in range(7) for each in product(range(3), repeat=n))):
        wanted = set()
        for token in range(3):
            written = (*tokens, token)
            *before, last = [written[i : i + size] for i in range(len(written) - size + 1)] or [()]
            wanted |= {token} if last in before else set()
        assert repeating_tokens(tokens, size) == wanted
        some += bool(wanted)
    assert some > 1000


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", MODELS)
def test_no_run_comes_twice(name: str, way: str) -> None:
    """A prompt counts: what a language model goes on with may not repeat it."""
    model, inputs = build(name), sentences(5, 1, 8)
    if name in LANGUAGE_MODELS:
        inputs = [[ids[0], *dict.fromkeys(ids)] for ids in inputs]  # a prompt's own runs may repeat
    settings = {"max_new_tokens": 12, "suppress_tokens": [END], **WAYS[way]}
    repeated = 0
    for ids, answers in zip(inputs, generate(model, inputs, **settings), strict=True):
        repeated += sum(repeats(ids, name, answer.tokens, 2) for answer in answers)
    assert repeated  # without the rule
    for size in (1, 2, 3):
        for ids, answers in zip(inputs, generate(model, inputs, no_repeat_ngram_size=size, **settings), strict=True):
            assert not any(repeats(ids, name, answer.tokens, size) for answer in answers)


def repeats(ids: Sequence[int], name: str, written: tuple[int, ...], size: int) -> int:
    """How many runs that end in the answer were there before."""
    past = tuple(ids) if name in LANGUAGE_MODELS else ()
    tokens = past + written
    runs = [tokens[i : i + size] for i in range(len(tokens) - size + 1)]
    ends = [i + size - 1 >= len(past) for i in range(len(runs))]
    return sum(new and run in runs[:i] for i, (run, new) in enumerate(zip(runs, ends, strict=True)))


@pytest.mark.parametrize("name", MODELS)
def test_a_penalty_for_repetition_is_that_of_the_formula(name: str) -> None:
    """Greedy, step by step over an uncached forward pass: positive logits divided, negative ones multiplied."""
    model, inputs, penalty = build(name), sentences(5, 1, 8), 1.7
    ours = generate(model, inputs, repetition_penalty=penalty, logit_bias={4: 1.5, 7: -2.0}, max_new_tokens=8)
    for ids, (answer,) in zip(inputs, ours, strict=True):
        function, written = translator_as_function(model, ids), list[int]()
        score = 0.0
        while len(written) < 8 and END not in written:
            logits = raw_logits(model, ids, written)
            logits[4] += 1.5
            logits[7] -= 2.0
            for token in {*written, *(ids if name in LANGUAGE_MODELS else ())}:
                logits[token] = logits[token] / penalty if logits[token] > 0 else logits[token] * penalty
            written.append(int(logits.argmax()))
            score += float(logits.log_softmax(dim=0).max())
        assert list(answer.tokens) == [token for token in written if token != END]
        assert math.isclose(answer.score, score / len(written))
        plain = [function(tuple(written[:i]))[token] for i, token in enumerate(written)]
        assert answer.token_logprobs == pytest.approx(plain)  # the model's own


def raw_logits(model: Any, ids: Sequence[int], written: Sequence[int]) -> torch.Tensor:
    with torch.no_grad():
        if hasattr(model, "encode"):
            return model(torch.tensor([list(ids)]), torch.tensor([[1, *written]]))[0, -1]
        return model(torch.tensor([[*ids, *written]]))[0, -1]


@pytest.mark.parametrize("way", WAYS)
def test_bans_are_kept_and_boosts_are_felt(way: str) -> None:
    model, inputs = build("sinusoidal"), sentences(5, 1, 8, 3)
    settings = {"max_new_tokens": 8, **WAYS[way]}
    before = {token for answer in answers_of(generate(model, inputs, **settings)) for token in answer.tokens}
    banned = sorted(before)[:3]
    for answer in answers_of(generate(model, inputs, suppress_tokens=banned, **settings)):
        assert not set(answer.tokens) & set(banned)
    rare = next(token for token in range(V) if token not in before and token != END)
    for best, *_ in generate(model, inputs, logit_bias={rare: 80.0}, **settings):
        assert set(best.tokens) == {rare}
        assert best.logprob < best.score  # what the model itself thinks of it
    assert answers_of(generate(model, inputs, logit_bias={END: -50.0}, **settings))[0].finished is False


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", MODELS)
def test_a_prefix_is_what_every_answer_begins_with(name: str, way: str) -> None:
    """Of another length for each input; its tokens have the logprobs of the model."""
    model, inputs = build(name), sentences(5, 1, 8, 3)
    prefixes = [[7, 7, 7], [], [4, 9], [6]]
    settings = {"max_new_tokens": 7, "no_repeat_ngram_size": 2, **WAYS[way]}  # which the first prefix breaks, as asked
    for ids, prefix, answers in zip(
        inputs, prefixes, generate(model, inputs, prefixes=prefixes, **settings), strict=True
    ):
        assert len(answers) == settings.get("n_best", 1)
        function = translator_as_function(model, ids)
        for answer in answers:
            assert list(answer.tokens[: len(prefix)]) == prefix
            written = (*answer.tokens, END) if answer.finished else answer.tokens
            expected = [function(written[:i])[token] for i, token in enumerate(written)]
            assert answer.token_logprobs == pytest.approx(expected)


def test_a_beam_behind_a_prefix_is_the_beam_of_what_follows() -> None:
    model, (ids,) = build("sinusoidal"), sentences(5)
    prefix, config = (7, 4), GenerationConfig(beam=3, n_best=3, length_penalty=0.0)
    whole = translator_as_function(model, ids)
    same_after = beam_search(lambda written: whole((*prefix, *written)), 6, config)
    own = whole(())[7] + whole((7,))[4]
    (got,) = generate(model, [ids], config, prefixes=[prefix], max_new_tokens=8)
    wanted = [
        Hypothesis((*prefix, *answer.tokens), answer.logprob + own, answer.score + own, answer.finished)
        for answer in same_after
    ]
    same(got, wanted)


@pytest.mark.parametrize("way", WAYS)
def test_the_least_length_is_each_sentence_s_own(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two at a time, and some are cut early, so that others begin in the middle; the end is all but certain."""
    model, inputs = build("rotary language model"), sentences(5, 1, 8, 3, 9, 2, 7, 7, 4)
    monkeypatch.setattr(GenerationConfig, "limit", lambda config, length, room: 2 + length % 7)
    settings = {"logit_bias": {END: 50.0}, "batch_tokens": 32 * WAYS[way].get("n_best", 1), **WAYS[way]}
    lengths = set()
    for ids, (best, *_) in zip(inputs, generate(model, inputs, min_new_tokens=4, **settings), strict=True):
        limit = 2 + len(ids) % 7
        assert (len(best.tokens), best.finished) == ((4, True) if limit > 4 else (limit, False))
        lengths.add(len(best.tokens))
    assert lengths == {2, 3, 4}


@pytest.mark.parametrize("name", ["learned", "learned language model"])
def test_what_contradicts_itself_is_refused(name: str) -> None:
    model = build(name)
    for prefixes, said in (
        ([[5]], "there are 2 inputs and 1 prefixes"),
        ([[], [5, 6]], "the prefix of input 1 has the token 6, which suppress_tokens forbids"),
        ([[5, END], []], "the prefix of input 0 contains the end token 2"),
        ([[], [5] * 8], "the prefix of input 1 has 8 tokens; an answer may have 8 with its end"),
    ):
        with pytest.raises(DataError, match=said):
            generate(model, [[3], [4]], prefixes=prefixes, suppress_tokens=[6], max_new_tokens=8)
    with pytest.raises(DataError, match="may have"):
        generate(model, [[3]], prefixes=[[5] * LIMIT])
    with pytest.raises(GenerationError, match=f"from 0 to {V - 1}, not {V}"):
        generate(model, [[3]], prefixes=[[V]])
    if hasattr(model, "encode"):
        with pytest.raises(DataError, match=f"start must be one of this model's tokens, from 0 to 22, not {V}"):
            generate(model, [[3]], start=V)
    for ids in ([3, V], [-1]):
        with pytest.raises(
            DataError, match=f"input 1 has the token {ids[-1]}, but this model's tokens go from 0 to 22"
        ):
            generate(model, [[3], ids])


def test_a_vocabulary_that_is_used_up_is_said() -> None:
    """Each token once: three are written, and then there is none; unless the end may come."""
    model = build("sinusoidal", vocab_size=4)
    with pytest.raises(GenerationError, match="every next token for input 0 is impossible"):
        generate(model, [[3, 1]], no_repeat_ngram_size=1, suppress_tokens=[END])
    (answers,) = generate(model, [[3, 1]], beam=50, n_best=50, no_repeat_ngram_size=1)
    every = [words for n in range(4) for words in permutations((0, 1, 3), n)]
    assert sorted(answer.tokens for answer in answers) == sorted(every)
