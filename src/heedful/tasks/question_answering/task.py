"""Extractive question answering: SQuAD-like data, a text encoder with a span head, exact match and F1.

Shapes: B windows, T tokens.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ...config import read_mapping, write_mapping
from ...core import padding
from ...data.labeled_texts import text_digest
from ...data.published_tokenizer import PublishedTokenizer
from ...data.questions import AnswerSpan, QuestionExample, question_files, read_questions
from ...data.report import TextReport
from ...data.store import Encoded
from ...data.text_batch import SpanBatch, TextBatch, TextLoader
from ...errors import DataError
from ...lens.report import ScoredSample
from ...training.config import TrainingConfig
from ...training.loss import Loss, cross_entropy
from ...training.objective import Monitor
from ..run import DataReport, Files
from ..run.task import DATA, Split, split_examples
from ..scoring import Score
from ..span_scores import answer_scores, answer_tokens, exact_match, token_f1
from ..text_encoder import (
    FINE_TUNING,
    FROM_SCRATCH,
    TextConfig,
    TextEncoderConfig,
    TextEncoderTask,
    read_examples,
    uses_segments,
    write_examples,
)
from .predictor import (
    MAX_TOKENS,
    STRIDE,
    ExtractedAnswer,
    QuestionAnswerer,
    QuestionAnswererSettings,
    SpanScores,
    character_bounds,
)

QUESTIONS, ANSWERS = "questions.jsonl", "answers.json"  # the validation questions, with their contexts and answers
ANSWERABLE, UNANSWERABLE = "with an answer", "without an answer"  # labels in the report of the data
SAMPLES = 200  # validation questions that metrics.json shows
CHUNK = 256  # questions evaluated at once
SENTENCE_END = re.compile(r"(?<=[.?!。？！])\s+")


@dataclass(frozen=True, kw_only=True)
class QuestionConfig(TextConfig):
    """Adds how contexts are cut: windows share `stride` tokens, and an answer has at most `max_answer_tokens`."""

    stride: int = STRIDE
    max_answer_tokens: int = 30

    def check(self) -> None:
        super().check()
        self.require_positive("max_answer_tokens")
        self.require(self.stride >= 0, f"stride must be 0 or more, not {self.stride}")


@dataclass(frozen=True, kw_only=True)
class QuestionAnsweringConfig(TextEncoderConfig):
    """With which questions, tokenizer, model and training; from scratch, or from a `base`."""

    head: ClassVar[str] = "span"
    from_scratch: ClassVar[TrainingConfig] = FROM_SCRATCH
    fine_tuning: ClassVar[TrainingConfig] = FINE_TUNING.changed(epochs=2)

    data: QuestionConfig = field(default_factory=QuestionConfig)
    training: TrainingConfig = field(default_factory=lambda: FROM_SCRATCH)

    def check(self) -> None:
        super().check()
        self.require(
            not self.training.label_smoothing, "training.label_smoothing must be 0: most tokens cannot be an answer"
        )

    @property
    def limit(self) -> int:
        """How many tokens a window has: 384 as in BERT's paper, fewer where the model reads fewer."""
        return super().limit if self.data.max_tokens is not None else min(MAX_TOKENS, super().limit)


