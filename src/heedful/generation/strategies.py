"""From logits to the next tokens: processors change the logits; greedy search, beam search or sampling chooses.

Shapes: B sequences, W open prefixes of each, R = B · W rows, V vocabulary, C candidates of each sequence.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn import functional as F

from ..backends.native.library import top
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


@dataclass(frozen=True, eq=False)
class StepCandidates:
    """The candidates of a step, best first; each tensor is (B, C)."""

    totals: Tensor  # the score of the prefix and the token together
    tokens: Tensor
    beams: Tensor  # the open prefix of the sequence that each one continues


class GreedySearch:
    """Chooses the most likely token of each row."""

    def choose(self, scores: Tensor, totals: Tensor, sequences: Sequence[SequenceState]) -> StepCandidates:
        """Choose from the log-probabilities of the next token (R, V) and those of the prefixes (B, W).

        Every sequence gets the same number of candidates.
        """
        if scores.device.type == "cpu":  # numpy takes a tenth of torch's time
            tokens = torch.from_numpy(scores.numpy().argmax(axis=-1))[:, None]  # (R, 1)
        else:
            tokens = scores.argmax(dim=-1, keepdim=True)
        return StepCandidates(totals + scores.gather(1, tokens), tokens, tokens.new_zeros(1, 1).expand_as(tokens))


class BeamSearch:
    """Chooses the `width` best continuations, and `width` more for each token that ends an answer."""

    def __init__(self, width: int, n_ends: int = 1) -> None:
        self.width = width
        self.n_ends = n_ends

    def choose(self, scores: Tensor, totals: Tensor, sequences: Sequence[SequenceState]) -> StepCandidates:
        # At most `n_ends` candidates of one row are ends, so a row contributes at most width + n_ends candidates.
        best, tokens = top(scores, min(self.width + self.n_ends, scores.shape[-1]))  # (R, k)
        n_sequences, each, wanted = totals.shape[0], tokens.shape[-1], self.width * (1 + self.n_ends)
        combined = (totals.view(-1, 1) + best).view(n_sequences, -1)  # (B, W · k)
        totals, places = combined.topk(min(wanted, combined.shape[-1]))
        tokens, beams = tokens.view(n_sequences, -1).gather(1, places), places // each
        # A small vocabulary cannot fill the beam at first: the missing candidates are added as impossible.
        missing = wanted - totals.shape[1]
        if missing:
            totals = F.pad(totals, (0, missing), value=-torch.inf)
            tokens, beams = F.pad(tokens, (0, missing)), F.pad(beams, (0, missing))
        return StepCandidates(totals, tokens, beams)


class MultinomialSampling:
    """Draws a token for each answer, after temperature, top-k, top-p and min-p."""

    def __init__(self, config: GenerationConfig) -> None:
        self._config = config

    def choose(self, scores: Tensor, totals: Tensor, sequences: Sequence[SequenceState]) -> StepCandidates:
        n_sequences, width = totals.shape
        uniform = torch.tensor([sequence.random_numbers() for sequence in sequences], dtype=torch.float64)
        n_answers = uniform.shape[1]
        uniform = uniform.to(scores.device, non_blocking=True).view(scores.shape[0], -1)
        probabilities, order = truncated_probabilities(scores, self._config)
        tokens = order.gather(1, draw(probabilities, uniform))  # (R, n) where n = 1 after the first step
        totals = totals.view(-1, 1) + scores.gather(1, tokens)
        beams = torch.arange(n_answers, device=tokens.device) if width > 1 else tokens.new_zeros(n_answers)
        shape = n_sequences, n_answers
        return StepCandidates(totals.view(shape), tokens.view(shape), beams.expand(shape))


Strategy = GreedySearch | BeamSearch | MultinomialSampling


def strategy_of(config: GenerationConfig, n_ends: int = 1) -> Strategy:
    """Return the strategy for a config. `n_ends` is the number of tokens that end an answer."""
    if config.sample:
        return MultinomialSampling(config)
    return GreedySearch() if config.beam == 1 else BeamSearch(config.beam, n_ends)


def truncated_probabilities(logprobs: Tensor, config: GenerationConfig) -> tuple[Tensor, Tensor]:
    """Return the probabilities that sampling may choose from, most likely first, and their tokens.

    The temperature is applied first; then top-k, top-p and min-p, each to what the one before has left.
    `logprobs` is (…, V).
    """
    scaled, top_p, min_p = logprobs / config.temperature, config.top_p, config.min_p
    if config.top_k is not None and config.top_k < logprobs.shape[-1]:
        best, tokens = scaled.topk(config.top_k)
    else:
        best, tokens = scaled.sort(dim=-1, descending=True, stable=True)
    probabilities = best.softmax(dim=-1)
    if top_p is not None:  # the token that reaches top_p is included
        probabilities = _renormalized(probabilities, probabilities.cumsum(dim=-1) - probabilities >= top_p)
    if min_p is not None:
        probabilities = _renormalized(probabilities, probabilities < min_p * probabilities[..., :1])
    return probabilities, tokens


def draw(probabilities: Tensor, uniform: Tensor) -> Tensor:
    """Return the index into probabilities (…, V) that each uniform number (…, n) selects."""
    cumulative = probabilities.double().cumsum(dim=-1)
    places = torch.searchsorted(cumulative, uniform.double() * cumulative[..., -1:], right=True)
    last = (probabilities > 0).sum(dim=-1, keepdim=True) - 1  # rounding must not select an impossible token
    return torch.minimum(places, last.clamp(min=0))  # if all are impossible, the first


def _renormalized(probabilities: Tensor, removed: Tensor) -> Tensor:
    removed[..., 0] = False  # the most likely token always stays
    remaining = probabilities.masked_fill(removed, 0.0)
    return remaining / remaining.sum(dim=-1, keepdim=True)
