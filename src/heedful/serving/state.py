"""The state that all routes share: models, settings and metrics; and cancellation when a client disconnects."""

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

CLIENT_CLOSED = 499  # status for the log only


@dataclass(frozen=True)
class ServerState:
    """The state of one server. `draining` is set when it is asked to stop: running requests finish, new ones fail."""

    models: Models
    settings: Settings
    metrics: Metrics
    draining: Event = field(default_factory=Event)


def server_state(request: Request) -> ServerState:
    """Return the state of the server that handles a request."""
    state: ServerState = request.app.state.server
    return state


def requested_model(request: Request, name: str) -> Served:
    """Return the model that a client names and note it for the log; raise APIError 404 if there is none."""
    models = server_state(request).models
    if name not in models:
        raise APIError(404, unknown("model", name[:64], models), code="model_not_found", param="model")
    note_model(request, models[name])
    return models[name]


def note_model(request: Request, model: Served) -> None:
    """Note for the log which model a request is for."""
    request.state.model = model.name


async def cancel_on_disconnect(request: Request, work: Awaitable[T]) -> T:
    """Await the work, and cancel it if the client disconnects or the request's time is over.

    The body must have been read before.
    """
    task = asyncio.ensure_future(work)
    disconnect = asyncio.ensure_future(_disconnect(request))
    try:
        await asyncio.wait({task, disconnect}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise APIError(CLIENT_CLOSED, "the client has disconnected")
        return task.result()
    finally:
        task.cancel()
        disconnect.cancel()
        await asyncio.gather(task, disconnect, return_exceptions=True)  # before another request is admitted


async def _disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
