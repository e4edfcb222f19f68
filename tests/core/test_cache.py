"""A cached step against every row read alone, whole and uncached, with only its real tokens."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from tiny_models import (
    LAYOUTS,
    SCHEMES,
    D,
    close,
    decoder_only,
    encoder_decoder,
    encoder_layer,
    layout,
    tokens,
)
from torch import Tensor

from heedful.core import DecoderOnly, FixedKVCache, KVCache, causal, padding, window
from heedful.core.cache import Cache

CAPACITY = 12


def build(scheme: str) -> DecoderOnly:
    return decoder_only("rotary", mask=causal() & window(3)) if scheme == "window" else decoder_only(scheme)


def cover(keep: Tensor, seen: int, cache: Cache) -> Tensor:
    """`keep` for all keys so far; a fixed cache wants its whole capacity covered."""
    so_far = keep[:, :seen]
    if isinstance(cache, KVCache):
        return so_far
    return torch.nn.functional.pad(so_far, (0, CAPACITY - seen))


def cached(model: DecoderOnly, ids: Tensor, keep: Tensor, cache: Cache, stops: list[int]) -> Tensor:
    """The logits of ids given in pieces that end at `stops`."""
    pieces = [
        model(ids[:, start:stop], None if keep.all() else cover(keep, stop, cache), cache=cache)
        for start, stop in pairwise([0, *stops])
    ]
    return torch.cat(pieces, dim=1)


def same_as_alone(model: DecoderOnly, ids: Tensor, keep: Tensor, logits: Tensor) -> None:
    for row in range(ids.shape[0]):
        close(logits[row, keep[row]], model(ids[row : row + 1, keep[row]])[0])


@pytest.mark.parametrize("capacity", [None, CAPACITY], ids=["growing", "fixed"])
@pytest.mark.parametrize("stops", [[8], [1, 2, 3, 4, 5, 6, 7, 8], [4, 5, 8]], ids=["at once", "one by one", "chunks"])
@pytest.mark.parametrize("where", LAYOUTS)
@pytest.mark.parametrize("scheme", [*SCHEMES, "window"])
@torch.no_grad()
def test_cached_equals_alone(scheme: str, where: str, stops: list[int], capacity: int | None) -> None:
    model = build(scheme)
    ids, keep = tokens(), layout(where)
    logits = cached(model, ids, keep, model.new_cache(capacity), stops)
    assert logits.isfinite().all()
    same_as_alone(model, ids, keep, logits)


@pytest.mark.parametrize("where", LAYOUTS)
@pytest.mark.parametrize("scheme", [*SCHEMES, "window"])
@torch.no_grad()
def test_uncached_equals_alone(scheme: str, where: str) -> None:
    model = build(scheme)
    ids, keep = tokens(), layout(where)
    same_as_alone(model, ids, keep, model(ids, keep))


@pytest.mark.parametrize("capacity", [None, CAPACITY], ids=["growing", "fixed"])
@pytest.mark.parametrize("where", ["no padding", "left", "prompts of 4, 2 and 3 that go on"])
@pytest.mark.parametrize("scheme", ["learned", "rotary", "relative"])
@torch.no_grad()
def test_rows_may_be_reordered_and_selected(scheme: str, where: str, capacity: int | None) -> None:
    model, keep = decoder_only(scheme), layout(where)
    ids, more = tokens(), tokens()
    cache = model.new_cache(capacity)
    cached(model, ids[:, :4], keep, cache, [4])

    beams = torch.tensor([2, 0, 2])
    cache.reorder(beams)
    ids, keep = torch.cat([ids[beams, :4], more[:, 4:6]], dim=1), keep[beams]
    logits = model(ids[:, 4:], None if keep.all() else cover(keep, 6, cache), cache=cache)
    whole = model(ids, keep[:, :6])
    close(logits, whole[:, 4:])

    left = torch.tensor([2, 1])
    cache.select(left)
    ids, keep = torch.cat([ids[left], more[left, 6:]], dim=1), keep[left]
    logits = model(ids[:, 6:], None if keep.all() else cover(keep, 8, cache), cache=cache)
    close(logits, model(ids, keep)[:, 6:])


@pytest.mark.parametrize("capacity", [None, CAPACITY], ids=["growing", "fixed"])
@torch.no_grad()
def test_one_row_of_keep_for_all_survives_reordering(capacity: int | None) -> None:
    model, ids = decoder_only("learned"), tokens()
    cache = model.new_cache(capacity)
    keep = torch.tensor([[False, True, True, True, True]])
    model(ids[:, :4], padding(cover(keep, 4, cache)), cache=cache)
    cache.reorder(torch.tensor([2, 1, 0]))
    logits = model(ids[:, 4:5], padding(cover(keep, 5, cache)), cache=cache)
    close(logits[:, 0], model(torch.cat([ids.flip(0)[:, 1:4], ids[:, 4:5]], dim=1))[:, -1])


@pytest.mark.parametrize(
    "learning", ["", "layers.0.self_attention.sublayer.q_proj"], ids=["all learn", "only queries learn"]
)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_gradients_pass_through_a_cached_prefix(scheme: str, learning: str) -> None:
    model, ids, keep = decoder_only(scheme), tokens(), layout("left")
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(learning in name)
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    cached_loss = cached(model, ids, keep, model.new_cache(), [4, 6, 8])[:, 6:].square().sum()
    plain_loss = model(ids, keep)[:, 6:].square().sum()
    for a, b in zip(*(torch.autograd.grad(loss, parameters) for loss in (cached_loss, plain_loss)), strict=True):
        close(a, b, 1e-10)


@pytest.mark.parametrize("capacity", [None, CAPACITY], ids=["growing", "fixed"])
@torch.no_grad()
def test_a_padded_cache_must_be_told_its_padding_again(capacity: int | None) -> None:
    model, ids, keep = decoder_only(), tokens(), layout("left")
    cache = model.new_cache(capacity)
    model(ids[:, :4], cover(keep, 4, cache), cache=cache)
    with pytest.raises(ValueError, match="pass it at every step, for all keys, old and new"):
        model(ids[:, 4:5], cache=cache)
    with pytest.raises(ValueError, match=r"covers 1 keys, but there are \d+; with a cache, keep covers all keys"):
        model(ids[:, 4:5], keep[:, 4:5], cache=cache)


@torch.no_grad()
def test_a_full_cache_says_so_and_a_reset_one_starts_anew() -> None:
    model, ids, keep = decoder_only("learned"), tokens(), layout("left")
    cache = FixedKVCache(8)
    model(ids, keep, cache=cache)
    with pytest.raises(ValueError, match="capacity of 8 tokens and holds 8; 1 more do not fit"):
        model(ids[:, :1], keep, cache=cache)
    cache.reset()
    assert int(cache.length) == 0
    close(model(ids[:, :5], cache=cache), model(ids[:, :5]))
    with pytest.raises(ValueError, match="must be at least 1, not 0"):
        FixedKVCache(0)


@torch.no_grad()
def test_a_fixed_cache_never_moves() -> None:
    model, ids, keep = decoder_only(), tokens(), layout("left")
    cache = FixedKVCache(CAPACITY)

    def addresses() -> list[int]:
        buffers = [part for pair in cache.layers.values() for part in pair]
        return [buffer.data_ptr() for buffer in (*buffers, cache._positions, cache.length) if buffer is not None]

    model(ids[:, :3], cover(keep, 3, cache), cache=cache)
    before = addresses()
    cache.reorder(torch.tensor([1, 1, 0]))
    model(ids[:, 3:4], cover(keep, 4, cache), cache=cache)
    assert addresses() == before
    cache.reset()
    model(ids, cover(keep, 8, cache), cache=cache)
    assert addresses() == before


def test_a_fixed_cache_refuses_gradients_in_words() -> None:
    with pytest.raises(ValueError, match=r"under torch.no_grad\(\)"):
        decoder_only()(tokens(), cache=FixedKVCache(CAPACITY))


@torch.no_grad()
def test_a_growing_cache_copies_what_it_holds_only_now_and_then() -> None:
    model, ids, cache = decoder_only(), tokens(1, 32), KVCache()
    places = []
    for step in range(32):
        model(ids[:, step : step + 1], cache=cache)
        places.append(cache.layers[0][0].data_ptr())
    assert sum(a != b for a, b in pairwise(places)) <= 5


@pytest.mark.parametrize("capacity", [None, CAPACITY], ids=["growing", "fixed"])
@pytest.mark.parametrize("scheme", SCHEMES)
@torch.no_grad()
def test_beams_of_a_sentence_read_one_memory(scheme: str, capacity: int | None) -> None:
    model = encoder_decoder(scheme)
    source, source_keep = tokens(2, 5), torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    memory, ids = model.encode(source, source_keep), tokens(6, 7)
    copies, copied_keep = memory.repeat_interleave(3, dim=0), source_keep.repeat_interleave(3, dim=0)
    close(model.decode(ids, memory, source_keep), model.decode(ids, copies, copied_keep))

    cache = model.new_cache(capacity)
    first = model.decode(ids[:, :3], memory, source_keep, cache)
    close(first, model.decode(ids[:, :3], copies, copied_keep))
    within = torch.tensor([2, 2, 0, 4, 3, 3])  # beams change places within their sentence
    cache.reorder(within)
    ids[:, :3] = ids[within, :3]
    spoiled = torch.full_like(memory, torch.nan)  # its keys and values were computed once, at the first step
    second = model.decode(ids[:, 3:5], spoiled, source_keep, cache)
    close(second, model.decode(ids[:, :5], copies, copied_keep)[:, 3:])

    cache.select(torch.tensor([3, 4, 5]), torch.tensor([1]))  # the first sentence is done
    third = model.decode(ids[3:, 5:], memory[1:], source_keep[1:], cache)
    close(third, model.decode(ids[3:], copies[3:], copied_keep[3:])[:, 5:])


@torch.no_grad()
def test_explicit_positions_are_remembered() -> None:
    pos = torch.tensor([[0, 1, 5, 6, 7], [2, 3, 4, 9, 10]])
    for scheme in SCHEMES:
        model, ids = decoder_only(scheme), tokens(2, 5)
        cache = model.new_cache()
        steps = [model(ids[:, part], cache=cache, positions=pos[:, part]) for part in (slice(0, 3), slice(3, 5))]
        close(torch.cat(steps, dim=1), model(ids, positions=pos))


@torch.no_grad()
def test_a_step_that_fails_leaves_nothing_behind() -> None:
    model, ids, memory = encoder_decoder(), tokens(), torch.randn(3, 5, D, dtype=torch.float64)
    for cache in (model.new_cache(), model.new_cache(10)):
        broken = model.decoder.layers[1].register_forward_pre_hook(_fail)
        with pytest.raises(RuntimeError, match="on purpose"):
            model.decode(ids, -memory, None, cache)
        broken.remove()
        with pytest.raises(ValueError, match="positions are integers"):
            model.decode(ids, memory, None, cache, positions=torch.zeros(1))
        close(model.decode(ids, memory, None, cache), model.decode(ids, memory))


def _fail(*_: object) -> None:
    raise RuntimeError("on purpose")


@torch.no_grad()
def test_a_reset_cache_forgets_even_nan() -> None:
    model, ids = decoder_only(), tokens()
    cache = model.new_cache(8)
    assert isinstance(cache, FixedKVCache)
    model(ids, cache=cache)
    for pair in cache.layers.values():
        pair[0].fill_(torch.nan)
    cache.reset()
    close(model(ids[:, :3], cache=cache), model(ids[:, :3]))
    with pytest.raises(ValueError, match="has 3 rows, but the input has 2"):
        model(ids[:2, :3], cache=cache)


@torch.no_grad()
def test_beams_must_say_which_sentences_they_keep() -> None:
    model, memory = encoder_decoder(), torch.randn(3, 5, D, dtype=torch.float64)
    cache, ids = model.new_cache(), tokens(6, 4)
    model.decode(ids[:, :3], memory, None, cache)
    rows = torch.tensor([0, 1])
    with pytest.raises(ValueError, match="6 rows share 3 rows of memory; pass memory_rows"):
        cache.select(rows)
    cache.select(rows, memory_rows=torch.tensor([0]))
    close(model.decode(ids[rows, 3:], memory[:1], None, cache), model.decode(ids[rows], memory[:1])[:, 3:])


def test_what_a_cache_cannot_know_is_refused() -> None:
    model, ids = decoder_only("rotary"), tokens()
    cache = KVCache()
    model(ids[:, :3], cache=cache, positions=torch.arange(10, 13))
    with pytest.raises(ValueError, match="positions were passed at an earlier step"):
        model(ids[:, 3:], cache=cache)
    with pytest.raises(ValueError, match="needs a causal mask"), torch.no_grad():
        decoder_only(mask=window(3))(ids, cache=FixedKVCache(8))
    with pytest.raises(ValueError, match="pass it to the Decoder"):
        encoder_layer()(torch.zeros(1, 2, D), cache=KVCache())


@pytest.mark.parametrize("capacity", [None, 8])
@pytest.mark.parametrize("scheme", SCHEMES)
@torch.no_grad()
def test_rows_that_stay_go_on_though_the_padded_ones_left(scheme: str, capacity: int | None) -> None:
    model, ids, keep = decoder_only(scheme), tokens(), layout("left")
    cache = model.new_cache(capacity)

    def covered(rows: Tensor, seen: int) -> Tensor:
        return rows if capacity else rows[:, :seen]

    model(ids[:, :5], covered(keep, 5), cache=cache)
    full = torch.tensor([0])  # the one row without padding
    cache.select(full)
    close(model(ids[full, 5:], covered(keep[full], 8), cache=cache), model(ids[full])[:, 5:])


@pytest.mark.parametrize("capacity", [None, 10])
@torch.no_grad()
def test_a_retry_reads_neither_padded_memory_nor_what_a_failed_step_wrote(capacity: int | None) -> None:
    model, ids = encoder_decoder("relative"), tokens()
    real = torch.arange(5) < torch.tensor([[5], [3], [2]])
    memory = torch.randn(3, 5, D, dtype=torch.float64).masked_fill(~real[..., None], torch.nan)
    cache = model.new_cache(capacity)
    broken = model.decoder.layers[1].register_forward_pre_hook(_fail)
    for positions in (None, torch.arange(50, 58)):
        with pytest.raises(RuntimeError, match="on purpose"):
            model.decode(ids, memory, real, cache, positions=positions)
    broken.remove()
    wanted = model.decode(ids, memory, real)
    assert wanted.isfinite().all()
    close(model.decode(ids[:, :3], memory, real, cache), wanted[:, :3])
    positions = torch.arange(3, 8)
    close(model.decode(ids[:, 3:], memory, real, cache, positions=positions), wanted[:, 3:])


@torch.no_grad()
def test_a_reset_cache_knows_no_old_positions() -> None:
    model, ids, cache = decoder_only("relative"), tokens(), FixedKVCache(8)
    model(ids, cache=cache, positions=torch.arange(50, 58, dtype=torch.int32))
    cache.reset()
    model(ids[:, :3], cache=cache)
    close(model(ids[:, 3:], cache=cache, positions=torch.arange(3, 8)), model(ids)[:, 3:])


def test_a_cache_filled_for_inference_can_go_on_without() -> None:
    model, ids, cache = decoder_only(), tokens(), KVCache()
    with torch.inference_mode():
        model(ids[:, :3], cache=cache)
        model(ids[:, 3:5], cache=cache)
    with torch.no_grad():
        close(model(ids[:, 5:], cache=cache), model(ids)[:, 5:])
