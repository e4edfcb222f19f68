"""`QuestionAnswerer`: a question and a context in, the span of the context that answers it out.

Shapes: T tokens of a window, S spans that may be an answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypedDict

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ...config import Config
from ...data.published_tokenizer import EncodedWindow, PublishedTokenizer
from ...data.questions import CONTEXT, QUESTION
from ...errors import DataError
from ...families import Imported
from ..predictor import OutputKind, plain
from ..text_encoder import InspectedText, Text, WindowPredictor

MAX_TOKENS = 384  # of a window, as in BERT's paper, where the model reads as many
STRIDE = 128  # tokens that neighboring windows share


class ExtractedAnswer(TypedDict):
    """An answer: the characters `start` to `end` of the context. Without an answer, the text is empty."""

    answer: str
    start: int | None
    end: int | None
    probability: float


@dataclass(frozen=True, kw_only=True)
class QuestionAnswererSettings(Config):
    """How contexts are read and which spans may be answers.

    A context that is longer than `max_tokens` together with its question is read in windows that share `stride` tokens.
    An answer has at most `max_answer_tokens`. With `can_refuse`, a question may have no answer: the predictor refuses
    if the score of no answer is above the best span's score plus `no_answer_threshold`.
    """

    title: ClassVar[str] = "question answering"

    max_tokens: int = MAX_TOKENS
    stride: int = STRIDE
    max_answer_tokens: int = 30
    can_refuse: bool = False
    no_answer_threshold: float = 0.0

    def check(self) -> None:
        self.require_positive("max_tokens", "max_answer_tokens")
        self.require(0 <= self.stride < self.max_tokens, "stride must be at least 0 and less than max_tokens")


class SpanScores(NamedTuple):
    """The scores of all spans of a context that may be an answer, each span once, and the score of no answer.

    A score is the sum of two logits, so differences of scores are comparable between windows.
    """

    starts: NDArray[np.int64]  # (S,) characters
    ends: NDArray[np.int64]
    scores: NDArray[np.float64]
    no_answer: float

    @property
    def margin(self) -> float:
        """The score of no answer less that of the best span."""
        return self.no_answer - float(self.scores.max(initial=-np.inf))


class QuestionAnswerer(WindowPredictor[ExtractedAnswer]):
    """Finds answers, given pairs (question, context): what `heedful.load` returns for question answering.

    `predict` returns the best answer to each question; "" if the context does not answer it.
    """

    task: ClassVar[str] = "question-answering"
    output_kind: ClassVar[OutputKind] = "answer"
    accepts_pairs: ClassVar[bool] = True
    head: ClassVar[str] = "span"
    settings_class: ClassVar[type[Config]] = QuestionAnswererSettings

    @property
    def takes_pairs(self) -> bool:
        return True

    @property
    def column_names(self) -> Sequence[tuple[str, ...]]:
        return list(product(QUESTION, CONTEXT))

    def predict_valid(self, items: Sequence[Text]) -> list[ExtractedAnswer]:
        return [best for best, *_ in self.candidates(items, 1)]

    def candidates(self, items: Sequence[Text], count: int = 5) -> list[list[ExtractedAnswer]]:
        """Return the `count` most likely answers to each (question, context), the best first.

        Probabilities are over all spans of the context, and over no answer if the model can refuse.
        """
        items = self._listed(items)
        return [
            self.ranked(item[1], scores, count) for item, scores in zip(items, self.span_scores(items), strict=True)
        ]

    def ranked(self, context: str, spans: SpanScores, count: int) -> list[ExtractedAnswer]:
        """Return the best spans as answers; no answer is one of them if the model can refuse."""
        refuses = self.settings.can_refuse
        scores = np.append(spans.scores, spans.no_answer if refuses else -np.inf)
        largest = scores.max()
        if largest == -np.inf:  # no token of the context can be an answer, and refusing was not learned
            return [ExtractedAnswer(answer="", start=None, end=None, probability=0.0)]
        shares = np.exp(scores - largest)
        shares /= shares.sum()
        best = np.argsort(-spans.scores, kind="stable")[:count]
        columns = (spans.starts[best].tolist(), spans.ends[best].tolist(), shares[best].tolist())
        answers = [
            ExtractedAnswer(answer=context[start:end], start=start, end=end, probability=probability)
            for start, end, probability in zip(*columns, strict=True)
        ]
        if refuses:
            no_answer = ExtractedAnswer(answer="", start=None, end=None, probability=float(shares[-1]))
            refused = spans.margin > self.settings.no_answer_threshold
            better = sum(answer["probability"] >= no_answer["probability"] for answer in answers)
            answers.insert(0 if refused else max(1, better), no_answer)
        return answers[:count]

    def span_scores(self, items: Sequence[Text]) -> list[SpanScores]:
        """Return the scores of all spans of each context as the answer to its question."""
        return [
            score_spans(str(item[1]), windows, outputs, max_answer_tokens=self.settings.max_answer_tokens)
            for item, (windows, outputs) in zip(items, self.run_windows(items), strict=True)
        ]

    def windows(self, item: Any) -> list[EncodedWindow]:
        """Return the question with each part of the context; DataError if the item is not such a pair."""
        if not isinstance(item, tuple | list) or len(item) != 2:
            raise DataError("a question needs its context; give a pair: (question, context)")
        question, context = map(plain, item)
        if not question.strip() or not context.strip():
            raise DataError(f"the {'context' if question.strip() else 'question'} is empty")
        return self.tokenizer.encode_windows(question, context, max_tokens=self.limit, stride=self.settings.stride)

    def run_inspected(self, item: Any) -> InspectedText:
        """Return the best answer and the probabilities of the best five; a page shows one window."""
        if len(self.windows(item)) > 1:
            raise DataError("the context is read in several windows, and a page shows one; give a shorter context")
        best, *others = self.candidates([item])[0]
        probabilities = {answer["answer"] or "–": answer["probability"] for answer in (best, *others)}
        return InspectedText(self.prepared(item), best["answer"] or "–", probabilities)

    @classmethod
    def checkpoint_settings(
        cls, checkpoint: Imported, folder: Path, tokenizer: PublishedTokenizer
    ) -> QuestionAnswererSettings:
        """Return windows that the model can read. A published folder does not say whether the model can refuse."""
        limit = checkpoint.module.encoder.positions.limit
        max_tokens = MAX_TOKENS if limit is None else min(limit, MAX_TOKENS)
        return QuestionAnswererSettings(max_tokens=max_tokens, stride=min(STRIDE, max_tokens // 2))


def score_spans(
    context: str, windows: Sequence[EncodedWindow], outputs: Sequence[Tensor], *, max_answer_tokens: int
) -> SpanScores:
    """Every span that begins and ends with a token of the context; one that stands in two windows has its better score.

    Args:
        context: The text that the spans are of.
        windows: Its windows.
        outputs: Of each window the logits of a start and of an end, (T, 2). The first token's mean no answer.
    """
    keys, scores, no_answer = list[NDArray[np.int64]](), list[NDArray[np.float64]](), np.inf
    for window, output in zip(windows, outputs, strict=True):
        logits = output.double().numpy()
        first, last = character_bounds(context, window)
        n_tokens = len(first)
        distance = np.arange(n_tokens)[None, :] - np.arange(n_tokens)[:, None]
        allowed = (distance >= 0) & (distance < max_answer_tokens) & (first >= 0)[:, None] & (last >= 0)[None, :]
        start, end = np.nonzero(allowed)
        keys.append(first[start] * (len(context) + 1) + last[end])
        scores.append(logits[start, 0] + logits[end, 1])
        no_answer = min(no_answer, float(logits[0].sum()))  # an answer in any window is an answer
    every, where = np.unique(np.concatenate(keys), return_inverse=True)
    best = np.full(len(every), -np.inf)
    np.maximum.at(best, where, np.concatenate(scores))
    starts, ends = np.divmod(every, len(context) + 1)
    return SpanScores(starts, ends, best, no_answer)


def character_bounds(context: str, window: EncodedWindow) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first character of each token and the one after its last, (T,) each; −1 outside the context.

    Spaces at the ends of a token are not part of an answer.
    """
    bounds = np.full((len(window.ids), 2), -1, dtype=np.int64)
    for place, span in enumerate(window.offsets):
        if span is None:
            continue
        text = context[slice(*span)]
        if text.strip():
            bounds[place] = span[0] + len(text) - len(text.lstrip()), span[1] - len(text) + len(text.rstrip())
    return bounds[:, 0], bounds[:, 1]
