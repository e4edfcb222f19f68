"""The recorder sees what ran, recomputed from outside, and refuses where it would not be the truth."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import heedful
from heedful.core import (
    Decoder,
    DecoderOnly,
    EncoderLayer,
    FeedForward,
    KVCache,
    LayerNorm,
    MultiHeadAttention,
    PreNorm,
    Relative,
    TokenEmbedding,
    VocabularyHead,
    causal,
)
from heedful.errors import RecordingError


@pytest.fixture
def model() -> Any:
    torch.manual_seed(0)
    settings = {"d_model": 24, "n_heads": 4, "n_kv_heads": 2, "d_ff": 32, "n_encoder_layers": 3, "n_decoder_layers": 2}
    return heedful.build("tiny", vocab_size=20, positions="relative", **settings).double().eval()


SOURCE, TARGET = torch.arange(10).view(2, 5), torch.arange(8).view(2, 4)


def decoder_only(shared: bool = False) -> DecoderOnly:
    def layer() -> nn.Module:
        return EncoderLayer(
            PreNorm(MultiHeadAttention(16, 2), LayerNorm(16)), PreNorm(FeedForward(16, 32), LayerNorm(16))
        )

    first = layer()
    layers = [first] * 3 if shared else [first, layer(), layer()]
    embedding = TokenEmbedding(20, 16)
    decoder = Decoder(layers, positions=Relative(2, causal=True), norm=LayerNorm(16))
    return DecoderOnly(embedding=embedding, decoder=decoder, head=VocabularyHead(16, 20)).double().eval()


def test_weights_times_values_are_what_the_attention_gave(model: Any) -> None:
    """The weights are the true ones: applied to the values by hand, they give the module's own output."""
    attention = model.decoder.layers[1].cross_attention.sublayer
    recorded: dict[str, Tensor] = {}
    attention.attention.register_forward_hook(lambda _, inputs, output: recorded.update(value=inputs[2], output=output))
    with heedful.record(model) as recording:
        model(SOURCE, TARGET)
    by_hand = recording.cross[1] @ recorded["value"].repeat_interleave(2, dim=1)
    torch.testing.assert_close(by_hand, recorded["output"], rtol=0, atol=1e-12)


def test_every_layer_and_kind_is_there_with_its_shape(model: Any) -> None:
    with heedful.record(model) as recording:
        model(SOURCE, TARGET)
    assert {layer: tuple(w.shape) for layer, w in recording.encoder.items()} == dict.fromkeys(range(3), (2, 4, 5, 5))
    assert {layer: tuple(w.shape) for layer, w in recording.decoder.items()} == dict.fromkeys(range(2), (2, 4, 4, 4))
    assert {layer: tuple(w.shape) for layer, w in recording.cross.items()} == dict.fromkeys(range(2), (2, 4, 4, 5))
    assert not recording.decoder[0].triu(1).any()


def test_chosen_layers_and_heads_are_those_of_a_full_recording(model: Any) -> None:
    with heedful.record(model) as full:
        model(SOURCE, TARGET)
    with heedful.record(model, layers=1, heads=[3, 0]) as some:
        model(SOURCE, TARGET)
    assert set(some.encoder) == set(some.cross) == {1}
    for one, all_heads in ((some.encoder[1], full.encoder[1]), (some.cross[1], full.cross[1])):
        torch.testing.assert_close(one, all_heads[:, [3, 0]], rtol=0, atol=1e-14)
    assert all(look.heads == (3, 0) for look in some.looks)


def test_outputs_are_equal_bit_for_bit_and_no_hook_stays(model: Any) -> None:
    before = model(SOURCE, TARGET)
    with heedful.record(model):
        during = model(SOURCE, TARGET)
    assert torch.equal(before, during)
    assert not any(part._forward_pre_hooks for part in model.modules())


def test_a_layer_that_runs_three_times_is_three_layers() -> None:
    model = decoder_only(shared=True)
    with heedful.record(model) as recording:
        model(TARGET)
    assert list(recording.decoder) == [0, 1, 2]
    assert not torch.equal(recording.decoder[0], recording.decoder[2])


def test_steps_with_a_cache_are_the_rows_of_the_whole() -> None:
    model = decoder_only()
    with heedful.record(model, layers=2) as whole:
        model(TARGET)
    cache = KVCache()
    with torch.no_grad(), heedful.record(model, layers=2) as steps:
        for t in range(4):
            model(TARGET[:, t : t + 1], cache=cache)
    for t, look in enumerate(steps.looks):
        expected = whole.decoder[2][:, :, t : t + 1, : t + 1]
        torch.testing.assert_close(look.weights, expected, rtol=0, atol=1e-12)


def test_attention_on_its_own_can_be_recorded() -> None:
    attention = MultiHeadAttention(16, 2).eval()
    with heedful.record(attention) as recording:
        attention(torch.randn(1, 4, 16), keep=causal())
    (look,) = recording.looks
    assert (look.path, look.stack, look.kind) == ("", "alone", "self")
    torch.testing.assert_close(look.weights.sum(-1), torch.ones(1, 2, 4))


def test_training_mode_is_refused(model: Any) -> None:
    model.train()
    with pytest.raises(RecordingError, match=r"model\.eval\(\)"), heedful.record(model):
        model(SOURCE, TARGET)
    assert not any(part._forward_pre_hooks for part in model.modules())


def test_a_compiled_model_is_refused(model: Any) -> None:
    compiled = torch.compile(model, backend="eager")
    assert isinstance(compiled, nn.Module)
    with pytest.raises(RecordingError, match="compiled"), heedful.record(compiled):
        pass
    model.compile(backend="eager")
    with pytest.raises(RecordingError, match="compiled"), heedful.record(model):
        pass


def test_a_head_that_is_not_there_is_refused(model: Any) -> None:
    with pytest.raises(RecordingError, match="heads 0 to 3, not 4"), heedful.record(model, heads=4):
        pass


def test_nothing_recorded_is_said(model: Any) -> None:
    with pytest.raises(RecordingError, match="nothing with attention ran"), heedful.record(model):
        pass
    with (
        pytest.raises(RecordingError, match=r"no layer 7; .* layers 0 to 2"),
        heedful.record(model, 7),
    ):
        pass
    wrong: list[Any] = [[], "all", -1]
    for choice in wrong:
        with pytest.raises(RecordingError, match="heads are numbers from 0"), heedful.record(model, heads=choice):
            pass


@torch.no_grad()
def test_beams_are_rows_and_a_copy_made_meanwhile_stays_silent(model: Any) -> None:
    memory = model.encode(SOURCE)
    beams = torch.randint(0, 20, (6, 4))
    with heedful.record(model) as recording:
        model.decode(beams, memory)
        twin = copy.deepcopy(model)
    assert recording.cross[0].shape == (6, 4, 4, 5)
    with heedful.record(model) as repeated:
        model.decode(beams, memory.repeat_interleave(3, 0))
    torch.testing.assert_close(recording.cross[0], repeated.cross[0], rtol=0, atol=1e-14)
    n_looks = len(recording.looks)
    twin.decode(beams, memory)
    assert len(recording.looks) == n_looks
    assert "tensor" not in repr(recording)
