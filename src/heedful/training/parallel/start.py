"""Several processes on this machine, each doing the same: what torchrun does, with exit codes and signals as alone."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from types import FrameType

from torch.distributed import TCPStore  # type: ignore[attr-defined]  # it does, without saying so

from .heartbeat import INTERVAL, LIMIT, announce

HERE = "127.0.0.1"


def start(count: int, command: Sequence[str]) -> int:
    """Run a command `count` times, as one world. Signals are handed on; gives the exit code of the whole."""
    store = _store()  # where they meet
    meeting = {"MASTER_ADDR": HERE, "MASTER_PORT": str(store.port), "TORCHELASTIC_USE_AGENT_STORE": "True"}
    sizes = {"WORLD_SIZE": str(count), "LOCAL_WORLD_SIZE": str(count)}
    quiet = {"TORCH_CPP_LOG_LEVEL": os.environ.get("TORCH_CPP_LOG_LEVEL", "ERROR")}  # of what we say ourselves
    children: list[subprocess.Popen[bytes]] = []
    asked_to_end = False

    def hand_on(number: int, frame: FrameType | None) -> None:
        nonlocal asked_to_end
        asked_to_end = True
        for child in children:
            if child.poll() is None:
                child.send_signal(number)

    before = {number: signal.signal(number, hand_on) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        for rank in range(count):
            own = {"RANK": str(rank), "LOCAL_RANK": str(rank)}
            environment = {**os.environ, **meeting, **sizes, **quiet, **own}
            # In a session of its own: a terminal's Ctrl-C comes here alone, and once from here to each.
            children.append(subprocess.Popen(command, env=environment, start_new_session=True))
        failed = 0.0
        while None in [child.poll() for child in children]:
            gone = next((rank for rank, child in enumerate(children) if child.returncode), None)
            if gone is not None and not asked_to_end and not failed:
                failed = time.monotonic()
                announce(store, gone, socket.gethostname(), _words(children[gone].returncode))
            if failed and time.monotonic() - failed > LIMIT:  # they have not even met
                for child in children:
                    child.kill()
            time.sleep(INTERVAL / 100)
    finally:
        for child in children:
            if child.poll() is None:
                child.kill()
        for number, handler in before.items():
            signal.signal(number, handler)
    codes = [_exit_code(child.returncode) for child in children]
    return codes[0] or max(codes)


def _store() -> TCPStore:
    """On a free port that only this machine reaches."""
    door = socket.socket()
    door.bind((HERE, 0))
    door.listen()
    port = door.getsockname()[1]
    return TCPStore(HERE, port, is_master=True, wait_for_workers=False, master_listen_fd=door.detach())


def _words(code: int) -> str:
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else ""  # else it has said why itself


def _exit_code(code: int) -> int:
    return 128 - code if code < 0 else code
