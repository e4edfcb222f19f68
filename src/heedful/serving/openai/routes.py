"""OpenAI's routes, for language models and embedders."""

import base64
from typing import Any

import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import Response

from ...errors import DataError
from ...tasks.embedding import Embedder
from ...tasks.predictor import ItemError
from ..bodies import JsonRoute
from ..errors import V1_ERRORS, APIError, Json
from ..models import Served
from ..state import ServerState, cancel_on_disconnect, requested_model, server_state
from ..threads import run_in_thread
from .completion import Completions, Events
from .parameters import DIFFERENT_IDS, CompletionParameters, as_texts, error_at
from .schemas import (
    Completion,
    CompletionRequest,
    Embedding,
    EmbeddingList,
    EmbeddingRequest,
    EmbeddingUsage,
    ModelCard,
    ModelList,
)


async def embed(request: EmbeddingRequest, model: Served, state: ServerState) -> EmbeddingList:
    """Return a vector for each input, in order."""
    inputs = as_texts(request.input, state.settings, "input")
    predictor = model.predictor
    texts = await run_in_thread(
        None, lambda: [each if isinstance(each, str) else _text(each, n, predictor) for n, each in enumerate(inputs)]
    )
    try:
        vectors = await model.worker.predict(texts)
    except ItemError as error:
        raise APIError(400, f"input {error.index + 1}: {error.reason}", param="input") from None
    size = len(vectors[0])
    if request.dimensions not in (None, size):
        reason = f"this model's vectors have {size} dimensions and cannot be shortened; leave it out"
        raise APIError(400, reason, param="dimensions")
    state.metrics.answered(model.name, items=len(texts))
    tokens = await run_in_thread(None, lambda: sum(len(predictor.prepared(text).ids) for text in texts))
    shape = _base64 if request.encoding_format == "base64" else list
    return EmbeddingList(
        data=[Embedding(index=index, embedding=shape(vector)) for index, vector in enumerate(vectors)],
        model=model.name,
        usage=EmbeddingUsage(prompt_tokens=tokens, total_tokens=tokens),
    )


def _base64(vector: Any) -> str:
    return base64.b64encode(np.asarray(vector, dtype="<f4").tobytes()).decode("ascii")


def _text(ids: list[int], index: int, model: Embedder) -> str:
    """Return the text of token ids, which must be what the tokenizer makes of it, with or without special tokens."""
    with error_at("input", index):
        text = model.tokenizer.decode(ids)
        full_ids, n_special = model.tokenizer.encode(text), len(model.tokenizer.encode(""))
        bare = len(full_ids) - n_special
        if ids != full_ids and ids not in [full_ids[at : at + bare] for at in range(n_special + 1)]:
            raise DataError(DIFFERENT_IDS)
    return text


router = APIRouter(prefix="/v1", tags=["OpenAI"], responses=V1_ERRORS, route_class=JsonRoute)

STREAMED: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The completions; with `stream`, server-sent events with a part of one each, then `[DONE]`.",
        # The schema of one event: its `data` is a Completion or [DONE].
        "content": {Events.media_type: {"schema": {"type": "object", "properties": {"data": {"type": "string"}}}}},
    }
}


@router.get("/models")
async def models(request: Request) -> ModelList:
    """List all models of this server."""
    return ModelList(data=[_model_card(model) for model in server_state(request).models.values()])


@router.get("/models/{model}")
async def model(request: Request, model: str) -> ModelCard:
    """Describe a model of this server."""
    return _model_card(requested_model(request, model))


@router.post("/completions", response_model=Completion, responses=STREAMED)
async def completions(request: Request, body: CompletionRequest) -> Response:
    """Continue a text with a language model."""
    model = _check_kind(requested_model(request, body.model), "continuation", "continue a text")
    state = server_state(request)
    choices = Completions(model, await CompletionParameters.of(body, model.predictor, state.settings), state)
    if body.stream:
        return Events(request.url.path, choices, usage=bool(body.stream_options and body.stream_options.include_usage))
    return Json((await cancel_on_disconnect(request, choices.response())).model_dump())


@router.post("/embeddings")
async def embeddings(request: Request, body: EmbeddingRequest) -> EmbeddingList:
    """Return the embedding vectors of one or several texts."""
    model = _check_kind(requested_model(request, body.model), "vector", "embed texts")
    return await cancel_on_disconnect(request, embed(body, model, server_state(request)))


@router.post("/chat/completions", status_code=404)
async def chat() -> None:
    """Refuse a chat, which needs a template that these models were not trained with."""
    raise APIError(404, "chat is not supported: these models have no chat roles; use /v1/completions", code="no_chat")


def _model_card(model: Served) -> ModelCard:
    return ModelCard(id=model.name, created=model.created, task=model.task)


def _check_kind(model: Served, output_kind: str, ability: str) -> Served:
    if model.predictor.output_kind != output_kind:
        reason = f"the model {model.name!r} is for {model.task} and cannot {ability}"
        raise APIError(400, reason, param="model", code="model_not_supported")
    return model
