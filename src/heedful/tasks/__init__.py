"""Tasks: the data, loss, metric and predictor of everything that models are trained for."""

from pathlib import Path
from typing import Any, Literal, overload

import torch

from ..errors import ConfigError, unknown
from ..training.parallel.process_group import torch_device
from .bundle import Bundle, BundleError
from .classification import Classifier
from .embedding import Embedder
from .forecasting import SeriesForecaster
from .images import ImageClassifier
from .language_model import CausalLanguageModel
from .masked import MaskedLanguageModel
from .predictor import Predictor
from .question_answering import QuestionAnswerer
from .shipped import SHIPPED, model_folder, shipped_folder
from .tagging import Tagger
from .text_to_text import TextToTextGenerator
from .translation.predictor import Translator

PREDICTORS: dict[str, Any] = {
    predictor.task: predictor
    for predictor in (
        Translator,
        TextToTextGenerator,
        CausalLanguageModel,
        MaskedLanguageModel,
        Classifier,
        QuestionAnswerer,
        Tagger,
        Embedder,
        ImageClassifier,
        SeriesForecaster,
    )
}
Device = str | torch.device


@overload
def load(folder: str | Path, task: None = None, *, device: Device = "cpu") -> Predictor[Any, Any]: ...
@overload
def load(folder: str | Path, task: Literal["translation"], *, device: Device = "cpu") -> Translator: ...
@overload
def load(folder: str | Path, task: Literal["text-to-text"], *, device: Device = "cpu") -> TextToTextGenerator: ...
@overload
def load(folder: str | Path, task: Literal["language-model"], *, device: Device = "cpu") -> CausalLanguageModel: ...
@overload
def load(folder: str | Path, task: Literal["masked-lm"], *, device: Device = "cpu") -> MaskedLanguageModel: ...
@overload
def load(folder: str | Path, task: Literal["classification"], *, device: Device = "cpu") -> Classifier: ...
@overload
def load(folder: str | Path, task: Literal["question-answering"], *, device: Device = "cpu") -> QuestionAnswerer: ...
@overload
def load(folder: str | Path, task: Literal["tagging"], *, device: Device = "cpu") -> Tagger: ...
@overload
def load(folder: str | Path, task: Literal["embedding"], *, device: Device = "cpu") -> Embedder: ...
@overload
def load(folder: str | Path, task: Literal["images"], *, device: Device = "cpu") -> ImageClassifier: ...
@overload
def load(folder: str | Path, task: Literal["forecasting"], *, device: Device = "cpu") -> SeriesForecaster: ...


def load(folder: str | Path, task: str | None = None, *, device: Device = "cpu") -> Any:
    """Load a trained model: an object with .task, .module, .tokenizer and .predict(list) → list.

    Args:
        folder: The folder that training or import wrote, or the name of a shipped translator: "ko-en" or "en-ko".
        task: The task that the model must be for, such as "translation"; a type checker then knows the result's class.
        device: "cpu", "cuda", or "auto" for a GPU if there is one.

    Raises:
        BundleError: The folder holds no complete bundle, or one for another task.

    >>> heedful.load("runs/ko-en").predict(["나는 책을 읽어요."])
    """
    place, folder = torch_device(str(device)), model_folder(folder)
    bundle = Bundle.read(folder)
    if bundle.task not in PREDICTORS:
        raise BundleError(f"{folder}: {unknown('task', bundle.task, PREDICTORS)}")
    if task is not None and task != bundle.task:
        if task not in PREDICTORS:
            raise BundleError(unknown("task", task, PREDICTORS))
        raise BundleError(f"{folder} is a model for {bundle.task}, and not for {task}")
    try:
        model = PREDICTORS[bundle.task].from_bundle(folder, bundle)
    except ConfigError as error:  # of settings that do not fit the model
        raise BundleError(f"{folder}: {error}") from None
    model.module.to(place)
    return model


def translator(direction: Literal["ko-en", "en-ko"] = "ko-en", *, device: Device = "cpu") -> Translator:
    """Load a translator that is installed with the package: "ko-en" from Korean to English, "en-ko" back.

    It knows the words of the built-in grammar's course level and common greetings; `heedful.demo.out_of_vocabulary`
    names other words, about which it can only guess.

    Raises:
        BundleError: No translator has this name.

    >>> heedful.translator("ko-en").predict(["고양이가 쥐를 잡았다."])
    """
    if direction not in SHIPPED:
        raise BundleError(unknown("translator", direction, SHIPPED))
    return load(shipped_folder(direction), "translation", device=device)
