"""The group of processes that train together, the device of each, and starting several on this machine."""

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
from torch.distributed import TCPStore  # type: ignore[attr-defined]  # not listed in its __all__

from ...errors import ConfigError, HeedfulError
from ..errors import Interrupted
from .heartbeat import INTERVAL, LIMIT, Heartbeat, announce_failure

TIMEOUT = timedelta(days=1)  # the others wait while the first process validates
LOCALHOST = "127.0.0.1"
BUCKET = 2**25  # numbers that are reduced at once


def torch_device(name: str = "auto") -> torch.device:
    """Return the device of this name, once it was tried. "auto" is a GPU if there is one.

    Raises:
        ConfigError: if the device cannot be used.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        torch.ones(1, device=name).item()  # `item` refuses "meta"
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f'device: {name!r} cannot be used here ({reason}); try "auto"') from None
    return torch.device(name)


def computes_in_bf16(device: torch.device) -> bool:
    """Return True if bf16 products are faster than float32: on every GPU, and on CPUs with bf16 instructions."""
    checks = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return device.type != "cpu" or any(bool(getattr(torch.cpu, name, bool)()) for name in checks)


class SingleProcess:
    """The interface of a group of processes, for a process without others."""

    rank = 0
    size = 1
    advice = ""  # what to do when another process has failed, after the message about it

    def device(self, name: str) -> torch.device:
        """Return the device of this process."""
        return torch_device(name)

    def all_reduce_max(self, *values: float) -> tuple[float, ...]:
        """Return the largest of each value over all processes."""
        return values

    def all_reduce(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by its sum over all processes."""

    def broadcast(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by that of the first process."""

    def gather(self, tensor: Tensor) -> list[Tensor]:
        """Return the tensors of all processes, of one shape, in the first process, and an empty list in the others."""
        return [tensor]

    def broadcast_object(self, value: Any) -> Any:
        """Return the value of the first process, which JSON must be able to represent."""
        return value

    def gather_objects(self, value: Any) -> list[Any]:
        """Return the values of all processes in the first process, and an empty list in the others."""
        return [value]

    def barrier(self) -> None:
        """Wait until all processes have arrived."""

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Run collective work: if a process fails in it, the others end."""
        yield


class ProcessGroup(SingleProcess):
    """One of several processes. Objects travel between CPUs, gradients by the devices' own backend."""

    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size = rank, size
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() and dist.is_nccl_available() else "gloo"
        host, port, timeout = os.environ["MASTER_ADDR"], _number("MASTER_PORT", 0), timedelta(seconds=LIMIT)
        try:
            dist.init_process_group(backend, rank=rank, world_size=size, timeout=TIMEOUT)
            # A separate connection: the process group's may be waiting for another process.
            store = TCPStore(host, port, is_master=False, wait_for_workers=False, timeout=timeout)
        except dist.DistError as error:
            why = str(error).splitlines()[0]
            raise HeedfulError(f"process {rank} of {size} cannot reach the others at {host}:{port}: {why}") from error
        has_agent = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
        self.heartbeat = Heartbeat(store, rank, size, keeps_store=rank == 0 and not has_agent)
        self.barrier()
        self.heartbeat.start()
        atexit.register(self._leave)

    def device(self, name: str) -> torch.device:
        if name.startswith("cuda:"):
            raise ConfigError(f"training.device={name} is one GPU for {self.size} processes; set cuda, so each has one")
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
            flat = torch.cat([tensor.reshape(-1) for tensor in bucket])
            dist.all_reduce(flat)
            parts = flat.split([tensor.numel() for tensor in bucket])
            torch._foreach_copy_(bucket, [part.view_as(tensor) for part, tensor in zip(parts, bucket, strict=True)])

    def broadcast(self, tensors: Sequence[Tensor]) -> None:
        for tensor in tensors:
            dist.broadcast(tensor.detach(), 0)

    def gather(self, tensor: Tensor) -> list[Tensor]:
        tensors = [torch.empty_like(tensor) for _ in range(self.size)] if self.rank == 0 else None
        dist.gather(tensor.contiguous(), tensors, 0)
        return tensors or []

    def broadcast_object(self, value: Any) -> Any:
        message = _as_bytes(value if self.rank == 0 else None)
        size = torch.tensor(len(message))
        dist.broadcast(size, 0)
        data = message if self.rank == 0 else torch.empty(int(size), dtype=torch.uint8)
        dist.broadcast(data, 0)
        return _from_bytes(data)

    def gather_objects(self, value: Any) -> list[Any]:
        message = _as_bytes(value)
        sizes = [torch.zeros((), dtype=torch.int64) for _ in range(self.size)]
        dist.all_gather(sizes, torch.tensor(len(message)))
        gathered = self.gather(torch.cat([message, message.new_zeros(int(max(sizes)) - len(message))]))
        return [_from_bytes(data[:size]) for data, size in zip(gathered, sizes, strict=False)]

    def barrier(self) -> None:
        self.all_reduce_max(0.0)

    @contextmanager
    def guarded(self) -> Iterator[None]:
        self.heartbeat.advice = self.advice
        try:
            yield
        except Interrupted:  # all processes end, regularly
            raise
        except BaseException as error:
            # A lost connection means that another process has failed.
            if isinstance(error, dist.DistError) or (isinstance(error, RuntimeError) and "gloo" in str(error)):
                self.heartbeat.wait_for_failure(str(error).splitlines()[0])
            self.heartbeat.fail("" if self.rank == 0 else f"failed: {str(error) or type(error).__name__}")
            raise

    def _leave(self) -> None:
        self.heartbeat.stop()
        dist.destroy_process_group()


@cache
def world() -> SingleProcess:
    """Return the group of this process, from the environment variables that torchrun sets.

    Raises:
        ConfigError: if these variables are incomplete or invalid.
    """
    size = _number("WORLD_SIZE", 1)
    if size == 1:
        return SingleProcess()
    missing = [name for name in ("RANK", "MASTER_ADDR", "MASTER_PORT") if name not in os.environ]
    if missing:
        raise ConfigError(
            f"WORLD_SIZE={size} announces {size} processes, but {', '.join(missing)} is not set; "
            "start them with torchrun, or unset WORLD_SIZE"
        )
    # The processes of a machine divide its cores. By default, torchrun sets one thread for each.
    threads = os.environ.get("OMP_NUM_THREADS")
    if threads is None or (threads == "1" and "TORCHELASTIC_RUN_ID" in os.environ):
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        torch.set_num_threads(max(1, cores // _number("LOCAL_WORLD_SIZE", 1)))
    return ProcessGroup(_number("RANK", 0), size)


def _number(name: str, default: int) -> int:
    value = os.environ.get(name, "") or str(default)
    if not value.isdecimal():
        raise ConfigError(f"the environment variable {name} must be a number, not {value!r}")
    return int(value)


def _buckets(tensors: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """Group consecutive tensors of one dtype and device, up to BUCKET numbers."""
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
    """Encode a value as JSON, where torch would pickle it."""
    return torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8)


def _from_bytes(data: Tensor) -> Any:
    return json.loads(data.numpy().tobytes())


def start(count: int, command: Sequence[str]) -> int:
    """Run a command `count` times on this machine, as one group, as torchrun does.

    Signals are forwarded.

    Returns:
        The exit code of the first process, or of another one that failed.
    """
    store = _store()
    rendezvous = {"MASTER_ADDR": LOCALHOST, "MASTER_PORT": str(store.port), "TORCHELASTIC_USE_AGENT_STORE": "True"}
    sizes = {"WORLD_SIZE": str(count), "LOCAL_WORLD_SIZE": str(count)}
    logging = {"TORCH_CPP_LOG_LEVEL": os.environ.get("TORCH_CPP_LOG_LEVEL", "ERROR")}  # Heedful reports failures
    children: list[subprocess.Popen[bytes]] = []
    signaled = False

    def forward(number: int, frame: FrameType | None) -> None:
        nonlocal signaled
        signaled = True
        for child in children:
            if child.poll() is None:
                child.send_signal(number)

    handlers = {number: signal.signal(number, forward) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        for rank in range(count):
            ranks = {"RANK": str(rank), "LOCAL_RANK": str(rank)}
            environment = {**os.environ, **rendezvous, **sizes, **logging, **ranks}
            # In a separate session: a terminal's Ctrl-C reaches only this process, which forwards it once.
            children.append(subprocess.Popen(command, env=environment, start_new_session=True))
        failed_at = 0.0
        while None in [child.poll() for child in children]:
            failed = next((rank for rank, child in enumerate(children) if child.returncode), None)
            if failed is not None and not signaled and not failed_at:
                failed_at = time.monotonic()
                code = children[failed].returncode
                why = f"was ended by {signal.Signals(-code).name}" if code < 0 else ""  # else it printed why itself
                announce_failure(store, failed, socket.gethostname(), why)
            if failed_at and time.monotonic() - failed_at > LIMIT:  # they did not even form a group
                for child in children:
                    child.kill()
            time.sleep(INTERVAL / 100)
    finally:
        for child in children:
            if child.poll() is None:
                child.kill()
        for number, handler in handlers.items():
            signal.signal(number, handler)
    codes = [128 - child.returncode if child.returncode < 0 else child.returncode for child in children]
    return codes[0] or max(codes)


def _store() -> TCPStore:
    """Return a store on a free port of this machine, which other machines cannot reach."""
    listener = socket.create_server((LOCALHOST, 0))
    port = listener.getsockname()[1]
    return TCPStore(LOCALHOST, port, is_master=True, wait_for_workers=False, master_listen_fd=listener.detach())
