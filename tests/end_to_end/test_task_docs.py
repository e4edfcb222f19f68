"""What the pages about tasks show, runs: on files of a few lines, with models of one layer, for two steps."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from heedful.families import write_checkpoint
from heedful.tasks.images.looking import png
from heedful.tasks.registry import TRAINED
from published_pairs import pair
from shell import heedful

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("tasks", "language-models", "classification", "images", "forecasting", "text-to-text")
TRAINING = ("steps=2", "epochs=1", "batch_tokens=512", "device=cpu", "precision=float32", "warmup_steps=1")
ONE_LAYER = ("d_model=16", "n_heads=2", "d_ff=32", "n_layers=1")
BOTH_SIDES = ("d_model=16", "n_heads=2", "d_ff=32", "n_encoder_layers=1", "n_decoder_layers=1")
WORDS = ("the", "film", "was", "a", "story", "of", "one", "man", "and", "his", "dog", "in", "town")
SMALL = {  # settings after those of a page, which they overrule
    "translation": (*BOTH_SIDES, "tokenizer.vocab_size=300"),
    "text-to-text": (*BOTH_SIDES, "tokenizer.vocab_size=300", "generation.max_new_tokens=4"),
    "language_model": (*ONE_LAYER, "max_length=16", "tokenizer.vocab_size=300", "generation.max_new_tokens=8"),
    "classification": (*ONE_LAYER, "max_length=32", "tokenizer.vocab_size=300"),
    "masked": (*ONE_LAYER, "max_length=32", "tokenizer.vocab_size=300"),
    "images": (*ONE_LAYER, "patch_size=4"),
    "forecasting": (*ONE_LAYER, "data.split=[0.7, 0.1, 0.2]"),
}


def page(name: str) -> str:
    return (DOCS / f"{name}.md").read_text(encoding="utf-8")


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.S)


def commands(text: str) -> list[list[str]]:
    lines = "".join(blocks(text, "sh")).replace("\\\n", " ").splitlines()
    return [shlex.split(line, comments=True) for line in lines if line.strip()]


def small(words: list[str]) -> list[str]:
    """A command to train, made quick; what a base decides stays as it is."""
    if words[0] != "train":
        return words
    own = () if words[1] in ("classification", "masked") and "--from" in words else SMALL[words[1]]
    named = [setting if "." in setting.partition("=")[0] else f"model.{setting}" for setting in own]
    settings = [*named, *(f"training.{setting}" for setting in TRAINING)]
    return [*words, *(word for setting in settings for word in ("--set", setting))]


def run(words: list[str]) -> str:
    """Everything a command wrote; it must have come to a good end."""
    program, *rest = words
    done = heedful(*small(rest))
    assert (program, done.code) == ("heedful", 0), f"{shlex.join(words)}\n{done.err}"
    return done.out


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every file that the pages name."""
    monkeypatch.chdir(tmp_path)
    texts(tmp_path)
    series(tmp_path)
    images(tmp_path)
    return tmp_path


def sentences(n: int, seed: int = 0) -> list[str]:
    draw = np.random.default_rng(seed)
    return [" ".join(draw.choice(WORDS, draw.integers(3, 9))) for _ in range(n)]


def texts(folder: Path) -> None:
    for name, seed in (("texts", 0), ("test-texts", 1), ("notes", 2), ("shakespeare", 3), ("sonnets", 4)):
        (folder / f"{name}.txt").write_text("ROMEO:\n" * (seed > 2) + "\n".join(sentences(60, seed)) + "\n")
    for prefix, seed in (("", 5), ("test-", 6)):
        lines = sentences(100, seed)
        labelled = [f"{line} {('awful', 'lovely')[n % 2]}\t{('neg', 'pos')[n % 2]}" for n, line in enumerate(lines)]
        (folder / f"{prefix}reviews.tsv").write_text("\n".join(["document\tlabel", *labelled]) + "\n")
        (folder / f"{prefix}pairs.tsv").write_text("".join(f"책을 {n} 읽어요.\t{line}.\n" for n, line in enumerate(lines)))
        news = [f"{line} again.,{line.split()[0]}" for line in lines]
        (folder / f"{prefix}news.csv").write_text("\n".join(["article,summary", *news]) + "\n")
    for name, same in (("test.csv", "test-news.csv"), ("nsmc-train.tsv", "reviews.tsv"), ("nsmc-dev.tsv", "test-reviews.tsv")):
        shutil.copy(folder / same, folder / name)
    for block in blocks(page("language-models"), "yaml"):
        (folder / "nanogpt.yaml").write_text(block)


def series(folder: Path) -> None:
    days = np.datetime64("2020-01-01") + np.arange(1300)
    walk = np.random.default_rng(0).normal(size=(len(days), 2)).cumsum(axis=0) + 200
    rows = [f"{day},{a:.3f},{b:.3f}" for day, (a, b) in zip(days, walk, strict=True)]
    for name, kept in (("prices", rows[:300]), ("later-prices", rows[300:400]), ("ETTh1", rows)):
        (folder / f"{name}.csv").write_text("\n".join(["date,open,close", *kept]) + "\n")
    stocks = [f"{name},{row}" for name in ("AAPL", "MSFT", "IBM") for row in rows[:200]]
    (folder / "stocks.csv").write_text("\n".join(["Ticker,Date,Close,Adj Close", *stocks]) + "\n")


def images(folder: Path) -> None:
    draw = np.random.default_rng(0)
    for name in ("photos", "test-photos", "new-photos"):
        for number in range(20):
            inner = folder / name / ("" if name == "new-photos" else ("cat", "dog")[number % 2])
            inner.mkdir(parents=True, exist_ok=True)
            (inner / f"{number}.png").write_bytes(png(draw.integers(0, 255, (8, 8, 3), dtype=np.uint8)))
    (folder / "mnist").mkdir()
    for part in ("train", "t10k"):
        pixels = draw.integers(0, 255, (40, 8, 8), dtype=np.uint8)
        idx(folder / "mnist" / f"{part}-images-idx3-ubyte", pixels)
        idx(folder / "mnist" / f"{part}-labels-idx1-ubyte", np.arange(40, dtype=np.uint8) % 4)


def idx(path: Path, values: Any) -> None:
    sizes = np.array(values.shape, ">i4").tobytes()
    path.write_bytes(bytes([0, 0, 8, values.ndim]) + sizes + values.tobytes())


@pytest.fixture
def published(files: Path) -> None:
    """A folder of a tiny BERT, under the name that the pages use."""
    both = pair("bert hidden")
    write_checkpoint("all-MiniLM-L6-v2", both.module, both.config)
    words: Any = Tokenizer(models.WordLevel({"?": 0, "A": 1, "cat": 2}, unk_token="?"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.save("all-MiniLM-L6-v2/tokenizer.json")


@pytest.mark.usefixtures("files", "published")
@pytest.mark.parametrize("name", PAGES)
def test_the_commands_of_a_page_run_and_then_its_code(name: str) -> None:
    pytest.importorskip("PIL", reason="needs Pillow: pip install heedful[images]")
    for words in commands(page(name)):
        run(words)
    for code in blocks(page(name), "python"):
        exec(compile(code, f"{name}.md", "exec"), {})


def test_every_task_has_its_row_and_its_commands() -> None:
    shown = page("tasks")
    rows = re.findall(r"^\| `([\w-]+)` \|", shown, re.M)
    assert set(rows) == {*TRAINED, "embedding"}
    trained = [words[2] for words in commands(shown) if words[1] == "train"]
    assert set(trained) == TRAINED.keys()
    assert {words[1] for words in commands(shown)} == {"train", "predict", "evaluate", "import"}
