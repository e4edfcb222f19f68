"""What the benchmarks share: fair timing, bytes kept for a backward pass, tables and files."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks


@dataclass(frozen=True)
class Spread:
    """The median of some numbers, and the quartiles around it."""

    low: float
    median: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        quartiles = torch.tensor([0.25, 0.5, 0.75], dtype=torch.float64)
        return cls(*torch.tensor(values, dtype=torch.float64).quantile(quartiles).tolist())


def interleaved(runs: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Seconds of every run in every round, after one round that does not count.

    All run once per round, so that whatever slows the machine down for a while meets all of them. Who
    goes first rotates and every other round runs backwards, so that nobody always follows the same one.
    """
    names = list(runs)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for run in runs.values():
        run()
    for index in range(rounds):
        first = index // 2 % len(names)
        order = names[first:] + names[:first]
        for name in order if index % 2 == 0 else reversed(order):
            start = time.perf_counter()
            runs[name]()
            seconds[name].append(time.perf_counter() - start)
    return seconds


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> Spread:
    """How long ours took for each second of theirs, round by round: below 1, ours is faster."""
    return Spread.of([mine / other for mine, other in zip(ours, theirs, strict=True)])


def kept_for_backward(forward: Callable[[], Tensor], parameters: Iterable[Tensor]) -> tuple[Tensor, int]:
    """The output, and how many bytes its backward pass holds on to: distinct storages, parameters aside."""
    sizes: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    with saved_tensors_hooks(note, lambda tensor: tensor):
        out = forward()
    for parameter in parameters:
        sizes.pop(parameter.untyped_storage().data_ptr(), None)
    return out, sum(sizes.values())


def longest_chain(out: Tensor) -> int:
    """How many recorded operations had to wait for one another to give `out`, whatever ran beside them."""
    depth: dict[Any, int] = {}
    stack: list[Any] = [out.grad_fn]
    while stack:
        before = [node for node, _ in stack[-1].next_functions if node is not None]
        waiting = [node for node in before if node not in depth]
        if waiting:
            stack.extend(waiting)
        else:
            depth[stack.pop()] = 1 + max(depth[node] for node in before) if before else 0
    return depth[out.grad_fn]


def machine() -> dict[str, Any]:
    """What a reader must know to place the figures."""
    return {
        "processor": platform.machine().replace("_", "-"),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__.split("+")[0],
    }


def machine_in_words(facts: Mapping[str, Any]) -> str:
    """One line for people."""
    threads = "one thread" if facts["threads"] == 1 else f"{facts['threads']} threads"
    return f"{threads} of an {facts['processor']} CPU, torch {facts['torch']}"


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, n_left: int = 1) -> str:
    """A Markdown table that reads well in a terminal too: words in the first columns, figures to the right."""
    widths = [max(len(cell) for cell in column) for column in zip(header, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        left = [cell.ljust(width) for cell, width in zip(cells[:n_left], widths, strict=False)]
        right = [cell.rjust(width) for cell, width in zip(cells[n_left:], widths[n_left:], strict=True)]
        return f"| {' | '.join(left + right)} |"

    rule = [width * "-" if i < n_left else (width - 1) * "-" + ":" for i, width in enumerate(widths)]
    return "\n".join([line(header), line(rule), *map(line, rows)])


def write(path: Path, text: str) -> None:
    """Write a text file, its folder too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    print(f"wrote {path}")


def write_json(path: Path, result: Mapping[str, Any]) -> None:
    """Write a benchmark's result."""
    write(path, json.dumps(result, indent=2, ensure_ascii=False) + "\n")
