"""The routes of the page at `/`, of its files, of the look pages, and of what the page knows about the models.

A look page shows the inside of a model. The examples are texts that a model's tokenizer can encode, so that they are
in a language it knows.

The Content-Security-Policy lets a browser run the server's own scripts only and connect to this server only.
"""

import base64
import hashlib
import json
import unicodedata
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, ConfigDict, Field

from ...data.text_tokenizers import encode
from ...demo import unknown_words
from ...errors import DataError
from ...lens import page as look_page
from ...lens.document import n_parameters
from ...lens.page import render
from ...lens.page.rendering import script, style
from ...tasks.inspection import inspect, inspect_ablated, inspect_patched
from ...tasks.inspection.patching import check_patchable, patching_tokens
from ...tasks.predictor import ItemError
from ..bodies import JsonRoute
from ..errors import PLAIN_ERRORS, APIError, Json
from ..inputs import as_inputs, check_overrides
from ..models import Served
from ..state import cancel_on_disconnect, requested_model, server_state
from ..threads import run_in_thread
from ..work import current_work

# Of every page. The other security headers are those of all responses.
POLICY = "default-src 'none'; base-uri 'none'; frame-ancestors 'none'"


@cache
def page_headers() -> dict[str, str]:
    """Return the headers of the page at `/`.

    It shows look pages in a sandboxed frame, which inherits this policy: therefore the inline script and style sheet
    of a look page are allowed by their hashes. No other inline code may run.
    """
    policy = (
        f"{POLICY}; script-src 'self' {_hash(script())}; style-src 'self' {_hash(style())}; connect-src 'self'; "
        "img-src 'self' data: blob:; frame-src blob:; form-action 'self'"
    )
    return {"Content-Security-Policy": policy, "Cache-Control": "no-cache"}


@cache
def look_headers() -> dict[str, str]:
    """Return the headers of a look page on its own."""
    sources = f"script-src {_hash(script())}; style-src 'unsafe-inline'; img-src data: blob:; form-action 'none'"
    return {"Content-Security-Policy": f"{POLICY}; {sources}"}


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


MAX_TOKENS = 400  # a page with more is slow to render and hard to read
MAX_BEAMS = 8
MAX_HEADS = 1024  # that a client can turn off: those of a large model
HeadName = Annotated[str, Field(pattern=r"^(encoder|decoder|cross)\.\d{1,3}\.\d{1,3}$")]

Language = Literal["en", "ko"]


class PatchRequest(BaseModel):
    """A second text, `input`, and what is measured of its run with activations of the first; as `inspect_patched`."""

    model_config = ConfigDict(extra="forbid")

    input: str
    step: int | None = Field(default=None, ge=0)
    token: int | None = Field(default=None, ge=0)
    against: int | None = Field(default=None, ge=0)
    stack: Literal["encoder", "decoder"] | None = None
    part: Literal["layer", "self_attention", "cross_attention", "feed_forward"] = "layer"


class LookRequest(BaseModel):
    """A request for a look page. `input` is a text, a pair of texts, an image in base64, or a series.

    The model runs without the heads in `ablate`, and the document then says what that changes. With `patch` it says
    what activations bring back while the model reads another text. With the `format` "json" the answer is the page's
    document, from which an open page redraws itself.

    The other fields are for models that generate text. A `temperature` above 0 samples with the `seed`, and 0 turns
    sampling off; without it, the model's own settings are used.
    """

    input: str | list[Any]
    language: Language = "en"
    beam: int | None = Field(default=None, ge=1, le=MAX_BEAMS)
    temperature: float | None = Field(default=None, ge=0, le=2)
    seed: int | None = Field(default=None, ge=0, lt=2**63)
    max_new_tokens: int | None = Field(default=None, ge=1)
    ablate: list[HeadName] = Field(default=[], max_length=MAX_HEADS)
    patch: PatchRequest | None = None
    format: Literal["html", "json"] = "html"


