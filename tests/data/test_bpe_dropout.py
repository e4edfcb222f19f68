"""Merges passed over by a seed: nothing is lost, nothing is invented, and the shares are those asked for."""

from __future__ import annotations

import random
import unicodedata
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from heedful.data import bpe_dropout
from heedful.data.bpe_dropout import BpeDropout
from heedful.data.tokenizer import BYTE, FIRST_PIECE, Tokenizer
from heedful.errors import ConfigError, DataError

TEXTS = [
    "고양이가 쥐를 잡았다. 쥐가 고양이를 보았다!",
    "The cat caught the mouse, and the mouse saw the cat; the others slept.",
    "Die Straßenbahn fährt über die große Brücke, und die Kinder schauen hinüber.",
    "파일 12개를 저장할 수 없습니다: 'report (2).txt'",
    "12 files could not be saved — try again?! 🙂",
    "고양이는 파일을 잡을 수 없습니다.",
]
TOKENIZER = Tokenizer.train(TEXTS * 4 + ["뷁 👩‍👧 naïve"], vocab_size=600)
SAME = BpeDropout(TOKENIZER, 0.0)
SMALLEST = BpeDropout(TOKENIZER, 1.0)
OFTEN = BpeDropout(TOKENIZER, 0.3, seed=5)
WORDS = [word for text in TEXTS for word in text.split()]
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
SENTENCE = st.lists(st.sampled_from([*WORDS, "👩‍👧", "뷁", "ß", "the" * 40, "\n"]), max_size=12).map(" ".join)


@given(ANY_TEXT | SENTENCE)
@example("")
@example(" ")
@example("  the  cat ")
@example("<pad> <s></s> <0x41>")
@example("👩‍👩‍👧‍👦 🇰🇷 e\u0301 \u0301")
@example(unicodedata.normalize("NFD", "고양이가 쥐를 잡았다"))
@example("고양이" * 50)
def test_where_nothing_is_dropped_the_tokeniser_is_the_same(text: str) -> None:
    assert SAME.encode(text, 0) == TOKENIZER.encode(text)


@given(ANY_TEXT | SENTENCE, st.integers(0, 2**40))
def test_nothing_is_lost_and_every_piece_can_be_reached(text: str, key: int) -> None:
    for sampler in (SAME, OFTEN, SMALLEST):
        ids = sampler.encode(text, key)
        assert TOKENIZER.decode(ids) == unicodedata.normalize("NFC", text)
        assert all(index >= BYTE for index in ids)


@given(SENTENCE)
def test_where_all_is_dropped_the_pieces_are_characters(text: str) -> None:
    pieces = TOKENIZER.pieces(SMALLEST.encode(text, 3))
    assert pieces == list(f" {text}" if text else "")


@given(SENTENCE, st.integers(0, 2**70), st.integers(0, 2**70))
@settings(max_examples=30)
def test_seed_and_key_alone_decide(text: str, seed: int, key: int) -> None:
    first = BpeDropout(TOKENIZER, 0.4, seed)
    ids = first.encode(text, (key, 7))
    OFTEN.encode("what was encoded before does not matter", 0)
    first.encode(text, key)
    assert first.encode(text, (key, 7)) == ids == BpeDropout(TOKENIZER, 0.4, seed).encode(text, (key, 7))


def test_keys_and_seeds_differ() -> None:
    text = TEXTS[1]
    by_key = {tuple(OFTEN.encode(text, key)) for key in range(20)}
    by_seed = {tuple(BpeDropout(TOKENIZER, 0.3, seed).encode(text, 0)) for seed in range(20)}
    assert len(by_key) == len(by_seed) == 20
    assert OFTEN.encode(text, (1, 2)) != OFTEN.encode(text, (2, 1))


def step_by_step(word: str, p: float, draw: random.Random) -> tuple[int, ...]:
    """The method as it is described: of all merges that are possible, each is dropped with p; the first one left is
    made; and again, until none is left."""
    ranks = {pair: rank for rank, pair in enumerate(TOKENIZER._merges)}
    parts = list(word)
    while True:
        possible = [(ranks[pair], place) for place, pair in enumerate(pairwise(parts)) if pair in ranks]
        left = [one for one in possible if draw.random() >= p]
        if not left:
            return tuple(TOKENIZER._pieces.index(part) for part in parts)
        _, place = min(left)
        parts[place : place + 2] = [parts[place] + parts[place + 1]]


@pytest.mark.parametrize("p", [0.1, 0.5])
def test_the_shares_are_those_of_the_method(p: float) -> None:
    """Two words at a time: what is left over after the first is used for the second."""
    n, draw, sampler = 4000, random.Random(0), BpeDropout(TOKENIZER, p, seed=1)
    words = [" mouse", " caught"]
    text = "".join(words).removeprefix(" ")
    ours = Counter(tuple(sampler.encode(text, key)) for key in range(n))
    theirs = Counter(sum((step_by_step(word, p, draw) for word in words), ()) for _ in range(n))
    assert len(ours) > 5
    for ids in ours.keys() | theirs.keys():
        spread = (2 * max(ours[ids], theirs[ids])) ** 0.5
        assert abs(ours[ids] - theirs[ids]) < 5 * spread + 3


def test_what_is_remembered_is_bounded_and_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bpe_dropout, "REMEMBERED", 3)
    forgetful = BpeDropout(TOKENIZER, 0.3, seed=5)
    for key, text in enumerate(TEXTS):
        assert forgetful.encode(text, key) == OFTEN.encode(text, key)
        assert len(forgetful._words) <= 3


def test_rare_characters_stay_in_bytes() -> None:
    for key in range(5):
        ids = OFTEN.encode("뷁", key)
        assert len(ids) == 4
        assert all(BYTE <= index < FIRST_PIECE for index in ids[1:])


@pytest.mark.parametrize(("p", "seed"), [(-0.1, 0), (1.1, 0), (float("nan"), 0), (0.1, -1)])
def test_what_cannot_be_is_refused(p: float, seed: int) -> None:
    with pytest.raises(ConfigError, match=r"BPE dropout: (p is the share|seed must be 0)"):
        BpeDropout(TOKENIZER, p, seed)


def test_half_a_surrogate_pair_is_refused_as_the_tokeniser_does() -> None:
    with pytest.raises(DataError, match="half a surrogate pair"):
        SAME.encode("a\ud83d", 0)
