"""The settings of search and sampling."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal, TypedDict

from ..config import Config

Precision = Literal["float32", "bf16", "int8"]
LengthPenaltyKind = Literal["power", "google"]
MAX_BEAM = 1000

# What a log-probability is divided by: n counts the generated tokens, the end included; alpha is the length penalty.
LENGTH_PENALTIES: dict[LengthPenaltyKind, Callable[[int, float], float]] = {
    "power": lambda n, alpha: float(n**alpha),
    "google": lambda n, alpha: float(((5 + n) / 6) ** alpha),
}


class GenerationOptions(TypedDict, total=False):
    """The fields of GenerationConfig as keywords, for type checkers: `generate(…, beams=4)` is a type error."""

    beam: int
    n_best: int
    max_new_tokens: int | None
    max_len_a: float
    max_len_b: int
    min_new_tokens: int
    length_penalty: float
    length_penalty_kind: LengthPenaltyKind
    sample: bool
    temperature: float
    top_k: int | None
    top_p: float | None
    min_p: float | None
    seed: int
    repetition_penalty: float
    no_repeat_ngram_size: int | None
    precision: Precision
    batch_tokens: int | None


@dataclass(frozen=True, kw_only=True)
class GenerationConfig(Config):
    """How to generate: by greedy search, beam search or sampling.

    Sampling applies `temperature`, `top_k`, `top_p` and `min_p` in this order, each to what the one before has left.
    """

    title: ClassVar[str] = "generation"

    beam: int = 1  # Candidates that the search follows at once; 1 is greedy search
    n_best: int = 1  # Answers to each input, best first: at most beam, or with sample as many draws as this
    max_new_tokens: int | None = None  # The most tokens of an answer, end included; None: by max_len_a and max_len_b
    max_len_a: float = (
        2.0  # An answer to n tokens has at most max_len_a × n + max_len_b; training sets both by its data
    )
    max_len_b: int = 20  # See max_len_a
    min_new_tokens: int = 0  # The fewest tokens of an answer, end not included
    length_penalty: float = 1.0  # The α of length_penalty_kind; larger values favor longer answers, 0 disables it
    length_penalty_kind: LengthPenaltyKind = "power"  # Divisor of log-probabilities: length^α, or ((5 + length) / 6)^α
    sample: bool = False  # Draw answers at random instead of searching for the most likely ones
    temperature: float = 1.0  # Divides log-probabilities before sampling; below 1 makes likely tokens likelier
    top_k: int | None = None  # Sample only from this many most likely tokens; None means all
    top_p: float | None = None  # Sample only from the fewest tokens with this probability together; None means all
    min_p: float | None = None  # Sample only tokens with this share of the best one's probability; None means all
    seed: int = 0  # Of sampling: the same seed and input give the same answers
    repetition_penalty: float = 1.0  # Divides positive logits of earlier tokens, multiplies negative; 1 disables it
    no_repeat_ngram_size: int | None = None  # No n-gram of this size occurs twice, the prompt included; None allows it
    precision: Precision = "float32"  # "float32" keeps the weights' dtype; "bf16", "int8" (CPU): faster, less precise
    batch_tokens: int | None = None  # Input tokens, times the beam, that run at once; None: 4096 (CPU) or 65536 (GPU)

    def check(self) -> None:
        self.require_positive("beam", "n_best", "max_new_tokens", "batch_tokens", "top_k", "no_repeat_ngram_size")
        for name in ("beam", "n_best"):
            value = getattr(self, name)
            self.require(value <= MAX_BEAM, f"{name} must be at most {MAX_BEAM:,}, not {value:,}")
        self.require(
            self.sample or self.n_best <= self.beam,
            f"a beam of {self.beam} cannot give the {self.n_best} best answers; make it larger",
        )
        self.require(self.max_len_a >= 0, f"max_len_a must be 0 or more, not {self.max_len_a}")
        self.require(self.max_len_b >= 1, f"max_len_b must be at least 1, not {self.max_len_b}")
        self.require(self.min_new_tokens >= 0, f"min_new_tokens must be 0 or more, not {self.min_new_tokens}")
        self.require(
            self.max_new_tokens is None or self.max_new_tokens > self.min_new_tokens,
            f"max_new_tokens={self.max_new_tokens} must be more than min_new_tokens={self.min_new_tokens}, "
            "since it includes the end token",
        )
        self.require(
            abs(self.length_penalty) <= 10, f"length_penalty must be from -10 to 10, not {self.length_penalty}"
        )
        self._check_sampling()
        self.require(
            self.repetition_penalty > 0,
            f"repetition_penalty must be above 0 (1 changes nothing), not {self.repetition_penalty}",
        )

    def _check_sampling(self) -> None:
        self.require(
            self.temperature > 0,
            f"temperature must be above 0, not {self.temperature}; for the most likely tokens, turn sample off",
        )
        for name in ("top_p", "min_p"):
            share = getattr(self, name)
            self.require(share is None or 0 < share <= 1, f"{name} must be above 0 and at most 1, not {share}")
        if self.sample:
            self.require(self.beam == 1, f"sampling has no beam, but beam is {self.beam}; set n_best for more answers")
            return
        unused = {"top_k": None, "top_p": None, "min_p": None, "temperature": 1.0}
        for name, value in unused.items():
            self.require(
                getattr(self, name) == value, f"{name} is for sampling, which is off; turn sample on, or omit {name}"
            )

    @property
    def width(self) -> int:
        """The number of answers to one input that are decoded at the same time: rows of a batch."""
        return self.n_best if self.sample else self.beam

    def limit(self, input_length: int, room: int | None) -> int:
        """Return the most tokens, end included, after an input; `room` is what the model's positions allow."""
        limit = self.max_new_tokens
        if limit is None:
            limit = max(math.ceil(self.max_len_a * input_length) + self.max_len_b, self.min_new_tokens + 1)
        return limit if room is None else min(limit, room)

    def length_normalizer(self, length: int) -> float:
        """Return what the log-probability of an answer is divided by; its length includes the end token."""
        return LENGTH_PENALTIES[self.length_penalty_kind](length, self.length_penalty)
