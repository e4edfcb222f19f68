"""A language model as the training loop sees it: random windows, cross-entropy, the whole validation text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import nn

from ...data.published_tokenizer import BROKEN
from ...data.windows import RandomWindows, Row, Windows
from ...families import GenerationDefaults, build
from ...training.job import Goal
from ...training.loss import Loss, cross_entropy
from ..scoring import Score
from .config import LanguageModelConfig
from .continuer import CausalLanguageModel, LanguageModelSettings
from .prepare import Prepared, row_of
from .scoring import TextScore, nats_of, usual_stride

PROMPTS = 5  # places of the validation text that are continued for people to see
PROMPT = 64  # tokens


class LanguageModelJob:
    """Every token is predicted from those before it in its window; judged by the loss on the validation text."""

    def __init__(self, config: LanguageModelConfig, prepared: Prepared) -> None:
        self.config = config
        self.prepared = prepared
        self.model = config.model.changed(vocab_size=prepared.tokenizer.vocab_size)
        self.module: nn.Module = build(self.model)
        self.goal = Goal("loss", higher_is_better=False)
        self.batches = RandomWindows(
            row_of(prepared.train), context=config.window, batch=config.batch, seed=config.training.seed
        )
        self._ends = np.cumsum(prepared.train.lengths.sum(axis=1, dtype=np.int64))  # of the passages

    def loss(self, module: nn.Module, batch: Windows) -> Loss:
        """Sums over all tokens of all windows."""
        return cross_entropy(
            module(batch.inputs), batch.targets, batch.keep, smoothing=self.config.training.label_smoothing
        )

    def validate(self, module: nn.Module) -> dict[str, float]:
        """Over the whole text, in windows side by side."""
        score = self.score(module, stride=self.config.window)
        return {key: found.value for key, found in score.scores().items()}

    def score(self, module: nn.Module, *, stride: int) -> TextScore:
        """Of the validation text."""
        row, sizes = row_of(self.prepared.valid), self.prepared.sizes
        size = self.prepared.tokenizer.vocab_size
        nats = nats_of(module, row, context=self.config.window, stride=stride, vocab_size=size)
        return TextScore(nats, len(row) - 1, sizes.characters, sizes.bytes)

    def predictor(self, module: nn.Module) -> CausalLanguageModel:
        """A module together with what turns text into ids and back."""
        sizes = self.prepared.sizes
        tokens = GenerationDefaults(start=sizes.start, end=() if sizes.end is None else (sizes.end,))
        settings = LanguageModelSettings(tokens=tokens, generation=self.config.generation, context=self.config.window)
        return CausalLanguageModel(self.model, module, self.prepared.tokenizer, settings)

    def judge(self, predictor: CausalLanguageModel) -> dict[str, Any]:
        """In windows that overlap, and beside that side by side, as elsewhere; a few texts continued."""
        context = self.config.window
        stride = self.config.stride or usual_stride(context)
        score = self.score(predictor.module, stride=stride)
        plain = score if stride == context else self.score(predictor.module, stride=context)
        scores = score.scores(f"context {context}, stride {stride}")
        scores["loss_side_by_side"] = Score(
            "loss, windows side by side", plain.loss, signature=f"context {context}, stride {context}"
        )
        return {
            "validation": {
                "n": score.tokens,
                "characters": score.characters,
                "bytes": score.bytes,
                "scores": {key: found.to_dict() for key, found in scores.items()},
            },
            "samples": self._samples(predictor),
        }

    def describe(self, batch: Windows) -> Sequence[str]:
        """The passages in which the windows begin."""
        rows = np.searchsorted(self._ends, batch.starts, side="right")
        return [self.prepared.train.place(int(row)) for row in rows]

    def identity(self) -> dict[str, str]:
        """Fingerprints of the data, and the model's config in words."""
        return {
            **self.prepared.identity(),
            "context": str(self.config.window),
            "model": json.dumps(self.config.model.to_dict(), sort_keys=True),
        }

    def _samples(self, predictor: CausalLanguageModel) -> list[dict[str, str]]:
        """Texts from evenly spread places of the validation text: how they go on, and how the model does."""
        row = row_of(self.prepared.valid)
        prompt, length = min(PROMPT, self.config.window), predictor.generation.max_new_tokens or PROMPT
        places = [1 + place * max(0, len(row) - prompt - length) // PROMPTS for place in range(PROMPTS)]
        found = []
        for place in dict.fromkeys(places):
            *_, before = self._documents(row[place : place + prompt])
            after, *_ = self._documents(row[place + prompt : place + prompt + length])
            if predictor.why_not(before) is None:
                found.append((before, after))
        outputs = predictor.predict([before for before, _ in found])
        return [
            {"source": before, "reference": after, "output": output}
            for (before, after), output in zip(found, outputs, strict=True)
        ]

    def _documents(self, row: Row) -> list[str]:
        """What ids say, apart where a document ends; of a character that was cut in two, nothing."""
        parts = np.split(row, np.flatnonzero(row == self.prepared.sizes.end))
        ids = [part[part != self.prepared.sizes.end].tolist() for part in parts]
        return [self.prepared.tokenizer.decode(part).strip(BROKEN) for part in ids]
