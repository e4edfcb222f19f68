"""One input of a served model, looked into: the page that `heedful look` writes."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

from pydantic import BaseModel, Field

from ...data.text_tokenizers import encode
from ...lens.page import render
from ...tasks.looking import look_at
from ...tasks.predictor import ItemError
from ...tasks.text_generator import TextGenerator
from ..inputs import as_inputs
from ..models import Served
from ..refusals import Refusal
from ..settings import Settings

MOST_TOKENS = 400  # a page of more is slow to write and hard to read
MOST_BEAMS = 8

Language = Literal["en", "ko"]


class LookAt(BaseModel):
    """What to look at. `input` is a text, two for a model that takes pairs, an image in base64, or a series.

    The other fields are for models that write. A `temperature` above 0 draws words, by the `seed`; without one the
    model writes as it does by itself.
    """

    input: str | list[Any]
    language: Language = "en"
    beam: int | None = Field(default=None, ge=1, le=MOST_BEAMS)
    temperature: float | None = Field(default=None, ge=0, le=2)
    seed: int | None = Field(default=None, ge=0, lt=2**63)
    max_new_tokens: int | None = Field(default=None, ge=1)


async def look(served: Served, asked: LookAt, settings: Settings) -> str:
    """The page. The model does it at its desk, between other people's answers."""
    if not settings.look:
        raise Refusal(403, "this server does not let clients look inside its models")
    predictor = served.predictor
    words = _words(predictor, asked, settings)
    try:
        (item,) = await asyncio.to_thread(as_inputs, served.task, [asked.input], settings)
    except ItemError as error:
        raise Refusal(400, error.reason, param="input") from None
    return await served.desk.call(lambda: _page(served, item, asked.language, words))


def _page(served: Served, item: Any, language: Language, words: dict[str, Any]) -> str:
    _check_tokens(served.predictor, item, words)
    document = look_at(served.predictor, item, name=served.name, language=language, **words)
    return render(document)


def _words(predictor: Any, asked: LookAt, settings: Settings) -> dict[str, Any]:
    """Of generation; the answer is then the one that was given before."""
    given = asked.model_dump(include={"beam", "temperature", "seed", "max_new_tokens"}, exclude_none=True)
    if not isinstance(predictor, TextGenerator):
        if given:
            raise Refusal(400, f"{min(given)} is for models that write, and this one does not", param=min(given))
        return {}
    if asked.max_new_tokens is not None and asked.max_new_tokens > settings.max_new_tokens:
        raise Refusal(400, f"max_new_tokens is at most {settings.max_new_tokens:,} here", param="max_new_tokens")
    if (temperature := given.pop("temperature", None)) is not None:
        given |= {"sample": True, "temperature": temperature} if temperature else {"sample": False}
    return {"precision": settings.precision, **given}


def _check_tokens(predictor: Any, item: Any, words: dict[str, Any]) -> None:
    """Of texts; images and series have as many patches as the model was made for."""
    if not isinstance(item, str | tuple):
        return
    texts = item if isinstance(item, tuple) else (item,)
    n_read = sum(len(encode(predictor.tokenizer, text)) for text in texts)
    if n_read > MOST_TOKENS:
        raise Refusal(400, f"a look shows at most {MOST_TOKENS} tokens, and this text has {n_read:,}; shorten it")
    if predictor.task == "language_model":
        wanted = words.get("max_new_tokens") or predictor.generation.max_new_tokens or 0
        if n_read + wanted > MOST_TOKENS:
            raise Refusal(
                400,
                f"a look shows at most {MOST_TOKENS} tokens, and this text has {n_read:,} and {wanted:,} more to come; "
                "ask for fewer",
            )
