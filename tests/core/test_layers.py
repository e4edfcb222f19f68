"""The small parts of a layer against their formulas, and the order in which a layer runs them."""

from __future__ import annotations

import math

import pytest
import torch
from tiny_models import D, H, close, decoder_layer, encoder_layer, shaken
from torch import Tensor, nn

from heedful import core
from heedful.core.layers import activation_of


def batch(length: int = 5) -> Tensor:
    return torch.randn(3, length, D, dtype=torch.float64)


FORMULAS = {
    "relu": lambda x: max(x, 0.0),
    "gelu": lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2,
    "gelu_tanh": lambda x: x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2,
    "silu": lambda x: x / (1 + math.exp(-x)),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_activations_by_name_are_their_formulas(name: str) -> None:
    x = torch.linspace(-4, 4, 41, dtype=torch.float64)
    close(activation_of(name)(x), torch.tensor([FORMULAS[name](v) for v in x.tolist()], dtype=torch.float64), 1e-12)
    assert activation_of(torch.tanh) is torch.tanh


def test_an_unknown_activation_names_the_known() -> None:
    with pytest.raises(ValueError, match="unknown activation 'swish'; choose one of relu, gelu, gelu_tanh, silu"):
        core.FeedForward(D, 8, activation="swish")


def test_feed_forward_is_two_matrices_around_an_activation() -> None:
    part, x = shaken(core.FeedForward(D, 8)), batch()
    (w1, b1), (w2, b2) = ((m.weight, m.bias) for m in (part.up_proj, part.down_proj))
    close(part(x), (x @ w1.T + b1).clamp(min=0) @ w2.T + b2)


def test_gated_feed_forward_multiplies_the_gate_in() -> None:
    part, x = shaken(core.GatedFeedForward(D, 8)), batch()
    gate, up = part.gate_up_proj.weight[:8], part.gate_up_proj.weight[8:]
    hidden = x @ gate.T
    close(part(x), (hidden * hidden.sigmoid() * (x @ up.T)) @ part.down_proj.weight.T)


def test_norms_are_torchs() -> None:
    x = 3 * batch() + 1
    ours, theirs = shaken(core.LayerNorm(D)), nn.LayerNorm(D).double()
    theirs.load_state_dict(ours.state_dict())
    close(ours(x), theirs(x))
    rms, their_rms = shaken(core.RMSNorm(D)), nn.RMSNorm(D, eps=1e-6).double()
    their_rms.load_state_dict(rms.state_dict())
    close(rms(x), their_rms(x))
    assert core.LayerNorm(D, bias=False).bias is None


def test_rms_norm_squares_large_numbers_in_half_precision() -> None:
    x = torch.full((1, D), 1000.0, dtype=torch.float16)
    close(core.RMSNorm(D).half()(x), torch.ones(1, D, dtype=torch.float16), 1e-3)


def test_pre_norm_and_post_norm_are_what_their_names_say() -> None:
    x, part, norm = batch(), nn.Linear(D, D).double(), shaken(core.LayerNorm(D))
    close(core.PreNorm(part, norm)(x), x + part(norm(x)))
    close(core.PostNorm(part, norm)(x), norm(x + part(x)))


@pytest.mark.parametrize(
    "part",
    [
        core.MultiHeadAttention(D, H, dropout=0.5),
        core.FeedForward(D, 8, dropout=0.5),
        core.PostNorm(nn.Identity(), nn.Identity(), 0.5),
        core.Encoder([], dropout=0.5),
    ],
    ids=["weights", "feed-forward", "residual", "stack"],
)
def test_dropout_works_only_while_training(part: nn.Module) -> None:
    part, x = shaken(part), batch()
    close(part(x), part(x))
    part.train()
    assert not torch.equal(part(x), part(x))


@pytest.mark.parametrize("wrap", [core.PreNorm, core.PostNorm])
def test_residual_dropout_stands_on_the_part_alone(wrap: type[core.PreNorm | core.PostNorm]) -> None:
    x = batch()
    wrapped = wrap(nn.Linear(D, D).double(), nn.Identity(), dropout=1.0).train()
    assert torch.equal(wrapped(x), x)


def test_a_decoder_layer_reads_itself_then_the_memory_then_widens() -> None:
    layer, x, memory = shaken(decoder_layer()), batch(), batch(4)
    lower, source = torch.ones(1, 1, 5, 5, dtype=torch.bool).tril(), core.padding([4, 2, 3])
    y = layer.self_attention(x, keep=lower)
    y = layer.cross_attention(y, memory, keep=source)
    close(layer(x, memory, keep=core.causal(), memory_keep=source), layer.feed_forward(y))


@pytest.mark.parametrize("wrap", [core.PreNorm, core.PostNorm])
def test_a_stack_is_its_layers_one_after_the_other(wrap: type[nn.Module]) -> None:
    layers = [encoder_layer(wrap) for _ in range(3)]
    entry, final, x = core.LayerNorm(D), core.LayerNorm(D), batch()
    encoder = shaken(core.Encoder(layers, positions=core.Sinusoidal(D), entry=entry, norm=final))
    y = entry(encoder.positions.embed(x, torch.arange(5)))
    for layer in layers:
        y = layer(y)
    close(encoder(x), final(y))

    decoder = shaken(core.Decoder([decoder_layer(wrap) for _ in range(2)], norm=core.LayerNorm(D)))
    memory, y = batch(4), x
    for step in decoder.layers:
        y = step(y, memory, keep=core.causal())
    close(decoder(x, memory), decoder.norm(y))


def test_one_layer_may_stand_in_a_stack_twice() -> None:
    layer, x = encoder_layer(), batch()
    decoder = shaken(core.Decoder([layer, layer]))
    close(decoder(x), layer(layer(x, keep=core.causal()), keep=core.causal()))
    assert sum(1 for _ in decoder.parameters()) == sum(1 for _ in layer.parameters())


def test_head_width_times_heads_may_differ_from_the_model() -> None:
    encoder = shaken(core.Encoder([encoder_layer(d_head=7, bias=False, out_bias=True)]))
    shapes = {
        name: tuple(p.shape)
        for name, p in encoder.layers[0].get_submodule("self_attention.sublayer").named_parameters()
    }
    packed = {"q_proj.weight": (7 * H, D), "kv_proj.weight": (14 * H, D)}
    assert shapes == packed | {"out_proj.weight": (D, 7 * H), "out_proj.bias": (D,)}
    assert encoder(batch()).shape == (3, 5, D)
