"""Where a translator looks, between whole words; and alignments from files."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import heedful
from heedful.data.pairs import Pair
from heedful.data.tokenizer import Tokenizer
from heedful.errors import DataError
from heedful.families import config_of
from heedful.lens.alignment import Gold, Head
from heedful.tasks.translation.inspection import alignment_score, has_attention, look, read_alignments
from heedful.tasks.translation.predictor import Translator, TranslatorSettings

SOURCE, TARGET = "저는 책을 읽어요.", "I read books."


def translator(**changes: object) -> Translator:
    tokenizer = Tokenizer.train([SOURCE, TARGET] * 3, vocab_size=330)
    config = config_of({"preset": "tiny", "d_model": 16, "d_ff": 16, **changes}).changed(
        vocab_size=tokenizer.vocab_size
    )
    torch.manual_seed(0)
    settings = TranslatorSettings(source="ko", target="en")
    return Translator(config, heedful.build(config), tokenizer, settings)


def test_the_row_that_predicts_a_word_is_the_one_that_cannot_have_read_it() -> None:
    model = translator()
    first, other = look(model, SOURCE, "I read books."), look(model, SOURCE, "I read I read.")
    assert first.source == ["저는", "책을", "읽어요."]
    assert first.target == ["I", "read", "books."]
    for head, weights in first.weights.items():
        assert weights.shape == (3, 3)
        assert torch.allclose(weights[:2], other.weights[head][:2], atol=1e-6), "later words change nothing before them"
    only_end_of_source_is_left_out = first.weights[Head(0, 0)].sum(dim=1)
    assert ((only_end_of_source_is_left_out > 0.2) & (only_end_of_source_is_left_out <= 1.0)).all()


def test_a_model_without_attention_is_known_as_such() -> None:
    assert has_attention(translator())
    plain = {"preset": "recurrent-plain", "d_model": 16}
    tokenizer = Tokenizer.train([SOURCE, TARGET] * 3, vocab_size=330)
    config = config_of(plain).changed(vocab_size=tokenizer.vocab_size)
    settings = TranslatorSettings(source="ko", target="en")
    assert not has_attention(Translator(config, heedful.build(config), tokenizer, settings))


def test_the_head_is_chosen_on_one_half_and_reported_on_the_other() -> None:
    model = translator()
    gold = Gold(frozenset({(0, 0), (2, 1), (1, 2)}))
    score = alignment_score(model, [(SOURCE, TARGET, gold)], [(SOURCE, TARGET, gold)])
    assert 0 <= score.error_rate <= 100
    assert score.diagonal == pytest.approx(100 * (1 - 2 / 6))  # of three links one is on the diagonal


def test_alignments_are_read_as_the_field_writes_them(tmp_path: Path) -> None:
    path = tmp_path / "gold.txt"
    path.write_text("0-0 1-2 2?1\n\n", encoding="utf-8")
    first, second = read_alignments(path, [Pair(SOURCE, TARGET, "x", 1), Pair("a", "b", "x", 2)])
    assert first == Gold(frozenset({(0, 0), (1, 2)}), frozenset({(2, 1)}))
    assert second == Gold(frozenset())


@pytest.mark.parametrize(
    ("text", "words"),
    [("0-0\n0-0\n", "2 lines for 1 pairs"), ("0:0\n", r"gold.txt:1.*'0:0'"), ("0-3\n", "beyond the 3 source and 3")],
)
def test_alignments_that_do_not_fit_are_refused(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "gold.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=words):
        read_alignments(path, [Pair(SOURCE, TARGET, "x", 1)])
