"""Recurrence beside attention as the sequence grows: time, memory kept for the backward pass, steps in a row.

    python benchmarks/recurrent.py            # measures, prints a table, writes JSON
    python benchmarks/recurrent.py --docs     # and rewrites docs/recurrent-versus-attention.md with its picture

Every length is measured forward and backward, in interleaved rounds. A model stops growing where the
next length would keep more than --memory gigabytes.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from _measure import Spread, interleaved, kept_for_backward, longest_chain, machine, write_json
from _recurrent_page import ADDITIVE, FUSED, GRU, KEPT, LAYER, REFERENCE, tables, write_page
from heedful.core import (
    AdditiveAttention,
    DotProduct,
    EncoderDecoder,
    EncoderLayer,
    FeedForward,
    Hidden,
    LayerNorm,
    MultiHeadAttention,
    PostNorm,
    RecurrentDecoder,
    RecurrentEncoder,
    Vectors,
)
from heedful.core.mask_preparation import PreparedMask

N_HEADS = 8
SHORTEST = 64
BATCHES = (1, 8, 32)  # at the reference length
ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "benchmarks" / "results" / "recurrent.json"


class Gru(nn.Module):
    """One layer that reads in one direction: (B, T, D) → (B, T, D)."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.gru = nn.GRU(d_model, d_model, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        out, _ = self.gru(x)
        return out


class AdditiveTranslator(nn.Module):
    """The recurrent encoder-decoder with additive attention, reading x and writing as many tokens."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.translator = EncoderDecoder(
            source_embedding=Vectors(),
            encoder=RecurrentEncoder(d_model),
            target_embedding=Vectors(),
            decoder=RecurrentDecoder(d_model, 2 * d_model, AdditiveAttention(d_model, 2 * d_model, d_model)),
            head=Hidden(),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.translator(x, x)


class WrittenOut(DotProduct):
    """Attention by its formula alone, nothing masked: autograd keeps the weights, n² for each head, once."""

    def forward(self, query: Tensor, key: Tensor, value: Tensor, keep: PreparedMask) -> Tensor:
        scores = query * query.shape[-1] ** -0.5 @ key.transpose(-2, -1)
        return scores.softmax(dim=-1) @ value


def written_out(d_model: int) -> MultiHeadAttention:
    """Self-attention without the fused kernel."""
    attention = MultiHeadAttention(d_model, N_HEADS)
    attention.attention = WrittenOut()
    return attention


def encoder_layer(d_model: int) -> EncoderLayer:
    """Self-attention and feed-forward, each with its norm."""
    parts = MultiHeadAttention(d_model, N_HEADS), FeedForward(d_model, 4 * d_model)
    return EncoderLayer(*(PostNorm(part, LayerNorm(d_model)) for part in parts))


@dataclass(frozen=True)
class Model:
    """What is measured, and how many steps must follow one another over n tokens."""

    name: str
    build: Callable[[int], nn.Module]
    steps: Callable[[int], int]


MODELS = [
    Model(GRU, Gru, lambda n: n),
    Model(ADDITIVE, AdditiveTranslator, lambda n: 2 * n),
    Model(FUSED, lambda d: MultiHeadAttention(d, N_HEADS), lambda n: 1),
    Model(KEPT, written_out, lambda n: 1),
    Model(LAYER, encoder_layer, lambda n: 1),
]


class Subject:
    """A model, given sequences of one length."""

    def __init__(self, module: nn.Module, shape: tuple[int, int, int]) -> None:
        self.module = module
        self.x = torch.randn(shape, requires_grad=True)
        self.gradient = torch.randn(shape)

    def step(self) -> None:
        """Forward and backward."""
        self.module.zero_grad(set_to_none=True)
        self.x.grad = None
        self.module(self.x).backward(self.gradient)

    def counts(self) -> dict[str, int]:
        """What does not depend on the clock."""
        out, kept = kept_for_backward(lambda: self.module(self.x), self.module.parameters())
        return {"kept_bytes": kept, "chain": longest_chain(out)}


def measure(models: list[Model], d_model: int, length: int, batch: int, rounds: int) -> list[dict[str, Any]]:
    """A row for each model at this length."""
    torch.manual_seed(0)
    subjects = {model.name: Subject(model.build(d_model), (batch, length, d_model)) for model in models}
    rows: list[dict[str, Any]] = [
        {"model": model.name, "length": length, "batch": batch, "steps": model.steps(length)}
        | subjects[model.name].counts()
        for model in models
    ]
    seconds = interleaved({name: subject.step for name, subject in subjects.items()}, rounds)
    return [row | {"milliseconds": 1000 * Spread.of(seconds[row["model"]]).median} for row in rows]


def grow(d_model: int, lengths: list[int], rounds: int, most_bytes: float) -> list[dict[str, Any]]:
    """Rows for all lengths; a model that would keep too much, were it quadratic, grows no further."""
    rows: list[dict[str, Any]] = []
    models = list(MODELS)
    for length, following in zip(lengths, [*lengths[1:], lengths[-1]], strict=True):
        new = measure(models, d_model, length, 1, rounds)
        print(f"measured: {length} tokens, {len(new)} models", flush=True)
        light = {row["model"] for row in new if row["kept_bytes"] * (following / length) ** 2 <= most_bytes}
        models = [model for model in models if model.name in light]
        rows += new
    return rows


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description="Recurrence beside attention as the sequence grows.")
    parser.add_argument("--d-model", type=int, default=512)
    parser.add_argument("--longest", type=int, default=8192, help=f"lengths double from {SHORTEST} up to this")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1, help="a GRU's steps are too small to share among several")
    parser.add_argument("--memory", type=float, default=1.0, help="gigabytes a model may keep for its backward pass")
    parser.add_argument("--out", type=Path, default=RESULT, help="where the JSON goes")
    parser.add_argument("--docs", action="store_true", help="rewrite the page and its picture too")
    parser.add_argument("--read", type=Path, help="take the figures from this JSON instead of measuring")
    args = parser.parse_args()
    if args.longest < REFERENCE:
        parser.error(f"--longest must reach the reference length of {REFERENCE}, got {args.longest}")

    if args.read:
        result: dict[str, Any] = json.loads(args.read.read_text(encoding="utf-8"))
    else:
        torch.set_num_threads(args.threads)
        lengths = [SHORTEST << i for i in range((args.longest // SHORTEST).bit_length())]
        pair = [model for model in MODELS if model.name in (GRU, FUSED)]
        result = {
            "machine": machine(),
            "d_model": args.d_model,
            "n_heads": N_HEADS,
            "rounds": args.rounds,
            "rows": grow(args.d_model, lengths, args.rounds, args.memory * 1e9),
            "batches": [row for b in BATCHES for row in measure(pair, args.d_model, REFERENCE, b, args.rounds)],
        }
        write_json(args.out, result)
    print("\n" + "\n\n".join(tables(result).values()) + "\n")
    if args.docs:
        write_page(result, ROOT / "docs")


if __name__ == "__main__":
    main()
