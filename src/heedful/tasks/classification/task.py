"""Classification: labeled texts, a text encoder with a head for classes, cross-entropy, accuracy and F1.

Shapes: N texts, C classes.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ...config import FamilyConfig, write_mapping
from ...core import padding
from ...data.labeled_texts import LabeledText, labeled_files, read_labeled_texts
from ...data.published_tokenizer import PublishedTokenizer
from ...data.report import TextReport
from ...data.store import Encoded, TokenStore
from ...data.text_batch import TextBatch, TextLoader
from ...errors import ConfigError, DataError
from ...lens.report import Confusion, ScoredSample
from ...training.loss import Loss, loss_of
from ...training.objective import Monitor
from ..class_scores import ClassScores, class_scores
from ..predictor import in_chunks, located
from ..run import DataReport, Files, TrainingData
from ..run.task import DATA, Split, left_out
from ..scoring import Score
from ..text_encoder import LABELS, Text, TextEncoderConfig, TextEncoderTask, display_text, read_labels, uses_segments
from .data import encoded, labels_of, number_of, split_labelled, targets
from .predictor import Classifier, ClassifierSettings, attention_map

SAMPLES = 200  # validation texts that metrics.json shows
MAX_TITLE_LABELS = 12
MAX_ATTENTION_MAPS = 2  # texts whose attention is drawn
MAX_MAP_TOKENS = 30
CHUNK = 1024  # texts evaluated at once


@dataclass(frozen=True, kw_only=True)
class ClassificationConfig(TextEncoderConfig):
    """With which texts, pieces, model and training; from scratch, or from a `base`."""

    head: ClassVar[str] = "classes"
    supports_r_drop: ClassVar[bool] = True


LabelledData = TrainingData[TokenStore, PublishedTokenizer, tuple[str, ...]]


class ClassificationTask(TextEncoderTask[ClassificationConfig, LabeledText, tuple[str, ...], TextBatch]):
    """Which class a text, or a pair of texts, belongs to. The metadata of the data is the names of the classes."""

    name: ClassVar[str] = Classifier.task
    predictor_class: ClassVar[type[Any]] = Classifier
    config_class: ClassVar[type[Any]] = ClassificationConfig
    artifacts: ClassVar[tuple[str, ...]] = (*TextEncoderTask.artifacts, f"{DATA}/{LABELS}")

    def list_files(self, config: ClassificationConfig, paths: Sequence[str]) -> list[Path]:
        """The tables."""
        return labeled_files(paths)

    def data_settings(self, config: ClassificationConfig, files: Files) -> dict[str, str]:
        """Columns, lengths, pieces."""
        return {"the columns": json.dumps(files.columns), **super().data_settings(config, files)}

    def split(self, config: ClassificationConfig, files: Files) -> tuple[Split[LabeledText], DataReport[TextReport]]:
        """No text is on both sides."""
        return split_labelled(files, config.data.holdout)

    def texts_of(self, example: LabeledText) -> tuple[str, ...]:
        """One text, or two."""
        return example.texts

    def metadata(self, report: DataReport[TextReport]) -> tuple[str, ...]:
        """The classes."""
        return labels_of(report)

    def read_metadata(self, folder: Path) -> tuple[str, ...]:
        """The classes."""
        return read_labels(folder)

    def write_metadata(self, folder: Path, metadata: tuple[str, ...]) -> None:
        """The classes."""
        write_mapping(folder / LABELS, {"labels": metadata})

    def store_vocab_size(
        self, config: ClassificationConfig, tokenizer: PublishedTokenizer, metadata: tuple[str, ...]
    ) -> int:
        """A row holds its label, and where its second text begins."""
        return max(tokenizer.largest + 1, len(metadata), config.limit + 1)

    def encode(
        self,
        config: ClassificationConfig,
        examples: Iterable[LabeledText],
        tokenizer: PublishedTokenizer,
        metadata: tuple[str, ...],
        report: TextReport,
    ) -> Iterator[Encoded]:
        """A text that is too long is cut; two that are, are left out."""
        return encoded(examples, tokenizer, metadata, config.limit, report)

    def prepare(
        self, config: ClassificationConfig, files: Files, folder: Path, *, keep: bool = False
    ) -> tuple[LabelledData, DataReport[TextReport]]:
        """Tokenized once; of what is held out, as much is counted as is left."""
        data, report = super().prepare(config, files, folder, keep=keep)
        if report.valid is None:
            report.held_out = len(data.valid)
        return data, report

    def model_config(self) -> FamilyConfig:
        """With as many classes as there are."""
        return self.config.model_for(self.data.tokenizer.largest + 1, n_classes=len(self.labels))

    def setup(self) -> None:
        """The score to monitor is the accuracy over all validation texts."""
        training, data = self.config.training, self.data
        self.monitor = Monitor("accuracy", higher_is_better=True)
        self.batches = TextLoader(data.train, training.batch_tokens, seed=training.seed)
        self.validation = TextLoader(data.valid, training.batch_tokens)
        self.true: NDArray[np.int64] = targets(data.valid)[:, 0].astype(np.int64)
        segments = data.tokenizer.encode_pair("a", "a")[1]  # as `predict` will have them
        self.uses_segments = uses_segments(self.module, data.tokenizer) and 1 in segments

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes, in the order of their numbers."""
        return self.data.metadata

    @property
    def texts_per_example(self) -> Literal[1, 2] | None:
        """How many texts a row has; None where some have one and some two."""
        stores = (self.data.train, self.data.valid)
        pairs = np.concatenate([targets(store)[:, 1] < store.lengths[:, 0] for store in stores])
        return 2 if pairs.all() else None if pairs.any() else 1

    def predictor(self, module: nn.Module) -> Classifier:
        """A module together with the tokenizer and the names of the classes."""
        settings = ClassifierSettings(
            labels=self.labels, max_tokens=self.config.limit, cut=True, texts=self.texts_per_example
        )
        return Classifier(self.model_config(), module, settings, self.data.tokenizer)

    def loss(self, module: nn.Module, batch: TextBatch) -> Loss:
        """Sums over a batch's texts."""
        forward, training = partial(self._forward, module), self.config.training
        return loss_of(forward, batch, batch.labels, batch.real, training, drops=module.training)

    def validate(self, module: nn.Module) -> dict[str, float]:
        """Loss without smoothing, accuracy and macro F1, over all validation texts."""
        shares = self._probabilities(module)
        right = np.maximum(shares[np.arange(len(shares)), self.true], np.finfo(np.float64).tiny)
        found = class_scores(self.true.tolist(), shares, self.labels)
        return {"loss": float(-np.log(right).mean()), **{name: one.value for name, one in found.scores.items()}}

    def final_evaluation(self, predictor: Classifier) -> dict[str, Any]:
        """Every score of all validation texts; beside them, what always naming the commonest class would reach."""
        shares = self._probabilities(predictor.module)
        validation = class_scores(self.true.tolist(), shares, self.labels).to_dict()
        label, reached = self._commonest()
        validation["scores"]["commonest"] = Score(f"accuracy of always {label!r}", reached).to_dict()
        return {"validation": validation, "samples": self._samples(shares)}

    def identity(self) -> dict[str, str]:
        """The classes too."""
        return {**super().identity(), "labels": json.dumps(self.labels)}

    def title(self, predictor: Classifier) -> str:
        """The classes."""
        labels = predictor.settings.labels
        more = ", …" if len(labels) > MAX_TITLE_LABELS else ""
        return f"{len(labels)} classes: {', '.join(labels[:MAX_TITLE_LABELS])}{more}"

    def card_notes(self, predictor: Classifier, metrics: Mapping[str, Any]) -> list[str]:
        """What its probabilities are worth, what it confuses, what it does with long texts."""
        validation = metrics["validation"]
        each = [
            f"| {_cell(one['label'])} | {one['n']:,} | {one['precision']:.1f} | {one['recall']:.1f} | {one['f1']:.1f} |"
            for one in validation["classes"]
        ]
        return [
            "| class | texts | precision | recall | F1 |",
            "|---|---|---|---|---|",
            *each,
            "",
            f"Its probabilities lie {validation['calibration']:.1f} % from the truth (expected calibration error).",
            *_input_notes(predictor),
        ]

    def report_sections(self, predictor: Classifier, metrics: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        """Texts with their classes, which classes are confused, and what a few texts attend to."""
        validation, samples = metrics["validation"], metrics["samples"]
        surest = sorted((one for one in samples if one["exact"]), key=lambda one: -one["score"])
        inputs = (text for text in map(_input, surest) if _can_be_drawn(predictor, text))
        return {
            "samples": [_sample(one) for one in samples],
            "confusion": Confusion(validation["labels"], validation["confusion"]),
            "attention": [attention_map(predictor, text) for text in islice(inputs, MAX_ATTENTION_MAPS)],
        }

    def evaluate(self, predictor: Classifier, files: Files) -> dict[str, Any]:
        """Every score of all texts, as a user would ask; what is left out is said."""
        reading = TextReport()
        examples = read_labeled_texts(files.train, columns=files.columns, reading=reading)
        return evaluate_classifier(predictor, examples).to_dict() | left_out(reading)

    def _forward(self, module: nn.Module, batch: TextBatch) -> Tensor:
        segments = batch.segments if self.uses_segments else None
        keep = padding(batch.keep, lengths=batch.lengths, at_the_end=True)
        logits: Tensor = module(batch.ids, keep, segments=segments)
        return logits

    @torch.inference_mode()
    def _probabilities(self, module: nn.Module) -> NDArray[np.float64]:
        """(N, C), in the order of the validation texts."""
        device = next(module.parameters()).device
        shares = np.zeros((len(self.true), len(self.labels)))
        rows, found = list[int](), list[Tensor]()
        for batch in self.validation.in_order():
            rows += batch.rows
            found.append(self._forward(module, batch.to(device))[: len(batch.rows)].double().softmax(dim=-1))
        shares[rows] = torch.cat(found).cpu().numpy()
        return shares

    def _commonest(self) -> tuple[str, float]:
        """Of the training texts, and its share of the validation texts in percent."""
        best = int(np.bincount(targets(self.data.train)[:, 0]).argmax())
        return self.labels[best], 100.0 * float((self.true == best).mean())

    def _samples(self, shares: NDArray[np.float64]) -> list[dict[str, Any]]:
        """Texts spread evenly over all, as the tokeniser gives them back; the score is the named class's share."""
        count, labels = min(SAMPLES, len(shares)), self.labels
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
        ids, (_, second) = self.data.valid[row]
        decode = self.data.tokenizer.decode
        found = {"source": decode(ids[:second].tolist())}
        return found | {"second": decode(ids[second:].tolist())} if second < len(ids) else found


def evaluate_classifier(classifier: Classifier, examples: Iterable[LabeledText]) -> ClassScores:
    """One that cannot be read is refused, as is a class that was not learned: the score would be of another set."""
    labels = classifier.settings.labels
    if classifier.settings.means != "one":
        raise ConfigError("this classifier's classes do not exclude each other; it is not scored by the likeliest one")
    numbers = {label: number for number, label in enumerate(labels)}
    true, shares = list[int](), list[list[float]]()
    for several in in_chunks(examples, CHUNK):
        true += [number_of(one, numbers) for one in several]
        texts = [one.text if one.second is None else (one.text, one.second) for one in several]
        with located([one.place for one in several]):
            answers = classifier.predict(texts)
        shares += [[answer[label] for label in labels] for answer in answers]
    if not true:
        raise DataError("there is no labelled text to evaluate on")
    return class_scores(true, np.array(shares), labels)


def _input_notes(predictor: Classifier) -> Iterator[str]:
    """How texts are handed to it, and how long they may be."""
    if predictor.settings.texts == 2:
        yield "It reads two texts at once: `predict([(first, second)])`, or a line with a tab between them."
        yield f"Two with more than {predictor.limit} tokens together are refused."
    else:
        yield f"Of texts with more than {predictor.limit} tokens it reads the beginning, and says so in a warning."


def _input(sample: Mapping[str, Any]) -> Text:
    return (sample["source"], sample["second"]) if "second" in sample else sample["source"]


def _sample(sample: Mapping[str, Any]) -> ScoredSample:
    return ScoredSample(
        display_text(_input(sample)), **{key: sample[key] for key in ("reference", "output", "score", "exact")}
    )


def _can_be_drawn(predictor: Classifier, text: Text) -> bool:
    """A text given back by the tokeniser may have become too long."""
    return predictor.validation_error(text) is None and len(predictor.prepared(text).ids) <= MAX_MAP_TOKENS


def _cell(label: str) -> str:
    return " ".join(label.replace("|", "\\|").split())
