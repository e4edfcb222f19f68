"""Text as it may be shown: in whole characters, nothing of a stop, and beside it the tokens it is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from .stops import Stops

Finish = Literal["stop", "length"]


@dataclass(frozen=True)
class Mark:
    """A token as it reads, and where in the choice's text it begins. The first of all has no probability."""

    token: str
    logprob: float | None
    top: dict[str, float] | None = None
    offset: int = 0


@dataclass(frozen=True)
class Bit:
    """What comes next of a completion; the last says why it ends."""

    text: str
    marks: Sequence[Mark] = ()
    finish: Finish | None = None


class Shaping:
    """Takes tokens as they are written. A mark is shown with the first character of its text, and not before."""

    def __init__(self, stops: Sequence[str], offset: int = 0) -> None:
        self._stops = Stops(stops)
        self._written = self._shown = self._offset = offset
        self._waiting: list[tuple[Mark, int]] = []  # and where its text ends

    def more(self, text: str, mark: Mark | None = None) -> Bit:
        """After a token and its text, which is empty until a character is whole."""
        self._written += len(text)
        if mark is not None:  # bytes before it that became no character may have waited for it
            own = len(mark.token) if text.endswith(mark.token) else len(text)
            self._waiting.append((replace(mark, offset=self._written - own), self._written))
        return self._bit(self._stops.passed(text), None)

    def rest(self, whole: str, finish: Finish) -> Bit:
        """What was held back, once it is known that nothing follows."""
        return self._bit(self._stops.passed(whole[self._written - self._offset :], last=True), finish)

    def _bit(self, text: str, finish: Finish | None) -> Bit:
        self._shown += len(text)
        if self._stops.reached:
            marks = [_cut(mark, end, self._shown) for mark, end in self._waiting if mark.offset < self._shown]
            return Bit(text, marks, "stop")
        ready = [mark for mark, _ in self._waiting if finish or mark.offset < self._shown]
        del self._waiting[: len(ready)]  # they stand in the order of their places
        return Bit(text, ready, finish)


def _cut(mark: Mark, end: int, stop: int) -> Mark:
    """A token that has the beginning of a stop in it shows what comes before; a name stays whole."""
    is_text = len(mark.token) == end - mark.offset
    return replace(mark, token=mark.token[: stop - mark.offset]) if is_text else mark
