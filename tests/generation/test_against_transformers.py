"""Published models of random weights: our whole engine against transformers' generate, token for token.

Ours has all inputs in one batch, with a cache; theirs has each alone, so that nothing depends on how it pads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import pytest
import torch

pytest.importorskip("transformers")
from heedful.families import read_published
from heedful.generation import GenerationConfig, Hypothesis, generate
from published_pairs import files, reference
from published_readers import V

LIMIT, BEAM = 9, 4
FIRST = 0  # the start of every translator here, and never written
INPUTS = [[5, 9, 30, 7], [4, 4, 8, 21, 17, 11, 3, 33], [12], [3, 29, 2, 12, 13]]
NAMES = ["marian", "bart", "t5", "gpt2"]
UNTIED = ["t5 v1.1", "gpt2 untied"]
Answer = tuple[tuple[int, ...], bool]


class Twins(NamedTuple):
    """A model of transformers, the same here, and the token that ends an answer."""

    theirs: Any
    ours: Any
    end: int

    def answers(self, **settings: Any) -> list[list[Hypothesis]]:
        given: dict[str, Any] = {"max_new_tokens": LIMIT, "suppress_tokens": [FIRST]} | settings
        return generate(self.ours, INPUTS, **{"start": FIRST, "end": self.end, **given})

    def wanted(self, ids: Sequence[int], **settings: Any) -> list[Answer]:
        """Their answers to one input: tokens up to the end, and whether there is one."""
        beams = settings.setdefault("num_beams", 1)
        if beams > 1:
            settings["early_stopping"] = "never"
        settings = {"max_new_tokens": LIMIT, "suppress_tokens": [FIRST]} | settings
        own = {"eos_token_id": self.end, "pad_token_id": FIRST, "do_sample": False, "num_return_sequences": beams}
        own["use_cache"] = False  # theirs counts a T5's layers wrong where its stacks differ
        prompt = torch.tensor([list(ids)])
        if self.theirs.config.is_encoder_decoder:
            own["decoder_start_token_id"] = FIRST
        out = self.theirs.generate(prompt, attention_mask=torch.ones_like(prompt), **own | settings)
        written = out[:, 1:] if self.theirs.config.is_encoder_decoder else out[:, len(ids) :]
        return [self._read(row) for row in written.tolist()]

    def _read(self, row: list[int]) -> Answer:
        return (tuple(row[: row.index(self.end)]), True) if self.end in row else (tuple(row), False)


@cache
def twins(name: str) -> Twins:
    """Matrices larger than usual and biases smaller, so that what was read and written matters.

    The end is a token that the beams write often, though not at once.
    """
    theirs = reference(name, torch.float64)
    for key, parameter in theirs.named_parameters():  # each once, however many names it has
        if "bias" in key:
            parameter.data.mul_(0.2)
        elif parameter.dim() > 1 and not any(part in key for part in ("embed", "shared", "wte", "wpe", "lm_head")):
            parameter.data.mul_(3.0)
    defaults = theirs.generation_config
    defaults.bad_words_ids = defaults.forced_eos_token_id = defaults.forced_bos_token_id = None
    config, generation = files(theirs)
    ours: Any = read_published(config, {k: tensor.clone() for k, tensor in theirs.state_dict().items()}, generation)[0]
    endless = Twins(theirs, ours.double().eval(), FIRST).answers(beam=BEAM, n_best=BEAM)
    seen = Counter(token for answers in endless for answer in answers for token in set(answer.tokens[2:]))
    first = {answer.tokens[0] for answers in endless for answer in answers}
    return Twins(theirs, ours, next(token for token, _ in seen.most_common() if token not in first))


def found(answers: Sequence[Hypothesis]) -> list[Answer]:
    return [(answer.tokens, answer.finished) for answer in answers]


@pytest.mark.parametrize("name", NAMES)
def test_greedy_writes_what_theirs_writes(name: str) -> None:
    """The more the end is boosted, the earlier it comes, though never before the least length."""
    pair, ended, seen = twins(name), set(), set()
    for shortest, boost in ((0, 0.0), (0, 2.0), (2, 4.0), (3, 8.0)):
        boosts = {"logit_bias": {pair.end: boost}} if boost else {}
        theirs = {"sequence_bias": {(pair.end,): boost}} if boost else {}
        for ids, ours in zip(INPUTS, pair.answers(min_new_tokens=shortest, **boosts), strict=True):
            wanted = pair.wanted(ids, min_new_tokens=shortest, **theirs)
            assert found(ours) == wanted
            ended.add(wanted[0][1])
            seen.add(wanted[0])
    assert ended == {True, False}
    assert len(seen) > 3  # the input matters


@pytest.mark.parametrize("alpha", [-0.5, 0.0, 1.0, 2.0])
@pytest.mark.parametrize("name", [*NAMES, *UNTIED])
def test_every_answer_of_a_beam_is_theirs(name: str, alpha: float) -> None:
    pair, ended = twins(name), set()
    shortest = 3 if alpha < 0 else 0
    ours = pair.answers(beam=BEAM, n_best=BEAM, length_penalty=alpha, min_new_tokens=shortest)
    for ids, answers in zip(INPUTS, ours, strict=True):
        wanted = pair.wanted(ids, num_beams=BEAM, length_penalty=alpha, min_new_tokens=shortest)
        assert found(answers) == wanted
        ended |= {finished for _, finished in wanted}
    assert (alpha <= 1) in ended  # some end; where long answers are favoured, some reach the limit


@pytest.mark.parametrize("beam", [1, BEAM])
@pytest.mark.parametrize("name", NAMES)
def test_several_tokens_may_end_an_answer(name: str, beam: int) -> None:
    """Here as there, the end is left out of the answer whichever it is."""
    pair = twins(name)
    written = Counter(token for (best, *_) in pair.answers(beam=beam) for token in set(best.tokens[1:]))
    ends = [pair.end, *(token for token, _ in written.most_common(2) if token != pair.end)]
    assert len(ends) > 1
    ended = set()
    for ids, (best, *_) in zip(INPUTS, pair.answers(beam=beam, end=ends), strict=True):
        tokens, _ = pair.wanted(ids, num_beams=beam, eos_token_id=ends)[0]
        cut = next((place for place, token in enumerate(tokens) if token in ends), None)
        assert best.tokens == tokens[:cut]
        assert best.finished == (cut is not None or len(tokens) < LIMIT)
        ended.add(best.finished)
    assert True in ended


@pytest.mark.parametrize("beam", [1, BEAM])
@pytest.mark.parametrize("name", NAMES)
def test_no_run_of_tokens_comes_twice(name: str, beam: int) -> None:
    """A prompt counts as written, here as there."""
    pair = twins(name)
    plain = pair.answers(beam=beam)
    for size in (1, 2):
        ours = pair.answers(beam=beam, n_best=beam, no_repeat_ngram_size=size)
        for ids, answers in zip(INPUTS, ours, strict=True):
            assert found(answers) == pair.wanted(ids, num_beams=beam, no_repeat_ngram_size=size)
        if size == 1:
            assert any(answers[0].tokens != before.tokens for answers, (before,) in zip(ours, plain, strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_repetition_costs_what_it_costs_there(name: str) -> None:
    pair = twins(name)
    changed = False
    for penalty in (0.7, 2.0):
        ours = pair.answers(repetition_penalty=penalty)
        for ids, answers, before in zip(INPUTS, ours, pair.answers(), strict=True):
            assert found(answers) == pair.wanted(ids, repetition_penalty=penalty)
            changed |= answers[0].tokens != before[0].tokens
    assert changed


@pytest.mark.parametrize("beam", [1, BEAM])
@pytest.mark.parametrize("name", NAMES)
def test_bans_and_boosts_are_theirs(name: str, beam: int) -> None:
    """With a beam, theirs leaves a boosted token's share to no other; so boosts are compared where it does not show."""
    pair = twins(name)
    common = Counter(token for (answer,) in pair.answers() for token in answer.tokens)
    banned = [FIRST, *(token for token, _ in common.most_common(3) if token != pair.end)]
    for ids, answers in zip(INPUTS, pair.answers(beam=beam, n_best=beam, suppress_tokens=banned), strict=True):
        assert found(answers) == pair.wanted(ids, num_beams=beam, suppress_tokens=banned)
    if beam == 1:
        boosts = {token: 2.0 * (-1) ** token for token in range(V) if token != FIRST}
        theirs = {(token,): boost for token, boost in boosts.items()}
        for ids, answers in zip(INPUTS, pair.answers(logit_bias=boosts), strict=True):
            assert found(answers) == pair.wanted(ids, sequence_bias=theirs)


@pytest.mark.parametrize("beam", [1, BEAM])
@pytest.mark.parametrize("name", [name for name in NAMES if "gpt2" not in name])
def test_a_forced_first_token_is_theirs(name: str, beam: int) -> None:
    """Theirs gives it a logprob of 0, ours its own; without a length penalty the order is the same."""
    pair = twins(name)
    for token in (7, 30):
        config = GenerationConfig(beam=beam, n_best=beam, length_penalty=0.0)
        for ids, answers in zip(INPUTS, pair.answers(config=config, prefixes=[[token]] * len(INPUTS)), strict=True):
            more: dict[str, Any] = {"length_penalty": 0.0} if beam > 1 else {}
            assert found(answers) == pair.wanted(ids, num_beams=beam, forced_bos_token_id=token, **more)
