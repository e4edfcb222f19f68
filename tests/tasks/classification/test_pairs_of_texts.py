"""A classifier of two texts that belong together, in Python and in the shell: they are never taken for one."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from labelled_sets import reviews, small_config, write_tsv
from tokenizers import Tokenizer, processors

import heedful
from heedful.config import read_mapping
from heedful.data.labeled_texts import read_labeled_texts
from heedful.data.published_tokenizer import NAME, PublishedTokenizer
from heedful.data.report import TextReport
from heedful.data.store import TokenStore
from heedful.errors import DataError
from heedful.tasks.classification.task import ClassificationTask, targets
from heedful.tasks.run import Files, TrainingData, train
from heedful.tasks.text_encoder import EncodedText
from heedful.tasks.text_encoder_task import TextData, TextMetadata
from shell import heedful as shell


def write_pairs(path: Path, count: int = 300) -> str:
    """The label says which of the two holds the telling word."""
    rows = ["premise\thypothesis\tlabel"]
    for number in range(count):
        first, second = (f"dog {number}", "great town")[:: -1 if number % 2 else 1]
        rows.append(f"{first}\t{second}\t{number % 2}")
    path.write_text("\n".join(rows) + "\n")
    return str(path)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pairs")
    train(ClassificationTask(), small_config(), Files((write_pairs(folder / "a.tsv"),)), folder / "run")
    return folder / "run"


def test_a_line_is_split_at_its_tab(run: Path, tmp_path: Path) -> None:
    (tmp_path / "in.tsv").write_text("dog 3\tgreat town\ngreat town\tdog 3\n")
    done = shell("predict", run, tmp_path / "in.tsv", "--json", "--device", "cpu")
    assert done.code == 0, done.err
    probabilities = [json.loads(row)["probabilities"] for row in done.out.splitlines()]
    wanted = heedful.load(run, "classification", device="cpu").predict(
        [("dog 3", "great town"), ("great town", "dog 3")]
    )
    assert [next(iter(shares)) for shares in probabilities] == ["0", "1"]
    for mine, other in zip(probabilities, wanted, strict=True):
        assert mine == pytest.approx(other, abs=1e-6)


def test_of_a_table_with_names_the_two_texts_are_read(run: Path, tmp_path: Path) -> None:
    (tmp_path / "lines.tab").write_text("dog 3\tgreat town\ngreat town\tdog 3\n")
    (tmp_path / "named.tsv").write_text("label\thypothesis\tpremise\n0\tgreat town\tdog 3\n1\tdog 3\tgreat town\n")
    (tmp_path / "plain.csv").write_text("dog 3,great town,0\ngreat town,dog 3,1\n")
    lines, named, plain = (
        shell("predict", run, tmp_path / name, "--device", "cpu") for name in ("lines.tab", "named.tsv", "plain.csv")
    )
    assert (lines.code, lines.out, lines.err) == (0, "0\n1\n", "")
    assert (named.code, named.out) == (0, lines.out)
    assert "reads premise, hypothesis, not label" in " ".join(named.err.split())
    assert (plain.code, plain.out) == (0, lines.out)
    assert "reads column 1 and 2 of 3" in " ".join(plain.err.split())


def test_a_line_without_its_tab_is_refused_in_words(run: Path, tmp_path: Path) -> None:
    (tmp_path / "in.tsv").write_text("dog 3 great town\ndog 3\tgreat town\na\tb\tc\n")
    done = shell("predict", run, tmp_path / "in.tsv", "--device", "cpu")
    assert done.code == 1
    assert done.out == "\n0\n\n"
    message = " ".join(done.err.split())
    assert (
        "in.tsv:1: this model takes two texts with a tab between them: FIRST<TAB>SECOND; the line has no tab" in message
    )
    assert "in.tsv:3: this model takes two texts" in message
    assert "the line has 2 tabs" in message
    assert "2 of 3 lines were refused" in message


def test_single_text_and_pair_are_not_confused(run: Path, tmp_path: Path) -> None:
    model = heedful.load(run, "classification")
    assert model.settings.texts == 2
    with pytest.raises(DataError, match=r"text 2: this model reads two texts .* give a pair: \(first, second\)"):
        model.predict([("dog 3", "great town"), "dog 3\tgreat town"])
    with pytest.raises(DataError, match=r"one\.tsv:2: this model reads two texts"):
        ClassificationTask().evaluate(model, Files((write_tsv(tmp_path / "one.tsv", [("dog", "0")]),)))
    model.settings = model.settings.changed(texts=1)
    with pytest.raises(DataError, match="text 1: this model reads one text at a time, and a pair was given"):
        model.predict([("dog 3", "great town")])
    model.settings = model.settings.changed(texts=None)  # as of models from elsewhere
    assert len(model.predict([("dog 3", "great town"), "dog 3"])) == 2


def test_bundle_without_text_count_accepts_both(run: Path, tmp_path: Path) -> None:
    model = heedful.load(run, "classification")
    model.save(tmp_path)
    (bundle,) = [path for path in tmp_path.iterdir() if '"texts": 2' in path.read_text(errors="replace")]
    values = json.loads(bundle.read_text())
    del values["settings"]["texts"]
    bundle.write_text(json.dumps(values))
    assert len(heedful.load(tmp_path, "classification").predict([("dog 3", "great town"), "dog 3"])) == 2


def test_samples_and_attention_maps_separate_the_texts(run: Path) -> None:
    model, metrics = heedful.load(run, "classification"), read_mapping(run / "metrics.json")
    for sample in metrics["samples"]:
        assert {sample["source"].split()[0], sample["second"].split()[0]} == {"dog", "great"}
        (answer,) = model.predict([(sample["source"], sample["second"])])
        label, share = next(iter(answer.items()))
        assert label == sample["output"]
        assert share == pytest.approx(sample["score"] / 100, abs=1e-5)
    sections = ClassificationTask().report_sections(model, metrics, run)
    assert sections["samples"][0].source == f"{metrics['samples'][0]['source']} | {metrics['samples'][0]['second']}"
    assert len(sections["attention"]) == 2
    for drawn in sections["attention"]:
        first, second = drawn.title.split(" | ")
        ids = model.tokenizer.encode_pair(first, second)[0]
        assert drawn.source == [model.tokenizer.token_of(index) for index in ids]
    assert "It reads two texts at once" in (run / "README.md").read_text()


def test_mixed_data_trains_a_model_that_accepts_both(tmp_path: Path) -> None:
    files = write_pairs(tmp_path / "a.tsv", 60), write_tsv(tmp_path / "b.tsv", [(f"dog {n}", "0") for n in range(60)])
    model = train(ClassificationTask(), small_config({"steps": 1}), Files(files), tmp_path / "run")
    assert model.settings.texts is None
    file = write_tsv(tmp_path / "c.tsv", reviews(60))
    single = train(ClassificationTask(), small_config({"steps": 1}), Files((file,)), tmp_path / "alone")
    assert single.settings.texts == 1


def test_tokenizer_with_equal_segments_for_both_texts(run: Path, tmp_path: Path) -> None:
    """As RoBERTa's: the store knows where the second begins, and training tells the model no more than predict does."""
    fast = Tokenizer.from_file(str(run / NAME))
    ends = [(name, fast.token_to_id(name)) for name in ("<s>", "</s>")]
    fast.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s>:0 $A:0 </s>:0 </s>:0 $B:0 </s>:0", special_tokens=ends
    )
    tokenizer = PublishedTokenizer(fast.to_str())
    examples = list(read_labeled_texts(write_pairs(tmp_path / "a.tsv", 20)))
    metadata = TextMetadata(labels=("0", "1"))
    task = ClassificationTask()
    task.config = small_config()
    rows = [
        (*row, (example.file, example.line))
        for example in examples
        for row in task.encode(example, tokenizer, metadata, TextReport())
    ]
    stores = [TokenStore.write(tmp_path / name, rows, vocab_size=1000) for name in ("train", "valid")]
    data: TextData = TrainingData(tmp_path, stores[0], stores[1], tokenizer, metadata)
    for row, example in enumerate(examples):
        ids, (_, second) = stores[0][row]
        assert [tokenizer.decode(part.tolist()) for part in (ids[:second], ids[second:])] == [
            example.text,
            example.second,
        ]
    module = heedful.load(run, "classification").module
    bound = ClassificationTask().bind(small_config(), data, module)
    assert bound.texts_per_example == 2
    assert not bound.uses_segments


def test_targets_are_those_of_the_rows(run: Path) -> None:
    store = ClassificationTask().open(small_config(), run / "data").train
    np.testing.assert_array_equal(targets(store), [store[row][1] for row in range(len(store))])


def test_bind_leaves_the_module_in_training_mode(run: Path) -> None:
    task, config = ClassificationTask(), small_config()
    assert task.bind(config, task.open(config, run / "data")).module.training


def test_truncation_warnings_are_per_thread(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One asks about short texts while another is in the middle of long ones."""
    model = heedful.load(run, "classification")
    model.settings = model.settings.changed(texts=1)
    long, read = "the dog " * 100, model._run_batch
    with ThreadPoolExecutor(1) as other:

        def interrupted(rows: list[EncodedText]) -> list[torch.Tensor]:
            if len(rows) == 2:
                other.submit(model.predict, ["great"]).result()
            return read(rows)

        monkeypatch.setattr(model, "_run_batch", interrupted)
        with pytest.warns(UserWarning, match="2 of 2 texts are longer than 32 tokens"):
            model.predict([long, long])
