"""What a run's folder may be used for: nothing is lost, nothing is mixed, and what differs is said."""

from __future__ import annotations

import resource
import shutil
from pathlib import Path

import pytest
from small_runs import write_rows

import heedful as package
from heedful.config import read_mapping
from heedful.tasks.run.folder import run_artifacts
from heedful.tasks.translation.task import TranslationTask
from heedful.training import RunFolder
from shell import Done, heedful, quick_train

pytest_plugins = ["quick_model"]


@pytest.fixture
def run(model: Path, tmp_path: Path) -> Path:
    """A finished run of one's own."""
    return Path(shutil.copytree(model, tmp_path / "run"))


def resume(run: Path, *more: object) -> Done:
    return heedful("train", "translation", "--out", run, "--resume", *more)


def weights(run: Path) -> bytes:
    return (run / "model.safetensors").read_bytes()


def one_line(done: Done, *words: str) -> None:
    assert done.code == 1, done.err
    (line,) = done.err.splitlines()
    for word in words:
        assert word in line


def test_a_finished_run_resumed_is_the_same(run: Path, model: Path) -> None:
    done = resume(run)
    assert done.code == 0, done.err
    assert weights(run) == weights(model)
    assert (run / "log.jsonl").read_text() == (model / "log.jsonl").read_text()


def test_a_finished_run_without_checkpoints_is_not_begun_again(run: Path, model: Path) -> None:
    shutil.rmtree(run / "checkpoints")
    one_line(resume(run), "its checkpoints are gone")
    assert weights(run) == weights(model)


def test_a_run_is_not_replaced_unless_asked(run: Path, corpus: Path) -> None:
    before = weights(run)
    one_line(quick_train(run, [corpus / "train.tsv"]), "holds a run already", "--resume", "--overwrite")
    assert weights(run) == before


def test_overwriting_removes_what_a_run_made_and_nothing_else(run: Path, corpus: Path) -> None:
    mine = [run / "notes.txt", run / "data" / "notes.txt", run / "corpus" / "a.tsv"]
    for path in mine:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    old = run / "checkpoints" / "step-00000008" / "model.safetensors"
    before = old.read_bytes()
    done = quick_train(run, [corpus / "train.tsv"], "--overwrite", setting=["training.seed=6"])
    assert done.code == 0, done.err
    assert all(path.read_text() == "mine" for path in mine)
    assert old.read_bytes() != before
    left = {name for name in run_artifacts(TranslationTask()) if (run / name).exists()}
    assert {path.name for path in run.iterdir()} == {name.split("/")[0] for name in left} | {
        "run.lock",
        "notes.txt",
        "corpus",
    }


