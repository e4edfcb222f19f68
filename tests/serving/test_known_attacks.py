"""Attacks that other servers fell for: paths in Host, many ranges, keys compared byte by byte."""

from __future__ import annotations

import ast
import hmac
from collections.abc import Callable
from pathlib import Path

import pytest
from running import Running, received

from heedful import serving
from heedful.serving import keys as key_module
from heedful.serving.keys import Keys


@pytest.mark.parametrize(
    "host", ["localhost/translate?", "localhost/health?", "localhost#", "localhost/translate/..", "a@b/detect"]
)
@pytest.mark.parametrize("path", ["/v1/models", "/look/feelings", "/v1/predict/feelings"])
def test_a_path_in_the_host_opens_no_other_path(host: str, path: str, serving: Callable[..., Running]) -> None:
    locked = serving("feelings", api_keys=("secret",))
    body = b'{"input": "a", "inputs": ["a"], "api_key": "wrong"}'
    head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nConnection: close\r\n"
    with locked.connect() as connection:
        connection.sendall(head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        status = int(received(connection).split()[1])
    assert status in (400, 401, 403, 421)


def test_ranges_are_not_served(server: Running) -> None:
    """Files are never read in parts, so no number of ranges costs anything."""
    whole = server.ask("/page/main.js")
    many = server.ask("/page/main.js", Range="bytes=" + ",".join(f"{first}-" for first in range(2000)))
    assert (many.status, many.body) == (200, whole.body)
    assert "content-range" not in many.headers
    for path in Path(serving.__file__).parent.rglob("*.py"):
        assert not {"FileResponse", "StaticFiles"} & {
            node.id for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Name)
        }


def test_every_key_is_compared_whole_whatever_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time must tell neither how much of a key is right nor which one it is: hashes of one length are compared."""
    keys = Keys(("first", "a much longer second key", "third"))
    compared: list[tuple[int, int]] = []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append((len(one), len(other)))
        return hmac.compare_digest(one, other)

    monkeypatch.setattr(key_module, "hmac", type("", (), {"compare_digest": staticmethod(compare)}))
    for key, valid in (("first", True), ("third", True), ("firsx", False), ("", False), ("x" * 10_000, False)):
        compared.clear()
        assert keys._is_valid(key) is valid
        assert compared == [(32, 32)] * 3
