"""Every token once, from exactly the tokens that its window has; and what the figures mean."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_texts import LETTERS

import heedful
from heedful.data.text_tokenizers import of_characters, of_pieces
from heedful.errors import DataError
from heedful.families import GenerationDefaults, config_of
from heedful.tasks.language_model import CausalLanguageModel, LanguageModelSettings, TextScore
from heedful.tasks.language_model.predictor import negative_log_likelihood
from heedful.tasks.language_model.task import LanguageModelTask
from heedful.tasks.run import Files

CONFIG = config_of({"preset": "gpt2-tiny", "d_model": 32, "n_layers": 2, "d_ff": 64, "max_length": 16})


def model(vocab_size: int) -> Any:
    torch.manual_seed(0)
    return heedful.build(CONFIG.changed(vocab_size=vocab_size)).eval()


def one_by_one(module: Any, row: np.ndarray, context: int, stride: int) -> float:
    """The same with a forward for each token alone, from the rule in words."""
    total = 0.0
    for target in range(1, len(row)):
        late = max(0, math.ceil((target - context) / stride))  # the first window that reaches the target
        seen = torch.tensor(row[late * stride : target].astype(np.int64))[None]
        total -= float(module(seen)[0, -1].log_softmax(-1)[int(row[target])])
    return total


@pytest.mark.parametrize("length", [1, 2, 10, 17, 75])
@pytest.mark.parametrize("stride", [1, 3, 8, 16])
def test_a_row_costs_what_its_tokens_cost_one_by_one(length: int, stride: int) -> None:
    module = model(11)
    row = np.random.default_rng(length).integers(11, size=length).astype(np.uint16)
    with torch.no_grad():
        expected = one_by_one(module, row, 16, stride)
    actual = negative_log_likelihood(module, row, context=16, stride=stride, vocab_size=11)
    assert actual == pytest.approx(expected, rel=1e-5, abs=1e-9)


def test_the_figures_of_a_text() -> None:
    score = TextScore(nats=math.log(2) * 30, tokens=5, characters=10, bytes=15)
    assert score.loss == pytest.approx(6 * math.log(2))
    assert score.perplexity == pytest.approx(2**6)
    assert score.bits_per_character == pytest.approx(3)
    assert score.bits_per_byte == pytest.approx(2)
    assert {key: actual.value for key, actual in score.scores().items()} == {
        "loss": score.loss,
        "perplexity": score.perplexity,
        "bits_per_character": score.bits_per_character,
        "bits_per_byte": score.bits_per_byte,
    }


def continuer(start: int | None) -> CausalLanguageModel:
    tokenizer = of_characters(LETTERS, end=False)
    settings = LanguageModelSettings(tokens=GenerationDefaults(start=start), context=16)
    return CausalLanguageModel(
        CONFIG.changed(vocab_size=tokenizer.vocab_size), model(tokenizer.vocab_size), tokenizer, settings
    )


def test_a_text_is_scored_whole_from_the_start_of_any() -> None:
    told, untold = continuer(start=0), continuer(start=None)
    text = "\nab" + "cde" * 20
    ids = told.tokenizer.encode(text)
    whole, short, empty = told.score([text, "a", ""])
    with torch.no_grad():
        assert whole.nats == pytest.approx(one_by_one(told.module, np.array([0, *ids]), 16, 8), rel=1e-5)
        assert untold.score([text], stride=16)[0].nats == pytest.approx(
            one_by_one(told.module, np.array(ids), 16, 16), rel=1e-5
        )
    assert (whole.tokens, whole.characters, whole.bytes) == (63, 63, 63)
    assert untold.score([text])[0].tokens == 62
    assert (short.tokens, empty.tokens, empty.nats) == (1, 0, 0.0)
    assert told.score([]) == []


def test_bytes_and_characters_are_of_the_text_whatever_the_tokens() -> None:
    tokenizer = of_pieces(["나는 나"], vocab_size=300, min_frequency=1)
    made = CausalLanguageModel(
        CONFIG.changed(vocab_size=tokenizer.vocab_size), model(tokenizer.vocab_size), tokenizer, LanguageModelSettings()
    )
    (score,) = made.score(["나는é"])
    assert (score.characters, score.bytes) == (3, 8)
    assert score.tokens == len(tokenizer.encode("나는é")) - 1


def test_files_are_scored_document_by_document(tmp_path: Path) -> None:
    made = continuer(start=0)
    texts = ["abc\nd" * 9, "eea", "b" * 40]
    (tmp_path / "a.txt").write_text(texts[0], encoding="utf-8")
    (tmp_path / "b.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts[1:]), "utf-8")
    task = LanguageModelTask()
    scored = task.evaluate(made, Files((str(tmp_path),)))
    total = sum(made.score(texts), TextScore())
    assert scored["n"] == total.tokens == 88
    assert (total.characters, total.bytes) == (88, 88)
    assert {name: score["value"] for name, score in scored["scores"].items()} == {
        name: score.value for name, score in total.scores().items()
    }
    (tmp_path / "c.jsonl").write_text('{"text": "a"}\n{"text": "nope"}\n', encoding="utf-8")
    with pytest.raises(DataError, match=r"c\.jsonl:2: the character 'n'"):
        task.evaluate(made, Files((str(tmp_path),)), strict=True)
    refused = task.evaluate(made, Files((str(tmp_path),)))["refused"]
    assert (refused["count"], refused["of"]) == (1, 5)
    (tmp_path / "d.txt").write_text("", encoding="utf-8")
    with pytest.raises(DataError, match=r"d\.txt: there is no text"):
        task.evaluate(made, Files((str(tmp_path / "d.txt"),)))


def test_what_cannot_be_scored_is_named() -> None:
    with pytest.raises(DataError, match=r"text 2: the character 'x' \(U\+0078\) was not in the text"):
        continuer(start=0).score(["a", "x"])
    with pytest.raises(DataError, match="text 1: a text is a str, not int"):
        continuer(start=0).score([3])  # type: ignore[list-item]
    with pytest.raises(DataError, match="takes a list"):
        continuer(start=0).score("abc")
    assert "was not in the text" in (continuer(start=0).validation_error("x") or "")
