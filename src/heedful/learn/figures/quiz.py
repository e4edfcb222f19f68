"""The quiz: claims about the Transformer, each answered by a measurement that is made when the page is.

Shapes: B batch, T tokens, S source tokens, D d_model.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ... import core
from ...families import build
from ...lab.models import Reader, encoder, train, without_positions
from ...lens.document import n_parameters
from . import figure

Measured = tuple[bool, dict[str, Any]]  # whether the claim holds, and the numbers that say so
CLAIMS: dict[str, tuple[str, Callable[[], Measured]]] = {}  # by name: the chapter, and the measurement
TINY = {"vocab_size": 50, "d_model": 32, "n_heads": 4, "d_ff": 64, "dropout": 0.0}


def claim(chapter: str) -> Callable[[Callable[[], Measured]], Callable[[], Measured]]:
    """Register the measurement of the claim that has the function's name, without its first underscore."""

    def register(measure: Callable[[], Measured]) -> Callable[[], Measured]:
        CLAIMS[measure.__name__[1:].replace("_", "-")] = chapter, measure
        return measure

    return register


@figure("quiz")
@torch.no_grad()
def quiz(language: str) -> dict[str, Any]:
    """Return the claims with their measured answers."""
    claims = []
    for name, (chapter, measure) in CLAIMS.items():
        torch.manual_seed(0)
        holds, values = measure()
        claims.append({"name": name, "chapter": chapter, "holds": bool(holds), "values": values})
    return {"claims": claims}


def _largest(difference: Tensor) -> float:
    return float(f"{difference.abs().max():.2g}")


def _stack() -> core.Encoder:
    return encoder(32, 2, residual=core.PostNorm, positions=without_positions)


@claim("07")
def _feed_forward_share() -> Measured:
    with torch.device("meta"):
        model: Any = build("base")
    first = model.encoder.layers[0]
    layer, inside = n_parameters(first), n_parameters(first.feed_forward.sublayer)
    share = 12 * inside / n_parameters(model)
    return share >= 0.66, {"layer": f"{inside / layer:.0%}", "model": f"{share:.0%}"}


@claim("03")
def _without_positions() -> Measured:
    tokens, swapped = torch.tensor([[1, 2, 3, 4, 5]]), torch.tensor([[3, 2, 1, 4, 5]])  # 고양이 가 쥐 를 잡았다
    table, stack = nn.Embedding(6, 32), _stack()
    plain, placed = (
        _largest((stack(table(tokens) + p) - stack(table(swapped) + p)).mean(dim=1))
        for p in (torch.zeros(5, 32), core.Sinusoidal(32).table(5))
    )
    return plain < 1e-4, {"plain": plain, "placed": placed}


@claim("03")
def _shift_is_linear() -> Measured:
    table = core.Sinusoidal(16).table(60).double()
    matrix = torch.linalg.lstsq(table[:40], table[7:47]).solution
    error = _largest(table[:40] @ matrix - table[7:47])
    return error < 1e-4, {"error": error}


@claim("03")
def _doubled_exponent() -> Measured:
    value = float(core.Sinusoidal(8).table(2)[1, 2])
    return abs(value - 0.01) < 1e-3, {"value": round(value, 5)}


@claim("03")
def _odd_width() -> Measured:
    table = core.Sinusoidal(7).table(4)
    return table.shape == (4, 7) and bool(table.isfinite().all()), {"shape": " × ".join(map(str, table.shape))}


@claim("03")
def _beyond_the_table() -> Measured:
    embedded = build("tiny", **TINY, max_length=50).eval()
    logits = embedded(torch.ones(1, 60, dtype=torch.long), torch.ones(1, 55, dtype=torch.long))
    return bool(logits.isfinite().all()), {"length": logits.shape[1], "table": 50}


@claim("05")
def _scaled_variance() -> Measured:
    query, key = torch.randn(2, 4000, 512)
    scores = (query * key).sum(dim=-1)
    scaled = float((scores / 512**0.5).var())
    return abs(scaled - 1) < 0.1, {"raw": round(float(scores.var())), "scaled": f"{scaled:.2f}"}


@claim("06")
def _as_many_parameters() -> Measured:
    single, eight = (n_parameters(core.MultiHeadAttention(512, n)) for n in (1, 8))
    return eight == single, {"single": f"{single:,}", "eight": f"{eight:,}"}


@claim("07")
def _bottleneck() -> Measured:
    part = core.FeedForward(512, 2048)
    inside = part.up_proj.out_features
    return inside < 512, {"outside": 512, "inside": inside}


