"""The trainer itself: what an update is, what is validated and delivered, what ends a run, what may not go on."""

from __future__ import annotations

import json
import math
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from copying import Copying, Data, Numbers, V, config, digest, tiny
from torch import nn

from heedful.data.loader import WHOLE, Shard
from heedful.errors import DataError
from heedful.families.weights import put_weights, weights_of
from heedful.training import (
    CheckpointWarning,
    Event,
    Finished,
    FolderError,
    Loss,
    Monitor,
    NonFiniteError,
    Outcome,
    ResumeError,
    ResumeWarning,
    RunFolder,
    Saved,
    Trained,
    fit,
    mean_of,
    trainer,
)
from heedful.training.checkpoint import load_tensors, path_of, steps_in
from heedful.training.metrics import AsyncMetrics
from heedful.training.resumption import _compare, identity_of
from heedful.training.signals import Signals
from heedful.training.trainer import Trainer


@pytest.fixture(autouse=True)
def _quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """No process dies here; test_crashes.py is about those that do."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


class OneBatch(Data):
    """All batches of the data in one."""

    def steps_per_epoch(self, epoch: int) -> int:
        return 1

    def epoch(self, epoch: int, start: int = 0, shard: Shard = WHOLE) -> Iterator[Numbers]:
        parts = list(super().epoch(epoch))
        lengths = tuple(length for part in parts for length in part.lengths or ())
        rows = tuple(row for part in parts for row in part.rows)
        yield Numbers.of(torch.cat([part.source for part in parts]), lengths, rows)


def test_accumulated_batches_are_one_large_batch(tmp_path: Path) -> None:
    """Weighted by tokens, since the batches have different numbers of them; after the update its gradient is there."""
    gradients = []
    for data, accumulate in ((Data(4), 4), (OneBatch(4), 1)):
        job = Copying(tiny(dropout=0.0).double(), data=data)
        fit(job, config(steps=1, gradient_accumulation_steps=accumulate), tmp_path / str(accumulate))
        gradients.append([parameter.grad for parameter in job.module.parameters()])
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)
    assert max(float(gradient.abs().max()) for gradient in gradients[0] if gradient is not None) > 0.01


def test_no_update_spans_two_epochs(tmp_path: Path) -> None:
    seen: list[Event] = []
    fit(
        Copying(data=Data(5)),
        config(steps=None, epochs=2, gradient_accumulation_steps=2, log_every=1),
        tmp_path,
        observers=[seen.append],
    )
    assert [event.epoch for event in seen if isinstance(event, Trained)] == [0, 0, 0, 1, 1, 1]


def test_the_task_is_learned(tmp_path: Path) -> None:
    job = Copying(tiny(d_model=16, d_ff=32, dropout=0.0), data=Data(20, rows=32), smoothing=0.0)
    outcome = fit(job, config(steps=100, learning_rate=0.03, warmup_steps=20, validate_every=0, save_every=0), tmp_path)
    assert outcome.scores["loss"] < 0.7 * math.log(V - 3)  # what one who only knows the vocabulary has


def test_bf16_trains_float32_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[torch.dtype] = []

    class Watched(Copying):
        def loss(self, module: nn.Module, batch: Numbers) -> Loss:
            weight = next(module.parameters())
            seen.append((torch.zeros(1, 1, dtype=weight.dtype) @ torch.zeros(1, 1, dtype=weight.dtype)).dtype)
            return super().loss(module, batch)

    for has, precision in ((True, "bf16"), (True, "bf16-weights"), (False, "bf16"), (False, "bf16-weights")):
        seen.clear()
        monkeypatch.setattr(trainer, "computes_in_bf16", lambda device, has=has: has)  # whatever this CPU is
        outcome = fit(Watched(), config(steps=2, precision=precision), tmp_path / f"{precision} {has}")
        assert set(seen) == {torch.bfloat16 if has else torch.float32}
        assert {weight.dtype for weight in weights_of(outcome.module).values()} == {torch.float32}


def test_what_observers_see(tmp_path: Path) -> None:
    seen: list[Event] = []
    outcome = fit(Copying(), config(steps=6, validate_every=3, save_every=2), tmp_path, observers=[seen.append])
    kinds = [(type(event).__name__, getattr(event, "step", None)) for event in seen]
    assert kinds == [
        *[("Trained", 2), ("Saved", 2), ("Validated", 3), ("Saved", 3)],
        *[("Trained", 4), ("Saved", 4), ("Trained", 6), ("Validated", 6), ("Saved", 6), ("Finished", None)],
    ]
    assert isinstance(seen[-1], Finished)
    assert seen[-1].outcome is outcome
    trained = seen[0]
    assert isinstance(trained, Trained)
    assert trained.total_steps == 6
    assert trained.items_per_second > 0
    assert trained.seconds_left > 0
    assert trained.learning_rate == pytest.approx(0.01 * 0.5**0.5)  # a warm-up of 4 would be more than a quarter
    log = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [(row["kind"], row["step"]) for row in log] == [
        *[("train", 2), ("valid", 3), ("train", 4), ("train", 6), ("valid", 6)]
    ]


@pytest.mark.parametrize(("log_every", "first"), [(2, 4), (3, 5), (9, 0)])
def test_logged_losses_are_means_per_token(tmp_path: Path, log_every: int, first: int) -> None:
    """Of the five batches of an epoch, the third step has one."""
    losses: list[Loss] = []

    class Kept(Copying):
        def loss(self, module: nn.Module, batch: Numbers) -> Loss:
            losses.append(super().loss(module, batch))
            return losses[-1]

    seen: list[Event] = []
    fit(Kept(), config(steps=4, gradient_accumulation_steps=2, log_every=log_every), tmp_path, observers=[seen.append])
    last = [event for event in seen if isinstance(event, Trained)][-1]
    n = sum(int(loss.n) for loss in losses[first:])
    assert last.loss == pytest.approx(sum(float(loss.total.detach()) for loss in losses[first:]) / n)
    assert last.nll == pytest.approx(sum(float(loss.plain) for loss in losses[first:]) / n)


@pytest.mark.parametrize(("changes", "last"), [({"steps": 5}, 5), ({"patience": 1}, 4)], ids=["done", "impatient"])
def test_the_last_steps_are_logged_once(tmp_path: Path, changes: dict[str, Any], last: int) -> None:
    settings = config(**{"validate_every": 2, "log_every": 3, **changes})
    fit(Copying(scores=[1.0, 2.0, 3.0]), settings, tmp_path)
    log = (tmp_path / "log.jsonl").read_bytes()
    rows = map(json.loads, log.splitlines())
    assert [(row["step"], row["epoch"]) for row in rows if row["kind"] == "train"] == [(3, 0), (last, 0)]
    fit(Copying(), settings, tmp_path, resume=True)
    assert (tmp_path / "log.jsonl").read_bytes() == log, "a run that is over has nothing to add"


BLEU = Monitor("bleu", higher_is_better=True)


def test_patience_ends_a_run_and_the_best_weights_are_delivered(tmp_path: Path) -> None:
    job = Copying(monitor=BLEU, scores=[1.0, 5.0, 5.0, 3.0, 9.0])
    outcome = fit(job, config(steps=99, validate_every=2, patience=2, keep_last=1, ema_decay=0.0), tmp_path)
    assert outcome.step == 8
    assert "2 validations in a row" in outcome.why
    losses = [validation.scores["loss"] for validation in outcome.validations]
    assert losses[2] < losses[1], "of the two fives the later has the lower loss"
    assert outcome.weights == "those of step 6"
    assert outcome.scores["bleu"] == 5.0
    best = load_tensors(path_of(tmp_path / "checkpoints", 6), "model")
    assert all(torch.equal(weight, best[name]) for name, weight in weights_of(outcome.module).items())
    assert steps_in(tmp_path / "checkpoints") == [6, 8]


def test_a_lower_loss_is_better(tmp_path: Path) -> None:
    job = Copying(scores=[3.0, 1.0, 2.0])
    assert fit(job, config(steps=6, validate_every=2), tmp_path).scores == {"loss": 1.0}


@pytest.mark.parametrize(("average", "steps"), [("best", [2, 6]), ("last", [4, 6, 8])])
@pytest.mark.parametrize("ema", [0.0, 0.9])
def test_averaged_weights_are_scored_again(tmp_path: Path, average: str, steps: list[int], ema: float) -> None:
    job = Copying(monitor=BLEU, scores=[7.0, 1.0, 8.0, 2.0, 4.5])
    settings = config(steps=8, validate_every=2, average=average, keep_best=2, keep_last=3, ema_decay=ema)
    outcome = fit(job, settings, tmp_path)
    kind = "ema" if ema else "model"
    mean = mean_of([load_tensors(path_of(tmp_path / "checkpoints", step), kind) for step in steps])
    assert all(torch.equal(weight, mean[name]) for name, weight in weights_of(outcome.module).items())
    assert outcome.weights.endswith(f"mean over the steps {', '.join(map(str, steps))}")
    assert outcome.scores["bleu"] == 4.5
    assert [validation.scores["bleu"] for validation in outcome.validations] == [7.0, 1.0, 8.0, 2.0]


def test_validation_sees_the_running_average_and_leaves_no_trace(tmp_path: Path) -> None:
    scored: list[str] = []

    class Watched(Copying):
        def validate(self, module: nn.Module) -> dict[str, float]:
            assert module is not self.module
            scored.append(digest(module))
            return super().validate(module)

    fit(Watched(), config(steps=4, validate_every=2), tmp_path / "often")
    fit(Copying(), config(steps=4, validate_every=0), tmp_path / "once")
    often, once = (load_tensors(path_of(tmp_path / name / "checkpoints", 4), "ema") for name in ("often", "once"))
    assert all(torch.equal(often[name], once[name]) for name in once)
    module = tiny()
    put_weights(module, often)
    assert scored[-1] == digest(module)


@pytest.mark.parametrize("ema", [0.0, 0.9])
def test_every_part_drops_at_every_step_whatever_was_judged_before(tmp_path: Path, ema: float) -> None:
    steps = []

    class Watched(Copying):
        def loss(self, module: nn.Module, batch: Numbers) -> Loss:
            steps.append(all(part.training for part in module.modules()))
            return super().loss(module, batch)

    fit(Watched(tiny().eval()), config(steps=4, validate_every=2, ema_decay=ema), tmp_path)
    assert steps == [True] * 4


def test_a_damaged_best_checkpoint_is_named(tmp_path: Path) -> None:
    def damage(event: Event) -> None:
        if isinstance(event, Saved) and event.step == 2:
            (event.path / "ema.safetensors").write_bytes(b"")

    job = Copying(monitor=BLEU, scores=[9.0, 1.0, 5.0])
    settings = config(steps=4, validate_every=2, average="best", keep_best=2)
    with pytest.warns(CheckpointWarning, match="step-00000002.*left out of the final weights"):
        outcome = fit(job, settings, tmp_path, observers=[damage])
    assert outcome.weights.endswith("step 4")


def test_time_ends_a_run(tmp_path: Path) -> None:
    outcome = fit(Copying(), config(steps=10**6, max_minutes=1e-9, validate_every=0), tmp_path)
    assert outcome.step == 1
    assert "minutes are over" in outcome.why
    assert len(outcome.validations) == 1


@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_step_that_is_not_finite_ends_the_run_and_names_its_input(tmp_path: Path, accumulate: int) -> None:
    job = Copying(poison=4 * accumulate, data=Data(50, rows=30))
    with pytest.raises(NonFiniteError) as caught:
        fit(job, config(gradient_accumulation_steps=accumulate, validate_every=3, ema_decay=0.0), tmp_path)
    words = str(caught.value)
    first = (4 - 1) * accumulate * 30
    assert "step 4: the loss, nan over" in words
    assert "the last checkpoint is of step 3" in words
    assert f"numbers.txt:{first}, numbers.txt:{first + 1}," in words
    assert ("and 20 more" in words) == (accumulate == 2)
    saved = load_tensors(path_of(tmp_path / "checkpoints", 3), "model")
    assert all(torch.equal(weight, saved[name]) for name, weight in weights_of(job.module).items())


def test_values_that_come_late_still_stop_the_run_before_it_is_saved(tmp_path: Path) -> None:
    """As on a GPU: nothing is read until someone waits for it."""

    class Late(AsyncMetrics):
        def take(self, *, wait: bool = False) -> Iterator[Any]:
            return super().take(wait=True) if wait else iter(())

    run = RunFolder(tmp_path)
    with run.locked():
        training = Trainer(Copying(poison=4), config(), run, Signals())
        training.metrics = Late()
        with pytest.raises(
            NonFiniteError, match=r"step 4.*last checkpoint is of step 3.*numbers.txt:12, numbers.txt:13"
        ):
            training.run()
        training.close()
    assert training.progress.step == 5  # it had gone on
    assert steps_in(run.checkpoints) == [3]


def test_a_score_that_is_no_number_ends_the_run(tmp_path: Path) -> None:
    job = Copying(monitor=BLEU, scores=[1.0, float("nan")])
    with pytest.raises(NonFiniteError, match="validation at step 10 gave bleu = nan"):
        fit(job, config(), tmp_path)


def test_data_without_batches_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no batch"):
        fit(Copying(data=Data(0)), config(steps=None, epochs=3), tmp_path)


def test_data_that_ends_early_is_refused(tmp_path: Path) -> None:
    class Short(Data):
        def epoch(self, epoch: int, start: int = 0, shard: Shard = WHOLE) -> Iterator[Numbers]:
            yield from list(super().epoch(epoch, start))[:2]

    with pytest.raises(DataError, match="fewer batches than steps_per_epoch"):
        fit(Copying(data=Short()), config(), tmp_path)


class Stop(Exception):  # noqa: N818
    """Out of a run as a crash would leave it."""


def stop_at(number: int) -> Any:
    def stop(found: int) -> None:
        if found == number:
            raise Stop

    return stop


SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "accumulated": {"gradient_accumulation_steps": 2},
    "no average": {"ema_decay": 0.0, "schedule": "cosine"},
    "mean of the last": {"average": "last"},
    "impatient": {"patience": 2, "steps": 40, "validate_every": 3},
}
SCORES = [3.0, 1.0, 2.0, 2.5]  # for the impatient: the second is the best, the fourth one too many


@pytest.fixture(scope="module")
def whole_runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Outcome]]:
    """Every kind of run, never interrupted."""
    runs = {}
    for name, changes in SETTINGS.items():
        folder = tmp_path_factory.mktemp("whole")
        scores = SCORES if "patience" in changes else None
        runs[name] = folder, fit(Copying(scores=scores), config(**changes), folder)
    return runs


def log_of(folder: Path) -> list[dict[str, Any]]:
    """The rows, without what a clock has to do with."""
    rows = [json.loads(row) for row in (folder / "log.jsonl").read_text().splitlines()]
    return [{key: row[key] for key in row.keys() - {"time", "tokens_per_second"}} for row in rows]


@pytest.mark.parametrize(
    ("name", "batch"),
    [
        *[("plain", batch) for batch in (1, 2, 4, 5, 6, 7, 8, 10, 11, 12)],
        *[("accumulated", 8), ("accumulated", 11), ("no average", 6), ("no average", 9), ("mean of the last", 12)],
        *[("impatient", 8), ("impatient", 11), ("impatient", 12)],
    ],
)
def test_a_resumed_run_ends_the_same_to_the_bit(
    tmp_path: Path, whole_runs: dict[str, tuple[Path, Outcome]], name: str, batch: int
) -> None:
    """Stopped in the middle of an epoch, at its end, between saving and validating, while patience counts."""
    settings, (folder, whole) = config(**SETTINGS[name]), whole_runs[name]
    scores = SCORES if name == "impatient" else None
    with pytest.raises(Stop):
        fit(Copying(on_batch=stop_at(batch), scores=scores), settings, tmp_path)

    torch.manual_seed(12345)
    saved = steps_in(tmp_path / "checkpoints")[-1] if steps_in(tmp_path / "checkpoints") else 0
    left = None if scores is None else scores[saved // 3 :]
    parts = fit(Copying(scores=left), settings, tmp_path, resume=True)

    assert digest(parts.module) == digest(whole.module)
    assert parts.validations == whole.validations
    assert (parts.step, parts.why, parts.weights, parts.scores) == (whole.step, whole.why, whole.weights, whole.scores)
    assert log_of(tmp_path) == log_of(folder)


def test_resuming_a_finished_run_gives_its_outcome_again(tmp_path: Path) -> None:
    first = fit(Copying(), config(), tmp_path)
    again = fit(Copying(), config(), tmp_path, resume=True)
    assert digest(first.module) == digest(again.module)
    assert first.validations == again.validations


def test_resuming_goes_back_past_a_damaged_checkpoint(tmp_path: Path) -> None:
    whole = fit(Copying(), config(), tmp_path / "whole")
    with pytest.raises(Stop):
        fit(Copying(on_batch=stop_at(10)), config(), tmp_path / "parts")
    checkpoints = tmp_path / "parts/checkpoints"
    assert steps_in(checkpoints) == [5, 6, 9]
    (path_of(checkpoints, 9) / "optimizer.safetensors").write_bytes(b"damaged")
    with pytest.warns(CheckpointWarning, match="step-00000009"):
        parts = fit(Copying(), config(), tmp_path / "parts", resume=True)
    assert digest(parts.module) == digest(whole.module)


def test_a_damaged_checkpoint_does_not_outlive_a_whole_one(tmp_path: Path) -> None:
    """It would take the place of one of those kept to fall back on."""
    with pytest.raises(Stop):
        fit(Copying(on_batch=stop_at(10)), config(), tmp_path)
    checkpoints = tmp_path / "checkpoints"
    (path_of(checkpoints, 9) / "model.safetensors").write_bytes(b"")
    seen: list[list[int]] = []
    settings = config(save_every=4)
    with pytest.warns(CheckpointWarning):
        fit(Copying(), settings, tmp_path, resume=True, observers=[lambda event: seen.append(steps_in(checkpoints))])
    assert [5, 6, 8] in seen


def test_a_folder_with_a_run_is_not_overwritten(tmp_path: Path) -> None:
    fit(Copying(), config(steps=1), tmp_path)
    with pytest.raises(ResumeError, match="holds a run already"):
        fit(Copying(), config(steps=1), tmp_path)


def test_a_setting_that_an_older_version_did_not_know_is_no_change() -> None:
    now = identity_of(Copying(), config())
    before = {name: value for name, value in now.items() if name != "training.r_drop"}
    _compare(before, now, allow_changes=False)
    with pytest.raises(ResumeError, match=r"training.r_drop was 0.0, is 3.0"):
        _compare(before, now | {"training.r_drop": "3.0"}, allow_changes=False)


def test_changed_data_or_settings_are_named(tmp_path: Path) -> None:
    with pytest.raises(Stop):
        fit(Copying(on_batch=stop_at(5)), config(), tmp_path)
    changed, settings = Copying(data_fingerprint="other"), config(learning_rate=0.5)
    with pytest.raises(ResumeError, match=r"data was numbers, is other; training.learning_rate was 0.01, is 0.5"):
        fit(changed, settings, tmp_path, resume=True)
    with pytest.warns(ResumeWarning, match="data was numbers, is other"):
        assert fit(changed, settings, tmp_path, resume=True, allow_changes=True).step == 12


def test_what_weights_do_not_depend_on_may_change(tmp_path: Path) -> None:
    with pytest.raises(Stop):
        fit(Copying(on_batch=stop_at(5)), config(), tmp_path)
    assert fit(Copying(), config(log_every=1, save_every=1, max_minutes=60.0), tmp_path, resume=True).step == 12


def test_the_average_may_be_turned_on_and_off(tmp_path: Path) -> None:
    for name, before, after in (("on", 0.0, 0.9), ("off", 0.9, 0.0)):
        with pytest.raises(Stop):
            fit(Copying(on_batch=stop_at(5)), config(ema_decay=before), tmp_path / name)
        with pytest.warns(ResumeWarning, match="training.ema_decay"):
            fit(Copying(), config(ema_decay=after), tmp_path / name, resume=True, allow_changes=True)


def test_a_second_run_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    def again(number: int) -> None:
        with pytest.raises(FolderError, match=r"in use by process \d+ on .+; wait for it"):
            fit(Copying(), config(), tmp_path)

    fit(Copying(on_batch=again), config(steps=1), tmp_path)


def test_a_held_folder_can_be_handed_in(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    with run.locked():
        fit(Copying(), config(steps=1), run)
        with pytest.raises(FolderError, match="in use"):
            fit(Copying(), config(steps=1), tmp_path)
    assert fit(Copying(), config(steps=1), run, resume=True).step == 1


def test_outside_the_main_thread_there_are_no_signals(tmp_path: Path) -> None:
    outcomes: list[Outcome] = []
    thread = threading.Thread(target=lambda: outcomes.append(fit(Copying(), config(steps=1), tmp_path)))
    thread.start()
    thread.join()
    assert outcomes[0].step == 1


def test_signals_are_given_back(tmp_path: Path) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    fit(Copying(), config(steps=1), tmp_path)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(FolderError, match=r"cannot be written: .*file"):
        fit(Copying(), config(), tmp_path / "file" / "run")
