"""From a request to what each completion needs; what cannot be done is refused by the name of its field."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...errors import DataError
from ...tasks.language_model import CausalLanguageModel
from ..errors import APIError
from ..settings import Settings
from .schemas import CompletionRequest

COLD = 1e-5  # below this temperature only the most likely token is left
PLAIN: dict[str, Any] = {  # nothing of a model's own taste: what a client does not ask for is off
    "beam": 1,
    "n_best": 1,
    "min_new_tokens": 0,
    "top_k": None,
    "min_p": None,
    "repetition_penalty": 1.0,
    "no_repeat_ngram_size": None,
}


@dataclass(frozen=True)
class Prompt:
    """A text, and the ids that the model reads of it."""

    text: str
    ids: list[int]


@dataclass(frozen=True)
class CompletionParameters:
    """What holds for every completion of a request, its nulls and defaults made plain.

    `by_tokens` are those whose tokens somebody looks at: a stream, a stop, logprobs.
    """

    prompts: list[Prompt]
    n: int
    best_of: int
    max_tokens: int
    stops: list[str]
    logprobs: int | None
    echo: bool
    seed: int
    by_tokens: bool
    _search: Mapping[str, Any]

    @classmethod
    async def of(
        cls, request: CompletionRequest, model: CausalLanguageModel, settings: Settings
    ) -> CompletionParameters:
        """Of a request that the model can answer within the limits."""
        _check_supported(request)
        n = request.n or 1
        best_of = n if request.best_of is None else request.best_of
        texts = listed("" if request.prompt is None else request.prompt, settings, "prompt")
        prompts = await asyncio.to_thread(lambda: [_prompt(text, index, model) for index, text in enumerate(texts)])
        max_tokens = 16 if request.max_tokens is None else request.max_tokens
        if best_of < n:
            raise APIError(400, f"best_of is {best_of}, which is less than n, {n}", param="best_of")
        if request.stream and best_of > n:
            raise APIError(400, "what is best is known only at the end: leave out best_of, or stream", param="best_of")
        for param, value, most in (
            ("n", n, settings.max_n),
            ("best_of", best_of, settings.max_n),
            ("max_tokens", max_tokens, settings.max_new_tokens),
        ):
            if value > most:
                raise APIError(400, f"{param} is {value}, but may be {most} at most", param=param)
        if (total := len(prompts) * best_of) > settings.max_items:
            many = f"{len(prompts)} prompts with {best_of} completions each are {total}"
            raise APIError(400, f"{many}; {settings.max_items} at most are written at once", param="n")
        return cls(
            prompts,
            n,
            best_of,
            max_tokens,
            [request.stop] if isinstance(request.stop, str) else request.stop or [],
            request.logprobs,
            bool(request.echo),
            secrets.randbits(48) if request.seed is None else request.seed,
            bool(request.stream or request.stop or request.logprobs is not None),
            _search(request),
        )

    def draws(self) -> list[tuple[Prompt, int]]:
        """Each prompt `best_of` times, with a seed for each. The same prompt twice is drawn twice."""
        seen = Counter[str]()
        drawn = []
        for prompt in self.prompts:
            for _ in range(self.best_of):
                drawn.append((prompt, self._seed(seen[prompt.text])))
                seen[prompt.text] += 1
        return drawn

    def generation_overrides(self, seed: int) -> dict[str, Any]:
        """Those of generation."""
        return {**PLAIN, **self._search, "max_new_tokens": self.max_tokens, "seed": seed}

    def _seed(self, nth: int) -> int:
        """Far from that of any other: neighbours of a seed are seeds that clients use."""
        digest = hashlib.sha256(f"{self.seed} {nth}".encode()).digest()
        return int.from_bytes(digest[:6]) if nth else self.seed


def _check_supported(request: CompletionRequest) -> None:
    for name in ("presence_penalty", "frequency_penalty"):
        if getattr(request, name):
            raise _unsupported(name, "leave it out, or give 0")
    if request.logit_bias:
        raise _unsupported("logit_bias", "leave it out")
    if request.suffix:
        raise _unsupported("suffix", "a model here reads from the left alone; leave it out")
    if request.stream_options is not None and not request.stream:
        raise APIError(400, "stream_options are for stream: true", param="stream_options")


def _unsupported(param: str, hint: str) -> APIError:
    return APIError(400, f"{param} is not supported; {hint}", param=param, code="unsupported_parameter")


def _search(request: CompletionRequest) -> dict[str, Any]:
    temperature = 1.0 if request.temperature is None else float(request.temperature)
    top_p = 1.0 if request.top_p is None else float(request.top_p)
    if temperature < COLD or top_p == 0:
        return {"sample": False, "temperature": 1.0, "top_p": None}
    return {"sample": True, "temperature": temperature, "top_p": None if top_p == 1 else top_p}


def _prompt(value: str | list[int], index: int, model: CausalLanguageModel) -> Prompt:
    try:
        text = value if isinstance(value, str) else model.tokenizer.decode(value)
        (ids,) = model.inputs(text)
    except DataError as error:
        raise APIError(400, f"prompt {index + 1}: {error}", param="prompt") from None
    if value not in (text, ids):
        why = "these token ids are not how this model writes their text; send the text itself"
        raise APIError(400, f"prompt {index + 1}: {why}", param="prompt")
    return Prompt(text, ids)


def listed(value: str | list[Any], settings: Settings, param: str) -> list[str | list[int]]:
    """One text or several, each in characters or in ids, within the limits."""
    texts = [value] if isinstance(value, str) or isinstance(value[0], int) else value
    if len(texts) > settings.max_items:
        raise APIError(400, f"{param} has {len(texts)} texts; {settings.max_items} at most are taken", param=param)
    longest = max(map(len, texts))
    if longest > settings.max_characters:
        much = f"a text of {longest:,} characters or tokens"
        raise APIError(400, f"{param} has {much}; {settings.max_characters:,} at most are read", param=param)
    return texts
