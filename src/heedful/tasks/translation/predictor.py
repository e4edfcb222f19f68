"""A trained translator: raw text in, raw text out, and the probability that a translation is right.

A model's own probability is too small: label smoothing takes a little from every token. Logistic regression on the
log-probability and the number of tokens corrects that. A good model is rarely wrong, so its weights are learned from
several candidates for each sentence, which are mostly wrong; the base, which is how often the model is right, is
learned from its best answers alone.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from ...config import Config
from ...data.languages import Languages
from ...data.pairs import tidy
from ...data.tokenizer import Tokenizer
from ...errors import DataError
from ...families import GenerationDefaults
from ...generation import GenerationConfig, Hypothesis
from ..predictor import OutputKind
from ..text_generator import TextGenerator, TextParts
from .data import LongTextWarning, parts_within, sentences, text_lines

MIN_CANDIDATES = 20  # right ones, and wrong ones: fewer say more about chance than about the model
PRIOR = 1.0  # precision of the prior on the weights: without one, perfectly separated answers make them infinite


class ScoredAnswer(NamedTuple):
    """An answer of which it is known whether it is right. Its tokens include the end."""

    logprob: float
    n_tokens: int
    right: bool


@dataclass(frozen=True, kw_only=True)
class Confidence(Config):
    """P(right) = σ(base + by_logprob · logprob + by_token · tokens), the end counted as a token."""

    title: ClassVar[str] = "confidence"

    base: float
    by_logprob: float
    by_token: float

    @classmethod
    def fit(cls, candidates: Sequence[ScoredAnswer], answers: Sequence[ScoredAnswer]) -> Self:
        """Learn the weights from all candidates, and the base from the best answers alone.

        Raises:
            DataError: There are too few right or too few wrong candidates to learn from.
        """
        n_right = sum(candidate.right for candidate in candidates)
        n_wrong = len(candidates) - n_right
        if min(n_right, n_wrong) < MIN_CANDIDATES:
            raise DataError(
                f"of {len(candidates):,} candidates for the validation sentences {n_right:,} are right and "
                f"{n_wrong:,} wrong; at least {MIN_CANDIDATES} of each are needed"
            )
        features = torch.tensor(
            [[candidate.logprob, candidate.n_tokens] for candidate in candidates], dtype=torch.float64
        )
        deviation = features.std(dim=0, correction=0)
        deviation[deviation == 0] = 1.0
        inputs = torch.column_stack([torch.ones(len(features)), (features - features.mean(dim=0)) / deviation])
        weights = logistic_regression(inputs, [candidate.right for candidate in candidates], torch.zeros(len(inputs)))
        by_logprob, by_token = (weights[1:] / deviation).tolist()
        logits = torch.tensor([by_logprob * answer.logprob + by_token * answer.n_tokens for answer in answers])
        mean = logits.mean()
        # One more answer that is right and one that is wrong keep the base finite.
        offset = torch.cat([logits - mean, torch.zeros(2)])
        labels = [*(answer.right for answer in answers), True, False]
        (base,) = logistic_regression(torch.ones(len(offset), 1), labels, offset) - mean
        return cls(base=float(base), by_logprob=by_logprob, by_token=by_token)

    def of(self, logprob: float, n_tokens: int) -> float:
        """Return the probability that an answer is right."""
        logit = self.base + self.by_logprob * logprob + self.by_token * n_tokens
        return 0.5 * (1 + math.tanh(logit / 2))  # a sigmoid that does not overflow


def logistic_regression(inputs: Tensor, labels: Sequence[bool], offset: Tensor) -> Tensor:
    """Return the most probable weights for logits of inputs @ weights + offset; the first weight has no prior."""
    inputs, targets = inputs.double(), torch.tensor(labels, dtype=torch.float64)
    weights = torch.zeros(inputs.shape[1], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS(
        [weights], max_iter=200, tolerance_grad=1e-9, tolerance_change=1e-14, line_search_fn="strong_wolfe"
    )

    def loss() -> Tensor:
        optimizer.zero_grad()
        likelihood = binary_cross_entropy_with_logits(inputs @ weights + offset, targets, reduction="sum")
        total = likelihood + 0.5 * PRIOR * weights[1:].square().sum()
        total.backward()
        return total

    optimizer.step(loss)
    return weights.detach()


@dataclass(frozen=True, kw_only=True)
class TranslatorSettings(Config):
    """The settings of a translator's bundle.

    `max_tokens` are those of the longest source in training, with a margin. Longer ones are cut at sentence ends, and
    so is every source of a model that learned from single sentences (`one_sentence`). `confidence` is None where the
    validation set could not teach it. `lexicon` names the level of the built-in grammar whose words the model knows;
    "" for a model that learned from files.
    """

    title: ClassVar[str] = "translator"

    source: str
    target: str
    joint: bool = True
    max_tokens: int = 256
    one_sentence: bool = False
    generation: GenerationConfig = field(default_factory=GenerationConfig)
    confidence: Confidence | None = None
    lexicon: str = ""


class Translator(TextGenerator):
    """Translates texts: what `heedful.load` returns for a translation model."""

    task: ClassVar[str] = "translation"
    settings_class: ClassVar[type[Config]] = TranslatorSettings
    output_kind: ClassVar[OutputKind] = "translation"
    tokenizer_class: ClassVar[type[Any]] = Tokenizer

    @property
    def tokens(self) -> GenerationDefaults:
        tokenizer = self.target_tokenizer
        suppressed = (tokenizer.pad, tokenizer.start)
        return GenerationDefaults(
            start=tokenizer.start, end=(tokenizer.end,), pad=tokenizer.pad, suppress_tokens=suppressed
        )

    @property
    def column_names(self) -> Sequence[tuple[str, ...]]:
        return [(self.settings.source.lower(),), ("source",), ("src",), ("text",)]

    def text_columns(self, header: Sequence[str]) -> tuple[int, ...] | None:
        both = Languages(self.settings.source, self.settings.target).keys(header)
        return super().text_columns(header) if both is None else both[:1]

    def inputs(self, text: str) -> list[list[int]]:
        return self.parts(text).ids

    def parts(self, text: str) -> TextParts:
        """Return the ids of each line's sentences, or of each line; `parts_within` cuts what is too long.

        The line breaks of a text, and with them the white space around its lines, stand between the answers.
        """
        if "".join(text.splitlines()) == text:
            return TextParts.spaced(self._line_ids(text))
        ids, gaps = list[list[int]](), [""]
        for before, line, after in text_lines(text):
            parts = TextParts.spaced(self._line_ids(line))
            ids += parts.ids
            gaps[-1] += before
            gaps += parts.gaps[1:]
            gaps[-1] += after
        return TextParts(ids, gaps)

    def warn_about(self, inputs: Sequence[Sequence[int]]) -> None:
        """Warn about sentences that are read whole, though none in training was so long."""
        longer = [len(ids) for ids in inputs if len(ids) > self.settings.max_tokens]
        if longer:
            warnings.warn(LongTextWarning(len(longer), max(longer), self.settings.max_tokens), stacklevel=3)

    def _line_ids(self, text: str) -> list[list[int]]:
        if not (text := tidy(text)):
            return []
        positions = getattr(self.module.encoder, "positions", None)  # recurrent ones have none
        room = None if positions is None else positions.limit
        return [
            self._ids(part)
            for piece in (sentences(text) if self.settings.one_sentence else [text])
            for part in parts_within(piece, self.settings.max_tokens, room, lambda part: len(self._ids(part)))
        ]

    def confidence(self, hypothesis: Hypothesis) -> float | None:
        """Return the learned probability that an answer is right; an unfinished answer is not right."""
        confidence: Confidence | None = self.settings.confidence
        if confidence is None:
            return None
        return confidence.of(hypothesis.logprob, len(hypothesis.tokens) + 1) if hypothesis.finished else 0.0

    def _ids(self, part: str) -> list[int]:
        return [*self.tokenizer.encode(part), self.tokenizer.end]

    def seen(self, source: str, target: str) -> tuple[Tensor, Tensor]:
        """Return the inputs of encoder and decoder for a pair, (1, S) and (1, T)."""
        device = next(self.module.parameters()).device
        target_ids = [self.target_tokenizer.start, *self.target_tokenizer.encode(target)]
        return torch.tensor([self._ids(source)], device=device), torch.tensor([target_ids], device=device)
