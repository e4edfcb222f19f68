"""What a client may send: forms, and the inputs of each task as the model takes them; never a path.

A small body can claim to be a great deal: a compressed image its pixels, a list of texts an array of the longest one.
"""

import base64
import re
from collections.abc import Sequence
from io import BytesIO
from typing import Any
from urllib.parse import parse_qsl

from starlette.datastructures import ImmutableMultiDict
from starlette.requests import Request

from ..errors import DataError, MissingDependencyError
from ..tasks.predictor import ItemError
from .settings import Settings

FORMS = URLENCODED, MULTIPART = ("application/x-www-form-urlencoded", "multipart/form-data")
MOST = 1000  # fields, or files


def content_type(request: Request) -> str:
    """The content type, without what comes after it."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def form_fields(request: Request, *, max_files: int = 0) -> ImmutableMultiDict[str, str]:
    """The fields of a form that are texts; ValueError for one that is not UTF-8.

    Starlette reads an escaped form as Latin-1 where it is not escaped, as `curl -d` leaves it.
    """
    if content_type(request) == URLENCODED:
        body = (await request.body()).decode("utf-8")
        return ImmutableMultiDict(parse_qsl(body, keep_blank_values=True, errors="strict", max_num_fields=MOST))
    async with request.form(max_files=max_files) as form:
        return ImmutableMultiDict([(name, value) for name, value in form.multi_items() if isinstance(value, str)])


FORMATS = ("PNG", "JPEG")
PIXELS = 16_777_216  # of all images in a request

_DATA_URL = re.compile(r"data:image/(?:png|jpeg);base64,")


def as_inputs(predictor: Any, value: Sequence[Any], settings: Settings) -> list[Any]:
    """All of them as the predictor takes them, or an ItemError that names one."""
    if len(value) > settings.max_items:
        raise DataError(f"inputs: at most {settings.max_items} at once, not {len(value)}; send several requests")
    taken: list[Any] = []
    pixels = 0
    for index, item in enumerate(value):
        try:
            if predictor.input_kind == "image":
                image, size = _image(item)
                pixels += size
                if pixels > PIXELS:
                    raise DataError(f"the images of a request have at most {PIXELS:,} pixels together")
                taken.append(image)
            elif predictor.input_kind == "series":
                taken.append(_numbers(item, depth=2))
            else:
                taken.append(_text(item, settings.max_characters, paired=predictor.accepts_pairs))
        except DataError as error:
            raise ItemError("input", index, str(error)) from None
    return taken


def _text(value: Any, longest: int, *, paired: bool) -> str | tuple[str, str]:
    if paired and isinstance(value, list) and len(value) == 2:
        first, second = (_text(item, longest, paired=False) for item in value)
        return str(first), str(second)
    if not isinstance(value, str):
        pair = " or a pair of them" if paired else ""
        raise DataError(f"this model reads text: give a string{pair}, not {_kind(value)}")
    if len(value) > longest:
        raise DataError(f"it has {len(value):,} characters, and at most {longest:,} are read; split it")
    return value


def _image(value: Any) -> tuple[Any, int]:
    """The bytes of a file or nested lists, and how many pixels that is."""
    if isinstance(value, str):
        return _file(value)
    rows = _numbers(value, depth=3)
    return rows, sum(len(row) if isinstance(row, list) else 1 for row in rows)


def _file(text: str) -> tuple[bytes, int]:
    wanted = "an image is a PNG or JPEG file in base64, or nested lists of pixels"
    try:
        content = base64.b64decode(_DATA_URL.sub("", text, count=1), validate=True)
    except ValueError:
        raise DataError(f"it is not valid base64; {wanted}") from None
    try:
        from PIL import Image
    except ImportError as missing:
        raise MissingDependencyError(
            "reading images needs Pillow on the server: pip install 'heedful[images]'"
        ) from missing
    try:
        with Image.open(BytesIO(content), formats=FORMATS) as image:  # reads its head alone
            width, height = image.size
    except Exception:  # each decoder complains in its own way
        raise DataError(f"it cannot be read; {wanted}") from None
    return content, width * height


def _numbers(value: Any, depth: int) -> list[Any]:
    """Nested lists of numbers and gaps, so deep at most: numpy would make room for the longest of whatever it finds."""
    if not isinstance(value, list):
        raise DataError(f"give a list of numbers, not {_kind(value)}")
    for item in value:
        if isinstance(item, list) and depth > 1:
            _numbers(item, depth - 1)
        elif item is not None and (isinstance(item, bool) or not isinstance(item, int | float)):
            raise DataError(f"it holds {_kind(item)} where a number belongs")
    return value


def _kind(value: Any) -> str:
    names = {str: "text", list: "a list", dict: "an object", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
