"""The sets of `defaults.py`: where their files come from, what is scored and the floor it must reach.

`DefaultSet.files` writes what is generated into a folder and returns the arguments that name the files; it raises
`MissingDataError` where a corpus is absent.
"""

from __future__ import annotations

import csv
import gzip
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from _synthetic import Pair, brackets, code, commands, data_set, dates, numbers, reversals, seasonal_series

Arguments = dict[str, list[str]]  # of `train` and `evaluate`

N_TRAIN, N_TEST = 10_000, 1000  # of the tasks with rules
RECIPES = Path(__file__).resolve().parent.parent / "recipes"
NGRAMS = "linear"  # the score of the linear model over n-grams, or over pixels


class MissingDataError(Exception):
    """What a set needs is not on this machine."""


@dataclass(frozen=True, kw_only=True)
class DefaultSet:
    """A set, the score that counts and its floor: a figure, or what `margin` makes of the rival's score."""

    name: str
    task: str
    metric: str
    files: Callable[[Path, Path], Arguments]  # from the corpora's folder, into a folder for generated files
    floor: float | None = None
    margin: Callable[[float], float] | None = None
    lower_is_better: bool = False
    rival: str = ""  # the name of its score
    options: tuple[str, ...] = ()  # which only say what the files are
    published: str = ""
    is_limited: bool = False  # to --minutes
    needs_gpu: bool = False


