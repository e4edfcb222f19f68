"""How the server is: for load balancers, and for Prometheus."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel

from .house import house_of
from .metrics import CONTENT_TYPE
from .refusals import Json

router = APIRouter(tags=["status"])


class Health(BaseModel):
    """ "ok", or "draining" while a server that was asked to stop answers what it has."""

    status: str


@router.head("/health", include_in_schema=False)
@router.get("/health", response_model=Health, responses={503: {"model": Health, "description": "It is stopping."}})
async def health(request: Request) -> Json:
    """Whether the server takes requests."""
    draining = house_of(request).draining.is_set()
    return Json({"status": "draining"}, 503) if draining else Json({"status": "ok"})


@router.get("/metrics", response_class=PlainTextResponse)
async def metrics(request: Request) -> PlainTextResponse:
    """Counts, in Prometheus' text form."""
    return PlainTextResponse(house_of(request).metrics.exposition(), media_type=CONTENT_TYPE)
