"""Figures of the families: their parts and who sees whom, from the models of chapter 12, and prices in patches."""

from typing import Any

import torch
from torch import nn

from ...core import SeriesEmbedding
from ...lens.document import n_parameters
from ...lens.recorder import record
from ..execution import cell_names
from . import figure, rounded

DAYS = 30
LENGTHS = range(2, 13)


@figure("wirings")
@torch.no_grad()
def wirings(language: str) -> dict[str, Any]:
    """Run each model of chapter 12; return the blocks of its layers, and which query sees which key."""
    models = cell_names("12", "detector = ")["models"]
    return {"models": [_wiring(name, module.eval(), inputs) for name, (module, inputs) in models.items()]}


def _wiring(name: str, module: Any, inputs: tuple[Any, ...]) -> dict[str, Any]:
    with record(module, layers=0) as recording:
        output = module(*inputs)
    stacks = {stack: getattr(module, stack) for stack in ("encoder", "decoder") if hasattr(module, stack)}
    return {
        "name": name,
        "class": type(module).__name__,
        "stacks": {stack: _blocks(part) for stack, part in stacks.items()},
        "layers": {stack: len(part.layers) for stack, part in stacks.items()},
        "sees": [
            {"stack": look.stack, "kind": look.kind, "rows": (look.weights[0, 0] > 0).int().tolist()}
            for look in recording.looks
        ],
        "inputs": [list(tensor.shape[1:]) for tensor in inputs],
        "output": list(output.shape[1:]),
        "parameters": n_parameters(module),
    }


def _blocks(stack: nn.Module) -> list[str]:
    """Return the names of a layer's blocks, in the order in which they run."""
    layer: Any = stack.get_submodule("layers.0")
    return [name for name, _ in layer.named_children()]


@figure("price-patches")
def price_patches(language: str) -> dict[str, Any]:
    """Return a made-up series of prices, and how many patches each length and stride cut it into."""
    prices = 100 + torch.randn(DAYS).cumsum(dim=0)
    counts = {}
    for length in LENGTHS:
        for stride in range(1, length + 1):
            embedding = SeriesEmbedding(8, patch_length=length, stride=stride)
            filling = embedding.filling(DAYS)
            patches, _ = embedding(prices[None, DAYS - filling :, None])
            counts[f"{length},{stride}"] = {"patches": patches.shape[1], "days": filling}
    return {"prices": rounded(prices, 2), "lengths": list(LENGTHS), "counts": counts}
