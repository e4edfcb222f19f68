"""Characters and pieces: nothing is lost, nothing is added, nothing special can be written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.data import corpus
from heedful.data.corpus import Corpus, Passage
from heedful.data.published_tokenizer import PublishedTokenizer
from heedful.data.text_tokenizers import (
    EncoderTokenizerConfig,
    encode,
    encode_passages,
    end_of,
    learn_tokenizer,
    of_characters,
    of_pieces,
)
from heedful.data.tokenizer import nfc
from heedful.errors import DataError

TEXT = "To be, or not to be:\n  that is the question.\n나는 물을 마셔요.\n\n\tBE! " * 8
PIECES = of_pieces([TEXT], vocab_size=400, min_frequency=2)
LETTERS = of_characters(TEXT, end=True)


def test_ids_of_characters_go_by_code_point_as_others_number_them() -> None:
    tokenizer = of_characters("hello\n", end=False)
    assert tokenizer.vocab_size == 5
    assert tokenizer.encode("hell\n") == [sorted("\nehlo").index(letter) for letter in "hell\n"]
    assert end_of(tokenizer) is None
    assert end_of(of_characters("hello\n", end=True)) == 5


@given(st.text())
def test_any_text_comes_back_from_pieces(text: str) -> None:
    assert PIECES.decode(encode(PIECES, text)) == nfc(text)


@given(st.text(alphabet=sorted(set(TEXT))))
def test_known_characters_come_back(text: str) -> None:
    ids = encode(LETTERS, text)
    assert LETTERS.decode(ids) == text
    assert len(ids) == len(text)


@pytest.mark.parametrize("tokenizer", [PIECES, LETTERS], ids=["pieces", "characters"])
def test_a_file_gives_the_same_ids(tokenizer: PublishedTokenizer, tmp_path: Path) -> None:
    tokenizer.save(tmp_path / "tokenizer.json")
    again = PublishedTokenizer.load(tmp_path / "tokenizer.json")
    assert again.encode(TEXT) == tokenizer.encode(TEXT)
    assert again.fingerprint == tokenizer.fingerprint


def test_text_is_the_same_tokens_at_its_beginning_as_inside_a_line() -> None:
    """Else a text that is to be continued would look like none that was learned from."""
    for tokenizer in (PIECES, LETTERS):
        ids = tokenizer.encode("To be,\nor not")
        assert ids == [*tokenizer.encode("To be,\n"), *tokenizer.encode("or not")]
        assert tokenizer.continuation(tokenizer.encode("To be"), tokenizer.encode(" or")) == " or"


def test_special_tokens_cannot_be_written() -> None:
    end = end_of(PIECES)
    assert end not in PIECES.encode("</s><s><pad>")
    assert PIECES.decode(PIECES.encode("</s>")) == "</s>"
    known = of_characters("</s>", end=True)
    assert end_of(known) not in known.encode("</s>")


@pytest.mark.parametrize("text", ["naïve", "to 漢 be"])
def test_a_character_never_seen_is_refused_by_its_name(text: str) -> None:
    strange = "ï" if "ï" in text else "漢"
    with pytest.raises(DataError, match=rf"the character '{strange}' \(U\+{ord(strange):04X}\) was not in the text"):
        encode(LETTERS, text)


def test_taken_apart_characters_are_the_same() -> None:
    for tokenizer in (PIECES, LETTERS):
        assert encode(tokenizer, "\u1102\u1161") == encode(tokenizer, "나")


@pytest.mark.parametrize("tokenizer", [PIECES, LETTERS], ids=["pieces", "characters"])
def test_passages_give_the_ids_of_the_whole(
    tokenizer: PublishedTokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.txt"
    path.write_text(TEXT.replace("\n", " ", 12), encoding="utf-8")
    whole = tokenizer.encode(path.read_text("utf-8"))
    for size in (5, 40, 300):
        monkeypatch.setattr(corpus, "PASSAGE", size)
        parts = [ids for _, ids in encode_passages(tokenizer, Corpus((path,)))]
        assert len(parts) > 1
        assert np.concatenate(parts).tolist() == whole


def test_a_passage_with_an_unknown_character_says_where() -> None:
    passage = Passage("to be\nor ñot", "a.txt", 7, begins=True)
    with pytest.raises(DataError, match=r"a\.txt:8: the character 'ñ'"):
        list(encode_passages(LETTERS, [passage]))


@pytest.mark.parametrize("kind", ["bpe", "words", "characters", "bytes"])
def test_a_tokenizer_tells_its_kind(kind: Any) -> None:
    assert learn_tokenizer(["turn left jump twice"] * 30, EncoderTokenizerConfig(kind=kind)).kind == kind


def test_a_tokenizer_of_single_characters_tells_its_kind() -> None:
    assert of_characters("abc", end=True).kind == "characters"
