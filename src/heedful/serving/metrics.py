"""Counts of requests and answers, for Prometheus. Every app has a registry of its own."""

from collections.abc import Iterator
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, ProcessCollector, generate_latest

from .models import Models

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)  # seconds
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


class _Registry(CollectorRegistry):
    """Without the time at which each sample began: the client turns these off for the whole process, or not at all."""

    def collect(self) -> Iterator[Metric]:
        for metric in super().collect():
            metric.samples = [sample for sample in metric.samples if not sample.name.endswith("_created")]
            yield metric


class Metrics:
    """What has been asked and answered since the start, and what the models have to do now."""

    def __init__(self, models: Models | None = None) -> None:
        self.running = 0  # requests that models are working on; for the event loop alone
        self._registry = registry = _Registry(auto_describe=False)
        labels = ["route", "method", "status"]
        self._requests = Counter("heedful_requests", "Requests answered or refused.", labels, registry=registry)
        name, text = "heedful_request_seconds", "From a request's head to its answer's end."
        self._seconds = Histogram(name, text, ["route"], buckets=BUCKETS, registry=registry)
        waiting = Gauge("heedful_waiting_items", "Items that wait for a model.", ["model"], registry=registry)
        running = Gauge("heedful_running_items", "Items that a model is working on.", ["model"], registry=registry)
        self._items = Counter(
            "heedful_answered_items", "Items that a model has answered.", ["model"], registry=registry
        )
        self._tokens = Counter(
            "heedful_answered_tokens", "Tokens that a model has written.", ["model"], registry=registry
        )
        for model in (models or {}).values():
            waiting.labels(model.name).set_function(partial(getattr, model.worker, "waiting"))
            running.labels(model.name).set_function(partial(getattr, model.worker, "running"))
            self.answered(model.name)  # 0, rather than nothing
        requests = Gauge("heedful_running_requests", "Requests that models are working on.", registry=registry)
        requests.set_function(lambda: self.running)
        ProcessCollector(registry=registry)

    def request(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request by its route's template: what clients write into a path must not become labels."""
        self._requests.labels(route, method if method in METHODS else "other", status).inc()
        self._seconds.labels(route).observe(seconds)

    def answered(self, model: str, *, items: int = 0, tokens: int = 0) -> None:
        """Count what a model has answered, and the tokens it wrote for that."""
        self._items.labels(model).inc(items)
        self._tokens.labels(model).inc(tokens)

    def exposition(self) -> bytes:
        """All of it, as it is now, in Prometheus' text format."""
        return generate_latest(self._registry)
