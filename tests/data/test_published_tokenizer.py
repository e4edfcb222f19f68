"""A tokenizer.json of any make: the ids and texts that transformers has, and pieces that a person can read."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Regex, Tokenizer, pre_tokenizers
from transformers import PreTrainedTokenizerFast

import published_folders as published
from heedful.data.published_tokenizer import PublishedTokenizer, tokenizer_of
from heedful.data.tokenizer import Tokenizer as SentenceTokenizer
from heedful.errors import ConfigError, DataError
from heedful.files import read_limited

MAKES = {
    "wordpiece": published.wordpiece,
    "byte_level": published.byte_level,
    "unigram": published.unigram,
    "byte_fallback": published.byte_fallback,
}


def published_tokenizer(fast: Tokenizer) -> PublishedTokenizer:
    return PublishedTokenizer(fast.to_str())


@pytest.mark.parametrize("make", MAKES)
def test_ids_and_texts_are_those_of_transformers(make: str) -> None:
    tokenizer, reference = published_tokenizer(MAKES[make]()), PreTrainedTokenizerFast(tokenizer_object=MAKES[make]())
    for text in published.PAGE + published.TEXTS + published.TYPED:
        ids = tokenizer.encode(text)
        assert ids == reference(text)["input_ids"]
        assert tokenizer.decode(ids) == reference.decode(ids, skip_special_tokens=True)


@pytest.mark.parametrize("make", MAKES)
def test_pieces_stand_for_all_ids_and_are_whole_characters(make: str) -> None:
    tokenizer = published_tokenizer(MAKES[make]())
    for text in published.PAGE:
        ids = tokenizer.encode(text)
        pieces = tokenizer.readable(ids)
        assert [place for piece in pieces for place in range(piece.start, piece.stop)] == list(range(len(ids)))
        decoded = "".join(piece.text for piece in pieces if tokenizer.decode(ids[piece.start : piece.stop]))
        assert "\ufffd" not in decoded
        assert "".join(decoded.split()) == "".join(tokenizer.decode(ids).split())


@pytest.mark.parametrize("make", ["byte_level", "byte_fallback"])
def test_hangul_that_is_spelt_in_bytes_is_shown_whole(make: str) -> None:
    tokenizer = published_tokenizer(MAKES[make]())
    ids = tokenizer.encode("cat뷁뛟🙂!")
    assert len(ids) > 10
    decoded = [piece.text for piece in tokenizer.readable(ids)]
    assert decoded[decoded.index("뷁") :][:4] == ["뷁", "뛟", "🙂", "!"]


def test_a_character_that_was_cut_off_spoils_no_other() -> None:
    """The library alone writes a row of bytes as so many marks where the last character is not whole."""
    tokenizer = published_tokenizer(published.byte_fallback())
    ids = tokenizer.encode("a나책")[:-1]
    assert tokenizer.decode(ids) == "a나\ufffd"
    assert [piece.text for piece in tokenizer.readable(ids)] == ["<s>", "a", "나", "\ufffd", "<0xB1>"]


def test_a_piece_has_the_space_that_separates_it_and_no_marks() -> None:
    tokenizer = published_tokenizer(published.wordpiece())
    ids = tokenizer.encode("the cats, plays")
    assert [piece.text for piece in tokenizer.readable(ids)][:3] == ["[CLS]", "the", " cat"]
    assert "#" not in "".join(piece.text for piece in tokenizer.readable(ids))


def test_what_a_model_writes_without_having_a_token_for_it_is_left_out_and_named() -> None:
    """Tables are often larger than vocabularies."""
    for make in MAKES.values():
        tokenizer = published_tokenizer(make())
        ids = tokenizer.encode("cat")
        strange = tokenizer.largest + 3
        assert tokenizer.decode([*ids, strange]) == tokenizer.decode(ids)
        assert tokenizer.readable([*ids, strange])[-1] == (f"<{strange}>", len(ids), len(ids) + 1)
        with pytest.raises(DataError, match=f"no token with the id {strange}"):
            tokenizer.token_of(strange)


def test_a_file_that_cuts_and_pads_is_not_obeyed_and_kept_as_it_is(tmp_path: Path) -> None:
    fast = Tokenizer.from_str(published.wordpiece().to_str())
    fast.enable_truncation(4)
    fast.enable_padding(length=40)
    fast.save(str(tmp_path / "tokenizer.json"))
    tokenizer = PublishedTokenizer.load(tmp_path / "tokenizer.json")
    for text in published.PAGE:
        assert tokenizer.encode(text) == published.wordpiece().encode(text).ids
    tokenizer.save(tmp_path / "new" / "tokenizer.json")
    assert (tmp_path / "new" / "tokenizer.json").read_bytes() == (tmp_path / "tokenizer.json").read_bytes()


def test_where_code_lies_is_not_taken_along(tmp_path: Path) -> None:
    published.wordpiece().save(str(tmp_path / "tokenizer.json"))
    content = {"mask_token": {"content": "[MASK]"}, "pad_token": "[PAD]", "eos_token": "not there"}
    code = {"auto_map": {"AutoTokenizer": ["evil.Code", None]}, "name_or_path": "/home/somebody"}
    published.write(tmp_path / "tokenizer_config.json", content | code)
    tokenizer = PublishedTokenizer.load(tmp_path / "tokenizer.json")
    assert tokenizer.roles == content
    assert (tokenizer.role("mask_token"), tokenizer.role("pad_token")) == ("[MASK]", "[PAD]")
    assert (tokenizer.role("eos_token"), tokenizer.role("bos_token")) == (None, None)
    assert tokenizer.save(tmp_path / "new" / "tokenizer.json") == ["tokenizer.json", "tokenizer_config.json"]
    assert json.loads((tmp_path / "new" / "tokenizer_config.json").read_text()) == content


def test_what_is_no_tokenizer_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "tokenizer.json"
    with pytest.raises(DataError, match="No such file"):
        PublishedTokenizer.load(path)
    for content in (b"", b"{}", b"\xff", b"[" * 100_000, b'{"model": {"type": "WordLevel"}}'):
        path.write_bytes(content)
        with pytest.raises(DataError, match="not a tokenizer file"):
            PublishedTokenizer.load(path)
    published.wordpiece().save(str(path))
    (tmp_path / "tokenizer_config.json").write_text("[]")
    with pytest.raises(ConfigError, match=r"tokenizer_config\.json"):
        PublishedTokenizer.load(path)
    (tmp_path / "tokenizer_config.json").unlink()
    monkeypatch.setattr("heedful.data.published_tokenizer.read_limited", partial(read_limited, max_bytes=10))
    with pytest.raises(DataError, match=r"tokenizer\.json: it has more than the 10 bytes"):
        PublishedTokenizer.load(path)


def test_half_a_surrogate_pair_is_refused() -> None:
    tokenizer = published_tokenizer(published.byte_level())
    for pair in (("a\ud800", None), ("a", "b\udfff")):
        with pytest.raises(DataError, match=r"half a surrogate pair, U\+D\w{3}, is at character 1"):
            tokenizer.encode_pair(*pair)


def test_ends_are_put_around_a_text_once() -> None:
    tokenizer = published_tokenizer(published.unigram())  # it adds </s> of its own
    bare = published.unigram().encode("The cat", add_special_tokens=False).ids
    assert tokenizer.surrounded((), (1,)).encode("The cat") == [*bare, 1]
    assert tokenizer.surrounded((0,), (1,)).encode("The cat") == [0, *bare, 1]
    assert tokenizer.surrounded((), ()).encode("The cat") == bare
    with pytest.raises(DataError, match="no token with the id 9999"):
        tokenizer.surrounded((9999,), ())


@pytest.mark.parametrize(("unit", "text"), [("words", "b a zz b"), ("characters", "bazb")])
def test_a_bare_list_of_tokens(unit: str, text: str) -> None:
    tokenizer = tokenizer_of(["<unk>", "a", "b", "b"], "<unk>", unit)  # type: ignore[arg-type]
    assert tokenizer.encode(text) == [2, 1, 0, 2]
    assert tokenizer.decode([2, 1, 2]) == ("b a b" if unit == "words" else "bab")


def test_a_text_on_which_the_library_panics_is_refused() -> None:
    fast = published.byte_level()
    fast = Tokenizer.from_str(fast.to_str())
    fast.pre_tokenizer = pre_tokenizers.Split(Regex("(a+)+b"), "isolated")
    tokenizer = published_tokenizer(fast)
    for call in (tokenizer.encode, lambda text: tokenizer.encode_windows(text, max_tokens=8, stride=2)):
        with pytest.raises(DataError, match="the tokenizer cannot process this text"):
            call("a" * 40)
    assert tokenizer.encode("The cat")


def test_a_word_without_a_token_is_refused_where_none_stands_for_unknown_ones() -> None:
    values = json.loads(published.wordpiece().to_str())
    del values["model"]["vocab"][values["model"]["unk_token"]]
    tokenizer = PublishedTokenizer(json.dumps(values))
    with pytest.raises(DataError, match=r"the tokenizer cannot encode this text: .*\[UNK\]"):
        tokenizer.encode("쥐")


def test_a_part_on_which_the_library_panics_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    readers: tuple[tuple[Any, str], ...] = (
        (PublishedTokenizer, published.wordpiece().to_str()),
        (SentenceTokenizer, SentenceTokenizer.train(["a b c"] * 9).to_json()),
    )
    for reader, text in readers:
        path.write_text(text)
        reader.load(path)
        path.write_text(json.dumps(json.loads(text) | {"normalizer": {"type": "Precompiled"}}))
        with pytest.raises(DataError, match=r"tokenizer\.json: not a tokenizer file.*: a part of it is not valid"):
            reader.load(path)


@pytest.mark.parametrize("part", ["normalizer", "decoder"])
def test_replacements_that_expand_a_text_without_bounds_are_refused(part: str, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    values = json.loads(published.wordpiece().to_str())

    def rules(n: int, kind: str) -> None:
        replace = {"type": "Replace", "pattern": {kind: "a"}, "content": "a" * 10}
        name = "normalizers" if part == "normalizer" else "decoders"
        path.write_text(json.dumps({**values, part: {"type": "Sequence", name: [replace] * n}}))

    for kind in ("String", "Regex"):
        rules(9, kind)
        with pytest.raises(DataError, match=f"the replacements of its {part} make up to 1,000,000,000 characters"):
            PublishedTokenizer.load(path)
        rules(2, kind)
        PublishedTokenizer.load(path)
