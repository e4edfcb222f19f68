"""A sentence pair."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pair:
    """One sentence in both languages, and where it stood."""

    source: str
    target: str
    file: str
    line: int

    @property
    def texts(self) -> tuple[str, str]:
        return self.source, self.target

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"
