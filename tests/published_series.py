"""Tiny models of transformers that forecast series, with odd sizes. published_pairs makes their weights random."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import transformers
from torch import nn

SIZES = {"d_model": 20, "num_attention_heads": 5, "ffn_dim": 23, "num_hidden_layers": 2, "prediction_length": 7}
PATCHES = {"context_length": 30, "patch_length": 6, "patch_stride": 3, "pooling_type": None}


def _patchtst(**changes: Any) -> Any:
    """Without the count of batches, which nothing reads, and which is no weight to be made random."""
    model = transformers.PatchTSTForPrediction(transformers.PatchTSTConfig(**SIZES | PATCHES | changes))
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d):
            module.num_batches_tracked = None
            module.track_running_stats = False  # else loading asks for the count; evaluation uses them all the same
    return model


SERIES: dict[str, Callable[[], Any]] = {
    "patchtst": lambda: _patchtst(pre_norm=False, num_input_channels=3, norm_eps=1e-3),
    "patchtst pre-norm": lambda: _patchtst(norm_type="layernorm", norm_eps=1e-3, activation_function="relu"),
    "patchtst pre-norm over batches": lambda: _patchtst(num_input_channels=2, scaling="mean", bias=False),
    "patchtst with steps over": lambda: _patchtst(
        context_length=41, patch_length=7, patch_stride=4, num_input_channels=2, pre_norm=False
    ),
    "patchtst unscaled": lambda: _patchtst(scaling=None, num_input_channels=4, pre_norm=False),
    "patchtst of means": lambda: _patchtst(pooling_type="mean", num_input_channels=2),
    "patchtst of the largest": lambda: _patchtst(pooling_type="max", pre_norm=False),
    "patchtst learned positions": lambda: _patchtst(
        d_model=15, positional_encoding_type="random", norm_type="layernorm", pre_norm=False
    ),
}
