"""The processes that work together, as one of them sees them."""

from __future__ import annotations

import atexit
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from itertools import groupby
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import TCPStore  # type: ignore[attr-defined]  # it does, without saying so

from ...errors import ConfigError, HeedfulError
from ..device import torch_device
from ..errors import Interrupted
from .heartbeat import LIMIT, Heartbeat

PATIENCE = timedelta(days=1)  # the first process may validate for long while the others wait
BUCKET = 2**25  # numbers added up at once


class Alone:
    """The world of a single process: there is nobody to ask."""

    rank = 0
    size = 1
    advice = ""  # what to do when another process has gone, behind the words that say so

    def device(self, name: str) -> torch.device:
        """Where this process computes."""
        return torch_device(name)

    def agree(self, *values: float) -> tuple[float, ...]:
        """The largest of what all processes say."""
        return values

    def add_up(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by its sum over all processes."""

    def spread(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by the first process's."""

    def gather(self, tensor: Tensor) -> list[Tensor]:
        """A tensor of one shape from every process: the first process gets them, the others an empty list."""
        return [tensor]

    def tell(self, value: Any) -> Any:
        """What the first process says, plain values as in JSON."""
        return value

    def collect(self, value: Any) -> list[Any]:
        """What every process says, in their order: the first process gets it, the others an empty list."""
        return [value]

    def wait(self) -> None:
        """Go on when all have come here."""

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Work that all do together: where one fails in it, the others end."""
        yield


class Together(Alone):
    """The world of one of several. Small things go from CPU to CPU, gradients as the devices do it best."""

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
        self.wait()
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

    def agree(self, *values: float) -> tuple[float, ...]:
        largest = torch.tensor(values, dtype=torch.float64)
        dist.all_reduce(largest, dist.ReduceOp.MAX)
        return tuple(largest.tolist())

    @torch.no_grad()
    def add_up(self, tensors: Sequence[Tensor]) -> None:
        for bucket in _buckets(tensors):
            together = torch.cat([tensor.reshape(-1) for tensor in bucket])
            dist.all_reduce(together)
            parts = together.split([tensor.numel() for tensor in bucket])
            torch._foreach_copy_(bucket, [part.view_as(tensor) for part, tensor in zip(parts, bucket, strict=True)])

    def spread(self, tensors: Sequence[Tensor]) -> None:
        for tensor in tensors:
            dist.broadcast(tensor.detach(), 0)

    def gather(self, tensor: Tensor) -> list[Tensor]:
        room = [torch.empty_like(tensor) for _ in range(self.size)] if self.rank == 0 else None
        dist.gather(tensor.contiguous(), room, 0)
        return room or []

    def tell(self, value: Any) -> Any:
        said = _as_bytes(value if self.rank == 0 else None)
        size = torch.tensor(len(said))
        dist.broadcast(size, 0)
        data = said if self.rank == 0 else torch.empty(int(size), dtype=torch.uint8)
        dist.broadcast(data, 0)
        return _from_bytes(data)

    def collect(self, value: Any) -> list[Any]:
        said = _as_bytes(value)
        sizes = [torch.zeros((), dtype=torch.int64) for _ in range(self.size)]
        dist.all_gather(sizes, torch.tensor(len(said)))
        found = self.gather(torch.cat([said, said.new_zeros(int(max(sizes)) - len(said))]))
        return [_from_bytes(data[:size]) for data, size in zip(found, sizes, strict=False)]

    def wait(self) -> None:
        self.agree(0.0)

    @contextmanager
    def guarded(self) -> Iterator[None]:
        self.heart.advice = self.advice
        try:
            yield
        except Interrupted:  # all were asked to end, and do so in order
            raise
        except BaseException as error:
            if _is_lost_connection(error):
                self.heart.end_with_another(str(error).splitlines()[0])
            self.heart.fail("" if self.rank == 0 else f"failed: {str(error) or type(error).__name__}")
            raise

    def _leave(self) -> None:
        self.heart.stop()
        dist.destroy_process_group()


@cache
def world() -> Alone:
    """The world this process was started in: by torchrun, which says so in the environment, or alone."""
    size = _number("WORLD_SIZE", 1)
    if size == 1:
        return Alone()
    missing = [name for name in ("RANK", "MASTER_ADDR", "MASTER_PORT") if name not in os.environ]
    if missing:
        raise ConfigError(
            f"WORLD_SIZE={size} says that {size} processes work together, but {', '.join(missing)} is not set; "
            "start them with torchrun, or unset WORLD_SIZE"
        )
    _share_the_cores()
    return Together(_number("RANK", 0), size)


def _share_the_cores() -> None:
    """The processes of a machine divide its cores. torchrun gives each a single one unless it is told otherwise."""
    chosen = os.environ.get("OMP_NUM_THREADS")
    if chosen is None or (chosen == "1" and "TORCHELASTIC_RUN_ID" in os.environ):
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        torch.set_num_threads(max(1, cores // _number("LOCAL_WORLD_SIZE", 1)))


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


def _is_lost_connection(error: BaseException) -> bool:
    """Whether another process is the reason."""
    return isinstance(error, dist.DistError) or (isinstance(error, RuntimeError) and "gloo" in str(error))
