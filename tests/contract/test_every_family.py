"""One contract for every family that translates; a new family joins by one line."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor

import heedful
from heedful.errors import RecordingError

SMALL = {"vocab_size": 30, "d_model": 24}
TRANSLATORS: dict[str, dict[str, Any]] = {
    "original": {"family": "original", "n_heads": 4, "d_ff": 40, "n_encoder_layers": 2, "n_decoder_layers": 2, **SMALL},
    "recurrent": {"family": "recurrent", "n_encoder_layers": 2, **SMALL},
    "recurrent-plain": {"family": "recurrent", "attention": "none", **SMALL},
}
every_translator = pytest.mark.parametrize("name", TRANSLATORS)


def made(name: str) -> Any:
    torch.manual_seed(0)
    return heedful.build(TRANSLATORS[name]).double().eval()


def batch() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    source, target = torch.randint(0, 30, (3, 6)), torch.randint(0, 30, (3, 5))
    source_keep = torch.arange(6) < torch.tensor([[6], [2], [4]])
    target_keep = torch.arange(5) < torch.tensor([[3], [5], [4]])
    return source, target, source_keep, target_keep


@every_translator
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_logits_have_the_shape_and_dtype_of_the_model(name: str, dtype: torch.dtype) -> None:
    logits = made(name).to(dtype)(*batch())
    assert logits.shape == (3, 5, 30)
    assert logits.dtype == dtype
    assert logits.isfinite().all()


@every_translator
def test_forward_is_encode_then_decode(name: str) -> None:
    model = made(name)
    source, target, source_keep, target_keep = batch()
    memory = model.encode(source, source_keep)
    assert torch.equal(
        model.decode(target, memory, source_keep, keep=target_keep), model(source, target, source_keep, target_keep)
    )


@every_translator
def test_a_row_of_a_batch_is_the_row_alone(name: str) -> None:
    model = made(name)
    source, target, source_keep, target_keep = batch()
    together = model(source, target, source_keep, target_keep)
    for row in range(3):
        s, t = int(source_keep[row].sum()), int(target_keep[row].sum())
        alone = model(source[row : row + 1, :s], target[row : row + 1, :t])
        torch.testing.assert_close(together[row, :t], alone[0], rtol=0, atol=1e-12)


@every_translator
@torch.no_grad()
def test_step_by_step_is_all_at_once_also_after_reordering(name: str) -> None:
    model = made(name)
    source, target, source_keep, _ = batch()
    memory = model.encode(source, source_keep)
    whole = model.decode(target, memory, source_keep)
    cache = model.new_cache()
    steps = [model.decode(target[:, :2], memory, source_keep, cache)]
    steps += [model.decode(target[:, t : t + 1], memory, source_keep, cache) for t in range(2, 5)]
    assert cache.length == 5
    torch.testing.assert_close(torch.cat(steps, dim=1), whole, rtol=0, atol=1e-12)

    rows = torch.tensor([2, 0])
    cache.select(rows)
    again = model.decode(target[rows, :1], memory[rows], source_keep[rows], cache)
    longer = torch.cat([target[rows], target[rows, :1]], dim=1)
    torch.testing.assert_close(
        again[:, 0], model.decode(longer, memory[rows], source_keep[rows])[:, -1], rtol=0, atol=1e-12
    )


@every_translator
@torch.no_grad()
def test_beams_share_the_memory_of_their_sentence(name: str) -> None:
    model = made(name)
    source, _, source_keep, _ = batch()
    beams = torch.randint(0, 30, (6, 4))  # two beams for each of three sentences
    memory = model.encode(source, source_keep)
    folded = model.decode(beams, memory, source_keep)
    copied = model.decode(beams, memory.repeat_interleave(2, 0), source_keep.repeat_interleave(2, 0))
    torch.testing.assert_close(folded, copied, rtol=0, atol=1e-12)


@every_translator
def test_a_copy_and_a_reloaded_state_give_the_same(name: str) -> None:
    model = made(name)
    inputs = batch()
    expected = model(*inputs)
    assert torch.equal(copy.deepcopy(model)(*inputs), expected)
    fresh = heedful.build(TRANSLATORS[name]).double().eval()
    fresh.load_state_dict(model.state_dict())
    assert torch.equal(fresh(*inputs), expected)


@every_translator
def test_looking_changes_nothing_and_shows_distributions_over_real_tokens(name: str) -> None:
    model = made(name)
    source, target, source_keep, target_keep = batch()
    expected = model(source, target, source_keep, target_keep)
    if TRANSLATORS[name].get("attention") == "none":
        with pytest.raises(RecordingError, match="no attention"), heedful.record(model):
            pass
        return
    with heedful.record(model) as recording:
        seen = model(source, target, source_keep, target_keep)
    assert torch.equal(seen, expected)
    for weights in recording.cross.values():
        assert weights.shape[0] == 3
        assert weights.shape[2:] == (5, 6)
        torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights[..., 0]))
        assert not weights.masked_select(~source_keep[:, None, None]).any()
