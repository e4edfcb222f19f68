"""A model from its files to its answers: two tasks learned, resumed to the same bits, loaded, used."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from toy_rewriting import SIZE, small_config, toy_rows, write_jsonl, write_tsv

import heedful
from heedful.config import read_mapping
from heedful.data.tokenizer import END, PAD, START
from heedful.errors import ConfigError, DataError
from heedful.tasks.hf_export import export_huggingface
from heedful.tasks.run import Files, TooLittleDataError, train
from heedful.tasks.scoring import rouge
from heedful.tasks.text_to_text import CutWarning, TextToTextSettings
from heedful.tasks.text_to_text.data import OWN_TOKENS, TextToTextExample
from heedful.tasks.text_to_text.task import TextToTextTask, answers_to
from heedful.training.errors import Interrupted, ResumeError, ResumeWarning
from published_folders import theirs


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trained once for all."""
    folder = tmp_path_factory.mktemp("toy")
    file = write_tsv(folder / "toy.tsv", toy_rows(1200))
    train(TextToTextTask(), small_config({"steps": 320}), Files((file,)), folder / "run")
    return folder / "run"


def test_two_tasks_are_learned_by_one_model(run: Path) -> None:
    validation = read_mapping(run / "metrics.json")["validation"]
    assert validation["n"] == validation["of"] >= 50
    assert validation["scores"]["exact"]["value"] >= 95
    assert validation["scores"]["rougeL"]["value"] >= 97
    assert validation["scores"]["lead"]["value"] <= 80
    assert {one["prefix"] for one in validation["tasks"]} == {"first: ", "reverse: "}
    assert sum(one["n"] for one in validation["tasks"]) == validation["n"]
    model = heedful.load(run, "text-to-text")
    rows = toy_rows(200, seed=9)
    answers = model.predict([f"{prefix} {source}" for prefix, source, _ in rows])
    assert sum(answer == target for answer, (_, _, target) in zip(answers, rows, strict=True)) >= 190


def test_the_folder_tells_everything(run: Path) -> None:
    reading = read_mapping(run / "data/reading.json")
    assert reading["train"]["notes"][0] == "prefixes: 'reverse: ' 600, 'first: ' 600"
    assert reading["held_out"] == read_mapping(run / "metrics.json")["validation"]["n"]
    card = (run / "README.md").read_text()
    for words in ("text → text", "| ROUGE-L | ", "| `reverse:` | ", "beam 4", "1024 tokens", "first 2 words"):
        assert words in card
    samples = read_mapping(run / "metrics.json")["samples"]
    assert all(
        sample["score"] == pytest.approx(100 * rouge(sample["output"], sample["reference"])["rougeL"])
        for sample in samples
    )
    assert (run / "report.html").stat().st_size > 1000


def test_what_was_judged_is_what_predict_says(run: Path) -> None:
    model, samples = heedful.load(run, "text-to-text"), read_mapping(run / "metrics.json")["samples"]
    assert model.predict([sample["source"] for sample in samples]) == [sample["output"] for sample in samples]


def test_what_was_trained_here_is_used_elsewhere(run: Path, tmp_path: Path) -> None:
    export_huggingface(run, tmp_path / "theirs")
    model, tokenizer = theirs(tmp_path / "theirs", "AutoModelForSeq2SeqLM")
    for text in ("reverse: cat dog 물", "first: bee ant", "reverse: 집 <s> cat"):
        given = tokenizer(text, return_tensors="pt", return_token_type_ids=False)
        assert given["input_ids"][0].tolist() == heedful.load(run, "text-to-text").tokenizer.encode(text)
        ids = model.generate(**given, num_beams=1)[0]
        assert heedful.load(run, "text-to-text").predict([text], beam=1) == [
            tokenizer.decode(ids, skip_special_tokens=True)
        ]


def test_a_special_token_written_in_a_target_is_no_answer(tmp_path: Path) -> None:
    rows = [{"source": f"cat {number}", "target": "dog" if number else "dog </s> cat"} for number in range(40)]
    file = write_jsonl(tmp_path / "a.jsonl", rows)
    train(TextToTextTask(), small_config({"steps": 1}), Files((file,)), tmp_path / "run")
    dropped = read_mapping(tmp_path / "run/data/reading.json")["train"]["dropped"]
    assert dropped == {"a special token inside the target": {"count": 1, "first": [f"{file}:1"]}}


