"""The log-probabilities of a completion's tokens, and of the most likely other tokens in their places.

For the other tokens and for an echoed prompt, the model runs over the text once more.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from ...tasks.language_model import CausalLanguageModel
from ..models import Served
from ..threads import run_in_thread
from ..worker import ModelWorker, StreamedToken
from .parameters import CompletionParameters, Prompt

CHUNK = 128  # tokens in one forward pass, each with logits over the whole vocabulary
IMPOSSIBLE = -9999.0  # OpenAI's value for -inf, which JSON does not have


@dataclass(frozen=True)
class TokenLogprob:
    """A token's text and its offset in the choice's text. The first token of an echoed prompt has no logprob."""

    token: str
    logprob: float | None
    top: dict[str, float] | None = None
    offset: int = 0


class TokenScores(NamedTuple):
    """The logprob of a token, and the most likely tokens in its place with theirs."""

    logprob: float
    top: list[tuple[int, float]]


class Replay:
    """Scores given tokens, some at a time. Past the context it continues from the second half, as generation does."""

    def __init__(self, model: CausalLanguageModel, first: int, top: int) -> None:
        self._module, self._limit = model.module, model.settings.context
        self._device = next(self._module.parameters()).device
        self._top = top
        self._processed: list[int] = []
        self._next = first  # processed with the token after it: behind the last token the context may be full
        self._cache = self._module.new_cache()

    @torch.inference_mode()
    def score(self, tokens: Sequence[int]) -> list[TokenScores]:
        """Return the scores of the tokens that come next."""
        if not tokens:
            return []
        inputs, self._next = [self._next, *tokens[:-1]], tokens[-1]
        scores: list[TokenScores] = []
        while inputs:
            size = self._chunk_size()
            logprobs = self._forward(inputs[:size]).log_softmax(dim=-1).clamp(min=IMPOSSIBLE)
            targets = tokens[len(scores) : len(scores) + len(logprobs)]
            token_logprobs = logprobs.gather(1, torch.tensor(targets, device=self._device)[:, None])[:, 0].tolist()
            best = logprobs.topk(min(self._top, logprobs.shape[-1]))
            for logprob, ids, values in zip(token_logprobs, best.indices.tolist(), best.values.tolist(), strict=True):
                scores.append(TokenScores(logprob, list(zip(ids, values, strict=True))))
            del inputs[:size]
        return scores

    def _chunk_size(self) -> int:
        """Return how many tokens fit into the next forward pass, after starting over if the context is full."""
        if self._limit is None:
            return CHUNK
        if self._cache.length == self._limit:
            self._cache = self._module.new_cache()
            n_kept = max(1, self._limit // 2) - 1  # the next token is the last of the half
            if n_kept:
                past, self._processed = self._processed[-n_kept:], self._processed[:-n_kept]
                self._forward(past)
        return min(CHUNK, self._limit - self._cache.length)

    def _forward(self, tokens: Sequence[int]) -> Tensor:
        self._processed += tokens
        logits: Tensor = self._module(torch.tensor([tokens], device=self._device), cache=self._cache)
        return logits[0].float()


REPLACEMENT = "\ufffd"  # the text of a part of a character
MAX_REPLAYS = 8  # of one model at once: each holds a key-value cache

_replays: WeakKeyDictionary[ModelWorker, asyncio.Semaphore] = WeakKeyDictionary()


class LogprobTracker:
    """Finds the logprobs of one completion and its prompt, if the request asks for them.

    The model runs again only where that is needed.
    """

    def __init__(self, model: Served, prompt: Prompt, parameters: CompletionParameters) -> None:
        self._model, self._prompt, self._parameters = model, prompt, parameters
        self._tokenizer = model.predictor.tokenizer
        self._needs_replay = parameters.logprobs is not None and (parameters.echo or parameters.logprobs > 0)
        self._last = prompt.ids[-1]

    def slot(self) -> AbstractAsyncContextManager[None]:
        """Return a context for the whole completion. Entering it waits while too many replays run."""
        if not self._needs_replay:
            return nullcontext()
        return _replays.setdefault(self._model.worker, asyncio.Semaphore(MAX_REPLAYS))

    async def of_prompt(self) -> list[TokenLogprob]:
        """Run the model over the prompt, if needed, in chunks between other requests; return the echoed tokens."""
        ids = self._prompt.ids
        if not self._needs_replay:
            return []
        self._replay = Replay(self._model.predictor, ids[0], self._parameters.logprobs or 0)
        scores: list[TokenScores] = []
        for begin in range(1, len(ids), CHUNK):
            chunk = ids[begin : begin + CHUNK]
            scores += await self._model.worker.call(partial(self._replay.score, chunk))
        return await run_in_thread(None, self._prompt_logprobs, scores) if self._parameters.echo else []

    async def of(self, tokens: Sequence[StreamedToken]) -> Sequence[TokenLogprob | None]:
        """Return the logprobs of the tokens generated last, without offsets; None for a text that is no token's."""
        if self._parameters.logprobs is None:
            return [None] * len(tokens)
        generated = [token for token in tokens if token.id >= 0]
        *previous, self._last = self._last, *(token.id for token in generated)
        score = partial(self._of_generated, previous, generated)
        logprobs = await self._model.worker.call(score) if self._parameters.logprobs else score()
        return [*logprobs, *[None] * (len(tokens) - len(generated))]  # only the last text may be no token's

    def _of_generated(self, previous: Sequence[int], tokens: Sequence[StreamedToken]) -> list[TokenLogprob]:
        tops: list[list[tuple[int, float]]] = [[]] * len(tokens)
        if self._parameters.logprobs:
            tops = [score.top for score in self._replay.score([token.id for token in tokens])]
        return [
            self._token_logprob(last, token.id, TokenScores(token.logprob, top))
            for last, token, top in zip(previous, tokens, tops, strict=True)
        ]

    def _prompt_logprobs(self, scores: Sequence[TokenScores]) -> list[TokenLogprob]:
        """Return the prompt's tokens. If the tokenizer normalizes the text, offsets refer to the normalized text."""
        ids, offsets = self._prompt.ids, self._offsets()
        first = TokenLogprob(self._text(None, ids[0]), None, offset=next(offsets))
        rest = zip(pairwise(ids), scores, offsets, strict=True)
        return [first, *(self._token_logprob(last, token, score, offset) for (last, token), score, offset in rest)]

    def _offsets(self) -> Iterator[int]:
        """Yield where each token of the prompt begins; for a token inside a character, where the character does."""
        detokenizer, offset = self._model.predictor.detokenizer([]), 0
        for token in self._prompt.ids:
            yield min(offset, len(self._prompt.text))
            offset += len(detokenizer.add(token))

    def _token_logprob(self, previous: int, token: int, score: TokenScores, offset: int = 0) -> TokenLogprob:
        """Return a token with its logprob, and the most likely tokens and itself as `top` if these were asked for."""
        text = self._text(previous, token)
        if not self._parameters.logprobs:
            return TokenLogprob(text, score.logprob, None, offset)
        top: dict[str, float] = {}
        for other, logprob in score.top:
            top.setdefault(self._text(previous, other), logprob)  # the likelier of two with the same text
        return TokenLogprob(text, score.logprob, {**top, text: score.logprob}, offset)

    def _text(self, previous: int | None, token: int) -> str:
        """Return a token's text after another token; for a part of a character, the tokenizer's name of it."""
        text: str = self._tokenizer.piece([] if previous is None else [previous], token)
        return self._tokenizer.token_of(token) if REPLACEMENT in text else text