async def _look(request: Request, name: str, body: LookRequest) -> Response:
    """Return a look page or its document, which the model's worker computes between other requests."""
    served, settings = requested_model(request, name), server_state(request).settings
    if not settings.look:
        raise APIError(403, "this server does not let clients look inside its models")
    predictor = served.predictor
    overrides = body.model_dump(include={"beam", "temperature", "seed", "max_new_tokens"}, exclude_none=True)
    check_overrides(predictor, overrides, settings)
    if predictor.generates_text:  # with the same settings, the answer is the same as that of other routes
        overrides["precision"] = settings.precision
        if (temperature := overrides.pop("temperature", None)) is not None:
            overrides |= {"sample": True, "temperature": temperature} if temperature else {"sample": False}
    patch = body.patch
    if patch is not None:
        check_patchable(predictor)
        if body.ablate:
            raise APIError(
                400, "patch: all heads are on while activations are patched; leave out ablate", param="patch"
            )
    try:
        item, *others = await run_in_thread(
            None, as_inputs, predictor, [body.input, *([] if patch is None else [patch.input])], settings
        )
        for each in (item, *others):
            if isinstance(each, ItemError):
                raise each
    except ItemError as error:
        raise APIError(400, error.reason, param="patch.input" if error.index else "input") from None

    def look() -> dict[str, Any]:
        for each in (item, *others):
            _check_tokens(predictor, each, overrides)
        options = {"name": served.name, "language": body.language, **overrides}
        inspected = inspect_ablated(predictor, item, body.ablate, **options) if body.ablate else None
        document = {**(inspected or inspect(predictor, item, **options)), "served": True}
        return {**document, "unknown_words": unknown_words(predictor, item)}

    async def answer() -> Response:
        document = await served.worker.call(look)
        if patch is not None:
            current_work().add(patching_tokens(document, patch.stack))
            measure = partial(inspect_patched, predictor, document, patch.input, **patch.model_dump(exclude={"input"}))
            document["patching"] = await served.worker.call(measure)
        return await run_in_thread(None, respond, document)

    def respond(document: dict[str, Any]) -> Response:
        return Json(document) if body.format == "json" else HTMLResponse(render(document), headers=look_headers())

    return await cancel_on_disconnect(request, answer())


def _check_tokens(predictor: Any, item: Any, overrides: dict[str, Any]) -> None:
    """Check the number of tokens of texts. Images and series have a fixed number of patches."""
    if not isinstance(item, str | tuple):
        return
    texts = item if isinstance(item, tuple) else (item,)
    n_input = sum(len(encode(predictor.tokenizer, text)) for text in texts)
    reason = f"a page shows at most {MAX_TOKENS} tokens, but this text has {n_input:,}"
    if n_input > MAX_TOKENS:
        raise APIError(400, f"{reason}; shorten it")
    if predictor.output_kind == "continuation":
        n_new = overrides.get("max_new_tokens") or predictor.generation.max_new_tokens or 0
        if n_input + n_new > MAX_TOKENS:
            raise APIError(400, f"{reason} and up to {n_new:,} follow; lower max_new_tokens")


FOLDER, LOOK = Path(__file__).parent, Path(look_page.__file__).parent
EXAMPLES: dict[str, Any] = json.loads((FOLDER / "examples.json").read_text(encoding="utf-8"))


def _is_in_vocabulary(tokenizer: Any, text: str) -> bool:
    """Return whether a tokenizer keeps all letters of a text and does not split it into bytes."""
    try:
        ids = encode(tokenizer, text)
    except DataError:
        return False
    return len(ids) <= len(text) + 3 and _letters(text) <= _letters(tokenizer.decode(ids))


def _letters(text: str) -> set[str]:
    return {letter for letter in unicodedata.normalize("NFC", text).casefold() if letter.isalpha()}


DEFAULT_TEMPERATURE = 0.8  # for a model that does not sample by default


class ImageFormat(BaseModel):
    """The images that a model takes; `bright` if they are mostly light, such as scanned paper."""

    height: int
    width: int
    channels: int
    bright: bool


class SeriesFormat(BaseModel):
    """The series that a model takes, and how many steps it reads and forecasts."""

    context: int
    horizon: int
    columns: list[str]


class ModelDescription(BaseModel):
    """A served model. Fields that its task does not use are null or empty; an example is a list of its input texts."""

    name: str
    task: str
    family: str
    parameters: int
    examples: list[list[str]]
    source: str | None = None
    target: str | None = None
    labels: list[str] = []
    scores: bool = False
    texts: int | None = None
    mask: str | None = None
    temperature: float | None = None
    context: int | None = None
    image: ImageFormat | None = None
    series: SeriesFormat | None = None


