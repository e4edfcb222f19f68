"""The app: all routes and middleware, /health, /metrics, and the API's schema at /openapi.json and /docs."""

from collections.abc import Iterable, Iterator
from html import escape
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.middleware import Middleware
from fastapi.responses import HTMLResponse, PlainTextResponse
from pydantic import BaseModel

from . import predicting
from .admission import AdmissionMiddleware, is_open
from .errors import EXPECTED, Json, answer_error
from .libretranslate import routes as libretranslate
from .models import Models
from .openai import routes as openai
from .page import routes as page
from .request_log import RequestLogMiddleware
from .settings import Settings
from .state import CONTENT_TYPE, Metrics, ServerState, server_state

router = APIRouter(tags=["status"])

DOCS_POLICY = f"{page.POLICY}; style-src 'unsafe-inline'; form-action 'none'"
DOCS_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 0 auto; padding: 1rem; }
h2 { font: 600 1rem ui-monospace, monospace; margin: 2rem 0 0; overflow-wrap: anywhere; }
p, ul { margin: .25rem 0; }
ul { padding-left: 1.25rem; }
code { font-family: ui-monospace, monospace; }
"""
API_VERSION = "1"  # of the routes, independent of the package's version
UNUSED_STATUS = "422"  # FastAPI documents it for invalid requests, which get status 400 here
KEY_SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "api_key": {"type": "apiKey", "in": "query", "name": "api_key"},
}

Schema = dict[str, Any]


def create_app(models: Models, settings: Settings) -> FastAPI:
    """Create the app that serves these models."""
    state = ServerState(models, settings, Metrics(models))
    # The outermost middleware comes first.
    middleware = [Middleware(RequestLogMiddleware, state=state), Middleware(AdmissionMiddleware, state=state)]
    app = FastAPI(
        title="Heedful",
        version=API_VERSION,
        docs_url=None,
        redoc_url=None,
        default_response_class=Json,
        middleware=middleware,
        exception_handlers=dict.fromkeys(EXPECTED, answer_error),
        redirect_slashes=False,
    )
    app.state.server = state
    for routes in (page.router, libretranslate.router, openai.router, predicting.router, router):
        app.include_router(routes)
    _correct(app.openapi(), locked=bool(settings.api_keys))  # now: during a request it would block the event loop
    return app


@router.get("/docs", include_in_schema=False, response_class=HTMLResponse)
async def docs(request: Request) -> HTMLResponse:
    """Describe the routes in a page for people."""
    return HTMLResponse(_docs_page(request.app.openapi()), headers={"Content-Security-Policy": DOCS_POLICY})


def _correct(schema: Schema, *, locked: bool) -> None:
    """Describe in a schema what the middleware and the error handlers do."""
    for path, _, operation in _operations(schema):
        operation["responses"].pop(UNUSED_STATUS, None)
        for status, answer in operation["responses"].items():
            if status >= "4":  # errors are JSON, whatever the route returns
                answer["content"] = {"application/json": next(iter(answer["content"].values()))}
        if locked and not is_open(path):
            operation["security"] = [{name: []} for name in KEY_SCHEMES]
    if locked:
        schema["components"]["securitySchemes"] = KEY_SCHEMES
    for unused in ("HTTPValidationError", "ValidationError"):
        schema["components"]["schemas"].pop(unused, None)


def _docs_page(schema: Schema) -> str:
    title, routes = escape(schema["info"]["title"]), ""
    statuses: dict[str, str] = {}
    for path, method, operation in _operations(schema):
        description = operation.get("description") or operation.get("summary", "")
        statuses |= {status: answer["description"] for status, answer in operation["responses"].items()}
        routes += (
            f"<h2>{escape(method.upper())} {escape(path)}</h2><p>{escape(description)}</p>"
            f"{_list(_fields(schema, operation))}"
            f"<p><small>Status codes: {escape(' '.join(sorted(operation['responses'])))}</small></p>"
        )
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{title}</title><style>{DOCS_STYLE}</style><h1>{title}</h1>"
        f'<p>The routes of this server. For programs, there is <a href="openapi.json">openapi.json</a>.</p>'
        f"{routes}<h2>Status codes</h2>{_list(sorted(statuses.items()))}</html>"
    )


def _fields(schema: Schema, operation: Schema) -> Iterator[tuple[str, str]]:
    """Yield the name and the description of each parameter and each field of the body."""
    fields = [(field["name"], field, field.get("required")) for field in operation.get("parameters", [])]
    forms: list[Schema] = list(operation.get("requestBody", {}).get("content", {}).values())
    body: Schema = forms[0]["schema"] if forms else {}
    if "$ref" in body:
        body = schema["components"]["schemas"][body["$ref"].rpartition("/")[2]]
    fields += [(name, field, name in body.get("required", [])) for name, field in body.get("properties", {}).items()]
    for name, field, required in fields:
        yield name, ("(required) " if required else "") + field.get("description", "")


def _list(entries: Iterable[tuple[str, str]]) -> str:
    items = "".join(f"<li><code>{escape(name)}</code> {escape(text)}</li>" for name, text in entries)
    return f"<ul>{items}</ul>" if items else ""


def _operations(schema: Schema) -> Iterator[tuple[str, str, Schema]]:
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            yield path, method, operation


class Health(BaseModel):
    """The status: "ok", or "draining" while the server finishes running requests before it stops."""

    status: str


@router.head("/health", include_in_schema=False)
@router.get(
    "/health", response_model=Health, responses={503: {"model": Health, "description": "The server is stopping."}}
)
async def health(request: Request) -> Json:
    """Return whether the server accepts requests."""
    draining = server_state(request).draining.is_set()
    return Json({"status": "draining"}, 503) if draining else Json({"status": "ok"})


@router.get("/metrics", response_class=PlainTextResponse)
async def metrics(request: Request) -> PlainTextResponse:
    """Return metrics in Prometheus' text format."""
    return PlainTextResponse(server_state(request).metrics.exposition(), media_type=CONTENT_TYPE)
