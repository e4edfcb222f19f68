"""Signs of life: whoever falls silent or fails ends the others, and whoever ends in order does not."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from torch.distributed import HashStore  # type: ignore[attr-defined]  # it does, without saying so

from heedful.training.parallel.heartbeat import Heartbeat, announce_failure


class Ring:
    """Processes that share a store and a clock, in one. `said` is what each ended with."""

    def __init__(self, size: int) -> None:
        store = HashStore()
        store.set_timeout(timedelta(seconds=1))
        self.store, self.now, self.said = store, 0.0, dict[int, str]()
        self.hearts = [self._heart(rank, size) for rank in range(size)]

    def _heart(self, rank: int, size: int) -> Heartbeat:
        def end(words: str) -> None:
            self.said[rank] = words

        return Heartbeat(self.store, rank, size, interval=0.01, limit=30.0, end=end, clock=lambda: self.now)

    def rounds(self, *ranks: int, seconds: float = 0.0) -> None:
        """Time passes, two seconds at a time, while these processes live."""
        until = self.now + seconds
        while True:
            for rank in ranks:
                if rank not in self.said:
                    self.hearts[rank].check()
            if self.now >= until:
                return
            self.now += 2.0


def test_all_is_well_while_all_beat() -> None:
    ring = Ring(3)
    ring.rounds(0, 1, 2, seconds=1000)
    assert ring.said == {}


@pytest.mark.parametrize("silent", [0, 1, 2, 3])
def test_one_that_falls_silent_ends_all_others(silent: int) -> None:
    ring = Ring(4)
    others = [rank for rank in range(4) if rank != silent]
    for heart in ring.hearts:
        heart.advice = "; go on"
    ring.rounds(0, 1, 2, 3, seconds=10)
    ring.rounds(*others, seconds=30)
    assert ring.said == {}
    ring.rounds(*others, seconds=6)
    assert sorted(ring.said) == others
    speaker = 1 if silent == 0 else 0
    assert f"process {silent} of 4 on " in ring.said[speaker]
    assert ring.said[speaker].endswith(" has gone (no sign of life for 30 s); go on")
    assert all(words == "" for rank, words in ring.said.items() if rank != speaker)


def test_one_that_failed_ends_the_others_at_once() -> None:
    ring = Ring(3)
    ring.hearts[1].fail("failed: it is full")
    ring.rounds(0, 2)
    assert ring.said[0].endswith(" failed: it is full")
    assert ring.said[2] == ""


def test_what_the_first_process_says_itself_nobody_repeats() -> None:
    ring = Ring(2)
    ring.hearts[0].fail("")
    ring.hearts[1].fail("failed: the same")
    ring.hearts[1].check()
    assert ring.said == {1: ""}


def test_one_that_ended_in_order_is_no_longer_watched() -> None:
    ring = Ring(3)
    ring.rounds(0, 1, 2)
    ring.hearts[1].stop()
    ring.rounds(0, 2, seconds=100)
    assert ring.said == {}
    ring.rounds(0, seconds=34)  # beyond the one that ended
    assert list(ring.said) == [0]
    assert "process 2 of 3" in ring.said[0]


def test_nothing_runs_on_under_an_interpreter_that_ends() -> None:
    before = threading.enumerate()
    ring = Ring(2)
    for heart in ring.hearts:
        heart.start()
    assert len(threading.enumerate()) == len(before) + 4
    for heart in ring.hearts:
        heart.stop()
    assert threading.enumerate() == before


def test_the_first_news_is_believed() -> None:
    ring = Ring(2)
    announce_failure(ring.store, 1, "there", "was ended by SIGKILL")
    announce_failure(ring.store, 1, "there", "has gone")
    ring.rounds(0)
    assert ring.said == {0: "process 1 of 2 on there was ended by SIGKILL"}


def test_a_store_that_cannot_be_reached_ends_the_process() -> None:
    ring = Ring(2)
    heart = ring.hearts[0]
    heart.store = HashStore()  # another one, in which no neighbour has ever been
    heart.store.set_timeout(timedelta(milliseconds=1))
    heart._run()
    assert ring.said == {0: "process 0 of 2 cannot reach the others any more"}


def test_a_store_that_does_not_answer_ends_the_process() -> None:
    ring = Ring(2)
    ring.now += 31.0
    ring.hearts[0]._watch_store()
    assert ring.said == {0: "process 0 of 2 cannot reach the others any more"}
