"""Small encoder-decoders from core parts, whole or with one part broken, and the task that they learn.

The task is to reverse eight symbols. A source is eight symbols; the target is the start symbol and the source backward.

Shapes: B batch, T tokens.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .. import core

N_SYMBOLS, START, VOCABULARY = 16, 16, 17
D_MODEL = 64

Rate = Callable[[int], float]  # the learning rate of a step, counted from 1


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


def without_positions(_: int) -> core.Positions:
    """Return the scheme that adds nothing."""
    return core.Positions()


@dataclass(frozen=True, kw_only=True)
class Wiring:
    """The parts of an encoder-decoder; every field exchanges one."""

    d_model: int = D_MODEL
    n_layers: int = 2
    n_heads: int = 4
    d_ff: int | None = None  # twice d_model
    scale: float | None = None
    residual: Callable[..., nn.Module] = core.PreNorm
    norm: Callable[[int], nn.Module] = core.LayerNorm
    positions: Callable[[int], core.Positions] = core.Sinusoidal
    mask: core.Mask | None = None
    has_cross_attention: bool = True
    has_feed_forward: bool = True

    def attention(self) -> nn.Module:
        """Return an attention in its residual wrapper."""
        part = core.MultiHeadAttention(self.d_model, self.n_heads, scale=self.scale)
        return self.residual(part, self.norm(self.d_model))

    def feed_forward(self) -> nn.Module:
        """Return a feed-forward in its residual wrapper, or what returns its input."""
        if not self.has_feed_forward:
            return AbsentSublayer()
        return self.residual(core.FeedForward(self.d_model, self.d_ff or 2 * self.d_model), self.norm(self.d_model))

    def encoder(self) -> core.Encoder:
        """Build an encoder."""
        layers = [core.EncoderLayer(self.attention(), self.feed_forward()) for _ in range(self.n_layers)]
        return core.Encoder(layers, positions=self.positions(self.d_model), norm=self._final_norm())

    def decoder(self) -> core.Decoder:
        """Build a decoder."""
        layers = []
        for _ in range(self.n_layers):
            cross = self.attention() if self.has_cross_attention else AbsentSublayer()
            layers.append(core.DecoderLayer(self.attention(), cross, self.feed_forward()))
        return core.Decoder(layers, positions=self.positions(self.d_model), norm=self._final_norm(), mask=self.mask)

    def _final_norm(self) -> nn.Module:
        return nn.Identity() if self.residual is core.PostNorm else self.norm(self.d_model)


def transformer(**parts: Any) -> core.EncoderDecoder:
    """Build an encoder-decoder with these parts of `Wiring`."""
    wiring = Wiring(**parts)
    return assembled(wiring.encoder(), wiring.decoder())


def encoder(d_model: int, n_layers: int = 1, **parts: Any) -> core.Encoder:
    """Build an encoder with these parts of `Wiring`."""
    return Wiring(d_model=d_model, n_layers=n_layers, **parts).encoder()


class Reader(nn.Module):
    """Token ids (B, T) → embedding → a stack → logits (B, T, C), or (B, C) of the token at one place."""

    def __init__(self, n_tokens: int, stack: nn.Module, n_classes: int, d_model: int, at: int | None = None) -> None:
        super().__init__()
        self.embedding = core.TokenEmbedding(n_tokens, d_model)
        self.stack = stack
        self.head = nn.Linear(d_model, n_classes)
        self.at = at

    def forward(self, tokens: Tensor) -> Tensor:
        states = self.stack(self.embedding(tokens)[0])
        states = states[0] if isinstance(states, tuple) else states  # torch's recurrent layers return two things
        return self.head(states if self.at is None else states[:, self.at])


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


@contextmanager
def seeded(seed: int = 0) -> Iterator[None]:
    """Draw random numbers from a seed inside the block, or inside a decorated function; outside, nothing changes."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def symbols(batch: int, length: int, generator: torch.Generator) -> Tensor:
    """Draw sources (B, T)."""
    return torch.randint(N_SYMBOLS, (batch, length), generator=generator)


def reversing_loss(model: core.EncoderDecoder, source: Tensor) -> Tensor:
    """Return the loss of reversing a batch, each symbol predicted from the right ones before it."""
    target = source.flip(1)
    logits = model(source, shifted(target))
    return F.cross_entropy(logits.flatten(0, 1), target.flatten())


def shifted(target: Tensor, start: int = START) -> Tensor:
    """Return what the decoder reads: the start symbol and the target without its last symbol."""
    return F.pad(target[:, :-1], (1, 0), value=start)


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


def warm_up(peak: float = 3e-3, steps: int = 20) -> Rate:
    """Return a learning rate that rises linearly over the first steps and stays."""
    return lambda step: peak * min(1.0, step / max(1, steps))


def fall(peak: float, steps: int) -> Rate:
    """Return a learning rate that falls linearly to zero over the second half of all steps."""
    return lambda step: peak * min(1.0, 2 * (1 - (step - 1) / steps))


@torch.enable_grad()
def train(model: nn.Module, loss_of: Callable[[int], Tensor], steps: int, rate: Rate | None = None) -> list[float]:
    """Train with Adam; return the losses. `loss_of` and `rate` take the number of the step, from 1."""
    rate = rate or warm_up()
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98))
    curve = []
    model.train()
    for step in range(1, steps + 1):
        optimizer.param_groups[0]["lr"] = rate(step)
        loss = loss_of(step)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        curve.append(float(loss.detach()))
    model.eval()
    return curve
