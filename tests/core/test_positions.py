"""Position schemes against their formulas and against the transformers library's own."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from tiny_models import SCHEMES, D, H, close, decoder_only, encoder_decoder, encoder_layer, shaken, tokens
from torch.autograd import gradcheck
from torch.func import functional_call

from heedful import core

LENGTH = 512


def sinusoid(pos: int, dimension: int, d_model: int) -> float:
    angle = pos / 10000 ** (2 * (dimension // 2) / d_model)
    return math.sin(angle) if dimension % 2 == 0 else math.cos(angle)


@pytest.mark.parametrize("d_model", [1, 7, 8, 128])
def test_sinusoids_follow_the_formula_in_both_layouts(d_model: int) -> None:
    wanted = torch.tensor([[sinusoid(pos, i, d_model) for i in range(d_model)] for pos in range(60)])
    table = core.Sinusoidal(d_model).table(60)
    close(table, wanted, 1e-6)
    halves = core.Sinusoidal(d_model, layout="halves").table(60)
    assert torch.equal(halves, torch.cat([table[:, 0::2], table[:, 1::2]], dim=1))


def test_sinusoids_have_the_values_of_the_paper() -> None:
    table = core.Sinusoidal(8).table(100)
    assert table[1, 2].item() == pytest.approx(0.09983, abs=5e-6)
    assert table[0].tolist() == [0.0, 1.0] * 4
    assert core.Sinusoidal(8).table().shape == (5000, 8)


def test_half_layout_is_marians() -> None:
    from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding

    theirs = MarianSinusoidalPositionalEmbedding(LENGTH, D)
    weight = torch.as_tensor(theirs.create_weight())
    close(core.Sinusoidal(D, layout="halves").table(LENGTH), weight, 1e-5)


@pytest.mark.parametrize("k", [1, 5, 40])
def test_a_step_of_k_is_one_linear_map_for_all_positions(k: int) -> None:
    table = shaken(core.Sinusoidal(8)).embed(torch.zeros(1, 200, 8, dtype=torch.float64), torch.arange(200))[0]
    turn = torch.zeros(8, 8, dtype=torch.float64)
    for i in range(0, 8, 2):
        angle = k / 10000 ** (i / 8)
        turn[i : i + 2, i : i + 2] = torch.tensor(
            [[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]], dtype=torch.float64
        )
    close(table[:-k] @ turn.T, table[k:])
    found = torch.linalg.lstsq(table[:-k], table[k:]).solution
    close(found.T, turn, 1e-6)


def test_sinusoids_have_no_end_and_take_any_position() -> None:
    scheme, pos = core.Sinusoidal(6, max_length=4), torch.tensor([[3, 4, 9999], [0, 0, 7]])
    encoded = scheme.embed(torch.zeros(2, 3, 6, dtype=torch.float64), pos)
    wanted = [[[sinusoid(p, i, 6) for i in range(6)] for p in row] for row in pos.tolist()]
    close(encoded, torch.tensor(wanted, dtype=torch.float64))
    with pytest.raises(ValueError, match="unknown sinusoidal layout 'half'; choose interleaved or halves"):
        core.Sinusoidal(6, layout="half")


def test_learned_positions_start_after_the_offset() -> None:
    scheme = core.Learned(5, 3, offset=2)
    pos = torch.tensor([[0, 4], [1, 1]])
    assert torch.equal(scheme.embed(torch.zeros(2, 2, 3), pos), scheme.weight[pos + 2])
    assert scheme.weight.shape == (7, 3)
    for wrong in (5, -1):
        with pytest.raises(ValueError, match=f"positions must be from 0 to 4, but one is {wrong}"):
            scheme.embed(torch.zeros(1, 2, 3), torch.tensor([2, wrong]))


@torch.no_grad()
def test_a_longer_input_than_learned_is_refused_with_and_without_cache() -> None:
    model = decoder_only("learned")
    with pytest.raises(ValueError, match=r"33 tokens.*end at 32.*larger max_length"):
        model(tokens(1, 33))
    cache = model.new_cache()
    model(tokens(1, 32), cache=cache)
    with pytest.raises(ValueError, match="33 tokens"):
        model(tokens(1, 1), cache=cache)
    fixed = model.new_cache(40)
    model(tokens(1, 32), cache=fixed)
    with pytest.raises(ValueError, match="0 to 31, but one is 32"):
        model(tokens(1, 1), cache=fixed)


@pytest.mark.parametrize("causal_only", [False, True])
@pytest.mark.parametrize(("n_buckets", "max_distance"), [(32, 128), (8, 20), (64, 300)])
def test_relative_buckets_are_t5s(n_buckets: int, max_distance: int, causal_only: bool) -> None:
    from transformers.models.t5.modeling_t5 import T5Attention

    ahead = torch.arange(LENGTH)[None, :] - torch.arange(LENGTH)[:, None]
    theirs = T5Attention._relative_position_bucket(ahead, not causal_only, n_buckets, max_distance)
    scheme = core.Relative(H, n_buckets=n_buckets, max_distance=max_distance, causal=causal_only)
    assert torch.equal(scheme.buckets(ahead), theirs)
    pos = torch.arange(LENGTH)
    assert torch.equal(scheme.bias(pos[-3:], pos), scheme.weight[theirs[-3:]].permute(2, 0, 1))


def test_relative_bias_passes_gradcheck() -> None:
    encoder = shaken(core.Encoder([encoder_layer()], positions=core.Relative(H, n_buckets=4, max_distance=4)))
    x, keep = torch.randn(2, 5, D, dtype=torch.float64), core.padding([5, 3])
    weight = torch.randn(4, H, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda w: functional_call(encoder, {"positions.weight": w}, (x, keep)), weight)


@pytest.mark.parametrize("n_heads", [1, 8, 12])
def test_alibi_is_blooms_up_to_a_constant_per_query(n_heads: int) -> None:
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor

    theirs = build_alibi_tensor(torch.ones(1, LENGTH), n_heads, torch.float64)  # (H, 1, Tk)
    pos = torch.arange(LENGTH)
    ours = core.ALiBi(n_heads).bias(pos, pos).double()
    future = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)
    mine, wanted = (bias.masked_fill(future, -torch.inf).softmax(-1) for bias in (ours, theirs))
    close(mine, wanted, 1e-4)


def test_alibi_slopes_of_twelve_heads_are_the_papers() -> None:
    eight = [2.0**-i for i in range(1, 9)]
    four_between = [2.0**-0.5, 2.0**-1.5, 2.0**-2.5, 2.0**-3.5]
    close(core.ALiBi(12).slopes(), torch.tensor(eight + four_between), 1e-7)


def llama(kind: str, base: float, **more: Any) -> Any:
    from transformers import LlamaConfig

    return LlamaConfig(
        hidden_size=64, num_attention_heads=4, rope_parameters={"rope_type": kind, "rope_theta": base, **more}
    )


ROTARY: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "base 10000": ({}, {"kind": "default", "base": 1e4}),
    "base 500000": ({"base": 5e5}, {"kind": "default", "base": 5e5}),
    "linear": ({"scaling": core.LinearScaling(factor=4.0)}, {"kind": "linear", "base": 1e4, "factor": 4.0}),
    "llama3": (
        {"base": 5e5, "scaling": core.Llama3Scaling(factor=8.0, low=1.0, high=4.0, original_length=64)},
        {
            "kind": "llama3",
            "base": 5e5,
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 64,
        },
    ),
}


@pytest.mark.parametrize("name", ROTARY)
def test_rotary_is_llamas(name: str) -> None:
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

    ours, theirs = ROTARY[name]
    pos = torch.stack([torch.arange(LENGTH), torch.arange(LENGTH).flip(0)])
    query, key = torch.randn(2, 4, LENGTH, 16), torch.randn(2, 2, LENGTH, 16)
    cos, sin = LlamaRotaryEmbedding(llama(**theirs))(query, pos)
    for mine, wanted in zip(
        core.Rotary(16, **ours).rotate(query, key, pos, pos), apply_rotary_pos_emb(query, key, cos, sin), strict=True
    ):
        close(mine, wanted, 1e-5)


def test_rotary_of_part_of_the_head_is_gpt_neoxs() -> None:
    from transformers import GPTNeoXConfig
    from transformers.models.gpt_neox.modeling_gpt_neox import GPTNeoXRotaryEmbedding, apply_rotary_pos_emb

    rope = {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.25}
    config = GPTNeoXConfig(hidden_size=64, num_attention_heads=4, rope_parameters=rope)
    pos, query = torch.arange(LENGTH), torch.randn(1, 4, LENGTH, 16)
    wanted, _ = apply_rotary_pos_emb(query, query, *GPTNeoXRotaryEmbedding(config)(query, pos[None]))
    mine, _ = core.Rotary(16, width=4).rotate(query, query, pos, pos)
    close(mine, wanted, 1e-5)
    assert torch.equal(mine[..., 4:], query[..., 4:])


def test_rotary_of_neighbours_is_gpt_js() -> None:
    from transformers.models.gptj.modeling_gptj import apply_rotary_pos_emb, create_sinusoidal_positions

    pos, query = torch.arange(LENGTH), torch.randn(1, 4, LENGTH, 16)
    sin, cos = create_sinusoidal_positions(LENGTH, 16)[None].chunk(2, dim=-1)
    wanted = apply_rotary_pos_emb(query.transpose(1, 2), sin, cos).transpose(1, 2)  # theirs is (B, T, H, K)
    close(core.Rotary(16, interleaved=True).rotate(query, query, pos, pos)[0], wanted, 1e-5)


@pytest.mark.parametrize("scheme", [core.Rotary(16), core.Rotary(16, interleaved=True), core.Rotary(16, width=8)])
def test_rotary_scores_depend_on_the_distance_alone(scheme: core.Rotary) -> None:
    scheme = scheme.double()
    query, key = torch.randn(2, 1, 1, 9, 16, dtype=torch.float64)
    pos = torch.arange(9)
    here, there = (scheme.rotate(query, key, pos + shift, pos + shift) for shift in (0, 300))
    close(here[0] @ here[1].mT, there[0] @ there[1].mT, 1e-4)
    assert not torch.allclose(here[0] @ here[1].mT, query @ key.mT)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_rotary_knows_neighbours_apart_in_half_precision(dtype: torch.dtype) -> None:
    query, pos = torch.randn(1, 1, 4, 16), torch.tensor([2046, 2047, 2048, 2049])
    wanted, _ = core.Rotary(16).rotate(query, query, pos, pos)
    narrow, _ = core.Rotary(16).to(dtype).rotate(query.to(dtype), query.to(dtype), pos, pos)
    close(narrow.float(), wanted, 3e-2)


@pytest.mark.parametrize("width", [0, 3, 18])
def test_rotary_needs_pairs(width: int) -> None:
    with pytest.raises(ValueError, match=f"width={width} must be even, above 0 and at most d_head=16"):
        core.Rotary(16, width=width)


@pytest.mark.parametrize("name", ["none", "rotary", "relative", "alibi"])
def test_only_distances_count_and_cross_attention_knows_no_positions(name: str) -> None:
    model = encoder_decoder(name)
    memory, target = model.encode(tokens(2, 5)), tokens(2, 6)
    near, far = (model.decode(target, memory, positions=torch.arange(6) + shift) for shift in (0, 9))
    close(near, far, 1e-5)


@pytest.mark.parametrize("name", SCHEMES)
def test_explicit_positions_may_differ_by_row(name: str) -> None:
    model, ids = decoder_only(name), tokens(2, 5)
    pos = torch.tensor([[0, 1, 2, 3, 4], [3, 4, 7, 8, 12]])
    together = model(ids, positions=pos)
    for row in range(2):
        close(together[row : row + 1], model(ids[row : row + 1], positions=pos[row]))


@pytest.mark.parametrize("name", SCHEMES)
def test_one_layer_tells_orders_apart_only_by_its_positions(name: str) -> None:
    model = decoder_only(name)
    del model.decoder.layers[1:]
    last = model(torch.tensor([[1, 2, 3, 4, 5], [2, 1, 4, 3, 5]]))[:, -1]
    assert torch.allclose(last[0], last[1]) == (name == "none")


def test_the_base_class_does_nothing() -> None:
    scheme, x, pos = core.Positions(), torch.randn(1, 2, 4), torch.arange(2)
    assert scheme.embed(x, pos) is x
    assert scheme.rotate(x, x, pos, pos) == (x, x)
    assert scheme.rotation(pos, pos) is None
    assert scheme.bias(pos, pos) is None
