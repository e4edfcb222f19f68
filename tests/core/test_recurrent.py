"""The recurrent models against torch's own GRUs and the formulas of additive attention."""

from __future__ import annotations

from typing import cast

import pytest
import torch
from tiny_models import D, close, layout, recurrent, shaken, tokens
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from heedful.core import AdditiveAttention, NoAttention, RecurrentEncoder
from heedful.core.recurrent import final_states

NAMES = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


@pytest.mark.parametrize("n_layers", [1, 2])
def test_the_encoder_is_torchs_bidirectional_gru_over_packed_rows(n_layers: int) -> None:
    ours = shaken(RecurrentEncoder(D, n_layers=n_layers))
    theirs = nn.GRU(D, D, n_layers, batch_first=True, bidirectional=True).double()
    weights: dict[str, Tensor] = {}
    for index in range(n_layers):
        for suffix, gru in (("", ours.forwards[index]), ("_reverse", ours.backwards[index])):
            weights |= {f"{name}_l{index}{suffix}": getattr(gru, f"{name}_l0") for name in NAMES}
    theirs.load_state_dict(weights)
    x, lengths = torch.randn(3, 8, D, dtype=torch.float64), [5, 8, 2]
    packed, last = theirs(pack_padded_sequence(x, torch.tensor(lengths), batch_first=True, enforce_sorted=False))
    wanted, _ = pad_packed_sequence(packed, batch_first=True)
    real = layout("right")
    got = ours(x, real)
    close(got, wanted)
    close(final_states(got, real), torch.cat([last[-2], last[-1]], dim=-1))
    whole = ours(x)
    close(whole, theirs(x)[0])
    close(final_states(whole, None), torch.cat(list(theirs(x)[1][-2:]), dim=-1))


def test_additive_attention_is_bahdanaus_formula() -> None:
    reader = shaken(AdditiveAttention(D, 6, 5))
    query, memory, real = torch.randn(3, 2, D).double(), torch.randn(3, 8, 6).double(), layout("left")
    prepared = reader.prepare(memory, real)
    weights = reader.weights(query, prepared, real)
    for b in range(3):
        for t in range(2):
            projected = reader.q_proj.weight @ query[b, t] + reader.q_proj.bias
            scores = [
                reader.score.weight[0] @ torch.tanh(projected + reader.k_proj.weight @ h) for h in memory[b, real[b]]
            ]
            wanted = torch.stack(scores).softmax(0)
            close(weights[b, t, real[b]], wanted)
            assert not weights[b, t, ~real[b]].any()
            close(reader(query, prepared, real)[b, t], wanted @ memory[b, real[b]])
    nothing = torch.zeros(3, 8, dtype=torch.bool)
    assert not reader(query, prepared, nothing).any()


def test_without_attention_every_step_is_given_the_same_vector() -> None:
    reader, memory, real = NoAttention(), torch.randn(3, 8, 6).double(), layout("right")
    context = reader(torch.randn(3, 4, D), reader.prepare(memory, real), real)
    for row, length in enumerate([5, 8, 2]):
        close(context[row], torch.cat([memory[row, length - 1, :3], memory[row, 0, 3:]]).expand(4, -1))
    with pytest.raises(ValueError, match="no attention, so it has no attention weights"):
        reader.weights(torch.randn(3, 4, D), (), real)


@pytest.mark.parametrize("attention", [True, False])
@torch.no_grad()
def test_a_sentence_is_decoded_by_the_gru_equations(attention: bool) -> None:
    model, source, target = recurrent(attention=attention), tokens(1, 5), tokens(1, 4)
    memory, decoder, reader = model.encode(source), model.decoder, cast("AdditiveAttention", model.decoder.attention)
    cell, ends = decoder.cell, torch.cat([memory[0, -1, :D], memory[0, 0, D:]])
    state, logits = torch.tanh(decoder.start(ends)), []
    for x in model.target_embedding(target)[0][0]:
        context = ends
        if attention:
            scores = reader.score(torch.tanh(reader.q_proj(state) + reader.k_proj(memory[0])))
            context = (scores.softmax(0) * memory[0]).sum(0)
        given = cell.weight_ih @ torch.cat([x, context]) + cell.bias_ih
        held = cell.weight_hh @ state + cell.bias_hh
        (gr, gz, gn), (hr, hz, hn) = given.chunk(3), held.chunk(3)
        reset, update = torch.sigmoid(gr + hr), torch.sigmoid(gz + hz)
        state = (1 - update) * torch.tanh(gn + reset * hn) + update * state
        logits.append(model.head(torch.tanh(decoder.out_proj(torch.cat([state, context, x])))))
    close(model(source, target)[0], torch.stack(logits))


@pytest.mark.parametrize("attention", [True, False])
@pytest.mark.parametrize("where", ["no padding", "left", "prompts of 4, 2 and 3 that go on"])
@pytest.mark.parametrize("stops", [[1, 2, 3, 4, 5, 6, 7, 8], [4, 5, 8]], ids=["one by one", "chunks"])
@torch.no_grad()
def test_teacher_forcing_equals_step_by_step(stops: list[int], where: str, attention: bool) -> None:
    model, source, target = recurrent(attention=attention), tokens(), tokens()
    source_keep, keep = layout("left"), layout(where)
    memory, cache = model.encode(source, source_keep), model.new_cache()
    pieces = []
    for start, stop in zip([0, *stops], stops, strict=False):
        pieces.append(model.decode(target[:, start:stop], memory, source_keep, cache, keep=keep[:, :stop]))
    close(torch.cat(pieces, dim=1)[keep], model(source, target, source_keep, keep)[keep])
    assert cache.length == 8


@pytest.mark.parametrize("attention", [True, False])
@torch.no_grad()
def test_beams_share_a_memory_and_may_be_reordered_and_selected(attention: bool) -> None:
    model = recurrent(attention=attention)
    source_keep = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    memory, ids = model.encode(tokens(2, 5), source_keep), tokens(6, 7)
    copies, copied_keep = memory.repeat_interleave(3, dim=0), source_keep.repeat_interleave(3, dim=0)
    cache = model.new_cache()
    close(model.decode(ids[:, :3], memory, source_keep, cache), model.decode(ids[:, :3], copies, copied_keep))
    within = torch.tensor([2, 2, 0, 4, 3, 3])
    cache.reorder(within)
    ids[:, :3] = ids[within, :3]
    second = model.decode(ids[:, 3:5], memory, source_keep, cache)
    close(second, model.decode(ids[:, :5], copies, copied_keep)[:, 3:])
    cache.select(torch.tensor([3, 4, 5]), torch.tensor([1]))
    third = model.decode(ids[3:, 5:], memory[1:], source_keep[1:], cache)
    close(third, model.decode(ids[3:], copies[3:], copied_keep[3:])[:, 5:])


@torch.no_grad()
def test_the_weights_of_each_step_can_be_had() -> None:
    model, source_keep = recurrent(), layout("left")
    memory, target = model.encode(tokens(), source_keep), tokens(3, 4)
    x, _ = model.target_embedding(target)
    weights = model.decoder.weights(x, memory, memory_keep=source_keep)
    assert weights.shape == (3, 1, 4, 8)
    close(weights.sum(-1), torch.ones(3, 1, 4, dtype=torch.float64))
    assert not weights.masked_select(~source_keep[:, None, None]).any()
    state = torch.tanh(model.decoder.start(final_states(memory, source_keep)))
    reader = model.decoder.attention
    close(weights[:, :, 0], reader.weights(state[:, None], reader.prepare(memory, source_keep), source_keep))
