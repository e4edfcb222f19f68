"""/metrics: read by the rules of Prometheus' text format, written down here once more."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

import pytest
from running import Running

from heedful.serving.state import BUCKETS, Metrics

NAME, LABEL = r"[a-zA-Z_:][a-zA-Z0-9_:]*", r"[a-zA-Z_][a-zA-Z0-9_]*"
SAMPLE = re.compile(rf"({NAME})(?:{{(.*)}})? (\S+)")
PAIR = re.compile(rf'({LABEL})="((?:[^"\\\n]|\\[\\"n])*)"(?:,|$)')
ENDINGS = {"histogram": ("_bucket", "_sum", "_count"), "counter": ("",), "gauge": ("",)}

Labels = frozenset[tuple[str, str]]


def parsed(text: str) -> dict[str, dict[Labels, float]]:
    """Every sample by its name and labels; whatever breaks a rule fails."""
    assert text.endswith("\n")
    samples: dict[str, dict[Labels, float]] = defaultdict(dict)
    kinds: dict[str, str] = {}
    family = ""
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, family, kind = line.split(" ")
            assert family not in kinds, "one TYPE for each name, before its samples"
            kinds[family] = kind
            assert kind != "counter" or family.endswith("_total")
        elif not line.startswith("# HELP "):
            name, labels, value = labelled(line)
            assert name in [family + ending for ending in ENDINGS[kinds[family]]], "a family's samples stand together"
            assert labels not in samples[name], "each sample once"
            samples[name][labels] = value
    return samples


def labelled(line: str) -> tuple[str, Labels, float]:
    match = SAMPLE.fullmatch(line)
    assert match, line
    pairs, rest = {}, match[2] or ""
    while rest:
        pair = PAIR.match(rest)
        assert pair, line
        pairs[pair[1]] = re.sub(r"\\(.)", lambda escape: {"n": "\n"}.get(escape[1], escape[1]), pair[2])
        rest = rest[pair.end() :]
    return match[1], frozenset(pairs.items()), float(match[3])


def labels(**pairs: str) -> Labels:
    return frozenset(pairs.items())


@pytest.mark.parametrize(
    "text", ["plain", 'a "quote"', "back\\slash", "\\n", "line\nfeed", 'all "\\\n} 1\n# TYPE', "한글"]
)
def test_a_labels_value_comes_back_as_it_was(text: str) -> None:
    metrics = Metrics()
    metrics.answered(text, items=2)
    samples = parsed(metrics.exposition().decode())
    assert samples["heedful_answered_items_total"] == {labels(model=text): 2}


def test_a_histogram_counts_what_lies_within_each_bound() -> None:
    metrics, times = Metrics(), [0.0, 0.005, 0.0051, 0.3, 59.0, 1000.0]
    for seconds in times:
        metrics.request("/here", "GET", 200, seconds)
    samples = parsed(metrics.exposition().decode())
    for bound in BUCKETS:
        within = sum(seconds <= bound for seconds in times)
        assert samples["heedful_request_seconds_bucket"][labels(route="/here", le=str(bound))] == within
    assert samples["heedful_request_seconds_bucket"][labels(route="/here", le="+Inf")] == len(times)
    assert samples["heedful_request_seconds_count"][labels(route="/here")] == len(times)
    assert samples["heedful_request_seconds_sum"][labels(route="/here")] == pytest.approx(sum(times))


def test_apps_count_for_themselves_and_only_what_they_are_asked_to() -> None:
    first, second = Metrics(), Metrics()
    first.request("/here", "GET", 200, 0.1)
    first.running = 3
    assert parsed(first.exposition().decode())["heedful_running_requests"] == {labels(): 3}
    assert parsed(second.exposition().decode())["heedful_running_requests"] == {labels(): 0}
    assert "heedful_request_seconds_count" not in parsed(second.exposition().decode())
    assert "_created" not in first.exposition().decode()


def test_requests_are_counted_by_route_method_and_status_and_answers_by_model(server: Running) -> None:
    def counts(name: str) -> dict[Labels, float]:
        answer = server.ask("/metrics")
        assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        return parsed(answer.body.decode())[name]

    before = counts("heedful_requests_total")
    items = counts("heedful_answered_items_total")
    path = "/v1/predict/{model}"
    sent_requests: list[tuple[str, Any, str, dict[str, str]]] = [
        ("/v1/predict/feelings", {"inputs": ["a", "b", "c"]}, "POST", {"route": path, "status": "200"}),
        ("/v1/predict/feelings", {"inputs": 7}, "POST", {"route": path, "status": "400"}),
        ("/v1/predict/nobody", {"inputs": []}, "POST", {"route": path, "status": "404"}),
        ("/any/thing?else", None, "GET", {"route": "unknown", "status": "404"}),
        ("/health", None, "BREW", {"route": "/health", "status": "405", "method": "other"}),
    ]
    for where, body, method, _ in sent_requests:
        server.ask(where, body, method=method)
    later = counts("heedful_requests_total")
    for _, _, method, wanted in sent_requests:
        key = labels(**{"method": method, **wanted})
        assert later[key] == before.get(key, 0) + 1
    model = labels(model="feelings")
    assert counts("heedful_answered_items_total")[model] == items[model] + 3
    for name in ("heedful_waiting_items", "heedful_running_items", "heedful_answered_tokens_total"):
        assert set(counts(name)) == {labels(model=model) for model in server.state.models}
    assert counts("process_resident_memory_bytes")[labels()] > 10_000_000
