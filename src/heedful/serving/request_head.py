"""Checks the head of a request before h11 parses it, and reads requests that can be refused without h11.

h11 accepts more than the standard allows: bare line feeds, any version, a length beside chunks, and a head of any size
that arrives in one read. A proxy in front may read such a request in another way (request smuggling).
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

MAX_HEAD = 16_384  # bytes of a request line and its headers

_END = re.compile(rb"\n\r?\n")
_LENGTH = re.compile(rb"\ncontent-length[ \t]*:", re.IGNORECASE)
_CHUNKED = re.compile(rb"\ntransfer-encoding[ \t]*:", re.IGNORECASE)
_PLAIN_LINE = re.compile(rb"(GET|POST|PUT|PATCH|DELETE|OPTIONS) (/[\w\-./~]*)(?:\?[!-~]*)? HTTP/1\.1")
_PLAIN_HEADER = re.compile(rb"([\w\-]+):[ \t]*([ -~]*)")
_UNUSUAL = {b"transfer-encoding", b"expect", b"upgrade", b"connection"}


class HeadError(NamedTuple):
    """Why a head is refused."""

    status: int
    message: str


def head_error(received: bytes) -> HeadError | None:
    """Return what is wrong with the head at the beginning of the received bytes, which may be incomplete."""
    end = _END.search(received, 0, MAX_HEAD)
    head = received[: end.end() if end else MAX_HEAD]
    if end is None and len(received) >= MAX_HEAD:
        return HeadError(431, f"the request line and the headers are too large: at most {MAX_HEAD:,} bytes")
    if head.count(b"\n") != head.count(b"\r\n"):
        return HeadError(400, "the lines of a request must end with a carriage return and a line feed")
    if end is None:
        return None
    line, chunked = head.partition(b"\r\n")[0], _CHUNKED.search(head)
    if not line.endswith((b" HTTP/1.1", b" HTTP/1.0")):
        return HeadError(505, "the version of HTTP must be 1.1 or 1.0")
    if chunked and (_LENGTH.search(head) or line.endswith(b"1.0")):
        return HeadError(400, "Transfer-Encoding is allowed in HTTP/1.1 only, and not beside Content-Length")
    return None


def plain_request(received: bytes) -> dict[str, Any] | None:
    """Return the ASGI scope of a request that has arrived whole and uses nothing unusual; otherwise None.

    None means only that h11 must read the request.
    """
    head, blank, body = received.partition(b"\r\n\r\n")
    if not blank or len(head) > MAX_HEAD:
        return None
    first, *lines = head.split(b"\r\n")
    request, fields = _PLAIN_LINE.fullmatch(first), [_PLAIN_HEADER.fullmatch(line) for line in lines]
    if request is None or not all(fields):
        return None
    headers = [(field[1].lower(), field[2].rstrip()) for field in fields if field]
    names = [name for name, _ in headers]
    length = dict(headers).get(b"content-length", b"0")
    is_whole = length.isdigit() and len(length) < 10 and int(length) == len(body)
    is_usual = _UNUSUAL.isdisjoint(names) and names.count(b"content-length") < 2 and names.count(b"host") == 1
    if not is_whole or not is_usual:
        return None
    path = request[2].decode()
    return {"type": "http", "method": request[1].decode(), "path": path, "raw_path": request[2], "headers": headers}
