"""A classifier from its files to its answers: learned, resumed to the same bits, loaded, used."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from labelled_sets import reviews, small_config, write_tsv

import heedful
from heedful.config import read_mapping
from heedful.data.text_batch import TextBatch
from heedful.errors import ConfigError
from heedful.tasks.bundle import BundleError
from heedful.tasks.classification.task import ClassificationTask
from heedful.tasks.hf_export import export_huggingface
from heedful.tasks.run import Files, train
from heedful.training.errors import Interrupted, ResumeError, ResumeWarning


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trained once for all."""
    folder = tmp_path_factory.mktemp("reviews")
    file = write_tsv(folder / "reviews.tsv", reviews(600))
    train(ClassificationTask(), small_config(), Files((file,)), folder / "run")
    return folder / "run"


def test_a_separable_task_is_learned(run: Path) -> None:
    validation = read_mapping(run / "metrics.json")["validation"]
    assert validation["n"] == 60
    assert validation["scores"]["accuracy"]["value"] >= 95
    assert validation["scores"]["macro_f1"]["value"] >= 95
    assert validation["scores"]["commonest"]["value"] == 50
    assert validation["scores"]["linear"]["value"] >= 95
    model = heedful.load(run, "classification")
    rows = reviews(200, seed=9)
    answers = model.predict([text for text, _ in rows])
    assert sum(next(iter(answer)) == label for answer, (_, label) in zip(answers, rows, strict=True)) >= 190
    assert all(sum(answer.values()) == pytest.approx(1) and set(answer) == {"neg", "pos"} for answer in answers)


