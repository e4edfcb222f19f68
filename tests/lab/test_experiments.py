"""Every experiment runs, in both languages; its parts compute what they say, and verdicts follow from the numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import heedful
from every_task import translator
from heedful import core
from heedful.core import attention_weights
from heedful.errors import ConfigError
from heedful.lab import EXPERIMENTS, Arm, Experiment, Findings, Gap, broken_parts, measures, run, trained
from heedful.lab.models import (
    BareSublayer,
    Reader,
    encoder,
    reversing_loss,
    shifted,
    symbols,
    teacher_forced_accuracy,
    train,
    transformer,
    write,
)
from heedful.lab.presentation import catalog, claim, report, sparklines, table, verdict
from heedful.lab.presentation import write as write_files
from heedful.lens.report.document import report_document
from shell import heedful as shell

EXAMPLE = Experiment(
    "no-residual", lambda seed, effort: {}, (Gap("intact.written", "no-residual.written", 0.3),), "step", "loss"
)


def findings(*gaps: float) -> Findings:
    """Measurements with these differences, a seed each."""
    arms = [
        {"intact": Arm({"written": 0.9}, [2.0, 1.0]), "no-residual": Arm({"written": 0.9 - gap}, [3.0, 3.0])}
        for gap in gaps
    ]
    return Findings(EXAMPLE, arms)


@pytest.fixture(scope="module", autouse=True)
def _fewer_depths() -> Iterator[None]:
    """Fewer models for the gradients by depth, which take the longest."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(broken_parts, "DEPTHS", (6, 48))
        yield


@pytest.fixture(scope="module")
def tiny() -> dict[str, Findings]:
    names = [name for name in EXPERIMENTS if name != "feed-forward"]
    return {name: run(name, seeds=1, effort=0.005) for name in names}


@pytest.mark.parametrize("name", [name for name in EXPERIMENTS if name != "feed-forward"])
def test_every_experiment_runs_and_is_shown_in_both_languages(
    name: str, tiny: dict[str, Findings], tmp_path: Path
) -> None:
    for language in ("en", "ko"):
        assert len(table(tiny[name], language)) == len(tiny[name].measurements[0])
        assert len(verdict(tiny[name], language)) == 1 + len(EXPERIMENTS[name].gaps)
        assert set(sparklines(tiny[name], language)) <= {
            next(iter(row.values())) for row in table(tiny[name], language)
        }
        document = report_document(report(tiny[name], language))
        assert document["language"] == language
        assert len(document["curves"]) == 1
        assert document["curves"][0]["lines"]
    page, numbers = write_files(tiny[name], tmp_path)
    assert "<script" in page.read_text(encoding="utf-8")
    assert json.loads(numbers.read_text())["scores"] == tiny[name].scores()


def test_both_catalogs_have_the_same_keys_and_every_experiment() -> None:
    english, korean = catalog("en"), catalog("ko")
    assert {group: set(labels) for group, labels in english.items()} == {
        group: set(labels) for group, labels in korean.items()
    }
    assert set(english["experiments"]) == set(EXPERIMENTS)
    assert claim("heads", "ko") != claim("heads")


def test_a_claim_holds_if_every_seed_shows_every_gap() -> None:
    assert findings(0.5, 0.31, 0.4).holds
    assert not findings(0.5, 0.29, 0.9).holds
    assert [n for _, n in findings(0.5, 0.29, 0.9).support()] == [2]
    assert "holds" in verdict(findings(0.5))[0]
    assert verdict(findings(0.2, 0.4)) == [
        "The claim does not show here.",
        "intact (right, writing alone): 0.9; no residual (right, writing alone): 0.6. "
        "Difference of at least 0.3: 1 of 2 seeds",
    ]


def test_a_row_has_the_mean_and_the_range_over_the_seeds() -> None:
    assert table(findings(0.2, 0.6))[1] == {"model": "no residual", "right, writing alone": "0.500 (0.300 – 0.700)"}
    assert table(findings(0.2))[0]["right, writing alone"] == "0.900"


def test_sparklines_of_an_experiment_share_a_scale() -> None:
    assert sparklines(findings(0.2)) == {"intact": "▅▁", "no residual": "██"}


def test_the_same_seed_gives_the_same_numbers() -> None:
    first, second = (run("heads", seeds=1, effort=0.005).scores() for _ in range(2))
    assert first == second


def test_what_cannot_run_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="did you mean 'depth'"):
        run("dept")
    with pytest.raises(ConfigError, match="at least 1 seed"):
        run("depth", seeds=0)
    with pytest.raises(ConfigError, match="unknown language"):
        claim("depth", "fr")


def test_the_reverser_learns_its_task_and_writes_it() -> None:
    torch.manual_seed(0)
    model, draws = transformer(), torch.Generator().manual_seed(0)
    curve = train(model, lambda _: reversing_loss(model, symbols(32, 4, draws)), 120)
    source = symbols(64, 4, torch.Generator().manual_seed(1))
    assert curve[-1] < 0.5 < curve[0]
    assert teacher_forced_accuracy(model, source) > 0.9
    assert bool((write(model, source) == source.flip(1)).all(dim=1).float().mean() > 0.7)
    assert not model.training


def test_a_target_is_read_shifted_behind_the_start() -> None:
    assert shifted(torch.tensor([[5, 6, 7]])).tolist() == [[16, 5, 6]]


