"""POST /v1/predict/{model}: one route for the models of every task."""

import json
import math
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from ..errors import NonFiniteOutputError
from ..tasks.predictor import ItemError
from ..tasks.text_generator import Answer
from .bodies import JsonRoute
from .errors import V1_ERRORS, APIError, Json
from .inputs import as_inputs, check_overrides
from .models import Served
from .state import cancel_on_disconnect, requested_model, server_state
from .threads import run_in_thread

router = APIRouter(tags=["predict"], route_class=JsonRoute)

MAX_BEAMS = 16
N_GUESSES = 5  # for each gap in a text

Count = Annotated[int, Field(ge=1, le=2**31)]
Share = Annotated[float, Field(gt=0, le=1)]


class PredictRequest(BaseModel):
    """The inputs, and for models that generate text, the fields of GenerationConfig that override the model's."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    inputs: list[str | list[Any]] = Field(
        description="Texts, or pairs of texts for models that compare them; images as PNG or JPEG in base64 or as "
        "nested lists of pixels; series as lists of numbers or of rows, with null for a missing value."
    )
    beam: int | None = Field(None, ge=1, le=MAX_BEAMS)
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


class Alternative(BaseModel):
    """A text, the sum of its tokens' log-probabilities, and whether it is complete."""

    text: str
    logprob: float | None
    finished: bool
    confidence: float | None = Field(
        None, description="The probability that it is correct, if the model was calibrated for this."
    )


class GeneratedText(Alternative):
    """The best answer, and with `n_best` the other ones."""

    alternatives: list[Alternative] | None = None


class Label(BaseModel):
    """A class with its probability, or with its score if the model predicts scores."""

    label: str
    probability: float | None = None
    score: float | None = None


class Labels(BaseModel):
    """All classes of an input, likeliest first."""

    labels: list[Label]


class Vector(BaseModel):
    """The embedding vector of a text."""

    vector: list[float]


class GapGuess(BaseModel):
    """A possible text for a gap."""

    text: str
    probability: float


class FilledText(BaseModel):
    """A text with its gaps filled, and the likeliest guesses for each gap."""

    text: str
    gaps: list[list[GapGuess]]


class Forecast(BaseModel):
    """The next steps of a series, in its form."""

    forecast: list[float] | list[list[float]]


class ContextAnswer(BaseModel):
    """The answer to a question: the characters `start` to `end` of its context, or an empty text if there is none."""

    answer: str
    start: int | None
    end: int | None
    probability: float


class LabeledSpan(BaseModel):
    """The characters `start` to `end` of a text with their label."""

    text: str
    label: str
    start: int
    end: int
    probability: float


class Spans(BaseModel):
    """The entities of a text, or its words with their tags."""

    spans: list[LabeledSpan]


class Refusal(BaseModel):
    """Why one of several inputs has no output."""

    error: str


class Predictions(BaseModel):
    """An output for each input, in order; if one of several inputs is refused, its output is the error."""

    model: str
    task: str
    outputs: (
        list[GeneratedText | Refusal]
        | list[Labels | Refusal]
        | list[Vector | Refusal]
        | list[FilledText | Refusal]
        | list[Forecast | Refusal]
        | list[ContextAnswer | Refusal]
        | list[Spans | Refusal]
    )


@router.post("/v1/predict/{model}", response_model=Predictions, responses=V1_ERRORS)
async def predict(request: Request, model: str, body: PredictRequest) -> Json:
    """Run a model of any task on one or several inputs."""
    state, served = server_state(request), requested_model(request, model)
    overrides = body.model_dump(exclude={"inputs"}, exclude_none=True)
    inputs = await run_in_thread(None, as_inputs, served.predictor, body.inputs, state.settings)
    valid = [item for item in inputs if not isinstance(item, ItemError)]
    answers, tokens = await cancel_on_disconnect(request, _answers(request, served, valid, overrides))
    remaining = iter(answers)
    outputs = [_output(item if isinstance(item, ItemError) else next(remaining)) for item in inputs]
    errors = [output["error"] for output in outputs if "error" in output]
    if errors and len(errors) == len(outputs):
        raise APIError(400, f"inputs[0]: {errors[0]}", param="inputs")
    state.metrics.answered(model, items=len(outputs) - len(errors), tokens=tokens)
    return Json({"model": model, "task": served.task, "outputs": outputs})


def _output(answer: Any) -> Any:
    """Return an answer, or the error about an input in its place."""
    if isinstance(answer, ItemError):
        return {"error": answer.reason}
    try:
        json.dumps(answer, allow_nan=False)
    except ValueError:
        raise NonFiniteOutputError from None
    return answer


async def _answers(
    request: Request, served: Served, inputs: list[Any], overrides: dict[str, Any]
) -> tuple[list[Any], int]:
    """Return the outputs, with errors in the places of refused inputs, and the number of generated tokens."""
    model, worker = served.predictor, served.worker
    check_overrides(model, overrides, server_state(request).settings)
    if model.generates_text:
        outputs = await worker.candidates(inputs, errors="return", **overrides)
        n_tokens = sum(answer.n_tokens for each in outputs if not isinstance(each, ItemError) for answer in each)
        formatted = [each if isinstance(each, ItemError) else _generated_text(*each) for each in outputs]
        return formatted, n_tokens
    if model.output_kind == "gaps":
        guess = partial(model.answer_each, inputs, lambda texts: model.guesses(texts, N_GUESSES), "return")
        outputs = [(text, gaps) for text, gaps in zip(inputs, await worker.call(guess), strict=True)]
        return [gaps if isinstance(gaps, ItemError) else _filled_text(model, text, gaps) for text, gaps in outputs], 0
    outputs = await worker.predict(inputs, errors="return")
    return [each if isinstance(each, ItemError) else _formatted(model, each) for each in outputs], 0


def _generated_text(best: Answer, *others: Answer) -> dict[str, Any]:
    alternatives = {"alternatives": [_alternative(other) for other in others]} if others else {}
    return {**_alternative(best), **alternatives}


def _alternative(answer: Answer) -> dict[str, Any]:
    confidence = {} if answer.confidence is None else {"confidence": answer.confidence}
    logprob = answer.logprob if math.isfinite(answer.logprob) else None
    return {"text": answer.text, "logprob": logprob, "finished": answer.finished, **confidence}


def _formatted(model: Any, output: Any) -> Any:
    match model.output_kind:
        case "labels":
            name = "score" if getattr(model.settings, "means", None) == "score" else "probability"
            return {"labels": [{"label": label, name: value} for label, value in output.items()]}
        case "answer":
            return output
        case kind:  # vector, forecast or spans
            return {kind: output}


def _filled_text(model: Any, text: str, gaps: list[list[Any]]) -> dict[str, Any]:
    guesses = [[{"text": item.text, "probability": item.probability} for item in gap] for gap in gaps]
    return {"text": model.filled(text, gaps), "gaps": guesses}
