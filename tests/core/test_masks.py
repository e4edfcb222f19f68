"""Masks as the matrices a person would draw, what they refuse, and what the fused kernel is given for them."""

from __future__ import annotations

from typing import Any, cast

import pytest
import torch
from tiny_models import SCHEMES, D, V, close, decoder_only, encoder_layer, encoder_only, layout, shaken, tokens
from torch import Tensor

from heedful.core import Decoder, Encoder, Mask, attend, causal, everything, padding, window
from heedful.core.mask_preparation import PreparedMask, prepare_mask, zero_padding
from heedful.core.masks import Grid, Padding, as_mask

CPU = torch.device("cpu")
LEFT = torch.tensor([[False, True, True, True], [True, True, True, True]])
RIGHT = torch.tensor([[True, True, True, False], [True, True, False, False]])


def matrix(*rows: str) -> Tensor:
    return torch.tensor([[mark == "1" for mark in row] for row in rows])


@pytest.mark.parametrize(
    ("mask", "sizes", "wanted"),
    [
        (causal(), (4,), matrix("1000", "1100", "1110", "1111")),
        (causal(), (2, 5), matrix("11110", "11111")),
        (causal(), (3, 2), matrix("00", "10", "11")),
        (everything(), (2, 3), matrix("111", "111")),
        (window(2), (4,), matrix("1100", "1110", "0111", "0011")),
        (causal() & window(2), (4,), matrix("1000", "1100", "0110", "0011")),
        (causal() & window(2), (2, 5), matrix("00110", "00011")),
        (window(1), (3,), matrix("100", "010", "001")),
    ],
)
def test_the_same_for_every_row_is_one_matrix(mask: Mask, sizes: tuple[int, ...], wanted: Tensor) -> None:
    assert torch.equal(mask.tensor(*sizes), wanted)


@pytest.mark.parametrize(
    ("mask", "wanted"),
    [
        (padding([3, 1]), [["1110"] * 4, ["1000"] * 4]),
        (padding(torch.tensor([3, 1])), [["1110"] * 4, ["1000"] * 4]),
        (padding(LEFT), [["0111"] * 4, ["1111"] * 4]),
        (causal() & padding([3, 1]), [["1000", "1100", "1110", "1110"], ["1000"] * 4]),
        (causal() & padding(LEFT), [["0000", "0100", "0110", "0111"], ["1000", "1100", "1110", "1111"]]),
        (window(2) & causal() & padding([3, 4]), [["1000", "1100", "0110", "0010"], ["1000", "1100", "0110", "0011"]]),
    ],
)
def test_padding_makes_a_matrix_for_each_row(mask: Mask, wanted: list[list[str]]) -> None:
    assert torch.equal(mask.tensor(4), torch.stack([matrix(*rows) for rows in wanted])[:, None])


