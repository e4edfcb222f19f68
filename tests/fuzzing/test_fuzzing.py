"""Everything that reads untrusted input, under changed inputs: an answer, or an error that names the file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import checking
import model_targets
import numpy as np
import pytest
from checking import MAX_MEMORY, Finding, Target, reading, run_case
from mutations import changed_bytes
from targets import TARGETS

from heedful.errors import DataError


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_changed_input_is_read_or_refused_by_name(target: Target, tmp_path: Path) -> None:
    findings = [run_case(target, case, tmp_path / "input") for case in range(target.cases)]
    assert [f"{finding.signature}\n{finding.details}" for finding in findings if finding] == []


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
@pytest.mark.filterwarnings("ignore:pytorch_model.bin is a pickle")
def test_inputs_are_valid_before_they_are_changed(
    target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_error(folder: Path, run: Callable[[], object]) -> None:
        run()

    for module in (checking, model_targets):
        monkeypatch.setattr(module, "expect_error_of", no_error)
    for content in target.seeds():
        target.check(content, tmp_path / "input")


def test_an_input_depends_on_the_number_of_its_case_alone() -> None:
    for target in TARGETS[::5]:
        contents = [target.content(case) for case in range(20)]
        assert contents == [target.content(case) for case in range(20)]
        assert len(set(contents)) > 10


def finding_of(read: Callable[[Path], object], folder: Path) -> Finding | None:
    return run_case(Target("bad", lambda: [b"abc"], changed_bytes, reading("a.bin", read)), 0, folder / "input")


def raises(error: BaseException) -> Callable[[Path], object]:
    def read(path: Path) -> object:
        raise error

    return read


def test_what_a_reader_must_not_do_is_noticed(tmp_path: Path) -> None:
    assert finding_of(lambda path: path.read_bytes(), tmp_path) is None
    assert finding_of(raises(DataError(f"{tmp_path}/input/a.bin is bad")), tmp_path) is None
    nameless = finding_of(raises(DataError("bad")), tmp_path)
    assert nameless is not None
    assert nameless.kind == "AssertionError"
    for other in (ValueError("x"), RecursionError(), type("PanicException", (BaseException,), {})()):
        finding = finding_of(raises(other), tmp_path)
        assert finding is not None
        assert finding.kind == type(other).__name__
    checking.reset_peak_memory()
    large = finding_of(lambda path: np.ones(2 * MAX_MEMORY, np.uint8).sum(), tmp_path)
    assert large is not None
    assert large.kind == "memory"
