"""The result of an exercise, and the messages that explain it in each language."""

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

LANGUAGES = ("en", "ko")


@dataclass(frozen=True)
class ExerciseResult:
    """What the check of an exercise says: the key of a message and its values."""

    number: int
    key: str
    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def state(self) -> Literal["right", "unfinished", "wrong"]:
        """Whether the answer is right, not yet written, or wrong."""
        return "right" if self.key == "right" else "unfinished" if self.key in ("unfinished", "no-file") else "wrong"

    def text(self, language: str) -> str:
        """Return the explanation in a language."""
        return message(language, self.number, self.key).format_map(defaultdict(lambda: "–", self.values))


@cache
def messages(language: str) -> dict[str, dict[str, str]]:
    """Return the messages of a language: those of each exercise by its number, and "common" ones."""
    path = Path(__file__).parent / "locales" / f"{language}.json"
    catalog: dict[str, dict[str, str]] = json.loads(path.read_text(encoding="utf-8"))
    return catalog


def message(language: str, number: int, key: str) -> str:
    """Return a message of an exercise, or the common one with this key."""
    catalog = messages(language)
    return catalog[str(number)].get(key) or catalog["common"][key]
