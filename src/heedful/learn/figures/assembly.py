"""The Transformer built three times with the same weights: by the cells of chapter 10, by torch and by Heedful."""

import warnings
from typing import Any

import torch
from torch import Tensor, nn

from ...families.torch_nn import from_torch
from ..execution import cell_names
from . import figure, rounded

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
