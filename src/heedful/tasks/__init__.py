"""What people train models for: data, model, loss, metric."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from ..errors import unknown
from ..training.device import torch_device
from .bundle import Bundle, BundleError
from .classification import Classifier
from .embedding import Embedder
from .forecasting import SeriesForecaster
from .images import ImageClassifier
from .language_model import CausalLanguageModel
from .masked import Filler
from .text_to_text import TextToTextGenerator
from .translation.translator import Translator

TEXT = (Translator, TextToTextGenerator, CausalLanguageModel, Filler, Classifier, Embedder)
TASKS: dict[str, Any] = {kind.task: kind for kind in (*TEXT, ImageClassifier, SeriesForecaster)}


def load(folder: str | Path, *, device: str | torch.device = "cpu") -> Any:
    """A trained model from its folder: an object with .task, .module, .tokenizer and .predict(list) → list.

    `device` is "cpu", "cuda", or "auto" for a GPU where there is one.

    >>> heedful.load("runs/ko-en").predict(["나는 책을 읽어요."])
    """
    place = torch_device(str(device))
    bundle = Bundle.read(folder)
    if bundle.task not in TASKS:
        raise BundleError(f"{folder}: {unknown('task', bundle.task, TASKS)}")
    model = TASKS[bundle.task].from_bundle(Path(folder), bundle)
    model.module.to(place)
    return model
