"""Two passes that must agree: the formula beside torch's own divergence, the doubling, and who may ask for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from copying import tiny
from torch import Tensor, nn
from torch.nn import functional as F

import heedful
from heedful.data.batch import Batch
from heedful.data.text_batch import TextBatch
from heedful.errors import ConfigError
from heedful.tasks.classification.task import ClassificationConfig, ClassificationTask
from heedful.tasks.forecasting.data import ForecastingConfig
from heedful.tasks.images.data import ImagesConfig
from heedful.tasks.language_model.data import LanguageModelConfig
from heedful.tasks.masked.task import MaskedConfig
from heedful.tasks.run import RunConfig
from heedful.tasks.text_to_text.data import TextToTextConfig
from heedful.tasks.text_to_text.task import TextToTextTask
from heedful.tasks.translation.task import TranslationConfig, TranslationTask
from heedful.training import Loss, TrainingConfig, cross_entropy
from heedful.training import loss as losses
from heedful.training.loss import doubled, loss_of
from id_batches import batch_of

B, T, V = 3, 4, 7


def example(dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor]:
    logits = (2 * torch.randn(2 * B, T, V, dtype=dtype)).requires_grad_()
    return logits, torch.randint(0, V, (B, T)), torch.arange(T) < torch.tensor([4, 2, 1])[:, None]


def by_torch(logits: Tensor, target: Tensor, keep: Tensor, smoothing: float, alpha: float) -> tuple[Tensor, Tensor]:
    first, second = (half[keep] for half in logits.chunk(2))

    def both(smoothing: float) -> Tensor:
        costs = [
            F.cross_entropy(half, target[keep], label_smoothing=smoothing, reduction="sum") for half in (first, second)
        ]
        return (costs[0] + costs[1]) / 2

    p, q = first.log_softmax(-1), second.log_softmax(-1)
    apart = [F.kl_div(a, b, log_target=True, reduction="sum") for a, b in ((p, q), (q, p))]
    return both(smoothing) + alpha / 2 * (apart[0] + apart[1]) / 2, both(0.0)


@pytest.mark.parametrize("block", [1, 5 * V, losses.BLOCK])
@pytest.mark.parametrize(("smoothing", "alpha"), [(0.0, 0.0), (0.1, 0.0), (0.0, 3.0), (0.1, 5.0)])
def test_the_formula_and_its_gradient(
    smoothing: float, alpha: float, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(losses, "BLOCK", block)
    logits, target, keep = example()
    loss = cross_entropy(logits, target, keep, smoothing=smoothing, r_drop=alpha)
    total, plain = by_torch(logits, target, keep, smoothing, alpha)
    assert int(loss.n) == 7
    torch.testing.assert_close(loss.total, total)
    torch.testing.assert_close(loss.plain, plain)
    assert not loss.plain.requires_grad
    torch.testing.assert_close(torch.autograd.grad(loss.total, logits)[0], torch.autograd.grad(total, logits)[0])


def test_the_gradient_is_the_formulas_slope() -> None:
    logits, target, keep = example()
    assert torch.autograd.gradcheck(
        lambda x: 0.3 * cross_entropy(x, target, keep, smoothing=0.2, r_drop=2.0).total, (logits,)
    )


def test_one_label_a_row_and_no_keep() -> None:
    logits, target, _ = example()
    loss = cross_entropy(logits[:, 0], target[:, 0], smoothing=0.1, r_drop=1.0)
    every = torch.ones(B, dtype=torch.bool)
    torch.testing.assert_close(loss.total, by_torch(logits[:, 0], target[:, 0], every, 0.1, 1.0)[0])
    assert int(loss.n) == B


def test_passes_that_agree_cost_what_one_costs() -> None:
    logits, target, keep = example()
    same = torch.cat([logits[:B], logits[:B]]).detach().requires_grad_()
    loss = cross_entropy(same, target, keep, smoothing=0.1, r_drop=5.0)
    one = cross_entropy(logits[:B], target, keep, smoothing=0.1)
    torch.testing.assert_close(loss.total, one.total)
    torch.testing.assert_close(loss.plain, one.plain)


def test_what_does_not_count_may_be_nan() -> None:
    logits, target, keep = example()
    poisoned = logits.detach().masked_fill(~keep.repeat(2, 1)[..., None], float("nan")).requires_grad_()
    loss, clean = (cross_entropy(x, target, keep, r_drop=2.0) for x in (poisoned, logits))
    assert torch.equal(loss.total, clean.total)
    assert torch.equal(torch.autograd.grad(loss.total, poisoned)[0], torch.autograd.grad(clean.total, logits)[0])


def test_halves_are_summed_in_float32() -> None:
    logits = torch.randn(4, 3, 2000).bfloat16().requires_grad_()
    target, keep = torch.randint(0, 2000, (2, 3)), torch.ones(2, 3, dtype=torch.bool)
    loss = cross_entropy(logits, target, keep, smoothing=0.1, r_drop=4.0)
    torch.testing.assert_close(loss.total, by_torch(logits.float(), target, keep, 0.1, 4.0)[0])
    assert torch.autograd.grad(loss.total, logits)[0].dtype == torch.bfloat16


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # torch's own doing
def test_one_graph_for_a_compiler() -> None:
    logits, target, keep = example(torch.float32)
    compiled = torch.compile(cross_entropy, backend="aot_eager", fullgraph=True)
    ours, theirs = (make(logits, target, keep, r_drop=2.0).total for make in (cross_entropy, compiled))
    torch.testing.assert_close(theirs, ours)
    torch.testing.assert_close(torch.autograd.grad(theirs, logits)[0], torch.autograd.grad(ours, logits)[0])


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\(3, 4, 7\) do not fit two passes over a target of shape \(3, 4\)"):
        cross_entropy(torch.zeros(3, 4, 7), torch.zeros(3, 4, dtype=torch.long), r_drop=1.0)


def pairs() -> Batch:
    return batch_of([(np.array([5, 6]), np.array([7])), (np.array([8]), np.array([9, 4, 3]))], shape=(3, 4, 5))


def test_a_doubled_batch_has_every_row_twice() -> None:
    batch = pairs()
    twice = doubled(batch)
    assert twice.shape == (6, 4, 5)
    for name in ("source", "target_in", "target_out", "source_mask", "target_mask"):
        first, second = getattr(twice, name).chunk(2)
        assert torch.equal(first, getattr(batch, name))
        assert torch.equal(second, first)
    assert twice.source_lengths == (3, 2, 0, 3, 2, 0)
    assert twice.rows == batch.rows
    assert doubled(batch.fixed()).target_lengths is None


@pytest.mark.parametrize(("r_drop", "drops", "rows"), [(0.0, True, 3), (2.0, False, 3), (2.0, True, 6)])
def test_twice_in_training_only_and_only_where_asked(r_drop: float, drops: bool, rows: int) -> None:
    torch.manual_seed(0)
    batch, seen = pairs(), list[int]()
    model = nn.Sequential(nn.Embedding(10, 8), nn.Dropout(0.5), nn.Linear(8, 10)).train(drops)

    def forward(batch: Batch) -> Tensor:
        seen.append(len(batch.target_in))
        return model(batch.target_in)

    config = TrainingConfig(r_drop=r_drop)
    loss = loss_of(forward, batch, batch.target_out, batch.target_mask, config, training=drops)
    assert seen == [rows]
    assert int(loss.n) == 6


def text() -> TextBatch:
    keep = torch.arange(4) < torch.tensor([4, 2, 0])[:, None]
    ids = torch.randint(3, 13, (3, 4)) * keep
    labels, real = torch.tensor([1, 2, 0]), torch.tensor([True, True, False])
    return TextBatch(ids, torch.zeros_like(ids), keep, labels, real, lengths=(4, 2, 0), rows=(8, 9))


def reader(dropout: float) -> nn.Module:
    return heedful.build("bert-tiny", vocab_size=13, head="classes", n_classes=3, d_model=8, n_heads=2, dropout=dropout)


JOBS: dict[type[Any], tuple[Callable[..., nn.Module], Callable[[], Any], int]] = {
    TranslationTask: (lambda dropout: tiny(dropout=dropout), pairs, 6),
    TextToTextTask: (lambda dropout: tiny(dropout=dropout), pairs, 6),
    ClassificationTask: (reader, text, 2),
}


@pytest.mark.parametrize("kind", JOBS)
def test_jobs_let_both_passes_through_the_model_at_once(kind: type[Any]) -> None:
    model, batch_of, n = JOBS[kind]

    def loss(module: nn.Module, batch: Any, r_drop: float) -> Loss:
        job = object.__new__(kind)  # without its data, which a loss does not need
        job.config, job.uses_segments = SimpleNamespace(training=TrainingConfig(r_drop=r_drop)), False
        found: Loss = job.loss(module, batch)
        return found

    batch = batch_of()
    sure, unsure = model(0.0).train(), model(0.3).train()
    once, twice = loss(sure, batch, 0.0), loss(sure, batch, 4.0)
    assert int(once.n) == int(twice.n) == n
    torch.testing.assert_close(twice.total, once.total)  # without dropout the passes agree
    torch.manual_seed(1)
    little = loss(unsure, batch, 1e-9)
    torch.manual_seed(1)
    much = loss(unsure, batch, 1e5)
    torch.testing.assert_close(little.plain, much.plain)  # the same two passes, which do not agree
    assert much.total > little.total + 0.1
    assert torch.equal(loss(unsure.eval(), batch, 4.0).total, loss(unsure, batch, 0.0).total)


RUNS: list[tuple[type[RunConfig], Mapping[str, Any]]] = [
    (TranslationConfig, {"source": "ko", "target": "en"}),
    (TextToTextConfig, {}),
    (ClassificationConfig, {}),
    (MaskedConfig, {}),
    (LanguageModelConfig, {}),
    (ImagesConfig, {}),
    (ForecastingConfig, {}),
]


@pytest.mark.parametrize(("kind", "given"), RUNS)
def test_a_run_agrees_or_refuses(kind: type[RunConfig], given: Mapping[str, Any]) -> None:
    kind.from_dict(given)
    asked = {**given, "training": {"r_drop": 1.0}}
    if kind in (TranslationConfig, TextToTextConfig, ClassificationConfig):
        assert kind.from_dict(asked).training.r_drop == 1.0
    else:
        with pytest.raises(ConfigError, match=r"training.r_drop=1.0 is for translation, text to text and classif"):
            kind.from_dict(asked)
