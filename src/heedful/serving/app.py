"""The app: routes, guards around them, and refusals in each API's own words."""

from __future__ import annotations

from fastapi import FastAPI
from fastapi.middleware import Middleware

from . import documents, libretranslate, openai, page, predicting, status
from .guards import Guarded
from .house import House
from .metrics import Metrics
from .models import Models
from .refusals import Json, handle
from .request_log import Reported
from .settings import Settings

__all__ = ["House", "create_app"]


def create_app(models: Models, settings: Settings) -> FastAPI:
    """All of it over these models."""
    house = House(models, settings, Metrics(models))
    guards = [Middleware(Reported, house=house), Middleware(Guarded, house=house)]  # the outermost first
    app = FastAPI(
        title="Heedful",
        docs_url=None,
        redoc_url=None,
        default_response_class=Json,
        middleware=guards,
        redirect_slashes=False,
    )
    app.state.house = house
    handle(app)
    documents.describe(app)
    for part in (page, libretranslate, openai, predicting, status, documents):
        app.include_router(part.router)
    return app
