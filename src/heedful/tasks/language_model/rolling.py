"""Answers longer than a model's context: where its room ends, it goes on from the last half of what it sees.

Beyond that place each answer goes on by itself: of several beams, each of the best begins a search of its own.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from ...generation import GenerationConfig, Hypothesis, Stream, stream
from ...generation.hypothesis import PENALTIES
from ..rounds import Call, Done, Found, Rounds, after


@dataclass(frozen=True)
class _Draft:
    """An answer on its way: all that stands there, its prompt included, and what of it was written."""

    ids: tuple[int, ...]
    written: Hypothesis = field(default_factory=lambda: Hypothesis((), 0.0, 0.0, finished=False))
    ended: bool = False

    def seen(self, limit: int) -> tuple[int, ...]:
        """What the model goes on from: everything, or where that is more than it sees, half of it."""
        return self.ids if len(self.ids) <= limit else self.ids[-max(1, limit // 2) :]

    def words(self, words: GenerationConfig, limit: int) -> GenerationConfig:
        """Those for the next round: as many tokens as may still come and have room, as few as still must."""
        n = len(self.written.tokens)
        left = words.limit(len(self.ids) - n, None) - n
        room = min(left, limit - len(self.seen(limit)) + 1)  # the last one need not be seen itself
        least = min(max(0, words.min_new_tokens - n), room)
        return words.changed(max_new_tokens=max(room, least + 1), min_new_tokens=least)

    def followed(self, more: Hypothesis, words: GenerationConfig) -> _Draft:
        """With what a round has written. One that was stopped by its room goes on, if more was asked for."""
        tokens = (*self.written.tokens, *more.tokens)
        logprobs = (*self.written.token_logprobs, *more.token_logprobs)
        logprob = self.written.logprob + more.logprob
        penalty = PENALTIES[words.penalty](max(1, len(logprobs)), words.length_penalty)
        score = logprob / penalty if self.written.tokens else more.score
        asked = words.limit(len(self.ids) - len(self.written.tokens), None)
        ended = more.finished or not more.tokens or len(tokens) >= asked
        return _Draft((*self.ids, *more.tokens), Hypothesis(tokens, logprob, score, more.finished, logprobs), ended)


def rounds(prompts: Sequence[Sequence[int]], words: GenerationConfig, limit: int | None) -> Rounds[Found]:
    """What to ask for, however many tokens are wanted; no prompt may be longer than the limit."""
    if limit is None:
        (answers,) = yield [Call(prompts, words)]
        return answers
    found = yield from _round([_Draft(tuple(ids)) for ids in prompts], words, limit)
    alone = words.changed(n_best=1)
    while going := [(row, place) for row, drafts in enumerate(found) for place, d in enumerate(drafts) if not d.ended]:
        further = yield from _round([found[row][place] for row, place in going], alone, limit)
        for (row, place), (draft,) in zip(going, further, strict=True):
            found[row][place] = draft
    return [sorted((draft.written for draft in drafts), key=lambda answer: -answer.score) for drafts in found]


def stream_on(
    module: nn.Module, ids: Sequence[int], words: GenerationConfig, limit: int | None, **tokens: Any
) -> Stream[int, Hypothesis]:
    """As `stream`, however many tokens are asked for."""
    return Stream(_streamed(module, rounds([ids], words, limit), tokens))


def _streamed(module: nn.Module, asking: Rounds[Found], tokens: dict[str, Any]) -> Generator[int, None, Hypothesis]:
    calls = after(asking, None)
    while not isinstance(calls, Done):
        (((ids,), words),) = calls
        bits = stream(module, ids, words, **tokens)
        yield from bits
        assert bits.answer is not None  # it has come to its end
        calls = after(asking, [[[bits.answer]]])
    ((answer,),) = calls.result
    return answer


def _round(drafts: Sequence[_Draft], words: GenerationConfig, limit: int) -> Rounds[list[list[_Draft]]]:
    """Each draft as far as its room goes; those with the same room in one call."""
    groups: dict[GenerationConfig, list[int]] = {}
    for place, draft in enumerate(drafts):
        groups.setdefault(draft.words(words, limit), []).append(place)
    found = yield [Call([drafts[place].seen(limit) for place in places], asked) for asked, places in groups.items()]
    further: list[list[_Draft]] = [[] for _ in drafts]
    for places, answers in zip(groups.values(), found, strict=True):
        for place, own in zip(places, answers, strict=True):
            further[place] = [drafts[place].followed(answer, words) for answer in own]
    return further
