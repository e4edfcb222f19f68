"""Texts as vectors, the way OpenAI's clients ask for them."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import numpy as np

from ...errors import DataError
from ...tasks.embedding import Embedder
from ...tasks.predictor import ItemError
from ..house import House
from ..models import Served
from ..refusals import Refusal
from .asking import listed
from .replies import Embedding, EmbeddingList, EmbeddingUsage
from .requests import EmbeddingRequest


async def embedded(request: EmbeddingRequest, model: Served, house: House) -> EmbeddingList:
    """A vector for each input, in order."""
    given = listed(request.input, house.settings, "input")
    texts = await asyncio.to_thread(_texts, given, model.predictor)
    try:
        vectors = await model.desk.predict(texts)
    except ItemError as error:
        raise Refusal(400, f"input {error.index + 1}: {error.reason}", param="input") from None
    size = len(vectors[0])
    if request.dimensions not in (None, size):
        why = f"this model's vectors have {size} dimensions, and fewer would not mean the same; leave it out"
        raise Refusal(400, why, param="dimensions")
    house.metrics.answered(model.name, items=len(texts))
    tokens = await asyncio.to_thread(_count, texts, model.predictor)
    shape = _base64 if request.encoding_format == "base64" else list
    return EmbeddingList(
        data=[Embedding(index=index, embedding=shape(vector)) for index, vector in enumerate(vectors)],
        model=model.name,
        usage=EmbeddingUsage(prompt_tokens=tokens, total_tokens=tokens),
    )


def _base64(vector: Any) -> str:
    return base64.b64encode(np.asarray(vector, dtype="<f4").tobytes()).decode("ascii")


def _texts(given: list[str | list[int]], model: Embedder) -> list[str]:
    return [one if isinstance(one, str) else _text(one, index, model) for index, one in enumerate(given)]


def _text(ids: list[int], index: int, model: Embedder) -> str:
    """Of ids that are how the tokeniser writes a text, with or without what it puts around one."""
    try:
        text = model.tokenizer.decode(ids)
        whole, around = model.tokenizer.encode(text), model.tokenizer.encode("")
    except DataError as error:
        raise Refusal(400, f"input {index + 1}: {error}", param="input") from None
    bare = len(whole) - len(around)
    if ids != whole and (len(ids) != bare or ids not in [whole[at : at + bare] for at in range(len(around) + 1)]):
        why = "these token ids are not how this model writes their text; send the text itself"
        raise Refusal(400, f"input {index + 1}: {why}", param="input")
    return text


def _count(texts: list[str], model: Embedder) -> int:
    return sum(len(model.prepared(text).ids) for text in texts)
