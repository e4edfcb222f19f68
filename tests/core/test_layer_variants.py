"""Layers that differ within a stack (masks, positions), normalized queries and keys, and sublayers side by side.

Shapes: B batch, T tokens, D d_model, H heads, G key/value heads, K head width.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tiny_models import D, H, V, close, decoder_layer, encoder_layer, layout, shaken, tokens
from torch import Tensor, nn

import heedful
from heedful import core
from heedful.backends import refusals
from heedful.core import causal, mask_preparation, padding, stacks, window
from heedful.core.layers import EncoderLayer

LOCAL, FULL = causal() & window(3), causal()
T = 72


def language_model(**stack: Any) -> core.DecoderOnly:
    """Four layers; every second one has the second mask and the second scheme where `stack` has two."""
    layers = [encoder_layer(n_kv_heads=2) for _ in range(4)]
    by_layer: dict[str, Any] = {name: [*values] * 2 for name, values in stack.items()}
    decoder = core.Decoder(layers, **by_layer)
    head = core.VocabularyHead(D, V)
    return shaken(core.DecoderOnly(embedding=core.TokenEmbedding(V, D), decoder=decoder, head=head))


def variants() -> dict[str, core.DecoderOnly]:
    rotary = core.Rotary(D // H)
    return {
        "masks": language_model(mask=(LOCAL, FULL)),
        "positions": language_model(positions=(rotary, core.Positions())),
        "biases": language_model(mask=(LOCAL, FULL), positions=(core.ALiBi(H), core.Relative(H, causal=True))),
        "both": language_model(mask=(LOCAL, FULL), positions=(rotary, core.ALiBi(H))),
    }


def written_out(model: core.DecoderOnly, ids: Tensor) -> Tensor:
    """One row without padding, layer by layer, every mask a literal tensor and every score written out."""
    length = ids.shape[1]
    at = torch.arange(length)
    behind = at[:, None] - at[None, :]
    x, _ = model.embedding(ids)
    for index, layer in enumerate(model.decoder.layers):
        assert isinstance(layer, EncoderLayer)
        attention: Any = layer.self_attention.sublayer
        scheme = model.decoder.positions.of_layer(index)
        mask = model.decoder.masks[index % len(model.decoder.masks)]
        seen = (behind >= 0) & ((behind < 3) if len(mask.parts) > 1 else torch.ones_like(behind, dtype=torch.bool))
        query = attention.q_proj(x).unflatten(-1, (H, -1)).transpose(1, 2)
        key, value = attention.keys_values(x)
        query, key = scheme.rotate(query, key, at, at)
        bias = scheme.bias(at, at)
        weights = core.attention_weights(query, key, keep=seen, bias=bias)
        heads = weights @ value.repeat_interleave(H // value.shape[1], dim=1)
        x = layer.self_attention.get_submodule("norm")(x + attention.out_proj(heads.transpose(1, 2).flatten(2)))
        x = layer.feed_forward(x)
    return model.head(model.decoder.norm(x))


@pytest.mark.parametrize("name", variants())
def test_each_layer_has_its_own_mask_and_positions(name: str) -> None:
    model, ids = variants()[name], tokens(1)
    close(model(ids), written_out(model, ids), 1e-10)


@pytest.mark.parametrize("side", ["left", "right", "prompts of 4, 2 and 3 that go on"])
@pytest.mark.parametrize("name", variants())
def test_padding_reaches_every_layer_with_and_without_a_cache(name: str, side: str) -> None:
    model, ids, keep = variants()[name], tokens(), layout(side)
    whole = model(ids, keep)
    for row in range(3):
        close(whole[row][keep[row]], written_out(model, ids[row : row + 1, keep[row]])[0], 1e-10)
    with torch.no_grad():
        for capacity in (None, 8):
            cache = model.new_cache(capacity)
            seen = keep if capacity else None
            steps = [
                model(ids[:, t : t + 1], keep[:, : t + 1] if seen is None else seen, cache=cache) for t in range(8)
            ]
            close(torch.cat(steps, dim=1)[keep], whole[keep], 1e-10)


@pytest.mark.parametrize("name", variants())
def test_beams_go_on_from_other_rows(name: str) -> None:
    model, ids, rows = variants()[name], tokens(), torch.tensor([2, 0, 0])
    with torch.no_grad():
        for capacity in (None, 8):
            cache = model.new_cache(capacity)
            model(ids[:, :5], cache=cache)
            cache.reorder(rows)
            after = model(ids[:, 5:], cache=cache)
            close(after, model(torch.cat([ids[rows, :5], ids[:, 5:]], dim=1))[:, 5:], 1e-10)


def test_generation_and_recording_take_layers_that_differ() -> None:
    model = variants()["both"]
    ids = tokens(1, 5)
    found = heedful.generate(model, ids.tolist(), max_new_tokens=6, beam=1)[0][0].tokens
    for _ in range(len(found)):
        ids = torch.cat([ids, model(ids)[:, -1:].argmax(dim=-1)], dim=1)
    assert list(found) == ids[0, 5:].tolist()
    with heedful.record(model) as recording:
        model(ids)
    assert sorted(recording.decoder) == [0, 1, 2, 3]
    far = (torch.arange(len(ids[0]))[:, None] - torch.arange(len(ids[0]))) >= 3
    assert not recording.decoder[0][..., far].any()
    assert recording.decoder[1][..., far].all()


def test_layers_that_share_a_mask_share_its_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared: list[core.Mask] = []
    original = mask_preparation.prepare_mask

    def counted(rules: core.Mask, *args: Any, **options: Any) -> Any:
        prepared.append(rules)
        return original(rules, *args, **options)

    monkeypatch.setattr(stacks, "prepare_mask", counted)
    masks = [causal() & window(3), causal(), causal() & window(3), causal()]  # equal, and not the same objects
    model = core.Decoder([encoder_layer() for _ in range(4)], mask=masks, positions=core.Rotary(D // H))
    model(torch.randn(2, 5, D))
    assert len(prepared) == 2
    prepared.clear()
    variants()["positions"](tokens())  # rotary and none: neither has a bias
    assert len(prepared) == 1


def test_a_bias_of_the_callers_reaches_every_layer() -> None:
    layers = [shaken(encoder_layer()) for _ in range(3)]
    x, bias = torch.randn(2, 5, D).double(), torch.randn(H, 5, 5).double()
    y = x
    for layer in layers:
        y = layer(y, bias=bias)
    close(core.Encoder(layers)(x, bias=bias), y)
    close(y, core.Encoder(layers)(x, bias=bias.expand(2, H, 5, 5)))
    y = x
    for layer in layers:
        y = layer(y, keep=causal(), bias=bias + core.ALiBi(H).bias(torch.arange(5), torch.arange(5)))
    close(core.Decoder(layers, positions=core.ALiBi(H))(x, bias=bias), y)

    decoder, memory = shaken(core.Decoder([decoder_layer() for _ in range(2)])), torch.randn(2, 4, D).double()
    y = x
    for step in decoder.layers:
        y = step(y, memory, keep=causal(), bias=bias)
    whole = decoder(x, memory, bias=bias)
    close(whole, y)
    with torch.no_grad():
        cache = decoder.new_cache()
        parts = [decoder(x[:, t : t + 1], memory, cache=cache, bias=bias[:, t : t + 1, : t + 1]) for t in range(5)]
    close(torch.cat(parts, dim=1), whole)


class Stubborn(EncoderLayer):
    """It has a mask of its own and forgets the stack's."""

    def forward(self, x: Tensor, *, keep: Any = None, **context: Any) -> Tensor:
        return super().forward(x, keep=window(2), **context)


