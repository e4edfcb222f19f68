"""Beyond its context a model goes on from the last half of what it sees, streamed or not."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import heedful
from heedful.data.text_tokenizers import of_characters, of_pieces
from heedful.families import GenerationDefaults, config_of
from heedful.generation import GenerationConfig, generate, stream
from heedful.tasks.language_model import CausalLanguageModel, LanguageModelSettings

LIMIT = 16
TOKENS: dict[str, Any] = {"start": 0, "end": (10,)}


@pytest.fixture(scope="module")
def module() -> Any:
    torch.manual_seed(1)
    return heedful.build("gpt2-tiny", vocab_size=11, d_model=32, n_layers=2, d_ff=64, max_length=LIMIT).eval()


def greedy(module: Any, prompt: list[int], count: int) -> tuple[list[int], float]:
    """By the rule in words, a whole forward for each token; token 10 is the end."""
    ids, seen, total = list(prompt), list(prompt), 0.0
    while len(ids) - len(prompt) < count:
        if len(seen) > LIMIT:
            seen = ids[-LIMIT // 2 :]
        with torch.no_grad():
            logprobs = module(torch.tensor([seen]))[0, -1].log_softmax(-1)
        token = int(logprobs.argmax())
        total += float(logprobs[token])
        if token == 10:
            break
        ids.append(token)
        seen.append(token)
    return ids[len(prompt) :], total


@pytest.mark.parametrize("length", [1, 7, 15, 16])
@pytest.mark.parametrize("count", [1, 9, 40])
def test_greedy_answers_are_as_the_rule_says(module: Any, length: int, count: int) -> None:
    prompt = [(3 * place) % 9 for place in range(length)]
    words = GenerationConfig(max_new_tokens=count)
    ((answer,), (other,)) = generate(module, [prompt, [5, 5]], words, context=LIMIT, **TOKENS)
    tokens, logprob = greedy(module, prompt, count)
    assert list(answer.tokens) == tokens
    assert answer.logprob == pytest.approx(logprob, rel=1e-4)
    assert answer.logprob == pytest.approx(sum(answer.token_logprobs))
    assert list(other.tokens) == greedy(module, [5, 5], count)[0]
    streamed = stream(module, prompt, words, context=LIMIT, **TOKENS)
    assert list(streamed) == tokens
    assert streamed.answer is not None
    assert streamed.answer.tokens == answer.tokens


@pytest.mark.parametrize("words", [{"beam": 3, "n_best": 3}, {"sample": True, "n_best": 2}, {"beam": 2}])
def test_within_its_context_it_is_generate(module: Any, words: dict[str, Any]) -> None:
    asked = GenerationConfig(max_new_tokens=8, **words)
    inputs = [[1, 2], [3], [4, 5, 6]]
    plain = generate(module, inputs, asked, **TOKENS)
    assert generate(module, inputs, asked, context=LIMIT, **TOKENS) == plain
    assert generate(module, inputs, asked, context=None, **TOKENS) == plain


def test_several_samples_and_beams_go_on_each_by_itself(module: Any) -> None:
    sampling = GenerationConfig(sample=True, n_best=3, max_new_tokens=50, seed=4)
    (samples,) = generate(module, [[1, 2]], sampling, context=LIMIT, start=0, end=())
    assert [len(sample.tokens) for sample in samples] == [50] * 3
    assert len({sample.tokens for sample in samples}) == 3
    (again,) = generate(module, [[1, 2]], sampling, context=LIMIT, start=0, end=())
    assert again == samples
    searching = GenerationConfig(beam=3, n_best=2, max_new_tokens=50)
    (best,) = generate(module, [[1, 2]], searching, context=LIMIT, start=0, end=())
    assert [len(answer.tokens) for answer in best] == [50] * 2
    assert best[0].score >= best[1].score
    assert best[0].score == pytest.approx(best[0].logprob / 50)


def test_no_fewer_tokens_are_written_than_asked_for(module: Any) -> None:
    ends: dict[str, Any] = {"start": 0, "end": (1, 2, 3, 4, 5, 6)}
    words = GenerationConfig(sample=True, n_best=8, max_new_tokens=60, min_new_tokens=40)
    (few,) = generate(module, [[7]], words.changed(min_new_tokens=0), context=LIMIT, **ends)
    (many,) = generate(module, [[7]], words, context=LIMIT, **ends)
    assert max(len(answer.tokens) for answer in few) < 40
    assert all(answer.finished and len(answer.tokens) >= 40 for answer in many)


def test_a_long_text_is_streamed_as_it_is_predicted() -> None:
    """Pieces that are bytes among them: a character may be cut where the context ends."""
    for tokenizer in (of_pieces(["to be 나는"], vocab_size=270, min_frequency=1), of_characters("to be", end=False)):
        torch.manual_seed(2)
        config = config_of({"preset": "gpt2-tiny", "d_model": 32, "n_layers": 1, "d_ff": 64, "max_length": LIMIT})
        config = config.changed(vocab_size=tokenizer.vocab_size)
        settings = LanguageModelSettings(
            tokens=GenerationDefaults(start=tokenizer.id_of(" ")),
            generation=GenerationConfig(sample=True, max_new_tokens=60),
            context=LIMIT,
        )
        model = CausalLanguageModel(config, heedful.build(config), tokenizer, settings)
        for seed in range(3):
            (whole,) = model.answers(["to be"], seed=seed)
            assert whole.n_tokens == 60
            bits = model.stream("to be", seed=seed)
            assert "".join(bits) == whole.text
            assert bits.answer == whole
        assert model.predict([]) == []
        assert [answer.n_tokens for answer in model.answers(["", "to"])] == [60, 60]
