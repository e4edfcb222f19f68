"""Several processes learn what one learns, however they hold the module; and a run goes on with any number of them."""

from __future__ import annotations

import json
import signal
import socket
from pathlib import Path

import parallel_worker
import pytest
import torch
from parallel_worker import ACCUMULATE, MODES, STOP, TIED
from torch import Tensor

from heedful.training.checkpoint import load, path_of, steps_in
from processes import Several, made_once, run_together

NAMES = [*(f"accumulate-{number}" for number in ACCUMULATE), *TIED]
SCRIPT = parallel_worker.__file__


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All runs by two processes, some that one began, and one in which one of two was killed."""
    with made_once(tmp_path_factory, "together") as (out, empty):
        if empty:
            for mode in MODES:
                assert parallel_worker.go_on(out / f"one-{mode}", stop=STOP) is None
            (out / "last words").write_text(killed(1, out / "killed"))
            for ended in run_together(SCRIPT, "everything", str(out)):
                assert (ended.code, ended.err) == (0, "")
    return out


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same by this one."""
    with made_once(tmp_path_factory, "alone") as (out, empty):
        if empty:
            parallel_worker.learn(out, "replicate")
            parallel_worker.go_on(out / "replicate" / "undisturbed")
    return out / "replicate"


def rows(run: Path, kind: str) -> list[dict[str, float]]:
    found = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    return [row for row in found if row["kind"] == kind]


def tensors(run: Path, kind: str = "model") -> dict[str, Tensor]:
    checkpoints = run / "checkpoints"
    return load(path_of(checkpoints, steps_in(checkpoints)[-1])).tensors[kind]


def assert_same(found: Path, expected: Path) -> None:
    """All that was learned, but for rounding."""
    for kind in ("model", "optimizer"):
        ours, theirs = tensors(found, kind), tensors(expected, kind)
        assert ours.keys() == theirs.keys()
        for key, tensor in theirs.items():
            torch.testing.assert_close(ours[key], tensor, rtol=1e-6, atol=1e-9, msg=f"{kind} {key}")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", NAMES)
def test_two_processes_learn_what_one_learns(together: Path, alone: Path, name: str, mode: str) -> None:
    one, two = ([row["loss"] for row in rows(run, "train")] for run in (alone / name, together / mode / name))
    assert len(one) == (50 if name.startswith("accumulate") else 10)
    assert one[-1] < one[0]
    assert two == pytest.approx(one, rel=1e-6)
    assert_same(together / mode / name, alone / name)


def test_weights_rounded_in_shards_learn_what_rounded_copies_learn(together: Path) -> None:
    copies, shards = ([row["loss"] for row in rows(together / mode / "rounded", "train")] for mode in MODES)
    assert shards == pytest.approx(copies, rel=1e-3)
    assert len(copies) == 12


@pytest.mark.parametrize("mode", MODES)
def test_what_one_process_began_two_go_on_with(together: Path, alone: Path, mode: str) -> None:
    assert_same(together / f"one-{mode}", alone / "undisturbed")


@pytest.mark.parametrize("mode", MODES)
def test_what_two_processes_began_one_goes_on_with(together: Path, alone: Path, mode: str) -> None:
    run = together / f"two-{mode}"
    assert steps_in(run / "checkpoints")[-1] == STOP  # a signal to one process stopped and saved both
    assert parallel_worker.go_on(run) is not None
    assert_same(run, alone / "undisturbed")
    valid, expected = ([row["loss"] for row in rows(found, "valid")] for found in (run, alone / "undisturbed"))
    assert valid == pytest.approx(expected, rel=1e-6)


def test_each_process_drops_its_own_and_goes_on_dropping_it(together: Path) -> None:
    states = tensors(together / "undisturbed", "random")
    assert states.keys() == {"cpu.0", "cpu.1"}
    assert not torch.equal(states["cpu.0"], states["cpu.1"])
    for kind in ("model", "optimizer", "ema", "random"):
        ours, theirs = tensors(together / "disturbed", kind), tensors(together / "undisturbed", kind)
        assert all(torch.equal(ours[key], tensor) for key, tensor in theirs.items())


def free_port() -> str:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])


def killed(rank: int, run: Path, environment: dict[str, str] | None = None) -> str:
    """What the other says when one of two processes is killed in the middle of a run."""
    ended = Several(SCRIPT, str(rank), str(run), environment=environment).end()
    assert ended[rank].code == -signal.SIGKILL
    assert ended[1 - rank].code == 1
    assert steps_in(run / "checkpoints") == [3, 5]
    return ended[1 - rank].err.splitlines()[-1]  # torch may say something before


def test_a_killed_process_ends_the_other_and_the_run_goes_on(together: Path) -> None:
    words = f"process 1 of 2 on {socket.gethostname()} has gone (no sign of life for 2 s); resume it"
    assert (together / "last words").read_text() == words
    ours, theirs = tensors(together / "killed"), tensors(together / "undisturbed")
    assert all(torch.equal(ours[name], tensor) for name, tensor in theirs.items())


def test_the_first_process_may_be_killed_and_with_it_the_store_where_all_meet(tmp_path: Path) -> None:
    """As when processes are started by hand, without torchrun."""
    environment = {"TORCHELASTIC_USE_AGENT_STORE": "False", "MASTER_PORT": free_port()}
    assert killed(0, tmp_path, environment) == "process 1 of 2 cannot reach the others any more; resume it"
