"""What this machine has, what would be used of it, and whether a small model works on it."""

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
from ..training.device import torch_device
from ..training.loss import cross_entropy
from . import load

NEEDED = ("torch", "numpy", "tokenizers", "safetensors", "sacrebleu", "typer", "rich", "PyYAML")
OPTIONAL = {
    "matplotlib": "pictures as PNG and SVG",
    "tensorboard": "training curves in TensorBoard",
}
SMALLEST_FREE = 2 * 1024**3
BACKENDS = {
    "native": "generation on a CPU, in C",
    "single_step": "generation, a token at a time",
    "cuda_graph": "generation on a GPU, in captured steps",
    "int8": "generation on a CPU in 8 bits, by torch",
    "cpu": "training on a CPU",
    "triton": "training on a GPU",
}
FEW = 3  # reasons that are written out


@dataclass(frozen=True)
class Finding:
    """One thing looked at. "note" is worth knowing, "bad" stops work."""

    name: str
    value: str
    state: Literal["good", "note", "bad"] = "good"


def examine(folder: Path = Path(".")) -> Iterator[Finding]:
    """Everything, one finding at a time; the smoke test comes last."""
    yield Finding("Python", platform.python_version())
    yield Finding("system", f"{platform.system()} {platform.machine()}")
    yield from _packages()
    yield Finding(
        "processor",
        f"{os.cpu_count()} cores, {torch.get_num_threads()} threads used, {torch.backends.cpu.get_cpu_capability()}",
    )
    missing = unavailable_reason()
    said = "compiled; generation on this processor uses them" if missing is None else f"not used: {missing}"
    yield Finding("layers in C", said, _note(missing is None))
    yield _memory()
    free = shutil.disk_usage(folder).free
    enough = free > SMALLEST_FREE
    yield Finding("disk", f"{free / 1024**3:.1f} GiB free" + ("" if enough else "; runs may fill it"), _note(enough))
    yield from _devices()
    yield _smoke(torch_device())


def examine_model(folder: Path) -> Iterator[Finding]:
    """For each backend, whether the model in this folder can use it, or why not, or not for all of its parts."""
    module = load(folder).module
    for backend, use in BACKENDS.items():
        reasons = supports(module, backend)
        written = "; ".join(map(str, reasons[:FEW]))
        more = f"; and {len(reasons) - FEW} more" if len(reasons) > FEW else ""
        said = f"left to the core: {written}{more}" if reasons else "supported"
        yield Finding(backend, f"{use}: {said}", _note(not reasons))


def _packages() -> Iterator[Finding]:
    for name in NEEDED:
        version = _version(name)
        yield Finding(name, version or "missing; pip install heedful", "good" if version else "bad")
    for name, use in OPTIONAL.items():
        version = _version(name)
        yield Finding(name, version or f"not installed; it is for {use}", "good" if version else "note")


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _memory() -> Finding:
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return Finding("memory", "unknown", "note")
    return Finding("memory", f"{total / 1024**3:.1f} GiB", "good" if total > SMALLEST_FREE else "note")


def _devices() -> Iterator[Finding]:
    if not torch.cuda.is_available():
        yield Finding("GPU", "none that torch can use; the processor is used", "note")
    for index in range(torch.cuda.device_count()):
        card = torch.cuda.get_device_properties(index)
        yield Finding(f"GPU {index}", f"{card.name}, {card.total_memory / 1024**3:.0f} GiB")
    device = torch_device()
    bf16 = device.type == "cuda" and torch.cuda.is_bf16_supported()
    fast = "; --set training.precision=bf16 is faster on it" if bf16 else ""
    yield Finding("training would use", f"{device.type} in float32{fast}")


def _smoke(device: torch.device) -> Finding:
    """A tiny model learns one pair by heart and writes it back."""
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
        written = generate(module, source.tolist(), beam=2)[0][0].tokens
    right = list(written) == target[0, 1:-1].tolist()
    return Finding(
        "smoke test",
        f"a tiny model on {device.type} learned and wrote what it should"
        if right
        else f"a tiny model on {device.type} did not learn one sentence; torch is not working rightly here",
        "good" if right else "bad",
    )


def _note(good: bool) -> Literal["good", "note"]:
    return "good" if good else "note"
