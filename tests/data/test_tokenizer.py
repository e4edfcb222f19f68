"""Nothing is lost between text and ids, and no text can spell a special id."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
import tokenizers
import transformers
from hypothesis import example, given
from hypothesis import strategies as st

from heedful.data.tokenizer import BYTE, FIRST_PIECE, Tokenizer, TokenizerConfig
from heedful.errors import ConfigError, DataError

CORPUS = [
    "고양이가 쥐를 잡았다. 쥐가 고양이를 보았다!",
    "The cat caught the mouse, and the mouse saw the cat.",
    "파일 12개를 저장할 수 없습니다: 'report (2).txt'",
    "12 files could not be saved.",
    "고양이는 파일을 잡을 수 없습니다.",
] * 4 + ["뷁"]
TOKENIZER = Tokenizer.train(CORPUS, vocab_size=420)
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
ANY_IDS = st.lists(st.integers(0, TOKENIZER.vocab_size - 1), max_size=30)


@given(ANY_TEXT)
@example("")
@example(" ")
@example("  the  cat ")
@example("\t고양이\n\r\n\v\f\x00\x1c\x85\u2028\u3000끝")
@example(unicodedata.normalize("NFD", "고양이가 쥐를 잡았다"))
@example("👩‍👩‍👧‍👦 🇰🇷 e\u0301 \u0301")
@example("▁the▁cat")
@example("<pad> <s></s> <0x41> <0xEA>")
@example("a\U00011935\U00011930")  # composes in newer versions of Unicode only
@example("a\u0301\u0327\u0316" * 3)
def test_nothing_is_lost_but_the_normal_form(text: str) -> None:
    assert TOKENIZER.decode(TOKENIZER.encode(text)) == unicodedata.normalize("NFC", text)


@given(st.lists(ANY_TEXT, max_size=5))
def test_a_batch_is_encoded_as_each_alone(texts: list[str]) -> None:
    assert TOKENIZER.encode_batch(texts) == [TOKENIZER.encode(text) for text in texts]


def merged(word: str) -> list[str]:
    """Byte-pair encoding written out: join the pair learnt first, until no pair is known."""
    ranks = {pair: rank for rank, pair in enumerate(TOKENIZER._merges)}
    parts = list(word)
    while known := [(ranks[pair], at) for at, pair in enumerate(pairwise(parts)) if pair in ranks]:
        _, at = min(known)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return parts


@pytest.mark.parametrize("text", ["고양이가 파일을 보았다", "the mouse caught cats", "수를 없이 쥐는 seam"])
def test_words_are_merged_as_the_written_out_algorithm_does(text: str) -> None:
    assert TOKENIZER.pieces(TOKENIZER.encode(text)) == [part for word in text.split() for part in merged(f" {word}")]


def test_the_first_merge_is_the_most_frequent_pair() -> None:
    words = [f" {word}" for text in CORPUS for word in re.findall(r"[^\W\d_]+", text)]
    pairs = Counter(pair for word in words for pair in pairwise(word))
    first = TOKENIZER._merges[0]
    assert pairs[first] == max(pairs.values())


@pytest.mark.parametrize("text", ["<pad>", "<s>", "</s>", "<0x41>", "a <s>b</s> <0x00><pad>"])
def test_text_that_spells_a_special_token_is_plain_text(text: str) -> None:
    tokenizer = Tokenizer.train(["<pad> <s> </s> <0x41> <0x00> a b"] * 9, vocab_size=400)
    ids = tokenizer.encode(text)
    assert all(index >= FIRST_PIECE for index in ids)
    assert tokenizer.decode(ids) == text
    assert tokenizer.readable(ids)[-1].text == text[-1]


def test_the_ids_begin_with_pad_start_end_and_the_bytes() -> None:
    assert (TOKENIZER.pad, TOKENIZER.start, TOKENIZER.end) == (0, 1, 2)
    assert TOKENIZER.pieces([0, 1, 2]) == ["<pad>", "<s>", "</s>"]
    assert TOKENIZER.decode([BYTE + byte for byte in "뷁".encode()]) == "뷁"


def test_a_word_is_the_same_at_the_start_as_inside() -> None:
    single = TOKENIZER.encode("고양이가")
    assert TOKENIZER.pieces(single) == [" 고양이가"]
    assert TOKENIZER.encode("쥐를 고양이가")[-1:] == single


def test_a_mark_and_a_digit_stand_alone() -> None:
    tokenizer = Tokenizer.train(["2024년 2024! -- (a) don't '...'"] * 50, vocab_size=1000)
    bare = [piece.removeprefix(" ") for piece in tokenizer._pieces[FIRST_PIECE:]]
    assert "don" in bare
    assert all(piece.isalpha() for piece in bare if len(piece) > 1)
    assert tokenizer.pieces(tokenizer.encode("2024!! don't")) == [" 2", "0", "2", "4", "!", "!", " don", "'", "t"]


def test_characters_seen_often_enough_have_a_piece_and_others_are_spelt_in_bytes() -> None:
    often = [chr(0xAC00 + 7 * index) for index in range(300)]
    seldom = [chr(0xAC01 + 7 * index) for index in range(300)]
    tokenizer = Tokenizer.train([*often, *often, *often, *seldom, *seldom], vocab_size=2000, min_frequency=3)
    assert all(max(tokenizer.encode(character)) >= FIRST_PIECE for character in often)
    for character in seldom:
        assert tokenizer.encode(character)[-3:] == [BYTE + byte for byte in character.encode()]


def test_rare_characters_cost_no_places() -> None:
    rare = [f"{CORPUS[index % 5]} {chr(0x4E00 + index)}" for index in range(800)]
    with_rare, without = (Tokenizer.train(texts, vocab_size=330) for texts in (rare, [text[:-2] for text in rare]))
    assert with_rare.vocab_size == 330
    assert with_rare._pieces == without._pieces


def test_a_small_corpus_gives_a_small_vocabulary() -> None:
    assert Tokenizer.train([]).vocab_size == FIRST_PIECE + 1  # the space
    tokenizer = Tokenizer.train(["ab ab"])
    assert tokenizer._pieces[FIRST_PIECE:] == [" ", "a", "b", " a", " ab"]


def test_a_vocabulary_too_small_for_the_alphabet_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"no room for the 27 characters .* at least 286"):
        Tokenizer.train(["abcdefghijklmnopqrstuvwxyz"] * 2, vocab_size=270)
    with pytest.raises(ConfigError, match="at least 260"):
        TokenizerConfig(vocab_size=259)


def test_the_same_texts_give_the_same_vocabulary_in_any_process() -> None:
    script = (
        "import json, sys; from heedful.data.tokenizer import Tokenizer;"
        "print(Tokenizer.train(iter(json.load(sys.stdin)), vocab_size=420).fingerprint)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=json.dumps(CORPUS),
        env={**os.environ, "TOKENIZERS_PARALLELISM": "true", "PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == TOKENIZER.fingerprint
    assert done.stderr == ""
    assert Tokenizer.train(CORPUS, vocab_size=TOKENIZER.vocab_size - 1).fingerprint != TOKENIZER.fingerprint


def test_an_error_while_reading_the_texts_comes_through() -> None:
    def texts() -> Iterator[str]:
        yield "fine"
        raise DataError("line 2")

    with pytest.raises(DataError, match="line 2"):
        Tokenizer.train(texts())


@pytest.mark.parametrize("call", [TOKENIZER.encode, lambda text: TOKENIZER.encode_batch(["fine", text])])
def test_half_a_surrogate_pair_is_refused_by_its_place(call: object) -> None:
    with pytest.raises(DataError, match=r"U\+D83D, is at character 3"):
        call("고양이\ud83d")  # type: ignore[operator]


@given(ANY_IDS)
def test_shown_pieces_cover_the_ids_and_spell_their_text(ids: list[int]) -> None:
    pieces = TOKENIZER.readable(ids)
    assert [at for _, start, stop in pieces for at in range(start, stop)] == list(range(len(ids)))
    spelled = b"".join(
        bytes([index - BYTE]) if index < FIRST_PIECE else TOKENIZER._pieces[index].encode()
        for index in ids
        if index >= BYTE
    )
    expected = spelled.decode("utf-8", errors="replace").removeprefix(" ")
    if all(index >= BYTE for index in ids):  # a special id between two bytes keeps them apart
        piece = re.compile("\ufffd+")
        assert piece.sub("\ufffd", TOKENIZER.decode(ids)) == piece.sub("\ufffd", expected)


def test_a_character_spelt_in_bytes_is_shown_whole() -> None:
    ids = TOKENIZER.encode("쥐를 뷁뷁")
    assert TOKENIZER.readable(ids)[-2:] == [("뷁", len(ids) - 6, len(ids) - 3), ("뷁", len(ids) - 3, len(ids))]
    assert TOKENIZER.pieces(ids[:-1])[-2:] == ["\ufffd", "\ufffd"]
    assert TOKENIZER.decode([1, *ids[:-1], 2]) == "쥐를 뷁\ufffd\ufffd"


@given(ANY_TEXT)
@example("고양이가 뷁을  잡았다 .\t끝")
def test_each_token_knows_its_word(text: str) -> None:
    ids = [1, *TOKENIZER.encode(text), 2, 0]
    words = TOKENIZER.word_of(ids)
    spelled: dict[int, str] = {}
    for pieces, start, stop in TOKENIZER.readable(ids):
        assert len(set(words[start:stop])) == 1
        spelled[words[start]] = spelled.get(words[start], "") + pieces
    assert [words[0], *words[-2:]] == [-1, -1, -1]
    assert spelled.pop(-1).replace("<s>", "").replace("</s>", "").replace("<pad>", "").strip() == ""
    assert [spelled[word].strip() for word in sorted(spelled)] == unicodedata.normalize("NFC", text).split()


@pytest.mark.parametrize("wrong", [-1, TOKENIZER.vocab_size])
def test_an_id_without_a_piece_is_refused(wrong: int) -> None:
    with pytest.raises(DataError, match=rf"id {wrong}; allowed: 0 to {TOKENIZER.vocab_size - 1}"):
        TOKENIZER.decode([5, wrong])


@pytest.mark.parametrize("unit", ["가", "the ", " ", "1", "a\u0327\u0301", "뷁"])
def test_a_megabyte_is_encoded_and_decoded(unit: str) -> None:
    text = unit * (1_000_000 // len(unit.encode()))
    assert TOKENIZER.decode(TOKENIZER.encode(text)) == unicodedata.normalize("NFC", text)


def test_a_long_pile_of_accents_out_of_order_is_sorted_fast() -> None:
    pile = "a" + "\u0300\u0327" * 200_000  # Python's own normalisation would take minutes
    assert TOKENIZER.decode(TOKENIZER.encode(pile)).count("\u0327") == 200_000


class TestFile:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        TOKENIZER.save(tmp_path / "tokenizer.json")
        return tmp_path / "tokenizer.json"

    def test_what_was_saved_is_loaded(self, path: Path) -> None:
        loaded = Tokenizer.load(path)
        assert loaded.fingerprint == TOKENIZER.fingerprint
        assert loaded.encode(CORPUS[0]) == TOKENIZER.encode(CORPUS[0])
        assert [entry.name for entry in path.parent.iterdir()] == [path.name]

    @pytest.mark.parametrize(
        "text", [*CORPUS[:5], "뷁 ▁ 👩‍👩‍👧 <s> <pad> <0x41>", "  two  spaces ", unicodedata.normalize("NFD", "고양이")]
    )
    def test_other_libraries_read_it(self, path: Path, text: str) -> None:
        ids = TOKENIZER.encode(text)
        library = tokenizers.Tokenizer.from_file(str(path))
        other = transformers.PreTrainedTokenizerFast(tokenizer_file=str(path))
        assert library.encode(text).ids == ids
        assert other.encode(text) == ids
        assert library.decode(ids) == other.decode(ids) == TOKENIZER.decode(ids)

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ('"byte_fallback": true', '"byte_fallback": false'),
            ('"type": "NFC"', '"type": "NFKC"'),
            ('"<s>": 1', '"<start>": 1'),
            ('"<0xFF>": 258', '"<0xFF>": 2147483648'),  # the library would count that far
            ('"dropout": null', '"dropout": 0.1'),
            ('"added_tokens": []', '"added_tokens": [{"id": 1, "content": "<s>", "special": true}]'),
            ('"model"', '"modle"'),
            ("{", ""),
        ],
    )
    def test_a_changed_file_is_refused(self, path: Path, old: str, new: str) -> None:
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
        with pytest.raises(DataError, match=r"tokenizer\.json: not a tokenizer"):
            Tokenizer.load(path)

    def test_a_missing_file_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match=r"none\.json: the tokenizer cannot be read"):
            Tokenizer.load(tmp_path / "none.json")
