"""A job of every task, over data so small and uneven that its batches have padding of all sorts."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from heedful.data.batch import Batch
from heedful.data.text_batch import TextBatch, TokenWindows
from heedful.tasks.classification.task import ClassificationConfig, ClassificationTask
from heedful.tasks.forecasting.data import ForecastingConfig
from heedful.tasks.forecasting.task import ForecastingTask
from heedful.tasks.images.data import ImageBatch, ImagesConfig
from heedful.tasks.images.task import ImagesTask
from heedful.tasks.language_model.data import LanguageModelConfig
from heedful.tasks.language_model.task import LanguageModelTask
from heedful.tasks.masked.data import MaskedBatch
from heedful.tasks.masked.task import MaskedConfig, MaskedTask
from heedful.tasks.run import Files
from heedful.tasks.translation.task import TranslationConfig, TranslationTask
from id_batches import batch_of

SIZE = {"d_model": 8, "n_heads": 2, "d_ff": 16}


@dataclass(frozen=True)
class Kind:
    """How a task is set up, which field names a batch's rows, and what each row is, alone and without padding."""

    task: Callable[[], Any]
    config: Any
    file: str
    write: Callable[[Path], None]
    names: str
    alone: Callable[[Any, Any], Iterator[Any]]

    def job(self, folder: Path) -> Any:
        """In float64, and with no parameter left at a value that would hide a mistake."""
        self.write(folder / self.file)
        task = self.task()
        data, _ = task.prepare(self.config, Files((str(folder / self.file),)), folder, keep=False)
        torch.manual_seed(0)
        job = task.bind(self.config, data)
        with torch.no_grad():
            for parameter in job.module.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))
        job.module.double().eval().register_forward_pre_hook(_widened)
        return job


def _widened(module: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(x.double() if isinstance(x, Tensor) and x.is_floating_point() else x for x in inputs)


def words(draw: random.Random) -> str:
    return " ".join(draw.choice("abcdefgh") for _ in range(draw.randint(1, 14)))


def lines(make: Callable[[random.Random], str], *header: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        draw = random.Random(0)
        path.write_text("".join(f"{line}\n" for line in (*header, *(make(draw) for _ in range(60)))), encoding="utf-8")

    return write


def write_series(path: Path) -> None:
    values = np.random.default_rng(0).normal(size=(90, 2)).cumsum(axis=0).astype(str)
    values[20:24, 0] = values[41, 1] = "NA"
    path.write_text("\n".join(["a,b", *(",".join(row) for row in values)]) + "\n", encoding="utf-8")


def write_images(path: Path) -> None:
    draw = np.random.default_rng(0)
    np.savez(path, x=draw.integers(0, 256, (40, 6, 6), dtype=np.uint8), y=np.array(["left", "right"] * 20))


def pairs(job: Any, batch: Batch) -> Iterator[Batch]:
    store = job.batches.store
    return (batch_of([store[row]]) for row in batch.rows)


def texts(job: Any, batch: TextBatch) -> Iterator[TextBatch]:
    store = job.batches.store
    return (TextBatch.of(store, [row], (1, len(store[row][0]))) for row in batch.rows)


def gaps(job: Any, batch: MaskedBatch) -> Iterator[MaskedBatch]:
    width = batch.ids.shape[1]
    for place, row in enumerate(batch.rows):
        n = int(batch.keep[place].sum())
        one = batch.is_real & (batch.places // width == place)
        own = slice(place, place + 1)
        yield MaskedBatch(
            ids=batch.ids[own, :n],
            segments=batch.segments[own, :n],
            keep=batch.keep[own, :n],
            labels=batch.labels[own],
            real=batch.real[own],
            lengths=(n,),
            rows=(row,),
            places=batch.places[one] % width,
            targets=batch.targets[one],
            is_real=batch.is_real[one],
        )


def windows(job: Any, batch: TokenWindows) -> Iterator[TokenWindows]:
    return (TokenWindows(batch.ids[place : place + 1], None, (start,)) for place, start in enumerate(batch.starts))


def images(job: Any, batch: ImageBatch) -> Iterator[ImageBatch]:
    for place, row in enumerate(batch.rows):
        own = slice(place, place + 1)
        yield ImageBatch(batch.pixels[own], batch.labels[own], batch.keep[own], (row,))


def series(job: Any, batch: Any) -> Iterator[Any]:
    return (job.data.train.batch([window]) for window in batch.rows)


def training(batch_tokens: int) -> dict[str, Any]:
    return {"steps": 1, "batch_tokens": batch_tokens, "label_smoothing": 0.1, "device": "cpu"}


KINDS = {
    "translation": Kind(
        TranslationTask,
        TranslationConfig.from_dict(
            {
                "source": "xa",
                "target": "xb",
                "tokenizer": {"vocab_size": 300},
                "model": {"preset": "tiny", **SIZE, "n_encoder_layers": 1, "n_decoder_layers": 1},
                "training": training(70),
            }
        ),
        "pairs.tsv",
        lines(lambda draw: f"{words(draw)}\t{words(draw)}"),
        "rows",
        pairs,
    ),
    "classification": Kind(
        ClassificationTask,
        ClassificationConfig.from_dict(
            {
                "tokenizer": {"vocab_size": 300},
                "model": {**SIZE, "n_layers": 1, "max_length": 40},
                "training": training(120),
            }
        ),
        "labelled.tsv",
        lines(
            lambda draw: f"{words(draw)}\t{words(draw)}\t{draw.choice(['pos', 'neg'])}", "sentence1\tsentence2\tlabel"
        ),
        "rows",
        texts,
    ),
    "masked-lm": Kind(
        MaskedTask,
        MaskedConfig.from_dict(
            {
                "tokenizer": {"vocab_size": 300},
                "model": {**SIZE, "n_layers": 1, "max_length": 40},
                "training": training(70),
            }
        ),
        "texts.txt",
        lines(words),
        "rows",
        gaps,
    ),
    "language-model": Kind(
        LanguageModelTask,
        LanguageModelConfig.from_dict(
            {
                "tokenizer": {"kind": "characters"},
                "model": {"preset": "gpt2-tiny", **SIZE, "n_layers": 1, "max_length": 8},
                "training": training(40),
            }
        ),
        "text.txt",
        lines(words),
        "starts",
        windows,
    ),
    "images": Kind(
        ImagesTask,
        ImagesConfig.from_dict(
            {"model": {"preset": "vit-tiny", **SIZE, "n_layers": 1, "patch_size": 2}, "training": training(45)}
        ),
        "images.npz",
        write_images,
        "rows",
        images,
    ),
    "forecasting": Kind(
        ForecastingTask,
        ForecastingConfig.from_dict(
            {
                "model": {
                    "preset": "patchtst-tiny",
                    **SIZE,
                    "n_layers": 1,
                    "context_length": 12,
                    "patch_length": 4,
                    "stride": 2,
                    "horizon": 3,
                },
                "training": training(50) | {"label_smoothing": 0.0},
            }
        ),
        "series.csv",
        write_series,
        "rows",
        series,
    ),
}
