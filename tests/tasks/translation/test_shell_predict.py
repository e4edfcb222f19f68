"""`heedful predict`: as many lines out as in, whatever stands in them."""

from __future__ import annotations

import gzip
import io
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as tried
from hypothesis import strategies as st

import heedful as package
from heedful.tasks.translation.data import LongTextWarning
from shell import heedful

pytest_plugins = ["quick_model"]

ODD = {
    "plain": (b"a b\nb a\n", 2),
    "no end": (b"a b\nb a", 2),
    "empty lines": (b"\n\na\n\n", 4),
    "nothing": (b"", 0),
    "CRLF": (b"a\r\nb\r\n", 2),
    "carriage return": (b"a\rb\nc\n", 2),
    "U+2028": ("a\u2028b\nc\u2029d\u0085e\n".encode(), 2),
    "BOM": (b"\xef\xbb\xbfa b\n", 1),
    "NUL": (b"a\0b\nc\n", 2),
    "NFD": ("학교\n".encode(), 1),
    "emoji": ("👩‍👩‍👧 a\n🇰🇷\n".encode(), 2),
    "markup": (b"[red]a[/] [bold]\n", 1),
    "white space": (b"  \t \n a \n", 2),
}


def shown(text: str) -> str:
    """One line, without control characters."""
    return " ".join(text.splitlines()).translate(dict.fromkeys(range(32), "\ufffd"))


@pytest.mark.parametrize("case", ODD)
def test_as_many_lines_out_as_in(case: str, model: Path, tmp_path: Path) -> None:
    content, count = ODD[case]
    (tmp_path / "in").write_bytes(content)
    from_file = heedful("predict", model, tmp_path / "in", "--beam", 2)
    from_stdin = heedful("predict", model, "-", "--beam", 2, stdin=content)
    to_file = heedful("predict", model, tmp_path / "in", "--beam", 2, "--out", tmp_path / "new" / "out.txt")
    assert (from_file.code, from_stdin.code, to_file.code) == (0, 0, 0)
    assert from_file.raw.count(b"\n") == count
    assert from_file.out.splitlines() == from_file.out.split("\n")[:-1]  # no line end of any kind inside a line
    assert from_file.raw == from_stdin.raw == (tmp_path / "new" / "out.txt").read_bytes()
    assert to_file.raw == b""


def test_several_inputs_are_answered_in_order(model: Path, tmp_path: Path) -> None:
    """Files, texts and standard input; their names stand where lines are numbered, and nowhere else."""
    (tmp_path / "one.txt").write_text("a b\nb a\n")
    (tmp_path / "two.txt").write_text("b\n")
    files = [str(tmp_path / name) for name in ("one.txt", "two.txt")]
    separate = [heedful("predict", model, *given).raw for given in ([files[0]], [files[1]], ["a a"])]
    assert heedful("predict", model, *files, "a a").raw == b"".join(separate)
    assert heedful("predict", model, "-", files[1], stdin=b"a b\nb a\n").raw == b"".join(separate[:2])
    rows = [json.loads(row) for row in heedful("predict", model, *files, "a", "--json").out.splitlines()]
    assert [(row["file"], row["line"]) for row in rows] == [(files[0], 1), (files[0], 2), (files[1], 1), ("text 3", 1)]
    best = heedful("predict", model, *files, "--n-best", 2, "--beam", 2).out.splitlines()
    assert [row.split("\t")[:2] for row in best[-2:]] == [[files[1], "1"]] * 2


def test_one_missing_input_is_named_before_anything_is_answered(model: Path, tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("a b\n")
    done = heedful("predict", model, tmp_path / "one.txt", tmp_path / "tow.txt")
    assert (done.code, done.out) == (1, "")
    assert "tow.txt: there is no such file" in done.err


def test_refused_lines_of_all_inputs_are_counted(model: Path, tmp_path: Path) -> None:
    for name in ("one.txt", "two.txt"):
        (tmp_path / name).write_bytes(b"a\n\xff\n")
    done = heedful("predict", model, tmp_path / "one.txt", tmp_path / "two.txt")
    assert done.code == 1
    assert "one.txt:2:" in done.err
    assert "two.txt:2:" in done.err
    assert "2 of 4 lines were refused" in done.err


def test_an_empty_line_gives_an_empty_line(model: Path) -> None:
    lines = heedful("predict", model, stdin=b"a b\n\n   \nb\n").out.split("\n")
    assert [bool(line) for line in lines] == [True, False, False, True, False]


@tried(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(max_size=12), max_size=4))
def test_any_text_keeps_its_lines(model: Path, texts: list[str]) -> None:
    lines = [text.encode(errors="ignore").replace(b"\n", b"") for text in texts]
    done = heedful("predict", model, stdin=b"".join(line + b"\n" for line in lines))
    assert done.code == 0, done.err
    assert done.raw.count(b"\n") == len(lines)


