"""What `heedful doctor` reports: this machine's packages and devices, and whether a small model works on it."""

import importlib.metadata
import os
import platform
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch

from ..backends import supports
from ..backends.native.library import unavailable_reason
from ..families import build
from ..generation import generate
from ..training.loss import cross_entropy
from ..training.parallel.process_group import torch_device
from . import load

REQUIRED = ("torch", "numpy", "tokenizers", "safetensors", "sacrebleu", "typer", "rich", "PyYAML")
OPTIONAL = {"matplotlib": "pictures as PNG and SVG", "tensorboard": "training curves in TensorBoard"}
MIN_FREE_BYTES = 2 * 1024**3
BACKENDS = {
    "native": "generation on a CPU, in C",
    "single_step": "generation, one token at a time",
    "cuda_graph": "generation on a GPU, in captured steps",
    "int8": "generation on a CPU in 8 bits, by torch",
    "cpu": "training on a CPU",
    "triton": "training on a GPU",
}
MAX_REASONS = 3  # that are listed
State = Literal["good", "note", "bad"]


@dataclass(frozen=True)
class Finding:
    """One line of the report. With the state "note" something is slower or missing; with "bad" nothing works."""

    name: str
    value: str
    state: State = "good"


def examine(folder: Path = Path(".")) -> Iterator[Finding]:
    """Yield what this machine has, one finding at a time; the smoke test comes last."""
    yield Finding("Python", platform.python_version())
    yield Finding("system", f"{platform.system()} {platform.machine()}")
    for name in REQUIRED:
        yield _package(name, "missing; pip install heedful", "bad")
    for name, use in OPTIONAL.items():
        yield _package(name, f"not installed; needed for {use}", "note")
    yield Finding(
        "processor",
        f"{os.cpu_count()} cores, {torch.get_num_threads()} threads used, {torch.backends.cpu.get_cpu_capability()}",
    )
    missing = unavailable_reason()
    native = "compiled; generation on this processor uses them" if missing is None else f"not used: {missing}"
    yield Finding("layers in C", native, "good" if missing is None else "note")
    yield _memory()
    free = shutil.disk_usage(folder).free
    is_enough = free > MIN_FREE_BYTES
    warning = "" if is_enough else "; runs may fill it"
    yield Finding("disk", f"{free / 1024**3:.1f} GiB free{warning}", "good" if is_enough else "note")
    yield from _devices()
    yield _smoke_test(torch_device())


def examine_model(folder: Path) -> Iterator[Finding]:
    """Yield for each backend whether it supports the model in this folder, or which parts it does not support."""
    module = load(folder).module
    for backend, use in BACKENDS.items():
        reasons = supports(module, backend)
        more = f"; and {len(reasons) - MAX_REASONS} more" if len(reasons) > MAX_REASONS else ""
        support = f"not supported: {'; '.join(map(str, reasons[:MAX_REASONS]))}{more}" if reasons else "supported"
        yield Finding(backend, f"{use}: {support}", "note" if reasons else "good")


def _package(name: str, absent: str, state: State) -> Finding:
    try:
        return Finding(name, importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return Finding(name, absent, state)


def _memory() -> Finding:
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return Finding("memory", "unknown", "note")
    return Finding("memory", f"{total / 1024**3:.1f} GiB", "good" if total > MIN_FREE_BYTES else "note")


def _devices() -> Iterator[Finding]:
    if not torch.cuda.is_available():
        yield Finding("GPU", "none that torch can use; the processor is used", "note")
    for index in range(torch.cuda.device_count()):
        gpu = torch.cuda.get_device_properties(index)
        yield Finding(f"GPU {index}", f"{gpu.name}, {gpu.total_memory / 1024**3:.0f} GiB")
    device = torch_device()
    bf16 = device.type == "cuda" and torch.cuda.is_bf16_supported()
    hint = "; --set training.precision=bf16 is faster on it" if bf16 else ""
    yield Finding("training would use", f"{device.type} in float32{hint}")


def _smoke_test(device: torch.device) -> Finding:
    """Train a tiny model on one pair, and check that it generates the target."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(0)
        module = build("tiny", vocab_size=32, n_encoder_layers=1, n_decoder_layers=1, dropout=0.0).to(device)
        source = torch.tensor([[5, 6, 7, 8, 2]], device=device)
        target = torch.tensor([[1, 8, 7, 6, 5, 2]], device=device)
        optimizer = torch.optim.Adam(module.parameters(), lr=3e-3)
        for _ in range(30):
            optimizer.zero_grad()
            loss = cross_entropy(module(source, target[:, :-1]), target[:, 1:])
            (loss.total / loss.n).backward()
            optimizer.step()
        output = generate(module, source.tolist(), beam=2)[0][0].tokens
    name, model = "smoke test", f"a tiny model on {device.type}"
    if list(output) == target[0, 1:-1].tolist():
        return Finding(name, f"{model} learned a sentence and generated it")
    return Finding(name, f"{model} did not learn one sentence; torch does not work correctly here", "bad")
