"""The shell: what it prints, what it writes, and how it fails."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from heedful import __version__


def heedful(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "heedful", *words], capture_output=True, text=True, check=False)


def test_the_demo_counts_the_parts_and_writes_the_pictures(tmp_path: Path) -> None:
    done = heedful("demo", "--out", str(tmp_path / "new" / "folder"))
    assert done.returncode == 0, done.stderr
    for words in ("63,082,496", "12,598,272", "67% of an encoder layer", "50% of a decoder layer", "57% of"):
        assert words in done.stdout.replace("\n", " ")
    for name in ("positional-map", "positional-waves", "encoder-attention"):
        for suffix in (".png", ".svg"):
            assert (tmp_path / "new" / "folder" / f"{name}{suffix}").stat().st_size > 1000


def test_the_version_is_printed() -> None:
    assert heedful("--version").stdout.strip() == f"heedful {__version__}"


@pytest.mark.parametrize("words", [("dmo",), ("demo", "--language", "fr"), ("demo", "--nothing")])
def test_wrong_use_exits_with_two(words: tuple[str, ...]) -> None:
    done = heedful(*words)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_a_failure_is_one_line_and_a_traceback_only_on_request(tmp_path: Path) -> None:
    taken = tmp_path / "file"
    taken.write_text("not a folder")
    done = heedful("demo", "--out", str(taken))
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "file" in done.stderr
    assert "Traceback" in heedful("--debug", "demo", "--out", str(taken)).stderr
