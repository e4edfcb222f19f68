"""What README.md and the pages about tasks show, runs: on small files, with models of one layer, for two steps."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from heedful import tasks
from heedful.families import build, config_of, write_checkpoint
from heedful.tasks.images.predictor import png
from heedful.tasks.registry import TRAINED
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
    "language-model": (*ONE_LAYER, "max_length=16", "tokenizer.vocab_size=300", "generation.max_new_tokens=8"),
    "classification": (*ONE_LAYER, "max_length=32", "tokenizer.vocab_size=300"),
    "question-answering": (*ONE_LAYER, "max_length=64", "tokenizer.vocab_size=300"),
    "tagging": (*ONE_LAYER, "max_length=64", "tokenizer.vocab_size=300"),
    "masked-lm": (*ONE_LAYER, "max_length=32", "tokenizer.vocab_size=300"),
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
    own = () if words[1] in ("classification", "masked-lm") and "--init-from" in words else SMALL[words[1]]
    named = [setting if "." in setting.partition("=")[0] else f"model.{setting}" for setting in own]
    settings = [*named, *(f"training.{setting}" for setting in TRAINING)]
    return [*words, *(word for setting in settings for word in ("--set", setting))]


def run(words: list[str]) -> None:
    """It must have something to say, and come to a good end."""
    program, *rest = words
    done = heedful(*small(rest))
    assert (program, done.code) == ("heedful", 0), f"{shlex.join(words)}\n{done.err}"
    assert done.out, shlex.join(words)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file that the pages name."""
    monkeypatch.chdir(tmp_path)
    for make in (texts, questions, series, images, bert):
        make(tmp_path)


def sentences(n: int, seed: int = 0) -> list[str]:
    draw = np.random.default_rng(seed)
    return [" ".join(draw.choice(WORDS, draw.integers(3, 9))) for _ in range(n)]


def write(path: Path, *lines: str) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def texts(folder: Path) -> None:
    for seed, name in enumerate(("texts", "test-texts", "notes")):
        write(folder / f"{name}.txt", *sentences(60, seed))
    for seed, name in enumerate(("shakespeare", "sonnets")):
        write(folder / f"{name}.txt", "ROMEO:", *sentences(60, seed))
    for seed, prefix in enumerate(("", "test-")):
        lines = sentences(100, seed)
        write(folder / f"{prefix}pairs.tsv", *(f"책을 {n} 읽어요.\t{line}." for n, line in enumerate(lines)))
        write(folder / f"{prefix}news.csv", "article,summary", *(f"{line} again.,{line[:3]}" for line in lines))
        kinds = (("neg", "awful"), ("pos", "lovely"))
        labelled = (f"{line} {kinds[n % 2][1]}\t{kinds[n % 2][0]}" for n, line in enumerate(lines))
        write(folder / f"{prefix}reviews.tsv", "document\tlabel", *labelled)
    for same, name in (
        ("test-news.csv", "test.csv"),
        ("reviews.tsv", "nsmc-train.tsv"),
        ("test-reviews.tsv", "nsmc-dev.tsv"),
    ):
        shutil.copy(folder / same, folder / name)
    (settings,) = blocks(page("language-models"), "yaml")
    write(folder / "nanogpt.yaml", settings)


def questions(folder: Path) -> None:
    """Questions about sentences, and words with tags: every dog of a sentence is an answer and an entity."""
    for seed, (squad, conll) in enumerate((("squad", "train"), ("test-squad", "test"))):
        contexts = [f"{line} and a dog" for line in sentences(60, seed)]
        entries = [
            {"question": f"Who is number {n}?", "answers": [{"text": "dog", "answer_start": context.index("dog")}]}
            for n, context in enumerate(contexts)
        ]
        passages = [{"context": context, "qas": [entry]} for context, entry in zip(contexts, entries, strict=True)]
        (folder / f"{squad}.json").write_text(json.dumps({"data": [{"paragraphs": passages}]}), encoding="utf-8")
        tags = {"dog": "B-ANIMAL"}
        write(
            folder / f"{conll}.conll",
            *(f"{word} {tags.get(word, 'O')}" if word else "" for line in contexts for word in [*line.split(), ""]),
        )
    write(folder / "questions.tsv", "Who is it?\tthe story of a dog", "Who was there?\tone man and his dog")


