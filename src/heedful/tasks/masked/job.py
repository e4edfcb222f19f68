"""Masked words as the training loop sees them: batches, loss, validation.

Shapes: P tokens to be guessed, V vocabulary.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ...core import padding
from ...data.text_batch import TextLoader
from ...training.job import Goal
from ...training.loss import Loss, cross_entropy
from ..class_scores import share_interval
from ..reading_data import ReadingData
from ..scoring import Score
from .config import MaskedConfig
from .filler import Filler, FillerSettings
from .masking import MaskedBatch, MaskedLoader, Masking, gap_name

LARGEST = 50.0  # of a loss whose perplexity is written out
CHUNK = 1 << 24  # tokens counted at once


class MaskedJob:
    """Cross-entropy of the tokens behind the gaps; judged by it over all validation texts, always the same gaps."""

    def __init__(self, config: MaskedConfig, prepared: ReadingData, module: nn.Module) -> None:
        self.config, self.prepared, self.module = config, prepared, module
        self.goal = Goal("loss", higher_is_better=False)
        masking = Masking(config.masking, prepared.tokenizer)
        tokens, seed = config.training.batch_tokens, config.training.seed
        self.batches = MaskedLoader(TextLoader(prepared.train, tokens, seed=seed), masking)
        self.validation = MaskedLoader(TextLoader(prepared.valid, tokens), masking)

    def predictor(self, module: nn.Module) -> Filler:
        """A module together with its tokeniser."""
        tokenizer = self.prepared.tokenizer
        model = self.config.model_for(tokenizer.largest + 1)
        return Filler(model, module, FillerSettings(mask=gap_name(tokenizer)), tokenizer)

    def loss(self, module: nn.Module, batch: MaskedBatch) -> Loss:
        """Sums over the tokens to be guessed."""
        smoothing = self.config.training.label_smoothing
        return cross_entropy(_forward(module, batch), batch.targets, batch.counted, smoothing=smoothing)

    def validate(self, module: nn.Module) -> dict[str, float]:
        """Loss per token, perplexity, and how many of the tokens are guessed right, in percent."""
        loss, right, _ = score(module, self.validation)
        return {"loss": loss, "perplexity": math.exp(min(loss, LARGEST)), "accuracy": right}

    def judge(self, predictor: Filler) -> dict[str, Any]:
        """The same; beside it, what is reached by knowing only how frequent each token is."""
        loss, right, n = score(predictor.module, self.validation)
        plain_loss, plain_right = self._by_frequency()
        scores = {
            **scores_of(loss, right, n),
            "frequency_perplexity": Score("perplexity by frequency alone", math.exp(min(plain_loss, LARGEST))),
            "frequency_accuracy": Score("accuracy by frequency alone", plain_right),
        }
        said = {name: one.to_dict() for name, one in scores.items()}
        return {"validation": {"n": len(self.prepared.valid), "masked": n, "scores": said}}

    def describe(self, batch: MaskedBatch) -> Sequence[str]:
        """The input lines of a batch."""
        return [self.prepared.train.place(row) for row in batch.rows]

    def identity(self) -> dict[str, str]:
        """Fingerprints of the data, and the model's config and the gaps in words."""
        settings = {"model": self.config.model, "masking": self.config.masking}
        named = {name: json.dumps(value.to_dict(), sort_keys=True) for name, value in settings.items()}
        return {**self.prepared.identity(), **named}

    def _by_frequency(self) -> tuple[float, float]:
        """Each token's share of the training words, one added to every count."""
        train, words = self.prepared.train, self.batches.masking.is_word
        counts = words.astype(np.int64)
        for start in range(0, len(train.flat), CHUNK):
            counts += np.bincount(train.flat[start : start + CHUNK], minlength=len(words)) * words
        total, commonest, loss, right, n = int(counts.sum()), int(counts.argmax()), 0.0, 0, 0
        for batch in self.validation.fixed():
            targets = batch.targets[batch.counted].numpy()
            loss -= float(np.log(counts[targets] / total).sum())
            right, n = right + int((targets == commonest).sum()), n + len(targets)
        return loss / n, 100.0 * right / n


@torch.inference_mode()
def score(module: nn.Module, texts: MaskedLoader) -> tuple[float, float, int]:
    """The loss per token to be guessed, the percentage that is guessed right, and how many there are."""
    device = next(module.parameters()).device
    plain = right = count = torch.zeros((), device=device, dtype=torch.float64)
    for batch in texts.fixed():
        batch = batch.to(device)
        logits = _forward(module, batch)
        sums = cross_entropy(logits, batch.targets, batch.counted)
        plain, count = plain + sums.plain, count + sums.n
        right = right + ((logits.argmax(dim=-1) == batch.targets) & batch.counted).sum()
    n = int(count)
    return float(plain) / n, 100.0 * float(right) / n, n


def scores_of(loss: float, right: float, n: int) -> dict[str, Score]:
    """What `score` found, as it is shown."""
    return {
        "loss": Score("loss (nats)", loss),
        "perplexity": Score("perplexity", math.exp(min(loss, LARGEST))),
        "accuracy": Score("accuracy of masked tokens", right, interval=share_interval(right, n)),
    }


def _forward(module: nn.Module, batch: MaskedBatch) -> Tensor:
    """Logits (P, V), of the tokens to be guessed alone."""
    keep = padding(batch.keep, lengths=batch.lengths, at_the_end=True)
    logits: Tensor = module(batch.ids, keep, places=batch.places)
    return logits
