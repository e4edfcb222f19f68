"""What translation and text-to-text share: how pairs are split, teacher forcing, and greedy drafts at validations.

Shapes: B rows, T target tokens, V vocabulary.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from ..core import padding
from ..data.batch import Batch, SpecialTokens
from ..data.loader import Loader, LoaderConfig
from ..data.pairs import Pair
from ..data.report import DataReport, PairReport
from ..training.loss import Loss, cross_entropy, loss_of
from .run import Files, RunConfig, Task, TooLittleDataError, TrainingData
from .run.task import Split, split_examples

FINAL_TEXTS = 2000  # of the validation data, answered with the full search when training is over
VALIDATION_TEXTS = 500  # answered greedily at each validation; the loss is over all
MAX_LOSS = 50.0  # whose perplexity is written out
HOLDOUT_EVERY = 20  # at most every twentieth pair is held out

P = TypeVar("P", bound=Pair)
R = TypeVar("R", bound=PairReport)
C = TypeVar("C", bound=RunConfig)
D = TypeVar("D", bound=TrainingData[Any, Any, Any])


def split_pairs(
    files: Files,
    read: Callable[[Sequence[str], R | None], Iterator[P]],
    report_class: Callable[[], R],
    *,
    digest: Callable[[P], bytes],
    holdout: int,
) -> tuple[Split[P], DataReport[R]]:
    """Split pairs as `split_examples` does; TooLittleDataError where either side has none."""

    def drop(report: R, reason: str, pair: P) -> None:
        report.drop_kept(reason, pair.place, *pair.texts)

    split, report = split_examples(
        files, read, report_class, digest=digest, drop=drop, wanted=holdout, every=HOLDOUT_EVERY
    )
    if report.valid is None:
        report.held_out = 0  # counted when they are encoded
        if not split.set_apart:
            raise TooLittleDataError(
                f"{report.train.kept} usable pairs are too few to hold some out for validation; "
                "give more data, or validation pairs of your own (--valid)",
                report,
            )
        return split, report
    for part, paths, use in ((report.train, files.train, "learn from"), (report.valid, files.valid, "validate on")):
        if not part.kept:
            raise TooLittleDataError(
                f"{', '.join(paths)}: there is no pair to {use}; all {part.total} are dropped or also in validation",
                report,
            )
    return split, report


class Drafts(NamedTuple):
    """Sources, references and greedy outputs of some validation texts."""

    sources: Sequence[str]
    references: Sequence[str]
    outputs: Sequence[str]


class Seq2SeqTask(Task[C, D, Batch], Generic[C, D]):
    """Trains an encoder-decoder with teacher forcing. The rows of a store are a source and a target."""

    example_name: ClassVar[str] = "pairs"

    @property
    def special_tokens(self) -> SpecialTokens:
        """The tokens that a batch puts around the rows."""
        return SpecialTokens()

    @property
    @abstractmethod
    def vocab_size(self) -> int:
        """The size of the source vocabulary."""

    def setup(self) -> None:
        """Set up the loaders; a subclass sets the monitor."""
        training = self.config.training
        budget = LoaderConfig(batch_tokens=training.batch_tokens)
        self.batches: Loader = Loader(self.data.train, budget, training.seed, self.special_tokens)
        self.validation = Loader(self.data.valid, budget, special=self.special_tokens)

    @property
    def summary(self) -> str:
        return f"{len(self.data.train):,} pairs, {self.vocab_size:,} pieces, {self.batches.padding_share:.0%} padding"

    def loss(self, module: nn.Module, batch: Batch) -> Loss:
        """Return sums over the real target tokens of a batch."""
        forward, training = partial(logits_of, module), self.config.training
        return loss_of(forward, batch, batch.target_out, batch.target_mask, training, training=module.training)

    def validate(self, module: nn.Module) -> dict[str, float]:
        """Return the unsmoothed loss per token of all pairs, and the scores of greedy drafts."""
        loss = mean_loss(module, self.validation.in_order())
        scores = {"loss": loss, "perplexity": math.exp(min(loss, MAX_LOSS))}
        drafts = self.draft(module)
        if drafts is None:
            return scores
        self.samples = list(zip(*drafts, strict=True))
        return scores | self.draft_scores(drafts)

    @abstractmethod
    def draft(self, module: nn.Module) -> Drafts | None:
        """Answer some validation texts greedily; None where that would say less than the loss."""

    @abstractmethod
    def draft_scores(self, drafts: Drafts) -> dict[str, float]:
        """Return the scores of drafts, in percent."""


def spread_evenly(length: int, limit: int | None) -> list[int]:
    """Return at most `limit` indices of a sequence, spread evenly over it."""
    count = min(length, limit or length)
    return [index * length // count for index in range(count)]


def logits_of(module: nn.Module, batch: Batch) -> Tensor:
    """Return the logits (B, T, V) of the next token at every position of the target."""
    logits: Tensor = module(
        batch.source,
        batch.target_in,
        padding(batch.source_mask, lengths=batch.source_lengths, at_the_end=True),
        padding(batch.target_mask, lengths=batch.target_lengths, at_the_end=True),
    )
    return logits


@torch.inference_mode()
def mean_loss(module: nn.Module, batches: Iterable[Batch]) -> float:
    """Return nats per token without smoothing, the end tokens included."""
    device = next(module.parameters()).device
    plain = count = torch.zeros((), device=device)
    for batch in batches:
        batch = batch.to(device)
        sums = cross_entropy(logits_of(module, batch), batch.target_out, batch.target_mask)
        plain, count = plain + sums.plain, count + sums.n
    return float(plain / count)