def test_a_text_in_the_command_is_translated(model: Path) -> None:
    done = heedful("predict", model, "a b c")
    (expected,) = package.load(model, "translation").predict(["a b c"])
    assert done.out == " ".join(expected.splitlines()) + "\n"
    assert heedful("predict", model, "").out == "\n"
    assert heedful("predict", model, "a\nb").out.count("\n") == 2
    assert heedful("predict", model, "3.5").code == 0
    assert heedful("predict", model, "and/or").code == 0


@pytest.mark.parametrize("text", ["test.txt", "data/test.ko", "./x", "/no/such/file", "문장.txt", "a.tsv.gz", "x.JSON"])
def test_a_file_that_is_not_there_is_no_text(text: str, model: Path) -> None:
    done = heedful("predict", model, text)
    assert done.code == 1
    assert f"error: {text}: there is no such file" in done.err


def test_many_lines_stream_in_order(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The output of a chunk is there before the next chunk is read."""
    monkeypatch.setattr("heedful.cli.predict.CHUNK", 10)
    written: list[int] = []

    class Lines(io.BytesIO):
        def readline(self, size: int | None = -1, /) -> bytes:
            out = sys.stdout.buffer
            assert isinstance(out, io.BytesIO)
            written.append(out.getvalue().count(b"\n"))
            return super().readline(size)

    texts = [f"a {number}" for number in range(35)]
    stdin = "".join(f"{text}\n" for text in texts).encode()
    monkeypatch.setattr(io, "BytesIO", Lines)
    done = heedful("predict", model, "--beam", 1, stdin=stdin)
    assert written[10:] == [10] * 10 + [20] * 10 + [30] * 5 + [30]
    expected = package.load(model, "translation").predict(texts, beam=1)
    assert done.out.split("\n")[:-1] == [shown(text) for text in expected]


@pytest.fixture
def long_line() -> str:
    return " ".join(["a b c d e f g h i j"] * 60)


def test_a_line_that_is_refused_costs_no_other(model: Path, long_line: str, tmp_path: Path) -> None:
    damaged = b"\xbe\xc8\xb3\xe7"  # Korean in CP949
    lines = [b"a", long_line.encode(), b"b", damaged, b"a" * (1 << 20), b"c d", b"a b " * 300, b""]
    (tmp_path / "in").write_bytes(b"\n".join(lines))
    to_file = heedful("predict", model, tmp_path / "in", "--out", tmp_path / "out")
    to_screen = heedful("predict", model, tmp_path / "in")
    with pytest.warns(LongTextWarning, match="2 sentences"):
        written = package.load(model, "translation").predict(["a", long_line, "b", "", "", "c d", "a b " * 300])
    expected = [shown(text) for text in written]
    assert (tmp_path / "out").read_text().split("\n") == [*expected, ""]
    assert to_screen.out.split("\n") == [*expected, ""]
    for done in (to_file, to_screen):
        assert done.code == 1
        first, second, _, long, last = done.err.splitlines()
        assert first.startswith(f"{tmp_path / 'in'}:4: byte 0xbe")
        assert "CP949" in first
        assert second.startswith(f"{tmp_path / 'in'}:5: the line is too long (over 1 MiB)")
        assert long.startswith("warning: 2 sentences longer than the longest in training")
        assert last == "error: 2 of 7 lines were refused; the output has an empty answer for each"


def test_long_texts_of_several_chunks_are_one_warning(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heedful.cli.predict.CHUNK", 2)
    lines = ["a " * 100, "a " * 200, "a", "a " * 150, "a"]
    done = heedful("predict", model, "--beam", 1, stdin="".join(f"{line}\n" for line in lines).encode())
    (warned,) = (line for line in done.err.splitlines() if "sentences" in line)
    assert "3 sentences longer than the longest in training" in warned
    assert "the longest with 201" in warned


TABLES = {
    "named.tsv": "xb\txa\tn\nB A\ta b\t1\n\nC\tc\t2\n",
    "plain.tsv": "a b\tB A\n\nc\tC\n",
    "quoted.csv": 'n,source,target\n1,"a b",B A\n\n2,c,"C, d"\n',
    "semicolons.csv": "source;target\na b;B A\n\nc;C\n",
    "lines.jsonl": '{"xa": "a b", "n": 1}\n{"xa": null}\n{"n": 2, "xa": "c"}\n',
    "inner.jsonl": '{"translation": {"xb": "B A", "xa": "a b"}}\n{}\n{"translation": {"xa": "c"}}\n',
}


@pytest.mark.parametrize("name", TABLES)
def test_of_a_table_the_column_with_the_source_is_read(name: str, model: Path, tmp_path: Path) -> None:
    (tmp_path / name).write_text(TABLES[name], encoding="utf-8")
    done = heedful("predict", model, tmp_path / name)
    assert done.code == 0, done.err
    assert done.raw == heedful("predict", model, stdin=b"a b\n\nc\n").raw
    assert done.err.startswith(f"{tmp_path / name}: reads {'column 1 of 2' if name == 'plain.tsv' else ''}")


def test_a_row_of_a_table_that_is_refused_costs_no_other(model: Path, tmp_path: Path) -> None:
    (table := tmp_path / "some.jsonl").write_text('{"n": 1, "xa": "a\\nb"}\nnot json\n{"n": 2, "xa": "c"}\n')
    done = heedful("predict", model, table, "--json")
    rows = [json.loads(line) for line in done.out.splitlines()]
    first, last = package.load(model, "translation").predict(["a\nb", "c"])
    assert [row.get("text") for row in rows] == [first, "", last]
    assert "\n" in rows[0]["text"]
    assert [row["line"] for row in rows] == [1, 2, 3]
    assert (done.code, rows[1]["error"]) == (1, "not a JSON object")
    assert f"{table}:2: not a JSON object" in done.err


@pytest.mark.parametrize("name", ["some.po", "some.mo"])
def test_a_catalog_is_refused_with_a_way_to_translate_it(name: str, model: Path, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b'msgid "a"\nmsgstr ""\n')
    done = heedful("predict", model, tmp_path / name)
    assert (done.code, done.out) == (1, "")
    assert f"po2csv {tmp_path / name} some.csv" in done.err


def test_a_text_that_is_refused_is_named(model: Path) -> None:
    done = heedful("predict", model, stdin=b"\xff\n")
    assert done.err.splitlines()[0] == "<stdin>:1: byte 0xff at 1 is not UTF-8; convert the file to UTF-8"
    assert (done.code, done.raw) == (1, b"\n")


def test_a_long_text_is_cut_at_sentence_ends(model: Path, long_line: str) -> None:
    done = heedful("predict", model, "-", stdin=(long_line.replace(" j", " j.") + "\n").encode())
    assert done.code == 0
    assert done.out.count("\n") == 1


def test_an_old_output_stays_until_the_new_one_is_whole(model: Path, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("old")
    packed = gzip.compress(b"a\n" * 9)
    (tmp_path / "in.gz").write_bytes(packed[:-9])
    broken = heedful("predict", model, tmp_path / "in.gz", "--out", tmp_path / "out")
    assert broken.code == 1
    assert "ends too early" in broken.err
    assert (tmp_path / "out").read_text() == "old"
    assert heedful("predict", model, "--out", tmp_path / "out", stdin=b"a\n").code == 0
    assert (tmp_path / "out").read_text() != "old"
    assert heedful("predict", model, "a", "--out", tmp_path).code == 1


def test_answers_that_came_to_no_end_are_summed_up_in_one_line(model: Path) -> None:
    done = heedful("predict", model, stdin=b"a b c d e f\n" * 9)
    assert done.code == 0
    assert done.err == "warning: 9 of 9 answers reached their length limit: line 1, 2, 3, 4, 5, …\n"


@pytest.mark.parametrize(
    "words", [("--beam", 0), ("--device", "gpu"), ("--length-penalty", "x"), ("--length-penalty", 99)]
)
def test_wrong_words_for_the_search(words: tuple[object, ...], model: Path) -> None:
    done = heedful("predict", model, "a", *words)
    assert done.code == 2
    assert "Traceback" not in done.err


class Waiting:
    """A process that answers line by line, and has answered one: it waits for the next."""

    def __init__(self, model: Path) -> None:
        program = "from heedful.cli import main, predict; predict.CHUNK = 1; main()"
        self.process = subprocess.Popen(
            [sys.executable, "-c", program, "predict", model],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.say()
        assert self.process.stdout is not None
        assert self.process.stdout.readline()

    def say(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"a b\n")
        self.process.stdin.flush()

    def end(self) -> tuple[int, bytes]:
        with self.process as process:
            assert process.stderr is not None
            errors = process.stderr.read()
        return process.returncode, errors


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_without_a_word(number: signal.Signals, code: int, model: Path) -> None:
    waiting = Waiting(model)
    waiting.process.send_signal(number)
    assert waiting.end() == (code, b"")


def test_a_closed_pipe_ends_it_without_a_word(model: Path) -> None:
    waiting = Waiting(model)
    assert waiting.process.stdout is not None
    waiting.process.stdout.close()  # as head -1 does
    waiting.say()
    code, errors = waiting.end()
    assert code != 0
    assert errors == b""
