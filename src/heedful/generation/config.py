"""The settings of search and sampling."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal, TypedDict

from ..config import Config

Precision = Literal["float32", "bf16", "int8"]
LengthPenaltyKind = Literal["power", "google"]

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
    """How to generate. A beam of one is greedy search; `sample` draws `n_best` answers instead of searching.

    `max_new_tokens` includes the end token; None means twice the input's length plus twenty. `min_new_tokens` does not
    include it. A log-probability is divided by length^α (`length_penalty_kind` "power") or by ((5 + length) / 6)^α
    ("google"), where α is `length_penalty`.
    Sampling applies `temperature`, then keeps the `top_k` most likely tokens, of these the fewest whose probabilities
    add up to `top_p`, and of these the tokens with at least `min_p` times the probability of the best.
    `repetition_penalty` divides the positive logits of earlier tokens and multiplies the negative ones;
    `no_repeat_ngram_size` forbids repeating any n-gram of this size.
    `precision` "float32" uses the weights as they are; "bf16" and "int8" (CPU) are faster and less exact.
    `batch_tokens` limits how many input tokens, times the beam, run at once; None chooses by the device.
    """

    title: ClassVar[str] = "generation"

    beam: int = 1
    n_best: int = 1
    max_new_tokens: int | None = None
    min_new_tokens: int = 0
    length_penalty: float = 1.0
    length_penalty_kind: LengthPenaltyKind = "power"
    sample: bool = False
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    seed: int = 0
    repetition_penalty: float = 1.0
    no_repeat_ngram_size: int | None = None
    precision: Precision = "float32"
    batch_tokens: int | None = None

    def check(self) -> None:
        self.require_positive("beam", "n_best", "max_new_tokens", "batch_tokens", "top_k", "no_repeat_ngram_size")
        self.require(
            self.sample or self.n_best <= self.beam,
            f"a beam of {self.beam} cannot give the {self.n_best} best; widen it",
        )
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
            f"temperature must be above 0, not {self.temperature}; for the most likely tokens turn sample off",
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
            limit = max(2 * input_length + 20, self.min_new_tokens + 1)
        return limit if room is None else min(limit, room)

    def length_normalizer(self, length: int) -> float:
        """Return what the log-probability of an answer is divided by; its length includes the end token."""
        return LENGTH_PENALTIES[self.length_penalty_kind](length, self.length_penalty)
