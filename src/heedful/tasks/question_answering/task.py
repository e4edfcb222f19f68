"""Extractive question answering: SQuAD-like data, a text encoder with a span head, exact match and F1.

Shapes: B windows, T tokens.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from ...data.published_tokenizer import PublishedTokenizer
from ...data.questions import AnswerSpan, QuestionExample, question_files, read_questions
from ...data.report import TextReport
from ...data.text_batch import SpanBatch, TextBatch
from ...data.text_tokenizers import EncoderTokenizerConfig
from ...errors import DataError
from ...training.config import TrainingConfig
from ...training.loss import Loss, cross_entropy
from ...training.objective import Monitor
from ..class_scores import answer_scores, answer_tokens, evaluation, exact_match, token_f1
from ..rivals import Rival
from ..run import DataReport
from ..scoring import Score
from ..text_encoder import Text, uses_segments
from ..text_encoder_task import FINE_TUNING, EncodedRow, TextEncoderConfig, TextMetadata, WindowedTextConfig, WindowTask
from .predictor import MAX_TOKENS, STRIDE, QuestionAnswerer, QuestionAnswererSettings, SpanScores, character_bounds

ANSWERABLE, UNANSWERABLE = "with an answer", "without an answer"  # labels in the report of the data
SENTENCE_END = re.compile(r"(?<=[.?!。？！])\s+")


@dataclass(frozen=True, kw_only=True)
class QuestionConfig(WindowedTextConfig):
    """How contexts are read, and how long answers are."""

    stride: int = STRIDE
    max_answer_tokens: int = 30  # Longer answers are never given

    def check(self) -> None:
        super().check()
        self.require_positive("max_answer_tokens")


@dataclass(frozen=True, kw_only=True)
class QuestionAnsweringConfig(TextEncoderConfig):
    """The settings of a run, from scratch or from a `base`."""

    head: ClassVar[str] = "span"
    fine_tuning: ClassVar[TrainingConfig] = FINE_TUNING.changed(epochs=2)

    data: QuestionConfig = field(default_factory=QuestionConfig)

    def check(self) -> None:
        super().check()
        self.require(
            not self.training.label_smoothing, "training.label_smoothing must be 0: most tokens cannot be an answer"
        )

    @property
    def limit(self) -> int:
        """The size of a window: 384 tokens as in BERT's paper, fewer if the model reads fewer."""
        return super().limit if self.data.max_tokens is not None else min(MAX_TOKENS, super().limit)


