"""One attention map of a document as a picture."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from ...errors import DataError
from ...lens import pictures
from ...lens.document import unpacked
from ...lens.tokens import END_MARK, START_MARK

TITLES = {
    "en": {
        "cross": "Cross-attention",
        "self": "Self-attention",
        "layer": "layer {}",
        "head": "head {}",
        None: "mean of heads",
    },
    "ko": {"cross": "교차 어텐션", "self": "셀프 어텐션", "layer": "{}층", "head": "헤드 {}", None: "헤드 평균"},
}


def draw(document: Mapping[str, Any], path: str | Path, *, layer: int | None = None, head: int | None = None) -> Path:
    """The map between source and target where there is one, otherwise that of the tokens: PNG or SVG, by the suffix.

    Of the last layer and the mean of its heads, unless others are asked for. A row of the map between source and target
    has the token that was written there as its label.
    """
    pictures.suffix_of(Path(path))  # before anything is drawn
    kind = "cross" if any(one["kind"] == "cross" for one in document["attentions"]) else "self"
    maps = {one["layer"]: one for one in document["attentions"] if one["kind"] == kind}
    layer = max(maps) if layer is None else layer
    if layer not in maps:
        raise DataError(f"there is no layer {layer} to draw; there are {', '.join(map(str, sorted(maps)))}")
    chosen = maps[layer]
    heads = [torch.from_numpy(unpacked(document["arrays"][one["weights"]]).copy()) for one in chosen["heads"]]
    if head is not None and not 0 <= head < len(heads):
        raise DataError(f"layer {layer} has heads 0 to {len(heads) - 1}, not {head}")
    queries, keys = ([token["text"] for token in document["sequences"][chosen[side]]] for side in ("queries", "keys"))
    queries = document["written"] if kind == "cross" else queries
    words = TITLES[document["language"]]
    parts = (words[kind], words["layer"].format(layer), words[None] if head is None else words["head"].format(head))
    figure = pictures.attention_map(
        torch.stack(heads).mean(dim=0) if head is None else heads[head],
        *(list(map(_label, names)) for names in (queries, keys)),
        title=", ".join(parts),
        language=document["language"],
    )
    return pictures.save(figure, path)


def _label(text: str) -> str:
    """Few fonts have the marks of a page."""
    return {START_MARK: "<s>", END_MARK: "</s>"}.get(text, text)