def test_it_is_scored_on_files(run: Path, tmp_path: Path) -> None:
    model, task = heedful.load(run, "text-to-text"), TextToTextTask()
    rows = toy_rows(100, seed=5)
    rows[3] = ("first:", "", "cat")
    file = write_tsv(tmp_path / "test.tsv", rows)
    found = task.evaluate(model, Files((file,)))
    assert found["n"] == 99
    assert found["scores"]["exact"]["value"] >= 95
    assert found["verdict"] == [f"left out: empty source: 1 ({file}:5)"]
    assert "refused" not in found
    rows[4] = ("reverse:", "cat " * 1200, "cat")
    files = Files((write_tsv(tmp_path / "test.tsv", rows),))
    with pytest.raises(DataError, match=r"test\.tsv:6: it has .* reads at most 1,024"):
        task.evaluate(model, files, strict=True)
    found = task.evaluate(model, files)
    assert found["n"] == 98
    assert found["scores"]["exact"]["value"] >= 95
    refused = found["refused"]
    assert (refused["count"], refused["of"], len(refused["first"])) == (1, 99, 1)
    assert re.search(r"test\.tsv:6: it has .* reads at most 1,024", refused["first"][0])
    (tmp_path / "none.tsv").write_text("source\ttarget\n")
    with pytest.raises(DataError, match="no pair to evaluate on"):
        task.evaluate(model, Files((str(tmp_path / "none.tsv"),)))


def test_none_one_empty_and_many(run: Path) -> None:
    model = heedful.load(run, "text-to-text")
    assert model.predict([]) == []
    assert model.predict(["", "first: cat dog"]) == ["", "cat"]
    assert model.predict(["first: cat dog", "reverse: cat dog"] * 500, beam=1) == ["cat", "dog cat"] * 500
    assert "".join(model.stream("reverse: 물 집 cat")) == "cat 집 물"
    with pytest.raises(DataError, match=r"text 1: it has .* tokens, and this model reads at most 1,024"):
        model.predict(["cat " * 1200])


def test_a_batch_is_the_tokeniser_s_ids_shifted(run: Path) -> None:
    """The source ends, the target begins and ends, with the tokens of the house."""
    data = TextToTextTask().open(small_config(), run / "data")
    job = TextToTextTask().bind(small_config(), data)
    batch = next(job.validation.in_order())
    texts = job.valid_examples(len(data.valid))
    assert len(texts) == len(data.valid)
    for index, row in enumerate(batch.rows):
        one = texts[row]
        source, target = (data.tokenizer.encode(text) for text in (one.text, one.target))
        assert source[-1] == target[-1] == END
        assert batch.source[index].tolist() == source + [PAD] * (batch.shape[1] - len(source))
        assert batch.target_out[index].tolist() == target + [PAD] * (batch.shape[2] - len(target))
        shifted = [START, *target[:-1]]
        assert batch.target_in[index].tolist() == shifted + [PAD] * (batch.shape[2] - len(shifted))


def test_the_loss_is_the_mean_of_minus_log_probabilities(run: Path) -> None:
    task, module = TextToTextTask(), heedful.load(run, "text-to-text").module
    data = task.open(small_config(), run / "data")
    job = task.bind(small_config(), data)
    costs: list[float] = []
    for row in range(len(data.valid)):
        source, target = (torch.tensor(ids.astype(np.int64))[None] for ids in data.valid[row])
        end = torch.tensor([[END]])
        logits = module(torch.cat([source, end], 1), torch.cat([torch.tensor([[START]]), target], 1))
        wanted = torch.cat([target, end], 1)
        costs += (-logits.log_softmax(-1).gather(-1, wanted[..., None])).flatten().tolist()
    assert job.validate(module)["loss"] == pytest.approx(np.mean(costs), abs=1e-5)


def test_a_run_that_is_stopped_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    files = Files((write_tsv(tmp_path / "a.tsv", toy_rows(120)),))
    config = small_config({"steps": 10, "save_every": 3, "log_every": 1}, model=SIZE | {"dropout": 0.1})
    train(TextToTextTask(), config, files, tmp_path / "whole")

    def stop_at_seven(job: Any) -> list[Any]:
        def observer(event: Any) -> None:
            if getattr(event, "step", 0) == 7:
                raise Interrupted("stopped", 1)

        return [observer]

    with pytest.raises(Interrupted):
        train(TextToTextTask(), config, files, tmp_path / "parts", watch=stop_at_seven)
    train(TextToTextTask(), config, files, tmp_path / "parts", resume=True)
    whole, parts = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "parts"))
    assert whole == parts
    changed = small_config({"steps": 10}, tokenizer={"vocab_size": 350})
    with pytest.raises(ResumeError, match="tokeniser settings"):
        train(TextToTextTask(), changed, files, tmp_path / "parts", resume=True, allow_changes=True)
    prefixed = small_config({"steps": 10}, prefix="do: ")
    with pytest.raises(ResumeError, match="the prefix"):
        train(TextToTextTask(), prefixed, files, tmp_path / "parts", resume=True)
    (tmp_path / "parts/data/valid.jsonl").write_text("")
    with pytest.warns(ResumeWarning, match="validation texts"):
        train(TextToTextTask(), config, files, tmp_path / "parts", resume=True)


LONG = [{"article": f"word{number} " + "the dog ran home " * 40, "summary": f"word{number}"} for number in range(40)]


