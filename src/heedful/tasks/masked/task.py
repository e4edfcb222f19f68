"""Masked words: plain text, a text encoder with a head for words, cross-entropy at the gaps, perplexity.

Shapes: P tokens to be guessed, V vocabulary.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from ...data.store import Encoded, TokenStore
from ...data.text_batch import TextLoader
from ...errors import DataError
from ...training.config import TrainingConfig
from ...training.loss import Loss, cross_entropy
from ...training.objective import Monitor
from ..class_scores import share_interval
from ..run import DataReport, Files
from ..run.task import Split, settings_json
from ..scoring import Score
from ..text_encoder import BATCH_TOKENS, TextConfig, TextEncoderConfig, TextEncoderTask
from .data import MaskedBatch, MaskedLoader, Masking, MaskingConfig, PlainText, gap_name, gap_of, split_texts, texts_of
from .predictor import MaskedLanguageModel, MaskedLanguageModelSettings

MAX_LOSS = 50.0  # whose perplexity is written out
CHUNK = 1 << 24  # tokens counted at once

FROM_SCRATCH = TrainingConfig(
    steps=20_000,
    label_smoothing=0.0,
    learning_rate=5e-4,
    schedule="cosine",
    warmup_steps=1000,
    weight_decay=0.01,
    betas=(0.9, 0.98),
    epsilon=1e-6,
)


@dataclass(frozen=True, kw_only=True)
class MaskedTextConfig(TextConfig):
    """A text is a "line", or a "paragraph": all lines up to an empty one. One that is too long is read in chunks."""

    text: Literal["line", "paragraph"] = "line"


@dataclass(frozen=True, kw_only=True)
class MaskedConfig(TextEncoderConfig):
    """With which texts, pieces, gaps, model and training; from scratch, or going on from a `base`."""

    head: ClassVar[str] = "words"
    from_scratch: ClassVar[TrainingConfig] = FROM_SCRATCH
    fine_tuning: ClassVar[TrainingConfig] = FROM_SCRATCH.changed(learning_rate=1e-4)

    data: MaskedTextConfig = field(default_factory=MaskedTextConfig)
    masking: MaskingConfig = field(default_factory=MaskingConfig)
    training: TrainingConfig = field(default_factory=lambda: FROM_SCRATCH)


class MaskedTask(TextEncoderTask[MaskedConfig, PlainText, None, MaskedBatch]):
    """Cross-entropy of the tokens behind the gaps, from scratch or going on from a model that has read before."""

    name: ClassVar[str] = MaskedLanguageModel.task
    predictor_class: ClassVar[type[Any]] = MaskedLanguageModel
    config_class: ClassVar[type[Any]] = MaskedConfig

    def list_files(self, config: MaskedConfig, paths: Sequence[str]) -> list[Path]:
        """The texts."""
        return text_files(paths)

    def split(self, config: MaskedConfig, files: Files) -> tuple[Split[PlainText], DataReport[TextReport]]:
        """No text is on both sides."""
        return split_texts(files, config.data.text, config.data.holdout)

    def texts_of(self, example: PlainText) -> tuple[str, ...]:
        """The text."""
        return (example.text,)

    def metadata(self, report: DataReport[TextReport]) -> None:
        """Tokens are all there is."""

    def read_metadata(self, folder: Path) -> None:
        """Tokens are all there is."""

    def encode(
        self,
        config: MaskedConfig,
        examples: Iterable[PlainText],
        tokenizer: PublishedTokenizer,
        metadata: None,
        report: TextReport,
    ) -> Iterator[Encoded]:
        """Without gaps, which come with the batches."""
        gap_of(tokenizer)  # before anything is written for nothing
        return encoded(examples, tokenizer, config.limit)

    def setup(self) -> None:
        """The score to monitor is the loss over all validation texts, with the same gaps always."""
        training, data = self.config.training, self.data
        self.monitor = Monitor("loss", higher_is_better=False)
        self.masking = Masking(self.config.masking, data.tokenizer)
        self.batches = MaskedLoader(TextLoader(data.train, training.batch_tokens, seed=training.seed), self.masking)
        self.validation = MaskedLoader(TextLoader(data.valid, training.batch_tokens), self.masking)

    def predictor(self, module: nn.Module) -> MaskedLanguageModel:
        """A module together with its tokenizer."""
        tokenizer = self.data.tokenizer
        settings = MaskedLanguageModelSettings(mask=gap_name(tokenizer))
        return MaskedLanguageModel(self.model_config(), module, settings, tokenizer)

    def loss(self, module: nn.Module, batch: MaskedBatch) -> Loss:
        """Sums over the tokens to be guessed."""
        smoothing = self.config.training.label_smoothing
        return cross_entropy(_forward(module, batch), batch.targets, batch.counted, smoothing=smoothing)

    def validate(self, module: nn.Module) -> dict[str, float]:
        """Loss per token, perplexity, and how many of the tokens are guessed right, in percent."""
        loss, right, _ = score(module, self.validation)
        return {"loss": loss, "perplexity": math.exp(min(loss, MAX_LOSS)), "accuracy": right}

    def final_evaluation(self, predictor: MaskedLanguageModel) -> dict[str, Any]:
        """The same; beside it, what is reached by knowing only how frequent each token is."""
        loss, right, n = score(predictor.module, self.validation)
        plain_loss, plain_right = self._by_frequency()
        scores = {
            **scores_of(loss, right, n),
            "frequency_perplexity": Score("perplexity by frequency alone", math.exp(min(plain_loss, MAX_LOSS))),
            "frequency_accuracy": Score("accuracy by frequency alone", plain_right),
        }
        said = {name: one.to_dict() for name, one in scores.items()}
        return {"validation": {"n": len(self.data.valid), "masked": n, "scores": said}}

    def identity(self) -> dict[str, str]:
        """The gaps too."""
        return {**super().identity(), "masking": settings_json(self.config.masking)}

    def title(self, predictor: MaskedLanguageModel) -> str:
        """What it does."""
        return "masked words"

    def card_notes(self, predictor: MaskedLanguageModel, metrics: Mapping[str, Any]) -> list[str]:
        """What was measured, and what it is good for."""
        return [
            f"Of these texts, {metrics['validation']['masked']:,} tokens were to be guessed, the same ones every time.",
            f"A gap is written {predictor.settings.mask}. A classifier begins with these weights: "
            "`heedful train classification --init-from` and this folder.",
        ]

    def evaluate(self, predictor: MaskedLanguageModel, files: Files) -> dict[str, Any]:
        """Loss and accuracy over all lines of the files, with the usual share of gaps, the same every time."""
        tokenizer, limit = predictor.tokenizer, predictor.module.encoder.positions.limit
        texts = (one for one in texts_of(text_files(files.train), "line") if one.text.strip())
        with TemporaryDirectory() as folder:
            try:
                rows = encoded(texts, tokenizer, limit)
                store = TokenStore.write(Path(folder) / "texts", rows, vocab_size=tokenizer.largest + 1)
            except DataError as error:
                raise DataError(f"{', '.join(files.train)}: there is no text to evaluate on ({error})") from None
            masked = MaskedLoader(TextLoader(store, BATCH_TOKENS), Masking(MaskingConfig(), tokenizer))
            loss, right, n = score(predictor.module, masked)
            scores = {name: one.to_dict() for name, one in scores_of(loss, right, n).items()}
            return {"n": len(store), "masked": n, "scores": scores}

    def _by_frequency(self) -> tuple[float, float]:
        """Each token's share of the training words, one added to every count."""
        train, words = self.data.train, self.masking.is_word
        counts = words.astype(np.int64)
        for start in range(0, len(train.flat), CHUNK):
            counts += np.bincount(train.flat[start : start + CHUNK], minlength=len(words)) * words
        total, commonest, loss, right, n = int(counts.sum()), int(counts.argmax()), 0.0, 0, 0
        for batch in self.validation.fixed():
            targets = batch.targets[batch.counted].numpy()
            loss -= float(np.log(counts[targets] / total).sum())
            right, n = right + int((targets == commonest).sum()), n + len(targets)
        return loss / n, 100.0 * right / n


def encoded(texts: Iterable[PlainText], tokenizer: PublishedTokenizer, limit: int) -> Iterator[Encoded]:
    """Nothing is lost: a text that is too long becomes several rows."""
    for one in texts:
        for ids in chunks(tokenizer, tokenizer.encode(one.text), limit):
            yield ids, (), (one.file, one.line)


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
        "perplexity": Score("perplexity", math.exp(min(loss, MAX_LOSS))),
        "accuracy": Score("accuracy of masked tokens", right, interval=share_interval(right, n)),
    }


def _forward(module: nn.Module, batch: MaskedBatch) -> Tensor:
    """Logits (P, V), of the tokens to be guessed alone."""
    keep = padding(batch.keep, lengths=batch.lengths, at_the_end=True)
    logits: Tensor = module(batch.ids, keep, places=batch.places)
    return logits