class ServerDescription(BaseModel):
    """All served models, and those settings of the server that the page uses."""

    models: list[ModelDescription]
    look: bool
    max_characters: int
    max_items: int
    max_alternatives: int
    max_new_tokens: int


def describe_model(served: Served) -> ModelDescription:
    """Describe a model, with the fields of its task."""
    predictor = served.predictor
    inputs, fields = _examples_and_fields(predictor)
    examples = [[texts] if isinstance(texts, str) else texts for texts in inputs]
    if predictor.task != "translation":  # whose examples are in the source language
        tokenizer = getattr(predictor, "tokenizer", None)
        examples = [texts for texts in examples if all(_is_in_vocabulary(tokenizer, text) for text in texts)]
    return ModelDescription(
        name=served.name,
        task=served.task,
        family=predictor.config.family,
        parameters=n_parameters(predictor.module),
        examples=examples,
        **fields,
    )


def _examples_and_fields(predictor: Any) -> tuple[list[Any], dict[str, Any]]:
    """Return example inputs (texts, pairs, or several texts to compare), and the fields that only this task has."""
    settings, examples = predictor.settings, EXAMPLES.get(predictor.task, [])
    match predictor.task:
        case "translation":
            language = settings.source.partition("-")[0]
            return examples.get(language, []), {"source": settings.source, "target": settings.target}
        case "text-to-text":
            return EXAMPLES["translation"]["en"] + EXAMPLES["translation"]["ko"], {}
        case "language-model":
            generation = predictor.generation
            temperature = generation.temperature if generation.sample else DEFAULT_TEMPERATURE
            return examples, {"temperature": temperature, "context": predictor.limit}
        case "classification":
            fields = {"labels": list(settings.labels), "scores": settings.means == "score", "texts": settings.texts}
            return EXAMPLES["pairs"] if settings.texts == 2 else examples, fields
        case "masked-lm":
            return [text.format(settings.mask) for text in examples], {"mask": settings.mask}
        case "images":
            channels, height, width = predictor.shape
            bright = sum(settings.mean) / channels > 0.5
            image = ImageFormat(height=height, width=width, channels=channels, bright=bright)
            return examples, {"labels": list(settings.labels), "image": image}
        case "forecasting":
            context, horizon = predictor.module.context_length, predictor.module.head.horizon
            return examples, {"series": SeriesFormat(context=context, horizon=horizon, columns=list(settings.columns))}
    return examples, {}


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

router = APIRouter(tags=["page"], route_class=JsonRoute)


@router.get("/", include_in_schema=False, response_class=HTMLResponse)
def index() -> HTMLResponse:
    """Return the page where people can try the models."""
    return HTMLResponse((FOLDER / "index.html").read_text(encoding="utf-8"), headers=page_headers())


@router.get("/page/models", response_model=ServerDescription, responses=PLAIN_ERRORS)
def models(request: Request) -> ServerDescription:
    """Describe the served models for the page."""
    state = server_state(request)
    settings = {name: getattr(state.settings, name) for name in ServerDescription.model_fields if name != "models"}
    return ServerDescription(models=[describe_model(model) for model in state.models.values()], **settings)


@router.get("/page/{name:path}", include_in_schema=False)
def file(name: str) -> Response:
    """Return a script or a style sheet of the page."""
    if name not in FILES:
        raise APIError(404, "there is no such file")
    return Response(FILES[name], media_type=MEDIA_TYPES[Path(name).suffix], headers=page_headers())


@router.get("/look/{model}", response_class=HTMLResponse, responses=PLAIN_ERRORS)
async def look_by_address(request: Request, model: str, text: str, language: Language = "en") -> Response:
    """Return a look page for a text, to be opened in a browser."""
    return await _look(request, model, LookRequest(input=text, language=language))


@router.post("/look/{model}", response_class=HTMLResponse, responses=PLAIN_ERRORS)
async def look_inside(request: Request, model: str, body: LookRequest) -> Response:
    """Return a look page for a text, an image or a series, or its document."""
    return await _look(request, model, body)