class QuestionAnsweringTask(WindowTask[QuestionAnsweringConfig, QuestionExample]):
    """Extractive question answering: which span of a context answers a question."""

    name: ClassVar[str] = QuestionAnswerer.task
    predictor_class: ClassVar[type[Any]] = QuestionAnswerer
    config_class: ClassVar[type[Any]] = QuestionAnsweringConfig
    batch_class: ClassVar[type[TextBatch]] = SpanBatch
    example_name: ClassVar[str] = "questions"
    counted: ClassVar[str] = "windows"
    counts_each: int = 2  # the ends of the answer
    rivals: ClassVar[tuple[Rival, ...]] = (Rival("baseline", ("f1",)),)

    # From files to windows.

    def list_files(self, config: QuestionAnsweringConfig, paths: Sequence[str]) -> list[Path]:
        return question_files(paths)

    def read(
        self, columns: Sequence[str] | None, paths: Sequence[str], report: TextReport
    ) -> Iterator[QuestionExample]:
        """Read questions; count them in the report as answerable or not."""
        for example in read_questions(paths, columns=columns, report=report):
            report.keep("\t".join(example.texts), label=self.label_of(example))
            yield example

    def label_of(self, example: QuestionExample) -> str:
        return ANSWERABLE if example.answers else UNANSWERABLE

    def metadata(self, report: DataReport[TextReport]) -> TextMetadata:
        """Return whether some questions have no answer."""
        return TextMetadata(can_refuse=report.train.labels[UNANSWERABLE] > 0)

    def tokenizer_config(
        self, config: QuestionAnsweringConfig, report: DataReport[TextReport]
    ) -> EncoderTokenizerConfig:
        """Return the settings of a new tokenizer; a token must not hold an answer and the punctuation after it."""
        return config.tokenizer.changed(kind="bpe") if config.tokenizer.kind == "auto" else config.tokenizer

    def encode(
        self, example: QuestionExample, tokenizer: PublishedTokenizer, metadata: TextMetadata, report: TextReport
    ) -> Iterator[EncodedRow]:
        """Yield a row for each window: its ids, then the answer's first and last token and where the context begins.

        A window without the answer has the first token, which means no answer, as both.
        """
        limit, stride = self.config.limit, self.config.data.stride
        try:
            windows = tokenizer.encode_windows(*example.texts, max_tokens=limit, stride=stride)
        except DataError:
            report.drop("the question leaves no room for the context", example.place)
            return
        for window in windows:
            first, last = character_bounds(example.context, window)
            start, end = _token_span(example.answers[0], first, last) if example.answers else (0, 0)
            second = next(place for place, span in enumerate(window.offsets) if span is not None)
            yield window.ids, (start, end, second)

    def parse_example(self, values: dict[str, Any]) -> QuestionExample:
        """Return a question with its answers as spans."""
        answers = tuple(AnswerSpan(*answer) for answer in values.pop("answers"))
        return QuestionExample(**values, answers=answers)

    # The objective.

    def setup(self) -> None:
        """Monitor F1 over the validation questions."""
        super().setup()
        self.monitor = Monitor("f1", higher_is_better=True)
        self.uses_segments = uses_segments(self.module, self.data.tokenizer)

    def loss(self, module: nn.Module, batch: TextBatch) -> Loss:
        """Return the cross-entropy of the answer's first and last token among all tokens of a window."""
        logits = self.forward(module, batch)  # (B, T, 2)
        logits = logits.masked_fill(~batch.keep[..., None], torch.finfo(logits.dtype).min).transpose(1, 2)
        return cross_entropy(logits, batch.labels, batch.real[:, None].expand(-1, 2))

    def scores(self, predictor: QuestionAnswerer, examples: Sequence[QuestionExample]) -> dict[str, Any]:
        """Return exact match and F1."""
        answers = [answer["answer"] for answer in predictor.predict(_items(examples))]
        scores = evaluation(len(examples), answer_scores(answers, [_references(example) for example in examples]))
        if not predictor.settings.can_refuse and not all(example.answers for example in examples):
            scores["verdict"] = ["some questions have no answer, and this model has not learned to refuse"]
        return scores

    # The result.

    def predictor(self, module: nn.Module) -> QuestionAnswerer:
        settings = QuestionAnswererSettings(
            max_tokens=self.config.limit,
            stride=min(self.config.data.stride, self.config.limit - 1),
            max_answer_tokens=self.config.data.max_answer_tokens,
            can_refuse=self.data.metadata.can_refuse,
        )
        return QuestionAnswerer(self.model_config(), module, settings, self.data.tokenizer)

    def final_evaluation(self, predictor: QuestionAnswerer) -> dict[str, Any]:
        """Score all validation questions, after choosing the threshold if questions may have no answer."""
        spans = predictor.span_scores(_items(self.examples))
        if predictor.settings.can_refuse:
            threshold = best_threshold(self.examples, spans)
            predictor.settings = predictor.settings.changed(no_answer_threshold=threshold)
        pairs = zip(self.examples, spans, strict=True)
        answers = [predictor.ranked(example.context, scored, 1)[0] for example, scored in pairs]
        references = [_references(example) for example in self.examples]
        scores = answer_scores([answer["answer"] for answer in answers], references)
        similar = [similar_sentence(example) for example in self.examples]
        baseline = answer_scores(similar, references)["f1"].value
        scores["baseline"] = Score("F1 of the sentence most like the question", baseline)
        return {
            "validation": evaluation(len(self.examples), scores),
            "samples": [
                {
                    "source": example.question,
                    "reference": accepted[0] if accepted else "",
                    "output": answer["answer"],
                    "score": 100.0 * answer["probability"],
                    "exact": exact_match(answer["answer"], accepted) == 1.0,
                }
                for example, accepted, answer in islice(
                    zip(self.examples, references, answers, strict=True), self.n_samples
                )
            ],
        }

    def title(self, predictor: QuestionAnswerer) -> str:
        if predictor.settings.can_refuse:
            return "answers to questions, found in a text, and says where there is none"
        return "answers to questions, found in a text"

    def card_notes(self, predictor: QuestionAnswerer, metrics: Mapping[str, Any]) -> list[str]:
        """Explain how to ask, how long contexts are read, and what an empty answer means."""
        settings = predictor.settings
        notes = [
            "An item is a question and its context: `predict([(question, context)])`. The answer is a span of the "
            "context, with its first character, the one after its last, and its probability.",
            f"A context of more than {settings.max_tokens} tokens is read in windows that share {settings.stride}.",
        ]
        if settings.can_refuse:
            notes.append(
                "It has learned to refuse: an empty answer means that the context has none. The threshold for that, "
                f"{settings.no_answer_threshold:.2f}, was chosen on the validation questions, so the scores above are "
                "slightly optimistic."
            )
        return notes


def _references(example: QuestionExample) -> list[str]:
    return [span.text for span in example.answers]


def _items(examples: Sequence[QuestionExample]) -> list[Text]:
    return [(example.question, example.context) for example in examples]


def best_threshold(questions: Sequence[QuestionExample], spans: Sequence[SpanScores]) -> float:
    """Return the `no_answer_threshold` with the best F1 on these questions.

    A question is refused if its margin is above the threshold, so only thresholds between two margins differ.
    """
    gains = []  # in F1, of refusing each question
    for example, scores in zip(questions, spans, strict=True):
        references = _references(example)
        best = scores.scores.argmax() if len(scores.scores) else None
        answer = "" if best is None else example.context[scores.starts[best] : scores.ends[best]]
        gains.append(token_f1("", references) - token_f1(answer, references))
    margins = np.array([scores.margin for scores in spans])
    order = np.argsort(-margins)
    n_refused = int(np.concatenate([[0.0], np.cumsum(np.array(gains)[order])]).argmax())
    ordered = np.concatenate([[margins.max() + 2.0], margins[order], [margins.min() - 2.0]])
    return float((ordered[n_refused] + ordered[n_refused + 1]) / 2)


def similar_sentence(example: QuestionExample) -> str:
    """Return the sentence of the context that shares the most words with the question, as a baseline."""
    question_words = set(answer_tokens(example.question))
    sentences = [part for part in SENTENCE_END.split(example.context) if part.strip()]
    return max(sentences, key=lambda sentence: len(question_words.intersection(answer_tokens(sentence))))


def _token_span(answer: AnswerSpan, first: NDArray[np.int64], last: NDArray[np.int64]) -> tuple[int, int]:
    """Return the first and last token of a window that cover an answer; (0, 0) if it is not in the window."""
    start = np.nonzero((first >= 0) & (first <= answer.start) & (answer.start < last))[0]
    end = np.nonzero((first >= 0) & (first < answer.end) & (answer.end <= last))[0]
    return (int(start[0]), int(end[-1])) if len(start) and len(end) else (0, 0)
