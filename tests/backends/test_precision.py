"""Other precisions: 8-bit answers that do not depend on their neighbours and stay near float32, and bf16."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import pytest
import torch

import heedful
from every_model import DECODERS, build, sentences
from heedful.backends import prepare
from heedful.generation import GenerationConfig, GenerationError, Hypothesis, generate
from slow_search import END, START

LENGTHS = (5, 1, 9, 3, 17, 2, 7, 4, 11, 6, 24, 13)
NAMES = ["sinusoidal", "pre-norm", "relative", "additive", "rotary language model"]


def written(answers: list[list[Hypothesis]]) -> list[list[tuple[int, ...]]]:
    return [[answer.tokens for answer in found] for found in answers]


@pytest.mark.parametrize(("name", "beam"), list(product(NAMES, [1, 4])))
def test_in_8_bits_a_batch_is_each_sentence_alone(name: str, beam: int) -> None:
    """To the last bit of the sums of integers: tokens are the same, in any order, batch and padding."""
    model, inputs = build(name).float(), sentences(*LENGTHS)
    config = GenerationConfig(beam=beam, n_best=beam, max_new_tokens=12, precision="int8")
    alone = [generate(model, [ids], config)[0] for ids in inputs]
    order = torch.randperm(len(inputs)).tolist()
    for budget in (16 * 3 * beam, 10**6):
        together = generate(model, [inputs[index] for index in order], config, batch_tokens=budget)
        assert written(together) == written([alone[index] for index in order])
        for index, answers in zip(order, together, strict=True):
            for one, other in zip(answers, alone[index], strict=True):
                assert one.logprob == pytest.approx(other.logprob, rel=1e-6)


@pytest.mark.parametrize(("name", "way"), [*product(DECODERS, [{"beam": 3, "n_best": 3}]), *product(NAMES, [{}])])
def test_in_float32_a_batch_is_each_sentence_alone(name: str, way: dict[str, Any], monkeypatch: Any) -> None:
    """Answers of many lengths, three at once: most begin while others are in the middle of theirs."""
    model, inputs = build(name).float(), sentences(*LENGTHS)
    monkeypatch.setattr(GenerationConfig, "limit", lambda config, length, room: 2 + length % 7)
    alone = [generate(model, [ids], **way)[0] for ids in inputs]
    exact = generate(model.double(), inputs, **way)
    together = generate(model.float(), inputs, batch_tokens=48 * way.get("n_best", 1), **way)
    assert written(together) == written(alone) == written(exact)
    for answers, others in zip(together, exact, strict=True):
        for one, other in zip(answers, others, strict=True):
            assert one.token_logprobs == pytest.approx(other.token_logprobs, rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_8_bits_stay_near_float32(name: str) -> None:
    """Teacher forced by the same prefix, each token's logprob is off by little; and it is off, so 8 bits were used."""
    model, inputs = build(name).float(), sentences(*LENGTHS)
    for parameter in model.parameters():
        parameter.data.mul_(0.5)  # not as peaked as these models are, and so like a trained one's
    prefixes = sentences(*[6] * len(inputs))
    prefixes = [[3 if token == END else token for token in prefix] for prefix in prefixes]
    given: dict[str, Any] = {"prefixes": prefixes, "max_new_tokens": 7}
    exact, rough = (generate(model, inputs, precision=name, **given) for name in ("float32", "int8"))
    errors = [
        abs(one - other)
        for (first,), (second,) in zip(exact, rough, strict=True)
        for one, other in zip(first.token_logprobs[:6], second.token_logprobs[:6], strict=True)
    ]
    assert 0 < sum(errors) / len(errors) < 0.05
    assert max(errors) < 0.3


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("name", DECODERS)
def test_every_model_writes_in_every_precision(name: str, beam: int) -> None:
    model, inputs = build(name).float(), sentences(5, 1, 9)
    for precision in ("bf16", "int8"):
        for answers in generate(model, inputs, beam=beam, n_best=beam, max_new_tokens=5, precision=precision):
            assert len(answers) == beam
            assert all(math.isfinite(answer.logprob) for answer in answers)


