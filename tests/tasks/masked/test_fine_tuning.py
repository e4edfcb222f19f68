"""What was learned before is carried over exactly, and helps."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import torch

import heedful
from heedful.config import read_mapping
from heedful.errors import ConfigError, DataError
from heedful.families.weights import WeightsError, weights_of
from heedful.tasks.classification.task import ClassificationConfig, ClassificationTask
from heedful.tasks.masked.task import MaskedConfig, MaskedTask
from heedful.tasks.model_import import import_model
from heedful.tasks.run import Files, train
from heedful.tasks.text_encoder_task import PretrainedEncoder, load_start_weights
from heedful.training.errors import ResumeWarning
from published_folders import bert, gpt2, publish, roberta

SIZE: dict[str, Any] = {"d_model": 32, "n_heads": 2, "d_ff": 64, "n_layers": 1, "max_length": 16}
STILL = {"dropout": 0.0, "attention_dropout": 0.0}
TRAINING = {"warmup_steps": 20, "batch_tokens": 1024, "device": "cpu", "validate_every": 0, "weight_decay": 0.0}
PIECES = {"vocab_size": 400, "min_frequency": 1}
VOCABULARY = [first + second for first in "bdfgklmnprst" for second in "aeiou"]


class Topics:
    """Two topics with words of their own; a text has words of one."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        sample = self.draw.sample(VOCABULARY, len(VOCABULARY))
        self.topic_words = sample[:30], sample[30:]

    def text(self, topic: int) -> str:
        return " ".join(self.draw.choice(self.topic_words[topic]) for _ in range(6))

    def plain(self, path: Path, count: int) -> str:
        path.write_text("".join(f"{self.text(number % 2)}\n" for number in range(count)))
        return str(path)

    def labelled(self, path: Path, count: int) -> str:
        rows = "".join(f"{self.text(number % 2)}\t{'ab'[number % 2]}\n" for number in range(count))
        path.write_text(f"text\tlabel\n{rows}")
        return str(path)


@pytest.fixture(scope="module")
def topics() -> Topics:
    return Topics(0)


