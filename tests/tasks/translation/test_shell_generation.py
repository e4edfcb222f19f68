"""`heedful predict` with generation's options: the same as from Python, in every form of output, bit by bit too."""

from __future__ import annotations

import io
import json
import sys
import unicodedata
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

import heedful as package
from heedful.data.tokenizer import BYTE
from heedful.generation import Hypothesis, Stream
from heedful.tasks.text_generator import Answer, best_joined
from heedful.tasks.translation import Translator
from shell import heedful

pytest_plugins = ["quick_model"]

WORDS: list[dict[str, Any]] = [
    {"beam": 3, "length_penalty": 0.3, "length_penalty_kind": "google"},
    {"sample": True, "temperature": 1.5, "top_k": 9, "seed": 4},
    {"sample": True, "top_p": 0.8, "min_p": 0.01, "seed": 0},
    {"min_new_tokens": 3, "max_new_tokens": 6},
    {"repetition_penalty": 1.4, "no_repeat_ngram_size": 2},
    {"precision": "int8"},
    {"precision": "bf16"},
]


@pytest.mark.parametrize("keywords", WORDS)
def test_an_option_is_the_keyword(keywords: dict[str, Any], model: Path) -> None:
    words = [f"--{name.replace('_', '-')}" + ("" if value is True else f"={value}") for name, value in keywords.items()]
    texts = ["a b c", "d e", "f"]
    done = heedful("predict", model, *words, stdin="".join(f"{text}\n" for text in texts).encode())
    expected = package.load(model, "translation").predict(texts, **keywords)
    assert done.out == "".join(f"{shown(text)}\n" for text in expected)


def shown(text: str) -> str:
    """One line, and nothing in it that a terminal would obey."""
    return "".join(
        "\ufffd" if unicodedata.category(character) == "Cc" and character != "\t" else character
        for character in " ".join(text.splitlines())
    )


def test_several_answers_are_numbered_by_their_line(model: Path) -> None:
    done = heedful("predict", model, "--n-best", 3, "--scores", stdin=b"a b c\n\nd e\n")
    rows = [line.split("\t") for line in done.out.split("\n")[:-1]]
    assert [row[0] for row in rows] == ["1", "1", "1", "2", "3", "3", "3"]
    actual = package.load(model, "translation").candidates(["a b c", "", "d e"], beam=3, n_best=3)
    flat = [answer for answers in actual for answer in answers]
    assert [float(row[3]) for row in rows] == pytest.approx([answer.logprob for answer in flat], abs=1e-3)
    for answers in actual:
        assert [answer.score for answer in answers] == sorted((answer.score for answer in answers), reverse=True)


def test_json_holds_everything(model: Path) -> None:
    done = heedful("predict", model, "--json", "--sample", "--n-best", 2, stdin="a b c\n밥\n".encode())
    rows = [json.loads(line) for line in done.out.split("\n")[:-1]]
    assert [(row["line"], row["rank"]) for row in rows] == [(1, 1), (1, 2), (2, 1), (2, 2)]
    actual = package.load(model, "translation").candidates(["a b c", "밥"], sample=True, n_best=2)
    for row, answer in zip(rows, (answer for answers in actual for answer in answers), strict=True):
        assert (row["text"], row["finished"], row["confidence"]) == (answer.text, answer.finished, None)
        assert row["tokens"] == [piece.text for piece in answer.pieces]
        assert sum(row["token_logprobs"]) == pytest.approx(row["logprob"])
    assert "gives no confidence" in done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--sample", "--beam", 3], "sampling has no beam"),
        (["--beam", 3, "--n-best", 30], "cannot give the 30 best answers"),
        (["--top-k", 3], "turn sample on"),
        (["--sample", "--temperature", 0], "temperature must be above 0"),
        (["--precision", "int4"], "int4"),
        (["--scores", "--json"], "give one of them"),
        (["--stream", "--scores"], "--stream writes one plain answer"),
        (["--stream", "--n-best", 2], "--stream writes one plain answer"),
    ],
)
def test_wrong_words_are_refused(words: list[object], said: str, model: Path) -> None:
    done = heedful("predict", model, "a b", *words)
    assert done.code == 2
    assert said in done.err
    assert "Traceback" not in done.err


# Streams


@pytest.mark.parametrize("words", [[], ["--beam", 4], ["--sample", "--seed", 5], ["--max-new-tokens", 3]])
def test_a_stream_ends_as_the_same_text(words: list[object], model: Path) -> None:
    for text in ("a b c", "d e. f g. h", "밥을 먹어요", ""):
        plain, streamed = (heedful("predict", model, text, *words, *more) for more in ([], ["--stream"]))
        assert streamed.out == plain.out
        assert streamed.err == plain.err  # an answer that came to no end is named here too


