"""`inspect`: a document of plain values about how any model answers one input; `draw`: a picture of its attention.

The predictor's `inspect` adds what depends on the task, with an `Inspection` that holds the document's arrays.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from ...errors import ConfigError, DataError, unknown
from ...lens import pictures
from ...lens.document import (
    DIGITS,
    ROOM,
    ROOM_ASKED,
    Arrays,
    attentions,
    entries,
    facts,
    kind_of_weights,
    layers,
    n_parameters,
    positions_of,
    unpacked,
)
from ...lens.logit_lens import likeliest_tokens
from ...lens.recorder import Recording
from ...lens.tokens import END_MARK, START_MARK, TokenDict
from ...lens.trace import Trace
from ..predictor import Predictor

FORMAT = 1
EMPTY = "the text is empty, so there is nothing to look at"
TITLES = {
    "en": {
        "cross": "Cross-attention",
        "self": "Self-attention",
        "layer": "layer {}",
        "head": "head {}",
        None: "mean of heads",
    },
    "ko": {"cross": "교차 어텐션", "self": "셀프 어텐션", "layer": "층 {}", "head": "헤드 {}", None: "헤드 평균"},
}
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
    """Return the document of how a model answers an item.

    Args:
        predictor: What `heedful.load` returns.
        item: What `predict` takes; images and series may be files.
        name: The name of the model; its family by default.
        language: The language of the page.
        target: An answer to inspect instead of the model's own, for an encoder-decoder.
        layers: The layers to describe; all of them by default.
        **options: For models that generate text, settings of generation, so that the answer is that of
            `predict([item], **options)`; for series, `series` and `column` select a part of a table.

    >>> write_page("page.html", inspect(heedful.load("runs/en-ko"), "I am a student", beam=5))
    """
    if not isinstance(predictor, Predictor):
        raise ConfigError(f"a {type(predictor).__name__} cannot be inspected; pass what heedful.load returns")
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
    """The arrays of a document in progress, and the layers that it describes; None for all of them."""

    layers: frozenset[int] | None = None
    arrays: Arrays = field(default_factory=Arrays)

    def internals(self, module: nn.Module, trace: Trace, spell: Callable[[int], str] | None = None) -> dict[str, Any]:
        """Return the attention, layers and positions of the document; and of a vocabulary what each layer would say.

        `spell` returns the text of a token.
        """
        lens = likeliest_tokens(module, trace, spell, self.arrays)
        trace = trace if self.layers is None else _selected(trace, self.layers)
        return {
            "lens": lens,
            "digits": DIGITS.get(kind_of_weights(trace)),
            "attentions": attentions(trace, self.arrays, ROOM if self.layers is None else ROOM_ASKED),
            "entries": entries(trace, self.arrays),
            "layers": layers(trace, self.arrays),
            "positions": positions_of(module, self.arrays),
        }


def _selected(trace: Trace, layers: frozenset[int]) -> Trace:
    present = {look.layer for look in trace.looks}
    if missing := sorted(layers - present):
        raise DataError(
            f"there is no layer {missing[0]} with attention; this model has {min(present)} to {max(present)}"
        )
    places = [place for place, look in enumerate(trace.looks) if look.layer in layers]
    numbers = {new: trace.numbers[old] for new, old in enumerate(places) if old in trace.numbers}
    selected = [layer for layer in trace.layers if layer.layer in layers]
    return Trace(Recording([trace.looks[place] for place in places]), numbers, selected, trace.entries)


def patch_token(text: str, *, special: bool = False) -> TokenDict:
    """Return the token of a patch, which is no piece of a text."""
    return {"text": text, "piece": text, "word": None, "special": special, "part": False}


def ranked_classes(probabilities: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return the classes with their probabilities, the most likely first."""
    ranked = sorted(probabilities.items(), key=lambda pair: -pair[1])
    return [{"label": label, "probability": probability} for label, probability in ranked]


def check_options(options: Mapping[str, Any], predictor: Any, *allowed: str) -> None:
    """Raise ConfigError for an option that this kind of model does not have."""
    for option in options:
        if option not in allowed:
            raise ConfigError(
                f"a model for {predictor.task} is inspected without {option!r}; "
                + (unknown("option", option, allowed) if allowed else "leave it out")
            )


def draw(document: Mapping[str, Any], path: str | Path, *, layer: int | None = None, head: int | None = None) -> Path:
    """Draw cross-attention where there is any, otherwise self-attention, as PNG or SVG by the suffix of the path.

    Args:
        document: What `inspect` returns.
        path: The file to write.
        layer: The layer to draw; the last one by default.
        head: The head to draw; the mean of all heads by default.
    """
    pictures.suffix_of(Path(path))  # before anything is drawn
    kind = "cross" if any(each["kind"] == "cross" for each in document["attentions"]) else "self"
    maps = {each["layer"]: each for each in document["attentions"] if each["kind"] == kind}
    layer = max(maps) if layer is None else layer
    if layer not in maps:
        raise DataError(f"there is no layer {layer} to draw; there are {', '.join(map(str, sorted(maps)))}")
    chosen = maps[layer]
    heads = [torch.from_numpy(unpacked(document["arrays"][each["weights"]]).copy()) for each in chosen["heads"]]
    if head is not None and not 0 <= head < len(heads):
        raise DataError(f"layer {layer} has heads 0 to {len(heads) - 1}, not {head}")
    queries, keys = ([token["text"] for token in document["sequences"][chosen[side]]] for side in ("queries", "keys"))
    queries = document["written"] if kind == "cross" else queries
    titles = TITLES[document["language"]]
    parts = (titles[kind], titles["layer"].format(layer), titles[None] if head is None else titles["head"].format(head))
    figure = pictures.attention_map(
        torch.stack(heads).mean(dim=0) if head is None else heads[head],
        *(list(map(_label, names)) for names in (queries, keys)),
        title=", ".join(parts),
        language=document["language"],
    )
    return pictures.save(figure, path)


def _label(text: str) -> str:
    """Replace the marks of the page, which few fonts have."""
    return {START_MARK: "<s>", END_MARK: "</s>"}.get(text, text)
