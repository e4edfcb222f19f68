"""Twelve errors of the usual tutorials, most of which raise nothing. Heedful must make none of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

import every_model as models
import heedful
from every_model import LIMIT, PAD, D, H, V, batch, build, read, sentences
from heedful import core
from heedful.core import attend, attention_weights, causal, padding, window
from poisoned_padding import SURFACES

NO, YES = False, True
close = partial(assert_close, rtol=0, atol=1e-12)

every_model = pytest.mark.parametrize("name", models.MODELS)
every_decoder = pytest.mark.parametrize("name", models.DECODERS)
every_translator = pytest.mark.parametrize("name", models.TRANSLATORS)
every_side = pytest.mark.parametrize("side", ["left", "right", "scattered"])


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def formula(d_model: int, positions: list[int]) -> Tensor:
    """The paper's sinusoids, one number at a time."""

    def one(pos: int, dim: int) -> float:
        angle = pos / 10000 ** (2 * (dim // 2) / d_model)
        return math.cos(angle) if dim % 2 else math.sin(angle)

    return torch.tensor([[one(pos, dim) for dim in range(d_model)] for pos in positions])


def in_halves(table: Tensor) -> Tensor:
    return torch.cat([table[:, 0::2], table[:, 1::2]], dim=1)


def test_01_sinusoid_exponent_is_applied_once() -> None:
    assert core.Sinusoidal(8).table(2)[1, 2].item() == pytest.approx(math.sin(0.1), abs=1e-12)  # 0.09983, not 0.01
    for d_model in (8, 128, 512):
        expected = formula(d_model, list(range(60)))
        close(core.Sinusoidal(d_model).table(60), expected)
        close(core.Sinusoidal(d_model, layout="halves").table(60), in_halves(expected))
        close(core.Encoder([], positions=core.Sinusoidal(d_model))(torch.zeros(1, 60, d_model))[0], expected)


@pytest.mark.parametrize("d_model", [1, 3, 7, 129])
def test_02_odd_d_model_has_one_cosine_less(d_model: int) -> None:
    expected = formula(d_model, list(range(40)))
    close(core.Sinusoidal(d_model).table(40), expected)
    close(core.Sinusoidal(d_model, layout="halves").table(40), in_halves(expected))
    model = heedful.build("tiny", vocab_size=V, d_model=d_model, n_heads=1)
    assert model(torch.ones(2, 5, dtype=torch.long), torch.ones(2, 4, dtype=torch.long)).shape == (2, 4, V)


BLIND: list[tuple[core.Mask | Tensor, list[list[bool]]]] = [  # a mask, and which queries of each row see nothing
    (padding([0, 4]), [[YES] * 4, [NO] * 4]),
    (causal() & padding([0, 2]), [[YES] * 4, [NO] * 4]),
    (causal() & padding(torch.tensor([[NO, YES, YES, YES], [YES] * 4])), [[YES, NO, NO, NO], [NO] * 4]),
    (window(2) & padding([1, 2]), [[NO, NO, YES, YES], [NO, NO, NO, YES]]),
    (torch.tensor([[NO] * 4, [YES] * 4, [NO] * 4, [NO, NO, NO, YES]]), [[YES, NO, YES, NO]] * 2),
    (torch.tensor([NO, YES]).view(2, 1, 1, 1).expand(2, H, 4, 4), [[YES] * 4, [NO] * 4]),
]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_03_fully_masked_row_gives_zero_and_finite_gradients(dtype: torch.dtype) -> None:
    for (keep, literal), biased in product(BLIND, (False, True)):
        blind = torch.tensor(literal)[:, None].expand(2, H, 4)
        bias = torch.randn(H, 4, 4, dtype=dtype).requires_grad_() if biased else None
        query, key, value = (torch.randn(2, H, 4, 8, dtype=dtype).requires_grad_() for _ in range(3))
        given = [query, key, value] + ([] if bias is None else [bias])
        weights = attention_weights(query, key, keep=keep, bias=bias)
        assert_close(weights.sum(dim=-1), (~blind).to(dtype))  # a distribution, or zero
        for out in (weights, attend(query, key, value, keep=keep, bias=bias)):
            assert out.isfinite().all()
            assert not out[blind].any()
            grads = torch.autograd.grad(out.square().sum(), given, allow_unused=True)
            assert all(grad.isfinite().all() for grad in grads if grad is not None)

    for name in ("sinusoidal", "alibi", "pre-norm", "additive", "one vector"):
        model = build(name).to(dtype)
        source, target = torch.randint(1, V, (2, 2, 4))
        logits = model(source, target, padding([0, 4]), padding([0, 4]))
        logits.mean().backward()
        assert logits.isfinite().all()
        assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


@every_side
@every_translator
def test_04_decoder_never_reads_source_padding(name: str, side: str) -> None:
    model = build(name)
    rows, target = sentences(3, 6), torch.randint(1, V, (2, 4))
    source, keep = batch(rows, side, extra=2)
    without = torch.cat([model(torch.tensor([row]), target[i : i + 1]) for i, row in enumerate(rows)])
    close(model(source, target, keep), without)
    close(model(torch.where(keep, source, PAD), target, keep), without)
    assert (model(torch.where(keep, PAD, source), target, keep) - without).abs().max() > 1e-3  # it does read the rest

    memory = model.encode(source, keep)
    memory = torch.where(keep[..., None], memory, 9 * torch.randn_like(memory))  # now the cross-attention alone
    close(model.decode(target, memory, keep), without)
    close(model.decode(target.repeat_interleave(3, dim=0), memory, keep), without.repeat_interleave(3, dim=0))
    cache = model.new_cache()
    steps = [model.decode(target[:, t : t + 1], memory, keep, cache) for t in range(4)]
    close(torch.cat(steps, dim=1), without)


@every_decoder
def test_05_causal_mask_ends_at_the_last_key_and_holds_with_a_cache(name: str) -> None:
    query, key, value = torch.randn(2, H, 6, 8), torch.randn(2, 2, 6, 8), torch.randn(2, 2, 6, 8)
    for n_queries, n_keys in ((6, 6), (2, 6), (1, 6), (6, 2)):
        given = query[:, :, :n_queries], key[:, :, :n_keys]
        out = attend(*given, value[:, :, :n_keys], keep=causal())
        weights = attention_weights(*given, keep=causal())
        for i in range(n_queries):
            seen = max(0, n_keys - n_queries + i + 1)
            assert not weights[:, :, i, seen:].any()
            if seen:
                close(out[:, :, i : i + 1], attend(query[:, :, i : i + 1], key[:, :, :seen], value[:, :, :seen]))

    model = build(name)
    tokens, keep = batch(sentences(8, 5), "left")
    decode = models.decoder_of(model)
    whole = decode(tokens, keep=keep)
    for t in range(1, 8):  # what comes later changes nothing
        close(decode(tokens[:, :t], keep=keep[:, :t])[keep[:, :t]], whole[:, :t][keep[:, :t]])
    with torch.no_grad():
        for capacity in (None,) if isinstance(model.decoder, core.RecurrentDecoder) else (None, 8, 11):
            close(models.in_steps(model, tokens, keep, capacity)[keep], whole[keep])


@every_side
@pytest.mark.parametrize("n_layers", [1, 2])
@pytest.mark.parametrize("name", ["additive", "one vector"])
def test_06_both_directions_are_joined_for_the_decoder(name: str, n_layers: int, side: str) -> None:
    model = build(name, n_encoder_layers=n_layers)
    gru = nn.GRU(D, D, num_layers=n_layers, batch_first=True, bidirectional=True)
    for i, directions in enumerate(zip(model.encoder.forwards, model.encoder.backwards, strict=True)):
        for ours, suffix in zip(directions, ("", "_reverse"), strict=True):
            for weight in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                setattr(gru, f"{weight}_l{i}{suffix}", getattr(ours, f"{weight}_l0"))

    starts: list[Tensor] = []
    model.decoder.cell.register_forward_pre_hook(lambda cell, inputs: starts.append(inputs[1]))
    rows, first = sentences(3, 6, 1), torch.ones(3, 1, dtype=torch.long)
    source, keep = batch(rows, side, extra=2)
    memory = model.encode(source, keep)
    model.decode(first, memory, keep)
    for i, row in enumerate(rows):
        states, last = gru(model.source_embedding(torch.tensor([row]))[0])
        close(memory[i][keep[i]], states[0])
        model.decode(first[:1], model.encode(torch.tensor([row])))
        for start in (starts[0][i], starts[-1][0]):
            close(start, torch.tanh(model.decoder.start(torch.cat([last[-2, 0], last[-1, 0]]))))


@every_model
def test_07_training_and_evaluation_compute_the_same(name: str) -> None:
    model, rows = build(name), sentences(6, 3, 8)

    def answer() -> Tensor:
        return torch.cat(read(model, rows, "left", fill=PAD))

    evaluated = answer()
    model.train()
    assert torch.equal(answer(), evaluated)
    with torch.inference_mode():  # torch may choose another kernel, which may differ in the last digit
        close(answer(), evaluated)
    if name not in models.CLASSIFIERS:  # a cache one can differentiate through joins what the other writes into place
        tokens, keep = batch(sentences(8, 5), "left")
        close(models.in_steps(model, tokens, keep)[keep], models.decoder_of(model)(tokens, keep=keep)[keep])
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.5
        elif isinstance(module, core.DotProduct):
            module.dropout = 0.5
    assert not torch.equal(answer(), evaluated)
    model.eval()
    assert torch.equal(answer(), evaluated)


@every_side
@every_model
def test_08_padding_batch_size_and_order_change_no_answer(name: str, side: str) -> None:
    model, rows = build(name), sentences(4, 7, 1, 5)
    alone = [read(model, [row])[0] for row in rows]
    for extra, order in ((0, [0, 1, 2, 3]), (3, [2, 0, 3, 1]), (0, [1, 0]), (9, [3])):
        for i, answer in zip(order, read(model, [rows[i] for i in order], side, extra), strict=True):
            close(answer, alone[i])


@every_side
@pytest.mark.parametrize("surface", SURFACES)
def test_09_nan_in_padding_reaches_no_output_and_no_gradient(surface: str, side: str) -> None:
    def run(fill: float) -> list[Tensor]:
        torch.manual_seed(0)
        return SURFACES[surface](fill, side)

    clean = run(0.0)
    for fill in (math.nan, math.inf, -math.inf):
        for got, wanted in zip(run(fill), clean, strict=True):
            assert wanted.isfinite().all()
            close(got, wanted)


def test_10_pre_norm_ends_with_its_norm_and_the_original_is_post_norm() -> None:
    x, part = torch.randn(2, 5, D), nn.Linear(D, D)
    norm = models.randomised(core.LayerNorm(D))
    close(core.PostNorm(part, norm)(x), norm(x + part(x)))
    close(core.PreNorm(part, norm)(x), x + part(norm(x)))
    for order, expected in (({}, True), ({"norm": "post"}, True), ({"norm": "pre"}, False)):
        model: Any = heedful.build(models.ORIGINAL | models.SMALL | order)
        layers = models.outputs_of([*model.encoder.layers, *model.decoder.layers])
        memory = model.encoder(3 * x)
        assert models.normalised(memory)
        assert models.normalised(model.decoder(3 * x, memory))
        assert [models.normalised(layer) for layer in layers] == [expected] * 4


LONG: dict[str, Callable[[int], core.Mask]] = {
    "nothing": lambda n: core.everything(),
    "right padding": lambda n: padding([n, n // 2]),
    "left padding": lambda n: padding(torch.arange(n) >= torch.tensor([[0], [n // 3]])),
}


@pytest.mark.parametrize("hidden", LONG)
@pytest.mark.parametrize("part", ["encoder", "causal decoder", "whole model"])
def test_11_memory_for_the_backward_pass_is_linear_in_length(part: str, hidden: str) -> None:
    model = build("rotary").train()
    decoder = core.Decoder(model.encoder.layers)

    def fused(n: int) -> int:
        keep, x, tokens = LONG[hidden](n), torch.randn(2, n, D), torch.ones(2, n, dtype=torch.long)
        run: dict[str, Callable[[], Tensor]] = {
            "encoder": lambda: model.encoder(x, keep),
            "causal decoder": lambda: decoder(x, keep=keep),
            "whole model": lambda: model(tokens, tokens, keep, keep),
        }
        return models.saved_bytes(run[part], list(model.parameters()))

    def written_out(n: int, d_head: int) -> int:
        query, key, value = (torch.randn(2, H, n, d_head).requires_grad_() for _ in range(3))
        return models.saved_bytes(lambda: attention_weights(query, key, keep=causal()) @ value, [])

    assert fused(512) <= 2 * fused(256)
    narrow, wide = (written_out(512, width) - 2 * written_out(256, width) for width in (8, 32))
    assert narrow == wide > 0  # kept weights cost n², not n²·d


def test_12_input_longer_than_the_position_table_is_served_or_refused() -> None:
    served, places = core.Sinusoidal(D, max_length=5000), [0, 4999, 5000, 5001, 5999]
    expected = formula(D, places)
    close(served.table(6000)[places], expected)
    close(core.Encoder([], positions=served)(torch.zeros(1, 6000, D))[0, places], expected)
    for cache in (core.KVCache(), core.FixedKVCache(6000)):
        decoder = core.Decoder([], positions=served)
        steps = [decoder(torch.zeros(1, n, D), cache=cache) for n in (4999, 1, 1000)]
        close(torch.cat(steps, dim=1)[0, places], expected)

    tokens = torch.ones(1, LIMIT + 1, dtype=torch.long)
    translator, model = build("learned"), build("learned language model")
    too_long = partial(pytest.raises, ValueError, match=rf"{LIMIT + 1} tokens.* {LIMIT};")
    too_far = partial(pytest.raises, ValueError, match=rf"positions .* {LIMIT - 1}.* {LIMIT} ")
    whole = model(tokens[:, :LIMIT])
    for too_many in (partial(translator, target=tokens[:, :1]), partial(translator, tokens[:, :1]), model):
        with too_long():
            too_many(tokens)
    with too_far():
        model(tokens[:, :3], positions=torch.tensor([0, LIMIT, 1]))
    with pytest.raises(ValueError, match=rf"positions .* {LIMIT - 1}.* -1 "):
        model(tokens[:, :3], positions=torch.tensor([0, -1, 1]))
    table = core.Learned(LIMIT, D, offset=2)
    close(table.embed(torch.zeros(1, LIMIT, D), torch.arange(LIMIT))[0], table.weight[2:])
    with too_far():
        table.embed(torch.zeros(1, 1, D), torch.tensor([LIMIT]))
    with torch.no_grad():
        for cache, refused in ((model.new_cache(), too_long), (model.new_cache(LIMIT + 5), too_far)):
            model(tokens[:, : LIMIT - 1], cache=cache)
            with refused():
                model(tokens[:, :2], cache=cache)
            close(model(tokens[:, :1], cache=cache), whole[:, -1:])  # what still fits is served
