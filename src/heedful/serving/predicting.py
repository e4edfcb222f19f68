"""POST /v1/predict/{model}: one plain route for every task."""

import asyncio
import math
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from ..errors import ConfigError
from ..tasks.predictor import ItemError
from ..tasks.text_generator import Answer
from .errors import V1_ERRORS, APIError, Json
from .inputs import as_inputs
from .models import Served
from .state import cancel_on_disconnect, requested_model, server_state

router = APIRouter(tags=["predict"])

WIDEST = 16  # beams
GUESSES = 5  # for each gap in a text

Count = Annotated[int, Field(ge=1, le=2**31)]
Share = Annotated[float, Field(gt=0, le=1)]


class PredictRequest(BaseModel):
    """What to answer, and for models that write, how: as in GenerationConfig. What is left out is as the model says."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    api_key: str | None = None  # the middleware has read it

    inputs: list[str | list[Any]] = Field(
        description="Texts, or pairs of texts for models that compare them; images as PNG or JPEG in base64 or as "
        "nested lists of pixels; series as lists of numbers or of rows, null where nothing was observed."
    )
    beam: int | None = Field(None, ge=1, le=WIDEST)
    n_best: Count | None = None
    max_new_tokens: Count | None = None
    min_new_tokens: int | None = Field(None, ge=0, le=2**31)
    length_penalty: float | None = Field(None, ge=-10, le=10)
    length_penalty_kind: str | None = Field(None, pattern="^(power|google)$")
    sample: bool | None = None
    temperature: float | None = Field(None, gt=0, le=100)
    top_k: Count | None = None
    top_p: Share | None = None
    min_p: Share | None = None
    seed: int | None = Field(None, ge=0, lt=2**63)
    repetition_penalty: float | None = Field(None, gt=0, le=100)
    no_repeat_ngram_size: Count | None = None

    def overrides(self) -> dict[str, Any]:
        """Of generation, those that were given."""
        return self.model_dump(exclude={"inputs", "api_key"}, exclude_none=True)


class Alternative(BaseModel):
    """A text, the sum of its tokens' log-probabilities, and whether it came to its end."""

    text: str
    logprob: float | None
    finished: bool
    confidence: float | None = Field(None, description="That it is right, where the model was taught to tell.")


class Written(Alternative):
    """The best answer, and with `n_best` the others."""

    alternatives: list[Alternative] | None = None


class Label(BaseModel):
    """A class, and its probability; or its score, where the model's numbers are none."""

    label: str
    probability: float | None = None
    score: float | None = None


class Classified(BaseModel):
    """Every class, the likeliest first."""

    labels: list[Label]


class Embedded(BaseModel):
    """What a text means, in numbers."""

    vector: list[float]


class Guessed(BaseModel):
    """What may stand in a gap."""

    text: str
    probability: float


class Filled(BaseModel):
    """A text with its gaps filled, and the likeliest guesses for each."""

    text: str
    gaps: list[list[Guessed]]


class Forecast(BaseModel):
    """The steps that follow, in the form of the series."""

    forecast: list[float] | list[list[float]]


class AnswerFound(BaseModel):
    """The answer to a question: the characters `start` to `end` of its context; empty where the context has none."""

    answer: str
    start: int | None
    end: int | None
    probability: float


class LabeledSpan(BaseModel):
    """A part of a text, the characters `start` to `end`, with its label."""

    text: str
    label: str
    start: int
    end: int
    probability: float


class Tagged(BaseModel):
    """The entities of a text, or its words with their tags."""

    spans: list[LabeledSpan]


class Predicted(BaseModel):
    """An output for each input, in order."""

    model: str
    task: str
    outputs: (
        list[Written]
        | list[Classified]
        | list[Embedded]
        | list[Filled]
        | list[Forecast]
        | list[AnswerFound]
        | list[Tagged]
    )


@router.post("/v1/predict/{model}", response_model=Predicted, responses=V1_ERRORS)
async def predict(request: Request, model: str, body: PredictRequest) -> Json:
    """Ask a model, whatever its task."""
    state, served = server_state(request), requested_model(request, model)
    try:
        inputs = await asyncio.to_thread(as_inputs, served.predictor, body.inputs, state.settings)
        outputs, tokens = await cancel_on_disconnect(request, _answers(request, served, inputs, body.overrides()))
    except ItemError as error:
        raise APIError(400, f"inputs[{error.index}]: {error.reason}", param="inputs") from None
    except ConfigError as error:
        raise APIError(400, str(error)) from None
    for index, output in enumerate(outputs):
        if not _finite(output):
            raise APIError(400, f"inputs[{index}]: the model's answer is no number", param="inputs")
    state.metrics.answered(model, items=len(outputs), tokens=tokens)
    return Json({"model": model, "task": served.task, "outputs": outputs})


async def _answers(
    request: Request, served: Served, inputs: list[Any], overrides: dict[str, Any]
) -> tuple[list[Any], int]:
    """The outputs, and how many tokens were written."""
    model, worker = served.predictor, served.worker
    if model.generates_text:
        _check(request, overrides)
        candidates = await worker.candidates(inputs, **overrides)
        return [_written(*answers) for answers in candidates], sum(
            item.n_tokens for answers in candidates for item in answers
        )
    for name in overrides:
        raise APIError(400, f"{name}: this model, for {served.task}, writes nothing", param=name)
    if model.output_kind == "gaps":
        guesses = await worker.call(lambda: model.guesses(inputs, GUESSES))
        return [_filled(model, text, gaps) for text, gaps in zip(inputs, guesses, strict=True)], 0
    return [SHAPES[model.output_kind](model, output) for output in await worker.predict(inputs)], 0


def _check(request: Request, overrides: dict[str, Any]) -> None:
    settings = server_state(request).settings
    for name, most in (("max_new_tokens", settings.max_new_tokens), ("n_best", settings.max_n)):
        if overrides.get(name, 1) > most:
            raise APIError(400, f"{name}: at most {most:,} on this server, not {overrides[name]:,}", param=name)


def _written(best: Answer, *others: Answer) -> dict[str, Any]:
    alternatives = {"alternatives": [_alternative(other) for other in others]} if others else {}
    return {**_alternative(best), **alternatives}


def _alternative(answer: Answer) -> dict[str, Any]:
    sure = {} if answer.confidence is None else {"confidence": answer.confidence}
    logprob = answer.logprob if math.isfinite(answer.logprob) else None
    return {"text": answer.text, "logprob": logprob, "finished": answer.finished, **sure}


def _classified(model: Any, shares: dict[str, float]) -> dict[str, Any]:
    worth = "score" if getattr(model.settings, "means", None) == "score" else "probability"
    return {"labels": [{"label": label, worth: share} for label, share in shares.items()]}


SHAPES: dict[str, Callable[[Any, Any], dict[str, Any]]] = {  # by `output_kind`
    "labels": _classified,
    "vector": lambda model, vector: {"vector": vector},
    "forecast": lambda model, steps: {"forecast": steps},
    "answer": lambda model, answer: answer,
    "spans": lambda model, spans: {"spans": spans},
}


def _filled(model: Any, text: str, gaps: list[list[Any]]) -> dict[str, Any]:
    guesses = [[{"text": item.text, "probability": item.probability} for item in gap] for gap in gaps]
    return {"text": model.filled(text, gaps), "gaps": guesses}


def _finite(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_finite, value.values()))
    if isinstance(value, list):
        return all(map(_finite, value))
    return not isinstance(value, float) or math.isfinite(value)
