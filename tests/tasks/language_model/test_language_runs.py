"""From text files to a bundle, through the run that all tasks share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_texts import Chain, small_config, write

import heedful
from heedful.config import read_mapping
from heedful.data.published_tokenizer import PublishedTokenizer
from heedful.errors import ConfigError, DataError
from heedful.tasks.language_model.data import CorpusData, LanguageModelConfig
from heedful.tasks.language_model.task import LanguageModelTask, attention_map
from heedful.tasks.run import Files, TooLittleDataError, train
from heedful.training import Event, Saved
from heedful.training.errors import ResumeError
from tiny_report import report_held

TEXT = Chain().text(3000, seed=1)


class StoppedError(Exception):
    """What ends a run in the middle."""


def stopping(step: int) -> Any:
    def stop(event: Event) -> None:
        if isinstance(event, Saved) and event.step == step:
            raise StoppedError

    return lambda job: [stop]


def test_a_run_leaves_a_bundle_with_scores_and_a_report(tmp_path: Path) -> None:
    read: list[Any] = []
    files = Files((write(tmp_path / "a.txt", TEXT),))
    trained = train(LanguageModelTask(), small_config(), files, tmp_path / "run", on_read=read.append)
    loaded = heedful.load(tmp_path / "run", "language-model")
    assert loaded.task == "language-model"
    assert loaded.predict(["ab", ""]) == trained.predict(["ab", ""])
    assert [len(text) for text in loaded.predict(["a"] * 3, max_new_tokens=5)] == [5] * 3
    metrics = read_mapping(tmp_path / "run" / "metrics.json")
    scores = {name: score["value"] for name, score in metrics["validation"]["scores"].items()}
    sizes = {"loss", "perplexity", "bits_per_character", "bits_per_byte", "loss_side_by_side"}
    assert set(scores) == {*sizes, "frequency_perplexity"}
    assert scores["bits_per_character"] == pytest.approx(scores["loss"] / np.log(2))
    assert metrics["validation"]["n"] == metrics["validation"]["characters"] == 300
    assert metrics["samples"][0]["source"] == TEXT[2700:2716]
    assert metrics["samples"][0]["reference"] == TEXT[2716:2756]
    assert read[0].to_dict()["held_out"] == 300
    rows = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text("utf-8").splitlines()]
    assert min(row["loss"] for row in rows if row["kind"] == "valid") == pytest.approx(scores["loss_side_by_side"])
    assert "side by side" in (tmp_path / "run" / "README.md").read_text("utf-8")
    report = report_held(tmp_path / "run" / "report.html")
    assert "bits per character" in {row["metric"] for row in report["scores"]}
    assert TEXT[2700:2716] in {prompt for prompt, _ in report["continuations"]}


def test_a_look_is_what_the_last_layer_gives_to_what_came_before(tmp_path: Path) -> None:
    train(LanguageModelTask(), small_config({"steps": 2}), Files((write(tmp_path / "a.txt", TEXT),)), tmp_path / "run")
    seen = attention_map(heedful.load(tmp_path / "run", "language-model"), "ab\nc")
    weights = np.array(seen.weights)
    assert (seen.title, list(seen.source)) == ("ab⏎c", ["a", "b", "⏎", "c"])
    assert weights.shape == (2, 4, 4)
    assert weights.sum(axis=-1) == pytest.approx(1.0)
    assert np.triu(weights, k=1) == pytest.approx(0.0)


def test_a_run_that_was_stopped_ends_with_the_same_weights(tmp_path: Path) -> None:
    files = Files((write(tmp_path / "a.txt", TEXT),))
    config = small_config(model={"preset": "gpt2-tiny", "d_model": 32, "n_layers": 1, "max_length": 16})  # dropout
    train(LanguageModelTask(), config, files, tmp_path / "whole")
    with pytest.raises(StoppedError):
        train(LanguageModelTask(), config, files, tmp_path / "parts", watch=stopping(10))
    train(LanguageModelTask(), config, files, tmp_path / "parts", resume=True)
    whole, parts = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "parts"))
    assert whole == parts


def test_a_run_keeps_its_tokeniser_and_refuses_text_it_has_no_tokens_for(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    files = Files((write(path, TEXT),))
    with pytest.raises(StoppedError):
        train(LanguageModelTask(), small_config(), files, tmp_path / "run", watch=stopping(10))
    other = small_config(tokenizer={"kind": "bpe", "vocab_size": 300})
    with pytest.raises(ResumeError, match="the tokeniser settings have changed"):
        train(LanguageModelTask(), other, files, tmp_path / "run", resume=True, allow_changes=True)
    write(path, TEXT + "xyz" * 300)
    with pytest.raises(ResumeError, match="the data is not what this run began with"):
        train(LanguageModelTask(), small_config(), files, tmp_path / "run", resume=True)
    with pytest.raises(DataError, match=r"a\.txt:\d+: the character 'x'"):
        train(LanguageModelTask(), small_config(), files, tmp_path / "run", resume=True, allow_changes=True)


def prepared(folder: Path, *texts: str, valid: tuple[str, ...] = (), **changes: Any) -> CorpusData:
    train_files = tuple(write(folder / f"{place}.txt", text) for place, text in enumerate(texts))
    valid_files = tuple(write(folder / f"valid{place}.txt", text) for place, text in enumerate(valid))
    config = small_config(**changes)
    made, _ = LanguageModelTask().prepare(config, Files(train_files, valid_files), folder / "data")
    again = LanguageModelTask().open(config, folder / "data")
    assert again.identity() == made.identity()
    assert again.metadata == made.metadata
    return made


def ids(made: CorpusData) -> tuple[list[int], list[int]]:
    return made.train.flat.tolist(), made.valid.flat.tolist()


def test_the_last_tenth_is_held_out_after_the_token_before_it(tmp_path: Path) -> None:
    made = prepared(tmp_path, TEXT)
    train_ids, valid_ids = ids(made)
    whole = made.tokenizer.encode(TEXT)
    assert train_ids == whole[:2700]
    assert valid_ids == whole[2699:]
    assert (made.metadata.characters, made.metadata.bytes, made.metadata.end) == (300, 300, None)
    assert made.metadata.start == made.tokenizer.id_of("\n")
    assert made.tokenizer.vocab_size == 6


@pytest.mark.parametrize("kind", ["characters", "bpe"])
def test_documents_are_told_apart_by_an_end(kind: str, tmp_path: Path) -> None:
    texts = [TEXT[:100], "é" + TEXT[100:200], TEXT[200:300]]
    tokenizer = {"kind": kind, "vocab_size": 300}
    made = prepared(tmp_path, *texts, valid=("abc", "de"), tokenizer=tokenizer)
    end, encode = made.metadata.end, made.tokenizer.encode
    first, second, third = map(encode, texts)
    assert ids(made) == ([*first, end, *second, end, *third], [end, *encode("abc"), end, *encode("de")])
    assert (made.metadata.characters, made.metadata.bytes, made.metadata.start) == (5, 5, end)
    job = LanguageModelTask().bind(small_config(tokenizer=tokenizer), made)
    assert job.predictor(job.module).settings.tokens.end == (end,)
    assert job.score(job.module, stride=16).tokens == len(ids(made)[1]) - 1
    starts = [0, len(first) - 1, len(first), len(first) + len(second) + 1]
    batch = next(iter(job.batches.epoch(0)))
    named = job.describe(type(batch)(batch.ids, None, tuple(starts)))
    assert [Path(place).name for place in named] == ["0.txt:1", "0.txt:1", "1.txt:1", "2.txt:1"]


def test_what_begins_in_the_held_out_part_ends_the_document_before(tmp_path: Path) -> None:
    made = prepared(tmp_path, "ab" * 300, "b" + "cd" * 300 + "b", "e" * 99 + "b")
    train_ids, valid_ids = ids(made)
    end = made.metadata.end
    assert (train_ids.count(end or -1), valid_ids.count(end or -1)) == (1, 1)
    assert made.tokenizer.decode([index for index in train_ids + valid_ids[1:] if index != end]) == (
        "ab" * 300 + "b" + "cd" * 300 + "b" + "e" * 99 + "b"
    )


def test_an_end_that_was_never_seen_is_none(tmp_path: Path) -> None:
    for kind in ("characters", "bpe"):
        made = prepared(tmp_path / kind, TEXT, valid=("ab\n", "b"), tokenizer={"kind": kind, "vocab_size": 300})
        assert made.metadata.end is None
        assert made.tokenizer.decode(ids(made)[1][1:]) == "ab\nb"
        job = LanguageModelTask().bind(small_config(tokenizer={"kind": kind, "vocab_size": 300}), made)
        assert job.predictor(job.module).settings.tokens.end == ()


def test_characters_of_the_validation_text_have_tokens_too(tmp_path: Path) -> None:
    made = prepared(tmp_path, TEXT, valid=("héab",))
    assert made.tokenizer.decode(ids(made)[1][1:]) == "héab"


def test_pieces_are_learned_from_the_training_part_alone(tmp_path: Path) -> None:
    made = prepared(tmp_path, "ab " * 900 + "qq" * 150, tokenizer={"kind": "bpe", "vocab_size": 400})
    names = {made.tokenizer.token_of(index) for index in range(made.tokenizer.vocab_size)}
    assert " ab" in names
    assert not [name for name in names if "q" in name]


def test_too_little_text_says_what_would_do(tmp_path: Path) -> None:
    with pytest.raises(TooLittleDataError, match=r"9 tokens, too few for one window of 16 .* a smaller context: 8"):
        prepared(tmp_path, "abcdeabcde")
    with pytest.raises(TooLittleDataError, match="1 characters are too few to hold out"):
        prepared(tmp_path, "a")
    with pytest.raises(DataError, match=r"0\.txt: there is no text"):
        prepared(tmp_path, "")
    path = write(tmp_path / "a.txt", TEXT)
    with pytest.raises(DataError, match=r"a\.txt is given for both training and validation"):
        LanguageModelTask().prepare(small_config(), Files((path,), (path,)), tmp_path / "data")


def test_data_that_was_tampered_with_is_not_opened(tmp_path: Path) -> None:
    prepared(tmp_path, TEXT)
    (tmp_path / "data" / "sizes.json").write_text("{}", encoding="utf-8")
    with pytest.raises(DataError, match=r"sizes\.json was changed since it was written"):
        LanguageModelTask().open(small_config(), tmp_path / "data")


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"model": "bert-tiny"}, "is not a language model"),
        ({"model": "tiny"}, "is not a language model"),
        ({"context": 300}, "context=300 is more than the model reads; set model.max_length=300"),
        ({"stride": 257}, "stride=257 would leave tokens out; it must be from 1 to the context, 256"),
        ({"context": 0}, "context must be at least 1"),
        ({"tokenizer": {"kind": "words"}}, "allowed: bpe, characters"),
        ({"tokenizer": {"vocab_size": 200}}, "at least 260"),
        ({"data": {"holdout": 1.0}}, "must be between 0 and 1"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(values: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        LanguageModelConfig.from_dict(values)


def test_settings_suit_language_models_unless_told_otherwise() -> None:
    config = LanguageModelConfig.from_dict({"training": {"batch_tokens": 16384}, "model": {"n_layers": 6}})
    assert (config.window, config.batch, config.training.label_smoothing) == (256, 64, 0.0)
    assert config.training.schedule == "cosine"
    assert LanguageModelConfig.from_dict(config.to_dict()) == config


def test_tokenisers_of_a_bundle_are_any_ones(tmp_path: Path) -> None:
    train(LanguageModelTask(), small_config({"steps": 2}), Files((write(tmp_path / "a.txt", TEXT),)), tmp_path / "run")
    tokenizer = PublishedTokenizer.load(tmp_path / "run" / "tokenizer.json")
    assert tokenizer.decode(tokenizer.encode("abc\n")) == "abc\n"