def series(folder: Path) -> None:
    days = np.datetime64("2020-01-01") + np.arange(1300)
    walk = np.random.default_rng(0).normal(size=(len(days), 2)).cumsum(axis=0) + 200
    rows = [f"{day},{a:.3f},{b:.3f}" for day, (a, b) in zip(days, walk, strict=True)]
    for name, kept in (("prices", rows[:300]), ("later-prices", rows[300:400]), ("ETTh1", rows)):
        write(folder / f"{name}.csv", "date,open,close", *kept)
    stocks = (f"{name},{row}" for name in ("AAPL", "MSFT", "IBM") for row in rows[:200])
    write(folder / "stocks.csv", "Ticker,Date,Close,Adj Close", *stocks)


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


def bert(folder: Path) -> None:
    """As others publish one, under the name that the pages use."""
    config = config_of({"preset": "bert-tiny", "vocab_size": 3, "d_model": 16, "d_ff": 32, "head": "hidden"})
    write_checkpoint(folder / "all-MiniLM-L6-v2", build(config), config)
    words: Any = Tokenizer(models.WordLevel({"?": 0, "A": 1, "cat": 2}, unk_token="?"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.save(str(folder / "all-MiniLM-L6-v2" / "tokenizer.json"))


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("name", PAGES)
def test_the_commands_of_a_page_run_and_then_its_code(name: str) -> None:
    pytest.importorskip("PIL", reason="needs Pillow: pip install heedful[images]")
    for words in commands(page(name)):
        run(words)
    for code in blocks(page(name), "python"):
        exec(compile(code, f"{name}.md", "exec"), {})


def readme(name: str) -> list[list[str]]:
    """The commands of a README that call heedful."""
    text = (DOCS.parent / name).read_text(encoding="utf-8").replace("```bash\n", "```sh\n")
    return [words for words in commands(text) if words[0] == "heedful"]


@pytest.mark.usefixtures("files")
def test_the_commands_of_the_readme_run() -> None:
    shown = readme("README.md")
    assert {words[1] for words in shown} == {
        "translate",
        "train",
        "predict",
        "evaluate",
        "look",
        "serve",
        "import",
        "export",
    }
    for words in shown:
        if words[1] == "serve":  # it would not end; tests/end_to_end/test_serve.py runs it
            assert Path(words[2]).is_dir()
            assert heedful(*words[1:], "--help").code == 0
        else:
            run(words)


@pytest.mark.parametrize("name", ["README.md", "README.ko.md"])
def test_a_readme_trains_as_the_page_about_tasks_does(name: str) -> None:
    trained = [words for words in readme(name) if words[1] == "train"]
    assert trained
    assert [words for words in trained if words not in commands(page("tasks"))] == []


def test_every_task_has_its_row_and_its_commands() -> None:
    shown = page("tasks")
    rows = re.findall(r"^\| `([\w-]+)` \|", shown, re.M)
    assert set(rows) == {*TRAINED, "embedding"}
    trained = [words[2] for words in commands(shown) if words[1] == "train"]
    assert set(trained) == TRAINED.keys()
    assert {words[1] for words in commands(shown)} == {"train", "predict", "evaluate", "import"}


@pytest.mark.parametrize("block", blocks(page("add-a-task"), "python"))
def test_the_code_of_a_task_shown_is_the_code_there_is(block: str) -> None:
    first, _, code = block.partition("\n")
    source = (Path(tasks.__file__).parents[1] / first.removeprefix("# ")).read_text(encoding="utf-8")
    place = 0
    for part in re.split(r"^ *# …\n", code, flags=re.M):
        place = source.find(part, place)
        assert place >= 0, f"{first} does not have, in this order:\n{part}"


def test_every_file_that_a_new_task_needs_exists() -> None:
    paths = re.findall(r"`((?:tasks|cli|serving|core|data|families|tests)/[\w./]+)`", page("add-a-task"))
    roots = DOCS.parent, Path(tasks.__file__).parents[1]
    assert len(paths) > 10
    assert [path for path in paths if not any((root / path).exists() for root in roots)] == []
