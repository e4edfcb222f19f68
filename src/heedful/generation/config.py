"""How to generate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from ..config import Config


@dataclass(frozen=True, kw_only=True)
class GenerationConfig(Config):
    """A beam of one is greedy search.

    `max_new_tokens` counts the end; None means twice the input and twenty more. `min_new_tokens` does not.
    A logprob is divided by length^α ("power") or ((5 + length) / 6)^α ("google"), α being `length_penalty`.
    `batch_tokens` is how many input tokens, times the beam, are read at once.
    """

    title: ClassVar[str] = "generation"

    beam: int = 1
    n_best: int = 1
    max_new_tokens: int | None = None
    min_new_tokens: int = 0
    length_penalty: float = 1.0
    penalty: Literal["power", "google"] = "power"
    batch_tokens: int = 4096

    def check(self) -> None:
        self.require_positive("beam", "n_best", "max_new_tokens", "batch_tokens")
        self.require(self.n_best <= self.beam, f"a beam of {self.beam} cannot give the {self.n_best} best; widen it")
        self.require(self.min_new_tokens >= 0, f"min_new_tokens cannot be negative: {self.min_new_tokens}")
        self.require(
            self.max_new_tokens is None or self.max_new_tokens > self.min_new_tokens,
            f"max_new_tokens={self.max_new_tokens} must be more than min_new_tokens={self.min_new_tokens}, "
            "since it counts the end",
        )
        self.require(
            abs(self.length_penalty) <= 10, f"length_penalty goes from -10 to 10, but is {self.length_penalty}"
        )

    def limit(self, input_length: int, room: int | None) -> int:
        """The most tokens to write, the end among them, after an input; `room` is what the model's positions allow."""
        asked = self.max_new_tokens
        if asked is None:
            asked = max(2 * input_length + 20, self.min_new_tokens + 1)
        return asked if room is None else min(asked, room)
