"""Bodies: what is counted before anything is parsed, where it is parsed, and how much at once."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from running import ENOUGH, Running, in_thread

from heedful.serving import bodies
from heedful.serving.bodies import MAX_DEPTH, SMALL, StructureLimits
from heedful.serving.errors import APIError

LIMITS = StructureLimits(texts=4, lists=6, values=12)
FITS: dict[str, Any] = {"a": ["[[[,,,", '"\\"{{{', "\\"], "b": [1, [2, [3]], [4]]}  # 5 texts with the keys


def counts(value: Any) -> StructureLimits:
    """Count by walking through the parsed value: every list and object, and its members but the first, is a value."""
    if isinstance(value, str):
        return StructureLimits(1, 0, 0)
    if not isinstance(value, list | dict):
        return StructureLimits(0, 0, 0)
    members = [*value, *value.values()] if isinstance(value, dict) else value
    inner = [counts(member) for member in members]
    n_texts, n_lists, n_values = (sum(numbers) for numbers in zip(*inner, (0, 0, 0), strict=True))
    return StructureLimits(n_texts, 1 + n_lists, 1 + max(0, len(value) - 1) + n_values)


@pytest.mark.parametrize(
    "value", [FITS, [], {}, "", 7, [[[]]], ["a,b", 'c"d', "\\\\"], [{"a": {"b": [1, 2, 3]}}, "x\n", None, True]]
)
@pytest.mark.parametrize("indent", [None, 1])
def test_the_structure_is_counted_as_a_parser_would_count_it(value: Any, indent: int | None) -> None:
    body, exact = json.dumps(value, indent=indent).encode(), counts(value)
    exact.check(body)
    for name in exact._fields:
        if getattr(exact, name):
            with pytest.raises(APIError, match="too many"):
                exact._replace(**{name: getattr(exact, name) - 1}).check(body)


def test_depth_is_counted_before_parsing() -> None:
    wide = StructureLimits(100, 10**6, 10**6)
    wide.check(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)
    for body in (b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), b"[" * 100_000, b'{"a":' * 100_000):
        with pytest.raises(APIError, match=r"nested too deeply|too many texts"):
            wide.check(body)
    wide.check(b"[" + b"[]," * 1000 + b"[]]")


@pytest.mark.parametrize(
    "body", [b'"' + b'\\"' * 100_000, b'\\"' * 100_000, b'"' * 100_001, b'"' + b"\\" * 100_001, b'"\\', b'"a\nb"']
)
def test_texts_without_an_end_are_counted_in_one_pass(body: bytes) -> None:
    symbols, _ = bodies._STRING.subn(b"", body)
    assert b'"' not in symbols  # every quotation mark began or ended a text: none is searched for twice


HOSTILE: dict[str, tuple[str, bytes]] = {
    "a list for each prompt": ("/v1/completions", b'{"model":"writer","prompt":[' + b"[1]," * 250_000 + b"[1]]}"),
    "many prompts": ("/v1/completions", b'{"model":"writer","prompt":[' + b'"a",' * 250_000 + b'"a"]}'),
    "many ids": ("/v1/embeddings", b'{"model":"vectors","input":[' + b"1," * 500_000 + b"1]}"),
    "many inputs": ("/v1/predict/feelings", b'{"inputs":[' + b"1," * 500_000 + b"1]}"),
    "many fields": ("/v1/predict/sales", b"{" + b'"a":1,' * 150_000 + b'"a":1}'),
    "many numbers": ("/v1/predict/sales", b'{"inputs":[[' + b"1," * 500_000 + b"1]]}"),
    "many texts": ("/translate", b'{"source":"en","target":"ko","q":[' + b'"",' * 300_000 + b'""]}'),
    "a look": ("/look/feelings", b'{"input":[' + b"[],[]," * 150_000 + b"[]]}"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_body_with_too_much_in_it_is_refused_before_it_is_parsed(
    name: str, server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, body = HOSTILE[name]
    monkeypatch.setattr("heedful.serving.bodies.json.loads", None)
    answer = server.ask(path, body, Content_Type="application/json")
    assert answer.status == 400, answer.body
    assert b"the body has too many" in answer.body


def test_large_bodies_are_parsed_one_at_a_time_while_others_are_answered(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads, entered, released = json.loads, threading.Semaphore(0), threading.Event()
    at_once: list[int] = []
    n_parsing = 0

    def loads_when_released(body: bytes) -> Any:
        nonlocal n_parsing
        n_parsing += 1
        at_once.append(n_parsing)
        entered.release()
        assert len(body) <= SMALL or released.wait(ENOUGH)
        n_parsing -= 1
        return loads(body)

    monkeypatch.setattr("heedful.serving.bodies.json.loads", loads_when_released)
    large = {"inputs": ["The cat reads. " * 200]}
    answers = [in_thread(server.ask, "/v1/predict/feelings", large) for _ in range(3)]
    assert entered.acquire(timeout=ENOUGH)
    assert server.ask("/health").status == 200  # the event loop does not wait for the parser
    released.set()
    assert len({answer.result(ENOUGH).body for answer in answers}) == 1
    assert at_once == [1, 1, 1]


@pytest.mark.parametrize(
    "value", [[1.5], [1, -1], [2**31], [True], [[1], []], [["a"], [1]], ["a", 1], [[1], 2], {}, []]
)
def test_prompts_of_other_types_are_refused_with_one_message(value: Any, server: Running) -> None:
    answer = server.ask("/v1/completions", {"model": "writer", "prompt": value})
    assert answer.status == 400
    assert "prompt: should be a text, a list of texts, a list of token ids" in answer.json["error"]["message"]
