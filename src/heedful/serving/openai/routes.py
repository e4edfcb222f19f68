"""OpenAI's routes, for language models and embedders."""

import asyncio
import base64
from typing import Any

import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import Response

from ...errors import DataError
from ...tasks.embedding import Embedder
from ...tasks.predictor import ItemError
from ..errors import V1_ERRORS, APIError, Json
from ..models import Served
from ..state import ServerState, cancel_on_disconnect, requested_model, server_state
from .completion import Completions, Events, events
from .parameters import CompletionParameters, listed
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


async def embedded(request: EmbeddingRequest, model: Served, state: ServerState) -> EmbeddingList:
    """A vector for each input, in order."""
    inputs = listed(request.input, state.settings, "input")
    predictor = model.predictor
    texts = await asyncio.to_thread(
        lambda: [each if isinstance(each, str) else _text(each, n, predictor) for n, each in enumerate(inputs)]
    )
    try:
        vectors = await model.worker.predict(texts)
    except ItemError as error:
        raise APIError(400, f"input {error.index + 1}: {error.reason}", param="input") from None
    size = len(vectors[0])
    if request.dimensions not in (None, size):
        why = f"this model's vectors have {size} dimensions, and fewer would not mean the same; leave it out"
        raise APIError(400, why, param="dimensions")
    state.metrics.answered(model.name, items=len(texts))
    tokens = await asyncio.to_thread(lambda: sum(len(predictor.prepared(text).ids) for text in texts))
    shape = _base64 if request.encoding_format == "base64" else list
    return EmbeddingList(
        data=[Embedding(index=index, embedding=shape(vector)) for index, vector in enumerate(vectors)],
        model=model.name,
        usage=EmbeddingUsage(prompt_tokens=tokens, total_tokens=tokens),
    )


def _base64(vector: Any) -> str:
    return base64.b64encode(np.asarray(vector, dtype="<f4").tobytes()).decode("ascii")


def _text(ids: list[int], index: int, model: Embedder) -> str:
    """Of ids that are how the tokeniser writes a text, with or without what it puts around one."""
    try:
        text = model.tokenizer.decode(ids)
        full_ids, special_ids = model.tokenizer.encode(text), model.tokenizer.encode("")
    except DataError as error:
        raise APIError(400, f"input {index + 1}: {error}", param="input") from None
    bare = len(full_ids) - len(special_ids)
    if ids != full_ids and (
        len(ids) != bare or ids not in [full_ids[at : at + bare] for at in range(len(special_ids) + 1)]
    ):
        why = "these token ids are not how this model writes their text; send the text itself"
        raise APIError(400, f"input {index + 1}: {why}", param="input")
    return text


router = APIRouter(prefix="/v1", tags=["OpenAI"], responses=V1_ERRORS)

STREAMED: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The completions; where `stream` is true, events with a bit of one each, and `[DONE]`.",
        # Of each event, as those who read schemas see it: its `data` is a Completion, or [DONE].
        "content": {Events.media_type: {"schema": {"type": "object", "properties": {"data": {"type": "string"}}}}},
    }
}


@router.get("/models")
async def models(request: Request) -> ModelList:
    """Every model that is served."""
    return ModelList(data=[_described(model) for model in server_state(request).models.values()])


@router.get("/models/{model}")
async def model(request: Request, model: str) -> ModelCard:
    """One of them."""
    return _described(requested_model(request, model))


@router.post("/completions", response_model=Completion, responses=STREAMED)
async def completions(request: Request, body: CompletionRequest) -> Response:
    """What follows a text."""
    model = _able(requested_model(request, body.model), "continuation", "continue a text")
    state = server_state(request)
    result = Completions(model, await CompletionParameters.of(body, model.predictor, state.settings), state)
    if body.stream:
        return await events(request, result, usage=bool(body.stream_options and body.stream_options.include_usage))
    return Json((await cancel_on_disconnect(request, result.response())).model_dump())


@router.post("/embeddings")
async def embeddings(request: Request, body: EmbeddingRequest) -> EmbeddingList:
    """Texts as vectors."""
    model = _able(requested_model(request, body.model), "vector", "embed texts")
    return await cancel_on_disconnect(request, embedded(body, model, server_state(request)))


@router.post("/chat/completions", status_code=404)
async def chat() -> None:
    """Not here: a chat needs a template that these models were not trained with."""
    raise APIError(404, "there is no chat here, for these models know no roles; use /v1/completions", code="no_chat")


def _described(model: Served) -> ModelCard:
    return ModelCard(id=model.name, created=model.created, task=model.task)


def _able(model: Served, output_kind: str, does: str) -> Served:
    if model.predictor.output_kind != output_kind:
        why = f"the model {model.name!r} is for {model.task.replace('_', ' ')}, and cannot {does}"
        raise APIError(400, why, param="model", code="model_not_supported")
    return model