@pytest.fixture(scope="module")
def combined(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with enough validation texts to weigh the linear model, and too few steps for the network to win."""
    folder = tmp_path_factory.mktemp("combined")
    file = write_tsv(folder / "reviews.tsv", reviews(1200))
    train(ClassificationTask(), small_config({"steps": 20}), Files((file,)), folder / "run")
    return folder / "run"


def test_the_answer_is_the_mean_that_validates_best(combined: Path) -> None:
    model = heedful.load(combined, "classification")
    weight, ngrams = model.settings.ngram_weight, model.ngrams
    assert ngrams is not None
    assert 0 < weight <= 1
    texts = [text for text, _ in reviews(5, seed=3)]
    network = torch.stack(model.outputs(texts)).softmax(dim=-1)
    linear = ngrams.log_probabilities([(text,) for text in texts]).exp()
    expected = network ** (1 - weight) * linear**weight
    expected /= expected.sum(dim=-1, keepdim=True)
    for answer, row in zip(model.predict(texts), expected.tolist(), strict=True):
        assert [answer[label] for label in model.settings.labels] == pytest.approx(row, abs=1e-5)
    metrics = read_mapping(combined / "metrics.json")
    scores = {name: score["value"] for name, score in metrics["validation"]["scores"].items()}
    assert scores["accuracy"] >= scores["linear"] - 1 >= scores["network"]
    assert f"n-grams {100 * weight:.0f} %" in (combined / "README.md").read_text()
    for sample in metrics["samples"][:10]:
        assert 100 * model.predict([sample["source"]])[0][sample["output"]] == pytest.approx(sample["score"], abs=1e-3)


def test_the_export_says_that_the_network_stands_alone(combined: Path, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="the export has the network alone"):
        export_huggingface(combined, tmp_path / "out")


def test_a_bundle_without_its_linear_model_is_refused(combined: Path, tmp_path: Path) -> None:
    model = heedful.load(combined, "classification")
    model.save(tmp_path / "copy")
    (tmp_path / "copy" / "ngrams.safetensors").write_bytes(b"damaged")
    with pytest.raises(BundleError, match=r"ngrams\.safetensors"):
        heedful.load(tmp_path / "copy", "classification")


def test_without_combine_the_network_answers_alone(tmp_path: Path) -> None:
    file = write_tsv(tmp_path / "reviews.tsv", reviews(1200))
    train(ClassificationTask(), small_config({"steps": 3}, combine=False), Files((file,)), tmp_path / "run")
    assert heedful.load(tmp_path / "run", "classification").ngrams is None


def test_evaluation_matches_predict(run: Path) -> None:
    """The loader's batches of ids, and texts handed in one by one."""
    model, metrics = heedful.load(run, "classification"), read_mapping(run / "metrics.json")
    assert len(metrics["samples"]) == 60
    for sample in metrics["samples"]:
        (answer,) = model.predict([sample["source"]])
        label, share = next(iter(answer.items()))
        assert label == sample["output"]
        assert 100 * share == pytest.approx(sample["score"], abs=1e-3)
        assert sample["exact"] == (sample["reference"] == label)
    confusion = np.array(metrics["validation"]["confusion"])
    assert confusion.trace() == sum(sample["exact"] for sample in metrics["samples"])


def test_run_folder_is_complete(run: Path) -> None:
    card = (run / "README.md").read_text()
    for expected in (
        "2 classes: neg, pos",
        "| accuracy | ",
        "accuracy of always",
        "accuracy of a linear model over n-grams",
        "| neg | 30 |",
        "32 tokens",
    ):
        assert expected in card
    assert heedful.load(run, "classification").settings.labels == ("neg", "pos")
    assert (run / "report.html").stat().st_size > 1000


def test_none_one_and_ten_thousand_rows(run: Path) -> None:
    model = heedful.load(run, "classification")
    assert model.predict([]) == []
    (single,) = model.predict(["the film was great"])
    many = model.predict(["the film was great", "a sad dog"] * 5000)
    assert len(many) == 10_000
    assert all(answer["pos"] == pytest.approx(single["pos"], abs=1e-5) for answer in many[::2])


def test_long_text_is_truncated_with_a_warning(run: Path) -> None:
    model = heedful.load(run, "classification")
    long = "the film was great " + "the dog " * 100
    with pytest.warns(UserWarning, match="1 of 2 texts are longer than 32 tokens"):
        answers = model.predict(["great", long])
    assert model.prepared(long).ids == [*model.tokenizer.encode(long)[:31], model.tokenizer.id_of("</s>")]
    assert next(iter(answers[1])) == "pos"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(["great"])  # the count is of one call
    model.settings = model.settings.changed(cut=False)
    with pytest.raises(heedful.errors.DataError, match=r"text 1: it has .* tokens, and this model reads at most 32"):
        model.predict([long])
    model.settings = model.settings.changed(cut=True, texts=None)
    with pytest.raises(heedful.errors.DataError, match="at most 32"):
        model.predict([("great " * 20, "the dog " * 20)])


def test_truncated_training_texts_are_counted(tmp_path: Path) -> None:
    rows = reviews(100)
    rows[7] = ("a great dog " * 30, "pos")
    file = write_tsv(tmp_path / "a.tsv", rows)
    config = small_config({"steps": 1}, data={"max_tokens": 20})
    train(ClassificationTask(), config, Files((file,)), tmp_path / "run")
    (note,) = read_mapping(tmp_path / "run/data/reading.json")["train"]["notes"]
    assert note == f"texts truncated at 20 tokens: 1 ({file}:9)"
    assert heedful.load(tmp_path / "run", "classification").limit == 20


def test_a_run_that_is_stopped_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    file = write_tsv(tmp_path / "a.tsv", reviews(120))
    config = small_config({"epochs": None, "steps": 12, "save_every": 3, "log_every": 1})
    files = Files((file,))
    train(ClassificationTask(), config, files, tmp_path / "whole")

    def stop_at_seven(job: Any) -> list[Any]:
        def observer(event: Any) -> None:
            if getattr(event, "step", 0) == 7:
                raise Interrupted("stopped", 1)

        return [observer]

    with pytest.raises(Interrupted):
        train(ClassificationTask(), config, files, tmp_path / "parts", watch=stop_at_seven)
    train(ClassificationTask(), config, files, tmp_path / "parts", resume=True)
    whole, parts = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "parts"))
    assert whole == parts
    changed = small_config({"epochs": None, "steps": 12}, tokenizer={"vocab_size": 350})
    with pytest.raises(ResumeError, match="tokenizer settings"):
        train(ClassificationTask(), changed, files, tmp_path / "parts", resume=True, allow_changes=True)


def test_new_data_keeps_tokenizer_and_classes(tmp_path: Path) -> None:
    rows = reviews(100)
    file = write_tsv(tmp_path / "a.tsv", rows)
    config = small_config({"epochs": None, "steps": 4})
    train(ClassificationTask(), config, Files((file,)), tmp_path / "run")
    before = (tmp_path / "run/data/tokenizer.json").read_bytes()
    write_tsv(tmp_path / "a.tsv", [*rows, *(("brand new words", "pos") for _ in range(20))])
    longer = config.changed(training=config.training.changed(steps=6))
    with pytest.warns(ResumeWarning, match="training data was"):
        train(ClassificationTask(), longer, Files((file,)), tmp_path / "run", resume=True, allow_changes=True)
    assert (tmp_path / "run/data/tokenizer.json").read_bytes() == before
    write_tsv(tmp_path / "a.tsv", [*rows, ("odd", "third")])
    with pytest.raises(heedful.errors.DataError, match="the label 'third'"):
        train(ClassificationTask(), longer, Files((file,)), tmp_path / "run", resume=True, allow_changes=True)


