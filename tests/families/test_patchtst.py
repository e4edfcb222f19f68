"""The patch forecaster: scales, channels, gaps and patches here, and what a published one brings along."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor
from transformers.models.patchtst import modeling_patchtst as published

import heedful
from heedful.core import InstanceScale, MeanScale, NoScale, padding
from heedful.errors import ConfigError
from heedful.families import PatchTSTConfig, config_of, presets, read_published, write_published
from heedful.families.weights import read_weights, weights_of, write_weights
from published_pairs import files, pair
from published_series import PATCHES, SERIES, SIZES

SMALL = {"family": "patchtst", "d_model": 20, "n_heads": 5, "d_ff": 23, "n_layers": 2, "horizon": 7, "n_channels": 3}


def made(**changes: Any) -> Any:
    """With random norms and biases, in evaluation; running variances are positive."""
    torch.manual_seed(0)
    model = heedful.build(SMALL | changes).double().eval()
    for name, tensor in model.state_dict().items():
        tensor.normal_(1.0 if "norm" in name else 0.0, 0.2)
    return model


def prices(rows: int = 2, channels: int = 3, length: int = 30) -> Tensor:
    """Walks at different heights."""
    walks = torch.randn(rows, length, channels, dtype=torch.float64, generator=torch.Generator().manual_seed(7))
    return walks.cumsum(dim=1) + 10 * torch.arange(channels) + 50


def close(mine: Tensor, wanted: Tensor, tolerance: float = 1e-11) -> None:
    torch.testing.assert_close(mine, wanted, rtol=tolerance, atol=tolerance)


# What a series is to it


def test_thirty_days_make_nine_patches_and_the_days_that_follow() -> None:
    model = heedful.build("patchtst-tiny").eval()
    days = torch.randn(2, 30, 1)
    assert model.encode(days).shape == (2, 1, 9, 64)
    assert model(days).shape == (2, 5, 1)
    assert PatchTSTConfig().n_patches == 9


@pytest.mark.parametrize(("preset", "n_patches"), [("patchtst-42", 41), ("patchtst-64", 63)])
def test_the_papers_sizes(preset: str, n_patches: int) -> None:
    config = presets()[preset]
    assert isinstance(config, PatchTSTConfig)
    model: Any = heedful.build(preset, n_layers=1).eval()
    with torch.no_grad():
        assert model(torch.randn(1, config.context_length, 2)).shape == (1, 96, 2)
    assert config.n_patches == len(model.encoder.positions.weight) == n_patches


@pytest.mark.parametrize("channels", ["independent", "mixed"])
def test_a_moved_and_stretched_series_has_a_moved_and_stretched_forecast(channels: str) -> None:
    model, series = made(channels=channels), prices()
    model.scale.eps = 1e-20  # it alone keeps a stretched series from looking the same
    stretch, move = torch.tensor([3.0, 0.01, 1e6]), torch.tensor([-500.0, 0.0, 1e9])
    close(model(series * stretch + move), model(series) * stretch + move, 1e-9)


def test_by_its_magnitude_a_series_is_stretched_and_not_moved() -> None:
    model, series = made(scale="mean"), prices()
    close(model(series * 1e3), model(series) * 1e3)
    assert not torch.allclose(model(series + 9), model(series) + 9, rtol=1e-3)
    close(model(torch.zeros(1, 30, 1).double()), torch.zeros(1, 7, 1).double(), 1e-6)


@pytest.mark.parametrize("constant", [0.0, 1.0, -71300.0])
def test_the_forecast_of_a_constant_stays_near_it_with_finite_gradients(constant: float) -> None:
    series = torch.full((2, 30, 3), constant, dtype=torch.float64, requires_grad=True)
    for training in (False, True):
        model = made(dropout=0.0, embedding_dropout=0.0, activation_dropout=0.0).train(training)
        forecast = model(series)
        assert float((forecast - constant).detach().abs().max()) < 0.1
        for gradient in torch.autograd.grad(forecast.square().mean(), [series, *model.parameters()]):
            assert gradient.isfinite().all()


def test_independent_channels_are_each_alone_and_may_be_any_number() -> None:
    model, series = made(), prices(channels=5)
    close(model(series), torch.cat([model(series[..., c : c + 1]) for c in range(5)], dim=2))
    close(model.encode(series)[:, 2], model.encode(series[..., 2:3])[:, 0])


def test_mixed_channels_read_each_other() -> None:
    model, series = made(channels="mixed"), prices()
    other = series.clone()
    other[..., 2] = other[..., 2].flip(1)
    assert model(series).shape == (2, 7, 3)
    assert model.encode(series).shape == (2, 1, 9, 20)
    assert (model(series) - model(other))[..., :2].abs().min() > 1e-6
    with pytest.raises(ValueError, match=r"\(B, 30, 3\) here, not torch.float64 of \(2, 30, 2\)"):
        model(series[..., :2])


@pytest.mark.parametrize("channels", ["independent", "mixed"])
def test_what_stands_in_a_gap_has_no_say_in_a_forecast_or_a_gradient(channels: str) -> None:
    model, series = made(channels=channels), prices()
    keep = torch.ones(2, 30, dtype=torch.bool)
    keep[0, 4:6] = keep[1, :13] = False

    def run(fill: float) -> list[Tensor]:
        filled = series.masked_fill(~keep[..., None], fill).requires_grad_()
        forecast = model(filled, keep)
        return [forecast, *torch.autograd.grad(forecast.square().sum(), [filled, *model.parameters()])]

    for zero, nan in zip(run(0.0), run(torch.nan), strict=True):
        assert nan.isfinite().all()
        assert torch.equal(zero, nan)
    close(model(series, keep)[0], model(series[:1], keep[:1])[0])  # a row of a batch is the row alone


def test_patches_stay_where_they_are_behind_a_gap() -> None:
    model, series = made(n_channels=1), prices(channels=1)
    keep = torch.arange(30)[None] >= 9
    observed = series[:, 9:]
    scale = model.scale(observed)
    x, _ = model.embedding(scale.apply(observed))
    wanted = model.encoder(x, positions=torch.arange(3, 9))
    close(model.encode(series, keep)[:, 0, 3:], wanted)
    close(model.encode(series, padding(keep))[:, 0, 3:], wanted)


def test_a_series_that_nobody_observed_has_a_finite_forecast() -> None:
    for scale in ("std", "mean", "none"):
        forecast = made(scale=scale)(torch.full((1, 30, 3), torch.nan).double(), padding([0]))
        assert forecast.isfinite().all()


def test_steps_that_fill_no_patch_are_the_oldest_and_count_in_the_scale_alone() -> None:
    series = prices(length=32)
    other = series.clone()
    other[:, :2] += 5
    unscaled, scaled = (made(context_length=32, scale=scale) for scale in ("none", "std"))
    assert torch.equal(unscaled(series), unscaled(other))
    assert torch.equal(unscaled(series), made(scale="none")(series[:, 2:]))
    assert not torch.allclose(scaled(series), scaled(other))


def test_prices_keep_their_digits_in_a_model_of_half_precision() -> None:
    model, series = made(), prices().float() + 71300
    with torch.no_grad():
        exact, rough = model(series.double()), model.bfloat16()(series)
    assert rough.dtype == torch.float32
    assert float((rough - exact).abs().max()) < 0.5  # at this height bfloat16 itself counts in steps of 512


# What everything here can do


def test_attention_over_patches_can_be_looked_at() -> None:
    model, series = made(), prices()
    expected = model(series)
    with heedful.record(model) as recording:
        assert torch.equal(model(series), expected)
    assert [*recording.encoder] == [0, 1]
    for weights in recording.encoder.values():
        assert weights.shape == (6, 5, 9, 9)
        close(weights.sum(-1), torch.ones(6, 5, 9, dtype=torch.float64))


def test_copies_states_and_files_carry_the_running_statistics(tmp_path: Path) -> None:
    model, series = made(), prices()
    model.train()(series)
    expected = model.eval()(series)
    assert torch.equal(copy.deepcopy(model)(series), expected)
    loaded, filed = (heedful.build(SMALL).double().eval() for _ in range(2))
    loaded.load_state_dict(model.state_dict())
    write_weights(model, tmp_path / "model.safetensors")
    read_weights(filed, tmp_path / "model.safetensors")
    for other in (loaded, filed):
        assert torch.equal(other(series), expected)
    assert sum("running" in name for name in weights_of(model)) == 8


def test_it_learns_waves() -> None:
    torch.manual_seed(0)
    model = heedful.build("patchtst-tiny").train()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

    def waves(n: int) -> tuple[Tensor, Tensor]:
        phase, height = 6.3 * torch.rand(n, 1, 1), 100 * torch.rand(n, 1, 1)
        wave = (0.5 * torch.arange(35.0)[:, None] + phase).sin() + height
        return wave[:, :30], wave[:, 30:]

    for _ in range(60):
        past, future = waves(64)
        optimizer.zero_grad()
        (model(past) - future).square().mean().backward()
        optimizer.step()
    past, future = waves(64)
    with torch.no_grad():
        error = (model.eval()(past) - future).square().mean()
    assert error < 0.05 * (past[:, -1:] - future).square().mean()


@pytest.mark.parametrize(
    ("series", "message"),
    [
        (torch.zeros(1, 30), r"\(B, 30, channels\) here, not torch.float32 of \(1, 30\)"),
        (torch.zeros(1, 30, 1, dtype=torch.long), "not torch.int64"),
        (torch.zeros(1, 31, 1), "reads 30 steps, not 31; give the newest"),
        (torch.zeros(1, 29, 1), "reads 30 steps, not 29; .* before a shorter one"),
    ],
)
def test_other_series_are_refused(series: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made()(series)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"context_length": 6}, "context_length=6 must be longer than patch_length=6"),
        ({"n_heads": 3}, "d_model=20 is not divisible by n_heads=3"),
        ({"stride": 0}, "stride must be at least 1"),
        ({"head_dropout": 1.0}, "head_dropout must be from 0 to below 1"),
        ({"norm": "rms"}, "unknown value 'rms'"),
    ],
)
def test_impossible_configs_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        heedful.build(SMALL | changes)


# What is published


def genuine(**changes: Any) -> Any:
    """With its counts of batches, and statistics that training left."""
    torch.manual_seed(0)
    config = transformers.PatchTSTConfig(**SIZES | PATCHES | {"num_input_channels": 3} | changes)
    model = transformers.PatchTSTForPrediction(config).double().train()
    for _ in range(3):
        model(prices())
    return model.eval()


@pytest.mark.parametrize("pre_norm", [True, False])
def test_training_is_theirs_too_and_so_are_the_statistics_it_leaves(pre_norm: bool) -> None:
    theirs, series = genuine(pre_norm=pre_norm), prices(4)
    ours = read_published(files(theirs)[0], copy.deepcopy(theirs).state_dict()).module
    close(ours.train()(series), theirs.train()(series).prediction_outputs)
    close(ours.eval()(series), theirs.eval()(series).prediction_outputs)
    state = theirs.state_dict()
    close(
        ours.encoder.layers[1].feed_forward.norm.running_var,
        state["model.encoder.layers.1.norm_sublayer3.batchnorm.running_var"],
    )


def test_counts_of_batches_are_left_out_and_transformers_does_without() -> None:
    theirs = genuine()
    ours = read_published(files(theirs)[0], theirs.state_dict())
    out = write_published(ours.module, ours.config)
    counts = {name for name in theirs.state_dict() if name.endswith("num_batches_tracked")}
    assert len(counts) == 4
    assert out.tensors.keys() == theirs.state_dict().keys() - counts
    fresh = transformers.PatchTSTForPrediction(theirs.config).double().eval()
    fresh.load_state_dict(out.tensors, strict=True)
    close(fresh(prices()).prediction_outputs, theirs(prices()).prediction_outputs)


@pytest.mark.parametrize("rows", [1, 2, 7])
@pytest.mark.parametrize("name", SERIES)
@torch.no_grad()
def test_vectors_and_forecasts_of_any_number_of_rows(name: str, rows: int) -> None:
    both = pair(name, torch.float64)
    series = 100 + 10 * both.inputs(rows, 3)
    close(both.module.encode(series), both.reference.model(series).last_hidden_state)
    close(both.module(series), both.reference(series).prediction_outputs)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (InstanceScale(), published.PatchTSTStdScaler),
        (MeanScale(), published.PatchTSTMeanScaler),
        (NoScale(), published.PatchTSTNOPScaler),
    ],
)
def test_scales_are_theirs_also_over_gaps(ours: Any, theirs: Any) -> None:
    series, keep = prices(), torch.rand(2, 30) < 0.7
    for real, observed in ((None, torch.ones(2, 30)), (padding(keep), keep.double())):
        mine = ours(series, real)
        scaled, location, width = theirs(transformers.PatchTSTConfig())(series, observed[..., None].expand(-1, -1, 3))
        close(mine.location, location)
        close(mine.width, width)
        close(mine.apply(series), scaled)
        close(mine.undo(scaled), series)


def test_sinusoids_start_as_theirs() -> None:
    theirs = transformers.PatchTSTForPrediction(transformers.PatchTSTConfig(**SIZES | PATCHES))
    ours = heedful.build(SMALL, positions="sinusoidal").get_parameter("encoder.positions.weight")
    close(ours, theirs.model.encoder.positional_encoder.position_enc, 1e-6)
    learned = heedful.build("patchtst-42").get_parameter("encoder.positions.weight")
    assert float(learned.detach().std()) == pytest.approx(0.02, rel=0.1)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("share_embedding", False),
        ("share_projection", False),
        ("channel_attention", True),
        ("use_cls_token", True),
        ("pooling_type", "median"),
        ("loss", "nll"),
        ("scaling", "max"),
        ("minimum_scale", 1.0),
        ("norm_type", "rmsnorm"),
        ("architectures", ["PatchTSTForClassification"]),
    ],
)
def test_published_settings_that_are_not_supported_are_named(key: str, value: Any) -> None:
    config, _ = files(pair("patchtst").reference)
    with pytest.raises(
        ConfigError, match=rf"{key.removesuffix('s')}.*{value[0] if isinstance(value, list) else value}"
    ):
        read_published(config | {key: value}, {})


@pytest.mark.parametrize(("word", "scale"), [("std", "std"), (True, "mean"), (None, "none"), (False, "none")])
def test_words_for_the_scale(word: Any, scale: str) -> None:
    theirs = genuine(scaling=word)
    ours = read_published(files(theirs)[0], theirs.state_dict())
    assert ours.config.to_dict()["scale"] == scale
    close(ours.module(prices()), theirs(prices()).prediction_outputs)


def test_mixed_channels_have_no_published_form() -> None:
    config = PatchTSTConfig(channels="mixed", n_channels=2)
    with pytest.raises(ConfigError, match="channels='mixed' has no published form"):
        write_published(heedful.build(config), config)


def test_what_is_direct_is_a_linear_map_of_the_observed_steps_added_to_the_patches() -> None:
    torch.manual_seed(0)
    model: Any = heedful.build("patchtst-tiny", direct=True, scale="none").double().eval()
    with torch.no_grad():
        model.direct.weight.normal_()
    series, keep = torch.randn(2, 30, 3, dtype=torch.float64), torch.arange(30)[None] >= 6
    patches = copy.deepcopy(model)
    patches.direct = None
    for seen in (None, keep.expand(2, -1)):
        known = series if seen is None else series.masked_fill(~seen[..., None], 0.0)
        wanted = patches(series, seen) + torch.stack([model.direct.weight @ one for one in known])
        torch.testing.assert_close(model(series, seen), wanted)
    with pytest.raises(ConfigError, match="direct=True has no published form"):
        write_published(model, config_of({"preset": "patchtst-tiny", "direct": True, "scale": "none"}))