class Narrowing(EncoderLayer):
    """It narrows the stack's mask."""

    def forward(self, x: Tensor, *, keep: Any = None, **context: Any) -> Tensor:
        return super().forward(x, keep=keep & window(2), **context)


def test_a_layer_cannot_lose_the_padding() -> None:
    plain, keep, x = encoder_layer(), layout("left"), torch.randn(3, 8, D)
    with pytest.raises(ValueError, match="would lose the padding"):
        core.Encoder([Stubborn(plain.self_attention, plain.feed_forward)])(x, keep)
    narrowed = core.Encoder([Narrowing(plain.self_attention, plain.feed_forward)])
    close(narrowed(x, keep)[keep], core.Encoder([plain], mask=window(2))(x, keep)[keep], 1e-6)


def test_what_a_stack_cannot_hold_is_refused() -> None:
    layers = [encoder_layer() for _ in range(2)]
    with pytest.raises(ValueError, match="mask has 3 entries for 2 layers"):
        core.Encoder(layers, mask=[causal()] * 3)
    with pytest.raises(ValueError, match="positions has 1 entries for 2 layers"):
        core.Encoder(layers, positions=[core.ALiBi(H)])
    with pytest.raises(ValueError, match="not Sinusoidal"):
        core.Encoder(layers, positions=[core.Sinusoidal(D), core.ALiBi(H)])
    numbers: Any = [causal(), torch.ones(2, 2)]
    with pytest.raises(TypeError, match="takes a mask from causal"):
        core.Encoder(layers, mask=numbers)
    with pytest.raises(ValueError, match="different masks"):
        core.Decoder(layers, mask=[LOCAL, FULL]).mask.parts  # noqa: B018
    decoder = core.Decoder(layers, mask=[causal(), window(2)])
    with pytest.raises(ValueError, match="only a causal mask"), torch.no_grad():
        decoder(torch.randn(1, 2, D), cache=decoder.new_cache(4))
    attention, x = core.MultiHeadAttention(D, H), torch.randn(1, 3, D)
    turn = core.Rotary(D // H).rotation(torch.arange(3), torch.arange(3))
    with pytest.raises(ValueError, match="rotate is for self-attention"):
        attention(x, x, rotate=turn)


def test_the_quick_ways_refuse_what_they_were_not_written_for() -> None:
    plain = language_model(mask=(FULL, FULL))
    models = [*variants().values(), normalized(), parallel()]
    known = core.DecoderOnly(embedding=plain.embedding, decoder=core.Decoder(plain.decoder.layers), head=plain.head)
    assert not refusals(known, "single_step")
    assert all(refusals(model, backend) for model in models for backend in ("single_step", "native"))


def normalized() -> core.DecoderOnly:
    norms = core.RMSNorm(D // H), core.RMSNorm(D // H)
    decoder = core.Decoder([encoder_layer(query_norm=norms[0], key_norm=norms[1])], positions=core.Rotary(D // H))
    return shaken(
        core.DecoderOnly(embedding=core.TokenEmbedding(V, D), decoder=decoder, head=core.VocabularyHead(D, V))
    )


def parallel() -> core.DecoderOnly:
    norm = core.LayerNorm(D)
    layer = core.ParallelLayer(
        core.PreNorm(core.MultiHeadAttention(D, H), norm), core.PreNorm(core.FeedForward(D, 2 * D), norm)
    )
    decoder = core.Decoder([layer, layer], norm=core.LayerNorm(D))
    return shaken(
        core.DecoderOnly(embedding=core.TokenEmbedding(V, D), decoder=decoder, head=core.VocabularyHead(D, V))
    )


def test_parallel_sublayers_both_read_the_layers_input() -> None:
    attention, feed_forward = core.MultiHeadAttention(D, H), core.FeedForward(D, 2 * D)
    norms = core.LayerNorm(D), core.RMSNorm(D)
    layer = shaken(core.ParallelLayer(core.PreNorm(attention, norms[0]), core.PreNorm(feed_forward, norms[1])))
    x, keep = torch.randn(3, 8, D).double(), layout("right")
    expected = x + attention(norms[0](x), keep=causal() & padding(keep)) + feed_forward(norms[1](x))
    close(core.Decoder([layer])(x, keep=keep)[keep], expected[keep])
    model, ids = parallel(), tokens()
    found = heedful.generate(model, ids.tolist(), max_new_tokens=4, beam=1)
    for row, [best] in zip(ids, found, strict=True):
        for _ in range(len(best.tokens)):
            row = torch.cat([row, model(row[None])[0, -1:].argmax(dim=-1)])
        assert row[8:].tolist() == list(best.tokens)


def copied(ours: nn.Module, theirs: dict[str, Tensor | None]) -> None:
    """Every parameter of ours from theirs, by name."""
    mine = dict(ours.named_parameters())
    given = {name: tensor for name, tensor in theirs.items() if tensor is not None}
    assert mine.keys() == given.keys()
    with torch.no_grad():
        for name, parameter in mine.items():
            parameter.copy_(given[name])


def in_steps(decoder: core.Decoder, x: Tensor, keep: Tensor, first: int) -> Tensor:
    cache = decoder.new_cache()
    with torch.no_grad():
        parts = [decoder(x[:, :first], keep=keep[:, :first], cache=cache)]
        parts += [decoder(x[:, t : t + 1], keep=keep[:, : t + 1], cache=cache) for t in range(first, x.shape[1])]
    return torch.cat(parts, dim=1)


def left_padded() -> tuple[Tensor, Tensor]:
    keep = torch.ones(2, T, dtype=torch.bool)
    keep[1, :9] = False
    return torch.randint(1, V, (2, T)), keep


def compare(decoder: core.Decoder, theirs: Any) -> None:
    """A published decoder and ours with its weights, over a padded batch, at once and in steps."""
    ids, keep = left_padded()
    x = theirs.get_input_embeddings()(ids)
    positions = (keep.cumsum(dim=1) - 1).clamp(min=0)
    with torch.no_grad():
        expected = theirs(input_ids=ids, attention_mask=keep.long(), position_ids=positions).last_hidden_state
    close(decoder(x, keep=keep)[keep], expected[keep], 1e-5)
    close(in_steps(decoder, x, keep, first=40)[keep], expected[keep], 1e-5)


def llama_weights(theirs: nn.Module, *, norms: bool) -> dict[str, Tensor | None]:
    """Of a decoder whose layers are named as LLaMA's."""
    found: dict[str, Tensor | None] = {"norm.weight": theirs.get_parameter("norm.weight")}
    for index in range(4):
        layer, to = theirs.get_submodule(f"layers.{index}"), f"layers.{index}"

        def of(name: str, layer: nn.Module = layer) -> Tensor:
            return layer.get_parameter(f"{name}.weight")

        found |= {
            f"{to}.self_attention.norm.weight": of("input_layernorm"),
            f"{to}.self_attention.sublayer.q_proj.weight": of("self_attn.q_proj"),
            f"{to}.self_attention.sublayer.kv_proj.weight": torch.cat([of("self_attn.k_proj"), of("self_attn.v_proj")]),
            f"{to}.self_attention.sublayer.out_proj.weight": of("self_attn.o_proj"),
            f"{to}.self_attention.sublayer.query_norm.weight": of("self_attn.q_norm") if norms else None,
            f"{to}.self_attention.sublayer.key_norm.weight": of("self_attn.k_norm") if norms else None,
            f"{to}.feed_forward.norm.weight": of("post_attention_layernorm"),
            f"{to}.feed_forward.sublayer.gate_up_proj.weight": torch.cat([of("mlp.gate_proj"), of("mlp.up_proj")]),
            f"{to}.feed_forward.sublayer.down_proj.weight": of("mlp.down_proj"),
        }
    return found


def llama_layer(*, norms: bool) -> core.EncoderLayer:
    extra: dict[str, Any] = {"query_norm": core.RMSNorm(8), "key_norm": core.RMSNorm(8)} if norms else {}
    attention = core.MultiHeadAttention(D, H, n_kv_heads=2, d_head=8, bias=False, **extra)
    return core.EncoderLayer(
        core.PreNorm(attention, core.RMSNorm(D)), core.PreNorm(core.GatedFeedForward(D, 24), core.RMSNorm(D))
    )


SIZES = {
    "vocab_size": V,
    "hidden_size": D,
    "intermediate_size": 24,
    "num_hidden_layers": 4,
    "num_attention_heads": H,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "initializer_range": 0.3,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}


def test_query_and_key_norms_with_alternating_windows_are_qwen3s() -> None:
    transformers = pytest.importorskip("transformers")
    kinds = ["sliding_attention", "full_attention"] * 2
    config = transformers.Qwen3Config(
        **SIZES, layer_types=kinds, sliding_window=7, use_sliding_window=True, rms_norm_eps=1e-6
    )
    theirs = shaken(transformers.Qwen3Model(config)).float()
    decoder = core.Decoder(
        [llama_layer(norms=True) for _ in kinds],
        mask=[causal() & window(7), causal()] * 2,
        positions=core.Rotary(8),
        norm=core.RMSNorm(D),
    ).eval()
    copied(decoder, llama_weights(theirs, norms=True))
    compare(decoder, theirs)


def test_rotary_in_some_layers_only_is_smollm3s() -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.SmolLM3Config(**SIZES, no_rope_layers=[1, 0, 1, 0], rms_norm_eps=1e-6)
    theirs = shaken(transformers.SmolLM3Model(config)).float()
    rotary = core.Rotary(theirs.layers[0].self_attn.head_dim, base=config.rope_parameters["rope_theta"])
    decoder = core.Decoder(
        [llama_layer(norms=False) for _ in range(4)], positions=[rotary, core.Positions()] * 2, norm=core.RMSNorm(D)
    ).eval()
    copied(decoder, llama_weights(theirs, norms=False))
    compare(decoder, theirs)


def test_parallel_layers_are_gpt_neoxs() -> None:
    transformers = pytest.importorskip("transformers")
    sizes = {name: value for name, value in SIZES.items() if name not in ("num_key_value_heads", "head_dim")}
    config = transformers.GPTNeoXConfig(**sizes, hidden_act="gelu", rotary_pct=0.5, layer_norm_eps=1e-5)
    theirs = shaken(transformers.GPTNeoXModel(config)).float()
    layers = [
        core.ParallelLayer(
            core.PreNorm(core.MultiHeadAttention(D, H), core.LayerNorm(D)),
            core.PreNorm(core.FeedForward(D, 24, activation="gelu"), core.LayerNorm(D)),
        )
        for _ in range(4)
    ]
    rotary = core.Rotary(D // H, width=int(D // H * config.rope_parameters["partial_rotary_factor"]))
    decoder = core.Decoder(layers, positions=rotary, norm=core.LayerNorm(D)).eval()
    weights: dict[str, Tensor | None] = {}
    for kind in ("weight", "bias"):
        weights[f"norm.{kind}"] = theirs.get_parameter(f"final_layer_norm.{kind}")
        for index, layer in enumerate(theirs.layers):
            local = f"layers.{index}"
            joined = layer.get_parameter(f"attention.query_key_value.{kind}").unflatten(0, (H, 3, -1))
            query, key, value = (part.flatten(0, 1) for part in joined.unbind(1))
            weights |= {
                f"{local}.self_attention.norm.{kind}": layer.get_parameter(f"input_layernorm.{kind}"),
                f"{local}.self_attention.sublayer.q_proj.{kind}": query,
                f"{local}.self_attention.sublayer.kv_proj.{kind}": torch.cat([key, value]),
                f"{local}.self_attention.sublayer.out_proj.{kind}": layer.get_parameter(f"attention.dense.{kind}"),
                f"{local}.feed_forward.norm.{kind}": layer.get_parameter(f"post_attention_layernorm.{kind}"),
                f"{local}.feed_forward.sublayer.up_proj.{kind}": layer.get_parameter(f"mlp.dense_h_to_4h.{kind}"),
                f"{local}.feed_forward.sublayer.down_proj.{kind}": layer.get_parameter(f"mlp.dense_4h_to_h.{kind}"),
            }
    copied(decoder, weights)
    compare(decoder, theirs)
