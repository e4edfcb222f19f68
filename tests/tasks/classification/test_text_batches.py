"""Texts in ids: cut with their ends, in batches of a few shapes, every text once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

from heedful.data.published_tokenizer import PublishedTokenizer, chunks, truncate
from heedful.data.store import TokenStore
from heedful.data.text_batch import TextBatch, TextLoader
from heedful.data.text_tokenizers import EncoderTokenizerConfig, learn_tokenizer
from heedful.errors import DataError
from published_folders import PAGE, byte_level, unigram, wordpiece


@pytest.fixture(scope="module")
def tokenizer() -> PublishedTokenizer:
    return learn_tokenizer(PAGE * 3, EncoderTokenizerConfig(vocab_size=500))


@pytest.fixture
def store(tmp_path: Path) -> TokenStore:
    draw = np.random.default_rng(0)
    lengths = draw.integers(2, 30, 200)
    rows = ((draw.integers(3, 90, n).tolist(), (n % 3, n if n % 2 else n // 2), ("a", n)) for n in lengths.tolist())
    return TokenStore.write(tmp_path, rows, vocab_size=100)


def test_a_batch_holds_its_rows_and_nothing_else(store: TokenStore) -> None:
    batch = TextBatch.of(store, [5, 0, 17], (4, 32))
    for place, row in enumerate([5, 0, 17]):
        ids, (label, second) = store[row]
        n = len(ids)
        assert batch.ids[place].tolist() == [*ids.tolist(), *[0] * (32 - n)]
        assert batch.segments[place].tolist() == [0] * second + [1] * (n - second) + [0] * (32 - n)
        assert batch.keep[place].tolist() == [True] * n + [False] * (32 - n)
        assert batch.labels[place] == label
    assert batch.lengths == (*(len(store[row][0]) for row in (5, 0, 17)), 0)
    assert batch.real.tolist() == [True] * 3 + [False]
    assert not batch.keep[3].any()
    moved = batch.to("cpu")
    assert torch.equal(moved.ids, batch.ids)
    assert moved.rows == (5, 0, 17)


def test_without_a_target_there_is_no_label_and_no_second_text(tmp_path: Path) -> None:
    store = TokenStore.write(tmp_path, [([5, 6], (), ("a", 1)), ([7], (3, 0), ("a", 2))], vocab_size=10)
    batch = TextBatch.of(store, [0, 1], (3, 2))
    assert batch.segments.tolist() == [[0, 0], [1, 0], [0, 0]]
    assert batch.labels.tolist() == [0, 3, 0]


def test_no_text_is_truncated(store: TokenStore) -> None:
    longest = int(store.lengths[:, 0].argmax())
    with pytest.raises(DataError, match=r"rows of the shape \(1, 20\) cannot hold sequences that need \(1, 29\)"):
        TextBatch.of(store, [longest], (1, 20))


def test_every_text_comes_once_in_an_epoch_in_few_shapes(store: TokenStore) -> None:
    loader = TextLoader(store, 128, seed=3)
    first, again, next_one = (list(loader.epoch(epoch)) for epoch in (0, 0, 1))
    assert Counter(row for batch in first for row in batch.rows) == Counter(range(200))
    assert [batch.rows for batch in first] == [batch.rows for batch in again]
    assert [batch.rows for batch in first] != [batch.rows for batch in next_one]
    assert [batch.rows for batch in loader.epoch(0, 4)] == [batch.rows for batch in first[4:]]
    assert len(first) == loader.steps_per_epoch()
    assert len({batch.ids.shape for batch in first}) <= 8
    assert max(batch.ids.shape[1] for batch in first) <= store.lengths[:, 0].max()  # no place that a model lacks
    assert Counter(row for batch in loader.in_order() for row in batch.rows) == Counter(range(200))


def around(fast: object) -> PublishedTokenizer:
    return PublishedTokenizer(fast.to_str())  # type: ignore[attr-defined]


KINDS = {
    "bert": lambda: around(wordpiece()),
    "roberta": lambda: around(byte_level()),
    "an end alone": lambda: around(unigram()),
    "nothing": lambda: around(byte_level(around=False)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_truncation_keeps_special_tokens(kind: str) -> None:
    """As the library itself cuts, which is told the length."""
    tokenizer = KINDS[kind]()
    fast = {"bert": wordpiece, "roberta": byte_level, "an end alone": unigram}.get(
        kind, lambda: byte_level(around=False)
    )()
    for text in PAGE:
        ids = tokenizer.encode(text)
        for limit in (3, 5, 8, len(ids) - 1):
            fast.enable_truncation(limit)
            try:
                assert truncate(tokenizer, ids, limit) == fast.encode(text).ids
            finally:
                fast.no_truncation()


AROUND = {"bert": (1, 1), "roberta": (1, 1), "an end alone": (0, 1), "nothing": (0, 0)}


@pytest.mark.parametrize("kind", KINDS)
def test_chunks_lose_no_token(kind: str) -> None:
    tokenizer = KINDS[kind]()
    n_around = len(tokenizer.encode(""))
    for text in PAGE:
        ids = tokenizer.encode(text)
        windows = list(chunks(tokenizer, ids, 9))
        assert max(map(len, windows)) <= 9
        assert max(map(len, windows)) - min(map(len, windows)) <= 1
        assert len(windows) == -(-(len(ids) - n_around) // (9 - n_around))
        prefix, suffix = AROUND[kind]
        inner = [index for part in windows for index in part[prefix : len(part) - suffix]]
        assert [*ids[:prefix], *inner, *ids[len(ids) - suffix :]] == ids
        assert {(*part[:prefix], *part[len(part) - suffix :]) for part in windows} == {tuple(tokenizer.encode(""))}
        assert list(chunks(tokenizer, ids, len(ids))) == [ids]


def test_trained_tokenizer_has_start_end_and_mask(tokenizer: PublishedTokenizer) -> None:
    ids = tokenizer.encode("The cat drinks water.")
    assert (tokenizer.token_of(ids[0]), tokenizer.token_of(ids[-1])) == ("<s>", "</s>")
    assert tokenizer.decode(ids) == "The cat drinks water."
    both, segments = tokenizer.encode_pair("The cat", "drinks")
    assert [tokenizer.token_of(index) for index in both if index < 3] == ["<s>", "</s>", "</s>"]
    assert segments == sorted(segments)
    assert tokenizer.role("mask_token") == "<mask>"


@pytest.mark.parametrize("text", ["The cat drinks water.", "나는 책을 읽어요."])
def test_mask_replaces_exactly_a_word(tokenizer: PublishedTokenizer, text: str) -> None:
    """With the space before it, and what follows as it was: a gap in a text is what training has seen."""
    ids, gap = tokenizer.encode(text), tokenizer.id_of("<mask>")
    for word in (" cat", " water", "The", " 책을", " 읽어요", "나는"):
        if word not in text:
            continue
        start = len(tokenizer.encode(text[: text.index(word)])) - 1
        stop = len(tokenizer.encode(text[: text.index(word) + len(word)])) - 1
        space = " " if word.startswith(" ") else ""
        assert tokenizer.encode(text.replace(word, f"{space}<mask>")) == [*ids[:start], gap, *ids[stop:]]