def test_two_texts_are_told_apart(tmp_path: Path) -> None:
    """The label says which of the two holds the telling word."""
    rows = ["premise\thypothesis\tlabel"]
    for number in range(300):
        first, second = (f"dog {number}", "great town")[:: -1 if number % 2 else 1]
        rows.append(f"{first}\t{second}\t{number % 2}")
    (tmp_path / "a.tsv").write_text("\n".join(rows) + "\n")
    config = small_config({"epochs": 8})
    model = train(ClassificationTask(), config, Files((str(tmp_path / "a.tsv"),)), tmp_path / "run")
    first, second = model.predict([("dog 3", "great town"), ("great town", "dog 3")])
    assert first["0"] > 0.9
    assert second["1"] > 0.9
    assert model.prepared(("dog 3", "great town")).segments.count(1) > 2


def test_settings_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not a text encoder"):
        small_config(model={"preset": "gpt2-tiny"})
    with pytest.raises(ConfigError, match="max_tokens=40 is more than the model's max_length=32"):
        small_config(data={"max_tokens": 40})


def test_overwriting_leaves_nothing_of_the_older_run(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "run")
    (tmp_path / "run/data/start.safetensors").write_bytes(b"old")
    file = write_tsv(tmp_path / "a.tsv", reviews(100))
    train(ClassificationTask(), small_config({"steps": 1}), Files((file,)), tmp_path / "run", overwrite=True)
    assert not (tmp_path / "run/data/start.safetensors").exists()


def test_the_loss_is_the_mean_of_minus_log_probabilities(run: Path) -> None:
    """And a batch's padding, rows and places, counts for nothing."""
    task = ClassificationTask()
    data = task.open(small_config(), run / "data")
    job = task.bind(small_config(), data)
    module = heedful.load(run, "classification").module
    expected = []
    for row in range(len(data.valid)):
        ids, (label, _) = data.valid[row]
        logits = module(torch.tensor(ids.astype(np.int64))[None])
        expected.append(-logits.log_softmax(dim=-1)[0, int(label)].item())
    assert job.validate(module)["loss"] == pytest.approx(np.mean(expected), abs=1e-5)
    batches = list(job.validation.in_order())
    sums = [job.loss(module, batch) for batch in batches]
    assert sum(float(loss.plain) for loss in sums) == pytest.approx(np.sum(expected), abs=1e-3)
    assert sum(int(loss.n) for loss in sums) == len(data.valid)
    padded = TextBatch.of(data.valid, [4, 7], (5, 32))
    assert int(job.loss(module, padded).n) == 2
    assert float(job.loss(module, padded).plain) == pytest.approx(expected[4] + expected[7], abs=1e-5)


def test_evaluate_matches_predict_on_a_new_file(run: Path, tmp_path: Path) -> None:
    model, rows = heedful.load(run, "classification"), reviews(120, seed=5)
    file = write_tsv(tmp_path / "test.tsv", [*rows, ("", "pos")])
    evaluation = ClassificationTask().evaluate(model, Files((file,)))
    named = [next(iter(answer)) for answer in model.predict([text for text, _ in rows])]
    right = sum(name == label for name, (_, label) in zip(named, rows, strict=True))
    assert evaluation["n"] == 120
    assert evaluation["scores"]["accuracy"]["value"] == pytest.approx(100 * right / 120)
    assert evaluation["verdict"] == [f"left out: empty text: 1 ({file}:122)"]
    write_tsv(tmp_path / "test.tsv", [*rows, ("strange", "neutral")])
    with pytest.raises(heedful.errors.DataError, match=r"test\.tsv:122: the label 'neutral' does not occur"):
        ClassificationTask().evaluate(model, Files((file,)), strict=True)
    again = ClassificationTask().evaluate(model, Files((file,)))
    assert (again["scores"], again["n"]) == (evaluation["scores"], 120)
    assert (again["refused"]["count"], again["refused"]["of"]) == (1, 121)
    assert again["refused"]["first"][0].startswith(f"{file}:122: the label 'neutral' does not occur")
    write_tsv(tmp_path / "test.tsv", [("strange", "neutral")])
    with pytest.raises(heedful.errors.DataError, match=r"refuses every example; the first: .*:2: the label 'neutral'"):
        ClassificationTask().evaluate(model, Files((file,)))
    write_tsv(tmp_path / "test.tsv", [("", "pos")])
    with pytest.raises(heedful.errors.DataError, match="no labeled text"):
        ClassificationTask().evaluate(model, Files((file,)))


def test_the_page_shows_confusion_samples_and_attention(run: Path) -> None:
    model, metrics = heedful.load(run, "classification"), read_mapping(run / "metrics.json")
    sections = ClassificationTask().report_sections(model, metrics, run)
    assert sections["confusion"].counts == metrics["validation"]["confusion"]
    assert len(sections["samples"]) == 60
    for seen in sections["attention"]:
        weights = np.array(seen.weights)  # (H, T, T)
        assert weights.shape == (2, len(seen.target), len(seen.source))
        np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-5)
        assert seen.source[0] == "<s>"
