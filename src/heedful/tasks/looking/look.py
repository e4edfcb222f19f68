"""`look_at`: one input of any model, and everything that went on while it was answered, as plain values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal

from ...errors import ConfigError
from ...lens.document import facts
from ...lens.parts import n_parameters
from ..classification import Classifier
from ..embedding import Embedder
from ..forecasting import SeriesForecaster
from ..images import ImageClassifier
from ..language_model import CausalLanguageModel
from ..masked import MaskedLanguageModel
from ..text_to_text import TextToTextGenerator
from ..translation.predictor import Translator
from .assembling import Notes
from .image import see_image
from .reading import see_classes, see_gaps, see_vector
from .series import see_series
from .writing import see_continuation, see_translation

FORMAT = 1
WAYS: dict[type, Callable[..., dict[str, Any]]] = {
    Translator: see_translation,
    TextToTextGenerator: see_translation,
    CausalLanguageModel: see_continuation,
    Classifier: see_classes,
    MaskedLanguageModel: see_gaps,
    Embedder: see_vector,
    ImageClassifier: see_image,
    SeriesForecaster: see_series,
}
ABSENT = dict.fromkeys(("answer", "generation", "alignment", "classes", "image", "series"))


def look_at(
    predictor: Any,
    item: Any,
    *,
    name: str = "",
    language: Literal["en", "ko"] = "en",
    target: str | None = None,
    layers: Iterable[int] | None = None,
    **words: Any,
) -> dict[str, Any]:
    """What happens while a model answers `item`, which is what its `predict` takes; images and series may be files.

    The answer is the one that `predict([item], **words)` gives. `words` are those of generation for models that write;
    for series, `series` and `column` choose what is shown of a table. With a `target`, a translator is watched while it
    is made to write that. `layers` leaves out all others. `name` is what the model is called.

    >>> write_page("page.html", look_at(heedful.load("runs/en-ko"), "I am a student", beam=5))
    """
    way = next((way for kind, way in WAYS.items() if isinstance(predictor, kind)), None)
    if way is None:
        raise ConfigError(f"a {type(predictor).__name__} cannot be looked at; give what heedful.load gives")
    notes = Notes(None if layers is None else frozenset(layers))
    found = way(predictor, item, notes, words if target is None else {**words, "target": target})
    return {
        "format": FORMAT,
        "language": language,
        "model": {
            "name": name or predictor.config.family,
            "family": predictor.config.family,
            "task": predictor.task,
            "parameters": n_parameters(predictor.module),
            "facts": facts(predictor.config),
        },
        **ABSENT,
        **found,
        "arrays": notes.arrays.to_dict(with_data=True),
    }
