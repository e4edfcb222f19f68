"""A whole task over texts in one file, as somebody would write it: does a line begin with a vowel?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import nn

from heedful.config import Config
from heedful.data.published_tokenizer import PublishedTokenizer
from heedful.data.report import TextReport
from heedful.data.text_batch import TextBatch, TextLoader
from heedful.tasks.bundle import Bundle
from heedful.tasks.inspection import inspect
from heedful.tasks.masked.data import PlainText, read_texts
from heedful.tasks.predictor import OutputKind
from heedful.tasks.run import DataReport, Files, train
from heedful.tasks.scoring import Score
from heedful.tasks.text_encoder import Text, TextEncoderPredictor
from heedful.tasks.text_encoder_task import EncodedRow, TextEncoderConfig, TextEncoderTask, TextMetadata
from heedful.training import Loss, Monitor, TrainingConfig, cross_entropy

TRAINING = TrainingConfig(steps=150, learning_rate=3e-3, warmup_steps=10, validate_every=50, label_smoothing=0.0)


@dataclass(frozen=True, kw_only=True)
class VowelSettings(Config):
    title: ClassVar[str] = "vowels"


class Vowels(TextEncoderPredictor[bool]):
    task: ClassVar[str] = "vowels"
    output_kind: ClassVar[OutputKind] = "labels"
    settings_class: ClassVar[type[Config]] = VowelSettings

    def predict_valid(self, texts: Sequence[Text]) -> list[bool]:
        return [bool(output.argmax()) for output in self.outputs(texts)]


@dataclass(frozen=True, kw_only=True)
class VowelConfig(TextEncoderConfig):
    head: ClassVar[str] = "classes"
    from_scratch: ClassVar[TrainingConfig] = TRAINING
    fine_tuning: ClassVar[TrainingConfig] = TRAINING

    training: TrainingConfig = field(default_factory=lambda: TRAINING)


class VowelTask(TextEncoderTask[VowelConfig, PlainText, TextBatch]):
    name: ClassVar[str] = Vowels.task
    predictor_class: ClassVar[type[Any]] = Vowels
    config_class: ClassVar[type[Any]] = VowelConfig

    def read(self, columns: Sequence[str] | None, paths: Sequence[str], report: TextReport) -> Iterator[PlainText]:
        return read_texts(paths, "line", report)

    def metadata(self, report: DataReport[TextReport]) -> TextMetadata:
        return TextMetadata(labels=("consonant", "vowel"))

    def encode(
        self, example: PlainText, tokenizer: PublishedTokenizer, metadata: TextMetadata, report: TextReport
    ) -> Iterator[EncodedRow]:
        ids = tokenizer.encode(example.text)
        yield ids, (int(example.text[0] in "aeiou"), len(ids))

    def setup(self) -> None:
        training = self.config.training
        self.monitor = Monitor("accuracy", higher_is_better=True)
        self.batches = TextLoader(self.data.train, training.batch_tokens, seed=training.seed)
        self.validation = TextLoader(self.data.valid, training.batch_tokens)

    def loss(self, module: nn.Module, batch: TextBatch) -> Loss:
        return cross_entropy(self.forward(module, batch), batch.labels, batch.real)

    @torch.inference_mode()
    def validate(self, module: nn.Module) -> dict[str, float]:
        right = n = 0
        for batch in self.validation.in_order():
            hits = module(batch.ids, batch.keep).argmax(dim=-1) == batch.labels
            right, n = right + int((hits & batch.real).sum()), n + int(batch.real.sum())
        return {"accuracy": 100 * right / n}

    def predictor(self, module: nn.Module) -> Vowels:
        return Vowels(self.model_config(), module, VowelSettings(), self.data.tokenizer)

    def final_evaluation(self, predictor: Vowels) -> dict[str, Any]:
        accuracy = Score("accuracy", self.validate(predictor.module)["accuracy"])
        return {"validation": {"n": len(self.data.valid), "scores": {"accuracy": accuracy.to_dict()}}}

    def title(self, predictor: Vowels) -> str:
        return "lines that begin with a vowel"


def test_a_task_in_one_file_is_trained_scored_and_loaded(tmp_path: Path) -> None:
    lines = [f"{first}{second}{third}" for first in "abcdeiou" for second in "klmn" for third in "pqrst"]
    (tmp_path / "lines.txt").write_text("\n".join(lines) + "\n")
    sizes = {"d_model": 16, "n_heads": 2, "d_ff": 32, "n_layers": 1, "max_length": 16, "dropout": 0.0}
    values = {"model": sizes, "tokenizer": {"vocab_size": 300}, "training": {"device": "cpu", "batch_tokens": 512}}
    config, files = VowelConfig.from_dict(values), Files((str(tmp_path / "lines.txt"),))
    reports: list[DataReport[Any]] = []
    model = train(VowelTask(), config, files, tmp_path / "run", on_read=reports.append)
    assert model.predict(["akp", "bkp", "unt", "cls"]) == [True, False, True, False]
    again = Vowels.from_bundle(tmp_path / "run", Bundle.read(tmp_path / "run"))
    assert again.predict(lines) == model.predict(lines)
    (report,) = reports
    assert report.train.kept == len(lines)
    assert report.held_out == 16
    written = {path.name for path in (tmp_path / "run").iterdir()}
    assert {"config.json", "metrics.json", "README.md", "report.html", "run.yaml", "data"} <= written
    assert "lines that begin with a vowel" in (tmp_path / "run" / "README.md").read_text()
    resumed = train(VowelTask(), config, files, tmp_path / "run", resume=True)
    assert resumed.predict(lines) == model.predict(lines)
    document = inspect(model, "akp")
    assert (document["kind"], document["question"], document["answer"]) == ("reading", "akp", None)
    assert [layer["stack"] for layer in document["attentions"]] == ["encoder"]
