"""What every route needs to know: the models, the limits, the counts."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Event

from fastapi import Request

from ..errors import unknown
from .metrics import Metrics
from .models import Models, Served
from .refusals import Refusal
from .settings import Settings


@dataclass(frozen=True)
class House:
    """One server's. `draining` is set once it has been asked to stop: what runs is answered, nothing new is begun."""

    models: Models
    settings: Settings
    metrics: Metrics
    draining: Event = field(default_factory=Event)


def house_of(request: Request) -> House:
    """The one that this request came to."""
    house: House = request.app.state.house
    return house


def served(request: Request, name: str) -> Served:
    """The model that a client names, or 404; the request's line in the log says it too."""
    models = house_of(request).models
    if name not in models:
        raise Refusal(404, unknown("model", name[:64], models), code="model_not_found", param="model")
    asks(request, models[name])
    return models[name]


def asks(request: Request, model: Served) -> None:
    """Note which model a request is for, where the route has found it without a name."""
    request.state.model = model.name
