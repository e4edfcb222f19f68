"""What every route needs to know: the models, the limits, the counts; and work that ends with its client."""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass, field
from threading import Event
from typing import TypeVar

from fastapi import Request

from ..errors import unknown
from .errors import APIError
from .metrics import Metrics
from .models import Models, Served
from .settings import Settings

T = TypeVar("T")

CLIENT_CLOSED = 499  # for the log: no client sees it


@dataclass(frozen=True)
class ServerState:
    """One server's. `draining` is set once it has been asked to stop: what runs is answered, nothing new is begun."""

    models: Models
    settings: Settings
    metrics: Metrics
    draining: Event = field(default_factory=Event)


def server_state(request: Request) -> ServerState:
    """The one that this request came to."""
    state: ServerState = request.app.state.server
    return state


def requested_model(request: Request, name: str) -> Served:
    """The model that a client names, or 404; the request's line in the log says it too."""
    models = server_state(request).models
    if name not in models:
        raise APIError(404, unknown("model", name[:64], models), code="model_not_found", param="model")
    note_model(request, models[name])
    return models[name]


def note_model(request: Request, model: Served) -> None:
    """Note which model a request is for, where the route has found it without a name."""
    request.state.model = model.name


async def cancel_on_disconnect(request: Request, work: Awaitable[T]) -> T:
    """What the work gives; it is cancelled when the client leaves, or the request's time is over.

    Call it once the body has been read.
    """
    doing = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_left(request))
    try:
        await asyncio.wait({doing, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not doing.done():
            raise APIError(CLIENT_CLOSED, "the client has left")
        return doing.result()
    finally:
        doing.cancel()
        leaving.cancel()
        await asyncio.gather(doing, leaving, return_exceptions=True)  # its place is free before the next is let in


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
