"""Translation as the training loop sees it: batches, loss, validation."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import torch
from torch import nn

from ...data.batch import Batch
from ...data.loader import Loader, LoaderConfig
from ...training.job import Goal
from ...training.loss import Loss, cross_entropy, loss_of
from ..scoring import corpus_scores, main_metric
from ..teacher_forcing import logits_of
from .confidence import CANDIDATES
from .config import TranslationConfig
from .evaluation import evaluate, learn_confidence
from .prepare import Prepared
from .translator import Translator, TranslatorSettings

FINAL_SENTENCES = 2000  # of the validation data, translated with the full search when training is over
VALIDATION_SENTENCES = 500  # translated at each validation; the loss is over all


class TranslationJob:
    """Teacher forcing with label smoothing; judged by the score of greedy translations."""

    def __init__(
        self,
        config: TranslationConfig,
        prepared: Prepared,
        module: nn.Module,
        accepted: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.config = config
        self.prepared = prepared
        self.module = module
        self.accepted = accepted or {}
        self.metric = main_metric(config.target)
        self.goal = Goal(self.metric, higher_is_better=True)
        budget = LoaderConfig(batch_tokens=config.training.batch_tokens)
        self.batches = Loader(prepared.train, budget, seed=config.training.seed)
        self.validation = Loader(prepared.valid, budget)
        self.sources, self.references = prepared.valid_texts(VALIDATION_SENTENCES)
        self.one_sentence = prepared.one_sentence()
        self.samples: list[tuple[str, str, str]] = []  # source, reference, output of the last validation

    @property
    def about(self) -> str:
        """What it learns from, in a few words."""
        pieces = self.prepared.tokenizers.source.vocab_size
        return f"{len(self.prepared.train):,} pairs, {pieces:,} pieces, {self.batches.padding_share:.0%} padding"

    def predictor(self, module: nn.Module) -> Translator:
        """A module together with what turns text into ids and back."""
        settings = TranslatorSettings(
            source=self.config.source,
            target=self.config.target,
            joint=self.config.tokenizer.joint,
            max_tokens=self.config.data.max_tokens,
            one_sentence=self.one_sentence,
            generation=self.config.generation,
        )
        tokenizers = self.prepared.tokenizers
        return Translator(self.config.model_for(*tokenizers.sizes), module, tokenizers, settings)

    def loss(self, module: nn.Module, batch: Batch) -> Loss:
        """Sums over a batch's real target tokens."""
        forward, training = partial(logits_of, module), self.config.training
        return loss_of(forward, batch, batch.target_out, batch.target_mask, training, drops=module.training)

    def validate(self, module: nn.Module) -> dict[str, float]:
        """Loss per token without smoothing over all pairs, and scores of greedy translations."""
        device = next(module.parameters()).device
        plain = count = torch.zeros((), device=device)
        with torch.inference_mode():
            for batch in self.validation.in_order():
                batch = batch.to(device)
                sums = cross_entropy(logits_of(module, batch), batch.target_out, batch.target_mask)
                plain, count = plain + sums.plain, count + sums.n
        outputs = self.predictor(module).predict(self.sources, beam=1)
        self.samples = list(zip(self.sources, self.references, outputs, strict=True))
        scores = corpus_scores(outputs, self.references, self.config.target)
        loss = float(plain / count)
        return {
            "loss": loss,
            "perplexity": math.exp(min(loss, 50.0)),
            **{name: score.value for name, score in scores.items()},
            "exact": 100.0 * sum(a == b for _, a, b in self.samples) / len(self.samples),
        }

    def judge(self, predictor: Translator) -> dict[str, Any]:
        """With the full search. What is right among its candidates teaches the translator how sure it may be."""
        sources, references = self.prepared.valid_texts(FINAL_SENTENCES)
        pairs = zip(sources, references, strict=True)
        right = [self.accepted.get(source, (reference,)) for source, reference in pairs]
        several = min(CANDIDATES, predictor.generation.beam)
        evaluation = evaluate(predictor, sources, references, accepted=right, n_best=several)
        learned = learn_confidence(predictor, evaluation, right)
        return {
            "validation": evaluation.to_dict(),
            "confidence": learned,
            "samples": [asdict(sample) for sample in evaluation.samples[:200]],
        }

    def describe(self, batch: Batch) -> Sequence[str]:
        """The input lines of a batch."""
        return [self.prepared.train.place(row) for row in batch.rows]

    def identity(self) -> dict[str, str]:
        """Fingerprints of the data, and the model's config in words."""
        return {**self.prepared.identity(), "model": json.dumps(self.config.model.to_dict(), sort_keys=True)}
