"""What translation and text-to-text share: how pairs are split, teacher forcing, and greedy drafts at validations.

Shapes: B rows, T target tokens, V vocabulary.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..core import padding
from ..data.batch import Batch, SpecialTokens
from ..data.loader import Loader, LoaderConfig
from ..data.pairs import Pair
from ..data.report import DataReport, PairReport
from ..lens.report import ScoredSample
from ..training.loss import Loss, loss_of
from ..training.parallel.process_group import torch_device
from .run import Files, RunConfig, Task, TrainingData
from .run.data import Split, split_examples

FINAL_TEXTS = 2000  # of the validation data, answered with the full search when training is over
VALIDATION_TEXTS = 500  # answered greedily at each validation, at most; the loss is over all
MAX_LOSS = 50.0  # whose perplexity is written out
HOLDOUT_EVERY = 20  # at most every twentieth pair is held out
ENOUGH = 0.999  # of the targets have room, with this MARGIN
MARGIN = 1.2
SHORT = 8  # tokens of a source below which the length of the target says little

# Defaults by the amount of data, counted in tokens of the longer sides; docs/translation.md gives the reasons.
SMALL_DATA = 4_000_000  # fewer tokens than this get a tiny model and small batches
BATCH_TOKENS = (1024, 2048, 4096)  # at least, at most for small data, and for all other data
BATCHES = 1000  # per epoch of small data
EPOCHS = 15
STEPS = (3000, 10_000)  # minimum and maximum
VALIDATIONS, PATIENCE = 20, 6
LEARNING = {"optimizer": "muon", "schedule": "cosine", "warmup_steps": 100}  # for pre-norm models
RATE_TIMES_WIDTH = 0.384  # learning rate × d_model of a pre-norm model
FEW_PASSES = 3  # over the data, with fewer of which a model cannot learn it by heart and needs no dropout
CPU_TOKENS = 10_000  # a second, at most, that a tiny model learns from on a CPU
DRAFTED_TOKENS = 20_000  # in the references of the drafts at a validation
FEWEST_DRAFTS = 50

P = TypeVar("P", bound=Pair)
R = TypeVar("R", bound=PairReport)
C = TypeVar("C", bound=RunConfig)
D = TypeVar("D", bound=TrainingData[Any, Any, Any])


def split_pairs(
    files: Files,
    read: Callable[[Sequence[str], R], Iterator[P]],
    report_class: Callable[[], R],
    *,
    digest: Callable[[P], bytes],
    holdout: int,
) -> tuple[Split[P], DataReport[R]]:
    """Split pairs as `split_examples` does."""

    def drop(report: R, reason: str, pair: P) -> None:
        report.drop_kept(reason, pair.place, *pair.texts)

    return split_examples(
        files, read, report_class, digest=digest, drop=drop, wanted=holdout, name="pairs", every=HOLDOUT_EVERY
    )


class Seq2SeqTask(Task[C, D, Batch], Generic[C, D]):
    """Trains an encoder-decoder with teacher forcing. The rows of a store are a source and a target."""

    example_name: ClassVar[str] = "pairs"

    def defaults(self, config: C, data: D) -> Mapping[str, Mapping[str, Any]]:
        """Return defaults for this amount of data: a tiny model and small batches for little, and early stopping.

        A run from a base keeps the fine-tuning defaults. A model whose preset was not set explicitly has rotary
        positions, and no dropout where the steps or the minutes allow few passes over the data. Optimizer, learning
        rate, schedule and warm-up are tuned together: they apply only to pre-norm models, and only if none of the four
        was set explicitly.
        """
        if getattr(config, "base", None) is not None:
            return {}
        n_tokens = int(data.train.lengths.max(axis=1).sum()) + len(data.train)
        fewest, few, many = BATCH_TOKENS
        is_small = n_tokens < SMALL_DATA
        model: dict[str, Any] = {"preset": "tiny" if is_small else "small"}
        chosen = (config.explicit or {}).get("model", {})
        is_free = isinstance(chosen, Mapping) and chosen.keys().isdisjoint(("preset", "family"))
        if is_small and is_free:
            model["positions"] = "rotary"
        training: dict[str, Any] = {"batch_tokens": min(max(n_tokens // BATCHES, fewest), few) if is_small else many}
        training["steps"] = min(max(EPOCHS * n_tokens // training["batch_tokens"], STEPS[0]), STEPS[1])
        adapted = config.adapted({"model": model, "training": training})
        settings, size = adapted.training, adapted.model
        steps = settings.total_steps(lambda _: n_tokens // settings.batch_tokens + 1)  # limits may be explicit
        learned: float = steps * settings.batch_tokens * settings.gradient_accumulation_steps
        if settings.max_minutes and torch_device(settings.device).type == "cpu":
            learned = min(learned, CPU_TOKENS * 60 * settings.max_minutes)
        if is_free and not settings.r_drop and learned < FEW_PASSES * n_tokens:
            model["dropout"] = 0.0
        training["validate_every"] = max(1, steps // VALIDATIONS)
        training["patience"] = PATIENCE if settings.validate_every else 0
        learning = {"learning_rate": RATE_TIMES_WIDTH / getattr(size, "d_model", 128), **LEARNING}
        explicit = (config.explicit or {}).get("training", {})
        explicit = explicit if isinstance(explicit, Mapping) else {}  # a TrainingConfig does not adapt
        whole = settings.parallel == "replicate"  # Muon needs whole matrices
        if whole and getattr(size, "norm", None) == "pre" and learning.keys().isdisjoint(explicit):
            training |= learning
        return {"model": model, "training": training}

    @property
    def special_tokens(self) -> SpecialTokens:
        """The tokens that a batch puts around the rows."""
        return SpecialTokens()

    def setup(self) -> None:
        """Set up the loaders; a subclass sets the monitor."""
        training = self.config.training
        budget = LoaderConfig(batch_tokens=training.batch_tokens)
        self.batches: Loader = Loader(self.data.train, budget, training.seed, self.special_tokens)
        self.validation = Loader(self.data.valid, budget, special=self.special_tokens)

    @property
    def summary(self) -> str:
        n_pairs, vocab_size = len(self.data.train), self.data.tokenizer.vocab_size
        return f"{n_pairs:,} pairs, {vocab_size:,} pieces, {self.batches.padding_share:.0%} padding"

    def loss(self, module: nn.Module, batch: Batch) -> Loss:
        """Return sums over the real target tokens of a batch."""

        def logits(batch: Batch) -> Tensor:  # (B, T, V) of the next token at every position of the target
            source_keep = padding(batch.source_mask, lengths=batch.source_lengths, at_the_end=True)
            target_keep = padding(batch.target_mask, lengths=batch.target_lengths, at_the_end=True)
            logits: Tensor = module(batch.source, batch.target_in, source_keep, target_keep)
            return logits

        config, training = self.config.training, module.training
        return loss_of(logits, batch, batch.target_out, batch.target_mask, config, training=training)

    def validate(self, module: nn.Module) -> dict[str, float]:
        """Return the unsmoothed loss per token of all pairs, end tokens included, and the scores of greedy drafts."""
        device = next(module.parameters()).device
        with torch.inference_mode():
            losses = [self.loss(module, batch.to(device)) for batch in self.validation.in_order()]
        loss = float(sum(each.plain for each in losses) / sum(each.n for each in losses))
        return {"loss": loss, "perplexity": math.exp(min(loss, MAX_LOSS)), **self.draft_scores(module)}

    def report_sections(self, predictor: Any, metrics: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        return {"samples": [ScoredSample(**sample) for sample in metrics["samples"]]}

    @abstractmethod
    def draft_scores(self, module: nn.Module) -> dict[str, float]:
        """Set `samples` to greedy answers to some validation texts, and return their scores in percent.

        There are none where they would say less than the loss.
        """


def length_limits(lengths: NDArray[np.integer[Any]]) -> dict[str, Any]:
    """Return `max_len_a` and `max_len_b` of a GenerationConfig that leave all answers of the training data room.

    Args:
        lengths: (N, 2), the tokens of each source and target without their ends. All but one target in a thousand has
            room, with a fifth to spare; the default, twice the source and 20, is the least.
    """
    source, target = (lengths.astype(np.float64) + 1).T
    ratio = float(np.quantile(target / np.maximum(source, SHORT), ENOUGH))
    factor = max(2.0, math.ceil(10 * MARGIN * ratio) / 10)
    rest = float(np.quantile(MARGIN * target - factor * source, ENOUGH))
    return {"max_len_a": factor, "max_len_b": max(20, math.ceil(rest))}


def length_setting(config: RunConfig, name: str) -> str:
    """Return the setting that lets longer texts in: the limit `name`, unless the model has one."""
    return name if getattr(config.model, "max_length", None) is None else "model.max_length"


def draft_count(lengths: NDArray[np.integer[Any]]) -> int:
    """Return how many validation texts are answered while the model trains: fewer where their targets are long.

    Answers and ROUGE cost most of a validation, which would otherwise take longer than the training in between.
    """
    return min(max(int(DRAFTED_TOKENS / (lengths[:, 1].mean() + 1)), FEWEST_DRAFTS), VALIDATION_TEXTS)


def spread_evenly(length: int, limit: int | None) -> list[int]:
    """Return at most `limit` indices of a sequence, spread evenly over it."""
    count = min(length, limit or length)
    return [index * length // count for index in range(count)]
