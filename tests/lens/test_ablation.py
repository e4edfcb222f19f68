"""A model without some of its heads, feed-forwards or layers is the model whose weights for them are zero."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import heedful
from every_task import embedder, language_model, translator
from heedful.core import ConcatPool
from heedful.errors import ConfigError, RecordingError
from heedful.lens.alignment import Head

SOURCE, TARGET = torch.arange(10).view(2, 5), torch.arange(8).view(2, 4)


@pytest.fixture(params=["pre", "post"])
def model(request: pytest.FixtureRequest) -> Any:
    settings = {"d_model": 24, "n_heads": 4, "n_kv_heads": 2, "d_ff": 32, "n_encoder_layers": 3, "n_decoder_layers": 2}
    return heedful.build("tiny", vocab_size=20, norm=request.param, **settings).double().eval()


def without_columns(model: Any, path: str, heads: list[int], width: int = 6) -> Any:
    """A copy in which the output projection has zeros for these heads."""
    changed = copy.deepcopy(model)
    weight = changed.get_submodule(path).sublayer.out_proj.weight
    for head in heads:
        weight.data[:, head * width : (head + 1) * width] = 0
    return changed


def exactly(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "path", "heads"),
    [
        ("encoder.2.3", "encoder.layers.2.self_attention", [3]),
        ("decoder.0.1", "decoder.layers.0.self_attention", [1]),
        ("cross.1.0", "decoder.layers.1.cross_attention", [0]),
        ("cross.1", "decoder.layers.1.cross_attention", [0, 1, 2, 3]),
        (Head(1, 2), "decoder.layers.1.cross_attention", [2]),
        (Head(0), "decoder.layers.0.cross_attention", [0, 1, 2, 3]),
    ],
)
def test_a_head_without_output_is_zeros_in_the_projection(model: Any, name: Any, path: str, heads: list[int]) -> None:
    before = model(SOURCE, TARGET)
    with heedful.ablate(model, heads=[name]):
        ablated = model(SOURCE, TARGET)
    exactly(ablated, without_columns(model, path, heads)(SOURCE, TARGET))
    assert not torch.allclose(ablated, before)
    exactly(model(SOURCE, TARGET), before)


def test_all_heads_are_a_model_whose_projections_are_zero(model: Any) -> None:
    changed = copy.deepcopy(model)
    for name, parameter in changed.named_parameters():
        if "out_proj.weight" in name:
            nn.init.zeros_(parameter)
    with heedful.ablate(model, heads="all"):
        exactly(model(SOURCE, TARGET), changed(SOURCE, TARGET))
    with heedful.ablate(model, heads=["encoder", "decoder", "cross"]):
        exactly(model(SOURCE, TARGET), changed(SOURCE, TARGET))


def test_a_feed_forward_adds_nothing_and_a_layer_returns_its_input(model: Any) -> None:
    changed = copy.deepcopy(model)
    for parameter in changed.encoder.layers[1].feed_forward.sublayer.down_proj.parameters():
        nn.init.zeros_(parameter)
    with heedful.ablate(model, feed_forward=["encoder.1"]):
        exactly(model(SOURCE, TARGET), changed(SOURCE, TARGET))
    shorter = copy.deepcopy(model)
    del shorter.decoder.layers[1]
    with heedful.ablate(model, layers=["decoder.1"]):
        exactly(model(SOURCE, TARGET), shorter(SOURCE, TARGET))


def test_the_mean_of_other_inputs_replaces_an_output(model: Any) -> None:
    attention = model.encoder.layers[0].self_attention.sublayer.attention
    outputs: list[Tensor] = []
    handle = attention.register_forward_hook(lambda _, inputs, output: outputs.append(output))
    model(SOURCE, TARGET)
    handle.remove()
    mean = outputs[0].mean(dim=(0, 2))  # (H, K)
    with heedful.ablate(model, heads=["encoder.0.1"], mean=[(SOURCE, TARGET)]):
        handle = attention.register_forward_hook(lambda _, inputs, output: outputs.append(output))
        model(SOURCE.flip(1), TARGET)
        handle.remove()
    exactly(outputs[1][:, 1], mean[1].expand(2, 5, 6))
    assert not torch.allclose(outputs[1][:, 0], mean[0].expand(2, 5, 6))
    with pytest.raises(ConfigError, match="at least one input"), heedful.ablate(model, heads="all", mean=[]):
        pass


def test_a_shared_layer_is_ablated_where_it_is_named() -> None:
    albert: Any = heedful.build("albert-tiny", d_model=32, n_heads=2, d_ff=48, n_layers=3).double().eval()
    seen: list[Tensor] = []
    with heedful.ablate(albert, feed_forward=[1]):
        part = albert.encoder.layers[0].feed_forward.sublayer
        handle = part.register_forward_hook(lambda *_: seen.append(_[2]))
        albert(SOURCE)
        handle.remove()
    assert [bool(output.any()) for output in seen] == [True, False, True]
    with heedful.ablate(albert, layers=[1, 2]):
        once = albert(SOURCE)
    albert.encoder.layers = nn.ModuleList([albert.encoder.layers[0]])
    exactly(once, albert(SOURCE))


def test_generation_runs_without_the_part_and_with_it_again() -> None:
    for predictor, name in ((translator("ko", "en"), "cross"), (language_model(), "decoder.0.1")):
        (before,) = predictor.answers(["나는 책을"])
        with heedful.ablate(predictor, heads=[name]):
            (ablated,) = predictor.answers(["나는 책을"])
        assert ablated.logprob != before.logprob
        assert predictor.answers(["나는 책을"]) == [before]


def test_without_cross_attention_the_source_has_no_effect() -> None:
    model = translator("ko", "en")
    with heedful.ablate(model, heads=["cross"]):
        first, second = model.predict(["나는 책을 읽었다.", "고양이는 바다에서 놀아요."])
    assert first == second


def test_encoder_only_models_have_an_encoder() -> None:
    model = embedder()
    (before,) = model.predict(["I drink water."])
    with heedful.ablate(model, heads=["encoder.1.2"], feed_forward=[0]):
        (ablated,) = model.predict(["I drink water."])
    assert list(before) != list(ablated)


def test_an_error_inside_restores_the_model(model: Any) -> None:
    before = model(SOURCE, TARGET)
    with pytest.raises(KeyError), heedful.ablate(model, heads="all", layers=["encoder"]):
        raise KeyError
    exactly(model(SOURCE, TARGET), before)
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in model.modules())


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"heads": ["encoder.3.0"]}, "encoder has layers 0 to 2"),
        ({"heads": ["cross.0.4"]}, "cross.0 has heads 0 to 3"),
        ({"heads": ["decodr.0"]}, "did you mean 'decoder'"),
        ({"heads": ["encoder.x"]}, "not a name such as encoder.0"),
        ({"heads": ["encoder.0.0.0"]}, "too many numbers"),
        ({"heads": "encoder"}, r"\['encoder'\], or 'all'"),
        ({"feed_forward": [0]}, "encoder.0 or decoder.0"),
        ({"feed_forward": ["cross"]}, "unknown feed-forward 'cross'"),
        ({"layers": ["decoder.2"]}, "decoder has layers 0 to 1"),
        ({"layers": ["decoder.1.1"]}, "too many numbers"),
        ({"layers": ["decoder.1"], "mean": []}, "leave out mean or layers"),
    ],
    ids=str,
)
def test_what_does_not_exist_is_refused_by_name(parts: dict[str, Any], message: str) -> None:
    model = heedful.build("tiny", vocab_size=20, d_model=24, n_heads=4, d_ff=32, n_encoder_layers=3, n_decoder_layers=2)
    with pytest.raises(ConfigError, match=message), heedful.ablate(model, **parts):
        pass


def test_models_without_attention_layers_are_refused() -> None:
    with pytest.raises(RecordingError, match="attention layers"), heedful.ablate(heedful.build("recurrent", d_model=8)):
        pass
    with pytest.raises(RecordingError, match="attention layers"), heedful.ablate(ConcatPool(8)):
        pass
    with pytest.raises(RecordingError, match="neither a module nor"), heedful.ablate("runs/demo"):
        pass