@pytest.fixture(scope="module")
def pretrained(topics: Topics, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reader that has seen many texts, and no label."""
    folder = tmp_path_factory.mktemp("pretrained")
    config = MaskedConfig.from_dict(
        {
            "tokenizer": PIECES,
            "model": SIZE | STILL,
            "training": {**TRAINING, "steps": 800, "learning_rate": 2e-3},
        }
    )
    train(MaskedTask(), config, Files((topics.plain(folder / "texts.txt", 1500),)), folder / "run")
    return folder / "run"


def classifier(values: dict[str, Any], files: Files, out: Path) -> float:
    training = {**TRAINING, "epochs": 60, "learning_rate": 3e-3, "warmup_steps": 5}
    config = ClassificationConfig.from_dict({"training": training, **values})
    train(ClassificationTask(), config, files, out)
    return float(read_mapping(out / "metrics.json")["validation"]["scores"]["accuracy"]["value"])


def test_four_labels_are_enough_for_a_reader_that_has_read(topics: Topics, pretrained: Path, tmp_path: Path) -> None:
    few, many = topics.labelled(tmp_path / "few.tsv", 4), topics.labelled(tmp_path / "many.tsv", 200)
    files = Files((few,), (many,))
    scratch = classifier({"model": SIZE | STILL, "tokenizer": PIECES}, files, tmp_path / "scratch")
    tuned = classifier({"base": str(pretrained)}, files, tmp_path / "tuned")
    assert tuned >= 95
    assert tuned >= scratch + 5
    base, model = heedful.load(pretrained), heedful.load(tmp_path / "tuned")
    assert model.tokenizer.fingerprint == base.tokenizer.fingerprint
    assert model.config == base.config.changed(head="classes", n_classes=2)


def same_below_the_head(base: torch.nn.Module, module: torch.nn.Module, size: int) -> None:
    """By what both make of some tokens before their heads."""
    tokens = torch.randint(3, size, (2, 11), generator=torch.Generator().manual_seed(5))
    with torch.no_grad():
        outputs = [part.eval().encoder(*part.embedding(tokens)) for part in (base, module)]  # type: ignore[operator]
    assert torch.equal(*outputs)


@pytest.mark.parametrize("kind", ["a bundle of masked words", "a published BERT", "published classes", "a RoBERTa"])
def test_all_below_the_head_is_carried_over(kind: str, pretrained: Path, topics: Topics, tmp_path: Path) -> None:
    published = {
        "a published BERT": lambda: bert(),
        "published classes": lambda: bert("ForSequenceClassification", num_labels=5),
        "a RoBERTa": lambda: roberta(),
    }
    folder = publish(tmp_path / "published", published[kind]()) if kind in published else pretrained
    config = ClassificationConfig.from_dict({"base": str(folder), "training": {**TRAINING, "steps": 1}})
    task, files = ClassificationTask(), Files((topics.labelled(tmp_path / "a.tsv", 60),))
    (tmp_path / "data").mkdir()
    data, _ = task.prepare(config, files, tmp_path / "data", keep=False)
    module = task.bind(config, data).module
    base = PretrainedEncoder.read(folder)
    same_below_the_head(base.module, module, base.config.vocab_size)
    named = {name for name in weights_of(module) if not name.startswith("head.")}
    assert named == set(data.start_weights() or ())
    assert {name for name in weights_of(base.module) if not name.startswith("head.")} == named


def test_an_imported_bundle_serves_as_the_folder_it_came_from(topics: Topics, tmp_path: Path) -> None:
    folder = publish(tmp_path / "published", bert())
    import_model(folder, tmp_path / "bundle")
    file = topics.labelled(tmp_path / "a.tsv", 60)
    for name, base in (("one", folder), ("two", tmp_path / "bundle")):
        values = {"base": str(base), "training": {**TRAINING, "steps": 3}}
        train(ClassificationTask(), ClassificationConfig.from_dict(values), Files((file,)), tmp_path / name)
    first, second = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("one", "two"))
    assert first == second


def test_the_usual_settings_with_a_base_are_gentler(pretrained: Path) -> None:
    tuned = ClassificationConfig.from_dict({"base": str(pretrained), "model": {"dropout": 0.3}})
    assert (tuned.training.learning_rate, tuned.training.epochs) == (5e-5, 3)
    assert ClassificationConfig.from_dict({}).training.learning_rate == 5e-4
    assert tuned.model.to_dict()["dropout"] == 0.3
    assert ClassificationConfig.from_dict(tuned.to_dict()) == tuned  # as run.yaml gives it back


@pytest.mark.parametrize("kind", [ClassificationConfig, MaskedConfig])
def test_given_limit_replaces_default_limit(kind: type[Any], pretrained: Path) -> None:
    """Not earlier with the steps or epochs that are usual."""
    for base in ({}, {"base": str(pretrained)}):
        for limits in ({"steps": 7}, {"epochs": 2}, {"steps": 7, "epochs": 2}):
            training = kind.from_dict({**base, "training": limits}).training
            assert (training.steps, training.epochs) == (limits.get("steps"), limits.get("epochs"))


def test_resuming_does_not_need_the_base(topics: Topics, tmp_path: Path) -> None:
    """Its weights were copied when the run began."""
    folder = publish(tmp_path / "published", bert())
    values = {"base": str(folder), "training": {**TRAINING, "steps": 4, "save_every": 2}}
    config = ClassificationConfig.from_dict(values)
    file = topics.labelled(tmp_path / "a.tsv", 60)
    train(ClassificationTask(), config, Files((file,)), tmp_path / "run")
    folder.rename(tmp_path / "elsewhere")
    longer = config.changed(training=config.training.changed(steps=6))
    with pytest.warns(ResumeWarning, match=r"training\.steps was 4"):
        train(ClassificationTask(), longer, Files((file,)), tmp_path / "run", resume=True, allow_changes=True)
    assert read_mapping(tmp_path / "run/metrics.json")["training"]["steps"] == 6


def test_masked_training_goes_on_from_a_published_model(topics: Topics, tmp_path: Path) -> None:
    """Its head too: before the first step, it guesses as the published one does."""
    folder = publish(tmp_path / "published", bert())
    config = MaskedConfig.from_dict({"base": str(folder), "training": {**TRAINING, "steps": 1}})
    task = MaskedTask()
    (tmp_path / "data").mkdir()
    data, _ = task.prepare(config, Files((topics.plain(tmp_path / "a.txt", 60),)), tmp_path / "data", keep=False)
    module = task.bind(config, data).module
    tokens = torch.randint(5, 200, (2, 9))
    with torch.no_grad():
        assert torch.equal(module.eval()(tokens), PretrainedEncoder.read(folder).module.eval()(tokens))


def test_what_cannot_be_a_base_is_refused(pretrained: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is a model already; leave out the preset"):
        ClassificationConfig.from_dict({"base": str(pretrained), "model": {"preset": "bert-tiny"}})
    with pytest.raises(heedful.errors.HeedfulError, match="is not there"):
        ClassificationConfig.from_dict({"base": str(tmp_path / "nowhere")})
    with pytest.raises(ConfigError, match="is not a text encoder"):
        PretrainedEncoder.read(publish(tmp_path / "gpt2", gpt2()))
    folder = publish(tmp_path / "bert", bert())
    (folder / "tokenizer.json").unlink()
    with pytest.raises(DataError, match=r"no tokenizer\.json"):
        PretrainedEncoder.read(folder)
    fewer = bert()
    fewer.resize_token_embeddings(50)
    small = publish(tmp_path / "small", fewer)
    with pytest.raises(DataError, match="do not belong together"):
        PretrainedEncoder.read(small)


def test_weights_of_another_size_change_nothing(pretrained: Path) -> None:
    weights = PretrainedEncoder.read(pretrained).weights("classes")
    module = heedful.build("bert-tiny", vocab_size=400, head="classes")
    before = {name: tensor.clone() for name, tensor in weights_of(module).items()}
    with pytest.raises(WeightsError, match="of another model"):
        load_start_weights(module, weights)
    with pytest.raises(WeightsError, match="is missing"):
        load_start_weights(
            PretrainedEncoder.read(pretrained).module, {name: weights[name] for name in list(weights)[1:]}
        )
    assert all(torch.equal(tensor, before[name]) for name, tensor in weights_of(module).items())
