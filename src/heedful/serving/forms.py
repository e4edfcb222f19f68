"""Forms, however they are sent: as UTF-8, escaped or not."""

from __future__ import annotations

from urllib.parse import parse_qsl

from starlette.datastructures import ImmutableMultiDict
from starlette.requests import Request

FORMS = URLENCODED, MULTIPART = ("application/x-www-form-urlencoded", "multipart/form-data")
MOST = 1000  # fields, or files


def kind_of(request: Request) -> str:
    """The content type, without what comes after it."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def form_of(request: Request, *, max_files: int = 0) -> ImmutableMultiDict[str, str]:
    """The fields of a form that are texts; ValueError for one that is not UTF-8.

    Starlette reads an escaped form as Latin-1 where it is not escaped, as `curl -d` leaves it.
    """
    if kind_of(request) == URLENCODED:
        body = (await request.body()).decode("utf-8")
        return ImmutableMultiDict(parse_qsl(body, keep_blank_values=True, errors="strict", max_num_fields=MOST))
    async with request.form(max_files=max_files) as form:
        return ImmutableMultiDict([(name, value) for name, value in form.multi_items() if isinstance(value, str)])
