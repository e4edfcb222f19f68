"""Plain lines for prediction: as many come out as went in."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from corpus_writers import packed
from hypothesis import given
from hypothesis import strategies as st

from heedful.data.readers import lines_of
from heedful.errors import DataError


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"))),
    st.sampled_from(["\n", "\r\n"]),
)
def test_every_line_comes_out_as_it_went_in(lines: list[str], end: str) -> None:
    content = "".join(line + end for line in lines)
    assert list(lines_of(io.BytesIO(("\ufeff" + content if content else "").encode()))) == lines


def test_files_packed_or_not(tmp_path: Path) -> None:
    path = tmp_path / "in.txt"
    path.write_bytes("가\n\n나\u2028다\rx\r\n라".encode())
    wanted = ["가", "", "나\u2028다\rx", "라"]
    assert list(lines_of(path)) == list(lines_of(str(path))) == wanted
    assert list(lines_of(packed(path))) == wanted


def test_faults_name_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "in.txt"
    path.write_bytes("a\n안녕\n".encode("cp949"))
    with pytest.raises(DataError, match=r"in\.txt:2: byte .* CP949"):
        list(lines_of(path))
    with pytest.raises(DataError, match=r"input:1: byte 0xff"):
        list(lines_of(io.BytesIO(b"\xff")))
    with pytest.raises(DataError, match=r"input:2: the line is too long \(over 1 MiB\)"):
        list(lines_of(io.BytesIO(b"a\n" + b"x" * (1 << 20) + b"\n")))
    with pytest.raises(DataError, match="No such file"):
        list(lines_of(tmp_path / "missing"))
