"""Routes of the web page: the page, its files, the model list, and look pages.

A browser may run our scripts and no others, and reach this server alone.
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
from .describing import PageInfo, page_info

COMMON = {"Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff"}


@cache
def page_headers() -> dict[str, str]:
    """Return the response headers of the page at `/`.

    It shows the looks it has fetched in a sandboxed frame, and such a frame inherits this policy: so the one inline
    script and the one style sheet that a look is made of are named by their hashes. Nothing else inline may run.
    """
    policy = (
        f"default-src 'none'; script-src 'self' {_hash(script())}; style-src 'self' {_hash(style())}; "
        "connect-src 'self'; img-src 'self' data: blob:; frame-src blob:; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    )
    return {"Content-Security-Policy": policy, "Cache-Control": "no-cache", **COMMON}


@cache
def look_headers() -> dict[str, str]:
    """Return the response headers of a look page: strict, and never cached, because it holds a user's input."""
    policy = (
        f"default-src 'none'; script-src {_hash(script())}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return {"Content-Security-Policy": policy, "Cache-Control": "no-store", **COMMON}


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


MOST_TOKENS = 400  # a page of more is slow to write and hard to read
MOST_BEAMS = 8

Language = Literal["en", "ko"]


class LookAt(BaseModel):
    """The input to inspect: a text, two for a model that takes pairs, an image in base64, or a series.

    The other fields are for models that write. A `temperature` above 0 draws words, by the `seed`; without one the
    model writes as it does by itself.
    """

    input: str | list[Any]
    language: Language = "en"
    beam: int | None = Field(default=None, ge=1, le=MOST_BEAMS)
    temperature: float | None = Field(default=None, ge=0, le=2)
    seed: int | None = Field(default=None, ge=0, lt=2**63)
    max_new_tokens: int | None = Field(default=None, ge=1)


async def _look(request: Request, name: str, body: LookAt) -> HTMLResponse:
    """Return the look page, rendered by the model's worker between other requests."""
    served, settings = requested_model(request, name), server_state(request).settings
    if not settings.look:
        raise APIError(403, "this server does not let clients look inside its models")
    predictor = served.predictor
    overrides = _generation_overrides(predictor, body, settings)

    def write(item: Any) -> str:
        _check_tokens(predictor, item, overrides)
        return render(inspect(predictor, item, name=served.name, language=body.language, **overrides))

    async def look() -> str:
        try:
            (item,) = await asyncio.to_thread(as_inputs, predictor, [body.input], settings)
        except ItemError as error:
            raise APIError(400, error.reason, param="input") from None
        return await served.worker.call(lambda: write(item))

    return HTMLResponse(await cancel_on_disconnect(request, look()), headers=look_headers())


def _generation_overrides(predictor: Any, body: LookAt, settings: Settings) -> dict[str, Any]:
    """Return the generation settings that reproduce the answer shown before."""
    overrides = body.model_dump(include={"beam", "temperature", "seed", "max_new_tokens"}, exclude_none=True)
    if not predictor.generates_text:
        if overrides:
            raise APIError(
                400, f"{min(overrides)} is for models that write, and this one does not", param=min(overrides)
            )
        return {}
    if body.max_new_tokens is not None and body.max_new_tokens > settings.max_new_tokens:
        raise APIError(400, f"max_new_tokens is at most {settings.max_new_tokens:,} here", param="max_new_tokens")
    if (temperature := overrides.pop("temperature", None)) is not None:
        overrides |= {"sample": True, "temperature": temperature} if temperature else {"sample": False}
    return {"precision": settings.precision, **overrides}


def _check_tokens(predictor: Any, item: Any, overrides: dict[str, Any]) -> None:
    """Raise if a text has too many tokens; images and series have a fixed number of patches."""
    if not isinstance(item, str | tuple):
        return
    texts = item if isinstance(item, tuple) else (item,)
    n_read = sum(len(encode(predictor.tokenizer, text)) for text in texts)
    if n_read > MOST_TOKENS:
        raise APIError(400, f"a look shows at most {MOST_TOKENS} tokens, and this text has {n_read:,}; shorten it")
    if predictor.output_kind == "continuation":
        wanted = overrides.get("max_new_tokens") or predictor.generation.max_new_tokens or 0
        if n_read + wanted > MOST_TOKENS:
            raise APIError(
                400,
                f"a look shows at most {MOST_TOKENS} tokens, and this text has {n_read:,} and {wanted:,} more to come; "
                "ask for fewer",
            )


HERE, LOOK = Path(__file__).parent, Path(look_page.__file__).parent
KINDS = {".js": "text/javascript", ".css": "text/css"}
SCRIPTS = ["shell.js", "dom.js", "state.js", "i18n.js", "color.js", "controls.js", "choice.js"]
SCRIPTS += [f"drawing/{name}.js" for name in ("text", "chart", "matrix", "stage", "forecast")]
STYLES = ["1-ground.css", "2-bar.css"]
CATALOGS = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(HERE.glob("locales/*.json"))}
# Every file that is given out, by the name it has in the address; no other name leads anywhere.
FILES = {
    **{path.name: path.read_bytes() for path in sorted(HERE.iterdir()) if path.suffix in KINDS},
    **{f"look/{name}": (LOOK / "script" / name).read_bytes() for name in SCRIPTS},
    **{f"look/{name}": (LOOK / "style" / name).read_bytes() for name in STYLES},
    "messages.js": f"export const messages = {json.dumps(CATALOGS, ensure_ascii=False)};\n".encode(),
}

router = APIRouter(tags=["page"])


@router.get("/", include_in_schema=False, response_class=HTMLResponse)
def index() -> HTMLResponse:
    """Return the HTML of the page."""
    return HTMLResponse((HERE / "index.html").read_text(encoding="utf-8"), headers=page_headers())


@router.get("/page/models", response_model=PageInfo, responses=PLAIN_ERRORS)
def models(request: Request) -> PageInfo:
    """Return descriptions of the served models."""
    state = server_state(request)
    return page_info(list(state.models.values()), state.settings)


@router.get("/page/{name:path}", include_in_schema=False)
def file(name: str) -> Response:
    """Return a script or a style sheet of the page."""
    if name not in FILES:
        raise APIError(404, "there is no such file")
    return Response(FILES[name], media_type=KINDS[Path(name).suffix], headers=page_headers())


@router.get("/look/{model}", response_class=HTMLResponse, responses=PLAIN_ERRORS)
async def look_by_address(
    request: Request, model: str, text: Annotated[str, Query()], language: Annotated[Language, Query()] = "en"
) -> HTMLResponse:
    """Return the look page of a text, to open in a browser."""
    return await _look(request, model, LookAt(input=text, language=language))


@router.post("/look/{model}", response_class=HTMLResponse, responses=PLAIN_ERRORS)
async def look_inside(request: Request, model: str, body: LookAt) -> HTMLResponse:
    """Return the look page of a text, an image or a series."""
    return await _look(request, model, body)