@pytest.mark.parametrize("overwrite", [(), ("--overwrite",)])
def test_files_that_no_run_made_are_left_alone(overwrite: tuple[str, ...], corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("my project")
    (tmp_path / "data" / "train").mkdir(parents=True)
    (tmp_path / "data" / "train" / "pairs.tsv").write_text("a\tb\n")
    done = quick_train(tmp_path, [corpus / "train.tsv"], *overwrite)
    one_line(done, "README.md, data/train, which no run wrote")
    assert (tmp_path / "README.md").read_text() == "my project"
    assert (tmp_path / "data" / "train" / "pairs.tsv").exists()


def test_a_run_whose_data_was_bad_can_simply_be_begun_again(corpus: Path, tmp_path: Path) -> None:
    bad = tmp_path / "train.tsv"
    bad.write_text("one column\n")
    one_line(quick_train(tmp_path / "run", [bad]), "train.tsv:1", "one column")
    shutil.copy(corpus / "train.tsv", bad)
    assert quick_train(tmp_path / "run", [bad]).code == 0


def test_a_folder_holds_one_run_at_a_time(run: Path) -> None:
    with RunFolder(run).locked():
        one_line(resume(run), "is in use by process")


def test_there_must_be_a_run_to_resume(tmp_path: Path) -> None:
    one_line(resume(tmp_path / "run"), "holds no run to continue")


def test_a_damaged_run_yaml_is_named(run: Path) -> None:
    (run / "run.yaml").write_text("source: [")
    one_line(resume(run), "run.yaml was changed since the run wrote it")


def test_changed_settings_are_named_and_refused_and_not_remembered(run: Path, model: Path) -> None:
    changed = resume(run, "--set", "training.learning_rate=0.5", "--set", "model.dropout=0.4")
    one_line(changed, "training.learning_rate was 0.024, is 0.5", '"dropout": 0.4')  # 0.024 suits the data
    assert changed.err.count(" was ") == 2, "nothing else has changed"
    assert (run / "run.yaml").read_text() == (model / "run.yaml").read_text()
    assert resume(run).code == 0


def test_more_steps_are_a_change_that_can_be_allowed(run: Path) -> None:
    one_line(resume(run, "--set", "training.steps=12"), "training.steps was 8, is 12")
    done = resume(run, "--set", "training.steps=12", "--allow-changes")
    assert done.code == 0, done.err
    (line,) = done.err.splitlines()
    assert line.startswith("warning: the run continues with changes: training.steps was 8, is 12")
    assert read_mapping(run / "metrics.json")["training"]["steps"] == 12
    assert read_mapping(run / "run.yaml")["training"]["steps"] == 12
    assert resume(run).code == 0


def test_what_does_not_touch_the_weights_may_change(run: Path) -> None:
    assert resume(run, "--set", "training.log_every=1", "--set", "generation.beam=3").code == 0
    assert package.load(run, "translation").settings.generation.beam == 3
    assert read_mapping(run / "run.yaml")["generation"]["beam"] == 3


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        (["--set", "data.max_ratio=2"], "the data settings"),
        (["--columns", "xb,xa"], "the columns"),
        (["--source", "xb", "--target", "xa"], "the languages"),
    ],
)
def test_another_way_to_read_the_data_is_refused(changes: list[str], named: str, run: Path) -> None:
    one_line(resume(run, *changes), f"changed: {named}.")


def test_another_tokeniser_is_refused_for_good(run: Path) -> None:
    changed = ("--set", "tokenizer.joint=false")
    one_line(resume(run, *changed, "--allow-changes"), "which a run cannot do after training")


@pytest.fixture
def halfway(tmp_path: Path) -> Path:
    """A run of 4 of its 8 steps over data beside it."""
    write_rows(tmp_path / "train.xa.tsv", 300, lambda row: row[::-1], seed=1)
    done = quick_train(tmp_path / "run", [tmp_path / "train.xa.tsv"], setting=["training.steps=4"])
    assert done.code == 0, done.err
    return tmp_path / "run"


@pytest.mark.parametrize("pairs", [60, 900])
def test_changed_data_is_named_and_where_allowed_goes_on_with_the_old_tokeniser(pairs: int, halfway: Path) -> None:
    data = halfway.parent / "train.xa.tsv"
    write_rows(data, pairs, lambda row: ["ko", *row], seed=7)
    more = ("--set", "training.steps=8")
    one_line(resume(halfway, *more), f"changed: {data}.", "--allow-changes")
    tokenizer = (halfway / "tokenizer.json").read_bytes()
    before = package.load(halfway, "translation").tokenizer
    done = resume(halfway, *more, "--allow-changes")
    assert done.code == 0, done.err
    assert "Training data" in done.out  # read again, and shown
    assert package.load(halfway, "translation").tokenizer.encode("ko a") == before.encode("ko a")
    assert (halfway / "tokenizer.json").read_bytes() == (halfway / "data/tokenizer.json").read_bytes() == tokenizer
    assert read_mapping(halfway / "metrics.json")["training"]["steps"] == 8


