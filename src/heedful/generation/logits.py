"""Changes to the logits before a token is chosen: biases, penalties, and suppressed or forced tokens.

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
    """All changes to the logits of a batch.

    Masking a token does not renormalize the others, so their log-probabilities stay those of the model. A logit bias
    and the repetition penalty change the scores that answers are ranked by.
    """

    config: GenerationConfig
    end: Sequence[int]
    suppress_tokens: Sequence[int] = ()
    logit_bias: Mapping[int, float] = field(default_factory=dict)

    def process(self, logits: Tensor, sequences: Sequence[SequenceState]) -> Tensor | None:
        """Apply biases and penalties to the logits (R, V). Return log-probabilities, or None if nothing changes."""
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
        """Set the log-probabilities (R, V) of tokens that may not be chosen to -inf, in place.

        These are suppressed tokens, the end while an answer is too short, repeated n-grams, and every token but the
        next one of a prefix.
        """
        of_row = [sequence for sequence in sequences for _ in sequence.open]
        forced = [
            (row, sequence.prefix[sequence.length])
            for row, sequence in enumerate(of_row)
            if sequence.length < len(sequence.prefix)
        ]
        masked = [
            (row, end)
            for row, sequence in enumerate(of_row)
            if sequence.length < sequence.min_new_tokens
            for end in self.end
        ]
        size = self.config.no_repeat_ngram_size
        if size is not None:
            for row, (sequence, tokens) in enumerate(_rows(sequences)):
                masked += [(row, token) for token in repeating_tokens((*sequence.prompt, *tokens), size)]
        if forced:  # read before anything is masked: a forced prefix takes precedence
            places = _places(forced, scores.device)
            forced_scores = scores[places]
        if self.suppress_tokens:
            scores.index_fill_(1, indices(self.suppress_tokens, scores.device), -torch.inf)
        if masked:
            scores[_places(masked, scores.device)] = -torch.inf
        if forced:
            scores[places[0]] = -torch.inf
            scores[places] = forced_scores


def repeating_tokens(tokens: Sequence[int], size: int) -> set[int]:
    """Return the next tokens that would complete an n-gram of this size that occurred before."""
    last = tuple(tokens[len(tokens) - size + 1 :])
    if len(last) < size - 1:
        return set()
    starts = range(len(tokens) - size + 1)
    return {tokens[start + size - 1] for start in starts if tuple(tokens[start : start + size - 1]) == last}


def _rows(sequences: Sequence[SequenceState]) -> Iterable[tuple[SequenceState, tuple[int, ...]]]:
    return ((sequence, tokens) for sequence in sequences for tokens in sequence.open_tokens())


def _places(pairs: Sequence[tuple[int, int]], device: torch.device) -> tuple[Tensor, Tensor]:
    """Convert (row, token) pairs into an index of a tensor (R, V)."""
    index = torch.tensor(pairs, dtype=torch.long).view(-1, 2).to(device, non_blocking=True)
    return index[:, 0], index[:, 1]
