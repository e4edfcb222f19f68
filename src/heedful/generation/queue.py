"""Who begins when: the longest inputs first, as many at once as the budget allows."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from .sentence import Sentence

SHORT = 16  # a shorter input takes as much of the budget, since its answer has a length too
WORTH = 4  # newcomers are read when they fill this part of the room, one in so many


class Queue:
    """Sentences that wait. The budget is in input tokens, times the answers written at the same time."""

    def __init__(self, sentences: Sequence[Sentence], budget: int, width: int) -> None:
        requests = [sentence.request for sentence in sentences]
        self._waiting = deque(sorted(sentences, key=lambda sentence: -len(sentence.request.ids)))
        self._budget, self._width = budget, width
        self.most_at_once = self.most_tokens = 0  # sentences, and what they took of the budget
        self.capacity = max((len(asked.past) + asked.limit + 1 for asked in requests), default=0)

    def next_for(self, running: Sequence[Sentence], vacancies: int | None = None) -> list[Sentence]:
        """Those that should begin beside those that run: as many as fit, one at least when nothing runs."""
        if not self._waiting:
            return []
        longest = max(len(sentence.request.ids) for sentence in [*running, self._waiting[0]])
        each = self._width * max(longest, SHORT)
        room = max(1, self._budget // each)
        free = min(room - len(running), len(self._waiting))
        if vacancies is not None:
            room, free = min(room, len(running) + vacancies), min(free, vacancies)
        if running and free * WORTH < room:
            return []
        self.most_at_once = max(self.most_at_once, len(running) + free)
        self.most_tokens = max(self.most_tokens, (len(running) + free) * each)
        return [self._waiting.popleft() for _ in range(free)]
