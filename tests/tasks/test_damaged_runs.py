"""Runs whose files were cut or changed, and settings that no machine can train."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from heedful.errors import ConfigError
from heedful.families import config_of, sizes
from heedful.files import sha256_of
from heedful.tasks.class_scores import escaped_markdown
from shell import heedful as shell
from shell import quick_train


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of a tiny translator."""
    folder = tmp_path_factory.mktemp("runs")
    rows = [f"a{n} b{n % 7}\tb{n % 7} a{n}\n" for n in range(200)]
    (folder / "pairs.tsv").write_text("".join(rows))
    done = quick_train(folder / "run", [folder / "pairs.tsv"], setting=["generation.max_new_tokens=6"])
    assert done.code == 0, done.err
    return folder / "run"


@pytest.fixture
def copied(run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(run, tmp_path / "run"))


def unfinished(run: Path) -> None:
    for name in ("config.json", "model.safetensors", "metrics.json", "report.html"):
        (run / name).unlink()


def test_a_report_leaves_out_a_row_that_was_cut(copied: Path) -> None:
    log = copied / "log.jsonl"
    whole = log.read_bytes()
    assert shell("report", copied).code == 0
    report = (copied / "report.html").read_bytes()
    log.write_bytes(whole + b'{"kind": "train", "st')
    assert shell("report", copied).code == 0
    assert (copied / "report.html").read_bytes() == report
    log.write_bytes(whole[:-20])
    assert shell("report", copied).code == 0
    assert (copied / "report.html").read_bytes() != report


def test_a_run_whose_log_was_cut_ends_as_if_it_was_not(copied: Path, run: Path) -> None:
    unfinished(copied)
    log = copied / "log.jsonl"
    log.write_bytes(log.read_bytes()[:-20])
    done = shell("train", "translation", "--out", copied, "--resume")
    assert (done.code, "Traceback" in done.err) == (0, False)
    assert (copied / "model.safetensors").read_bytes() == (run / "model.safetensors").read_bytes()
    assert [json.loads(line) for line in log.read_text().splitlines()]


@pytest.mark.parametrize(
    ("change", "lacks"),
    [
        (lambda values: values.clear(), "training with ended, seconds, steps"),
        (lambda values: values.update(training=[]), "training with"),
        (lambda values: values["training"].pop("seconds"), "training with"),
        (lambda values: values.update(validation={}), "validation with scores"),
        (lambda values: values.update(sets={"a": 1}), "a with scores"),
        (lambda values: values["validation"]["scores"].update(bleu=1), "bleu with interval"),
        (lambda values: values.pop("parameters"), "parameters"),
    ],
)
def test_metrics_that_lack_something_are_named(change: Callable[[Any], object], lacks: str, copied: Path) -> None:
    path = copied / "metrics.json"
    values = json.loads(path.read_text())
    change(values)
    path.write_text(json.dumps(values))
    done = shell("report", copied)
    assert done.code == 1
    assert f"{path} is not what training writes: it has no {lacks}" in done.err


@pytest.mark.parametrize(
    "change",
    [
        lambda state: state.pop("progress"),
        lambda state: state.update(progress=[]),
        lambda state: state["progress"].pop("meter"),
        lambda state: state["progress"].update(step="many"),
        lambda state: state.pop("identity"),
    ],
)
def test_a_checkpoint_that_lacks_something_is_named(change: Callable[[Any], object], copied: Path) -> None:
    unfinished(copied)
    newest = max((copied / "checkpoints").iterdir())
    values = json.loads((newest / "state.json").read_text())
    change(values)
    (newest / "state.json").write_text(json.dumps(values))
    manifest = json.loads((newest / "manifest.json").read_text())
    manifest["sha256"]["state.json"] = sha256_of(newest / "state.json")
    (newest / "manifest.json").write_text(json.dumps(manifest))
    done = shell("train", "translation", "--out", copied, "--resume")
    assert done.code == 1
    assert f"{newest} lacks what a run continues from" in done.err


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("tokenizer.vocab_size=1000000000", "vocab_size must be at most 1,000,000, not 1,000,000,000"),
        ("model.d_model=1000000000", "this machine has"),
        ("model.d_ff=1000000000000", "this machine has"),
        ("model.n_encoder_layers=1000000000", "n_encoder_layers=1000000000, but at most 1000 are allowed"),
        ("training.learning_rate=1e300", "learning_rate must be at most 1e+09"),
        ("training.weight_decay=1e300", "weight_decay must be at most 1e+09"),
    ],
)
def test_absurd_settings_are_refused(setting: str, message: str, run: Path, tmp_path: Path) -> None:
    done = quick_train(tmp_path / "run", [run.parent / "pairs.tsv"], setting=[setting])
    assert done.code == 2
    assert message in done.err


def test_a_model_must_fit_into_memory_three_times(monkeypatch: pytest.MonkeyPatch) -> None:
    config = config_of("tiny").changed(vocab_size=100)
    n_bytes = 4 * sum(weight.numel() for weight in sizes.build_on_meta(config).parameters())
    pages = {"SC_PAGE_SIZE": 1, "SC_PHYS_PAGES": 3 * n_bytes}
    monkeypatch.setattr("os.sysconf", pages.__getitem__)
    sizes.check_memory(config)
    pages["SC_PHYS_PAGES"] -= 1
    with pytest.raises(ConfigError, match="choose a smaller model"):
        sizes.check_memory(config)


def test_labels_in_a_card_are_shown_as_they_are() -> None:
    from markdown_it import MarkdownIt

    for label in ("<script>alert(1)</script>", "`c`", "[d](javascript:x)", "![e](x.png)", "a | b", "*f* _g_", "h\n# i"):
        (_, inline, _) = MarkdownIt().parse(f"# {escaped_markdown(label)}")
        assert inline.children is not None
        assert {child.type for child in inline.children} == {"text"}
        assert inline.children[0].content == " ".join(label.split())
