"""The page, the files it is made of, what it must know, and the looks it shows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import HTMLResponse

from ...lens import page as look_page
from ..house import house_of, served
from ..leaving import while_here
from ..refusals import PLAIN_REFUSALS, Refusal
from .describing import Offer, offer
from .looking import Language, LookAt, look
from .policies import look_headers, page_headers

HERE, LOOK = Path(__file__).parent, Path(look_page.__file__).parent
KINDS = {".js": "text/javascript", ".css": "text/css"}
SHARED = ("script/dom.js", "script/state.js", "script/i18n.js", "script/color.js")
GROUND = ("style/1-ground.css", "style/2-bar.css")
# Every file that is given out, by the name it has in the address; no other name leads anywhere.
FILES = {path.name: path for path in sorted(HERE.iterdir()) if path.suffix in KINDS} | {
    f"look/{path.name}": path for path in (LOOK / name for name in SHARED + GROUND)
}

router = APIRouter(tags=["page"])


@router.get("/", include_in_schema=False, response_class=HTMLResponse)
def index() -> HTMLResponse:
    """The page itself."""
    return HTMLResponse((HERE / "index.html").read_text(encoding="utf-8"), headers=page_headers())


@router.get("/page/models", response_model=Offer, responses=PLAIN_REFUSALS)
def models(request: Request) -> Offer:
    """What is served, as the page needs to know it."""
    house = house_of(request)
    return offer(list(house.models.values()), house.settings)


@router.get("/page/{name:path}", include_in_schema=False)
def file(name: str) -> Response:
    """A script or a style sheet of the page."""
    if name not in FILES:
        raise Refusal(404, "there is no such file")
    path = FILES[name]
    return Response(path.read_bytes(), media_type=KINDS[path.suffix], headers=page_headers())


@router.get("/look/{model}", response_class=HTMLResponse, responses=PLAIN_REFUSALS)
async def look_by_address(
    request: Request, model: str, text: Annotated[str, Query()], language: Annotated[Language, Query()] = "en"
) -> HTMLResponse:
    """Look inside a model while it answers a text: a page to open in a browser."""
    return await _look(request, model, LookAt(input=text, language=language))


@router.post("/look/{model}", response_class=HTMLResponse, responses=PLAIN_REFUSALS)
async def look_inside(request: Request, model: str, asked: LookAt) -> HTMLResponse:
    """Look inside a model while it answers a text, an image or a series."""
    return await _look(request, model, asked)


async def _look(request: Request, model: str, asked: LookAt) -> HTMLResponse:
    found = served(request, model)
    page = await while_here(request, look(found, asked, house_of(request).settings))
    return HTMLResponse(page, headers=look_headers())
