"""`heedful evaluate` and `heedful report`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import sacrebleu

import heedful as package
from shell import heedful, quick_train

pytest_plugins = ["quick_model"]


@pytest.fixture(scope="module")
def no_attention(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("plain") / "run"
    task = ("train", "translation", "--data", corpus / "train.tsv", "--source", "xa", "--target", "xb", "--out", run)
    small = ("--set", "model.d_model=16", "--set", "training.steps=2", "--set", "tokenizer.vocab_size=300")
    done = heedful(*task, "--attention", "none", *small)
    assert done.code == 0, done.err
    return run


def test_the_scores_are_sacrebleus_of_what_predict_gives(model: Path, corpus: Path, tmp_path: Path) -> None:
    done = heedful("evaluate", model, "--data", corpus / "valid.tsv", "--out", tmp_path / "new" / "scores.json")
    assert done.code == 0, done.err
    pairs = [line.split("\t") for line in (corpus / "valid.tsv").read_text().splitlines()]
    outputs = package.load(model, "translation").predict([source for source, _ in pairs])
    references = [[target for _, target in pairs]]
    actual = json.loads((tmp_path / "new" / "scores.json").read_text())
    assert actual["scores"]["bleu"]["value"] == sacrebleu.corpus_bleu(outputs, references, force=True).score
    assert actual["scores"]["chrf"]["value"] == sacrebleu.corpus_chrf(outputs, references).score
    assert [sample["output"] for sample in actual["samples"]] == outputs
    for words in ("20 pairs", "BLEU: nrefs:1|bs:1000|seed:12345", "chrF2: nrefs:1", "±", "Best", "Worst"):
        assert words in done.out
    assert sum(count for _, count, _ in actual["by_length"]) == 20
    assert f"{actual['unfinished']:,} of 20 answers were cut at their length limit" in done.out + done.err


def test_the_best_and_the_worst_are_told_apart_and_shown_once(model: Path, tmp_path: Path) -> None:
    (few := tmp_path / "few.tsv").write_text("a b\tb a\nc d e\te d c\nf\tf\n")
    done = heedful("evaluate", model, "--data", few, "--samples", 2)
    assert [done.out.count(f"{source} ") for source in ("a b", "c d e")] == [1, 1]
    none = heedful("evaluate", model, "--data", few, "--samples", 0)
    assert "Best" not in none.out
    assert "Worst" not in none.out


def test_text_with_markup_and_escapes_is_shown_as_it_is(model: Path, tmp_path: Path) -> None:
    (odd := tmp_path / "odd.tsv").write_text("[red]x[/] [\tb [bold]\n\x1b[31mred\u202e\tc\n", encoding="utf-8")
    done = heedful("evaluate", model, "--data", odd)
    assert done.code == 0, done.err
    assert "[red]x[/] [" in done.out
    assert "\x1b" not in done.out
    assert "�[31mred�" in done.out


def test_lines_without_a_pair_are_named(model: Path, tmp_path: Path) -> None:
    (tmp_path / "some.tsv").write_text("a b\tb a\nno tab\n\nc\tc\n")
    done = heedful("evaluate", model, "--data", tmp_path / "some.tsv")
    assert done.code == 0
    assert "2 pairs" in done.out
    assert f"warning: dropped, too few columns: 1 ({tmp_path / 'some.tsv'}:2)" in done.err
    assert f"warning: dropped, empty: 1 ({tmp_path / 'some.tsv'}:3)" in done.err


def test_a_long_sentence_is_scored_with_a_warning(model: Path, tmp_path: Path) -> None:
    (tmp_path / "long.tsv").write_text("a\tb\n" + "a " * 400 + "\tb\n")
    done = heedful("evaluate", model, "--data", tmp_path / "long.tsv", "--strict")
    assert done.code == 0
    assert "2 pairs" in done.out
    assert done.err.startswith("warning: 1 sentence longer than the longest in training")


def test_a_refused_sentence_is_counted_and_named_and_strict_stops_at_it(model: Path, tmp_path: Path) -> None:
    (few := tmp_path / "few.tsv").write_text("a b\tb a\nc\tc\n")
    (odd := tmp_path / "odd.jsonl").write_text(
        '{"xa": "a b", "xb": "b a"}\n{"xa": "a \\ud800", "xb": "b"}\n{"xa": "c", "xb": "c"}\n'
    )
    outs = [tmp_path / "few.json", tmp_path / "odd.json"]
    few_done, done = (
        heedful("evaluate", model, "--data", path, "--out", out) for path, out in zip((few, odd), outs, strict=True)
    )
    assert done.code == 0, done.err
    without, scores = (json.loads(out.read_text()) for out in outs)
    reason = f"{odd}:2: half a surrogate pair"
    assert scores["refused"]["count"] == 1
    assert scores["refused"]["of"] == 3
    assert scores["refused"]["first"][0].startswith(reason)
    assert {**scores, "refused": None} == {**without, "refused": None}  # of the others as if it were not there
    assert "2 pairs (1 of 3 refused)" in done.out
    assert "2 pairs  " in few_done.out
    assert (
        f"warning: 1 of 3 examples were refused and are not scored (--strict makes this an error): {reason}" in done.err
    )
    strict = heedful("evaluate", model, "--data", odd, "--strict")
    assert (strict.code, strict.out) == (1, "")
    assert strict.err.startswith(f"error: {reason}")


def test_alignments_are_compared_where_there_is_attention(model: Path, no_attention: Path, tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("a b\tb a\nc d\td c\ne f\tf e\ng h\th g\n")
    (tmp_path / "gold").write_text("0-1 1-0\n0-1 1?0\n0-1 1-0\n0-1 1-0\n")
    words = ("--data", tmp_path / "pairs.tsv", "--alignments", tmp_path / "gold")
    done = heedful("evaluate", model, *words, "--out", tmp_path / "scores.json")
    assert done.code == 0, done.err
    assert "of the diagonal: 100.0 %" in done.out  # it joins 0-0 and 1-1, and not one of the true links
    alignment = json.loads((tmp_path / "scores.json").read_text())["alignment"]
    assert alignment["diagonal"] == 100.0
    assert 0 <= alignment["error_rate"] <= 100
    done = heedful("evaluate", no_attention, *words)
    assert done.code == 1
    assert "has no attention" in done.err


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("0-1\n", "gold has 1 lines for 2 pairs"),
        ("0-1\n0-9\n", "gold:2: 0-9 points beyond the 2 source and 2 target words"),
        ("0-1\n0:1\n", "gold:2: a link looks like 0-2"),
    ],
)
def test_wrong_alignments_are_named_by_line(content: str, said: str, model: Path, tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("a b\tb a\nc d\td c\n")
    (tmp_path / "gold").write_text(content)
    done = heedful("evaluate", model, "--data", tmp_path / "pairs.tsv", "--alignments", tmp_path / "gold")
    assert done.code == 1
    assert said in done.err
    assert len(done.err.splitlines()) == 1


def test_scores_go_into_json_alone(model: Path, corpus: Path, tmp_path: Path) -> None:
    assert heedful("evaluate", model, "--data", corpus / "valid.tsv", "--out", tmp_path / "scores.txt").code == 2


def test_a_report_goes_into_the_runs_folder_unless_told_otherwise(corpus: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert quick_train(run, [corpus / "train.tsv"]).code == 0
    (run / "report.html").unlink()
    assert heedful("report", run, "--language", "ko").code == 0
    assert 'lang="ko"' in (run / "report.html").read_text(encoding="utf-8")
    done = heedful("report", run, tmp_path / "nothing")
    assert done.code == 1
    assert "nothing" in done.err
