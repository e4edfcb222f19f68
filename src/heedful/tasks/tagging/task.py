"""Token classification: CoNLL columns, a text encoder with a head for each token, entity-level F1.

Shapes: B windows, T tokens, C tags.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from torch import nn

from ...data.published_tokenizer import PublishedTokenizer
from ...data.report import TextReport
from ...data.tagged import TaggedSentence, read_tagged, tagged_files
from ...data.text_batch import TagBatch, TextBatch
from ...errors import DataError
from ...training.loss import Loss, cross_entropy
from ...training.objective import Monitor
from ..class_scores import class_table, marks_entities, tag_scores
from ..rivals import Rival
from ..run import DataReport, TooLittleDataError
from ..scoring import Score
from ..text_encoder_task import EncodedRow, TextEncoderConfig, TextMetadata, WindowedTextConfig, WindowTask
from .predictor import Tagger, TaggerSettings, first_tokens

OUTSIDE = "O"


@dataclass(frozen=True, kw_only=True)
class TaggingConfig(TextEncoderConfig):
    """The settings of a run, from scratch or from a `base`."""

    head: ClassVar[str] = "token-classes"

    data: WindowedTextConfig = field(default_factory=WindowedTextConfig)


class TaggingTask(WindowTask[TaggingConfig, TaggedSentence]):
    """Token classification: which tag each word of a sentence has."""

    name: ClassVar[str] = Tagger.task
    predictor_class: ClassVar[type[Any]] = Tagger
    config_class: ClassVar[type[Any]] = TaggingConfig
    batch_class: ClassVar[type[TextBatch]] = TagBatch
    example_name: ClassVar[str] = "sentences"
    counted: ClassVar[str] = "words"
    rivals: ClassVar[tuple[Rival, ...]] = (Rival("baseline", ("f1", "accuracy")),)

    # From files to windows.

    def list_files(self, config: TaggingConfig, paths: Sequence[str]) -> list[Path]:
        return tagged_files(paths)

    def read(self, columns: Sequence[str] | None, paths: Sequence[str], report: TextReport) -> Iterator[TaggedSentence]:
        """Read sentences; count their tags in the report."""
        for sentence in read_tagged(paths, columns=columns, report=report):
            report.keep(sentence.text)
            report.labels.update(sentence.tags)
            if any(not word.strip() for word in sentence.tokens):
                report.extra["characters_as_words"] = True
            yield sentence

    def drop(self, report: TextReport, reason: str, example: TaggedSentence) -> None:
        """Count a sentence as dropped, and its tags as well."""
        super().drop(report, reason, example)
        report.labels.subtract(example.tags)

    def metadata(self, report: DataReport[TextReport]) -> TextMetadata:
        """Return every tag of the training data, O first."""
        labels = sorted(
            (tag for tag, count in report.train.labels.items() if count), key=lambda tag: (tag != OUTSIDE, tag)
        )
        if len(labels) < 2:
            raise TooLittleDataError(f"{len(labels)} tags are too few to learn from; at least two are needed", report)
        return TextMetadata(labels=tuple(labels), characters=bool(report.train.extra.get("characters_as_words")))

    def encode(
        self, example: TaggedSentence, tokenizer: PublishedTokenizer, metadata: TextMetadata, report: TextReport
    ) -> Iterator[EncodedRow]:
        """Yield a row for each window: its ids, and for each of them the number of its tag, counted from 1.

        The first token of a word has the word's tag; every other token has 0 and is not learned.
        """
        numbers = {label: number for number, label in enumerate(metadata.labels, 1)}
        unknown = next((tag for tag in example.tags if tag not in numbers), None)
        if unknown is not None:
            raise DataError(f"{example.place}: the tag {unknown!r} does not occur in the training data")
        limit = self.config.limit
        stride = min(self.config.data.stride, limit // 2)  # as the predictor has it
        for window in tokenizer.encode_windows(example.text, max_tokens=limit, stride=stride):
            targets = [0] * len(window.ids)
            for place, tag in zip(first_tokens(example.spans, window), example.tags, strict=True):
                if place is not None and not targets[place]:
                    targets[place] = numbers[tag]
            yield window.ids, targets

    def parse_example(self, values: dict[str, Any]) -> TaggedSentence:
        """Return a sentence with its words as spans."""
        spans = tuple((int(start), int(stop)) for start, stop in values["spans"])
        return TaggedSentence(**{**values, "spans": spans, "tags": tuple(values["tags"])})

    # The objective.

    def setup(self) -> None:
        """Monitor entity F1, or accuracy where the tags mark no entities."""
        super().setup()
        self.monitor = Monitor("f1" if marks_entities(self.labels) else "accuracy", higher_is_better=True)

    def loss(self, module: nn.Module, batch: TextBatch) -> Loss:
        """Return the cross-entropy of the tags over the tokens that have one."""
        logits = self.forward(module, batch)  # (B, T, C)
        smoothing = self.config.training.label_smoothing
        return cross_entropy(logits, batch.labels.clamp(min=0), batch.labels >= 0, smoothing=smoothing)

    def item_of(self, example: TaggedSentence) -> list[str]:
        return example.tokens

    def scores(self, predictor: Tagger, examples: Sequence[TaggedSentence]) -> dict[str, Any]:
        return tag_scores(predict_tags(predictor, examples), _true_tags(examples), predictor.settings.labels)

    # The result.

    def predictor(self, module: nn.Module) -> Tagger:
        settings = TaggerSettings(
            labels=self.labels,
            max_tokens=self.config.limit,
            stride=self.config.data.stride,
            characters=self.data.metadata.characters,
        )
        return Tagger(self.model_config(), module, settings, self.data.tokenizer)

    def final_evaluation(self, predictor: Tagger) -> dict[str, Any]:
        """Score all validation sentences; as a baseline, give each token the tag it most often has in training."""
        predicted = predict_tags(predictor, self.examples)
        validation = tag_scores(predicted, _true_tags(self.examples), self.labels)
        validation["scores"]["baseline"] = self._baseline().to_dict()
        return {
            "validation": validation,
            "samples": [
                {
                    "source": sentence.text,
                    "reference": " ".join(sentence.tags),
                    "output": " ".join(tags),
                    "score": 100.0 * float(np.mean([a == b for a, b in zip(tags, sentence.tags, strict=True)])),
                    "exact": tuple(tags) == sentence.tags,
                }
                for sentence, tags in islice(zip(self.examples, predicted, strict=True), self.n_samples)
            ],
        }

    def title(self, predictor: Tagger) -> str:
        labels = predictor.settings.labels
        names = sorted({label.partition("-")[2] or label for label in labels if label != OUTSIDE})
        return (
            f"{'entities' if marks_entities(labels) else 'tags'}: {', '.join(names[:12])}{', …' if names[12:] else ''}"
        )

    def card_notes(self, predictor: Tagger, metrics: Mapping[str, Any]) -> list[str]:
        return [
            *class_table(metrics["validation"]["classes"], "label", "count"),
            "",
            f"A text of more than {predictor.settings.max_tokens} tokens is read in windows.",
        ]

    def _baseline(self) -> Score:
        """Return the score of giving each token the tag it most often has in the training data."""
        counts: dict[int, Counter[int]] = {}
        for row in range(len(self.data.train)):
            for token, tag in zip(*self.data.train[row], strict=True):
                if tag:
                    counts.setdefault(int(token), Counter())[int(tag)] += 1
        common = {token: tags.most_common(1)[0][0] for token, tags in counts.items()}
        predicted, true = [], []
        for row in range(len(self.data.valid)):
            pairs = [(int(token), int(tag)) for token, tag in zip(*self.data.valid[row], strict=True) if tag]
            predicted.append([self.labels[common.get(token, 1) - 1] for token, _ in pairs])
            true.append([self.labels[tag - 1] for _, tag in pairs])
        score = tag_scores(predicted, true, self.labels)["scores"][self.monitor.name]
        return Score(f"{score['metric']} of each token's most frequent tag", score["value"])


def predict_tags(predictor: Tagger, sentences: Sequence[TaggedSentence]) -> list[list[str]]:
    """Return the predicted tag of every word."""
    return [tagged.tags for tagged in predictor.tag_words([sentence.tokens for sentence in sentences])]


def _true_tags(sentences: Sequence[TaggedSentence]) -> list[Sequence[str]]:
    return [sentence.tags for sentence in sentences]