def test_bf16_stays_near_float32() -> None:
    model, inputs = build("sinusoidal").float(), sentences(*LENGTHS)
    given: dict[str, Any] = {"prefixes": [[5, 6, 7]] * len(inputs), "max_new_tokens": 4}
    exact, rough = (generate(model, inputs, precision=name, **given) for name in ("float32", "bf16"))
    for (one,), (other,) in zip(exact, rough, strict=True):
        assert other.logprob != one.logprob
        assert other.logprob == pytest.approx(one.logprob, rel=0.1)


def test_8_bits_where_there_are_none_is_said() -> None:
    model = build("sinusoidal").to("meta")
    with pytest.raises(GenerationError, match=r'precision "int8" is for CPUs.* this model is on .*meta'):
        prepare(model, "int8")
    with pytest.raises(heedful.errors.ConfigError, match="unknown value 'int4'"):
        generate(model, [[3]], precision="int4")  # type: ignore[arg-type]


# What is prepared once


def answer(model: Any, precision: Any = "float32") -> Hypothesis:
    return generate(model, [[5, 9, 4]], max_new_tokens=6, precision=precision)[0][0]


def uncached(model: Any, found: Hypothesis) -> float:
    """The logprob of what was written, by the model as it is now."""
    tokens = (*found.tokens, END) if found.finished else found.tokens
    with torch.no_grad():
        logits = model(torch.tensor([[5, 9, 4]]), torch.tensor([[START, *tokens[:-1]]]))[0]
    return float(logits.log_softmax(dim=-1).gather(1, torch.tensor(tokens)[:, None]).sum())


def by_optimizer(model: Any) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.tensor([[5, 9, 4]]), torch.tensor([[1, 3]])).logsumexp(dim=-1).sum().backward()
    optimizer.step()
    optimizer.zero_grad()


def by_loading(model: Any) -> None:
    model.load_state_dict({name: tensor * 1.3 for name, tensor in model.state_dict().items()})


def in_place(model: Any) -> None:
    with torch.no_grad():
        model.decoder.layers[0].self_attention.sublayer.q_proj.weight.mul_(1.5)


def by_replacing(model: Any) -> None:
    model.decoder.layers[1].self_attention.sublayer.out_proj.weight = torch.nn.Parameter(torch.randn(16, 16))


def by_a_new_part(model: Any) -> None:
    model.decoder.norm = torch.nn.LayerNorm(16)


@pytest.mark.parametrize("change", [by_optimizer, by_loading, in_place, by_replacing, by_a_new_part])
@pytest.mark.parametrize("precision", ["float32", "int8", "bf16"])
def test_weights_that_changed_are_noticed(change: Any, precision: str) -> None:
    model = build("pre-norm").float()
    loose = {"float32": 1e-4, "int8": 0.2, "bf16": 0.1}[precision]
    before = answer(model, precision)
    assert before.logprob == pytest.approx(uncached(model, before), rel=loose)
    change(model)
    after = answer(model, precision)
    assert after.logprob == pytest.approx(uncached(model, after), rel=loose)
    assert after != before


def test_what_is_made_is_kept() -> None:
    model = build("sinusoidal").float()
    ready = prepare(model)
    assert prepare(model) is ready
    assert prepare(model, "int8") is not ready
    assert prepare(model, "int8") is prepare(model, "int8")
    assert prepare(model) is ready
    assert prepare(model.double()) is not ready


def test_what_stays_as_it_is_is_no_second_set_of_weights() -> None:
    model = build("sinusoidal")  # in float64, for which nothing is laid out anew
    own = {parameter.data_ptr() for parameter in model.parameters()}
    assert {parameter.data_ptr() for parameter in prepare(model).module.parameters()} == own


def test_the_model_itself_is_left_alone() -> None:
    model = build("sinusoidal").float().train()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    kinds = [type(part) for part in model.modules()]
    for precision in ("float32", "int8", "bf16"):
        answer(model, precision)
    assert [type(part) for part in model.modules()] == kinds
    assert all(part.training for part in model.modules())
    for name, tensor in model.state_dict().items():
        assert tensor.dtype == torch.float32
        assert torch.equal(tensor, before[name])
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_whoever_watches_sees_every_step() -> None:
    model = build("sinusoidal").float()
    quiet = answer(model)
    with heedful.record(model) as recording:
        watched = answer(model)
    assert watched.tokens == quiet.tokens
    assert recording.cross[0].shape[-1] == 3
    assert answer(model).tokens == quiet.tokens