def test_broken_models_are_broken_in_one_part() -> None:
    source = symbols(2, 5, torch.Generator().manual_seed(0))
    target = shifted(source)
    other = target.clone()
    other[:, -1] = 3
    with torch.no_grad():
        masked, open_ = transformer().eval(), transformer(mask=core.everything()).eval()
        assert torch.equal(masked(source, target)[:, 0], masked(source, other)[:, 0])
        assert not torch.equal(open_(source, target)[:, 0], open_(source, other)[:, 0])
        blind = transformer(has_cross_attention=False).eval()
        assert torch.equal(blind(source, target), blind(source.flip(1), target))
        unplaced = transformer(positions=lambda _: core.Positions()).eval()
        torch.testing.assert_close(unplaced.encode(source).flip(1), unplaced.encode(source.flip(1)))
        part, x = BareSublayer(nn.Linear(4, 4), nn.Identity()), torch.randn(2, 4)
        assert torch.equal(part(x), part.sublayer(x))
        assert broken_parts.word_order(unplaced) < 1e-5 < broken_parts.word_order(masked)
    unscaled: Any = transformer(scale=1.0)
    assert unscaled.decoder.layers[0].cross_attention.sublayer.attention.scale == 1.0


def test_only_batch_norm_depends_on_the_company() -> None:
    assert broken_parts.company(transformer(), 4) == 0
    assert broken_parts.company(transformer(norm=core.BatchNorm), 4) > 0.05


def test_the_statistics_of_the_softmax_are_those_of_autograd() -> None:
    generator = torch.Generator().manual_seed(0)
    query, key, direction = measures.random_attention(generator)
    torch.testing.assert_close(direction.norm(dim=-1), torch.ones(256))
    query, key = query[..., :16], key[..., :16]
    result = measures.softmax_statistics(query, key, direction, None)
    scores = (query @ key.mT / 4)[0, 0].requires_grad_()
    weights = scores.softmax(-1)
    torch.testing.assert_close(weights, attention_weights(query, key)[0, 0])
    (gradient,) = torch.autograd.grad((weights * direction).sum(), scores)
    assert result["gradient"] == pytest.approx(float(gradient.norm(dim=-1).mean()), rel=1e-4)
    assert result["variance"] == pytest.approx(float(scores.detach().var()), rel=1e-4)
    entropy = -(weights * weights.log2()).sum(-1).mean()
    assert result["entropy"] == pytest.approx(float(entropy.detach()), rel=1e-3)


def test_the_scale_holds_and_steps_are_counted() -> None:
    assert run("scale", seeds=2).holds
    counted = run("steps", seeds=1)
    assert counted.holds
    assert counted.scores()["recurrent"]["steps_32"] == [32]
    assert counted.scores()["attention"]["steps_512"] == [1]


def test_calibration_errors_are_those_of_bins() -> None:
    confidence, right = torch.tensor([0.95, 0.91, 0.55, 1.0]), torch.tensor([1.0, 0.0, 1.0, 1.0])
    assert trained.calibration_error(confidence, right) == pytest.approx((abs(0.95 + 0.91 + 1 - 2) + 0.45) / 4)


def test_rank_correlation_is_that_of_scipy() -> None:
    first, second = torch.tensor([0.1, 0.9, 0.4, 0.3]), torch.tensor([1.0, 5.0, 6.0, 2.0])
    assert trained.rank_correlation(first, second) == pytest.approx(0.8)
    assert trained.rank_correlation(first, -first) == pytest.approx(-1)


@torch.no_grad()
def test_a_hidden_patch_is_seen_by_nobody() -> None:
    torch.manual_seed(0)
    series = trained.prices(2, torch.Generator().manual_seed(0))
    model: Any = core.EncoderOnly(
        embedding=core.SeriesEmbedding(trained.WIDTH),
        encoder=encoder(trained.WIDTH),
        head=core.ForecastHead(core.MeanPool(), trained.WIDTH, horizon=trained.HORIZON),
    )
    other = series.clone()
    other[:, :3] += 1  # the first patch alone has these days
    assert float(trained.forecast_error(model, series, 0)) == float(trained.forecast_error(model, other, 0))
    assert float(trained.forecast_error(model, series)) != float(trained.forecast_error(model, other))


def test_a_reader_reads_one_place_of_recurrent_models_too() -> None:
    tokens: Tensor = symbols(3, 7, torch.Generator().manual_seed(0))
    lstm = nn.LSTM(32, 32, batch_first=True)
    everywhere, last = Reader(16, lstm, 5, 32), Reader(16, lstm, 5, 32, at=-1)
    last.load_state_dict(everywhere.state_dict())
    torch.testing.assert_close(last(tokens), everywhere(tokens)[:, -1])


def test_the_translator_is_ablated() -> None:
    arms = trained.ablated(translator("ko", "en"), 0, 2)
    assert set(arms) == {"intact", "no-last-feed-forward", "no-feed-forward"}


def test_the_command_lists_runs_and_writes(tmp_path: Path) -> None:
    listed = shell("lab", "--list").out
    assert [line.partition(":")[0] for line in listed.splitlines()] == list(EXPERIMENTS)
    assert shell("lab").out == listed
    done = shell("lab", "scale", "--seeds", 2, "--out", tmp_path, "--language", "ko")
    assert done.code == 0
    assert "주장이 성립합니다. 시드 2개" in done.out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["scale.html", "scale.json"]
    wrong = shell("lab", "scael")
    assert wrong.code == 2
    assert "did you mean 'scale'" in wrong.err
    assert heedful.__version__
