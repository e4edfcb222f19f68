"""Passes the generation requests of many clients' requests to one engine, in turn and a slice at a time.

The engine decodes what it has in the order in which it came. What a large request would fill it with therefore waits
here: a small one that comes later is decoded beside its first slice, not after its last.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from threading import RLock

from ..generation import GenerationEngine, GenerationRequest, RequestState
from ..generation.scheduler import MIN_COST
from .work import RequestWork

SMALL, SLICE, SHARED = 16, 4, 2  # parts of the engine's budget


class FairQueue:
    """The requests of each owner, an HTTP request, that wait for an engine. All methods are safe in any thread.

    Args:
        engine: decodes the requests. An owner has at most a quarter of its budget, and all owners together a half; only
            a sixteenth, or one request, may an owner always have, so that there is room for small requests.
    """

    def __init__(self, engine: GenerationEngine) -> None:
        self._engine = engine
        self._lock = RLock()
        self._waiting: dict[RequestWork, deque[GenerationRequest]] = {}  # the owner whose turn it is comes first
        self._costs: dict[GenerationRequest, tuple[RequestWork, int]] = {}  # of what the engine has
        self._used = Counter[RequestWork]()

    @property
    def n_waiting(self) -> int:
        """The number of requests that wait here."""
        with self._lock:
            return sum(map(len, self._waiting.values()))

    def n_unfinished(self, most: int) -> int:
        """Return the number of unfinished requests, at most so many of each owner."""
        with self._lock:
            counts = Counter(owner for owner, _ in self._costs.values())
            counts.update({owner: len(requests) for owner, requests in self._waiting.items()})
            return sum(min(count, most) for count in counts.values())

    def add(self, owner: RequestWork, requests: Iterable[GenerationRequest]) -> None:
        """Queue requests, whose `on_token` is extended."""
        watched = [*map(self._watched, requests)]
        with self._lock:
            if watched:
                self._waiting.setdefault(owner, deque()).extend(watched)
                self._fill()

    def abort(self, owner: RequestWork, requests: Iterable[GenerationRequest]) -> None:
        """Cancel requests of this owner, wherever they are; finished ones are ignored."""
        dropped = set(requests)
        with self._lock:
            if remaining := [request for request in self._waiting.pop(owner, ()) if request not in dropped]:
                self._waiting[owner] = deque(remaining)
            self._engine.abort(*dropped)
            self._release(*dropped)

    def _watched(self, request: GenerationRequest) -> GenerationRequest:
        notify = request.on_token

        def on_token(state: RequestState) -> None:
            if notify is not None:
                notify(state)
            if state.finished or state.error:
                with self._lock:
                    self._release(request)

        request.on_token = on_token
        return request

    def _release(self, *requests: GenerationRequest) -> None:
        for request in requests:
            if request in self._costs:
                owner, cost = self._costs.pop(request)
                self._used[owner] -= cost
        self._used += Counter()
        self._fill()

    def _fill(self) -> None:
        """Pass on one request of each owner in turn, until nobody may have more."""
        blocked = 0
        while blocked < len(self._waiting):
            owner = next(iter(self._waiting))
            requests = self._waiting.pop(owner)
            config, cost = requests[0].config, cost_of(requests[0])
            budget = config.batch_tokens or self._engine.budget
            used, total = self._used[owner] + cost, self._used.total() + cost
            fits = used <= budget // SLICE and total <= budget // SHARED
            if fits or used <= budget // SMALL or used == cost:
                blocked = 0
                request = requests.popleft()
                self._costs[request], self._used[owner] = (owner, cost), used
                self._engine.add_request(request)
            else:
                blocked += 1
            if requests:
                self._waiting[owner] = requests  # behind all others


def cost_of(request: GenerationRequest) -> int:
    """Return what a request takes of the engine's budget."""
    return request.config.width * max(request.input_length, MIN_COST)
