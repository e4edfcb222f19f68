"""With copied weights, torch.nn's own Transformer and ours give the same outputs and the same gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from heedful import core
from heedful.core import Decoder, Encoder, EncoderDecoder, MultiHeadAttention, causal, padding
from heedful.families.torch_nn import from_torch, to_torch

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")  # nn.Transformer says so of itself

TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5}
D, HEADS, FF = 24, 4, 40
LENGTHS, SOURCE_LENGTHS = [7, 3, 5], [6, 2, 4]


def randomized(module: nn.Module, dtype: torch.dtype) -> nn.Module:
    """Fresh torch.nn modules start with zero biases and unit norms, which would hide a missing one."""
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.2)
    return module.to(dtype).eval()


def hidden(lengths: list[int], size: int) -> Tensor:
    """torch.nn's polarity: True where one may not attend."""
    return torch.arange(size) >= torch.tensor(lengths)[:, None]


def look_ahead(size: int) -> Tensor:
    return torch.ones(size, size, dtype=torch.bool).triu(1)


def close(mine: Tensor, reference: Tensor, name: str) -> None:
    scale = max(1.0, float(reference.detach().abs().max()))
    torch.testing.assert_close(mine, reference, rtol=0, atol=TOLERANCE[mine.dtype] * scale, msg=name)


def assert_equal(
    actual: tuple[nn.Module, Callable[[], Tensor]],
    expected: tuple[nn.Module, Callable[[], Tensor]],
    real: Tensor,
    inputs: list[Tensor],
) -> None:
    """Outputs at real places, and every gradient when only real places count.

    The gradients of the parameters are compared by carrying them over as if they were weights.
    """
    outputs, gradients = [], []
    for module, run in (actual, expected):
        out = run()[real]
        out.mul(torch.linspace(-1, 1, out.numel(), dtype=out.dtype).view_as(out)).sum().backward()
        outputs.append(out)
        gradients.append([leaf.grad for leaf in inputs])
        for leaf in inputs:
            leaf.grad = None
        with torch.no_grad():
            for parameter in module.parameters():
                assert parameter.grad is not None
                parameter.copy_(parameter.grad)
    close(outputs[0], outputs[1], "output")
    for mine, reference in zip(*gradients, strict=True):
        assert mine is not None
        assert reference is not None
        close(mine, reference, "gradient of an input")
    carried = dict(from_torch(expected[0]).named_parameters())
    for name, parameter in actual[0].named_parameters():
        close(parameter, carried[name], f"gradient of {name}")


both_dtypes = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])
both_norms = pytest.mark.parametrize("norm_first", [False, True], ids=["post", "pre"])
both_activations = pytest.mark.parametrize("activation", ["relu", "gelu"])


@both_dtypes
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("case", ["plain", "padded", "causal", "causal-padded", "cross", "cross-narrow"])
def test_multi_head_attention_matches(case: str, bias: bool, dtype: torch.dtype) -> None:
    d_memory = 16 if case == "cross-narrow" else D
    expected: Any = randomized(
        nn.MultiheadAttention(D, HEADS, bias=bias, kdim=d_memory, vdim=d_memory, batch_first=True), dtype
    )
    actual = from_torch(expected)
    x = torch.randn(3, 7, D, dtype=dtype, requires_grad=True)
    memory = torch.randn(3, 6, d_memory, dtype=dtype, requires_grad=True)
    lengths = LENGTHS if "padded" in case else [7, 7, 7]
    real = ~hidden(lengths, 7)
    if case.startswith("cross"):
        pad = hidden(SOURCE_LENGTHS, 6)
        assert_equal(
            (actual, lambda: actual(x, memory, keep=padding(SOURCE_LENGTHS))),
            (expected, lambda: expected(x, memory, memory, key_padding_mask=pad, need_weights=False)[0]),
            real,
            [x, memory],
        )
        return
    mask = look_ahead(7) if "causal" in case else None
    keep = causal() & padding(lengths) if "causal" in case else padding(lengths)
    assert_equal(
        (actual, lambda: actual(x, keep=keep)),
        (
            expected,
            lambda: expected(x, x, x, key_padding_mask=hidden(lengths, 7), attn_mask=mask, need_weights=False)[0],
        ),
        real,
        [x],
    )


@both_dtypes
@both_norms
@both_activations
@pytest.mark.parametrize("final_norm", [True, False])
def test_encoder_matches(norm_first: bool, activation: str, final_norm: bool, dtype: torch.dtype) -> None:
    layer = nn.TransformerEncoderLayer(D, HEADS, FF, 0.1, activation, batch_first=True, norm_first=norm_first)
    expected = randomized(
        nn.TransformerEncoder(layer, 3, nn.LayerNorm(D) if final_norm else None, enable_nested_tensor=False), dtype
    )
    actual = from_torch(expected)
    x = torch.randn(3, 7, D, dtype=dtype, requires_grad=True)
    real = ~hidden(LENGTHS, 7)
    assert_equal(
        (actual, lambda: actual(x, real)), (expected, lambda: expected(x, src_key_padding_mask=~real)), real, [x]
    )