def test_data_that_is_gone_is_named_and_where_allowed_the_prepared_pairs_serve(halfway: Path) -> None:
    data = halfway.parent / "train.xa.tsv"
    stored, kept = (halfway / "data/train/tokens.bin").read_bytes(), data.read_bytes()
    data.unlink()
    more = ("--set", "training.steps=8")
    one_line(resume(halfway, *more), f"changed: {data} (gone).", "the pairs made from it", "--allow-changes")
    done = resume(halfway, *more, "--allow-changes")
    assert done.code == 0, done.err
    assert f"warning: gone: {data}; the run continues with the pairs made from it" in done.err
    assert (halfway / "data/train/tokens.bin").read_bytes() == stored
    assert read_mapping(halfway / "metrics.json")["training"]["steps"] == 8
    data.write_bytes(kept)
    assert resume(halfway).code == 0


def test_data_that_is_gone_cannot_be_read_in_another_way(halfway: Path) -> None:
    data = halfway.parent / "train.xa.tsv"
    data.unlink()
    changed = ("--set", "data.max_ratio=2", "--allow-changes")
    one_line(resume(halfway, *changed), f"{data}: No such file")
    assert resume(halfway, "--allow-changes").code == 0, "nothing was lost by trying"


def test_other_data_that_is_not_there_is_a_mistake(halfway: Path) -> None:
    (halfway.parent / "train.xa.tsv").unlink()
    one_line(resume(halfway, "--data", "typo.tsv", "--allow-changes"), "typo.tsv: No such file")


@pytest.mark.parametrize("side", ["xa", "xb"])
def test_one_side_of_parallel_text_may_be_gone(side: str, tmp_path: Path) -> None:
    for each in ("xa", "xb"):
        (tmp_path / f"train.{each}").write_text("".join(f"{each} {n}\n" for n in range(100)))
    assert quick_train(tmp_path / "run", [tmp_path / "train.xa"]).code == 0
    (tmp_path / f"train.{side}").unlink()
    one_line(resume(tmp_path / "run"), f"changed: {tmp_path / f'train.{side}'} (gone).")
    assert resume(tmp_path / "run", "--allow-changes").code == 0


def test_both_sides_of_parallel_text_are_watched(tmp_path: Path) -> None:
    for side in ("xa", "xb"):
        (tmp_path / f"train.{side}").write_text("".join(f"{side} {n}\n" for n in range(100)))
    assert quick_train(tmp_path / "run", [tmp_path / "train.xa"]).code == 0
    (tmp_path / "train.xb").write_text("".join(f"other {n}\n" for n in range(100)))
    one_line(resume(tmp_path / "run"), f"changed: {tmp_path / 'train.xb'}.")


def test_a_damaged_store_is_built_again(run: Path, model: Path) -> None:
    (run / "data/train/tokens.bin").write_bytes(b"")
    done = resume(run)
    assert done.code == 0
    (line,) = done.err.splitlines()
    assert line.startswith("warning: ")
    assert "tokens.bin is not what was written" in line
    assert weights(run) == weights(model)


def test_a_damaged_checkpoint_is_one_line_and_the_one_before_is_used(run: Path, model: Path) -> None:
    (run / "checkpoints/step-00000008/model.safetensors").write_bytes(b"?")
    done = resume(run)
    assert done.code == 0
    lines = done.err.splitlines()
    assert all(line.startswith("warning: ") and "step-00000008/model.safetensors is damaged" in line for line in lines)
    assert len(lines) == 1
    assert weights(run) == weights(model)


def test_a_folder_that_cannot_be_made_is_named(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    one_line(quick_train(tmp_path / "file" / "run", [corpus / "train.tsv"]), "file", "Not a directory")


@pytest.mark.parametrize("size", [100, 3_000, 30_000, 60_000])
def test_a_full_disk_is_one_line_that_names_a_place(size: int, corpus: Path, tmp_path: Path) -> None:
    run, limits = tmp_path / "run", resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        done = quick_train(run, [corpus / "train.tsv"])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    one_line(done, str(run), "large")  # as the system says it: File too large
    assert not list(run.rglob("*.partial"))
    again = resume(run) if (run / "run.yaml").exists() else quick_train(run, [corpus / "train.tsv"])
    assert again.code == 0, again.err
