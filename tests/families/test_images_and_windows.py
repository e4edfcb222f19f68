"""ViT, DeiT and Mistral: what their published files may say, which tokens a window shows, and how large they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file

import heedful
from heedful.backends import supports
from heedful.config import read_mapping
from heedful.errors import ConfigError
from heedful.families import MistralConfig, ViTConfig, read_published, write_published
from heedful.families.weights import WeightsError
from published_images import deit, vit
from published_pairs import Pair, files, pair, reference

MODELS = {"vit": lambda: vit(transformers.ViTModel), "deit": lambda: deit(transformers.DeiTModel)}
PIXELS = torch.randn(3, 2, 12, 12, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
WINDOW, LAYERS = 5, 3  # of the pair "mistral"
PROMPTS = [[5, 9, 30, 7], [4, 4, 8, 21, 17, 11, 3, 33, 2], [12], [3, 29, 2, 12, 13]]


def randomized(model: Any) -> Any:
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model.double().eval()


@pytest.mark.parametrize("name", MODELS)
@torch.no_grad()
def test_a_model_without_classifier_supports_three_heads(name: str) -> None:
    model = randomized(MODELS[name]())
    config, tensors = files(model)[0], dict(model.state_dict())
    wanted = model(PIXELS)
    hidden, mean, pooled = (read_published(config, tensors, head=head) for head in ("hidden", "mean", "pooled"))
    assert read_published(config, tensors).config == hidden.config
    torch.testing.assert_close(hidden.module(PIXELS), wanted.last_hidden_state)
    torch.testing.assert_close(mean.module(PIXELS), wanted.last_hidden_state.mean(dim=1))
    torch.testing.assert_close(pooled.module(PIXELS), wanted.pooler_output)
    out = write_published(pooled.module, pooled.config)
    assert out.config["architectures"] == [type(model).__name__]
    assert out.tensors.keys() == tensors.keys()
    assert all(torch.equal(out.tensors[key], tensor) for key, tensor in tensors.items())


@pytest.mark.parametrize("name", ["vit", "deit", "deit classes"])
@torch.no_grad()
def test_a_classifier_checkpoint_fits_the_model_without_classifier(name: str) -> None:
    model = reference(name, torch.float64)
    tensors = dict(model.state_dict())
    module = read_published(files(model)[0], tensors, head="hidden").module
    torch.testing.assert_close(module(PIXELS), model.base_model(PIXELS).last_hidden_state)
    with pytest.raises(WeightsError, match=r": pooler\.dense\.weight is missing; pooler\.dense\.bias is missing$"):
        read_published(files(model)[0], tensors, head="pooled")


def test_a_checkpoint_without_classifier_cannot_classify() -> None:
    model = MODELS["vit"]()
    config = files(model)[0] | {"architectures": ["ViTForImageClassification"]}
    with pytest.raises(WeightsError, match=r": classifier\.weight is missing; classifier\.bias is missing$"):
        read_published(config, model.state_dict())


@pytest.mark.parametrize("name", ["vit", "deit"])
@torch.no_grad()
def test_a_folder_that_transformers_wrote(name: str, tmp_path: Path) -> None:
    twin = reference(name)
    model = randomized(type(twin)(twin.config))  # without the names of files, which are its own to know
    model.save_pretrained(tmp_path)
    read = read_published(read_mapping(tmp_path / "config.json"), load_file(tmp_path / "model.safetensors"))
    torch.testing.assert_close(read.module(PIXELS), model(PIXELS).logits)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("vit", {"image_size": [12, 8]}, "image_size=[12, 8] is not supported; only squares are"),
        ("vit", {"patch_size": [4, 2]}, "patch_size=[4, 2] is not supported; only squares are"),
        ("vit", {"image_size": [12]}, "image_size=[12] is not supported"),
        ("vit", {"image_size": "12"}, "image_size must be a whole number"),
        ("vit", {"image_size": 13}, "image_size=13 cannot be cut into patches of patch_size=4"),
        ("vit", {"patch_size": 0}, "patch_size must be at least 1"),
        ("vit", {"num_attention_heads": 3}, "not divisible"),
        ("vit", {"hidden_act": "quick_gelu"}, "hidden_act 'quick_gelu'"),
        ("vit", {"id2label": {}}, "n_classes must be at least 1"),
        ("vit", {"pooler_act": "relu"}, "pooler_act='relu' is not supported; only 'tanh' is"),
        ("vit", {"pooler_output_size": 7}, "hidden_size=20 and pooler_output_size=7 differ"),
        ("vit", {"architectures": ["ViTForMaskedImageModeling"]}, "ViTForMaskedImageModeling"),
        ("deit", {"architectures": ["ViTForImageClassification"]}, "ViTForImageClassification"),
        ("mistral", {"sliding_window": 0}, "window must be at least 1"),
        ("mistral", {"sliding_window": "5"}, "window must be a whole number"),
        ("mistral", {"num_key_value_heads": None}, "n_kv_heads must be a whole number, but None"),
        ("mistral", {"num_key_value_heads": 3}, "n_heads=4 is not divisible by n_kv_heads=3"),
        ("mistral", {"rope_parameters": {"rope_type": "yarn", "factor": 2.0}}, "rope_type 'yarn'"),
    ],
)
def test_a_setting_that_is_not_supported_is_named(name: str, change: dict[str, Any], message: str) -> None:
    model = reference(name)
    with pytest.raises(ConfigError) as caught:
        read_published(files(model)[0] | change, model.state_dict())
    assert message in str(caught.value)


def test_a_square_may_be_given_as_height_and_width() -> None:
    model = reference("vit")
    config, tensors = files(model)[0], model.state_dict()
    pairs = {"image_size": [12, 12], "patch_size": [4, 4]}
    assert read_published(config | pairs, tensors).config == read_published(config, tensors).config


def test_a_null_window_differs_from_a_missing_one() -> None:
    model = reference("mistral")
    config, tensors = files(model)[0], model.state_dict()
    windows = {key: value for key, value in config.items() if key != "sliding_window"}
    assert read_published(windows, tensors).config == read_published(config, tensors, window=4096).config
    without = read_published(config | {"sliding_window": None}, tensors)
    assert without.config.to_dict()["window"] is None
    assert not supports(without.module, "single_step")  # and so every quick way is open to it
    assert supports(read_published(config, tensors).module, "single_step")


@pytest.fixture(scope="module")
def mistral() -> Pair:
    return pair("mistral", torch.float64)


@torch.no_grad()
def test_receptive_field_grows_by_a_window_per_layer(mistral: Pair) -> None:
    """Each layer looks back four tokens, so three layers twelve, and not one more."""
    tokens = mistral.inputs(1, 30)
    logits = mistral.module(tokens)[0, -1]
    reach = LAYERS * (WINDOW - 1)
    for back, seen in ((reach, True), (reach + 1, False)):
        other = tokens.clone()
        other[0, -1 - back] = (other[0, -1 - back] + 1) % 37
        assert torch.equal(mistral.module(other)[0, -1], logits) != seen, back


@torch.no_grad()
@pytest.mark.parametrize("capacity", [None, 16])
def test_a_window_slides_over_left_padding_step_by_step(mistral: Pair, capacity: int | None) -> None:
    lengths = torch.tensor([13, 7, 2])
    tokens, real = mistral.inputs(3, 13), torch.arange(13) >= 13 - lengths[:, None]
    cache_length, steps = mistral.module.new_cache(capacity), []
    for start, end in ((0, 6), (6, 7), (7, 11), (11, 12), (12, 13)):
        keep = real[:, :end] if capacity is None else torch.nn.functional.pad(real, (0, capacity - 13), value=True)
        steps.append(mistral.module(tokens[:, start:end], keep, cache=cache_length))
    logits = torch.cat(steps, dim=1)
    for row in range(3):
        unpadded = mistral.reference(tokens[row, real[row]][None]).logits[0]
        torch.testing.assert_close(logits[row, real[row]], unpadded, rtol=0, atol=1e-9)


@torch.no_grad()
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])
def test_greedy_answers_go_beyond_the_window(dtype: torch.dtype) -> None:
    """All in one batch, and each alone as the best tokens of a forward pass, and as transformers writes them."""
    twins = pair("mistral", dtype)
    answers = heedful.generate(twins.module, PROMPTS, start=0, end=(), max_new_tokens=4 * WINDOW)
    unseen = read_published(files(twins.reference)[0] | {"sliding_window": None}, twins.reference.state_dict()).module
    others = heedful.generate(unseen, PROMPTS, start=0, end=(), max_new_tokens=4 * WINDOW)
    assert [best.tokens for best, *_ in answers] != [best.tokens for best, *_ in others]  # the window matters
    for prompt, (best, *_) in zip(PROMPTS, answers, strict=True):
        written = list(best.tokens)
        assert len(written) == 4 * WINDOW
        logits = twins.module(torch.tensor([prompt + written]))[0, len(prompt) - 1 : -1]
        assert logits.argmax(dim=-1).tolist() == written
        ids = torch.tensor([prompt])
        settings = {"do_sample": False, "eos_token_id": None, "pad_token_id": 0, "max_new_tokens": 4 * WINDOW}
        expected = twins.reference.generate(ids, attention_mask=torch.ones_like(ids), **settings)
        assert expected[0, len(prompt) :].tolist() == written


@torch.no_grad()
def test_int8_respects_the_window(mistral: Pair) -> None:
    """An answer in int8 hangs on no token beyond its reach: a prompt may be longer at its beginning."""
    module = pair("mistral").module
    reach = LAYERS * (WINDOW - 1)
    near = [int(token) for token in mistral.inputs(1, reach + 1)[0]]
    settings: dict[str, Any] = {"start": 0, "end": (), "max_new_tokens": 1, "precision": "int8"}
    (plain,), (longer,), (changed,) = heedful.generate(module, [near, [9, 8, 7, *near], [1, 2, 3, *near]], **settings)
    assert longer.tokens == changed.tokens == plain.tokens
    assert longer.logprob == pytest.approx(changed.logprob, abs=1e-6)


@pytest.mark.parametrize(
    ("preset", "parameters"),
    [
        ("vit-small-16", 22_050_664),
        ("vit-base-16", 86_567_656),
        ("vit-base-32", 88_224_232),
        ("vit-large-16", 304_326_632),
        ("vit-huge-14", 632_045_800),
        ("deit-tiny", 5_910_800),
        ("deit-small", 22_436_432),
        ("deit-base", 87_338_192),
        ("mistral-7b", 7_241_732_096),
        ("mistral-7b-v0.2", 7_241_732_096),
        ("mistral-7b-v0.3", 7_248_023_552),
    ],
)
def test_presets_have_as_many_parameters_as_the_published_models(preset: str, parameters: int) -> None:
    with torch.device("meta"):
        model = heedful.build(preset)
    assert sum(parameter.numel() for parameter in model.parameters()) == parameters


@torch.no_grad()
@pytest.mark.parametrize("preset", ["vit-tiny", "deit-tiny", "mistral-tiny"])
def test_image_models_start_normal_with_std_002(preset: str) -> None:
    model = heedful.build(preset, n_layers=1)
    for name, parameter in model.named_parameters():
        if parameter.dim() > 1 and parameter.numel() > 4000:
            assert float(parameter.std()) == pytest.approx(0.02, rel=0.1), name
        elif parameter.dim() == 1:
            assert set(parameter.tolist()) <= {0.0, 1.0}, name


@pytest.mark.parametrize(("family", "heads"), [("vit", ["classes", "pooled"]), ("deit", ["distilled", "classes"])])
def test_every_parameter_learns(family: str, heads: list[str]) -> None:
    sizes = {"image_size": 12, "patch_size": 4, "n_channels": 2, "d_model": 20, "n_heads": 5, "d_ff": 23, "n_layers": 2}
    for head in heads:
        model = heedful.build({"family": family, "head": head, **sizes}).double()
        model(PIXELS).square().mean().backward()
        parameters = dict(model.named_parameters())
        assert all(parameter.grad is not None and parameter.grad.any() for parameter in parameters.values())


def test_invalid_configs_are_refused_with_a_reason() -> None:
    with pytest.raises(ConfigError, match="image_size=224 cannot be cut into patches of patch_size=15"):
        ViTConfig(patch_size=15)
    with pytest.raises(ConfigError, match=r"'distilled'.*allowed: classes, hidden, mean, pooled"):
        ViTConfig.from_dict({"head": "distilled"})
    with pytest.raises(ConfigError, match="unknown key 'bias'"):
        MistralConfig.from_dict({"bias": True})