def test_masks_join_with_tensors_from_either_side() -> None:
    square = torch.rand(4, 4) > 0.5
    lower = torch.ones(4, 4, dtype=torch.bool).tril()
    assert torch.equal((causal() & square).tensor(4), square & lower)
    assert torch.equal((square & causal()).tensor(4), square & lower)
    per_head = torch.rand(2, 3, 4, 4) > 0.5
    for mask in (padding([3]), padding([3, 3]), window(9)):
        assert torch.equal((mask & per_head).tensor(4), per_head & mask.tensor(4))


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: as_mask(torch.ones(4, 4)), TypeError, "must be boolean.*float32.*pass numbers .* as bias="),
        (lambda: as_mask(torch.ones(4, 4, dtype=torch.long)), TypeError, "must be boolean.*int64"),
        (lambda: causal() & torch.ones(4, 4, dtype=torch.uint8), TypeError, "must be boolean.*uint8"),
        (lambda: as_mask(torch.ones(2, 4, 4, dtype=torch.bool)), ValueError, r"not \(2, 4, 4\).*mask\[:, None\]"),
        (lambda: as_mask(torch.ones(4, dtype=torch.bool)), ValueError, r"not \(4,\)"),
        (lambda: as_mask(cast("Any", "causal")), TypeError, r"made by causal\(\).*got 'causal'"),
        (lambda: padding(torch.ones(2, 4, dtype=torch.long)), TypeError, r"True = may attend.*int64.*mask.bool\(\)"),
        (lambda: padding(torch.tensor([2.0, 3.0])), TypeError, "float32 tensor of shape"),
        (lambda: padding(torch.tensor([True, False])), TypeError, "bool tensor of shape"),
        (lambda: padding([3, -1]), ValueError, r"cannot be negative: \(3, -1\)"),
        (lambda: padding(RIGHT, lengths=[3]), ValueError, "each of the 2 rows of padding, not 1"),
        (lambda: padding(RIGHT, lengths=[3, 3]), ValueError, r"lengths=\(3, 3\) differ from the padding mask"),
        (lambda: padding(LEFT, lengths=[3, 4]), ValueError, "lengths are for padding at the end"),
        (lambda: padding(LEFT, at_the_end=True), ValueError, "has padding before a real key"),
        (lambda: window(0), ValueError, "at least 1, not 0"),
    ],
)
def test_what_is_no_mask_is_refused_in_words(make: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        make()


@pytest.mark.parametrize(
    ("keep", "words"),
    [
        (padding([2, 3, 4]), "given for 3 rows, but the batch has 2"),
        (padding([5, 2]), "length of 5 is more than the 4 keys"),
        (padding(RIGHT[:, :3]), "covers 3 keys, but there are 4"),
        (torch.ones(4, 3, dtype=torch.bool), r"\(4, 3\) does not fit 2 rows of 4 queries and 4 keys"),
        (torch.ones(3, 1, 4, 4, dtype=torch.bool), "does not fit 2 rows"),
        (torch.ones(2, 3, 4, 4, dtype=torch.bool), "for 3 heads, but there are 2"),
        (RIGHT, r"padding\(keep\) for a \(B, Tk\)"),
    ],
)
def test_a_mask_that_does_not_fit_says_what_would(keep: Mask | Tensor, words: str) -> None:
    query = torch.randn(2, 2, 4, 3)
    with pytest.raises(ValueError, match=words):
        attend(query, query, query, keep=keep)


@pytest.mark.parametrize("keep", [[3, 2], torch.ones(2, 4), torch.ones(2, 4, dtype=torch.long)])
def test_a_model_refuses_what_is_no_padding_in_words(keep: Any) -> None:
    ids = torch.randint(0, V, (2, 4))
    with pytest.raises(TypeError, match="boolean"):
        decoder_only()(ids, keep)
    for mask in (causal(), window(2), torch.ones(1, 1, 4, 4, dtype=torch.bool)):
        with pytest.raises(ValueError, match="keep states which tokens are real"):
            decoder_only()(ids, mask)


def bound(mask: Mask, *, n_queries: int = 4, start: int = 0, bias: Tensor | None = None) -> PreparedMask:
    return prepare_mask(mask, Grid(2, n_queries, 4, start, CPU), bias=bias, dtype=torch.float32)


def test_what_hides_nothing_is_dropped() -> None:
    full = padding(torch.ones(2, 4, dtype=torch.bool))
    for mask in (everything(), padding([4, 4]), full, window(4), full & window(9)):
        free = bound(mask)
        assert (free.additive, free.fully_masked, free.unpad_index, free.is_causal) == (None, None, None, False)
    step = bound(causal() & padding([4, 4]), n_queries=1, start=3)
    assert (step.additive, step.fully_masked, step.is_causal) == (None, None, False)


def test_a_causal_mask_is_the_kernels_own_where_that_is_exact() -> None:
    for mask in (causal(), causal() & padding([4, 1]), causal() & padding(RIGHT), causal() & window(4)):
        fused = bound(mask)
        assert fused.is_causal
        assert (fused.additive, fused.fully_masked, fused.unpad_index) == (None, None, None)
    left = bound(causal() & padding(LEFT))
    assert left.is_causal
    assert left.additive is None
    assert left.unpad_index is not None
    assert left.unpad_index[0].tolist() == [[1, 2, 3, 0], [0, 1, 2, 3]]
    assert left.unpad_index[1].tolist() == [[3, 0, 1, 2], [0, 1, 2, 3]]
    assert left.fully_masked is not None
    assert left.fully_masked.flatten().tolist() == [True, False, False, False] + [False] * 4


def test_padding_known_to_stand_at_the_end_takes_the_causal_way_whatever_it_hides() -> None:
    keep = torch.tensor([[True, True, True, False], [False] * 4])
    (part,) = padding(keep, at_the_end=True).parts
    assert isinstance(part, Padding)
    assert (part.at_the_end, part.lengths, part.every_row_has_a_key) == (True, None, False)
    for real in (keep, torch.ones_like(keep)):  # even where nothing is hidden: the next batch may be another
        fused = bound(causal() & padding(real, at_the_end=True))
        assert fused.is_causal
        assert (fused.additive, fused.unpad_index) == (None, None)
        assert fused.fully_masked is not None
        assert fused.fully_masked.flatten().tolist() == (~real[:, 0]).tolist()
        free = bound(padding(real, at_the_end=True))
        assert free.additive is not None
        assert torch.equal(free.additive[:, 0, 0] == 0, real | ~real.any(dim=1, keepdim=True))
    (told,) = padding(RIGHT, lengths=[3, 2], at_the_end=True).parts
    assert isinstance(told, Padding)
    assert (told.lengths, told.every_row_has_a_key) == ((3, 2), True)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("build", [encoder_only, decoder_only])
def test_a_model_answers_the_same_however_much_the_host_knows_of_padding_at_the_end(build: Any, scheme: str) -> None:
    model, ids, keep = build(scheme), tokens(), layout("right")
    keep[1] = False
    close(model(ids, padding(keep, at_the_end=True))[keep], model(ids, keep)[keep])


@pytest.mark.parametrize(
    "case",
    [
        {"mask": causal() & window(2)},
        {"mask": causal(), "bias": torch.zeros(2, 4, 4)},
        {"mask": causal(), "n_queries": 2, "start": 2},
        {"mask": causal() & torch.ones(4, 4, dtype=torch.bool).triu(-1)},
        {"mask": causal() & padding(LEFT) & padding([4, 3])},
    ],
)
def test_elsewhere_the_dense_mask_is_exact(case: dict[str, Any]) -> None:
    given = bound(**case)
    assert not given.is_causal
    assert given.additive is not None
    sizes = given.grid.n_queries, given.grid.n_keys
    seen = (given.additive == 0).expand(2, 2, *sizes)
    wanted = case["mask"].tensor(*sizes).expand(2, 2, *sizes)
    blind = ~wanted.any(-1, keepdim=True)
    assert torch.equal(seen, wanted | blind)
    hidden = given.fully_masked
    assert not blind.any() if hidden is None else torch.equal(hidden.expand_as(blind), blind)


def test_an_encoders_padding_costs_one_row_and_no_square() -> None:
    for mask in (padding([4, 2]), padding(LEFT)):
        given = bound(mask)
        assert given.additive is not None
        assert given.additive.shape == (2, 1, 1, 4)
        assert given.fully_masked is None or not given.fully_masked.any()


@pytest.mark.parametrize("keep", [None, padding([4, 2]), padding(RIGHT), padding(LEFT)])
def test_no_square_mask_reaches_the_kernel_in_a_stack(keep: Mask | None, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[dict[str, Any]] = []
    kernel = torch.nn.functional.scaled_dot_product_attention

    def spy(*tensors: Any, **options: Any) -> Tensor:
        given.append(options)
        return kernel(*tensors, **options)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", spy)
    x = torch.randn(2, 4, D, dtype=torch.float64)
    shaken(Decoder([encoder_layer()]))(x, keep=keep)
    shaken(Encoder([encoder_layer()]))(x, keep)
    decoder, encoder = given
    assert decoder["is_causal"]
    assert decoder["attn_mask"] is None
    assert encoder["attn_mask"] is None or encoder["attn_mask"].shape == (2, 1, 1, 4)


def test_a_window_is_measured_in_the_positions_given() -> None:
    decoder, x = shaken(Decoder([encoder_layer()], mask=causal() & window(3))), torch.randn(1, 3, D).double()
    alone = Decoder(decoder.layers, mask=causal() & window(1))
    torch.testing.assert_close(decoder(x, positions=torch.tensor([0, 10, 20])), alone(x))


def test_zeroing_padding_stops_nan_both_ways() -> None:
    x = torch.tensor([[[1.0], [torch.nan]]], requires_grad=True)
    zeroed = zero_padding(x, torch.tensor([[True, False]]))
    assert zeroed.flatten().tolist() == [1.0, 0.0]
    (gradient,) = torch.autograd.grad((zeroed * torch.tensor([[[1.0], [torch.nan]]])).sum(), x)
    assert gradient.flatten().tolist() == [1.0, 0.0]
