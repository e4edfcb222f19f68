"""Figures of whole models: the paper's figure 1, the Transformer built three times, and the wirings of the families."""

import warnings
from collections import defaultdict
from typing import Any

import torch
from torch import Tensor, nn

from ...core import EncoderDecoder, SeriesEmbedding
from ...families.registry import build, config_of
from ...families.torch_nn import from_torch
from ...lens.document import n_parameters
from ...lens.recorder import record
from ..execution import cell_names
from . import figure, rounded

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


D_MODEL, N_HEADS, N_LAYERS, D_FF = 16, 2, 2, 32
SOURCE_LENGTH, TARGET_LENGTH, REAL = 5, 4, (5, 3)  # real tokens of the two sentences


def torch_transformer(**options: Any) -> nn.Transformer:
    """Return torch's Transformer in float64, with norms and biases that are not those of a fresh model."""
    options = {"dropout": 0.0, "batch_first": True, **options}
    with warnings.catch_warnings(action="ignore"):  # of kernels that a model with these options cannot use
        model = nn.Transformer(D_MODEL, N_HEADS, N_LAYERS, N_LAYERS, D_FF, **options).double()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.1 * torch.randn_like(weight))
    return model


def calls(keep: Tensor) -> dict[str, dict[str, Any]]:
    """Return the masks of nn.Transformer for each way to call it, the right one first."""
    ahead = torch.ones(TARGET_LENGTH, TARGET_LENGTH, dtype=torch.bool).triu(1)
    right = {"tgt_mask": ahead, "src_key_padding_mask": ~keep, "memory_key_padding_mask": ~keep}
    return {
        "right": right,
        "polarity": right | {"src_key_padding_mask": keep, "memory_key_padding_mask": keep},
        "memory": right | {"memory_key_padding_mask": None},
        "future": right | {"tgt_mask": None},
        "norm_first": right,
        "batch_first": {"tgt_mask": torch.ones(2, 2, dtype=torch.bool).triu(1)},
    }


@figure("three-builds")
@torch.no_grad()
def three_builds(language: str) -> dict[str, Any]:
    """Return the outputs (T, D) of the second sentence, which is padded: each build's, and each call's of torch."""
    models = {
        "right": torch_transformer(),
        "norm_first": torch_transformer(norm_first=True),
        "batch_first": torch_transformer(batch_first=False),
    }
    for model in models.values():
        model.load_state_dict(models["right"].state_dict())
    yours = cell_names("10", "class Transformer")["Transformer"](D_MODEL, N_HEADS, N_LAYERS, D_FF).double()
    yours.load_state_dict(models["right"].state_dict())
    source, target = (torch.randn(2, length, D_MODEL).double() for length in (SOURCE_LENGTH, TARGET_LENGTH))
    keep = torch.arange(SOURCE_LENGTH) < torch.tensor(REAL)[:, None]

    mine, outputs = yours(source, target, keep), {}
    for name, masks in calls(keep).items():
        length = TARGET_LENGTH if name == "batch_first" else SOURCE_LENGTH  # torch sees another batch otherwise
        outputs[name] = models.get(name, models["right"])(source[:, :length], target, **masks)
    return {
        "yours": rounded(mine[1]),
        "torch": {name: rounded(output[1]) for name, output in outputs.items()},
        "heedful": rounded(from_torch(models["right"])(source, target, keep)[1]),
        "difference": {name: float(f"{(output - mine).abs().max():.1e}") for name, output in outputs.items()},
    }


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
