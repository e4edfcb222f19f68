"""Token classification: CoNLL columns, a text encoder with a head for each token, entity-level F1.

Shapes: B windows, T tokens, C tags.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from ...config import FamilyConfig, read_mapping, write_mapping
from ...core import padding
from ...data.labeled_texts import text_digest
from ...data.published_tokenizer import PublishedTokenizer
from ...data.report import TextReport
from ...data.store import Encoded
from ...data.tagged import TaggedSentence, read_tagged, tagged_files
from ...data.text_batch import TagBatch, TextBatch, TextLoader
from ...errors import ConfigError, DataError
from ...lens.report import ScoredSample
from ...training.config import TrainingConfig
from ...training.loss import Loss, cross_entropy
from ...training.objective import Monitor
from ..class_scores import ClassScore, accuracy, confusion_matrix, each_class, macro_f1
from ..run import DataReport, Files, TooLittleDataError
from ..run.task import DATA, Split, split_examples
from ..scoring import Score
from ..span_scores import entity_scores, marks_entities
from ..text_encoder import (
    FINE_TUNING,
    FROM_SCRATCH,
    LABELS,
    TextConfig,
    TextEncoderConfig,
    TextEncoderTask,
    read_examples,
    write_examples,
)
from .predictor import STRIDE, Tagger, TaggerSettings, first_tokens

SENTENCES = "sentences.jsonl"  # the validation sentences with their tags
SAMPLES = 200  # validation sentences that metrics.json shows
CHUNK = 256  # sentences evaluated at once
OUTSIDE = "O"


@dataclass(frozen=True, kw_only=True)
class TaggedTextConfig(TextConfig):
    """Adds how many tokens the windows of a long sentence share."""

    stride: int = STRIDE

    def check(self) -> None:
        super().check()
        self.require(self.stride >= 0, f"stride must be 0 or more, not {self.stride}")


@dataclass(frozen=True, kw_only=True)
class TaggingConfig(TextEncoderConfig):
    """With which sentences, tokenizer, model and training; from scratch, or from a `base`."""

    head: ClassVar[str] = "token-classes"
    from_scratch: ClassVar[TrainingConfig] = FROM_SCRATCH
    fine_tuning: ClassVar[TrainingConfig] = FINE_TUNING

    data: TaggedTextConfig = field(default_factory=TaggedTextConfig)
    training: TrainingConfig = field(default_factory=lambda: FROM_SCRATCH)

    @property
    def stride(self) -> int:
        """No more than half a window."""
        return min(self.data.stride, self.limit // 2)


class TagSet(NamedTuple):
    """The tags of a corpus, and whether its words are single characters."""

    labels: tuple[str, ...]
    characters: bool


class TaggingTask(TextEncoderTask[TaggingConfig, TaggedSentence, TagSet, TextBatch]):
    """Which tag every word of a sentence has; the metadata is the set of tags."""

    name: ClassVar[str] = Tagger.task
    predictor_class: ClassVar[type[Any]] = Tagger
    config_class: ClassVar[type[Any]] = TaggingConfig
    example_name: ClassVar[str] = "sentences"
    artifacts: ClassVar[tuple[str, ...]] = (
        *TextEncoderTask.artifacts,
        *(f"{DATA}/{name}" for name in (SENTENCES, LABELS)),
    )

    # From files to windows.

    def list_files(self, config: TaggingConfig, paths: Sequence[str]) -> list[Path]:
        """Columns and JSON lines."""
        return tagged_files(paths)

    def data_settings(self, config: TaggingConfig, files: Files) -> dict[str, str]:
        """Columns, windows, tokenizer, base."""
        return {"the columns": json.dumps(files.columns), **super().data_settings(config, files)}

    def split(self, config: TaggingConfig, files: Files) -> tuple[Split[TaggedSentence], DataReport[TextReport]]:
        """No sentence is on both sides."""

        def read(paths: Sequence[str], report: TextReport | None) -> Iterator[TaggedSentence]:
            report = TextReport() if report is None else report
            for sentence in read_tagged(paths, columns=files.columns, report=report):
                report.keep(sentence.text)
                report.labels.update(sentence.tags)
                if any(not word.strip() for word in sentence.words):
                    report.extra["characters_as_words"] = True
                yield sentence

        def drop(report: TextReport, reason: str, sentence: TaggedSentence) -> None:
            report.drop_kept(reason, sentence.place, sentence.text)
            report.labels.subtract(sentence.tags)

        return split_examples(
            files,
            read,
            TextReport,
            digest=lambda sentence: text_digest(sentence.text),
            drop=drop,
            wanted=config.data.holdout,
        )

    def texts_of(self, example: TaggedSentence) -> tuple[str, ...]:
        """The sentence."""
        return (example.text,)

    def metadata(self, report: DataReport[TextReport]) -> TagSet:
        """Every tag that is read, O first."""
        labels = sorted(
            (tag for tag, count in report.train.labels.items() if count), key=lambda tag: (tag != OUTSIDE, tag)
        )
        if len(labels) < 2:
            raise TooLittleDataError(f"{len(labels)} tags are too few to learn from; two are the least", report)
        return TagSet(tuple(labels), bool(report.train.extra.get("characters_as_words")))

    def read_metadata(self, folder: Path) -> TagSet:
        """From the run's data folder."""
        try:
            values = read_mapping(folder / LABELS)
            return TagSet(tuple(values["labels"]), bool(values["characters"]))
        except (ConfigError, KeyError, TypeError) as error:
            raise DataError(f"{folder / LABELS}: the tags cannot be read: {error}") from None

    def write_metadata(self, folder: Path, metadata: TagSet) -> None:
        """Into the run's data folder."""
        write_mapping(folder / LABELS, {"labels": list(metadata.labels), "characters": metadata.characters})

    def store_vocab_size(self, config: TaggingConfig, tokenizer: PublishedTokenizer, metadata: TagSet) -> int:
        """Ids, and the numbers of the tags beside them."""
        return max(tokenizer.largest + 1, len(metadata.labels) + 1)

    def encode(
        self,
        config: TaggingConfig,
        examples: Iterable[TaggedSentence],
        tokenizer: PublishedTokenizer,
        metadata: TagSet,
        report: TextReport,
    ) -> Iterator[Encoded]:
        """A row for each window: its ids, and for each of them the number of its tag, counted from 1.

        The first token of a word has the word's tag; every other token has 0 and is not learned.
        """
        numbers = {label: number for number, label in enumerate(metadata.labels, 1)}
        for sentence in examples:
            unknown = next((tag for tag in sentence.tags if tag not in numbers), None)
            if unknown is not None:
                raise DataError(f"{sentence.place}: the tag {unknown!r} does not occur in the training data")
            for window in tokenizer.encode_windows(sentence.text, max_tokens=config.limit, stride=config.stride):
                targets = [0] * len(window.ids)
                for place, tag in zip(first_tokens(sentence.spans, window), sentence.tags, strict=True):
                    if place is not None and not targets[place]:
                        targets[place] = numbers[tag]
                yield window.ids, targets, (sentence.file, sentence.line)

    def write_examples(self, folder: Path, split: Split[TaggedSentence]) -> None:
        """The validation sentences as they are, since scores are of words."""
        write_examples(folder / SENTENCES, split.valid())

    # The objective.

    def model_config(self) -> FamilyConfig:
        """For the vocabulary and the tags."""
        return self.config.model_for(self.data.tokenizer.largest + 1, n_classes=len(self.labels))

    def setup(self) -> None:
        """Batches of windows, and the validation sentences."""
        size = self.config.training.batch_tokens
        self.batches = TextLoader(self.data.train, size, seed=self.config.training.seed, batch_class=TagBatch)
        self.validation = TextLoader(self.data.valid, size, batch_class=TagBatch)
        self.monitor = Monitor("f1" if marks_entities(self.labels) else "accuracy", higher_is_better=True)
        self.sentences = read_examples(self.data.folder / SENTENCES, _sentence)

    @property
    def labels(self) -> tuple[str, ...]:
        """The tags, in the order of their numbers."""
        return self.data.metadata.labels

    def loss(self, module: nn.Module, batch: TextBatch) -> Loss:
        """The cross-entropy of the tags, over the tokens that have one."""
        keep = padding(batch.keep, lengths=batch.lengths, at_the_end=True)
        logits: Tensor = module(batch.ids, keep)  # (B, T, C)
        smoothing = self.config.training.label_smoothing
        return cross_entropy(logits, batch.labels.clamp(min=0), batch.labels >= 0, smoothing=smoothing)

    @torch.inference_mode()
    def validate(self, module: nn.Module) -> dict[str, float]:
        """The loss of all windows, and the scores of all validation sentences."""
        device = next(module.parameters()).device
        total = count = torch.zeros((), device=device)
        for batch in self.validation.in_order():
            loss = self.loss(module, batch.to(device))
            total, count = total + loss.plain, count + loss.n
        scores, _ = tag_scores(self._predicted(self.predictor(module)), self._true, self.labels)
        return {"loss": float(total / count), **{name: score.value for name, score in scores.items()}}

    # The result.

    def predictor(self, module: nn.Module) -> Tagger:
        """A module together with its tokenizer and the names of its tags."""
        settings = TaggerSettings(
            labels=self.labels,
            max_tokens=self.config.limit,
            stride=self.config.stride,
            characters=self.data.metadata.characters,
        )
        return Tagger(self.model_config(), module, settings, self.data.tokenizer)

    def final_evaluation(self, predictor: Tagger) -> dict[str, Any]:
        """Every score of all validation sentences; beside them, what each token's commonest tag would reach."""
        predicted = self._predicted(predictor)
        scores, classes = tag_scores(predicted, self._true, self.labels)
        scores["baseline"] = self._baseline()
        return {
            "validation": {
                "n": len(self.sentences),
                "scores": {name: score.to_dict() for name, score in scores.items()},
                "classes": [asdict(label) for label in classes],
            },
            "samples": [
                {
                    "source": sentence.text,
                    "reference": " ".join(sentence.tags),
                    "output": " ".join(tags),
                    "score": 100.0 * float(np.mean([a == b for a, b in zip(tags, sentence.tags, strict=True)])),
                    "exact": tuple(tags) == sentence.tags,
                }
                for sentence, tags in list(zip(self.sentences, predicted, strict=True))[:SAMPLES]
            ],
        }

    def evaluate(self, predictor: Tagger, files: Files) -> dict[str, Any]:
        """Every score of the sentences of the files."""
        sentences = list(read_tagged(files.train, columns=files.columns))
        if not sentences:
            raise DataError("there is no tagged sentence to evaluate on")
        predicted = predict_tags(predictor, sentences)
        scores, classes = tag_scores(predicted, [sentence.tags for sentence in sentences], predictor.settings.labels)
        return {
            "n": len(sentences),
            "scores": {name: score.to_dict() for name, score in scores.items()},
            "classes": [asdict(label) for label in classes],
        }

    def title(self, predictor: Tagger) -> str:
        """What it marks."""
        labels = predictor.settings.labels
        names = sorted({label.partition("-")[2] or label for label in labels if label != OUTSIDE})
        return (
            f"{'entities' if marks_entities(labels) else 'tags'}: {', '.join(names[:12])}{', …' if names[12:] else ''}"
        )

    def card_notes(self, predictor: Tagger, metrics: Mapping[str, Any]) -> list[str]:
        """The scores of each label, and how long texts are read."""
        rows = [
            f"| {row['label']} | {row['n']:,} | {row['precision']:.1f} | {row['recall']:.1f} | {row['f1']:.1f} |"
            for row in metrics["validation"]["classes"]
        ]
        return [
            "| label | count | precision | recall | F1 |",
            "|---|---|---|---|---|",
            *rows,
            "",
            f"A text of more than {predictor.settings.max_tokens} tokens is read in windows.",
        ]

    def report_sections(self, predictor: Tagger, metrics: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        """Sentences with their tags."""
        return {"samples": [ScoredSample(**sample) for sample in metrics["samples"]]}

    @property
    def _true(self) -> list[tuple[str, ...]]:
        return [sentence.tags for sentence in self.sentences]

    def _predicted(self, predictor: Tagger) -> list[list[str]]:
        return predict_tags(predictor, self.sentences)

    def _baseline(self) -> Score:
        """The score of the tag that each token most often has in the training data."""
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
        scores, _ = tag_scores(predicted, true, self.labels)
        return Score(
            f"{scores[self.monitor.name].metric} of each token's commonest tag", scores[self.monitor.name].value
        )


def predict_tags(predictor: Tagger, sentences: Sequence[TaggedSentence]) -> list[list[str]]:
    """The predicted tag of every word."""
    return [
        words.tags
        for start in range(0, len(sentences), CHUNK)
        for words in predictor.tag_words([sentence.words for sentence in sentences[start : start + CHUNK]])
    ]


def tag_scores(
    predicted: Sequence[Sequence[str]], true: Sequence[Sequence[str]], labels: Sequence[str]
) -> tuple[dict[str, Score], list[ClassScore]]:
    """Entity-level F1 where the tags mark entities, otherwise accuracy and macro F1 of the words' tags."""
    numbers = {
        label: number for number, label in enumerate(dict.fromkeys((*labels, *(t for tags in true for t in tags))))
    }
    matrix = confusion_matrix(
        [numbers[tag] for tags in true for tag in tags],
        [numbers[tag] for tags in predicted for tag in tags],
        len(numbers),
    )
    right = Score("accuracy of words", accuracy(matrix))
    if marks_entities(labels):
        scores, classes = entity_scores(predicted, true)
        return {**scores, "accuracy": right}, classes
    return {"accuracy": right, "macro_f1": Score("macro F1", macro_f1(matrix))}, each_class(matrix, list(numbers))


def _sentence(values: dict[str, Any]) -> TaggedSentence:
    spans = tuple((int(start), int(stop)) for start, stop in values["spans"])
    return TaggedSentence(**{**values, "spans": spans, "tags": tuple(values["tags"])})
