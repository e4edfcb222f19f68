"""The predictor of text classification, its settings, and the attention map of a text."""

import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import torch
from torch import Tensor

from ...config import Config, read_mapping
from ...data.published_tokenizer import PublishedTokenizer, truncate
from ...errors import ConfigError, DataError, unknown
from ...families import Imported
from ...lens.recorder import record
from ...lens.report import AttentionMap
from ..bundle import CONFIG, Bundle
from ..predictor import OutputKind
from ..text_encoder import EncodedText, InspectedText, Text, TextEncoderPredictor, checkpoint_labels, display_text
from .ngrams import NgramClassifier

NGRAMS_FILE = "ngrams.safetensors"
Meaning = Literal["one", "several", "score"]
USUAL_PROBLEM = "single_label_classification"
PROBLEMS: dict[str, Meaning] = {  # as transformers names what the numbers mean
    USUAL_PROBLEM: "one",
    "multi_label_classification": "several",
    "regression": "score",
}


@dataclass(frozen=True, kw_only=True)
class ClassifierSettings(Config):
    """The names of the classes, in the order of the model's output, and what its numbers mean.

    Of a text "one" class holds, or each on its own may hold ("several"); or the numbers are a "score" as they are.
    Of a text with more than `max_tokens` (None: than the model reads), only the beginning is read if it may be `cut`;
    otherwise it is refused. Each answer is about so many `texts`: one, or two that belong together; None, which models
    from elsewhere have, takes both.
    """

    title: ClassVar[str] = "classification"

    labels: tuple[str, ...]
    means: Meaning = "one"
    max_tokens: int | None = None
    cut: bool = False
    texts: Literal[1, 2] | None = None
    ngram_weight: float = 0.0  # The weight of the linear model over n-grams in the answer; the network has the rest

    def check(self) -> None:
        self.require_positive("max_tokens")
        self.require(0 <= self.ngram_weight <= 1, f"ngram_weight is from 0 to 1, not {self.ngram_weight}")
        twice = sorted(label for label, times in Counter(self.labels).items() if times > 1)
        self.require(not twice, f"the labels {', '.join(twice)} occur twice")


MEANINGS: dict[str, Callable[[Tensor], Tensor]] = {
    "one": lambda logits: logits.softmax(dim=-1),
    "several": torch.sigmoid,
    "score": lambda logits: logits,
}


