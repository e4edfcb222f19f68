"""Text to text as the training loop sees it: batches, loss, validation."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from torch import nn

from ...data.batch import Batch
from ...data.loader import Loader, LoaderConfig
from ...training.job import Goal
from ...training.loss import Loss
from ...training.r_drop import loss_of
from ..teacher_forcing import logits_of, mean_loss
from .config import TextToTextConfig
from .evaluation import judged, quick_scores, quiet_answers, sample_of
from .prepare import Prepared
from .rewriter import TextToTextGenerator, TextToTextSettings

FINAL_TEXTS = 2000  # of the validation data, answered with the full search when training is over
VALIDATION_TEXTS = 500  # answered at each validation; the loss is over all
LONG = 200  # tokens of a target on average: beyond that, a greedy draft says less than the loss, and takes long
SAMPLES = 200  # answers that metrics.json shows


class TextToTextJob:
    """Teacher forcing with label smoothing; judged by ROUGE-L of greedy answers, or by the loss if these are long."""

    def __init__(self, config: TextToTextConfig, prepared: Prepared, module: nn.Module) -> None:
        self.config, self.prepared, self.module = config, prepared, module
        self.drafts = float(prepared.valid.lengths[:, 1].mean()) <= LONG
        self.goal = Goal("rougeL", higher_is_better=True) if self.drafts else Goal("loss", higher_is_better=False)
        budget = LoaderConfig(batch_tokens=config.training.batch_tokens)
        self.batches = Loader(prepared.train, budget, config.training.seed, prepared.marks)
        self.validation = Loader(prepared.valid, budget, marks=prepared.marks)
        self.samples: list[tuple[str, str, str]] = []  # source, reference, output of the last validation

    @property
    def about(self) -> str:
        """What it learns from, in a few words."""
        pieces = self.prepared.tokenizer.vocab_size
        return f"{len(self.prepared.train):,} pairs, {pieces:,} pieces, {self.batches.padding_share:.0%} padding"

    def predictor(self, module: nn.Module) -> TextToTextGenerator:
        """A module together with its tokeniser, its tokens and its search."""
        search = self.config.generation
        if search.max_new_tokens is None:
            search = search.changed(max_new_tokens=max(self.config.target_limit, search.min_new_tokens + 1))
        settings = TextToTextSettings(
            prefix=self.config.prefix,
            max_tokens=self.config.source_limit,
            cut=self.config.data.cut,
            tokens=self.prepared.tokens,
            generation=search,
        )
        model = self.config.model_for(self.prepared.tokenizer.largest + 1)
        return TextToTextGenerator(model, module, self.prepared.tokenizer, settings)

    def loss(self, module: nn.Module, batch: Batch) -> Loss:
        """Sums over a batch's real target tokens."""
        forward, training = partial(logits_of, module), self.config.training
        return loss_of(forward, batch, batch.target_out, batch.target_mask, training, drops=module.training)

    def validate(self, module: nn.Module) -> dict[str, float]:
        """Loss per token without smoothing over all pairs, and scores of greedy answers."""
        loss = mean_loss(module, self.validation.in_order())
        told = {"loss": loss, "perplexity": math.exp(min(loss, 50.0))}
        if not self.drafts:
            return told
        examples = self.prepared.valid_examples(VALIDATION_TEXTS)
        outputs = [answer.text for answer in quiet_answers(self.predictor(module), examples, beam=1)]
        references = [one.target for one in examples]
        self.samples = list(zip((one.text for one in examples), references, outputs, strict=True))
        return told | quick_scores(outputs, references)

    def judge(self, predictor: TextToTextGenerator) -> dict[str, Any]:
        """With the full search."""
        examples = self.prepared.valid_examples(FINAL_TEXTS)
        answers = quiet_answers(predictor, examples)
        samples = [sample_of(answer.text, one) for answer, one in zip(answers, examples, strict=True)]
        return {
            "validation": {**judged(answers, examples), "of": len(self.prepared.valid)},
            "samples": [asdict(sample) for sample in samples[:: -(-len(samples) // SAMPLES)]],
        }

    def describe(self, batch: Batch) -> Sequence[str]:
        """The input lines of a batch."""
        return [self.prepared.train.place(row) for row in batch.rows]

    def identity(self) -> dict[str, str]:
        """Fingerprints of the data, and the model's config in words."""
        return {**self.prepared.identity(), "model": json.dumps(self.config.model.to_dict(), sort_keys=True)}
