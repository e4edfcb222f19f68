"""What comes after the logits: in C for float32 on a CPU, through torch for the rest. Shapes: R rows, V vocabulary."""

from __future__ import annotations

import ctypes

import torch
from torch import Tensor

from .build import library


def log_softmax(logits: Tensor) -> Tensor:
    """The logprobs of each row (R, V); in C they take the place of the logits."""
    found = _library_for(logits)
    if found is None:
        return logits.log_softmax(dim=-1)
    logits = logits.contiguous()
    found.run_log_softmax(logits.data_ptr(), *logits.shape, torch.get_num_threads())
    return logits


def top(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest of each row, in order, and their places: (R, k)."""
    found = _library_for(scores)
    if found is None:
        best = scores.topk(k)
        return best.values, best.indices
    scores = scores.contiguous()
    values = torch.empty(len(scores), k, dtype=torch.float32, device="cpu")
    places = torch.empty(len(scores), k, dtype=torch.int64, device="cpu")
    found.run_top(scores.data_ptr(), *scores.shape, k, values.data_ptr(), places.data_ptr(), torch.get_num_threads())
    return values, places


def _library_for(rows: Tensor) -> ctypes.CDLL | None:
    return library() if rows.device.type == "cpu" and rows.dtype == torch.float32 else None