class QuestionAnsweringTask(TextEncoderTask[QuestionAnsweringConfig, QuestionExample, bool, TextBatch]):
    """Which span of a context answers a question. The metadata says whether some questions have no answer."""

    name: ClassVar[str] = QuestionAnswerer.task
    predictor_class: ClassVar[type[Any]] = QuestionAnswerer
    config_class: ClassVar[type[Any]] = QuestionAnsweringConfig
    example_name: ClassVar[str] = "questions"
    artifacts: ClassVar[tuple[str, ...]] = (
        *TextEncoderTask.artifacts,
        *(f"{DATA}/{name}" for name in (QUESTIONS, ANSWERS)),
    )

    # From files to windows.

    def list_files(self, config: QuestionAnsweringConfig, paths: Sequence[str]) -> list[Path]:
        """SQuAD files, JSON lines and tables."""
        return question_files(paths)

    def data_settings(self, config: QuestionAnsweringConfig, files: Files) -> dict[str, str]:
        """Columns, windows, tokenizer, base."""
        return {"the columns": json.dumps(files.columns), **super().data_settings(config, files)}

    def split(
        self, config: QuestionAnsweringConfig, files: Files
    ) -> tuple[Split[QuestionExample], DataReport[TextReport]]:
        """No context is on both sides: several questions are often asked of one."""

        def read(paths: Sequence[str], report: TextReport | None) -> Iterator[QuestionExample]:
            report = TextReport() if report is None else report
            for example in read_questions(paths, columns=files.columns, report=report):
                report.keep(f"{example.question}\t{example.context}", label=_label(example))
                yield example

        def drop(report: TextReport, reason: str, example: QuestionExample) -> None:
            report.drop_kept(reason, example.place, f"{example.question}\t{example.context}", label=_label(example))

        return split_examples(
            files,
            read,
            TextReport,
            digest=lambda example: text_digest(example.context),
            drop=drop,
            wanted=config.data.holdout,
        )

    def texts_of(self, example: QuestionExample) -> tuple[str, ...]:
        """The question and its context."""
        return example.question, example.context

    def metadata(self, report: DataReport[TextReport]) -> bool:
        """Whether the model can learn to refuse: some questions have no answer."""
        return report.train.labels[UNANSWERABLE] > 0

    def read_metadata(self, folder: Path) -> bool:
        """From the run's data folder."""
        return bool(read_mapping(folder / ANSWERS).get("can_refuse"))

    def write_metadata(self, folder: Path, metadata: bool) -> None:
        """Into the run's data folder."""
        write_mapping(folder / ANSWERS, {"can_refuse": metadata})

    def encode(
        self,
        config: QuestionAnsweringConfig,
        examples: Iterable[QuestionExample],
        tokenizer: PublishedTokenizer,
        metadata: bool,
        report: TextReport,
    ) -> Iterator[Encoded]:
        """A row for each window: its ids, then the answer's first and last token and where the context begins.

        A window without the answer has the first token, which means no answer, as both.
        """
        for example in examples:
            try:
                windows = tokenizer.encode_windows(
                    example.question, example.context, max_tokens=config.limit, stride=config.data.stride
                )
            except DataError:
                report.drop("the question leaves no room for the context", example.place)
                continue
            for window in windows:
                first, last = character_bounds(example.context, window)
                start, end = _token_span(example.answers[0], first, last) if example.answers else (0, 0)
                second = next(place for place, span in enumerate(window.offsets) if span is not None)
                yield window.ids, (start, end, second), (example.file, example.line)

    def write_examples(self, folder: Path, split: Split[QuestionExample]) -> None:
        """The validation questions as they are, since scores compare texts."""
        write_examples(folder / QUESTIONS, split.valid())

    # The objective.

    def setup(self) -> None:
        """Batches of windows, and the validation questions."""
        size = self.config.training.batch_tokens
        self.batches = TextLoader(self.data.train, size, seed=self.config.training.seed, batch_class=SpanBatch)
        self.validation = TextLoader(self.data.valid, size, batch_class=SpanBatch)
        self.monitor = Monitor("f1", higher_is_better=True)
        self.questions = read_examples(self.data.folder / QUESTIONS, _question)
        self.uses_segments = uses_segments(self.module, self.data.tokenizer)

    def loss(self, module: nn.Module, batch: TextBatch) -> Loss:
        """The cross-entropy of the answer's first and last token among all tokens of a window."""
        segments = batch.segments if self.uses_segments else None
        keep = padding(batch.keep, lengths=batch.lengths, at_the_end=True)
        logits: Tensor = module(batch.ids, keep, segments=segments)  # (B, T, 2)
        logits = logits.masked_fill(~batch.keep[..., None], torch.finfo(logits.dtype).min).transpose(1, 2)
        return cross_entropy(logits, batch.labels, batch.real[:, None].expand(-1, 2))

    @torch.inference_mode()
    def validate(self, module: nn.Module) -> dict[str, float]:
        """The loss of all windows, exact match and F1 of all validation questions."""
        device = next(module.parameters()).device
        total = count = torch.zeros((), device=device)
        for batch in self.validation.in_order():
            loss = self.loss(module, batch.to(device))
            total, count = total + loss.plain, count + loss.n
        predictor = self.predictor(module)
        answers = self._answers(predictor, self._span_scores(predictor))
        scores = answer_scores([answer["answer"] for answer in answers], self._references)
        return {"loss": float(total / count), **{name: score.value for name, score in scores.items()}}

    # The result.

    def predictor(self, module: nn.Module) -> QuestionAnswerer:
        """A module together with its tokenizer, and how contexts are cut."""
        settings = QuestionAnswererSettings(
            max_tokens=self.config.limit,
            stride=min(self.config.data.stride, self.config.limit - 1),
            max_answer_tokens=self.config.data.max_answer_tokens,
            can_refuse=self.data.metadata,
        )
        return QuestionAnswerer(self.model_config(), module, settings, self.data.tokenizer)

    def final_evaluation(self, predictor: QuestionAnswerer) -> dict[str, Any]:
        """Every score of all validation questions; where questions may have no answer, the threshold is set first."""
        spans = self._span_scores(predictor)
        if predictor.settings.can_refuse:
            threshold = best_threshold(self.questions, spans)
            predictor.settings = predictor.settings.changed(no_answer_threshold=threshold)
        answers = self._answers(predictor, spans)
        scores = answer_scores([answer["answer"] for answer in answers], self._references)
        similar = [similar_sentence(example) for example in self.questions]
        baseline = answer_scores(similar, self._references)["f1"].value
        scores["baseline"] = Score("F1 of the sentence most like the question", baseline)
        return {
            "validation": {
                "n": len(self.questions),
                "scores": {name: score.to_dict() for name, score in scores.items()},
            },
            "samples": [
                {
                    "source": example.question,
                    "reference": example.answers[0].text if example.answers else "",
                    "output": answer["answer"],
                    "score": 100.0 * answer["probability"],
                    "exact": exact_match(answer["answer"], [span.text for span in example.answers]) == 1.0,
                }
                for example, answer in list(zip(self.questions, answers, strict=True))[:SAMPLES]
            ],
        }

    def evaluate(self, predictor: QuestionAnswerer, files: Files) -> dict[str, Any]:
        """Exact match and F1 on every question of the files; what is left out is said."""
        report = TextReport()
        examples = list(read_questions(files.train, columns=files.columns, report=report))
        if not examples:
            raise DataError("there is no question to evaluate on")
        answers = [
            answer["answer"]
            for start in range(0, len(examples), CHUNK)
            for answer in predictor.predict([(one.question, one.context) for one in examples[start : start + CHUNK]])
        ]
        scores = answer_scores(answers, [[span.text for span in example.answers] for example in examples])
        result = {"n": len(examples), "scores": {name: score.to_dict() for name, score in scores.items()}}
        verdict = [f"left out: {reason}: {tally}" for reason, tally in report.dropped.items()]
        if not predictor.settings.can_refuse and not all(example.answers for example in examples):
            verdict.append("some questions have no answer, and this model has not learned to refuse")
        return {**result, **({"verdict": verdict} if verdict else {})}

    def title(self, predictor: QuestionAnswerer) -> str:
        """What it does."""
        refuses = ", and says where there is none" if predictor.settings.can_refuse else ""
        return f"answers to questions, found in a text{refuses}"

    def card_notes(self, predictor: QuestionAnswerer, metrics: Mapping[str, Any]) -> list[str]:
        """How to ask, and what long contexts and questions without an answer mean."""
        settings = predictor.settings
        notes = [
            "An item is a question and its context: `predict([(question, context)])`. The answer is a span of the "
            "context, with its first character, the one after its last, and its probability.",
            f"A context of more than {settings.max_tokens} tokens is read in windows that share {settings.stride}.",
        ]
        if settings.can_refuse:
            notes.append(
                "It has learned to refuse: an empty answer means that the context has none. The threshold for that, "
                f"{settings.no_answer_threshold:.2f}, was chosen on the validation questions, so that the scores above "
                "are a little too good."
            )
        return notes

    def report_sections(self, predictor: QuestionAnswerer, metrics: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        """Questions with their answers."""
        return {"samples": [ScoredSample(**sample) for sample in metrics["samples"]]}

    @property
    def _references(self) -> list[list[str]]:
        return [[span.text for span in example.answers] for example in self.questions]

    def _span_scores(self, predictor: QuestionAnswerer) -> list[SpanScores]:
        return [
            scores
            for start in range(0, len(self.questions), CHUNK)
            for scores in predictor.span_scores(
                [(one.question, one.context) for one in self.questions[start : start + CHUNK]]
            )
        ]

    def _answers(self, predictor: QuestionAnswerer, spans: Sequence[SpanScores]) -> list[ExtractedAnswer]:
        return [predictor.ranked(one.context, own, 1)[0] for one, own in zip(self.questions, spans, strict=True)]


def best_threshold(questions: Sequence[QuestionExample], spans: Sequence[SpanScores]) -> float:
    """The `no_answer_threshold` with the best F1 on these questions.

    A question is refused where its margin is more than the threshold, so only thresholds between two margins differ.
    """
    gains = []  # in F1, of refusing each question
    for example, own in zip(questions, spans, strict=True):
        references = [span.text for span in example.answers]
        best = own.scores.argmax() if len(own.scores) else None
        answer = "" if best is None else example.context[own.starts[best] : own.ends[best]]
        gains.append(token_f1("", references) - token_f1(answer, references))
    margins = np.array([own.margin for own in spans])
    order = np.argsort(-margins)
    n_refused = int(np.concatenate([[0.0], np.cumsum(np.array(gains)[order])]).argmax())
    ordered = np.concatenate([[margins.max() + 2.0], margins[order], [margins.min() - 2.0]])
    return float((ordered[n_refused] + ordered[n_refused + 1]) / 2)


def similar_sentence(example: QuestionExample) -> str:
    """The sentence of the context that shares the most words with the question: what an answer is compared with."""
    words = set(answer_tokens(example.question))
    sentences = [part for part in SENTENCE_END.split(example.context) if part.strip()]
    return max(sentences, key=lambda sentence: len(words.intersection(answer_tokens(sentence))))


def _question(values: dict[str, Any]) -> QuestionExample:
    answers = tuple(AnswerSpan(*answer) for answer in values.pop("answers"))
    return QuestionExample(**values, answers=answers)


def _token_span(answer: AnswerSpan, first: NDArray[np.int64], last: NDArray[np.int64]) -> tuple[int, int]:
    """The first and last token of a window that cover an answer; the first token of all where one is not there."""
    start = np.nonzero((first >= 0) & (first <= answer.start) & (answer.start < last))[0]
    end = np.nonzero((first >= 0) & (first < answer.end) & (answer.end <= last))[0]
    return (int(start[0]), int(end[-1])) if len(start) and len(end) else (0, 0)


def _label(example: QuestionExample) -> str:
    return ANSWERABLE if example.answers else UNANSWERABLE
