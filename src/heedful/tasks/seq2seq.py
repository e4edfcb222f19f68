"""What tasks share that write one text for another: teacher forcing, and drafts of the validation texts on the way.

Shapes: B rows, T target places, V vocabulary.
"""

import math
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from ..core import padding
from ..data.batch import Batch, SpecialTokens
from ..data.loader import Loader, LoaderConfig
from ..training.loss import Loss, cross_entropy, loss_of
from .run import RunConfig, Task, TrainingData

FINAL_TEXTS = 2000  # of the validation data, answered with the full search when training is over
VALIDATION_TEXTS = 500  # answered greedily at each validation; the loss is over all
MAX_LOSS = 50.0  # whose perplexity is written out

C = TypeVar("C", bound=RunConfig)
D = TypeVar("D", bound=TrainingData[Any, Any, Any])


class Drafts(NamedTuple):
    """What was read, what should be written and what was, of some validation texts."""

    sources: Sequence[str]
    references: Sequence[str]
    outputs: Sequence[str]


class Seq2SeqTask(Task[C, D, Batch], Generic[C, D]):
    """An encoder and a decoder that learns from the right answer. The rows of a store are a source and a target."""

    example_name: ClassVar[str] = "pairs"

    @property
    def special_tokens(self) -> SpecialTokens:
        """What a batch puts around the rows."""
        return SpecialTokens()

    @property
    @abstractmethod
    def vocab_size(self) -> int:
        """Of the source."""

    def setup(self) -> None:
        """The loaders; a task adds what it monitors."""
        training = self.config.training
        budget = LoaderConfig(batch_tokens=training.batch_tokens)
        self.batches: Loader = Loader(self.data.train, budget, training.seed, self.special_tokens)
        self.validation = Loader(self.data.valid, budget, special=self.special_tokens)

    @property
    def summary(self) -> str:
        """Pairs, pieces, padding."""
        return f"{len(self.data.train):,} pairs, {self.vocab_size:,} pieces, {self.batches.padding_share:.0%} padding"

    def loss(self, module: nn.Module, batch: Batch) -> Loss:
        """Sums over a batch's real target tokens."""
        forward, training = partial(logits_of, module), self.config.training
        return loss_of(forward, batch, batch.target_out, batch.target_mask, training, training=module.training)

    def validate(self, module: nn.Module) -> dict[str, float]:
        """Loss per token without smoothing over all pairs, and scores of greedy drafts."""
        loss = mean_loss(module, self.validation.in_order())
        scores = {"loss": loss, "perplexity": math.exp(min(loss, MAX_LOSS))}
        drafts = self.draft(module)
        if drafts is None:
            return scores
        self.samples = list(zip(*drafts, strict=True))
        return scores | self.draft_scores(drafts)

    @abstractmethod
    def draft(self, module: nn.Module) -> Drafts | None:
        """Greedy answers to some validation texts; None where they would say less than the loss."""

    @abstractmethod
    def draft_scores(self, drafts: Drafts) -> dict[str, float]:
        """Their scores, in percent."""


def spread_evenly(length: int, limit: int | None) -> list[int]:
    """At most `limit` of so many rows, spread evenly over all."""
    count = min(length, limit or length)
    return [index * length // count for index in range(count)]


def logits_of(module: nn.Module, batch: Batch) -> Tensor:
    """(B, T, V): at every place of the target, of what comes next."""
    logits: Tensor = module(
        batch.source,
        batch.target_in,
        padding(batch.source_mask, lengths=batch.source_lengths, at_the_end=True),
        padding(batch.target_mask, lengths=batch.target_lengths, at_the_end=True),
    )
    return logits


@torch.inference_mode()
def mean_loss(module: nn.Module, batches: Iterable[Batch]) -> float:
    """Nats a token, the ends counted, without smoothing."""
    device = next(module.parameters()).device
    plain = count = torch.zeros((), device=device)
    for batch in batches:
        batch = batch.to(device)
        sums = cross_entropy(logits_of(module, batch), batch.target_out, batch.target_mask)
        plain, count = plain + sums.plain, count + sums.n
    return float(plain / count)
