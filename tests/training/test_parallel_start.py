"""Processes that are started together end together: with one exit code, and with one voice."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys

import pytest

from processes import ENOUGH

STARTED = "import sys; from heedful.training.parallel import start; sys.exit(start(2, sys.argv[1:]))"
HOST = socket.gethostname()

BEGIN = """
import os, signal, sys
from heedful.errors import DataError
from heedful.training import Interrupted
from heedful.training.parallel import world
from heedful.training.signals import Signals
here = world()
here.advice = "; go on"
with here.guarded():
    here.barrier()
"""


def command(script: str) -> list[str]:
    return [sys.executable, "-c", STARTED, sys.executable, "-c", BEGIN + script]


def ended(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(script), capture_output=True, text=True, timeout=ENOUGH, check=False)


def test_a_world_of_several() -> None:
    """What they tell, collect, add up and spread, beside what that should be; then all fail, and one says so."""
    done = ended("""
    import torch
    assert here.size == 2
    assert here.all_reduce_max(here.rank, -here.rank) == (1.0, 0.0)
    assert here.broadcast_object({"rank": here.rank, "ä": [1.5, float("inf")]}) == {"rank": 0, "ä": [1.5, float("inf")]}
    assert here.gather_objects("x" * (1 + here.rank)) == ([] if here.rank else ["x", "xx"])
    assert [part.tolist() for part in here.gather(torch.tensor([here.rank]))] == ([] if here.rank else [[0], [1]])
    kinds = [torch.float32, torch.float64, torch.float64, torch.int64]
    tensors = [torch.full((3, i), i + 10 * here.rank, dtype=kind) for i, kind in enumerate(kinds)]
    here.all_reduce(tensors)
    for i, kind in enumerate(kinds):
        assert tensors[i].dtype == kind and tensors[i].tolist() == [[2 * i + 10] * i] * 3
    here.broadcast([tensor.fill_(here.rank + 7) for tensor in tensors])
    assert all((tensor == 7).all() for tensor in tensors)
    assert torch.get_num_threads() == max(1, len(os.sched_getaffinity(0)) // 2) or "OMP_NUM_THREADS" in os.environ
    try:
        with here.guarded():
            raise DataError("it is empty")
    except DataError as error:
        if here.rank == 0:
            print(f"error: {error}", file=sys.stderr)
        os._exit(2 - here.rank)
    """)
    assert (done.returncode, done.stderr) == (2, "error: it is empty\n")


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", "was ended by SIGKILL; go on"),
        ("raise DataError('a.txt:3: it is empty')", "failed: a.txt:3: it is empty; go on"),
    ],
)
def test_where_one_fails_the_other_ends_and_says_why(script: str, words: str) -> None:
    """A second wait would last for ever."""
    done = ended(f"""
    try:
        if here.rank == 1:
            {script}
        here.barrier()
        here.barrier()
    except DataError:
        here.heartbeat.fail("failed: a.txt:3: it is empty")
        os._exit(1)
    """)
    assert done.returncode == 1
    assert done.stderr == f"process 1 of 2 on {HOST} {words}\n"


def test_a_signal_reaches_all_and_the_exit_code_is_its() -> None:
    script = """
    with Signals() as signals:
        here.barrier()
        if here.rank == 0:
            print("ready", flush=True)
        (caught,) = here.all_reduce_max(0.0)
        while not caught:
            (caught,) = here.all_reduce_max(signals.caught or 0)
    os._exit(128 + int(caught))
    """
    with subprocess.Popen(command(script), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=ENOUGH)
    assert (process.returncode, errors) == (143, "")
