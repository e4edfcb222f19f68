"""Tagging: entities that must be learned, words and tokens by hand, and checkpoints of transformers."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import numpy as np
import pytest
import torch

import heedful
import published_folders as published
from heedful.data.published_tokenizer import EncodedWindow
from heedful.errors import DataError
from heedful.tasks.hf_export import export_huggingface
from heedful.tasks.model_import import import_model
from heedful.tasks.tagging import Tagger
from heedful.tasks.tagging.predictor import continue_within_tokens, first_tokens, word_probabilities
from published_folders import publish, theirs
from shell import heedful as shell

SYLLABLES = ("ka", "lo", "mi", "ne", "pu", "ra")
PEOPLE, PLACES, OTHERS = (
    [first + second + two for second in SYLLABLES for two in SYLLABLES] for first in ("A", "B", "d")
)
SETTINGS = (
    *("training.batch_tokens=1024", "training.steps=120", "training.learning_rate=1e-3", "training.warmup_steps=20"),
    *("training.validate_every=60", "model.dropout=0.0", "model.attention_dropout=0.0"),
)
LABELS = {"id2label": {0: "O", 1: "B-PER", 2: "I-PER"}, "label2id": {"O": 0, "B-PER": 1, "I-PER": 2}}


def drawn(draw: Random) -> list[tuple[str, str]]:
    """Words, people of one name or two, and places; a place after "near" is none."""
    sentence = []
    for _ in range(draw.randint(2, 5)):
        kind = draw.choice(["person", "place", "near", "word"])
        if kind == "person":
            names = draw.choices(PEOPLE, k=draw.randint(1, 2))
            sentence += [(name, "I-PER" if place else "B-PER") for place, name in enumerate(names)]
            sentence.append((draw.choice(OTHERS), "O"))  # so that two people never stand side by side
        elif kind == "place":
            sentence += [("in", "O"), (draw.choice(PLACES), "B-LOC")]
        elif kind == "near":
            sentence += [("near", "O"), (draw.choice(PLACES), "O")]
        else:
            sentence.append((draw.choice(OTHERS), "O"))
    return sentence


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, draw = tmp_path_factory.mktemp("entities"), Random(0)
    for name, count in (("train", 800), ("test", 150)):
        sentences = ("".join(f"{word} x {tag}\n" for word, tag in drawn(draw)) for _ in range(count))
        (folder / f"{name}.conll").write_text("\n".join(sentences), encoding="utf-8")
    settings = [word for setting in SETTINGS for word in ("--set", setting)]
    done = shell(
        *("train", "tagging", "--data", folder / "train.conll", "--preset", "bert-tiny"),
        *settings,
        *("--out", folder / "run"),
    )
    assert done.code == 0, done.err
    return folder


def test_entities_are_learned(run: Path) -> None:
    done = shell("evaluate", run / "run", "--data", run / "test.conll", "--out", run / "scores.json")
    assert done.code == 0, done.err
    results = json.loads((run / "scores.json").read_text())
    scores = results["scores"]
    assert scores["f1"]["value"] >= 95
    lines = [line.split()[:2] for line in done.out.splitlines()]
    assert all([row["label"], str(row["n"])] in lines for row in results["classes"])
    words, right = np.sum(results["confusion"]), np.trace(results["confusion"])
    assert 100 * right / words == pytest.approx(scores["accuracy"]["value"])
    validation = json.loads((run / "run" / "metrics.json").read_text())["validation"]["scores"]
    assert validation["baseline"]["value"] < validation["f1"]["value"]  # places near something need their context


def test_text_and_word_list_have_the_same_entities(run: Path) -> None:
    model = heedful.load(run / "run", "tagging")
    text = "Akalo Amine dkaka in Bpura near Bkaka"
    (spans,) = model.predict([text])
    assert [(span["label"], span["text"]) for span in spans] == [("PER", "Akalo Amine"), ("LOC", "Bpura")]
    assert all(text[span["start"] : span["end"]] == span["text"] for span in spans)
    (listed,) = model.predict([text.split()])
    assert listed == spans
    assert model.validation_error("  ") == "it is empty, so there is no word to tag"
    with pytest.raises(DataError, match="text 2"):
        model.predict([text, ""])


def test_a_long_text_is_read_in_windows(run: Path) -> None:
    model = heedful.load(run / "run", "tagging")
    text = "in Bpura dkaka " * 30
    model.settings = model.settings.changed(max_tokens=24, stride=8)
    assert len(model.windows(text)) > 2
    (spans,) = model.predict([text])
    assert [span["text"] for span in spans] == ["Bpura"] * 30


def test_shell_tags_and_resumes(run: Path) -> None:
    done = shell("predict", run / "run", "-", stdin=b"Akalo dkaka in Bpura\n")
    assert (done.code, done.out) == (0, "Akalo/PER\tBpura/LOC\n")
    more = ("--resume", "--allow-changes", "--set", "training.steps=125")
    done = shell("train", "tagging", "--out", run / "run", *more)
    assert done.code == 0, done.err


def test_word_tag_comes_from_the_window_with_most_context() -> None:
    spans = [(0, 2), (3, 4), (4, 5)]
    near = EncodedWindow([0] * 5, [0] * 5, [None, (0, 1), (1, 2), (3, 5), None])
    far = EncodedWindow([0] * 3, [0] * 3, [None, (0, 1), None])
    assert first_tokens(spans, near) == [1, 3, 3]
    assert first_tokens(spans, far) == [1, None, None]
    logits = [torch.full((5, 2), 0.0), torch.full((3, 2), 0.0)]
    logits[0][1, 0], logits[0][3, 1], logits[1][1, 1] = 9.0, 9.0, 9.0
    shares = word_probabilities(spans, [far, near], logits[::-1])
    assert shares.argmax(axis=1).tolist() == [1, 1, 1]  # as much around it in both: the first window counts
    assert continue_within_tokens(["B-X", "B-X", "B-X"], spans, [near]) == ["B-X", "B-X", "I-X"]


def test_published_models_tag_as_in_transformers(tmp_path: Path) -> None:
    folder = publish(tmp_path / "theirs", published.bert("ForTokenClassification", **LABELS))
    imported = import_model(folder, tmp_path / "ours")
    assert isinstance(imported, Tagger)
    assert imported.settings.labels == ("O", "B-PER", "I-PER")
    export_huggingface(tmp_path / "ours", tmp_path / "back")
    text = "The cat reads in the garden."
    for name in ("theirs", "back"):
        model, tokenizer = theirs(tmp_path / name, "AutoModelForTokenClassification")
        inputs = tokenizer(text, return_tensors="pt")
        with torch.inference_mode():
            wanted = model(**inputs).logits[0]
        (output,) = imported.run_encoded([imported.prepared(text)])
        torch.testing.assert_close(output, wanted, atol=1e-5, rtol=0)
        assert model.config.id2label == LABELS["id2label"]
