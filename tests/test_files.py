"""A file is whole or as it was."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from heedful.errors import HeedfulError
from heedful.files import new_folder, replacing, sha256_of, write_text


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_file_is_whole_or_as_it_was(call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "new" / "values.txt"
    write_text(path, "old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(OSError, match="No space left") as error:
        write_text(path, "new")
    assert error.value.filename == str(path)
    assert path.read_text() == "old"
    assert [file.name for file in path.parent.iterdir()] == ["values.txt"]


def test_text_is_written_as_it_is(tmp_path: Path) -> None:
    write_text(tmp_path / "a.md", "한글\r\n끝")
    assert (tmp_path / "a.md").read_bytes() == "한글\r\n끝".encode()


def test_what_was_there_stays_where_the_writing_breaks_off(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_text(path, "old")

    def break_off() -> None:
        with replacing(path) as partial:
            partial.write_text("half of the n")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        break_off()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_over_another_file_keeps_its_name(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as error, replacing(tmp_path / "a.txt"):
        (tmp_path / "missing").open()
    assert error.value.filename == str(tmp_path / "missing")


def test_the_sum_is_that_of_the_standard(tmp_path: Path) -> None:
    write_text(tmp_path / "abc", "abc")  # the first example of FIPS 180-2
    assert sha256_of(tmp_path / "abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), HeedfulError("is full")], ids=["system", "own"]
)
def test_an_error_while_a_folder_is_written_names_the_folder_and_leaves_nothing(
    error: Exception, tmp_path: Path
) -> None:
    def fail() -> None:
        with new_folder(tmp_path / "out") as partial:
            path = str(partial / "weights")
            raise type(error)(*error.args, path) if isinstance(error, OSError) else HeedfulError(f"{path} {error}")

    with pytest.raises(type(error)) as caught:
        fail()
    assert str(tmp_path / "out" / "weights") in str(caught.value)
    assert "/." not in str(caught.value)
    assert list(tmp_path.iterdir()) == []
