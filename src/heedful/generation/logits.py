"""What changes the logits before a token is chosen: biases, penalties, and tokens that may not come.

Shapes: R rows, V vocabulary.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ..backends.single_step import indices
from .config import GenerationConfig
from .sequence import SequenceState


@dataclass(frozen=True)
class LogitsProcessors:
    """Those that are the same for a whole batch, and those that depend on what each sequence has written.

    A masked token keeps its share of the probability, so the others' logprobs stay those of the model. A logit bias
    and the repetition penalty change the scores that answers are ranked by.
    """

    config: GenerationConfig
    end: Sequence[int]
    suppress_tokens: Sequence[int] = ()
    logit_bias: Mapping[int, float] = field(default_factory=dict)

    def process(self, logits: Tensor, sequences: Sequence[SequenceState]) -> Tensor | None:
        """The logprobs to choose by, where biases or penalties change the model's logits (R, V); else None."""
        penalty = self.config.repetition_penalty
        if not self.logit_bias and penalty == 1:
            return None
        logits = logits.clone()
        if self.logit_bias:
            bias = torch.tensor(list(self.logit_bias.values()), dtype=logits.dtype).to(logits.device, non_blocking=True)
            logits[:, indices(self.logit_bias, logits.device)] += bias
        seen = [
            (row, token)
            for row, (sequence, tokens) in enumerate(_rows(sequences))
            for token in {*sequence.prompt, *tokens}
            if penalty != 1
        ]
        if seen:
            places = _places(seen, logits.device)
            seen_logits = logits[places]
            logits[places] = torch.where(seen_logits > 0, seen_logits / penalty, seen_logits * penalty)
        return logits.log_softmax(dim=-1)

    def mask(self, scores: Tensor, sequences: Sequence[SequenceState]) -> None:
        """Make impossible what may not be written, in the logprobs (R, V) that the strategy chooses by.

        It is done in place: nobody needs the logprob of a token that cannot be chosen.
        """
        width = len(scores) // len(sequences)
        masked = self._masked(sequences, width)
        forced = [  # the next token of each prefix
            (row, sequence.prefix[sequence.length])
            for index, sequence in enumerate(sequences)
            if sequence.length < len(sequence.prefix)
            for row in range(index * width, (index + 1) * width)
        ]
        if forced:  # read before anything is masked: a forced prefix outranks the other rules
            places = _places(forced, scores.device)
            forced_scores = scores[places]
        if self.suppress_tokens:
            scores.index_fill_(1, indices(self.suppress_tokens, scores.device), -torch.inf)
        if masked:
            scores[_places(masked, scores.device)] = -torch.inf
        if forced:
            scores[places[0]] = -torch.inf
            scores[places] = forced_scores

    def _masked(self, sequences: Sequence[SequenceState], width: int) -> list[tuple[int, int]]:
        """(row, token) pairs: the end while an answer is too short, and what would repeat an n-gram."""
        masked = [
            (row, end)
            for index, sequence in enumerate(sequences)
            if sequence.length < sequence.min_new_tokens
            for row in range(index * width, (index + 1) * width)
            for end in self.end
        ]
        size = self.config.no_repeat_ngram_size
        if size is not None:
            for row, (sequence, tokens) in enumerate(_rows(sequences)):
                masked += [(row, token) for token in repeating_tokens((*sequence.prompt, *tokens), size)]
        return masked


def repeating_tokens(tokens: Sequence[int], size: int) -> set[int]:
    """The next tokens that would complete an n-gram of this size which was there before."""
    last = tuple(tokens[len(tokens) - size + 1 :])
    if len(last) < size - 1:
        return set()
    starts = range(len(tokens) - size + 1)
    return {tokens[start + size - 1] for start in starts if tuple(tokens[start : start + size - 1]) == last}


def _rows(sequences: Sequence[SequenceState]) -> Iterable[tuple[SequenceState, tuple[int, ...]]]:
    return ((sequence, tokens) for sequence in sequences for tokens in sequence.written())


def _places(pairs: Sequence[tuple[int, int]], device: torch.device) -> tuple[Tensor, Tensor]:
    """(row, token) pairs as an index."""
    both = torch.tensor(pairs, dtype=torch.long).view(-1, 2).to(device, non_blocking=True)
    return both[:, 0], both[:, 1]
