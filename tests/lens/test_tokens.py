"""Tokens are shown whole, one for one, whatever the tokenizer makes of a text."""

from __future__ import annotations

import unicodedata

import pytest
from tokenizers import Tokenizer as FastTokenizer
from tokenizers import decoders, models, normalizers, pre_tokenizers

import published_folders as published
from heedful.data.published_tokenizer import PublishedTokenizer
from heedful.data.text_tokenizers import of_characters
from heedful.data.tokenizer import BYTE, END, START, Tokenizer
from heedful.lens.tokens import PART, TokenDict, token_text, tokens_of, visible

MAKES = {
    "wordpiece": published.wordpiece,
    "byte_level": published.byte_level,
    "unigram": published.unigram,
    "byte_fallback": published.byte_fallback,
}


def heedful_tokenizer() -> Tokenizer:
    return Tokenizer.train([*published.PAGE, *published.PAGE], vocab_size=400)


def named(make: str) -> Tokenizer | PublishedTokenizer:
    return heedful_tokenizer() if make == "heedful_tokenizer" else PublishedTokenizer(MAKES[make]().to_str())


def composed(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def read(tokens: list[TokenDict]) -> str:
    """What they show, together, without the signs for parts of a letter."""
    return "".join(token["text"].removesuffix(PART) if token["part"] else token["text"] for token in tokens)


@pytest.mark.parametrize("make", ["heedful_tokenizer", *MAKES])
def test_there_is_a_token_for_each_id_and_a_word_reads_as_in_the_text(make: str) -> None:
    """The wordpieces take syllables apart into letters, the byte levels into bytes."""
    tokenizer = named(make)
    for text in published.PAGE:
        ids = tokenizer.encode(text)
        tokens = tokens_of(tokenizer, ids)
        assert len(tokens) == len(ids)
        word_numbers = composed(tokenizer.decode(ids)).split()
        assert [read([token for token in tokens if token["word"] == n]) for n in range(len(word_numbers) + 1)] == [
            *word_numbers,
            "",
        ]
        blank = [token for token in tokens if token["piece"] in ("▁", "Ġ")]
        assert all((token["text"], token["special"], token["word"]) == ("␣", False, None) for token in blank)
        assert all(token["special"] or token in blank for token in tokens if token["word"] is None)
        if isinstance(tokenizer, Tokenizer):
            assert [-1 if token["word"] is None else token["word"] for token in tokens] == tokenizer.word_of(ids)


@pytest.mark.parametrize("make", ["heedful_tokenizer", "byte_level", "byte_fallback"])
def test_a_character_in_several_bytes_is_shown_once_by_the_last(make: str) -> None:
    tokenizer = named(make)
    tokens = tokens_of(tokenizer, tokenizer.encode("cat 뷁🙂"))
    texts = [token["text"] for token in tokens]
    for character in "뷁🙂":
        last = texts.index(character)
        of_character = tokens[last + 1 - len(character.encode()) : last + 1]
        assert [token["text"] for token in of_character[:-1]] == [PART] * (len(of_character) - 1)
        assert [token["part"] for token in of_character] == [True] * (len(of_character) - 1) + [False]
        assert {token["word"] for token in of_character} == {1}
        assert len({token["piece"] for token in of_character}) > 1


@pytest.mark.parametrize("make", ["heedful_tokenizer", *MAKES])
def test_what_each_token_adds_is_the_text_together(make: str) -> None:
    """Spaces and all; of a character in several tokens, the last one is it."""
    tokenizer = named(make)
    rare = [] if make in ("wordpiece", "unigram") else ["cat 뷁🙂 the"]  # they know no bytes
    for text in (*published.PAGE, *rare):
        ids = tokenizer.encode(text)
        special = [token["special"] for token in tokens_of(tokenizer, ids)]
        added = [token_text(tokenizer, ids[: n + 1]) for n in range(len(ids)) if not special[n]]
        joined = composed("".join(piece for piece in added if piece != "\ufffd"))
        assert joined.removeprefix(" ") == composed(tokenizer.decode(ids)).removeprefix(" ")


def test_a_token_alone_keeps_its_space_and_a_part_of_a_character_is_one_sign() -> None:
    unigram = PublishedTokenizer(published.unigram().to_str())
    (index, *_), tokenizer = unigram.encode("the"), heedful_tokenizer()
    assert unigram.token_of(index).startswith("▁")
    assert token_text(unigram, [index]) == unigram.token_of(index).replace("▁", " ")
    assert not unigram.decode([index]).startswith(" ")
    first, second, third = (BYTE + byte for byte in "뷁".encode())
    assert token_text(tokenizer, [first]) == token_text(tokenizer, [first, second]) == "\ufffd"
    assert token_text(tokenizer, [first, second, third]) == "뷁"
    assert token_text(tokenizer, [START, END], ends={END}) == "■"


def test_pieces_are_the_tokeniser_s_own_names() -> None:
    tokenizer = heedful_tokenizer()
    tokens = tokens_of(tokenizer, [START, *tokenizer.encode("the 뷁"), END])
    assert [token["piece"] for token in tokens][-4:] == ["<0xEB>", "<0xB7>", "<0x81>", "</s>"]
    assert tokens[1]["piece"].startswith("▁")
    assert not tokens[1]["text"].startswith(("▁", " "))


def test_syllables_written_in_letters_are_whole() -> None:
    """A tokenizer that takes Hangul apart, as BERT's does where it strips accents."""
    alphabet = {letter: place for place, letter in enumerate(unicodedata.normalize("NFD", "학생이다a"))}
    fast = FastTokenizer(models.WordLevel(alphabet, unk_token="a"))
    fast.normalizer = normalizers.NFD()
    fast.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    fast.decoder = decoders.Fuse()
    tokenizer = PublishedTokenizer(fast.to_str())
    ids = [alphabet[letter] for letter in unicodedata.normalize("NFD", "학생a이다")]
    assert [token["text"] for token in tokens_of(tokenizer, ids)] == [*"◌◌학◌◌생a◌이◌다"]


def test_what_a_token_completes_before_a_part_is_shown_there() -> None:
    alphabet = {piece: place for place, piece in enumerate(["나ᄒ", "ᅡᆨ생", "a"])}
    fast = FastTokenizer(models.WordLevel(alphabet, unk_token="a"))
    fast.decoder = decoders.Fuse()
    tokens = tokens_of(PublishedTokenizer(fast.to_str()), [0, 1])
    assert [(token["text"], token["part"]) for token in tokens] == [("나◌", True), ("학생", False)]


def test_start_and_end_are_marked_and_others_have_their_names() -> None:
    tokenizer = heedful_tokenizer()
    written = tokens_of(tokenizer, [START, *tokenizer.encode("the cat"), END], start=START, ends={END})
    assert (written[0]["text"], written[-1]["text"]) == ("▶", "■")
    assert [token["special"] for token in written] == [True, *[False] * (len(written) - 2), True]
    assert written[0]["word"] is written[-1]["word"] is None
    reader = named("wordpiece")
    read = tokens_of(reader, reader.encode("the cat"))
    assert (read[0]["text"], read[-1]["text"]) == ("[CLS]", "[SEP]")
    assert read[0]["special"]
    assert not read[1]["special"]


def test_one_id_may_start_and_end() -> None:
    """BART's decoder begins with the token that ends a text."""
    tokenizer = named("byte_level")
    ids = [2, 0, *tokenizer.encode("the")[1:-1], 2]
    texts = [token["text"] for token in tokens_of(tokenizer, ids, start=2, ends={2})]
    assert (texts[0], texts[1], texts[-1]) == ("▶", "<s>", "■")


def test_a_special_token_ends_a_word() -> None:
    tokenizer = named("byte_level")
    ids = tokenizer.encode("cat")
    first, second = tokens_of(tokenizer, ids)[1:-1], tokens_of(tokenizer, [*ids, *ids])[len(ids) + 1 : -1]
    assert {token["word"] for token in first} == {0}
    assert {token["word"] for token in second} == {1}


def test_what_cannot_be_seen_has_a_sign() -> None:
    tokenizer = of_characters("ab \n\t\u200d\u202e", end=False)
    tokens = tokens_of(tokenizer, tokenizer.encode("a b\n\t\u200d\u202e"))
    assert [token["text"] for token in tokens] == ["a", "␣", "b", "⏎", "⇥", "‹ZWJ›", "‹U+202E›"]
    assert [token["word"] for token in tokens] == [0, None, 1, None, None, 2, 2]
    assert not any(token["special"] for token in tokens)
    joined = "👩\u200d💻"  # between letters it is needed, to draw them as one
    assert visible(joined) == joined


def test_a_row_that_is_no_token_and_a_byte_on_its_own_are_shown_too() -> None:
    published_one = named("wordpiece")
    (nameless,) = tokens_of(published_one, [100_000])
    assert (nameless["text"], nameless["piece"], nameless["special"]) == ("<100000>", "<100000>", True)
    (byte,) = tokens_of(heedful_tokenizer(), [BYTE + 0xEB])
    assert (byte["text"], byte["piece"], byte["special"], byte["part"]) == (PART, "<0xEB>", False, True)