def write_table(path: Path, header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Path:
    """Write rows with a tab between their columns."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n", quoting=csv.QUOTE_NONE, quotechar=None)
        writer.writerows([header, *rows])
    return path


def there(*paths: Path) -> list[str]:
    """Return the paths as texts."""
    for path in paths:
        if not path.exists():
            raise MissingDataError(f"{path} is missing")
    return [str(path) for path in paths]


def data(*paths: str) -> list[str]:
    """Return the arguments that name data files."""
    return [argument for path in paths for argument in ("--data", path)]


def rule_set(make: Callable[[random.Random], Pair], floor: float) -> DefaultSet:
    """Return a set of pairs that a rule makes; the held-out pairs are of the same distribution."""

    def files(_: Path, folder: Path) -> Arguments:
        pairs = data_set(make, N_TRAIN + N_TEST, seed=0)
        parts = {"train": pairs[:N_TRAIN], "test": pairs[N_TRAIN:]}
        header = ("source", "target")
        return {name: data(str(write_table(folder / f"{name}.tsv", header, rows))) for name, rows in parts.items()}

    return DefaultSet(name=make.__name__, task="text-to-text", metric="exact", floor=floor, files=files)


def text_set(name: str, floor: float) -> DefaultSet:
    """Return a set of texts with classes, in a folder of its name."""

    def files(corpora: Path, _: Path) -> Arguments:
        train, test = there(corpora / name / "train.tsv", corpora / name / "test.tsv")
        return {"train": data(train), "test": data(test)}

    return DefaultSet(name=name, task="classification", metric="accuracy", floor=floor, files=files, rival=NGRAMS)


def reviews(n: int, *, is_limited: bool = False) -> DefaultSet:
    """Return a set of `n` Korean film reviews; with a time limit, they must reach the n-grams minus one point."""

    def files(corpora: Path, folder: Path) -> Arguments:
        train, dev = there(corpora / "nsmc" / "train.tsv.gz", corpora / "nsmc" / "dev.tsv.gz")
        with gzip.open(train, "rt", encoding="utf-8", newline="\n") as file:
            header, *lines = file
        chosen = random.Random(0).sample(lines, min(n, len(lines)))
        (folder / "train.tsv").write_text("".join([header, *chosen]), encoding="utf-8")
        return {"train": data(str(folder / "train.tsv")), "test": data(dev)}

    return DefaultSet(
        name=f"nsmc-{n}-limited" if is_limited else f"nsmc-{n}",
        task="classification",
        metric="accuracy",
        files=files,
        margin=(lambda rival: rival - 1.0) if is_limited else None,
        rival=NGRAMS,
        is_limited=is_limited,
    )


def digits(corpora: Path, folder: Path) -> Arguments:
    """Write 1,500 digits of MNIST for training and 2,000 for testing, each shrunk to 8 by 8 pixels."""
    arrays = {}
    for part, prefix, count in (("train", "train", 1500), ("test", "t10k", 2000)):
        names = (f"{prefix}-images-idx3-ubyte.gz", f"{prefix}-labels-idx1-ubyte.gz")
        pixels, labels = (
            gzip.decompress(Path(path).read_bytes()) for path in there(*(corpora / "mnist" / n for n in names))
        )
        images = np.frombuffer(pixels, np.uint8, offset=16).reshape(-1, 28, 28)[:, 2:26, 2:26]
        rows = np.random.default_rng(0).permutation(len(images))[:count]
        arrays[f"x_{part}"] = images[rows].reshape(count, 8, 3, 8, 3).mean(axis=(2, 4)).round().astype(np.uint8)
        arrays[f"y_{part}"] = np.frombuffer(labels, np.uint8, offset=8)[rows].astype(np.int64)
    np.savez(folder / "digits.npz", **arrays)
    return {name: data(str(folder / "digits.npz")) for name in ("train", "test")}


PUBLISHED = {("etth1", 96): ".370 / .375"}  # MSE of PatchTST/64 and of DLinear
SPLITS = {"etth1": "[8640,2880,2880]", "ettm1": "[34560,11520,11520]"}  # as published: 12, 4 and 4 months


def forecasts(name: str, horizon: int) -> DefaultSet:
    """Return a set of series with a horizon; its MSE may be half a percent above the linear model's."""

    def files(corpora: Path, folder: Path) -> Arguments:
        if name in SPLITS:
            (path,) = there(corpora / "ett" / f"{name[:3].upper()}{name[3:]}.csv.gz")
        else:
            header, rows = seasonal_series(8000, seed=0)
            path = str(folder / "seasonal.csv")
            Path(path).write_text("\n".join(",".join(row) for row in [header, *rows]) + "\n", encoding="utf-8")
        return {"train": data(path)}

    split = ("--set", f"data.split={SPLITS[name]}") if name in SPLITS else ()
    return DefaultSet(
        name=f"{name}-{horizon}",
        task="forecasting",
        metric="mse",
        files=files,
        margin=lambda rival: 1.005 * rival,
        lower_is_better=True,
        rival="mse of linear model",
        options=("--horizon", str(horizon), *split),
        published=PUBLISHED.get((name, horizon), ""),
    )


def messages(corpora: Path, _: Path) -> Arguments:
    """Return the files of short program messages."""
    train, dev = there(*(corpora / "enko_gettext" / f"clean.{part}.tsv.gz" for part in ("train", "dev")))
    return {"train": data(train), "test": data(dev)}


def captions(corpora: Path, _: Path) -> Arguments:
    """Return the files of Multi30k."""

    def both(name: str) -> list[str]:
        return there(*(corpora / "multi30k" / f"{name}.{side}.gz" for side in ("en", "de")))

    valid = [argument for path in both("val") for argument in ("--valid", path)]
    return {"train": [*data(*both("train")), *valid], "test": data(*both("test_2016_flickr"))}


def mnist(corpora: Path, _: Path) -> Arguments:
    """Return the folder of the digits, whose test part `evaluate` takes."""
    return {name: data(*there(corpora / "mnist")) for name in ("train", "test")}


def recipe(name: str) -> tuple[str, ...]:
    """Return the options of a recipe."""
    return ("--config", str(RECIPES / f"{name}.yaml"))


SETS = (
    rule_set(commands, 99.0),
    *(rule_set(make, 98.0) for make in (numbers, dates, reversals, brackets, code)),
    text_set("questions", 87.0),
    text_set("polarity", 81.0),
    *(reviews(n) for n in (2000, 20_000, 150_000)),
    *(forecasts(name, horizon) for name in ("seasonal", "etth1", "ettm1") for horizon in (96, 192, 336, 720)),
    DefaultSet(
        name="messages", task="translation", metric="bleu", floor=15.0, files=messages, is_limited=True,
        options=("--source", "en", "--target", "ko"),
    ),
    reviews(20_000, is_limited=True),
    DefaultSet(
        name="digits", task="images", metric="accuracy", floor=95.0, files=digits, rival=NGRAMS, is_limited=True
    ),
    DefaultSet(
        name="multi30k", task="translation", metric="bleu", floor=40.3, files=captions, needs_gpu=True,
        options=recipe("multi30k-en-de-tiny"), published="41.0 lower-cased",
    ),
    DefaultSet(
        name="mnist", task="images", metric="accuracy", floor=99.0, files=mnist, needs_gpu=True,
        options=recipe("mnist"),
    ),
)  # fmt: skip
