"""Training that goes on from other people's models: their tokeniser, their tokens, all of their weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from toy_rewriting import small_config, write_jsonl

import heedful
from heedful.config import read_mapping
from heedful.errors import ConfigError, DataError
from heedful.tasks.model_import import import_model
from heedful.tasks.run import Files, train
from heedful.tasks.text_to_text.data import read_base
from heedful.tasks.text_to_text.task import TextToTextTask
from heedful.training.errors import ResumeWarning
from published_folders import bart, bert, gpt2, marian, publish, t5, theirs

NOUNS = ["cat", "dog", "book", "school", "garden", "water"]
ROWS = [
    {"source": f"Where is the {first}? It isn't a {second}.", "target": f"The {first} and the {second}"}
    for first in NOUNS
    for second in NOUNS
]
BART = {"decoder_start_token_id": 2, "eos_token_id": 2, "pad_token_id": 1, "bos_token_id": 0, "forced_bos_token_id": 0}
MODELS: dict[str, tuple[Any, dict[str, Any]]] = {
    "t5": (t5, {"decoder_start_token_id": 0, "eos_token_id": 1, "pad_token_id": 0}),
    "bart": (bart, BART | {"num_beams": 3, "min_length": 20, "max_length": 30}),
    "marian": (marian, {"decoder_start_token_id": 1, "eos_token_id": 2, "pad_token_id": 1}),
}


@pytest.fixture
def file(tmp_path: Path) -> str:
    return write_jsonl(tmp_path / "rows.jsonl", ROWS)


@pytest.mark.parametrize("kind", MODELS)
def test_the_first_loss_is_that_of_transformers(kind: str, file: str, tmp_path: Path) -> None:
    """Its labels are the published tokeniser's ids; what begins, ends and pads is the published model's."""
    make, tokens = MODELS[kind]
    folder = publish(tmp_path / "theirs", make(), generation=tokens)
    config = small_config(base=str(folder))
    task = TextToTextTask()
    (tmp_path / "data").mkdir()
    data, _ = task.prepare(config, Files((file,)), tmp_path / "data", keep=False)
    job = task.bind(config, data)
    model, tokenizer = theirs(folder, "AutoModelForSeq2SeqLM")
    costs, count = 0.0, 0
    for one in job.valid_examples(100):
        labels = tokenizer(one.target, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            found = model(**tokenizer(one.text, return_tensors="pt"), labels=labels)
        costs, count = costs + float(found.loss) * labels.numel(), count + labels.numel()
    assert job.validate(job.module.eval())["loss"] == pytest.approx(costs / count, rel=1e-5)


def test_a_forced_first_token_is_part_of_the_target_once(file: str, tmp_path: Path) -> None:
    for number, first in enumerate((0, 7)):
        folder = publish(tmp_path / f"t{number}", bart(), generation=BART | {"forced_bos_token_id": first})
        (tmp_path / f"d{number}").mkdir()
        config, task = small_config(base=str(folder)), TextToTextTask()
        data, _ = task.prepare(config, Files((file,)), tmp_path / f"d{number}", keep=False)
        (ids, text), one = data.valid[0], task.bind(config, data).valid_examples(1)[0]
        published = data.tokenizer.encode(one.target)
        assert published[0] == 0
        assert text.tolist() == ([7] if first else []) + published[:-1]
        assert ids.tolist() == data.tokenizer.encode(one.text)[:-1]
        batch = next(iter(task.bind(config, data).batches.epoch(0)))
        assert (int(batch.target_in[0, 0]), int(batch.target_out[0, 0])) == (2, first)
        assert int(batch.target_in[0, -1]) in (1, int(batch.target_out[0, -2]))


@pytest.mark.parametrize("kind", MODELS)
def test_a_published_model_is_trained_on_and_keeps_its_tokeniser(kind: str, file: str, tmp_path: Path) -> None:
    make, tokens = MODELS[kind]
    folder = publish(tmp_path / "theirs", make(), generation=tokens)
    training = {"steps": 100, "learning_rate": 1e-2, "warmup_steps": 5, "ema_decay": 0.9}
    config = small_config(training, base=str(folder), generation={"length_penalty": 0.5})
    train(TextToTextTask(), config, Files((file,)), tmp_path / "run")
    model = heedful.load(tmp_path / "run", "text-to-text")
    base = read_base(folder)
    assert model.tokenizer.fingerprint == base.tokenizer.fingerprint
    assert model.settings.tokens == base.settings.tokens
    assert model.config == base.config
    own = model.generation
    assert (own.beam, own.length_penalty) == (tokens.get("num_beams", 1), 0.5)
    job = TextToTextTask().bind(config, TextToTextTask().open(config, tmp_path / "run/data"))
    longest = int(job.data.train.lengths[:, 1].max()) + 1
    assert own.min_new_tokens == 0
    assert own.max_new_tokens is not None
    assert longest < own.max_new_tokens < 2 * longest + 20 < config.target_limit  # from the data
    before, after = (job.validate(module)["loss"] for module in (job.module.eval(), model.module))
    assert after < before - 0.5
    assert len(model.predict(["The cat", "Where is it?"], beam=1)) == 2


def test_a_run_begins_from_a_bundle_and_goes_on_without_it(file: str, tmp_path: Path) -> None:
    folder = publish(tmp_path / "theirs", t5(), generation=MODELS["t5"][1])
    model = import_model(folder, tmp_path / "base")
    model.settings = model.settings.changed(prefix="say: ")
    model.save(tmp_path / "base")
    config = small_config({"steps": 2, "save_every": 1}, base=str(tmp_path / "base"))
    assert (config.prefix, config.training.learning_rate) == ("say: ", 5e-3)
    train(TextToTextTask(), config, Files((file,)), tmp_path / "run")
    (tmp_path / "base").rename(tmp_path / "elsewhere")
    again = type(config).from_dict(config.to_dict())
    longer = again.changed(training=config.training.changed(steps=3))
    with pytest.warns(ResumeWarning, match=r"training\.steps was 2"):
        train(TextToTextTask(), longer, Files((file,)), tmp_path / "run", resume=True, allow_changes=True)
    assert read_mapping(tmp_path / "run/metrics.json")["training"]["steps"] == 3
    (ids,) = heedful.load(tmp_path / "run", "text-to-text").inputs("The cat")
    assert ids == heedful.load(tmp_path / "run", "text-to-text").tokenizer.encode("say: The cat")


def test_what_a_tokeniser_does_not_know_is_told(tmp_path: Path) -> None:
    """A T5 has no bytes to spell with: it would learn to write nothing."""
    folder = publish(tmp_path / "theirs", t5(), generation=MODELS["t5"][1])
    rows = [*ROWS, {"source": "The cat", "target": "A 鼠 plays"}]
    (tmp_path / "data").mkdir()
    file = write_jsonl(tmp_path / "a.jsonl", rows)
    _, readings = TextToTextTask().prepare(
        small_config(base=str(folder)), Files((file,), (file_of(tmp_path),)), tmp_path / "data", keep=False
    )
    notes = readings.to_dict()["train"]["notes"]
    assert notes == [f"targets with characters that the tokenizer does not know: 1 ({file}:37)"]


def file_of(folder: Path) -> str:
    return write_jsonl(folder / "valid.jsonl", [{"source": "Where is it?", "target": "In the garden!"}])


def test_what_cannot_be_a_base_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="gpt2, which has no encoder and decoder"):
        read_base(publish(tmp_path / "gpt2", gpt2()))
    import_model(publish(tmp_path / "bert", bert()), tmp_path / "masked")
    with pytest.raises(ConfigError, match="a model for masked-lm, and not for text-to-text"):
        read_base(tmp_path / "masked")
    endless = publish(tmp_path / "endless", t5(), generation=MODELS["t5"][1] | {"eos_token_id": 5})
    with pytest.raises(DataError, match="does not add the model's end token"):
        read_base(endless)
    folder = publish(tmp_path / "t5", t5(), generation=MODELS["t5"][1])
    with pytest.raises(ConfigError, match="is a model already; leave out the preset"):
        small_config(base=str(folder), model={"preset": "t5-tiny"})
    assert np.isclose(small_config(base=str(folder), model={"dropout": 0.3}).model.to_dict()["dropout"], 0.3)
