"""Classification as the training loop sees it: batches, loss, validation.

Shapes: N texts, C classes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ...core import padding
from ...data.text_batch import TextBatch, TextLoader
from ...training.job import Goal
from ...training.loss import Loss, loss_of
from ..class_scores import class_scores
from ..reader import tells_apart
from ..scoring import Score
from .classifier import Classifier, ClassifierSettings
from .config import ClassificationConfig
from .prepare import Prepared, targets

SAMPLES = 200  # validation texts that metrics.json shows


class ClassificationJob:
    """Cross-entropy of the classes; judged by accuracy over all validation texts."""

    def __init__(self, config: ClassificationConfig, prepared: Prepared, module: nn.Module) -> None:
        self.config, self.prepared, self.module = config, prepared, module
        self.goal = Goal("accuracy", higher_is_better=True)
        self.batches = TextLoader(prepared.train, config.training.batch_tokens, seed=config.training.seed)
        self.validation = TextLoader(prepared.valid, config.training.batch_tokens)
        self.true: NDArray[np.int64] = targets(prepared.valid)[:, 0].astype(np.int64)
        numbers = prepared.tokenizer.encode_pair("a", "a")[1]  # as `predict` will have them
        self.tells_apart = tells_apart(module, prepared.tokenizer) and 1 in numbers

    def predictor(self, module: nn.Module) -> Classifier:
        """A module together with the tokeniser and the names of the classes."""
        prepared = self.prepared
        settings = ClassifierSettings(
            labels=prepared.labels, max_tokens=self.config.limit, cut=True, texts=prepared.texts
        )
        model = self.config.model_for(prepared.tokenizer.largest + 1, len(prepared.labels))
        return Classifier(model, module, settings, prepared.tokenizer)

    def loss(self, module: nn.Module, batch: TextBatch) -> Loss:
        """Sums over a batch's texts."""
        forward, training = partial(self._forward, module), self.config.training
        return loss_of(forward, batch, batch.labels, batch.real, training, drops=module.training)

    def validate(self, module: nn.Module) -> dict[str, float]:
        """Loss without smoothing, accuracy and macro F1, over all validation texts."""
        shares = self._probabilities(module)
        right = np.maximum(shares[np.arange(len(shares)), self.true], np.finfo(np.float64).tiny)
        found = class_scores(self.true.tolist(), shares, self.prepared.labels)
        return {"loss": float(-np.log(right).mean()), **{name: one.value for name, one in found.scores.items()}}

    def judge(self, predictor: Classifier) -> dict[str, Any]:
        """Every score of all validation texts; beside them, what always naming the commonest class would reach."""
        shares = self._probabilities(predictor.module)
        validation = class_scores(self.true.tolist(), shares, self.prepared.labels).to_dict()
        label, reached = self._commonest()
        validation["scores"]["commonest"] = Score(f"accuracy of always {label!r}", reached).to_dict()
        return {"validation": validation, "samples": self._samples(shares)}

    def describe(self, batch: TextBatch) -> Sequence[str]:
        """The input lines of a batch."""
        return [self.prepared.train.place(row) for row in batch.rows]

    def identity(self) -> dict[str, str]:
        """Fingerprints of the data, and the model's config in words."""
        return {**self.prepared.identity(), "model": json.dumps(self.config.model.to_dict(), sort_keys=True)}

    def _forward(self, module: nn.Module, batch: TextBatch) -> Tensor:
        segments = batch.segments if self.tells_apart else None
        keep = padding(batch.keep, lengths=batch.lengths, at_the_end=True)
        logits: Tensor = module(batch.ids, keep, segments=segments)
        return logits

    @torch.inference_mode()
    def _probabilities(self, module: nn.Module) -> NDArray[np.float64]:
        """(N, C), in the order of the validation texts."""
        device = next(module.parameters()).device
        shares = np.zeros((len(self.true), len(self.prepared.labels)))
        rows, found = list[int](), list[Tensor]()
        for batch in self.validation.in_order():
            rows += batch.rows
            found.append(self._forward(module, batch.to(device))[: len(batch.rows)].double().softmax(dim=-1))
        shares[rows] = torch.cat(found).cpu().numpy()
        return shares

    def _commonest(self) -> tuple[str, float]:
        """Of the training texts, and its share of the validation texts in percent."""
        best = int(np.bincount(targets(self.prepared.train)[:, 0]).argmax())
        return self.prepared.labels[best], 100.0 * float((self.true == best).mean())

    def _samples(self, shares: NDArray[np.float64]) -> list[dict[str, Any]]:
        """Texts spread evenly over all, as the tokeniser gives them back; the score is the named class's share."""
        count, labels = min(SAMPLES, len(shares)), self.prepared.labels
        samples = []
        for row in (index * len(shares) // count for index in range(count)):
            named, true = int(shares[row].argmax()), int(self.true[row])
            samples.append(
                {
                    **self._texts(row),
                    "reference": labels[true],
                    "output": labels[named],
                    "score": 100.0 * float(shares[row, named]),
                    "exact": named == true,
                }
            )
        return samples

    def _texts(self, row: int) -> dict[str, str]:
        """What stands in a row: "source", and the "second" text where there is one."""
        ids, (_, second) = self.prepared.valid[row]
        decode = self.prepared.tokenizer.decode
        found = {"source": decode(ids[:second].tolist())}
        return found | {"second": decode(ids[second:].tolist())} if second < len(ids) else found
