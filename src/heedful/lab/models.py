"""Small encoder-decoders from core parts, whole or with one part broken, and the task that they learn.

The task is to reverse eight symbols. A source is eight symbols; the target is the start symbol and the source backward.

Shapes: B batch, T tokens.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .. import core

N_SYMBOLS, START, VOCABULARY = 16, 16, 17
D_MODEL = 64


class BareSublayer(nn.Module):
    """A sublayer without the addition: dropout(sublayer(norm(x))). The residual wrapper of a broken model."""

    def __init__(self, sublayer: nn.Module, norm: nn.Module, dropout: float = 0.0) -> None:
        super().__init__()
        self.sublayer, self.norm, self.dropout = sublayer, norm, nn.Dropout(dropout)

    def forward(self, x: Tensor, *args: Any, **context: Any) -> Tensor:
        return self.dropout(self.sublayer(self.norm(x), *args, **context))


class AbsentSublayer(nn.Module):
    """Takes the place of a sublayer with its residual wrapper, and returns its input."""

    def forward(self, x: Tensor, *args: Any, **context: Any) -> Tensor:
        return x


def transformer(
    *,
    n_layers: int = 2,
    n_heads: int = 4,
    scale: float | None = None,
    residual: Callable[..., nn.Module] = core.PreNorm,
    norm: Callable[[int], nn.Module] = core.LayerNorm,
    positions: Callable[[int], core.Positions] = core.Sinusoidal,
    mask: core.Mask | None = None,
    has_cross_attention: bool = True,
    has_feed_forward: bool = True,
) -> core.EncoderDecoder:
    """Build an encoder-decoder; every argument exchanges one part. `positions=lambda _: core.Positions()` has none."""

    def attention() -> nn.Module:
        return residual(core.MultiHeadAttention(D_MODEL, n_heads, scale=scale), norm(D_MODEL))

    def feed_forward() -> nn.Module:
        if not has_feed_forward:
            return AbsentSublayer()
        return residual(core.FeedForward(D_MODEL, 2 * D_MODEL), norm(D_MODEL))

    def decoder_layer() -> nn.Module:
        cross = attention() if has_cross_attention else AbsentSublayer()
        return core.DecoderLayer(attention(), cross, feed_forward())

    final = nn.Identity if residual is core.PostNorm else partial(norm, D_MODEL)
    encoder_layers = [core.EncoderLayer(attention(), feed_forward()) for _ in range(n_layers)]
    decoder_layers = [decoder_layer() for _ in range(n_layers)]
    return assembled(
        core.Encoder(encoder_layers, positions=positions(D_MODEL), norm=final()),
        core.Decoder(decoder_layers, positions=positions(D_MODEL), norm=final(), mask=mask),
    )


def encoder(
    d_model: int,
    n_layers: int = 1,
    n_heads: int = 4,
    *,
    d_ff: int | None = None,
    residual: Callable[..., nn.Module] = core.PreNorm,
    positions: core.Positions | None = None,
) -> core.Encoder:
    """Build an encoder with d_ff twice d_model and sinusoidal positions, unless given; pre-norm has a final norm."""

    def layer() -> nn.Module:
        parts = (core.MultiHeadAttention(d_model, n_heads), core.FeedForward(d_model, d_ff or 2 * d_model))
        return core.EncoderLayer(*(residual(part, core.LayerNorm(d_model)) for part in parts))

    norm = core.LayerNorm(d_model) if residual is core.PreNorm else None
    layers = [layer() for _ in range(n_layers)]
    return core.Encoder(layers, positions=positions or core.Sinusoidal(d_model), norm=norm)


def recurrent(attention: nn.Module | None = None) -> core.EncoderDecoder:
    """Build a recurrent encoder-decoder: with additive attention, or with one vector for the whole source."""
    part: Any = core.AdditiveAttention(D_MODEL, 2 * D_MODEL, D_MODEL) if attention is None else attention
    return assembled(core.RecurrentEncoder(D_MODEL), core.RecurrentDecoder(D_MODEL, 2 * D_MODEL, part))


def assembled(encoder: Any, decoder: Any) -> core.EncoderDecoder:
    """Add the embeddings and the head to two stacks."""
    embedding = core.TokenEmbedding(VOCABULARY, D_MODEL)
    head = core.VocabularyHead(D_MODEL, VOCABULARY)
    return core.EncoderDecoder(
        source_embedding=embedding, encoder=encoder, target_embedding=embedding, decoder=decoder, head=head
    )


def symbols(batch: int, length: int, generator: torch.Generator) -> Tensor:
    """Draw sources (B, T)."""
    return torch.randint(N_SYMBOLS, (batch, length), generator=generator)


def reversing_loss(model: core.EncoderDecoder, source: Tensor) -> Tensor:
    """Return the loss of reversing a batch, each symbol predicted from the right ones before it."""
    target = source.flip(1)
    logits = model(source, shifted(target))
    return F.cross_entropy(logits.flatten(0, 1), target.flatten())


def shifted(target: Tensor) -> Tensor:
    """Return what the decoder reads: the start symbol and the target without its last symbol."""
    return F.pad(target[:, :-1], (1, 0), value=START)


@torch.no_grad()
def teacher_forced_accuracy(model: core.EncoderDecoder, source: Tensor) -> float:
    """Return the share of symbols that are right where the decoder reads the right symbols before them."""
    target = source.flip(1)
    return float((model(source, shifted(target)).argmax(-1) == target).float().mean())


@torch.no_grad()
def write(model: core.EncoderDecoder, source: Tensor) -> Tensor:
    """Write as many symbols as the source has, each the likeliest after those written: (B, T)."""
    memory = model.encode(source)
    tokens = torch.full((len(source), 1), START)
    for _ in range(source.shape[1]):
        tokens = torch.cat([tokens, model.decode(tokens, memory)[:, -1:].argmax(-1)], dim=1)
    return tokens[:, 1:]


def written_accuracy(model: core.EncoderDecoder, source: Tensor) -> float:
    """Return the share of symbols that are right where the decoder reads what it has written."""
    return float((write(model, source) == source.flip(1)).float().mean())


def train(
    model: nn.Module,
    loss_of: Callable[[int], Tensor],
    steps: int,
    *,
    learning_rate: float = 3e-3,
    warmup_steps: int = 20,
) -> list[float]:
    """Train with Adam and a linear warm-up; return the losses. `loss_of` takes the number of the step."""
    optimizer = torch.optim.Adam(model.parameters(), learning_rate, betas=(0.9, 0.98))
    curve = []
    model.train()
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate * min(1.0, (step + 1) / max(1, warmup_steps))
        loss = loss_of(step)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        curve.append(float(loss.detach()))
    model.eval()
    return curve
