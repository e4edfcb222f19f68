"""What tests of looking share: a document's arrays as numbers, and proof that nothing was left in a model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from heedful.lens.document import unpacked


def values(document: Mapping[str, Any], name: str) -> torch.Tensor:
    """As Python reads it."""
    return torch.from_numpy(unpacked(document["arrays"][name]).copy())


def weights(document: Mapping[str, Any], name: str) -> torch.Tensor:
    """All heads of one attention: (H, Tq, Tk)."""
    (found,) = [one for one in document["attentions"] if one["id"] == name]
    return torch.stack([values(document, head["weights"]) for head in found["heads"]])


def check(document: Mapping[str, Any], module: nn.Module) -> None:
    """It is JSON, every sequence fits its maps, and the model is as it was."""
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    length = {name: len(tokens) for name, tokens in document["sequences"].items()}
    for one in document["attentions"]:
        for head in one["heads"]:
            wanted = [length[one["queries"]], length[one["keys"]]]
            assert document["arrays"][head["weights"]]["shape"] == wanted
    for layer in document["layers"]:
        assert document["arrays"][layer["residual"]]["shape"][0] == length[layer["sequence"]]
    for part in module.modules():
        assert not part._forward_hooks
        assert not part._forward_pre_hooks
        assert not part.training
