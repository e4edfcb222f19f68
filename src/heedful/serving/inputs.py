"""Validates the inputs of clients: the texts, images and series of each task; never a path.

A small body can expand to a lot of memory: a compressed image to its pixels, nested lists to a padded array.
"""

import base64
import re
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any

from ..errors import DataError, MissingDependencyError
from ..tasks.predictor import ItemError
from .errors import APIError
from .settings import Settings


def check_overrides(predictor: Any, overrides: Mapping[str, Any], settings: Settings) -> None:
    """Refuse generation settings that a model does not have or that exceed the server's limits."""
    if overrides and not predictor.generates_text:
        name = min(overrides)
        reason = f"{name}: this model, for {predictor.task}, does not generate text; leave it out"
        raise APIError(400, reason, param=name)
    limits = {
        "max_new_tokens": settings.max_new_tokens,
        "min_new_tokens": settings.max_new_tokens - 1,  # without the end token
        "n_best": settings.max_n,
    }
    for name, limit in limits.items():
        if overrides.get(name, 0) > limit:
            raise APIError(400, f"{name}: at most {limit:,} on this server, not {overrides[name]:,}", param=name)


FORMATS = ("PNG", "JPEG")
MAX_PIXELS = 16_777_216  # of all images in a request

_DATA_URL = re.compile(r"data:image/(?:png|jpeg);base64,")


def as_inputs(predictor: Any, value: Sequence[Any], settings: Settings) -> list[Any]:
    """Return all inputs in the form that the predictor takes, with an ItemError in the place of an invalid one."""
    if len(value) > settings.max_items:
        raise DataError(f"inputs: at most {settings.max_items} at once, not {len(value)}; send several requests")
    inputs: list[Any] = []
    n_pixels = 0
    for index, item in enumerate(value):
        try:
            if predictor.input_kind == "image":
                image, size = _image(item)
                if n_pixels + size > MAX_PIXELS:
                    raise DataError(f"the images of a request may have at most {MAX_PIXELS:,} pixels in total")
                n_pixels += size
                inputs.append(image)
            elif predictor.input_kind == "series":
                inputs.append(_numbers(item, depth=2))
            else:
                inputs.append(_text(item, settings.max_characters, accepts_pairs=predictor.accepts_pairs))
        except DataError as error:
            inputs.append(ItemError("input", index, str(error)))
    return inputs


def _text(value: Any, max_characters: int, *, accepts_pairs: bool) -> str | tuple[str, str]:
    if accepts_pairs and isinstance(value, list) and len(value) == 2:
        first, second = (_text(item, max_characters, accepts_pairs=False) for item in value)
        return str(first), str(second)
    if not isinstance(value, str):
        pair = " or a pair of strings" if accepts_pairs else ""
        raise DataError(f"this model takes text: give a string{pair}, not {_kind(value)}")
    if len(value) > max_characters:
        raise DataError(f"it has {len(value):,} characters; at most {max_characters:,} are allowed; split it")
    return value


def _image(value: Any) -> tuple[Any, int]:
    """Return an image as the bytes of a file or as nested lists, and its number of pixels."""
    if not isinstance(value, str):
        rows = _numbers(value, depth=3)
        return rows, sum(len(row) if isinstance(row, list) else 1 for row in rows)
    hint = "an image must be a PNG or JPEG file in base64, or nested lists of pixels"
    try:
        content = base64.b64decode(_DATA_URL.sub("", value, count=1), validate=True)
    except ValueError:
        raise DataError(f"it is not valid base64; {hint}") from None
    try:
        from PIL import Image
    except ImportError as missing:
        raise MissingDependencyError(
            "reading images needs Pillow on the server: pip install 'heedful[images]'"
        ) from missing
    try:
        with Image.open(BytesIO(content), formats=FORMATS) as image:  # reads the header only
            width, height = image.size
    except Exception:  # decoders raise various exceptions
        raise DataError(f"it cannot be read; {hint}") from None
    return content, width * height


def _numbers(value: Any, depth: int) -> list[Any]:
    """Check that lists hold numbers and nulls and are nested at most so deep, before numpy allocates memory."""
    if not isinstance(value, list):
        raise DataError(f"give a list of numbers, not {_kind(value)}")
    for item in value:
        if isinstance(item, list) and depth > 1:
            _numbers(item, depth - 1)
        elif item is not None and (isinstance(item, bool) or not isinstance(item, int | float)):
            raise DataError(f"it contains {_kind(item)} in place of a number")
    return value


def _kind(value: Any) -> str:
    names = {str: "text", list: "a list", dict: "an object", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
