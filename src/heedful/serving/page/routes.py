"""The routes of the page at `/`, of its files, and of the look pages that show the inside of a model.

The Content-Security-Policy lets a browser run the server's own scripts only and connect to this server only.
"""

import asyncio
import base64
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, Field

from ...data.text_tokenizers import encode
from ...lens import page as look_page
from ...lens.page import render
from ...lens.page.rendering import script, style
from ...tasks.inspection import inspect
from ...tasks.predictor import ItemError
from ..errors import PLAIN_ERRORS, APIError
from ..inputs import as_inputs
from ..settings import Settings
from ..state import cancel_on_disconnect, requested_model, server_state
from .describing import ServerDescription, describe_server

COMMON = {"Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff"}


@cache
def page_headers() -> dict[str, str]:
    """Return the headers of the page at `/`.

    It shows look pages in a sandboxed frame, which inherits this policy: therefore the inline script and style sheet
    of a look page are allowed by their hashes. No other inline code may run.
    """
    policy = (
        f"default-src 'none'; script-src 'self' {_hash(script())}; style-src 'self' {_hash(style())}; "
        "connect-src 'self'; img-src 'self' data: blob:; frame-src blob:; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    )
    return {"Content-Security-Policy": policy, "Cache-Control": "no-cache", **COMMON}


@cache
def look_headers() -> dict[str, str]:
    """Return the headers of a look page on its own. It is never cached, since it contains a request's input."""
    policy = (
        f"default-src 'none'; script-src {_hash(script())}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return {"Content-Security-Policy": policy, "Cache-Control": "no-store", **COMMON}


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


MAX_TOKENS = 400  # a page with more is slow to render and hard to read
MAX_BEAMS = 8

Language = Literal["en", "ko"]


class LookRequest(BaseModel):
    """A request for a look page. `input` is a text, a pair of texts, an image in base64, or a series.

    The other fields are for models that generate text. A `temperature` above 0 samples with the `seed`, and 0 turns
    sampling off; without it, the model's own settings are used.
    """

    input: str | list[Any]
    language: Language = "en"
    beam: int | None = Field(default=None, ge=1, le=MAX_BEAMS)
    temperature: float | None = Field(default=None, ge=0, le=2)
    seed: int | None = Field(default=None, ge=0, lt=2**63)
    max_new_tokens: int | None = Field(default=None, ge=1)


async def _look(request: Request, name: str, body: LookRequest) -> HTMLResponse:
    """Return a look page, which the model's worker renders between other requests."""
    served, settings = requested_model(request, name), server_state(request).settings
    if not settings.look:
        raise APIError(403, "this server does not let clients look inside its models")
    predictor = served.predictor
    overrides = _generation_overrides(predictor, body, settings)

    def render_page(item: Any) -> str:
        _check_tokens(predictor, item, overrides)
        return render(inspect(predictor, item, name=served.name, language=body.language, **overrides))

    async def look() -> str:
        try:
            (item,) = await asyncio.to_thread(as_inputs, predictor, [body.input], settings)
        except ItemError as error:
            raise APIError(400, error.reason, param="input") from None
        return await served.worker.call(lambda: render_page(item))

    return HTMLResponse(await cancel_on_disconnect(request, look()), headers=look_headers())


def _generation_overrides(predictor: Any, body: LookRequest, settings: Settings) -> dict[str, Any]:
    """Return the generation settings of a request; the same ones give the same answer as other routes."""
    overrides = body.model_dump(include={"beam", "temperature", "seed", "max_new_tokens"}, exclude_none=True)
    if not predictor.generates_text:
        if overrides:
            raise APIError(
                400, f"{min(overrides)}: this model does not generate text; leave it out", param=min(overrides)
            )
        return {}
    if body.max_new_tokens is not None and body.max_new_tokens > settings.max_new_tokens:
        raise APIError(400, f"max_new_tokens is at most {settings.max_new_tokens:,} here", param="max_new_tokens")
    if (temperature := overrides.pop("temperature", None)) is not None:
        overrides |= {"sample": True, "temperature": temperature} if temperature else {"sample": False}
    return {"precision": settings.precision, **overrides}


def _check_tokens(predictor: Any, item: Any, overrides: dict[str, Any]) -> None:
    """Check the number of tokens of texts. Images and series have a fixed number of patches."""
    if not isinstance(item, str | tuple):
        return
    texts = item if isinstance(item, tuple) else (item,)
    n_input = sum(len(encode(predictor.tokenizer, text)) for text in texts)
    if n_input > MAX_TOKENS:
        raise APIError(400, f"a page shows at most {MAX_TOKENS} tokens, but this text has {n_input:,}; shorten it")
    if predictor.output_kind == "continuation":
        n_new = overrides.get("max_new_tokens") or predictor.generation.max_new_tokens or 0
        if n_input + n_new > MAX_TOKENS:
            raise APIError(
                400,
                f"a page shows at most {MAX_TOKENS} tokens, but this text has {n_input:,} and up to {n_new:,} follow: "
                "lower max_new_tokens",
            )


FOLDER, LOOK = Path(__file__).parent, Path(look_page.__file__).parent
MEDIA_TYPES = {".js": "text/javascript", ".css": "text/css"}
SCRIPTS = ["shell.js", "dom.js", "state.js", "i18n.js", "color.js", "controls.js", "choice.js"]
SCRIPTS += [f"drawing/{name}.js" for name in ("text", "chart", "matrix", "stage", "forecast")]
STYLES = ["1-ground.css", "2-bar.css"]
CATALOGS = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("locales/*.json"))}
# All files of the page by their name in the URL; no other path is served.
FILES = {
    **{path.name: path.read_bytes() for path in sorted(FOLDER.iterdir()) if path.suffix in MEDIA_TYPES},
    **{f"look/{name}": (LOOK / "script" / name).read_bytes() for name in SCRIPTS},
    **{f"look/{name}": (LOOK / "style" / name).read_bytes() for name in STYLES},
    "messages.js": f"export const messages = {json.dumps(CATALOGS, ensure_ascii=False)};\n".encode(),
}

router = APIRouter(tags=["page"])


@router.get("/", include_in_schema=False, response_class=HTMLResponse)
def index() -> HTMLResponse:
    """Return the page where people can try the models."""
    return HTMLResponse((FOLDER / "index.html").read_text(encoding="utf-8"), headers=page_headers())


@router.get("/page/models", response_model=ServerDescription, responses=PLAIN_ERRORS)
def models(request: Request) -> ServerDescription:
    """Describe the served models for the page."""
    state = server_state(request)
    return describe_server(list(state.models.values()), state.settings)


@router.get("/page/{name:path}", include_in_schema=False)
def file(name: str) -> Response:
    """Return a script or a style sheet of the page."""
    if name not in FILES:
        raise APIError(404, "there is no such file")
    return Response(FILES[name], media_type=MEDIA_TYPES[Path(name).suffix], headers=page_headers())


@router.get("/look/{model}", response_class=HTMLResponse, responses=PLAIN_ERRORS)
async def look_by_address(
    request: Request, model: str, text: Annotated[str, Query()], language: Annotated[Language, Query()] = "en"
) -> HTMLResponse:
    """Return a look page for a text, to be opened in a browser."""
    return await _look(request, model, LookRequest(input=text, language=language))


@router.post("/look/{model}", response_class=HTMLResponse, responses=PLAIN_ERRORS)
async def look_inside(request: Request, model: str, body: LookRequest) -> HTMLResponse:
    """Return a look page for a text, an image or a series."""
    return await _look(request, model, body)
