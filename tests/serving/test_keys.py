"""Keys: where they may stand, what happens without a good one, and that nobody reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from running import Lines, Running, start

from heedful.serving import keys
from heedful.serving.admission import is_open
from heedful.serving.keys import KEY_IN_BODY
from heedful.serving.models import Models
from heedful.serving.settings import Settings

KEY, OTHER = "a key, 열쇠", "another"
PREDICT = "/v1/predict/feelings"
REQUESTS = {"inputs": ["a"]}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
MULTIPART = {"Content-Type": "multipart/form-data; boundary=here"}


@pytest.fixture(scope="module")
def locked(bundles: Path) -> Iterator[Running]:
    settings = Settings(port=0, api_keys=(OTHER, KEY))
    running = start(Models.load([str(bundles / name) for name in ("feelings", "en-ko")], settings), settings)
    yield running
    running.stop()


def multipart(**fields: str) -> bytes:
    parts = [f'--here\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{fields[name]}\r\n' for name in fields]
    return ("".join(parts) + "--here--\r\n").encode()


def bearer(key: str) -> dict[str, str]:
    """In bytes that may be any, as headers are."""
    return {"Authorization": f"Bearer {key.encode().decode('latin-1')}"}


TRANSLATE: dict[str, Any] = {"q": "cat", "source": "en", "target": "ko"}
WAYS: dict[str, Callable[[str], tuple[str, Any, dict[str, str]]]] = {
    "bearer": lambda key: ("/translate", TRANSLATE, bearer(key)),
    "query": lambda key: (f"/translate?{urlencode({'api_key': key})}", TRANSLATE, {}),
    "json": lambda key: ("/translate", {**TRANSLATE, "api_key": key}, {}),
    "form": lambda key: ("/translate", urlencode({**TRANSLATE, "api_key": key}).encode(), FORM),
    "multipart": lambda key: ("/translate", multipart(**TRANSLATE, api_key=key), MULTIPART),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_key_may_stand_where_clients_put_it_and_the_route_reads_its_body_as_ever(way: str, locked: Running) -> None:
    for key, status in ((KEY, 200), (OTHER, 200), (KEY[:-1], 403), (KEY + " x", 403)):
        path, body, headers = WAYS[way](key)
        answer = locked.ask(path, body, **headers)
        assert answer.status == status, answer.body
        assert set(answer.json) == ({"translatedText"} if status == 200 else {"error"})


def test_without_a_key_each_api_refuses_in_its_own_way(locked: Running) -> None:
    answer = locked.ask("/translate", TRANSLATE)
    assert (answer.status, type(answer.json["error"])) == (403, str)
    answer = locked.ask(PREDICT, REQUESTS)
    assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert answer.json["error"]["code"] == "invalid_api_key"
    assert locked.ask(PREDICT, REQUESTS, **bearer(KEY)).status == 200


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b"{" * 100_000, {}),
        (b"[" * 100_000, {}),
        (b'{"api_key": ["a key"]}', {}),
        (b'"a key"', {}),
        (b"\xff\xfe", {}),
        (b"no form", MULTIPART),
        (b"x", {"Content-Type": "multipart/form-data"}),
        (multipart(**{'api_key"; filename="key': KEY}), MULTIPART),
    ],
)
def test_a_body_in_which_no_key_can_be_found_has_none(body: bytes, headers: dict[str, str], locked: Running) -> None:
    assert locked.ask("/translate", body, **headers).status == 403


@pytest.mark.parametrize(
    "path", ["/translate", "/detect", PREDICT, "/v1/completions", "/v1/embeddings", "/look/feelings"]
)
@pytest.mark.parametrize("headers", [{}, bearer("wrong")], ids=["no key", "a wrong key"])
def test_a_key_is_checked_before_the_body_is_read(path: str, headers: dict[str, str], locked: Running) -> None:
    fields = {"Host": "localhost", "Content-Length": "1000000", "Expect": "100-continue", **headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    with locked.connect() as connection:
        connection.sendall(f"POST {path} HTTP/1.1\r\n{head}\r\n".encode())
        status = int(connection.recv(1000).split()[1])
    may_be_in_body = path in KEY_IN_BODY and not headers
    assert status == (100 if may_be_in_body else 401 if path.startswith("/v1/") else 403)


def test_a_body_without_a_key_is_not_parsed(locked: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "parsed_body", None)
    assert locked.ask("/translate", TRANSLATE).status == 403


def test_only_what_touches_no_model_is_open_and_the_schema_says_so(locked: Running) -> None:
    """Every route of the app, those of tomorrow included."""
    paths = []
    for path, operations in locked.app.openapi()["paths"].items():
        for method, operation in operations.items():
            answer = locked.ask(path.replace("{model}", "feelings"), method=method.upper())
            assert (answer.status in (401, 403)) is ("security" in operation) is not is_open(path), path
            paths.append(path)
    assert {"/translate", "/detect", "/v1/models", "/v1/completions", "/v1/embeddings", "/health"} <= set(paths)
    assert locked.ask("/nowhere").status == 403


def test_a_key_is_never_written_down(locked: Running, lines: Lines) -> None:
    for path, body, headers in [way("s3cret") for way in WAYS.values()]:
        assert "s3cret" not in locked.ask(path, body, **headers).body.decode()
        assert "s3cret" not in lines.next()
    assert "s3cret" not in str(locked.app.openapi())
