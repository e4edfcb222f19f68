"""What the documents of all kinds have in common: where their arrays go, and the small things they are made of."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from torch import nn

from ...errors import ConfigError, DataError, unknown
from ...lens.document import DIGITS, ROOM, ROOM_ASKED, Arrays, attentions, kind_of_weights, layers, positions_of
from ...lens.recorder import Recording
from ...lens.tokens import TokenDict
from ...lens.trace import Trace, twin
from ..predictor import Predictor

EMPTY = "the text is empty, so there is nothing to look at"

P = TypeVar("P", bound=Predictor[Any, Any])


@dataclass(frozen=True)
class Notes:
    """A document while it is written: its arrays, and the layers it is about, all of them where that is None."""

    layers: frozenset[int] | None = None
    arrays: Arrays = field(default_factory=Arrays)

    def inside(self, module: nn.Module, seen: Trace) -> dict[str, Any]:
        """What happened within the model."""
        seen = seen if self.layers is None else _about(seen, self.layers)
        return {
            "digits": DIGITS.get(kind_of_weights(seen)),
            "attentions": attentions(seen, self.arrays, ROOM if self.layers is None else ROOM_ASKED),
            "layers": layers(seen, self.arrays),
            "positions": positions_of(module, self.arrays),
        }


def _about(seen: Trace, layers: frozenset[int]) -> Trace:
    there = {look.layer for look in seen.looks}
    if strange := sorted(layers - there):
        raise DataError(f"there is no layer {strange[0]} with attention; this model has {min(there)} to {max(there)}")
    places = [place for place, look in enumerate(seen.looks) if look.layer in layers]
    numbers = {new: seen.numbers[old] for new, old in enumerate(places) if old in seen.numbers}
    kept = [layer for layer in seen.layers if layer.layer in layers]
    return Trace(Recording([seen.looks[place] for place in places]), numbers, kept)


def apart(predictor: P) -> P:
    """The same on a model of its own that has the same weights: to be looked into while others use this one."""
    other = copy.copy(predictor)
    other.module = twin(predictor.module)
    return other


def token(text: str, *, special: bool = False) -> TokenDict:
    """One that is no piece of a text: a patch."""
    return {"text": text, "piece": text, "word": None, "special": special, "part": False}


def classes_of(shares: Mapping[str, float]) -> list[dict[str, Any]]:
    """The likeliest first."""
    return [
        {"label": label, "probability": share} for label, share in sorted(shares.items(), key=lambda pair: -pair[1])
    ]


def only(words: Mapping[str, Any], predictor: Any, *known: str) -> None:
    """Refuse what a model of this kind has no use for."""
    for word in words:
        if word not in known:
            raise ConfigError(
                f"a model for {predictor.task} is looked at without {word!r}; "
                + (unknown("word", word, known) if known else "leave it out")
            )
