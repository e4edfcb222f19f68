"""Checks a completion request and turns it into generation parameters. An error names the field."""

from __future__ import annotations

import hashlib
import secrets
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

from ...errors import DataError
from ...tasks.language_model import CausalLanguageModel
from ..errors import APIError
from ..settings import Settings
from ..threads import run_in_thread
from .schemas import CompletionRequest

DIFFERENT_IDS = "this model's tokenizer splits the text of these token ids in another way; send the text itself"
UNSUPPORTED = {  # with what to do instead
    "presence_penalty": "leave it out, or give 0",
    "frequency_penalty": "leave it out, or give 0",
    "logit_bias": "leave it out",
    "suffix": "these models only continue text; leave it out",
}
GREEDY_TEMPERATURE = 1e-5  # below this temperature the most likely token is always chosen
NEUTRAL: dict[str, Any] = {  # instead of the model's own settings: what a client does not ask for is off
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
    """A text and its token ids."""

    text: str
    ids: list[int]


@dataclass(frozen=True)
class CompletionParameters:
    """The parameters of all completions of a request, with defaults filled in.

    `needs_tokens` says that the answer must come token by token: for a stream, stop sequences or logprobs. `overrides`
    are the settings of the generation but for the seed.
    """

    prompts: list[Prompt]
    n: int
    best_of: int
    max_tokens: int
    stops: list[str]
    logprobs: int | None
    echo: bool
    seed: int
    needs_tokens: bool
    overrides: Mapping[str, Any]

    @classmethod
    async def of(
        cls, request: CompletionRequest, model: CausalLanguageModel, settings: Settings
    ) -> CompletionParameters:
        """Check a request against the model and the server's limits; raise APIError if it cannot be answered."""
        _check_supported(request)
        n = request.n or 1
        best_of = n if request.best_of is None else request.best_of
        texts = as_texts("" if request.prompt is None else request.prompt, settings, "prompt")
        prompts = await run_in_thread(None, lambda: [_prompt(text, index, model) for index, text in enumerate(texts)])
        max_tokens = 16 if request.max_tokens is None else request.max_tokens
        if best_of < n:
            raise APIError(400, f"best_of is {best_of}, which is less than n, {n}", param="best_of")
        if request.stream and best_of > n:
            raise APIError(400, "a stream cannot choose the best of several: leave out best_of", param="best_of")
        for param, value, most in (
            ("n", n, settings.max_n),
            ("best_of", best_of, settings.max_n),
            ("max_tokens", max_tokens, settings.max_new_tokens),
        ):
            if value > most:
                raise APIError(400, f"{param} is {value}, but must be at most {most}", param=param)
        if (total := len(prompts) * best_of) > settings.max_items:
            reason = f"{len(prompts)} prompts with {best_of} completions each are {total} completions"
            raise APIError(400, f"{reason}; at most {settings.max_items} are allowed", param="n")
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
            {**NEUTRAL, **_sampling(request), "max_new_tokens": max_tokens},
        )

    def draws(self) -> list[tuple[Prompt, int]]:
        """Return each prompt `best_of` times, each time with another seed, also if the same prompt is given twice."""
        n_before: defaultdict[str, Iterator[int]] = defaultdict(count)
        return [
            (prompt, self._seed(next(n_before[prompt.text]))) for prompt in self.prompts for _ in range(self.best_of)
        ]

    def _seed(self, nth: int) -> int:
        """Return the seed of the nth completion of a prompt: hashed, since clients use neighboring seeds themselves."""
        digest = hashlib.sha256(f"{self.seed} {nth}".encode()).digest()
        return int.from_bytes(digest[:6]) if nth else self.seed


def _check_supported(request: CompletionRequest) -> None:
    for param, hint in UNSUPPORTED.items():
        if getattr(request, param):
            raise APIError(400, f"{param} is not supported; {hint}", param=param, code="unsupported_parameter")
    if request.stream_options is not None and not request.stream:
        raise APIError(400, "stream_options need stream: true", param="stream_options")


def _sampling(request: CompletionRequest) -> dict[str, Any]:
    temperature = 1.0 if request.temperature is None else float(request.temperature)
    top_p = 1.0 if request.top_p is None else float(request.top_p)
    if temperature < GREEDY_TEMPERATURE or top_p == 0:
        return {"sample": False, "temperature": 1.0, "top_p": None}
    return {"sample": True, "temperature": temperature, "top_p": None if top_p == 1 else top_p}


def _prompt(value: str | list[int], index: int, model: CausalLanguageModel) -> Prompt:
    with error_at("prompt", index):
        text = value if isinstance(value, str) else model.tokenizer.decode(value)
        (ids,) = model.inputs(text)
        if value not in (text, ids):
            raise DataError(DIFFERENT_IDS)
    return Prompt(text, ids)


@contextmanager
def error_at(param: str, index: int) -> Iterator[None]:
    """Raise a DataError inside as an APIError that names the text."""
    try:
        yield
    except DataError as error:
        raise APIError(400, f"{param} {index + 1}: {error}", param=param) from None


def as_texts(value: str | list[Any], settings: Settings, param: str) -> list[str | list[int]]:
    """Return one or several texts, each a string or token ids, as a list; raise APIError beyond the limits."""
    texts = [value] if isinstance(value, str) or isinstance(value[0], int) else value
    if len(texts) > settings.max_items:
        raise APIError(400, f"{param} has {len(texts)} texts; at most {settings.max_items} are allowed", param=param)
    longest = max(map(len, texts))
    if longest > settings.max_characters:
        size = f"a text of {longest:,} characters or tokens"
        raise APIError(400, f"{param} has {size}; at most {settings.max_characters:,} are allowed", param=param)
    return texts
