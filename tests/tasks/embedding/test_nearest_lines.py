"""Lines near in meaning: by the cosine, the nearest first, whatever the file is like."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful.cli.output import search
from heedful.data.readers.files import every_line
from heedful.errors import ConfigError, DataError
from heedful.tasks.embedding import Index
from heedful.tasks.model_import import import_model
from published_folders import LIMIT, PAGE, bert, publish


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return publish(tmp_path_factory.mktemp("bert") / "published", bert())


@pytest.fixture(scope="module")
def model(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return import_model(folder, tmp_path_factory.mktemp("bundle") / "out", task="embedding")


def index_of(model: Any, text: str, path: Path) -> Index:
    path.write_text(text, encoding="utf-8")
    return Index(model, every_line(path))


def test_scores_are_cosines_the_largest_first(model: Any, tmp_path: Path) -> None:
    index = index_of(model, "\n".join(PAGE), tmp_path / "a.txt")
    matches = index.search("고양이가 물을 마셔요.", 5)
    vectors = np.array(model.predict([*PAGE, "고양이가 물을 마셔요."]))
    cosines = vectors[:-1] @ vectors[-1] / np.linalg.norm(vectors[:-1], axis=1) / np.linalg.norm(vectors[-1])
    assert [match.line - 1 for match in matches] == np.argsort(-cosines).tolist()
    assert [match.score for match in matches] == pytest.approx(np.sort(cosines)[::-1].tolist(), abs=1e-5)
    assert [match.text for match in matches] == [PAGE[match.line - 1] for match in matches]


def test_vectors_of_other_lengths_give_the_same_cosines(model: Any, tmp_path: Path) -> None:
    before = index_of(model, "\n".join(PAGE), tmp_path / "a.txt").search("a book", 3)
    settings = model.settings
    model.settings = settings.changed(normalized=False)
    try:
        unnormalized = index_of(model, "\n".join(PAGE), tmp_path / "a.txt").search("a book", 3)
    finally:
        model.settings = settings
    assert [match.line for match in unnormalized] == [match.line for match in before]


def test_a_line_is_nearest_to_itself_and_twins_come_in_order(model: Any, tmp_path: Path) -> None:
    index = index_of(model, f"{PAGE[0]}\n\n{PAGE[2]}\n   \n{PAGE[2]}\n{PAGE[4]}\n", tmp_path / "a.txt")
    assert len(index) == 4
    first, second, third = index.search(PAGE[2], 3)
    assert (first.line, second.line) == (3, 5)
    assert first.score == second.score == pytest.approx(1, abs=1e-5)
    assert third.score < first.score - 1e-4


def test_no_line_one_line_and_ten_thousand(model: Any, tmp_path: Path) -> None:
    assert index_of(model, "", tmp_path / "none.txt").search("anything") == []
    (only,) = index_of(model, "one", tmp_path / "one.txt").search("anything", 10)
    assert (only.line, only.text) == (1, "one")
    lines = [f"cat {number % 7}" for number in range(10_000)]
    lines[7654] = "우리는 학교에 갔고"
    index = index_of(model, "\n".join(lines) + "\n", tmp_path / "many.txt")
    assert len(index) == 10_000
    best, *_ = index.search("우리는 학교에 갔고", 3)
    assert best.line == 7655


def test_invalid_queries_and_lines_are_reported(model: Any, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"good\n\xff\xfe\xff\n" + b"cat " * (LIMIT + 1) + b"\nfine\n")
    index = Index(model, every_line(tmp_path / "a.txt"))
    assert [line.number for line in index.lines] == [1, 4]
    assert [line.number for line in index.refused] == [2, 3]
    assert "not UTF-8" in index.refused[0].fault
    assert f"at most {LIMIT}" in index.refused[1].fault
    with pytest.raises(DataError, match="empty"):
        index.search("  ")
    with pytest.raises(ConfigError, match="at least 1"):
        index.search("good", 0)


def test_the_shell_writes_score_line_and_text(model: Any, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("\n".join(PAGE) + "\n")
    out = io.BytesIO()
    search(model, [PAGE[1]], tmp_path / "a.txt", out, count=2)
    score, line, text = out.getvalue().decode().splitlines()[0].split("\t")
    assert (score, line, text) == ("1.0000", "2", PAGE[1])
    out = io.BytesIO()
    search(model, [PAGE[1], PAGE[3]], tmp_path / "a.txt", out, count=3, as_json=True)
    first, second = map(json.loads, out.getvalue().decode().splitlines())
    assert (first["query"], first["matches"][0]["line"], len(first["matches"])) == (PAGE[1], 2, 3)
    assert second["matches"][0]["line"] == 4


def test_the_shell_refuses_with_a_reason(model: Any, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"good\n\xff\n")
    out = io.BytesIO()
    with pytest.raises(DataError, match=r"1 lines of .* were not searched"):
        search(model, ["good"], tmp_path / "a.txt", out, count=10)
    assert out.getvalue().startswith(b"1.0000\t1\tgood")
    with pytest.raises(DataError, match="--query 2: it is empty"):
        search(model, ["good", " "], tmp_path / "a.txt", out, count=10)
    filler = import_model(folder, tmp_path / "filler")
    with pytest.raises(ConfigError, match="this model is for masked"):
        search(filler, ["good"], tmp_path / "a.txt", out, count=10)
