"""Long texts in windows, beside the truncation of the tokenizers library."""

from __future__ import annotations

import pytest
from tokenizers import Tokenizer as FastTokenizer

from heedful.data.published_tokenizer import PublishedTokenizer
from heedful.data.text_tokenizers import EncoderTokenizerConfig, learn_tokenizer
from heedful.errors import DataError

QUESTION, CONTEXT = "who made it?", "세종대왕은 1443년에 훈민정음을 만들었다. é café 漢 the cat"


@pytest.fixture(scope="module")
def tokenizer() -> PublishedTokenizer:
    texts = ["세종대왕은 1443년에 훈민정음을 만들었다.", "the cat sat on the mat", QUESTION] * 20
    return learn_tokenizer(texts, EncoderTokenizerConfig(kind="bpe", vocab_size=400))


@pytest.mark.parametrize(("max_tokens", "stride"), [(14, 3), (12, 0), (20, 7), (200, 50), (11, 2)])
@pytest.mark.parametrize("second", [CONTEXT, None])
def test_windows_are_those_of_the_library(
    tokenizer: PublishedTokenizer, max_tokens: int, stride: int, second: str | None
) -> None:
    text = QUESTION if second else CONTEXT
    fast = FastTokenizer.from_str(tokenizer._text)
    fast.enable_truncation(max_tokens, stride=stride, strategy="only_second" if second else "longest_first")
    whole = fast.encode(text, second)
    expected = [(part.ids, part.type_ids) for part in (whole, *whole.overflowing)]
    windows = tokenizer.encode_windows(text, second, max_tokens=max_tokens, stride=stride)
    assert [(window.ids, window.segments) for window in windows] == expected


def test_offsets_name_the_characters_of_the_text_that_is_cut(tokenizer: PublishedTokenizer) -> None:
    windows = tokenizer.encode_windows(QUESTION, CONTEXT, max_tokens=14, stride=3)
    covered = {place for window in windows for span in window.offsets if span for place in range(*span)}
    assert covered == set(range(len(CONTEXT)))
    first = windows[0]
    texts = [CONTEXT[slice(*span)].strip() for span in first.offsets if span]
    assert texts == [
        tokenizer.decode([index]).strip() for index, span in zip(first.ids, first.offsets, strict=True) if span
    ]


def test_fewer_tokens_are_shared_where_there_is_no_room(tokenizer: PublishedTokenizer) -> None:
    n_around = len(tokenizer.encode_pair(QUESTION, "")[0])
    windows = tokenizer.encode_windows(QUESTION, CONTEXT, max_tokens=n_around + 1, stride=5)
    assert all(len(window.ids) == n_around + 1 for window in windows)
    with pytest.raises(DataError, match="shorten what comes before it"):
        tokenizer.encode_windows(QUESTION, CONTEXT, max_tokens=n_around, stride=5)


def test_an_empty_text_is_one_window(tokenizer: PublishedTokenizer) -> None:
    (window,) = tokenizer.encode_windows("", max_tokens=8, stride=2)
    assert window.ids == tokenizer.encode("")
