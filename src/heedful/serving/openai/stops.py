"""Where a text that is still being written stops."""

from __future__ import annotations

from collections.abc import Sequence


class Stops:
    """Lets text through up to the first of some strings. What may be the beginning of one waits for the rest."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = stops
        self._held = ""
        self.reached = False

    def passed(self, text: str, *, last: bool = False) -> str:
        """What may be shown, now that this has been written: all of it where it is the last."""
        if self.reached:
            return ""
        self._held += text
        places = [place for stop in self._stops if (place := self._held.find(stop)) >= 0]
        if places:
            self.reached = True
            shown, self._held = self._held[: min(places)], ""
            return shown
        cut = len(self._held) - (0 if last else self._beginning())
        shown, self._held = self._held[:cut], self._held[cut:]
        return shown

    def _beginning(self) -> int:
        """How many characters at the end may be the beginning of a stop."""
        return max(
            (
                size
                for stop in self._stops
                for size in range(min(len(stop) - 1, len(self._held)), 0, -1)
                if self._held.endswith(stop[:size])
            ),
            default=0,
        )
