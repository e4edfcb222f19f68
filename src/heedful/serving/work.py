"""The work of requests, in tokens: what one request, and all running requests of one client, may need at most.

A token is one that a model reads, or one that it may generate, times the answers that it decodes at once. A client is
an API key, or an address where no keys are needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from .errors import APIError
from .settings import Settings

CHARACTERS = 4  # of an average token
TOKENS = 256  # of an image or a series


class WorkBudget:
    """Counts the work of all running requests by client."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._tokens = Counter[str]()

    @contextmanager
    def request(self, client: str) -> Iterator[None]:
        """Count the work that is done inside for a new request of this client."""
        work = RequestWork(self, client)
        token = _current.set(work)
        try:
            yield
        finally:
            _current.reset(token)
            self._tokens[client] -= work.tokens
            self._tokens += Counter()  # a client without work is not counted

    def add(self, work: RequestWork, tokens: int) -> None:
        """Add to a request's work; raise APIError if that is too much."""
        limit, client_limit = self._settings.max_work, self._settings.max_client_work
        if work.tokens + tokens > limit:
            needed = f"this needs up to {work.tokens + tokens:,} tokens of work, but a request may need {limit:,}"
            raise APIError(
                400, f"{needed}; send less at once, or lower the beam or max_new_tokens", code="too_much_work"
            )
        if self._tokens[work.client] + tokens > client_limit:
            reason = "your other requests need too much work; try again when they are answered"
            raise APIError(429, reason, code="rate_limit_exceeded")
        work.tokens += tokens
        self._tokens[work.client] += tokens


class RequestWork:
    """The work of one HTTP request. Without a budget, anything is allowed."""

    def __init__(self, budget: WorkBudget | None = None, client: str = "") -> None:
        self.client, self.tokens = client, 0
        self._budget = budget

    def add(self, tokens: int) -> None:
        """Add work that is about to be done; raise APIError if that is too much."""
        if self._budget is not None:
            self._budget.add(self, tokens)


_current: ContextVar[RequestWork | None] = ContextVar("work", default=None)


def current_work() -> RequestWork:
    """Return the work of the HTTP request that is being answered, or a new one outside of any."""
    return _current.get() or RequestWork()


def n_tokens(item: Any) -> int:
    """Estimate the tokens of a text, a pair of texts, an image or a series."""
    texts: Sequence[Any] = item if isinstance(item, tuple) else (item,)
    return sum(1 + len(text) // CHARACTERS if isinstance(text, str) else TOKENS for text in texts)
