"""The processes that work together, as one of them sees them; and how several are started on this machine."""

import atexit
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from itertools import groupby
from types import FrameType
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import TCPStore  # type: ignore[attr-defined]  # it does, without saying so

from ...errors import ConfigError, HeedfulError
from ..device import torch_device
from ..errors import Interrupted
from .heartbeat import INTERVAL, LIMIT, Heartbeat, announce

PATIENCE = timedelta(days=1)  # the first process may validate for long while the others wait
HERE = "127.0.0.1"
BUCKET = 2**25  # numbers added up at once


class SingleProcess:
    """A process that trains alone: there is nobody to ask."""

    rank = 0
    size = 1
    advice = ""  # what to do when another process has gone, behind the words that say so

    def device(self, name: str) -> torch.device:
        """Where this process computes."""
        return torch_device(name)

    def all_reduce_max(self, *values: float) -> tuple[float, ...]:
        """The largest of what all processes say."""
        return values

    def all_reduce(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by its sum over all processes."""

    def broadcast(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by the first process's."""

    def gather(self, tensor: Tensor) -> list[Tensor]:
        """A tensor of one shape from every process: the first process gets them, the others an empty list."""
        return [tensor]

    def broadcast_object(self, value: Any) -> Any:
        """What the first process says, plain values as in JSON."""
        return value

    def gather_objects(self, value: Any) -> list[Any]:
        """What every process says, in their order: the first process gets it, the others an empty list."""
        return [value]

    def barrier(self) -> None:
        """Go on when all have come here."""

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Work that all do together: where one fails in it, the others end."""
        yield


class ProcessGroup(SingleProcess):
    """One of several processes. Small things go from CPU to CPU, gradients as the devices do it best."""

    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size = rank, size
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() and dist.is_nccl_available() else "gloo"
        host, port, patience = os.environ["MASTER_ADDR"], _number("MASTER_PORT", 0), timedelta(seconds=LIMIT)
        try:
            dist.init_process_group(backend, rank=rank, world_size=size, timeout=PATIENCE)
            # A connection of its own: the one behind the process group may be waiting for another process.
            store = TCPStore(host, port, is_master=False, wait_for_workers=False, timeout=patience)
        except dist.DistError as error:
            why = str(error).splitlines()[0]
            raise HeedfulError(f"process {rank} of {size} cannot meet the others at {host}:{port}: {why}") from error
        by_hand = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"
        self.heart = Heartbeat(store, rank, size, keeps_store=by_hand and rank == 0)
        self.barrier()
        self.heart.start()
        atexit.register(self._leave)

    def device(self, name: str) -> torch.device:
        """A GPU of its own for each process of a machine, in their order."""
        if name.startswith("cuda:"):
            raise ConfigError(
                f"training.device={name} is one GPU for {self.size} processes; with cuda each has its own"
            )
        if name not in ("auto", "cuda") or not torch.cuda.is_available():
            return torch_device(name)
        local, count = int(os.environ.get("LOCAL_RANK", self.rank)), torch.cuda.device_count()
        if local >= count:
            raise ConfigError(
                f"{local + 1} processes on a machine with {count} GPUs: start no more than that, "
                "or compute elsewhere (training.device=cpu)"
            )
        torch.cuda.set_device(local)
        return torch.device("cuda", local)

    def all_reduce_max(self, *values: float) -> tuple[float, ...]:
        largest = torch.tensor(values, dtype=torch.float64)
        dist.all_reduce(largest, dist.ReduceOp.MAX)
        return tuple(largest.tolist())

    @torch.no_grad()
    def all_reduce(self, tensors: Sequence[Tensor]) -> None:
        for bucket in _buckets(tensors):
            together = torch.cat([tensor.reshape(-1) for tensor in bucket])
            dist.all_reduce(together)
            parts = together.split([tensor.numel() for tensor in bucket])
            torch._foreach_copy_(bucket, [part.view_as(tensor) for part, tensor in zip(parts, bucket, strict=True)])

    def broadcast(self, tensors: Sequence[Tensor]) -> None:
        for tensor in tensors:
            dist.broadcast(tensor.detach(), 0)

    def gather(self, tensor: Tensor) -> list[Tensor]:
        room = [torch.empty_like(tensor) for _ in range(self.size)] if self.rank == 0 else None
        dist.gather(tensor.contiguous(), room, 0)
        return room or []

    def broadcast_object(self, value: Any) -> Any:
        said = _as_bytes(value if self.rank == 0 else None)
        size = torch.tensor(len(said))
        dist.broadcast(size, 0)
        data = said if self.rank == 0 else torch.empty(int(size), dtype=torch.uint8)
        dist.broadcast(data, 0)
        return _from_bytes(data)

    def gather_objects(self, value: Any) -> list[Any]:
        said = _as_bytes(value)
        sizes = [torch.zeros((), dtype=torch.int64) for _ in range(self.size)]
        dist.all_gather(sizes, torch.tensor(len(said)))
        found = self.gather(torch.cat([said, said.new_zeros(int(max(sizes)) - len(said))]))
        return [_from_bytes(data[:size]) for data, size in zip(found, sizes, strict=False)]

    def barrier(self) -> None:
        self.all_reduce_max(0.0)

    @contextmanager
    def guarded(self) -> Iterator[None]:
        self.heart.advice = self.advice
        try:
            yield
        except Interrupted:  # all were asked to end, and do so in order
            raise
        except BaseException as error:
            # Where a connection is lost, another process is the reason.
            if isinstance(error, dist.DistError) or (isinstance(error, RuntimeError) and "gloo" in str(error)):
                self.heart.end_with_another(str(error).splitlines()[0])
            self.heart.fail("" if self.rank == 0 else f"failed: {str(error) or type(error).__name__}")
            raise

    def _leave(self) -> None:
        self.heart.stop()
        dist.destroy_process_group()


@cache
def world() -> SingleProcess:
    """The group this process was started in: by torchrun, which says so in the environment, or alone."""
    size = _number("WORLD_SIZE", 1)
    if size == 1:
        return SingleProcess()
    missing = [name for name in ("RANK", "MASTER_ADDR", "MASTER_PORT") if name not in os.environ]
    if missing:
        raise ConfigError(
            f"WORLD_SIZE={size} says that {size} processes work together, but {', '.join(missing)} is not set; "
            "start them with torchrun, or unset WORLD_SIZE"
        )
    # The processes of a machine divide its cores. torchrun gives each a single one unless it is told otherwise.
    chosen = os.environ.get("OMP_NUM_THREADS")
    if chosen is None or (chosen == "1" and "TORCHELASTIC_RUN_ID" in os.environ):
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        torch.set_num_threads(max(1, cores // _number("LOCAL_WORLD_SIZE", 1)))
    return ProcessGroup(_number("RANK", 0), size)


def _number(name: str, usual: int) -> int:
    value = os.environ.get(name, "") or str(usual)
    if not value.isdecimal():
        raise ConfigError(f"the environment's {name} must be a number, not {value!r}")
    return int(value)


def _buckets(tensors: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """Tensors of one kind beside each other, as many as may travel together."""
    for _, alike in groupby(tensors, key=lambda tensor: (tensor.dtype, tensor.device)):
        bucket: list[Tensor] = []
        room = BUCKET
        for tensor in alike:
            if bucket and tensor.numel() > room:
                yield bucket
                bucket, room = [], BUCKET
            bucket.append(tensor)
            room -= tensor.numel()
        yield bucket


def _as_bytes(value: Any) -> Tensor:
    """As JSON: what torch would do by itself is pickle."""
    return torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8)


def _from_bytes(data: Tensor) -> Any:
    return json.loads(data.numpy().tobytes())


def start(count: int, command: Sequence[str]) -> int:
    """Run a command `count` times on this machine, as one group, as torchrun does.

    Signals are handed on, and exit codes are as of one process. Returns the exit code of the whole.
    """
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
                code = children[gone].returncode
                why = f"was ended by {signal.Signals(-code).name}" if code < 0 else ""  # else it has said why itself
                announce(store, gone, socket.gethostname(), why)
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
    codes = [128 - child.returncode if child.returncode < 0 else child.returncode for child in children]
    return codes[0] or max(codes)


def _store() -> TCPStore:
    """On a free port that only this machine reaches."""
    door = socket.socket()
    door.bind((HERE, 0))
    door.listen()
    port = door.getsockname()[1]
    return TCPStore(HERE, port, is_master=True, wait_for_workers=False, master_listen_fd=door.detach())
