"""Question answering: a task that must be learned, spans and probabilities by hand, and checkpoints of transformers."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import torch

import heedful
import published_folders as published
from heedful.data.published_tokenizer import EncodedWindow
from heedful.data.questions import AnswerSpan, QuestionExample
from heedful.errors import ConfigError, DataError
from heedful.tasks.hf_export import export_huggingface
from heedful.tasks.model_import import import_model
from heedful.tasks.question_answering import QuestionAnswerer
from heedful.tasks.question_answering.predictor import SpanScores, score_spans
from heedful.tasks.question_answering.task import QuestionAnsweringConfig, best_threshold
from published_folders import publish, theirs
from shell import heedful as shell

SYLLABLES = ("ka", "lo", "mi", "ne", "pu", "ra", "so", "ti")
KINDS = {
    question: [first + one + two for one in SYLLABLES for two in ("ba", "do", "fe", "gi")]
    for question, first in {"Who": "A", "Where": "B", "When": "C", "What": "D"}.items()
}
BEFORE = {"Where": "in", "When": "on"}
SETTINGS = (
    *("training.batch_tokens=1024", "training.steps=220", "training.learning_rate=1e-3", "training.warmup_steps=40"),
    *("training.validate_every=110", "model.dropout=0.0", "model.attention_dropout=0.0"),
)


def drawn(draw: Random) -> dict[str, Any]:
    """Somebody did something somewhere, at some time: of the last two, one may be missing."""
    values = {question: draw.choice(answers) for question, answers in KINDS.items()}
    order = draw.sample(list(BEFORE), 2)
    missing = draw.choice(order) if draw.random() < 0.3 else None
    sentences = [part for kind in order if kind != missing for part in (BEFORE[kind], values[kind])]
    question_kind = (
        missing if missing and draw.random() < 0.7 else draw.choice([kind for kind in KINDS if kind != missing])
    )
    context = " ".join([values["Who"], draw.choice(["saw", "bought", "lost"]), values["What"], *sentences]) + "."
    return {
        "question": f"{question_kind} was it?",
        "context": context,
        "answers": [] if question_kind == missing else [values[question_kind]],
    }


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, draw = tmp_path_factory.mktemp("answers"), Random(0)
    for name, count in (("train", 1200), ("valid", 120), ("test", 200)):
        rows = "".join(json.dumps(drawn(draw)) + "\n" for _ in range(count))
        (folder / f"{name}.jsonl").write_text(rows, encoding="utf-8")
    files = ("--data", folder / "train.jsonl", "--valid", folder / "valid.jsonl")
    settings = [word for setting in SETTINGS for word in ("--set", setting)]
    done = shell(*("train", "question-answering", *files, "--preset", "bert-tiny"), *settings, "--out", folder / "run")
    assert done.code == 0, done.err
    return folder


def test_training_learns_answers_and_refusals(run: Path) -> None:
    done = shell("evaluate", run / "run", "--data", run / "test.jsonl", "--out", run / "scores.json")
    assert done.code == 0, done.err
    scores = {name: score["value"] for name, score in json.loads((run / "scores.json").read_text())["scores"].items()}
    assert scores["exact_match"] >= 95
    assert scores["unanswerable"] >= 90
    metrics = json.loads((run / "run" / "metrics.json").read_text())
    assert metrics["validation"]["scores"]["baseline"]["value"] < 60  # the sentence most like the question


def test_answers_are_spans_of_the_context_with_probabilities(run: Path) -> None:
    model = heedful.load(run / "run", "question-answering")
    rows = [json.loads(line) for line in (run / "test.jsonl").read_text().splitlines()[:20]]
    items = [(row["question"], row["context"]) for row in rows]
    for (_, context), candidates in zip(items, model.candidates(items, 4), strict=True):
        for answer in candidates:
            if answer["start"] is not None:
                assert context[answer["start"] : answer["end"]] == answer["answer"]
        assert sum(answer["probability"] for answer in candidates) <= 1 + 1e-9
    single = [model.predict([item])[0] for item in items]
    batched = model.predict(items)
    assert [item_answer["answer"] for item_answer in single] == [item_answer["answer"] for item_answer in batched]
    assert [item_answer["probability"] for item_answer in single] == pytest.approx(
        [item_answer["probability"] for item_answer in batched], abs=1e-5
    )


def test_resumed_run_writes_report_and_card(run: Path) -> None:
    more = ("--resume", "--allow-changes", "--set", "training.steps=230")
    done = shell("train", "question-answering", "--out", run / "run", *more)
    assert done.code == 0, done.err
    card = (run / "run" / "README.md").read_text(encoding="utf-8")
    assert "It has learned to refuse" in card
    done = shell("report", run / "run", "--out", run / "again.html")
    assert (done.code, (run / "again.html").stat().st_size > 1000) == (0, True)


def test_the_shell_answers_lines_with_a_tab(run: Path) -> None:
    row = next(json.loads(line) for line in (run / "test.jsonl").read_text().splitlines() if '"answers": ["' in line)
    done = shell("predict", run / "run", "-", stdin=f"{row['question']}\t{row['context']}\n".encode())
    assert (done.code, done.out.strip() in row["context"]) == (0, True)
    done = shell("predict", run / "run", "-", stdin=b"no context\n")
    assert done.code == 1
    assert "FIRST<TAB>SECOND" in done.err


def test_a_long_context_is_read_in_windows(run: Path) -> None:
    model = heedful.load(run / "run", "question-answering")
    item = ("When was it?", "Akaba saw Dkaba in Bkaba on Ckaba.")
    (short,) = model.span_scores([item])
    assert item[1].index(".") in short.ends, "an answer can end before the full stop"
    model.settings = model.settings.changed(max_tokens=14, stride=4)
    windows = model.windows(item)
    assert len(windows) > 1
    (spans,) = model.span_scores([item])
    assert set(zip(spans.starts.tolist(), spans.ends.tolist(), strict=True)) <= set(
        zip(short.starts.tolist(), short.ends.tolist(), strict=True)
    )
    with pytest.raises(DataError, match="text 1: a question needs its context"):
        model.predict(["When?"])
    assert model.validation_error(("", "context")) == "the question is empty"


def window(context: str, tokens: list[str], first: int = 0) -> EncodedWindow:
    """[CLS] and a token for each word, from the first word on."""
    starts = [sum(len(word) + 1 for word in tokens[:place]) for place in range(len(tokens))]
    offsets = [(start, start + len(word)) for start, word in zip(starts, tokens, strict=True)][first:]
    return EncodedWindow([0] * (len(offsets) + 1), [0] * (len(offsets) + 1), [None, *offsets])


@pytest.mark.parametrize("seed", range(5))
def test_every_span_has_its_best_score_over_all_windows(seed: int) -> None:
    tokens = ["a", "bb", "ccc", "d", "ee"]
    context = " ".join(tokens)
    windows = [window(context, tokens[:4]), window(context, tokens, 2)]
    torch.manual_seed(seed)
    outputs = [torch.randn(len(part.ids), 2, dtype=torch.float64) for part in windows]
    spans = score_spans(context, windows, outputs, max_answer_tokens=2)
    expected: dict[tuple[int, int], float] = {}
    for part, output in zip(windows, outputs, strict=True):
        places = [(place, span) for place, span in enumerate(part.offsets) if span is not None]
        for (start, first), (other, last) in product(places, places):
            if 0 <= other - start < 2:
                key = first[0], last[1]
                expected[key] = max(expected.get(key, -np.inf), float(output[start, 0] + output[other, 1]))
    span_scores = dict(
        zip(zip(spans.starts.tolist(), spans.ends.tolist(), strict=True), spans.scores.tolist(), strict=True)
    )
    assert span_scores == pytest.approx(expected)
    assert spans.no_answer == pytest.approx(min(float(output[0].sum()) for output in outputs))


def test_no_answer_threshold_maximizes_f1(run: Path) -> None:
    draw = np.random.default_rng(0)
    context = "yes no"
    questions = [
        QuestionExample(str(row), "q", context, (AnswerSpan(0, "yes"),) if row % 3 else (), "f", row)
        for row in range(40)
    ]
    spans = [
        SpanScores(np.array([0]), np.array([3]), np.array([0.0]), draw.normal(1.0 - bool(example.answers), 1.0))
        for example in questions
    ]

    def right(threshold: float) -> int:
        return sum(
            (scores.margin > threshold) != bool(example.answers)
            for example, scores in zip(questions, spans, strict=True)
        )

    best = max(right(threshold) for threshold in np.linspace(-6, 6, 2000))
    assert right(best_threshold(questions, spans)) == best


def test_smoothing_is_refused_with_a_reason() -> None:
    with pytest.raises(ConfigError, match="label_smoothing must be 0"):
        QuestionAnsweringConfig.from_dict({"training": {"label_smoothing": 0.1}})


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_published_models_answer_as_in_transformers(family: str, tmp_path: Path) -> None:
    make = getattr(published, family)
    imported = import_model(publish(tmp_path / "theirs", make("ForQuestionAnswering")), tmp_path / "ours")
    assert isinstance(imported, QuestionAnswerer)
    export_huggingface(tmp_path / "ours", tmp_path / "back")
    item = ("Who reads?", "The cat reads in the garden.")
    (part,) = imported.windows(item)
    for folder in ("theirs", "back"):
        model, tokenizer = theirs(tmp_path / folder, "AutoModelForQuestionAnswering")
        inputs = tokenizer(*item, return_tensors="pt", return_token_type_ids=family == "bert")
        assert inputs["input_ids"][0].tolist() == part.ids
        with torch.inference_mode():
            wanted = model(**inputs)
        (output,) = imported.run_encoded([imported.prepared(item)])
        torch.testing.assert_close(output[:, 0], wanted.start_logits[0], atol=1e-5, rtol=0)
        torch.testing.assert_close(output[:, 1], wanted.end_logits[0], atol=1e-5, rtol=0)
