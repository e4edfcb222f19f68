"""The models of benchmarks/core.py: each wiring three times over, and what all of them are given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from heedful.core import Decoder
from heedful.families.torch_nn import from_torch

D_MODEL, N_HEADS, D_FF = 512, 8, 2048  # the paper's base model
TOKENS = 1024  # in a batch, where one row is no longer than that
OURS, PEERS = "Heedful", ("torch.nn", "x-transformers")

WHAT_DIFFERS = (
    "What differs: torch.nn and Heedful hold the same weights and give the same numbers. x-transformers "
    "(fused attention on, ReLU, the same widths, norms in the same place) has no biases in its attention "
    "and its norms, scales a norm in a step of its own, and ends post-norm stacks without the norm that "
    "nn.Transformer adds."
)


@dataclass(frozen=True)
class Case:
    """One row of the table."""

    wiring: str
    length: int
    padded: bool = False
    dropout: float = 0.0
    pre_norm: bool = False

    @property
    def name(self) -> str:
        notes = [
            self.wiring,
            "padded" if self.padded else "",
            f"dropout {self.dropout}" if self.dropout else "",
            "pre-norm" if self.pre_norm else "",
        ]
        return ", ".join(filter(None, notes))

    @property
    def batch(self) -> int:
        return max(1, TOKENS // self.length)


def cases(lengths: list[int]) -> list[Case]:
    """Every wiring at every length, and at the middle length what training adds."""
    middle = sorted(lengths)[len(lengths) // 2]
    return [
        *(Case("encoder", n) for n in lengths),
        *(Case("encoder", n, padded=True) for n in lengths),
        *(Case("decoder-only", n) for n in lengths),
        *(Case("encoder-decoder", n) for n in lengths),
        Case("encoder-decoder", middle, padded=True),
        Case("decoder", middle, padded=True),
        Case("encoder", middle, dropout=0.1),
        Case("encoder", middle, pre_norm=True),
    ]


class Batch:
    """What all are given: vectors, which of the source are real, and a gradient for the output, none at padding."""

    def __init__(self, case: Case) -> None:
        shape = case.batch, case.length, D_MODEL
        self.source = torch.randn(shape, requires_grad=True)
        self.target = torch.randn(shape, requires_grad=True)
        self.gradient = torch.randn(shape)
        self.keep: Tensor | None = None
        self.hidden: Tensor | None = None  # torch.nn says it the other way round
        if case.padded:
            lengths = torch.linspace(case.length / 2, case.length, case.batch).long()
            self.keep = torch.arange(case.length) < lengths[:, None]
            self.hidden = ~self.keep
            if case.wiring == "encoder":
                self.gradient[self.hidden] = 0.0


@dataclass(frozen=True)
class Contender:
    """A model and how it is called."""

    module: nn.Module
    forward: Callable[[], Tensor]

    def step(self, batch: Batch) -> Tensor:
        """Forward and backward, as training does."""
        self.module.zero_grad(set_to_none=True)
        batch.source.grad = batch.target.grad = None
        out = self.forward()
        out.backward(batch.gradient)
        return out


def encoder(case: Case, n_layers: int, batch: Batch) -> dict[str, Contender]:
    """Every token sees every real token."""
    theirs = _torch_encoder(case, n_layers)
    ours = from_torch(theirs)
    other = _x_stack("Encoder", case, n_layers)
    return _named(
        Contender(ours, lambda: ours(batch.source, batch.keep)),
        Contender(theirs, lambda: theirs(batch.source, src_key_padding_mask=batch.hidden)),
        Contender(other, lambda: other(batch.source, mask=batch.keep)),
    )


def decoder_only(case: Case, n_layers: int, batch: Batch) -> dict[str, Contender]:
    """Every token sees itself and what came before."""
    theirs = _torch_encoder(case, n_layers)
    converted: Any = from_torch(theirs)
    ours = Decoder(converted.layers, norm=converted.norm)
    other = _x_stack("Decoder", case, n_layers)
    look_ahead = nn.Transformer.generate_square_subsequent_mask(case.length)
    return _named(
        Contender(ours, lambda: ours(batch.source)),
        Contender(theirs, lambda: theirs(batch.source, mask=look_ahead, is_causal=True)),
        Contender(other, lambda: other(batch.source)),
    )


def decoder(case: Case, n_layers: int, batch: Batch) -> dict[str, Contender]:
    """The same, reading a memory too."""
    layer = nn.TransformerDecoderLayer(**_torch_layer(case))
    theirs = nn.TransformerDecoder(layer, n_layers, _torch_norm(case))
    ours = from_torch(theirs)
    other = _x_stack("Decoder", case, n_layers, cross_attend=True)
    look_ahead = nn.Transformer.generate_square_subsequent_mask(case.length)
    masks = {"tgt_mask": look_ahead, "tgt_is_causal": True, "memory_key_padding_mask": batch.hidden}
    return _named(
        Contender(ours, lambda: ours(batch.target, batch.source, memory_keep=batch.keep)),
        Contender(theirs, lambda: theirs(batch.target, batch.source, **masks)),
        Contender(other, lambda: other(batch.target, context=batch.source, context_mask=batch.keep)),
    )


def encoder_decoder(case: Case, n_layers: int, batch: Batch) -> dict[str, Contender]:
    """Both, as in translation."""
    theirs = nn.Transformer(num_encoder_layers=n_layers, num_decoder_layers=n_layers, **_torch_layer(case))
    ours = from_torch(theirs)
    reader = _x_stack("Encoder", case, n_layers)
    writer = _x_stack("Decoder", case, n_layers, cross_attend=True)
    look_ahead = nn.Transformer.generate_square_subsequent_mask(case.length)
    masks = {
        "tgt_mask": look_ahead,
        "tgt_is_causal": True,
        "src_key_padding_mask": batch.hidden,
        "memory_key_padding_mask": batch.hidden,
    }

    def read_and_write() -> Tensor:
        memory = reader(batch.source, mask=batch.keep)
        return writer(batch.target, context=memory, context_mask=batch.keep)

    return _named(
        Contender(ours, lambda: ours(batch.source, batch.target, batch.keep)),
        Contender(theirs, lambda: theirs(batch.source, batch.target, **masks)),
        Contender(nn.ModuleList([reader, writer]), read_and_write),
    )


def _named(*contenders: Contender) -> dict[str, Contender]:
    return dict(zip((OURS, *PEERS), contenders, strict=True))


def _torch_layer(case: Case) -> dict[str, Any]:
    return {
        "d_model": D_MODEL,
        "nhead": N_HEADS,
        "dim_feedforward": D_FF,
        "dropout": case.dropout,
        "norm_first": case.pre_norm,
        "batch_first": True,
    }


def _torch_norm(case: Case) -> nn.LayerNorm | None:
    return nn.LayerNorm(D_MODEL) if case.pre_norm else None


def _torch_encoder(case: Case, n_layers: int) -> nn.TransformerEncoder:
    layer = nn.TransformerEncoderLayer(**_torch_layer(case))
    return nn.TransformerEncoder(layer, n_layers, _torch_norm(case), enable_nested_tensor=False)


def _x_stack(kind: str, case: Case, n_layers: int, **more: Any) -> nn.Module:
    """x-transformers' Encoder or Decoder, set as near to the others as it goes."""
    import x_transformers

    places = ("attn_dropout", "attn_sublayer_dropout", "ff_dropout", "ff_sublayer_dropout")
    return getattr(x_transformers, kind)(
        dim=D_MODEL,
        depth=n_layers,
        heads=N_HEADS,
        attn_dim_head=D_MODEL // N_HEADS,
        attn_flash=True,
        ff_mult=D_FF // D_MODEL,
        ff_custom_activation=nn.ReLU(),
        pre_norm=case.pre_norm,
        **dict.fromkeys(places, case.dropout),
        **more,
    )


WIRINGS: dict[str, Callable[[Case, int, Batch], dict[str, Contender]]] = {
    "encoder": encoder,
    "decoder-only": decoder_only,
    "decoder": decoder,
    "encoder-decoder": encoder_decoder,
}
