"""Figures of the whole model: the paper's figure 1, with the shapes and parameters of the base model."""

from collections import defaultdict
from typing import Any

import torch
from torch import nn

from ...core import EncoderDecoder
from ...families.registry import build, config_of
from ...lens.document import n_parameters
from ...lens.recorder import record
from . import figure

SOURCE = ["I", "am", "a", "student"]
TARGET = ["<s>", "나", "는", "학생", "이다"]
SETTINGS = ("d_model", "n_heads", "d_ff", "n_encoder_layers", "n_decoder_layers", "vocab_size")


def blocks_of(model: EncoderDecoder) -> dict[str, nn.Module]:
    """Return the modules behind the blocks of the paper's figure 1; of the layers, those of the first."""
    blocks: dict[str, nn.Module] = {"source_embedding": model.source_embedding}
    for stack in ("encoder", "decoder"):
        part: Any = getattr(model, stack)
        blocks[f"{stack}_positions"] = part.dropout  # its input is the sum of embeddings and positions
        for name, wrap in part.layers[0].named_children():  # in the order in which they run
            blocks |= {f"{stack}_{name}": wrap.sublayer, f"{stack}_{name}_norm": wrap.norm}
        if stack == "encoder":
            blocks["target_embedding"] = model.target_embedding
    return blocks | {"head": model.head}


@figure("map-of-the-model")
def map_of_the_model(language: str) -> dict[str, Any]:
    """Run a sentence through the paper's base model; return the shape after each block, and its parameters."""
    config, model = config_of("base"), build("base").eval()
    blocks = blocks_of(model)
    outputs: dict[nn.Module, list[list[int]]] = defaultdict(list)  # both embeddings are one module, called twice
    hooks = [
        block.register_forward_hook(lambda block, _, output: outputs[block].append(_shape(output)))
        for block in set(blocks.values())
    ]
    source, target = torch.arange(len(SOURCE))[None], torch.arange(len(TARGET))[None]
    with torch.no_grad(), record(model, layers=0) as recording:
        model(source, target)
    for hook in hooks:
        hook.remove()
    return {
        "source": SOURCE,
        "target": TARGET,
        "settings": {name: getattr(config, name) for name in SETTINGS},
        "shapes": {name: outputs[block].pop(0) for name, block in blocks.items()},
        "weights": {f"{look.stack}_{look.kind}_attention": list(look.weights.shape[1:]) for look in recording.looks},
        "parameters": {name: n_parameters(block) for name, block in blocks.items()},
        "layers": {stack: n_parameters(getattr(model, stack).layers[0]) for stack in ("encoder", "decoder")},
        "total": n_parameters(model),
    }


def _shape(output: Any) -> list[int]:
    """Return the shape of a block's output without the batch; an embedding returns its padding too."""
    tensor = output[0] if isinstance(output, tuple) else output
    return list(tensor.shape[1:])
