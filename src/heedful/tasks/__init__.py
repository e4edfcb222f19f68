"""What people train models for: data, model, loss, metric."""

from pathlib import Path
from typing import Any, Literal, overload

import torch

from ..errors import unknown
from ..training.device import torch_device
from .bundle import Bundle, BundleError
from .classification import Classifier
from .embedding import Embedder
from .forecasting import SeriesForecaster
from .images import ImageClassifier
from .language_model import CausalLanguageModel
from .masked import MaskedLanguageModel
from .predictor import Predictor
from .question_answering import QuestionAnswerer
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


@overload
def load(folder: str | Path, task: None = None, *, device: str | torch.device = "cpu") -> Predictor[Any, Any]: ...
@overload
def load(folder: str | Path, task: Literal["translation"], *, device: str | torch.device = "cpu") -> Translator: ...
@overload
def load(
    folder: str | Path, task: Literal["text-to-text"], *, device: str | torch.device = "cpu"
) -> TextToTextGenerator: ...
@overload
def load(
    folder: str | Path, task: Literal["language-model"], *, device: str | torch.device = "cpu"
) -> CausalLanguageModel: ...
@overload
def load(
    folder: str | Path, task: Literal["masked-lm"], *, device: str | torch.device = "cpu"
) -> MaskedLanguageModel: ...
@overload
def load(folder: str | Path, task: Literal["classification"], *, device: str | torch.device = "cpu") -> Classifier: ...
@overload
def load(
    folder: str | Path, task: Literal["question-answering"], *, device: str | torch.device = "cpu"
) -> QuestionAnswerer: ...
@overload
def load(folder: str | Path, task: Literal["tagging"], *, device: str | torch.device = "cpu") -> Tagger: ...
@overload
def load(folder: str | Path, task: Literal["embedding"], *, device: str | torch.device = "cpu") -> Embedder: ...
@overload
def load(folder: str | Path, task: Literal["images"], *, device: str | torch.device = "cpu") -> ImageClassifier: ...
@overload
def load(
    folder: str | Path, task: Literal["forecasting"], *, device: str | torch.device = "cpu"
) -> SeriesForecaster: ...


def load(folder: str | Path, task: str | None = None, *, device: str | torch.device = "cpu") -> Any:
    """A trained model from its folder: an object with .task, .module, .tokenizer and .predict(list) → list.

    Args:
        folder: what training or import wrote.
        task: what the model must be for, such as "translation"; then a type checker knows the result's class.
        device: "cpu", "cuda", or "auto" for a GPU where there is one.

    Raises:
        BundleError: the folder holds no whole bundle, or one for another task.

    >>> heedful.load("runs/ko-en").predict(["나는 책을 읽어요."])
    """
    place = torch_device(str(device))
    bundle = Bundle.read(folder)
    if bundle.task not in PREDICTORS:
        raise BundleError(f"{folder}: {unknown('task', bundle.task, PREDICTORS)}")
    if task is not None and task != bundle.task:
        if task not in PREDICTORS:
            raise BundleError(unknown("task", task, PREDICTORS))
        raise BundleError(f"{folder} is a model for {bundle.task}, and not for {task}")
    model = PREDICTORS[bundle.task].from_bundle(Path(folder), bundle)
    model.module.to(place)
    return model
