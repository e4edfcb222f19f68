"""What a classifier of few texts does by default: a small model, whole words, a class token that starts as a mean."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from labelled_sets import reviews, write_tsv

import heedful
from heedful.config import read_mapping
from heedful.data.published_tokenizer import PublishedTokenizer
from heedful.data.text_tokenizers import EncoderTokenizerConfig, learn_tokenizer
from heedful.families import build, config_of
from heedful.tasks.classification.task import POOLING_GAIN, ClassificationConfig, ClassificationTask, pool_by_attention
from heedful.tasks.run import Files, train

SENTENCES = ["The film was fine.", "the Film was sad", "a film, fine", "was the sad film a film"]


def test_the_class_token_starts_as_the_mean_of_all() -> None:
    torch.manual_seed(0)
    module = build(config_of("bert-tiny").changed(vocab_size=100, head="classes")).eval()
    pool_by_attention(module)
    attention = module.get_submodule("encoder.layers")[-1].self_attention.sublayer  # type: ignore[index]
    x = torch.nn.functional.layer_norm(torch.randn(2, 30, 128), (128,))
    with torch.inference_mode():
        mixed = attention(x)
    mean = POOLING_GAIN * x.mean(dim=1)
    assert torch.nn.functional.cosine_similarity(mixed[:, 0], mean).min() > 0.95
    assert (mixed[:, 0].norm(dim=-1) / mean.norm(dim=-1)).tolist() == pytest.approx([1, 1], abs=0.1)


def words_of(tokenizer: PublishedTokenizer, text: str) -> list[str]:
    return [tokenizer.token_of(index) for index in tokenizer.encode(text)]


def test_frequent_words_are_tokens_and_all_others_one() -> None:
    tokenizer = learn_tokenizer(SENTENCES * 5, EncoderTokenizerConfig(lowercase=True, max_unknown=0.1))
    expected = ["<s>", "the", " film", ",", "<unk>", " was", " fine", "</s>"]
    assert words_of(tokenizer, "The FILM, 최고 was fine") == ["<s>", " the", *expected[2:]]
    assert tokenizer.decode(tokenizer.encode("The film was sad.")) == "the film was sad."
    assert tokenizer.role("mask_token") == "<mask>"


@pytest.mark.parametrize(("limit", "whole"), [(0.0, False), (0.2, False), (0.3, True)])
def test_whole_words_need_few_that_occur_once(limit: float, whole: bool) -> None:
    """Of eight words, "x" and "y" occur once: a quarter of the words will be unknown."""
    texts = ["b a b", "a x", "a y b"]
    tokenizer = learn_tokenizer(texts, EncoderTokenizerConfig(max_unknown=limit))
    assert (tokenizer.id_of("<unk>") is not None) == whole


def adapted(folder: Path, **settings: object) -> ClassificationConfig:
    task, config = ClassificationTask(), ClassificationConfig.from_dict(settings)
    file = write_tsv(folder / "reviews.tsv", reviews(200))
    data, _ = task.prepare(config, Files((file,)), folder)
    changed: ClassificationConfig = config.adapted(task.defaults(config, data))
    return changed


def test_a_model_that_was_chosen_keeps_its_size(tmp_path: Path) -> None:
    small = adapted(tmp_path)
    assert (small.model.n_layers, small.model.d_model, small.training.epochs) == (1, 128, 8)  # type: ignore[attr-defined]
    wide = adapted(tmp_path, model={"d_model": 256}, training={"epochs": 2})
    assert (wide.model.n_layers, wide.model.d_model, wide.training.epochs) == (1, 256, 2)  # type: ignore[attr-defined]
    chosen = adapted(tmp_path, model={"preset": "bert-small"})
    assert chosen.model == config_of("bert-small")
    assert chosen.training == ClassificationConfig.from_scratch


def test_a_run_without_settings_learns_and_is_loaded(tmp_path: Path) -> None:
    file = write_tsv(tmp_path / "reviews.tsv", reviews(400))
    config = ClassificationConfig.from_dict({"training": {"device": "cpu"}})
    train(ClassificationTask(), config, Files((file,)), tmp_path / "run")
    assert read_mapping(tmp_path / "run/metrics.json")["validation"]["scores"]["accuracy"]["value"] >= 95
    model = heedful.load(tmp_path / "run", "classification")
    small, large, unknown = model.predict(["the film was great", "THE FILM was Great", "zyx was a lovely zyx"])
    assert small == large
    assert next(iter(unknown)) == "pos"
