"""What may not be written, and what is written more or less gladly. Shapes: R rows, V vocabulary."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ..backends.single_step import indices
from .config import GenerationConfig
from .sentence import Sentence


@dataclass(frozen=True)
class Rules:
    """Rules for all inputs, and those that follow from what each has written.

    What is hidden keeps its share of the probability, so the others' logprobs stay those of the model. Boosts
    and the repetition penalty change the scores that answers are ranked by.
    """

    config: GenerationConfig
    ends: Sequence[int]
    banned: Sequence[int] = ()
    boosted: Mapping[int, float] = field(default_factory=dict)

    def swayed(self, logits: Tensor, sentences: Sequence[Sentence]) -> Tensor | None:
        """Other logprobs to choose by than the model's own, from its logits (R, V); None where it is those."""
        if not self.boosted and self.config.repetition_penalty == 1:
            return None
        return self._swayed(logits, sentences).log_softmax(dim=-1)

    def hide(self, scores: Tensor, sentences: Sequence[Sentence]) -> None:
        """What may not be written, in the logprobs (R, V) that the strategy chooses by.

        It is hidden in place: nobody asks for the logprob of a token that cannot be chosen.
        """
        hidden = self._hidden(sentences, len(scores) // len(sentences))
        forced = self._forced(sentences, len(scores) // len(sentences))
        if forced:  # read before anything is hidden: a prefix that was asked for outranks the other rules
            asked = _places(forced, scores.device)
            kept = scores[asked]
        if self.banned:
            scores.index_fill_(1, indices(self.banned, scores.device), -torch.inf)
        if hidden:
            scores[_places(hidden, scores.device)] = -torch.inf
        if forced:
            scores[asked[0]] = -torch.inf
            scores[asked] = kept

    def _swayed(self, logits: Tensor, sentences: Sequence[Sentence]) -> Tensor:
        logits = logits.clone()
        if self.boosted:
            boosts = torch.tensor(list(self.boosted.values()), dtype=logits.dtype).to(logits.device, non_blocking=True)
            logits[:, indices(self.boosted, logits.device)] += boosts
        penalty = self.config.repetition_penalty
        seen = [
            (row, token)
            for row, (sentence, tokens) in enumerate(_rows(sentences))
            for token in {*sentence.request.past, *tokens}
            if penalty != 1
        ]
        if seen:
            places = _places(seen, logits.device)
            found = logits[places]
            logits[places] = torch.where(found > 0, found / penalty, found * penalty)
        return logits

    def _hidden(self, sentences: Sequence[Sentence], width: int) -> list[tuple[int, int]]:
        """(row, token) pairs."""
        hidden = [
            (row, end)
            for index, sentence in enumerate(sentences)
            if sentence.length < self.config.min_new_tokens
            for row in range(index * width, (index + 1) * width)
            for end in self.ends
        ]
        size = self.config.no_repeat_ngrams
        if size is not None:
            for row, (sentence, tokens) in enumerate(_rows(sentences)):
                hidden += [(row, token) for token in completing((*sentence.request.past, *tokens), size)]
        return hidden

    def _forced(self, sentences: Sequence[Sentence], width: int) -> list[tuple[int, int]]:
        return [
            (row, sentence.request.forced[sentence.length])
            for index, sentence in enumerate(sentences)
            if sentence.length < len(sentence.request.forced)
            for row in range(index * width, (index + 1) * width)
        ]


def completing(tokens: Sequence[int], size: int) -> set[int]:
    """The tokens that would make the last `size` tokens a run that was there before."""
    last = tuple(tokens[len(tokens) - size + 1 :])
    if len(last) < size - 1:
        return set()
    starts = range(len(tokens) - size + 1)
    return {tokens[start + size - 1] for start in starts if tuple(tokens[start : start + size - 1]) == last}


def _rows(sentences: Sequence[Sentence]) -> Iterable[tuple[Sentence, tuple[int, ...]]]:
    return ((sentence, tokens) for sentence in sentences for tokens in sentence.written())


def _places(pairs: Sequence[tuple[int, int]], device: torch.device) -> tuple[Tensor, Tensor]:
    """(row, token) pairs as an index."""
    both = torch.tensor(pairs, dtype=torch.long).view(-1, 2).to(device, non_blocking=True)
    return both[:, 0], both[:, 1]