def test_long_sources_are_left_out_or_cut_and_either_is_counted(tmp_path: Path) -> None:
    rows = [*LONG[:1], *({"article": f"cat {number}", "summary": "cat"} for number in range(40))]
    rows.append({"article": "short", "summary": "dog " * 100})
    file = write_jsonl(tmp_path / "a.jsonl", rows)
    limits = {"max_source_tokens": 20, "max_target_tokens": 20}
    whole = small_config({"steps": 1}, data=limits, prefix="summarize: ")
    train(TextToTextTask(), whole, Files((file,)), tmp_path / "whole")
    said = read_mapping(tmp_path / "whole/data/reading.json")["train"]
    assert {why: tally["first"] for why, tally in said["dropped"].items()} == {
        "too many tokens in the source": [f"{file}:1"],
        "too many tokens in the target": [f"{file}:42"],
    }
    assert said["kept"] == 40
    model = heedful.load(tmp_path / "whole", "text-to-text")
    with pytest.raises(DataError, match="reads at most 20"):
        model.predict([str(LONG[0]["article"])])

    train(TextToTextTask(), whole.changed(data=whole.data.changed(cut=True)), Files((file,)), tmp_path / "cut")
    said = read_mapping(tmp_path / "cut/data/reading.json")["train"]
    assert said["notes"] == [f"sources truncated at 20 tokens: 1 ({file}:1)"]
    model = heedful.load(tmp_path / "cut", "text-to-text")
    with pytest.warns(CutWarning, match="only the first 20 tokens of a text were read"):
        model.predict([str(LONG[0]["article"])])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(["cat 3"])
        (ids,) = model.inputs("cat 3")
    assert ids == model.tokenizer.encode("summarize: cat 3")
    with pytest.warns(CutWarning):
        (ids,) = model.inputs(str(LONG[0]["article"]))
    assert ids == [*model.tokenizer.encode("summarize: " + str(LONG[0]["article"]))[:19], END]


def test_too_little_is_told_with_what_became_of_the_rest(tmp_path: Path) -> None:
    file = write_jsonl(tmp_path / "a.jsonl", LONG)
    with pytest.raises(TooLittleDataError, match="no pair to store") as error:
        train(TextToTextTask(), small_config(data={"max_source_tokens": 20}), Files((file,)), tmp_path / "run")
    assert error.value.report.to_dict()["train"]["dropped"]["too many tokens in the source"]["count"] == 38


def test_long_targets_are_judged_by_their_loss(run: Path) -> None:
    task = TextToTextTask()
    data = task.open(small_config(), run / "data")
    assert task.bind(small_config(), data).monitor.name == "rougeL"
    data.valid.lengths = np.full_like(data.valid.lengths, 300)
    job = task.bind(small_config(), data)
    assert (job.monitor.name, job.monitor.higher_is_better) == ("loss", False)


def test_korean_is_scored_by_its_syllables_too(tmp_path: Path) -> None:
    rows = [{"본문": f"나는 학교에 {number}번 갔다", "요약": "학교에 갔다"} for number in range(40)]
    file = write_jsonl(tmp_path / "a.jsonl", rows)
    train(TextToTextTask(), small_config({"steps": 2}), Files((file,)), tmp_path / "run")
    scores = read_mapping(tmp_path / "run/metrics.json")["validation"]["scores"]
    assert scores["rougeL_characters"]["metric"] == "ROUGE-L (characters)"
    assert "tok:characters" in scores["rougeL_characters"]["signature"]


def test_a_model_that_puts_its_prefix_itself_is_not_given_it() -> None:
    """Only once, though a text may begin with the same words."""

    class Echo:
        settings = TextToTextSettings(prefix="p: ", tokens=OWN_TOKENS)

        def answers(self, texts: list[str], **search: Any) -> list[str]:
            return texts

    examples = [TextToTextExample(source, "b", "file", 1, "p: ") for source in ("a", "p: a")]
    echo: Any = Echo()
    assert [str(text) for text in answers_to(echo, examples)] == ["a", "p: a"]
    echo.settings = TextToTextSettings(tokens=OWN_TOKENS)
    assert [str(text) for text in answers_to(echo, examples)] == ["p: a", "p: p: a"]


def test_settings_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ConfigError, match="'gpt2' does not map text to text"):
        small_config(model={"preset": "gpt2-tiny"})
    with pytest.raises(ConfigError, match="max_source_tokens=2000 is more than the model's max_length=1024"):
        small_config(model={"preset": "bart-tiny"}, data={"max_source_tokens": 2000})
    with pytest.raises(ConfigError, match="one vocabulary"):
        small_config(model={"preset": "tiny", "target_vocab_size": 300, "tied": "none"})
    with pytest.raises(ConfigError, match="at least 4"):
        small_config(data={"max_target_tokens": 1})
    assert small_config({"steps": 7}).training.epochs is None
    config = small_config({"epochs": 2}, prefix="a: ")
    assert type(config).from_dict(config.to_dict()) == config
