"""The figures of layers against torch.nn: gradients, sizes and likeness by depth, and neurons by hand."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from heedful.learn.figures import figure_data
from heedful.learn.figures.layers import N_TOKENS, WIDTH, WRITER, feed_forward_of, random_stack, small_writer


@pytest.mark.parametrize("wiring", ["post", "pre"])
def test_traces_are_those_of_torch_nn(wiring: str) -> None:
    depth = 6
    encoder: Any = random_stack(wiring, depth)
    generator = torch.Generator().manual_seed(1)
    x, gradient = torch.randn(2, 1, N_TOKENS, WIDTH, generator=generator)
    state = x.requires_grad_()
    states = [state]
    for layer in encoder.layers:
        reference = nn.TransformerEncoderLayer(
            WIDTH, 4, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=wiring == "pre"
        )
        attention, network = layer.self_attention.sublayer, layer.feed_forward.sublayer
        reference.self_attn.in_proj_weight.data = torch.cat([attention.q_proj.weight, attention.kv_proj.weight])
        reference.self_attn.in_proj_bias.data = torch.cat([attention.q_proj.bias, attention.kv_proj.bias])
        reference.self_attn.out_proj.load_state_dict(attention.out_proj.state_dict())
        reference.linear1.load_state_dict(network.up_proj.state_dict())
        reference.linear2.load_state_dict(network.down_proj.state_dict())
        if not states[-1].is_leaf:
            states[-1].retain_grad()
        states.append(reference(states[-1] if len(states) > 1 else _with_positions(states[-1])))
    states[-1].retain_grad()
    output = F.layer_norm(states[-1], (WIDTH,)) if wiring == "pre" else states[-1]
    output.backward(gradient)
    measured = figure_data("through-the-layers", "en")["traces"][str(depth)][wiring]
    sizes = [float(state.detach().norm(dim=-1).mean()) for state in states[1:]]
    assert measured["size"][1:] == pytest.approx(sizes, abs=0.02)
    lengths = torch.stack([state.grad.norm() for state in states if state.grad is not None])
    assert measured["gradient"] == pytest.approx((lengths / lengths[-1]).log10().tolist(), abs=0.01)
    units = F.normalize(states[-1].detach()[0], dim=-1)
    cosines = [float(units[a] @ units[b]) for a in range(N_TOKENS) for b in range(a)]
    assert measured["likeness"][-1] == pytest.approx(sum(cosines) / len(cosines), abs=0.002)


def _with_positions(x: torch.Tensor) -> torch.Tensor:
    place, feature = torch.arange(N_TOKENS)[:, None], torch.arange(WIDTH)
    angle = place / 10000 ** ((feature - feature % 2) / WIDTH)
    return x + torch.where(feature % 2 == 0, angle.sin(), angle.cos())


def test_only_the_bypass_keeps_gradient_and_tokens() -> None:
    traces = figure_data("through-the-layers", "en")["traces"]["24"]
    assert -8 < traces["bare"]["gradient"][0] < -6
    assert all(abs(traces[wiring]["gradient"][0]) < 1 for wiring in ("norm", "post", "pre"))
    assert traces["norm"]["likeness"][3] > 0.99 > 0.9 > traces["pre"]["likeness"][-1]


@pytest.mark.parametrize("language", ["en", "ko"])
def test_neurons_are_those_of_the_formula(language: str) -> None:
    data, (writer, words, _) = figure_data("neurons", language), small_writer(language)
    model: Any = writer
    network = feed_forward_of(model)
    seen: list[torch.Tensor] = []
    network.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    sentence = torch.tensor([[words.index(word) for word in data["sentences"][1]]])
    with torch.no_grad():
        logits = model(sentence[:, :-1])
    assert logits[0, -1].argmax() == words.index(".")  # it has learned how a sentence ends
    values = (seen[0][0] @ network.up_proj.weight.T + network.up_proj.bias).clamp(min=0)
    torch.testing.assert_close(torch.tensor(data["activations"][1]), values.detach(), atol=0.01, rtol=0)
    assert 0.5 < data["silent"] < 0.95
    for n, entries in enumerate(data["writes"]):
        column = (network.down_proj.weight[:, n] * model.decoder.norm.weight).detach()
        for word, value in entries:
            assert value == pytest.approx(float(column @ model.head.weight.detach()[words.index(word)]), abs=0.01)


@pytest.mark.parametrize("language", ["en", "ko"])
def test_some_neurons_read_like_a_rule(language: str) -> None:
    data = figure_data("neurons", language)
    rules = 0
    for wakes, writes in zip(data["wakes"], data["writes"], strict=True):
        for verb, things in WRITER[language]["objects"].items():
            objects = set(things)
            if language == "en":
                rules += wakes[0][0] == verb and {word for word, _ in writes[:3]} <= objects
            else:
                rules += {word for word, _ in wakes[:3]} <= objects and writes[0][0] == verb
    assert rules
