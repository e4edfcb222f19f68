"""`heedful translate`: both directions at once, chosen by the script of each line."""

from __future__ import annotations

from pathlib import Path

from shell import heedful


def test_each_text_is_translated_into_the_other_language() -> None:
    done = heedful("translate", "감사합니다.", "Thank you.", "고양이가 작아요.")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == ["Thank you.", "감사합니다.", "The cat is small."]


def test_lines_of_both_languages_keep_their_order() -> None:
    lines = ["저는 학생입니다.", "I am a student.", "", "감사합니다.", "Thank you."]
    done = heedful("translate", stdin="\n".join(lines).encode())
    assert done.out.splitlines() == ["I am a student.", "저는 학생이에요.", "", "Thank you.", "감사합니다."]


def test_files_are_read_and_the_output_may_be_one(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("저는 학생입니다.\n", encoding="utf-8")
    assert heedful("translate", tmp_path / "in.txt", "--out", tmp_path / "out.txt").out == ""
    assert (tmp_path / "out.txt").read_text(encoding="utf-8") == "I am a student.\n"


def test_the_level_is_a_tag_and_the_direction_an_option() -> None:
    assert heedful("translate", "--to", "ko", "[plain] I love deep learning.").out == "나는 딥러닝을 사랑한다.\n"
    done = heedful("translate", "--to", "ko", "감사합니다.")
    assert "does not know" not in done.err


def test_words_outside_the_vocabulary_are_named_with_their_line() -> None:
    done = heedful("translate", stdin="저는 학생입니다.\n저는 우주선을 탔어요.\n".encode())
    assert done.out.splitlines()[0] == "I am a student."
    assert "this model does not know: 우주선을 (line 2)" in done.err
    done = heedful("predict", "ko-en", "도깨비가 왔어요.")
    assert "this model does not know: 도깨비가 (line 1)" in done.err


def test_look_takes_the_name_of_a_shipped_translator(tmp_path: Path) -> None:
    done = heedful("look", "ko-en", "감사합니다.", "--out", tmp_path / "page.html")
    assert done.code == 0
    assert "Thank you." in done.out
    assert (tmp_path / "page.html").stat().st_size > 10_000


def test_brackets_in_a_help_text_are_printed() -> None:
    assert "[formal], [casual] or [plain]" in " ".join(heedful("translate", "--help").out.split())
