"""Tiny models of transformers that look at images, with odd sizes. Their weights are made random in published_pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import transformers
from torch import Tensor
from transformers.core_model_loading import revert_weight_conversion

SIZES = {"image_size": 12, "patch_size": 4, "num_channels": 2, "hidden_size": 20, "intermediate_size": 23}
LAYERS = {"num_hidden_layers": 2, "num_attention_heads": 5}


def as_in_files(model: Any) -> Any:
    """The model with its tensors under the names that its files have; in memory transformers has others."""
    in_files = {mine: next(iter(revert_weight_conversion(model, {mine: x}))) for mine, x in model.state_dict().items()}

    def out(module: Any, state: dict[str, Tensor], prefix: str, metadata: Any) -> None:
        for mine, filed in in_files.items():
            state[filed] = state.pop(mine)

    def load_hook(module: Any, state: dict[str, Tensor], *rest: Any) -> None:
        for mine, filed in in_files.items():
            if filed in state:
                state[mine] = state.pop(filed)

    model.register_state_dict_post_hook(out)
    model.register_load_state_dict_pre_hook(load_hook)
    return model


def vit(kind: type[Any], **changes: Any) -> Any:
    """Build a tiny model of a ViT class of transformers."""
    return as_in_files(kind(transformers.ViTConfig(**SIZES | LAYERS | changes)))


def deit(kind: type[Any], **changes: Any) -> Any:
    """Build a tiny model of a DeiT class of transformers."""
    return as_in_files(kind(transformers.DeiTConfig(**SIZES | LAYERS | changes)))


IMAGES: dict[str, Callable[[], Any]] = {
    "vit": lambda: vit(transformers.ViTForImageClassification),
    "vit without biases": lambda: vit(
        transformers.ViTForImageClassification,
        qkv_bias=False,
        num_labels=7,
        num_channels=1,
        patch_size=3,
        hidden_act="gelu_new",
        layer_norm_eps=1e-3,
    ),
    "deit": lambda: deit(transformers.DeiTForImageClassificationWithTeacher, num_labels=5),
    "deit classes": lambda: deit(transformers.DeiTForImageClassification, hidden_act="relu"),
}