@both_dtypes
@both_norms
@both_activations
def test_decoder_matches(norm_first: bool, activation: str, dtype: torch.dtype) -> None:
    layer = nn.TransformerDecoderLayer(D, HEADS, FF, 0.1, activation, batch_first=True, norm_first=norm_first)
    expected = randomized(nn.TransformerDecoder(layer, 2, nn.LayerNorm(D)), dtype)
    actual = from_torch(expected)
    x = torch.randn(3, 7, D, dtype=dtype, requires_grad=True)
    memory = torch.randn(3, 6, D, dtype=dtype, requires_grad=True)
    real, source_real = ~hidden(LENGTHS, 7), ~hidden(SOURCE_LENGTHS, 6)

    def reference() -> Any:
        return expected(
            x,
            memory,
            tgt_mask=look_ahead(7),
            tgt_key_padding_mask=~real,
            memory_key_padding_mask=~source_real,
        )

    def mine() -> Any:
        return actual(x, memory, keep=real, memory_keep=source_real)

    assert_equal((actual, mine), (expected, reference), real, [x, memory])


@both_dtypes
@both_norms
def test_whole_transformer_matches(norm_first: bool, dtype: torch.dtype) -> None:
    expected = randomized(nn.Transformer(D, HEADS, 2, 2, FF, 0.1, batch_first=True, norm_first=norm_first), dtype)
    actual = from_torch(expected)
    source = torch.randn(3, 6, D, dtype=dtype, requires_grad=True)
    target = torch.randn(3, 7, D, dtype=dtype, requires_grad=True)
    real, source_real = ~hidden(LENGTHS, 7), ~hidden(SOURCE_LENGTHS, 6)

    def reference() -> Any:
        return expected(
            source,
            target,
            tgt_mask=look_ahead(7),
            src_key_padding_mask=~source_real,
            tgt_key_padding_mask=~real,
            memory_key_padding_mask=~source_real,
        )

    assert_equal(
        (actual, lambda: actual(source, target, source_real, real)), (expected, reference), real, [source, target]
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.MultiheadAttention(D, HEADS, kdim=16, vdim=16, dropout=0.2),
        lambda: nn.TransformerEncoderLayer(D, HEADS, FF, 0.3, "gelu", norm_first=True, layer_norm_eps=1e-3),
        lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(D, HEADS, FF, bias=False), 2, nn.LayerNorm(D)),
        lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(D, HEADS, FF), 2),
        lambda: nn.Transformer(D, HEADS, 2, 2, FF),
    ],
    ids=["attention", "layer", "encoder", "decoder", "transformer"],
)
def test_round_trip_keeps_every_weight_and_setting(make: Callable[[], nn.Module]) -> None:
    expected = randomized(make(), torch.float64)
    back = to_torch(from_torch(expected))
    reference = expected.state_dict()
    assert back.state_dict().keys() == reference.keys()
    for name, tensor in back.state_dict().items():
        assert torch.equal(tensor, reference[name]), name
    settings = [
        (a.p, getattr(b, "p", None))
        for a, b in zip(expected.modules(), back.modules(), strict=True)
        if isinstance(a, nn.Dropout)
    ]
    assert all(mine == other for mine, other in settings)


def test_modules_without_a_torch_counterpart_are_refused() -> None:
    with pytest.raises(ValueError, match="key/value heads"):
        to_torch(MultiHeadAttention(D, HEADS, n_kv_heads=2))
    with pytest.raises(ValueError, match="add_bias_kv"):
        from_torch(nn.MultiheadAttention(D, HEADS, add_bias_kv=True))
    with pytest.raises(ValueError, match="kdim=8 and vdim=16"):
        from_torch(nn.MultiheadAttention(D, HEADS, kdim=8, vdim=16))
    with pytest.raises(TypeError, match="a Linear cannot be converted"):
        from_torch(nn.Linear(2, 2))


def test_the_classes_are_the_expected_ones() -> None:
    whole = from_torch(nn.Transformer(D, HEADS, 1, 1, FF))
    assert isinstance(whole, EncoderDecoder)
    assert isinstance(whole.encoder, Encoder)
    assert isinstance(whole.decoder, Decoder)


def test_sublayers_side_by_side_and_normalized_heads_are_refused() -> None:
    norm = core.LayerNorm(8)
    feed_forward = core.PreNorm(core.FeedForward(8, 16), norm)
    side_by_side = core.ParallelLayer(core.PreNorm(core.MultiHeadAttention(8, 2), norm), feed_forward)
    with pytest.raises(ValueError, match="not in parallel"):
        to_torch(side_by_side)
    with pytest.raises(ValueError, match="no norm of queries"):
        to_torch(core.MultiHeadAttention(8, 2, query_norm=core.RMSNorm(4)))
