"""Everything that a server reads from a network: heads of requests, bodies, and HTML to translate."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, cast
from urllib.parse import unquote

import h11
from checking import Target
from mutations import changed_json, changed_text, text_with

from every_task import TINY
from heedful.serving.app import create_app
from heedful.serving.libretranslate.documents import html, plain
from heedful.serving.models import Models
from heedful.serving.request_head import head_error, plain_request
from heedful.serving.server import Server
from heedful.serving.settings import Settings

SERVED = ("writer", "feelings", "vectors", "sales", "en-ko")
LIMITS: dict[str, Any] = {"max_new_tokens": 16, "max_items": 8, "max_characters": 500, "seconds": 20.0}


class Application:
    """The server's application with tiny models, called without a network."""

    def __init__(self) -> None:
        settings = Settings(port=0, **LIMITS)
        with tempfile.TemporaryDirectory() as folder:
            for name in SERVED:
                TINY[name]().save(Path(folder) / name)
            self.models = Models.load([f"{folder}/{name}" for name in SERVED], settings)
        self.app = create_app(self.models, settings)
        self.loop = asyncio.new_event_loop()

    def ask(self, method: str, path: str, body: bytes, kind: str) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers and body of the response to a request."""
        return self.loop.run_until_complete(self._ask(method, path, body, kind))

    async def _ask(self, method: str, path: str, body: bytes, kind: str) -> tuple[int, dict[str, str], bytes]:
        messages: list[Any] = []
        sent = False

        async def receive() -> dict[str, Any]:
            nonlocal sent
            if sent:
                await asyncio.Event().wait()  # the client waits for its answer
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            messages.append(message)

        headers = [(b"host", b"localhost"), (b"content-type", kind.encode("latin-1"))]
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
            "path": unquote(path), "raw_path": path.encode(), "query_string": b"", "root_path": "",
            "headers": [*headers, (b"content-length", str(len(body)).encode())],
            "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80), "state": {},
        }  # fmt: skip
        await self.app(scope, receive, send)
        content = b"".join(message.get("body", b"") for message in messages[1:])
        fields = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in messages[0]["headers"]}
        return messages[0]["status"], fields, content


@cache
def application() -> Application:
    return Application()


def request(path: str, body: Any, kind: str = "application/json") -> bytes:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return f"{path}\n{kind}\n".encode() + content


MULTIPART = b'--x\r\nContent-Disposition: form-data; name="q"\r\n\r\ncat\r\n--x\r\nContent-Disposition: form-data; '
MULTIPART += b'name="source"\r\n\r\nen\r\n--x\r\nContent-Disposition: form-data; name="target"\r\n\r\nko\r\n--x--\r\n'
REQUESTS = [
    request("/translate", {"q": ["The cat.", "I drink."], "source": "en", "target": "ko", "alternatives": 2}),
    request("/translate", {"q": "<b>The</b> cat &amp; I.", "source": "auto", "target": "ko", "format": "html"}),
    request("/translate", b"q=The+cat&source=en&target=ko", "application/x-www-form-urlencoded"),
    request("/translate", MULTIPART, "multipart/form-data; boundary=x"),
    request("/detect", {"q": "The cat reads."}),
    request("/v1/completions", {"model": "writer", "prompt": ["The", "A"], "max_tokens": 4, "n": 2, "logprobs": 2}),
    request("/v1/completions", {"model": "writer", "prompt": [5, 6], "stop": ["a"], "temperature": 0.5, "seed": 1}),
    request("/v1/completions", {"model": "writer", "prompt": "The", "stream": True, "stream_options": {}, "top_p": 0.9,
                                "logit_bias": {"5": -1}, "presence_penalty": 0.0, "echo": True, "max_tokens": 3}),
    request("/v1/embeddings", {"model": "vectors", "input": ["The cat", "dog"], "encoding_format": "base64"}),
    request("/v1/predict/feelings", {"inputs": ["The cat"], "options": {}}),
    request("/v1/predict/sales", {"inputs": [[1.0, 2.0, 3.5] * 20]}),
    request("/v1/predict/writer", {"inputs": ["The"], "options": {"max_new_tokens": 3, "beam": 2}}),
    request("/look/feelings", {"input": "The cat", "ablate": []}),
]  # fmt: skip
BODY_PARTS = (
    *(
        b"api_key",
        b'"\\ud800"',
        b"[[[[[[[[[",
        b"1e999",
        b"NaN",
        b"&" * 2000,
        b"%ff",
        b"%00",
        b"=",
        b"--x",
        b"--x--",
        b"\r\n\r\n",
    ),
    *(b"filename=", b"charset=utf-16", b"boundary=", b'"stream": true,', b"null"),
)


def changed_request(random: Random, content: bytes) -> bytes:
    """Change the body of a request; sometimes its path or its content type."""
    path, _, rest = content.partition(b"\n")
    kind, _, body = rest.partition(b"\n")
    choice = random.random()
    if choice < 0.05:
        path = random.choice(
            (b"/look/writer", b"/v1/predict/x", b"/v1/predict/%2e%2e", b"/v1/models/writer", b"/docs", path)
        )
    elif choice < 0.1:
        kind = random.choice(
            (b"text/plain", b"application/x-www-form-urlencoded", b"multipart/form-data", b"", kind + b";")
        )
    elif choice < 0.3 or not body.startswith((b"{", b"[")):
        body = changed_text(random, body, BODY_PARTS)
    else:
        body = changed_json(random, body)
    return b"\n".join((path, kind, body))


def check_request(content: bytes, folder: Path) -> None:
    """Ask, and fail for a server's error, or for a response that is not what it says."""
    path, _, rest = content.partition(b"\n")
    kind, _, body = rest.partition(b"\n")
    route = path.decode("latin-1")
    status, headers, answer = application().ask("POST", route, body[: 1 << 20], kind.decode("latin-1"))
    assert status < 500, f"{status} {answer[:300]!r}"
    assert b"Traceback" not in answer
    if headers.get("content-type", "").startswith("application/json"):
        parsed = json.loads(answer, parse_constant=_refuse_constant)
        assert status < 400 or "error" in parsed, f"{status} {answer[:300]!r}"