class Classifier(TextEncoderPredictor[dict[str, float]]):
    """Classifies texts or pairs of texts: what `heedful.load` returns for text classification.

    `predict` returns the probability (or the score) of every class by name for each text, the most likely first.
    """

    task: ClassVar[str] = "classification"
    head: ClassVar[str] = "classes"
    settings_class: ClassVar[type[Config]] = ClassifierSettings
    output_kind: ClassVar[OutputKind] = "labels"
    accepts_pairs: ClassVar[bool] = True
    ngrams: NgramClassifier | None = None  # a baseline that has a part in the answer, where it has a weight

    @property
    def takes_pairs(self) -> bool:
        """True if every item is a pair of texts."""
        return bool(self.settings.texts == 2)

    def predict_valid(self, texts: Sequence[Text]) -> list[dict[str, float]]:
        meant = MEANINGS[self.settings.means]
        outputs = self.outputs(texts)
        if n_truncated := sum(map(self._is_truncated, texts)):
            message = (
                f"{n_truncated:,} of {len(texts):,} texts are longer than {self.limit:,} tokens and were truncated"
            )
            warnings.warn(message, stacklevel=2)
        answers = [meant(output) for output in outputs]
        if self.ngrams is not None and answers:
            baseline = self.ngrams.log_probabilities([(text,) if isinstance(text, str) else text for text in texts])
            answers = list(pooled(torch.stack(outputs), baseline, self.settings.ngram_weight))
        return [
            dict(sorted(zip(self.settings.labels, answer.tolist(), strict=True), key=lambda pair: -pair[1]))
            for answer in answers
        ]

    def save_files(self, folder: Path) -> Sequence[str]:
        """Write the linear model over n-grams, if it has a part in the answer."""
        names = super().save_files(folder)
        if self.ngrams is None:
            return names
        self.ngrams.save(folder / NGRAMS_FILE)
        return (*names, NGRAMS_FILE)

    @classmethod
    def from_bundle(cls, folder: Path, bundle: Bundle) -> Self:
        classifier = super().from_bundle(folder, bundle)
        if classifier.settings.ngram_weight:
            classifier.ngrams = NgramClassifier.load(folder / NGRAMS_FILE, len(classifier.settings.labels))
        return classifier

    def prepared(self, text: Any) -> EncodedText:
        """Return the token ids of one text or two, as many as the model was trained on."""
        two = isinstance(text, tuple) and len(text) == 2
        if self.settings.texts == 2 and not two:
            raise DataError("this model reads two texts that belong together; give a pair: (first, second)")
        if self.settings.texts == 1 and two:
            raise DataError("this model reads one text at a time, and a pair was given; give one text")
        return super().prepared(text)

    def fit_length(self, ids: list[int], *, is_pair: bool) -> list[int]:
        """Truncate a single text if the settings allow it; refuse pairs, since either text might lose its end."""
        if self.settings.cut and not is_pair and self.limit is not None and len(ids) > self.limit:
            return truncate(self.tokenizer, ids, self.limit)
        return super().fit_length(ids, is_pair=is_pair)

    def _is_truncated(self, text: Text) -> bool:
        """Return True for a text longer than the limit, tokenized again because threads may share this model."""
        if not self.settings.cut or not isinstance(text, str) or self.limit is None:
            return False
        return len(self.tokenizer.encode(text)) > self.limit

    def run_inspected(self, item: Any) -> InspectedText:
        """Return the probability of every class; a model of scores has none, and its answer is its first score."""
        (shares,) = self.predict([item])
        label, share = next(iter(shares.items()))
        if self.settings.means == "score":
            return InspectedText(self.prepared(item), f"{label}: {share:.6g}")
        return InspectedText(self.prepared(item), label, shares)

    @classmethod
    def checkpoint_settings(
        cls, checkpoint: Imported, folder: Path, tokenizer: PublishedTokenizer
    ) -> ClassifierSettings:
        """Return the classes and how the model's numbers are interpreted."""
        n_classes: int = checkpoint.module.head.out_proj.out_features
        problem = read_mapping(folder / CONFIG).get("problem_type") or (
            "regression" if n_classes == 1 else USUAL_PROBLEM
        )
        if problem not in PROBLEMS:
            raise ConfigError(f"{folder}: {unknown('problem_type', problem, PROBLEMS)}")
        return ClassifierSettings(labels=checkpoint_labels(checkpoint), means=PROBLEMS[problem])

    def hf_files(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Add to the model's config how its numbers are interpreted; warn that only the network is published."""
        if weight := self.settings.ngram_weight:
            reason = f"whose share in this model's answer is {100 - 100 * weight:.0f} %"
            warnings.warn(f"the export has the network alone, {reason}; train with --set combine=false", stacklevel=2)
        problem = next(name for name, meaning in PROBLEMS.items() if meaning == self.settings.means)
        return {CONFIG: {**config, "problem_type": problem}}


def pooled(logits: Tensor, baseline: Tensor, weight: float) -> Tensor:
    """Return probabilities (N, C): the weighted geometric mean of the network's and of a baseline's, scaled to 1.

    Args:
        logits: the network's (N, C).
        baseline: log-probabilities (N, C).
        weight: the baseline's, from 0 to 1.
    """
    return torch.lerp(logits.log_softmax(dim=-1), baseline.to(logits.dtype), weight).softmax(dim=-1)


def attention_map(classifier: Classifier, text: Text) -> AttentionMap:
    """Return the attention between all tokens of a text, for each head of the last layer."""
    encoded, last = classifier.prepared(text), len(classifier.module.encoder.layers) - 1
    with record(classifier.module, layers=last) as recording:
        classifier.run_encoded([encoded])
    tokens = [classifier.tokenizer.token_of(index) for index in encoded.ids]
    return AttentionMap(display_text(text), tokens, tokens, recording.encoder[last][0].tolist())
