"""Masked language modeling: plain text, a text encoder with a vocabulary head, cross-entropy, perplexity.

Shapes: P tokens to be guessed, V vocabulary.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor, nn

from ...core import padding
from ...data.corpus import text_files
from ...data.published_tokenizer import PublishedTokenizer, chunks
from ...data.report import TextReport
from ...data.store import TokenStore
from ...errors import DataError
from ...training.config import TrainingConfig
from ...training.loss import Loss, cross_entropy
from ...training.objective import Monitor
from ..class_scores import evaluation, share_interval
from ..predictor import refusal
from ..rivals import Rival
from ..run import Files, Refusals
from ..run.config import settings_json
from ..scoring import Score
from ..text_encoder import BATCH_TOKENS
from ..text_encoder_task import EncodedRow, TextConfig, TextEncoderConfig, TextEncoderTask, TextMetadata
from .data import MaskedBatch, MaskedLoader, Masking, MaskingConfig, PlainText, read_texts
from .predictor import MaskedLanguageModel, MaskedLanguageModelSettings, mask_token

MAX_LOSS = 50.0  # whose perplexity is computed

FROM_SCRATCH = TrainingConfig(
    steps=20_000,
    label_smoothing=0.0,
    learning_rate=5e-4,
    schedule="cosine",
    weight_decay=0.01,
    epsilon=1e-6,
)


@dataclass(frozen=True, kw_only=True)
class MaskedTextConfig(TextConfig):
    """How running text is divided into texts."""

    text: Literal["line", "paragraph"] = "line"  # A paragraph ends at an empty line; long texts are read in chunks


@dataclass(frozen=True, kw_only=True)
class MaskedConfig(TextEncoderConfig):
    """The settings of a run, from scratch or continuing from a `base`."""

    head: ClassVar[str] = "words"
    from_scratch: ClassVar[TrainingConfig] = FROM_SCRATCH
    fine_tuning: ClassVar[TrainingConfig] = FROM_SCRATCH.changed(learning_rate=1e-4)

    data: MaskedTextConfig = field(default_factory=MaskedTextConfig)
    masking: MaskingConfig = field(default_factory=MaskingConfig)
    training: TrainingConfig = field(default_factory=lambda: FROM_SCRATCH)


class MaskedTask(TextEncoderTask[MaskedConfig, PlainText, MaskedBatch]):
    """Masked language modeling: cross-entropy of the masked tokens, from scratch or from a pretrained model."""

    name: ClassVar[str] = MaskedLanguageModel.task
    predictor_class: ClassVar[type[Any]] = MaskedLanguageModel
    config_class: ClassVar[type[Any]] = MaskedConfig
    counted: ClassVar[str] = "masked tokens"
    rivals: ClassVar[tuple[Rival, ...]] = (Rival("frequency_perplexity", ("perplexity",), higher_is_better=False),)

    def list_files(self, config: MaskedConfig, paths: Sequence[str]) -> list[Path]:
        return text_files(paths)

    def read(self, columns: Sequence[str] | None, paths: Sequence[str], report: TextReport) -> Iterator[PlainText]:
        return read_texts(paths, self.config.data.text, report)

    def encode(
        self, example: PlainText, tokenizer: PublishedTokenizer, metadata: TextMetadata, report: TextReport
    ) -> Iterator[EncodedRow]:
        """Yield unmasked rows, several of a text that is too long; masks are drawn for each batch."""
        mask_token(tokenizer)  # a tokenizer without one is refused
        return ((ids, ()) for ids in chunks(tokenizer, tokenizer.encode(example.text), self.config.limit))

    def setup(self) -> None:
        """Monitor the loss over all validation texts, which always have the same masks."""
        training, data = self.config.training, self.data
        self.monitor = Monitor("loss", higher_is_better=False)
        self.masking = Masking(self.config.masking, data.tokenizer)
        self.batches = MaskedLoader(data.train, training.batch_tokens, self.masking, training.seed)
        self.validation = MaskedLoader(data.valid, training.batch_tokens, self.masking)

    def predictor(self, module: nn.Module) -> MaskedLanguageModel:
        tokenizer = self.data.tokenizer
        settings = MaskedLanguageModelSettings(mask=mask_token(tokenizer))
        return MaskedLanguageModel(self.model_config(), module, settings, tokenizer)

    def loss(self, module: nn.Module, batch: MaskedBatch) -> Loss:
        smoothing = self.config.training.label_smoothing
        return cross_entropy(_forward(module, batch), batch.targets, batch.is_real, smoothing=smoothing)

    def validate(self, module: nn.Module) -> dict[str, float]:
        """Return the loss per token, perplexity, and the percentage of tokens that are predicted right."""
        scores, _ = score(module, self.validation)
        return {name: score.value for name, score in scores.items()}

    def final_evaluation(self, predictor: MaskedLanguageModel) -> dict[str, Any]:
        """Return the same scores; as a baseline, predict from token frequencies alone."""
        scores, n = score(predictor.module, self.validation)
        loss, accuracy = self._by_frequency()
        scores |= {
            "frequency_perplexity": Score("perplexity by frequency alone", math.exp(min(loss, MAX_LOSS))),
            "frequency_accuracy": Score("accuracy by frequency alone", accuracy),
        }
        return {"validation": evaluation(len(self.data.valid), scores, masked=n)}

    def identity(self) -> dict[str, str]:
        return {**super().identity(), "masking": settings_json(self.config.masking)}

    def title(self, predictor: MaskedLanguageModel) -> str:
        return "masked words"

    def card_notes(self, predictor: MaskedLanguageModel, metrics: Mapping[str, Any]) -> list[str]:
        return [
            f"The scores cover {metrics['validation']['masked']:,} masked tokens of these texts, always the same ones.",
            f"Write a gap as {predictor.settings.mask}. A classifier can start from these weights: "
            "`heedful train classification --init-from` with this folder.",
        ]

    def evaluate(self, predictor: MaskedLanguageModel, files: Files, *, strict: bool = False) -> dict[str, Any]:
        """Return loss and accuracy over all lines of the files, with the default share of masks, always the same."""
        tokenizer, limit = predictor.tokenizer, predictor.module.encoder.positions.limit
        refusals = Refusals(strict=strict)
        texts = refusals.accepted(
            read_texts(files.train, "line", TextReport()), lambda text: refusal(tokenizer.encode, text.text)
        )
        with TemporaryDirectory() as folder:
            try:
                rows = (
                    (ids, (), (text.file, text.line))
                    for text in texts
                    for ids in chunks(tokenizer, tokenizer.encode(text.text), limit)
                )
                store = TokenStore.write(Path(folder) / "texts", rows, vocab_size=tokenizer.largest + 1)
            except DataError as error:
                raise DataError(f"{', '.join(files.train)}: there is no text to evaluate on ({error})") from None
            loader = MaskedLoader(store, BATCH_TOKENS, Masking(MaskingConfig(), tokenizer))
            scores, n = score(predictor.module, loader)
            return evaluation(len(store), scores, masked=n) | refusals.to_dict()

    def _by_frequency(self) -> tuple[float, float]:
        """Return loss and accuracy of predicting from token frequencies in training, with add-one smoothing."""
        counts = (self.data.train.counts(len(self.masking.is_word)) + 1) * self.masking.is_word
        total, commonest, loss, right, n = int(counts.sum()), int(counts.argmax()), 0.0, 0, 0
        for batch in self.validation.fixed():
            targets = batch.targets[batch.is_real].numpy()
            loss -= float(np.log(counts[targets] / total).sum())
            right, n = right + int((targets == commonest).sum()), n + len(targets)
        return loss / n, 100.0 * right / n


@torch.inference_mode()
def score(module: nn.Module, loader: MaskedLoader) -> tuple[dict[str, Score], int]:
    """Return the scores over all masked tokens, and how many there are."""
    device = next(module.parameters()).device
    plain = right = count = torch.zeros((), device=device, dtype=torch.float64)
    for batch in loader.fixed():
        batch = batch.to(device)
        logits = _forward(module, batch)
        sums = cross_entropy(logits, batch.targets, batch.is_real)
        plain, count = plain + sums.plain, count + sums.n
        right = right + ((logits.argmax(dim=-1) == batch.targets) & batch.is_real).sum()
    n = int(count)
    loss, accuracy = float(plain) / n, 100.0 * float(right) / n
    scores = {
        "loss": Score("loss (nats)", loss),
        "perplexity": Score("perplexity", math.exp(min(loss, MAX_LOSS))),
        "accuracy": Score("accuracy of masked tokens", accuracy, interval=share_interval(accuracy, n)),
    }
    return scores, n


def _forward(module: nn.Module, batch: MaskedBatch) -> Tensor:
    """Return the logits (P, V) of the masked tokens alone."""
    keep = padding(batch.keep, lengths=batch.lengths, at_the_end=True)
    logits: Tensor = module(batch.ids, keep, places=batch.places)
    return logits