@claim("07")
def _final_norm() -> Measured:
    x, stack = torch.randn(1, 20, 32), encoder(32, 12, positions=without_positions)
    norm, stack.norm = stack.norm, nn.Identity()
    variances = [float(end.var(dim=-1, unbiased=False).mean()) for end in (stack(x), norm(stack(x)))]
    return abs(variances[0] - 1) < 0.1, {"bare": f"{variances[0]:.1f}", "normed": f"{variances[1]:.1f}"}


@claim("07")
def _norm_against_overfitting() -> Measured:
    texts, labels = torch.randint(20, (2, 64, 6)), torch.randint(2, (2, 64))  # to train on, and others
    model = Reader(20, _stack(), 2, 32, at=0)
    train(model, lambda _: F.cross_entropy(model(texts[0]), labels[0]), 60)
    trained, fresh = (float((model(texts[n]).argmax(dim=-1) == labels[n]).float().mean()) for n in (0, 1))
    return trained < 0.7, {"trained": f"{trained:.0%}", "fresh": f"{fresh:.0%}"}


@claim("08")
def _big_negative_number() -> Measured:
    common = torch.full((5,), -1e9).softmax(dim=-1)
    query = torch.randn(1, 1, 1, 4)
    heedful = core.attention_weights(query, torch.randn(1, 1, 5, 4), keep=core.padding([0]))
    return float(common.max()) < 1e-6, {"common": f"{common[0]:.2f}", "heedful": f"{heedful.max():.2f}"}


@claim("08")
def _nan_times_zero() -> Measured:
    values = torch.tensor([[1.0], [2.0], [torch.nan]])
    naive = torch.tensor([[0.5, 0.5, 0.0]]) @ values
    heedful = core.attend(torch.randn(1, 1, 1, 1), torch.ones(1, 1, 3, 1), values[None, None], keep=core.padding([2]))
    return bool(naive.isfinite().all()), {"naive": str(float(naive)), "heedful": f"{float(heedful):.2f}"}


@claim("08")
def _triangle_with_cache() -> Measured:
    query, key = torch.randn(1, 1, 1, 8), torch.randn(1, 1, 6, 8)
    corner = torch.ones(1, 6, dtype=torch.bool).tril()
    seen = int((core.attention_weights(query, key, keep=corner) > 0).sum())
    return seen == 6, {"seen": seen, "keys": 6}


@claim("08")
def _source_padding() -> Measured:
    model = build("tiny", **TINY).eval()
    source, target = torch.randint(5, 50, (1, 6)), torch.randint(5, 50, (1, 4))
    memory = model.encode(source, core.padding([4]))
    other = torch.cat([memory[:, :4], torch.randn(1, 2, 32)], dim=1)
    forgotten, masked = (
        _largest(model.decode(target, memory, keep) - model.decode(target, other, keep))
        for keep in (None, core.padding([4]))
    )
    return forgotten < 1e-4, {"forgotten": forgotten, "masked": masked}


@claim("08")
def _memory_mask_is_causal() -> Measured:
    attention, x, memory = core.MultiHeadAttention(32, 4), torch.randn(1, 5, 32), torch.randn(1, 5, 32)
    other = torch.cat([memory[:, :4], memory[:, 4:] + 1], dim=1)
    change = _largest(attention(x, memory)[:, 0] - attention(x, other)[:, 0])
    return change < 1e-6, {"change": change}


@claim("08")
def _neighbors_in_a_batch() -> Measured:
    model = build("tiny", **TINY).eval()
    source, target = torch.randint(5, 50, (3, 9)), torch.randint(5, 50, (3, 4))
    together = model(source, target, core.padding([5, 9, 7]))[0]
    change = _largest(together - model(source[:1, :5], target[:1])[0])
    return change < 1e-5, {"change": change}


@claim("11")
def _training_and_evaluation() -> Measured:
    model, source, target = build("tiny", **TINY), torch.randint(5, 50, (2, 6)), torch.randint(5, 50, (2, 4))
    keep = core.padding([6, 3])
    change = _largest(model.train()(source, target, keep) - model.eval()(source, target, keep))
    return change < 1e-5, {"change": change}


@claim("01")
def _bidirectional_state() -> Measured:
    gru = nn.GRU(32, 64, bidirectional=True, batch_first=True)
    _, state = gru(torch.randn(1, 5, 32))
    numbers = state.numel()
    return numbers == 64, {"state": numbers, "decoder": 64}


@claim("01")
def _memory_of_attention() -> Measured:
    stored = [core.attention_weights(torch.randn(1, 1, 128, d), torch.randn(1, 1, 128, d)).numel() for d in (16, 64)]
    return stored[0] == stored[1] == 128**2, {"small": f"{stored[0]:,}", "large": f"{stored[1]:,}", "n": 128}
