"""Draws an attention map of a document as a picture."""

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
    "ko": {"cross": "교차 어텐션", "self": "셀프 어텐션", "layer": "층 {}", "head": "헤드 {}", None: "헤드 평균"},
}


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
