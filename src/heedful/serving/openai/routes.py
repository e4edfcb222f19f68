"""OpenAI's routes, for language models and embedders."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from ...tasks.embedding import Embedder
from ...tasks.language_model import CausalLanguageModel
from ..house import house_of, served
from ..leaving import while_here
from ..models import Served
from ..refusals import V1_REFUSALS, Json, Refusal
from .asking import Asked
from .completions import Completions
from .embeddings import embedded
from .events import Events, events
from .replies import Completion, EmbeddingList, Model, ModelList
from .requests import CompletionRequest, EmbeddingRequest

router = APIRouter(prefix="/v1", tags=["OpenAI"], responses=V1_REFUSALS)

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
    return ModelList(data=[_described(model) for model in house_of(request).models.values()])


@router.get("/models/{model}")
async def model(request: Request, model: str) -> Model:
    """One of them."""
    return _described(served(request, model))


@router.post("/completions", response_model=Completion, responses=STREAMED)
async def completions(request: Request, body: CompletionRequest) -> Response:
    """What follows a text."""
    model = _able(served(request, body.model), CausalLanguageModel, "continue a text")
    house = house_of(request)
    found = Completions(model, await Asked.of(body, model.predictor, house.settings), house)
    if body.stream:
        return await events(request, found, usage=bool(body.stream_options and body.stream_options.include_usage))
    return Json((await while_here(request, found.whole())).model_dump())


@router.post("/embeddings")
async def embeddings(request: Request, body: EmbeddingRequest) -> EmbeddingList:
    """Texts as vectors."""
    model = _able(served(request, body.model), Embedder, "embed texts")
    return await while_here(request, embedded(body, model, house_of(request)))


@router.post("/chat/completions", status_code=404)
async def chat() -> None:
    """Not here: a chat needs a template that these models were not trained with."""
    raise Refusal(404, "there is no chat here, for these models know no roles; use /v1/completions", code="no_chat")


def _described(model: Served) -> Model:
    return Model(id=model.name, created=model.created, task=model.task)


def _able(model: Served, kind: type, does: str) -> Served:
    if not isinstance(model.predictor, kind):
        why = f"the model {model.name!r} is for {model.task.replace('_', ' ')}, and cannot {does}"
        raise Refusal(400, why, param="model", code="model_not_supported")
    return model
