"""Gaps: as many as asked, of real words only, new in every epoch, the same for the same seed and place."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

import heedful
from heedful.core import padding
from heedful.data.loader import Shard
from heedful.data.published_tokenizer import PublishedTokenizer, tokenizer_of
from heedful.data.store import TokenStore
from heedful.data.text_batch import TextLoader
from heedful.data.text_tokenizers import EncoderTokenizerConfig, learn_tokenizer
from heedful.errors import ConfigError, DataError
from heedful.tasks.masked.data import MaskedLoader, Masking, MaskingConfig
from heedful.tasks.masked.predictor import mask_token
from heedful.tasks.masked.task import _forward
from published_folders import PAGE, byte_level, unigram, wordpiece

N, LENGTH = 300, 42


@pytest.fixture(scope="module")
def tokenizer() -> PublishedTokenizer:
    return learn_tokenizer(PAGE * 3, EncoderTokenizerConfig(vocab_size=500))


@pytest.fixture(scope="module")
def store(tokenizer: PublishedTokenizer, tmp_path_factory: pytest.TempPathFactory) -> TokenStore:
    draw = np.random.default_rng(0)
    rows = ([1, *draw.integers(3, tokenizer.largest, LENGTH - 2).tolist(), 2] for _ in range(N))
    return TokenStore.write(
        tmp_path_factory.mktemp("store"), ((ids, (), ("a", 1)) for ids in rows), vocab_size=tokenizer.largest + 1
    )


def loader(store: TokenStore, tokenizer: PublishedTokenizer, tokens: int = 1000, seed: int = 0) -> MaskedLoader:
    return MaskedLoader(store, tokens, Masking(MaskingConfig(), tokenizer), seed)


def test_fifteen_in_a_hundred_of_which_eight_in_ten_are_gaps(store: TokenStore, tokenizer: PublishedTokenizer) -> None:
    """Within four standard deviations of a binomial count."""
    gap, guessed, gaps, unchanged = Masking(MaskingConfig(), tokenizer).mask_id, 0, 0, 0
    for batch in loader(store, tokenizer).epoch(0):
        seen = batch.ids.flatten()[batch.places[batch.is_real]]
        targets = batch.targets[batch.is_real]
        guessed, gaps, unchanged = (
            guessed + len(seen),
            gaps + int((seen == gap).sum()),
            unchanged + int((seen == targets).sum()),
        )
    n = N * (LENGTH - 2)
    assert abs(guessed - 0.15 * n) < 4 * (n * 0.15 * 0.85) ** 0.5
    assert abs(gaps - 0.8 * guessed) < 4 * (guessed * 0.16) ** 0.5
    assert abs(unchanged - 0.1 * guessed) < 4 * (guessed * 0.09) ** 0.5


def test_only_words_are_guessed_and_the_rest_is_as_it_was(store: TokenStore, tokenizer: PublishedTokenizer) -> None:
    special = {tokenizer.id_of(name) for name in ("<pad>", "<s>", "</s>", "<mask>")}
    gap = tokenizer.id_of("<mask>")
    for batch in loader(store, tokenizer).epoch(0):
        truth = torch.zeros_like(batch.ids)
        for place, row in enumerate(batch.rows):
            truth[place, : len(store[row][0])] = torch.tensor(store[row][0].astype(np.int64))
        places = batch.places[batch.is_real]
        assert torch.equal(batch.targets[batch.is_real], truth.flatten()[places])
        assert special.isdisjoint(batch.targets[batch.is_real].tolist())
        others = torch.ones(batch.ids.numel(), dtype=torch.bool)
        others[places] = False
        assert torch.equal(batch.ids.flatten()[others], truth.flatten()[others])
        put_in = {index for index in batch.ids.flatten()[places].tolist() if index != gap}
        assert special.isdisjoint(put_in)
        assert len(batch.places) % 64 == 0


def test_places_have_one_number_for_a_shape_and_none_is_lost(tokenizer: PublishedTokenizer, tmp_path: Path) -> None:
    """In a thousand batches of short and long texts; and every text has a gap, as in the next test every draw."""
    draw = np.random.default_rng(0)
    texts = ([1, *draw.integers(5, 400, n).tolist(), 2] for n in draw.integers(1, 40, 2000))
    store = TokenStore.write(tmp_path, ((ids, (), ("a", 1)) for ids in texts), vocab_size=tokenizer.largest + 1)
    shape_counts = Counter[tuple[int, ...]]()
    gaps = loader(store, tokenizer)
    for epoch in range(20):
        for batch in gaps.epoch(epoch):
            shape_counts[(*batch.ids.shape, len(batch.places))] += 1
            rows = batch.places[batch.is_real] // batch.ids.shape[1]
            assert set(rows.tolist()) == set(range(len(batch.rows)))
    shapes = Counter(shape[:2] for shape in shape_counts.elements())
    assert shape_counts.total() > 800
    most_common = sum(max(n for shape, n in shape_counts.items() if shape[:2] == two) for two in shapes)
    assert most_common > 0.999 * shape_counts.total()
    assert all(places % 64 == 0 and places < 0.5 * b * t + 64 for b, t, places in shape_counts)


def test_more_gaps_than_usual_get_more_places(tokenizer: PublishedTokenizer, tmp_path: Path) -> None:
    store = TokenStore.write(tmp_path, (([5] * 40, (), ("a", 1)) for _ in range(50)), vocab_size=10)
    (texts,) = TextLoader(store, 4000).in_order()
    masking = Masking(MaskingConfig(), tokenizer)
    sizes = []
    for share in (0.1, 0.2, 0.5, 1.0):
        draws = np.full((50, 40, 3), 0.99)
        draws[:, : round(40 * share), 0] = 0.0
        batch = masking.batch(texts, draws)
        assert batch.places[batch.is_real].tolist() == np.flatnonzero(draws[..., 0] == 0).tolist()
        sizes.append(len(batch.places))
    assert sizes == [384, 768, 1536, 2048]  # 300 and 64 to be expected, then twice, four times, all
    draws[:, :, 0] = np.linspace(0.9, 0.5, 40)
    draws[::3, :, 0] = 0.0  # all of a third of the rows, which one process has, and one of each other
    parts = [masking.batch(texts, draws, Shard(index, 3)) for index in range(3)]
    assert [int(part.is_real.sum()) for part in parts] == [17 * 40, 17, 16]
    assert [len(part.places) for part in parts] == [704] * 3


def test_a_step_is_the_same_again_and_another_epoch_is_not(store: TokenStore, tokenizer: PublishedTokenizer) -> None:
    batches = [batch.ids for batch in loader(store, tokenizer).epoch(1)]
    later = [batch.ids for batch in loader(store, tokenizer).epoch(1, 5)]
    assert all(torch.equal(a, b) for a, b in zip(batches[5:], later, strict=True))
    drawn = set()  # where the gaps of the first 20 texts are, of a batch that has more
    for seed, epoch in ((0, 0), (0, 1), (1, 0), (1, 1)):
        batch = next(loader(store, tokenizer, seed=seed).epoch(epoch))
        drawn.add(tuple(place for place in batch.places[batch.is_real].tolist() if place < 20 * LENGTH))
    assert len(drawn) == 4


def test_gaps_for_validation_hang_on_no_batch(store: TokenStore, tokenizer: PublishedTokenizer) -> None:
    rows: list[dict[int, list[int]]] = []
    for tokens in (200, 3000):
        batches = loader(store, tokenizer, tokens).fixed()
        rows.append({row: batch.ids[place].tolist() for batch in batches for place, row in enumerate(batch.rows)})
    assert rows[0] == rows[1]
    assert len(rows[0]) == N


def test_a_short_text_has_one_gap_at_least(tokenizer: PublishedTokenizer, tmp_path: Path) -> None:
    store = TokenStore.write(tmp_path, (([1, 5, 6, 2], (), ("a", n)) for n in range(50)), vocab_size=500)
    for batches in (loader(store, tokenizer).epoch(0), loader(store, tokenizer).fixed()):
        for batch in batches:
            rows = (batch.places[batch.is_real] // batch.ids.shape[1]).tolist()
            assert set(rows) == set(range(len(batch.rows)))


def test_the_quick_way_is_the_slow_one(store: TokenStore, tokenizer: PublishedTokenizer) -> None:
    """Logits of the guessed tokens alone, and those of all with the same ones picked."""
    sizes = {"d_model": 32, "n_heads": 2, "d_ff": 64, "n_layers": 2, "vocab_size": tokenizer.largest + 1}
    module = heedful.build("bert-tiny", **sizes).eval()
    batch = next(loader(store, tokenizer).epoch(0))
    with torch.no_grad():
        everything = module(batch.ids, padding(batch.keep, lengths=batch.lengths)).flatten(0, 1)
        torch.testing.assert_close(_forward(module, batch), everything[batch.places])


def test_mask_token_of_published_tokenizers() -> None:
    assert mask_token(PublishedTokenizer(wordpiece().to_str())) == "[MASK]"
    assert mask_token(PublishedTokenizer(byte_level().to_str())) == "<mask>"
    with pytest.raises(DataError, match="has no mask token"):
        mask_token(PublishedTokenizer(unigram().to_str()))
    word_ids = Masking(MaskingConfig(), PublishedTokenizer(wordpiece().to_str())).word_ids
    assert word_ids.min() == 5  # behind [PAD], [UNK], [CLS], [SEP], [MASK]
    odd = tokenizer_of(["begin", "<mask>", "cat", "dog"], "dog").surrounded([0], [])
    assert Masking(MaskingConfig(), odd).word_ids.tolist() == [2, 3]


@pytest.mark.parametrize("wrong", [{"share": 0.0}, {"share": 1.0}, {"gaps": 0.9, "others": 0.2}, {"gaps": -0.1}])
def test_shares_that_make_no_sense(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="masking"):
        MaskingConfig(**wrong)
