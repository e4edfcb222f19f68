"""`inspect`: one input of any model, and everything that went on while it was answered, as plain values.

A predictor's own `inspect` fills in what its task shows, with an `Inspection` that holds the document's arrays.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from torch import nn

from ...errors import ConfigError, DataError, unknown
from ...lens.document import (
    DIGITS,
    ROOM,
    ROOM_ASKED,
    Arrays,
    attentions,
    facts,
    kind_of_weights,
    layers,
    positions_of,
)
from ...lens.parts import n_parameters
from ...lens.recorder import Recording
from ...lens.tokens import TokenDict
from ...lens.trace import Trace
from ..predictor import Predictor

FORMAT = 1
EMPTY = "the text is empty, so there is nothing to look at"
ABSENT = dict.fromkeys(("answer", "generation", "alignment", "classes", "image", "series"))


def inspect(
    predictor: Any,
    item: Any,
    *,
    name: str = "",
    language: Literal["en", "ko"] = "en",
    target: str | None = None,
    layers: Iterable[int] | None = None,
    **options: Any,
) -> dict[str, Any]:
    """What happens while a model answers `item`, which is what its `predict` takes; images and series may be files.

    Args:
        predictor: What `heedful.load` gives.
        item: The input.
        name: What the model is called; its family unless given.
        language: Of the page.
        target: A translator is watched while it is made to write this.
        layers: Those that the document is about; all of them unless given.
        **options: Those of generation for models that write, so that the answer is the one that
            `predict([item], **options)` gives; for series, `series` and `column` choose what is shown of a table.

    >>> write_page("page.html", inspect(heedful.load("runs/en-ko"), "I am a student", beam=5))
    """
    if not isinstance(predictor, Predictor):
        raise ConfigError(f"a {type(predictor).__name__} cannot be looked at; give what heedful.load gives")
    inspection = Inspection(None if layers is None else frozenset(layers))
    content = predictor.inspect(item, inspection, options if target is None else {**options, "target": target})
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
        **content,
        "arrays": inspection.arrays.to_dict(with_data=True),
    }


@dataclass(frozen=True)
class Inspection:
    """A document while it is written: its arrays, and the layers it is about, all of them where that is None."""

    layers: frozenset[int] | None = None
    arrays: Arrays = field(default_factory=Arrays)

    def internals(self, module: nn.Module, trace: Trace) -> dict[str, Any]:
        """What happened within the model."""
        trace = trace if self.layers is None else _selected(trace, self.layers)
        return {
            "digits": DIGITS.get(kind_of_weights(trace)),
            "attentions": attentions(trace, self.arrays, ROOM if self.layers is None else ROOM_ASKED),
            "layers": layers(trace, self.arrays),
            "positions": positions_of(module, self.arrays),
        }


def _selected(trace: Trace, layers: frozenset[int]) -> Trace:
    present = {look.layer for look in trace.looks}
    if strange := sorted(layers - present):
        raise DataError(
            f"there is no layer {strange[0]} with attention; this model has {min(present)} to {max(present)}"
        )
    places = [place for place, look in enumerate(trace.looks) if look.layer in layers]
    numbers = {new: trace.numbers[old] for new, old in enumerate(places) if old in trace.numbers}
    selected = [layer for layer in trace.layers if layer.layer in layers]
    return Trace(Recording([trace.looks[place] for place in places]), numbers, selected)


def patch_token(text: str, *, special: bool = False) -> TokenDict:
    """One that is no piece of a text: a patch."""
    return {"text": text, "piece": text, "word": None, "special": special, "part": False}


def ranked_classes(probabilities: Mapping[str, float]) -> list[dict[str, Any]]:
    """The likeliest first."""
    ranked = sorted(probabilities.items(), key=lambda pair: -pair[1])
    return [{"label": label, "probability": probability} for label, probability in ranked]


def check_options(options: Mapping[str, Any], predictor: Any, *allowed: str) -> None:
    """Refuse what a model of this kind has no use for."""
    for option in options:
        if option not in allowed:
            raise ConfigError(
                f"a model for {predictor.task} is looked at without {option!r}; "
                + (unknown("word", option, allowed) if allowed else "leave it out")
            )
