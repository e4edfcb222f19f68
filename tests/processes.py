"""Several processes of one program, as torchrun would start them, on this machine and a free port."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from torch.distributed import TCPStore  # type: ignore[attr-defined]  # it does, without saying so

HERE = "127.0.0.1"
ENOUGH = 150  # seconds; more means that it hangs


class Ended(NamedTuple):
    """How a process did."""

    code: int
    out: str
    err: str


class Several:
    """They meet in a store of this process, as they do in that of torchrun."""

    def __init__(self, *command: str, size: int = 2, environment: Mapping[str, str] | None = None) -> None:
        self.store = TCPStore(HERE, 0, is_master=True, wait_for_workers=False)
        here = Path(__file__).parent
        shared = {
            **os.environ,
            "MASTER_ADDR": HERE,
            "MASTER_PORT": str(self.store.port),
            "TORCHELASTIC_USE_AGENT_STORE": "True",
            "WORLD_SIZE": str(size),
            "LOCAL_WORLD_SIZE": str(size),
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join([str(here), str(here / "training"), os.environ.get("PYTHONPATH", "")]).rstrip(
                os.pathsep
            ),
            **(environment or {}),
        }
        self.processes = [
            subprocess.Popen(
                [sys.executable, *command],
                env={**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            for rank in range(size)
        ]

    def end(self, given: bytes = b"") -> list[Ended]:
        """Wait for all; the first gets `given` as its standard input. None is left behind."""
        try:
            found = []
            for rank, process in enumerate(self.processes):
                out, err = process.communicate(b"" if rank else given, timeout=ENOUGH)
                found.append(Ended(process.returncode, out.decode(), err.decode()))
            return found
        finally:
            for process in self.processes:
                process.kill()


@contextmanager
def made_once(factory: pytest.TempPathFactory, name: str) -> Iterator[tuple[Path, bool]]:
    """A folder that all of pytest's workers share, and whether it is to be filled: by one, while the others wait."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    folder.mkdir(exist_ok=True)
    with (folder / "made").open("a+") as mark:
        fcntl.flock(mark, fcntl.LOCK_EX)
        mark.seek(0)
        yield folder, not mark.read()
        mark.write("yes")


def printed_once(factory: pytest.TempPathFactory, script: Path) -> Any:
    """The JSON that a script prints, run once for all workers, without a GPU: its forks could not use one."""
    with made_once(factory, script.stem) as (folder, empty):
        found = folder / "found.json"
        if empty:
            here = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
            environment = os.environ | {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1", "PYTHONPATH": here}
            done = subprocess.run(
                [sys.executable, script], capture_output=True, text=True, env=environment, check=False
            )
            assert done.returncode == 0, done.stderr
            found.write_text(done.stdout)
        return json.loads(found.read_text())


def run_together(*command: str, given: bytes = b"") -> list[Ended]:
    """Run a command in two processes."""
    return Several(*command).end(given)
