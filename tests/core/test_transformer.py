"""The three wirings: alone or in a batch, saved and loaded, wide and narrow, the answer is the same."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable
from typing import Any

import pytest
import torch
from tiny_models import (
    LAYOUTS,
    SCHEMES,
    D,
    V,
    close,
    decoder_only,
    encoder_decoder,
    encoder_layer,
    encoder_only,
    layout,
    recurrent,
    shaken,
    tokens,
)
from torch import Tensor, nn

from heedful import core

MODELS: dict[str, Callable[[], Any]] = {
    "encoder": encoder_only,
    "decoder": decoder_only,
    "encoder-decoder": encoder_decoder,
    "recurrent": recurrent,
    "recurrent without attention": lambda: recurrent(attention=False),
}


def answer(model: nn.Module, ids: Tensor) -> Tensor:
    """Logits for the same tokens on either side, where there are two."""
    return model(ids, ids) if hasattr(model, "encode") else model(ids)


@pytest.mark.parametrize("where", LAYOUTS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_an_encoders_batch_equals_each_row_alone(scheme: str, where: str) -> None:
    ids, keep = tokens(), layout(where)
    for model in (encoder_only(scheme), encoder_only(scheme, core.ClassHead(core.MeanPool(), D, 5))):
        together = model(ids, keep)
        for row in range(3):
            alone = model(ids[row : row + 1, keep[row]])[0]
            close(together[row, keep[row]] if together.dim() == 3 else together[row], alone)


@pytest.mark.parametrize("target_where", LAYOUTS)
@pytest.mark.parametrize("source_where", LAYOUTS)
@pytest.mark.parametrize("kind", ["encoder-decoder", "recurrent", "recurrent without attention"])
def test_a_translators_batch_equals_each_row_alone(kind: str, source_where: str, target_where: str) -> None:
    model, source, target = MODELS[kind](), tokens(), tokens()
    source_keep, target_keep = layout(source_where), layout(target_where)
    together = model(source, target, source_keep, target_keep)
    assert together.isfinite().all()
    for row in range(3):
        alone = model(source[row : row + 1, source_keep[row]], target[row : row + 1, target_keep[row]])
        close(together[row, target_keep[row]], alone[0])


@pytest.mark.parametrize("kind", ["decoder", "encoder-decoder", "recurrent", "recurrent without attention"])
def test_no_token_knows_a_later_one(kind: str) -> None:
    model, source, target = MODELS[kind](), tokens(), tokens()
    changed = target.clone()
    changed[:, 5:] = (changed[:, 5:] + 1) % V
    before, after = (model(ids) if kind == "decoder" else model(source, ids) for ids in (target, changed))
    close(before[:, :5], after[:, :5])
    assert not torch.isclose(before[:, 5:], after[:, 5:]).all(-1).any()


@pytest.mark.parametrize("where", ["left", "right", "prompts of 4, 2 and 3 that go on"])
@pytest.mark.parametrize("kind", MODELS)
def test_what_stands_in_padding_changes_no_gradient(kind: str, where: str) -> None:
    model, keep, ids = MODELS[kind](), layout(where), tokens()
    gradients = []
    for filled in (ids.masked_fill(~keep, 1), ids.masked_fill(~keep, 2)):
        out = model(filled, filled, keep, keep) if hasattr(model, "encode") else model(filled, keep)
        gradients.append(torch.autograd.grad(out[keep].square().sum(), list(model.parameters())))
    for a, b in zip(*gradients, strict=True):
        assert a.isfinite().all()
        close(a, b, 1e-11)


@pytest.mark.parametrize("kind", MODELS)
def test_a_fully_padded_row_is_finite_and_leaves_the_others_alone(kind: str) -> None:
    model, ids, keep = MODELS[kind](), tokens(), layout("left").clone()
    keep[1] = False
    out = model(ids, ids, keep, keep) if hasattr(model, "encode") else model(ids, keep)
    assert out.isfinite().all()
    gradients = torch.autograd.grad(out.sum(), list(model.parameters()))
    assert all(gradient.isfinite().all() for gradient in gradients)
    others = torch.tensor([0, 2])
    apart = [ids[others], ids[others], keep[others], keep[others]] if hasattr(model, "encode") else None
    close(out[others], model(*apart) if apart else model(ids[others], keep[others]))


@pytest.mark.parametrize("kind", MODELS)
def test_models_survive_copying_and_saving(kind: str) -> None:
    model, ids = MODELS[kind](), tokens()
    wanted = answer(model, ids)
    twin = copy.deepcopy(model)
    close(answer(twin, ids), wanted)
    fresh, file = MODELS[kind](), io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    assert not torch.allclose(answer(fresh, ids), wanted)
    fresh.load_state_dict(torch.load(file, weights_only=True))
    close(answer(fresh, ids), wanted)
    nn.init.zeros_(next(model.parameters()))
    close(answer(twin, ids), wanted)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("build", [*MODELS.values(), *(lambda s=s: decoder_only(s) for s in SCHEMES)])
@torch.no_grad()
def test_half_precision_stays_finite_and_near(build: Callable[[], nn.Module], dtype: torch.dtype) -> None:
    model, ids = build(), tokens(3, 20)
    wanted = answer(model, ids)
    out = answer(model.to(dtype), ids)
    assert out.dtype == dtype
    assert out.isfinite().all()
    assert (out.double() - wanted).std() < 0.03 * wanted.std()


def test_an_encoder_takes_segments_and_positions() -> None:
    positions, head = core.Learned(32, D), core.ClassHead(core.ClsPool(), D, 4)
    encoder = core.Encoder([encoder_layer()], positions=positions)
    model = shaken(core.EncoderOnly(embedding=core.TokenEmbedding(V, D, n_segments=2), encoder=encoder, head=head))
    ids, segments, pos = tokens(), torch.randint(0, 2, (3, 8)), torch.arange(8) + 3
    x, _ = model.embedding(ids, segments=segments)
    wanted = head(encoder.layers[0](x + positions.weight[3:11]))
    close(model(ids, segments=segments, positions=pos), wanted)


def test_a_head_can_be_asked_about_some_tokens_alone() -> None:
    model, ids, keep = encoder_only(head=core.VocabularyHead(D, V)), tokens(), layout("right")
    places = torch.tensor([3, 8, 3, 17, 0])
    everything, some = model(ids, keep), model(ids, keep, places=places)
    close(some, everything.flatten(0, 1)[places])
    weight = torch.randn_like(some)
    slopes = [
        torch.autograd.grad((found * weight).sum(), list(model.parameters()))
        for found in (some, everything.flatten(0, 1)[places])
    ]
    for a, b in zip(*slopes, strict=True):
        close(a, b, 1e-11)


def test_images_and_series_go_through_the_same_encoder() -> None:
    encoder = core.Encoder([encoder_layer()], positions=core.Learned(20, D))
    image = core.EncoderOnly(
        embedding=core.PatchEmbedding(D, image_size=8, patch_size=4),
        encoder=encoder,
        head=core.ClassHead(core.ClsPool(), D, 10),
    )
    assert image(torch.randn(2, 3, 8, 8)).shape == (2, 10)
    series = core.EncoderOnly(
        embedding=core.SeriesEmbedding(D), encoder=encoder, head=core.ForecastHead(core.ConcatPool(9), 9 * D, horizon=5)
    ).double()
    days = torch.randn(2, 30, 1, dtype=torch.float64)
    observed = torch.arange(30) < torch.tensor([[30], [13]])
    out = series(days, observed)
    assert out.shape == (2, 5, 1)
    close(series(days.masked_fill(~observed[..., None], torch.nan), observed), out)


def test_a_source_of_patches_is_read_under_its_own_padding() -> None:
    """Padding of days becomes padding of patches, in the encoder and in cross-attention alike."""
    whole = encoder_decoder()
    model = core.EncoderDecoder(
        source_embedding=core.SeriesEmbedding(D),
        encoder=whole.encoder,
        target_embedding=whole.target_embedding,
        decoder=whole.decoder,
        head=whole.head,
    ).double()
    series, target = torch.randn(2, 15, 1, dtype=torch.float64), torch.tensor([[1, 2], [3, 4]])
    together = model(series, target, core.padding([15, 9]))
    close(together[1:], model(series[1:, :9], target[1:]))


def test_a_decoder_that_reads_a_memory_says_so_when_there_is_none() -> None:
    with pytest.raises(ValueError, match="need a memory; pass one"):
        encoder_decoder().decoder(torch.zeros(1, 2, D, dtype=torch.float64))


def test_padding_before_a_sentence_takes_no_learned_position() -> None:
    """Learned positions end at 32: thirty real tokens behind ten of padding fit."""
    model, ids = decoder_only("learned"), tokens(1, 40)
    keep = torch.arange(40)[None] >= 10
    close(model(ids, keep)[:, 10:], model(ids[:, 10:]))
    with pytest.raises(ValueError, match="learned positions must be from 0 to 31"):
        model(ids, torch.arange(40)[None] >= 2)
