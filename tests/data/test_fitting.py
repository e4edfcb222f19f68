"""Texts that are too long for a model: what a tokenizer puts around a text stays around what is left of it."""

from __future__ import annotations

import pytest

from heedful.data.published_tokenizer import PublishedTokenizer, chunks, truncate
from heedful.data.text_tokenizers import EncoderTokenizerConfig, learn_tokenizer

TEXT = "hello world this is a text"


@pytest.fixture(scope="module")
def tokenizer() -> PublishedTokenizer:
    return learn_tokenizer([TEXT] * 10, EncoderTokenizerConfig(vocab_size=300))


@pytest.mark.parametrize("text", [TEXT, f"</s> {TEXT}", f"<s> {TEXT}", f"{TEXT} </s>", f"{TEXT} <s>", f"</s>{TEXT}<s>"])
def test_the_beginning_has_the_start_and_the_end_of_a_whole_text(tokenizer: PublishedTokenizer, text: str) -> None:
    """Also where the text itself begins or ends with what means a start or an end."""
    start, end = tokenizer.encode("")
    ids = tokenizer.encode(text)
    assert (ids[0], ids[-1]) == (start, end)
    for limit in range(2, len(ids) + 1):
        assert truncate(tokenizer, ids, limit) == [start, *ids[1 : limit - 1], end]
    for limit in range(3, len(ids) + 1):
        parts = list(chunks(tokenizer, ids, limit))
        assert [index for part in parts for index in part[1:-1]] == ids[1:-1]
        assert all((part[0], part[-1]) == (start, end) and len(part) <= limit for part in parts)


def test_a_tokenizer_may_put_nothing_around_a_text(tokenizer: PublishedTokenizer) -> None:
    bare = tokenizer.surrounded((), ())
    ids = bare.encode(TEXT)
    assert truncate(bare, ids, 3) == ids[:3]
    behind = tokenizer.surrounded((), tokenizer.encode("")[1:])
    assert truncate(behind, behind.encode(f"</s>{TEXT}"), 3) == [
        *behind.encode(f"</s>{TEXT}")[:2],
        behind.encode("")[0],
    ]