def _refuse_constant(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")


# Heads

HEADS = (
    b"GET /health HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n",
    b'POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 8\r\n\r\n{"a": 1}',
    b"POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    b"GET /a HTTP/1.1\r\nHost: a\r\n\r\nGET /b?q=1 HTTP/1.1\r\nHost: b\r\nRange: bytes=0-1\r\n\r\n",
)
HEAD_PARTS = (
    *(b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: identity, chunked\r\n", b"Content-Length: 3\r\n"),
    *(b"Content-Length: +3\r\n", b"Content-Length: 1, 2\r\n", b"content-length:\t8\r\n", b"\r\n ", b"\r\n\r\n", b"\r"),
    *(b"Expect: 100-continue\r\n", b"Upgrade: websocket\r\n", b"Host: evil\r\n", b"HTTP/0.9", b"HTTP/2.0", b"\0"),
    *(b"X: " + b"x" * 20_000, b"X: y\r\n" * 500, b"ffffffffffffffff\r\n", b"GET http://a/ HTTP/1.1\r\n", b"%00"),
    *(b"chunked", b"\x0b", b"\n"),
)


class Transport(asyncio.Transport):
    """A connection that keeps what is written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closed = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return {"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 80)}.get(name, default)

    def write(self, data: Any) -> None:
        assert not self.closed or not data, "something was written after the connection was closed"
        self.written += bytes(data)

    def close(self) -> None:
        self.closed = True

    abort = close

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


def check_head(content: bytes, folder: Path) -> None:
    """Send bytes over a connection, whole and in two parts: only valid responses come back, and none is a 500."""
    scope = plain_request(content)
    if scope is not None:
        assert head_error(content) is None
        _compare_with_h11(content, scope)
    application().loop.run_until_complete(_connect([content]))
    middle = len(content) // 2
    application().loop.run_until_complete(_connect([content[:middle], content[middle:]]))


def _compare_with_h11(content: bytes, scope: dict[str, Any]) -> None:
    """Fail unless h11 reads the same request in the bytes."""
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(content)
    event = connection.next_event()
    assert isinstance(event, h11.Request), event
    target = event.target.partition(b"?")[0]
    assert (event.method, target, list(event.headers)) == (
        scope["method"].encode(),
        scope["raw_path"],
        scope["headers"],
    )


async def _connect(parts: Sequence[bytes]) -> None:
    server = _server()
    transport = Transport()
    protocol: Any = cast("Any", server.config.http_protocol_class)(
        config=server.config, server_state=server.server_state, app_state={}, _loop=asyncio.get_running_loop()
    )
    protocol.connection_made(transport)
    for part in parts:
        if not transport.closed:
            protocol.data_received(part)
            for _ in range(8):  # until the route has answered
                await asyncio.sleep(0)
    for task in list(server.server_state.tasks):
        task.cancel()
    protocol.connection_lost(None)
    await asyncio.sleep(0)
    statuses = [line.split()[1] for line in transport.written.split(b"\r\n") if line.startswith(b"HTTP/1.1 ")]
    assert b"500" not in statuses, transport.written[:300]
    assert not transport.written or transport.written.startswith(b"HTTP/1.1 "), transport.written[:100]


@cache
def _server() -> Server:
    server = Server(application().app)
    server.config.load()
    return server


# HTML

PAGES = (
    b"<p>The <b>cat</b> reads. I &amp; you &lt; 3.</p>",
    b'<div class="notranslate">x</div><a href="a>b">I drink</a>, <i>and <u>play</u></i>!<br/>',
    b"<!-- c --><script>a<b</script><p>The cat.</p>",
    "<p>나는 <em translate=no>cat</em>&nbsp;&eacute;&#233;&#xe9; <pre>a  b</pre><textarea>x</textarea>".encode(),
)
HTML_PARTS = (
    *(
        b"<",
        b">",
        b"</",
        b"<!--",
        b"-->",
        b"--!>",
        b"<!",
        b"<?",
        b"&",
        b"&#",
        b"&#x110000;",
        b"&notit;",
        b"&amp",
        b"<b>" * 300,
    ),
    *(
        b"</b>" * 300,
        b"<script>",
        b"</script",
        b"<a " + b"a=1 " * 300,
        b"<a b='",
        b'<a b="',
        b"<![CDATA[",
        b"translate=no",
    ),
    *(b"&lt;" * 300, b".", b"<p" * 500, b"<" * 5000, b"&#" * 5000, b"<!--" * 2000, b"a b . " * 2000),
)


def check_html(content: bytes, folder: Path) -> None:
    """Translate nothing: each page and each text comes out byte for byte as it was, whatever its markup is."""
    text = content.decode("utf-8", "replace")
    for split in (html, plain):
        document = split(text)
        parts = (part if isinstance(part, str) else part.render(part.text, part.spans) for part in document)
        assert "".join(parts) == text
        for part in document:
            if not isinstance(part, str):
                part.render(f"<{part.text[::-1]}&", [(0, 1)] * len(part.spans))


def constant(*seeds: bytes) -> Callable[[], Sequence[bytes]]:
    return lambda: seeds


TARGETS = [
    Target("body of a request", constant(*REQUESTS), changed_request, check_request, 200),
    Target("head of a request", constant(*HEADS), text_with(*HEAD_PARTS), check_head),
    Target("html", constant(*PAGES), text_with(*HTML_PARTS), check_html),
]