def test_a_stream_is_for_one_text(model: Path, corpus: Path) -> None:
    for text in ("-", corpus / "valid.tsv", "a\nb"):
        done = heedful("predict", model, text, "--stream")
        assert done.code == 2
        assert "--stream is for one text" in done.err
    done = heedful("predict", model, "a" * (1 << 20), "--stream")
    assert (done.code, done.out) == (1, "\n")
    assert done.err.startswith("the text:1: the line is too long (over 1 MiB)")


def test_a_stream_of_a_text_longer_than_any_in_training_ends_as_the_same_text(model: Path) -> None:
    plain, streamed = (heedful("predict", model, "a " * 400, *more) for more in ([], ["--stream"]))
    assert (plain.code, streamed.code) == (0, 0)
    assert plain.out.strip()
    assert streamed.out == plain.out
    for done in (plain, streamed):
        (warned,) = (line for line in done.err.splitlines() if "sentence" in line)
        assert warned.startswith("warning: 1 sentence longer than the longest in training")
        assert "was read whole, the longest with 401;" in warned


def test_only_whole_characters_are_shown(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hangul spelt in bytes, an emoji, bytes that are no character, and half a character at the end."""
    loaded: Translator = package.load(model, "translation")
    tokenizer = loaded.target_tokenizer
    spelt = [BYTE + byte for byte in " 한글👩\n".encode() + b"\xed\x95" + "끝".encode() + b"\xe2\x82"]
    ids = [*tokenizer.encode("a b"), *spelt]

    def tokens() -> Generator[int, None, Hypothesis]:
        yield from ids
        return Hypothesis(tuple(ids), -1.0, -1.0, finished=False, token_logprobs=(-0.1,) * len(ids))

    monkeypatch.setattr(Translator, "stream_tokens", lambda *_: Stream(tokens()))
    bits = loaded.stream("a b")
    shown, answer = list(bits), bits.answer
    assert answer is not None
    assert "".join(shown) == answer.text == "a b 한글👩\n\ufffd\ufffd끝\ufffd\ufffd"
    assert shown[-6:] == ["한", "글", "👩", "\n", "\ufffd\ufffd끝", "\ufffd\ufffd"]
    assert len(answer.pieces) < len(ids)
    assert sum(piece.logprob for piece in answer.pieces) == pytest.approx(-0.1 * len(ids))


def test_what_is_certain_is_on_the_screen_at_once(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bytes] = []

    def bits() -> Generator[str, None, Answer]:
        for bit in ("한", "글", "\n", "끝"):
            out = sys.stdout.buffer
            assert isinstance(out, io.BytesIO)
            seen.append(out.getvalue())
            yield bit
        return Answer("한글\n끝", -1.0, True)

    monkeypatch.setattr(Translator, "stream", lambda *_, **__: Stream(bits()))
    assert heedful("predict", model, "a b", "--stream").out == "한글 끝\n"
    assert [shown.decode() for shown in seen] == ["", "한", "한글", "한글"]


def test_a_bundle_that_samples_goes_on_sampling_until_told_otherwise(model: Path) -> None:
    loaded: Translator = package.load(model, "translation")
    greedy, drawn = loaded.predict(["a b c"], beam=1), loaded.predict(["a b c"], sample=True)
    own = loaded.settings.generation.changed(beam=1, sample=True)
    loaded.settings = loaded.settings.changed(generation=own)
    assert loaded.predict(["a b c"]) == drawn
    assert len(loaded.candidates(["a b c"], n_best=3)[0]) == 3
    assert loaded.predict(["a b c"], sample=False) == greedy


def test_the_best_of_several_parts_are_the_best_together() -> None:
    def part(*scores: float) -> list[Answer]:
        return [Answer(str(score), score, True, 0.5, score) for score in scores]

    actual = best_joined([part(-1.0, -2.0), part(-0.1, -5.0), part(-1.0, -1.5)], ["", " ", " ", ""], 3)
    assert [answer.text for answer in actual] == ["-1.0 -0.1 -1.0", "-1.0 -0.1 -1.5", "-2.0 -0.1 -1.0"]
    assert [answer.confidence for answer in actual] == [0.125] * 3
    assert best_joined([], [""], 3) == [Answer("", 0, True)]


def test_a_refused_line_says_why_in_json(model: Path) -> None:
    done = heedful("predict", model, "--json", stdin=b"a b\n\xbe\xb3\n")
    rows = [json.loads(line) for line in done.out.split("\n")[:-1]]
    assert done.code == 1
    assert ["error" in row for row in rows] == [False, True]
    assert "0xbe" in rows[1]["error"]
