"""What is visible of a text while it is written: never a stop, never more than is certain."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator

import pytest

from heedful.serving.openai.completion import DeltaBuilder, StopSequences, TextDelta, merge
from heedful.serving.openai.logprobs import TokenLogprob


def test_text_passes_up_to_the_first_stop_sequence() -> None:
    draw = random.Random(3)
    for _ in range(2000):
        stops = ["".join(draw.choices("ab", k=draw.randint(1, 4))) for _ in range(draw.randint(1, 3))]
        parts = ["".join(draw.choices("abc", k=draw.randint(0, 3))) for _ in range(6)]
        stop_sequences, visible = StopSequences(stops), ""
        for part in parts:
            visible += stop_sequences.add(part)
        before, visible = visible, visible + stop_sequences.add("", last=True)
        whole = "".join(parts)
        arrived = ["".join(parts[: n + 1]) for n in range(len(parts))]
        ended = next((text for text in arrived if any(stop in text for stop in stops)), None)
        assert stop_sequences.reached == (ended is not None)
        if ended is None:
            assert visible == whole
            # The longest possible beginning of a stop sequence waits.
            waiting = [size for stop in stops for size in range(len(stop)) if whole.endswith(stop[:size])]
            assert len(whole) - len(before) == max(waiting)
        else:
            assert visible == before == ended[: min(ended.find(stop) for stop in stops if stop in ended)]


def tokens_of(deltas: list[TextDelta]) -> list[tuple[str, int]]:
    return [(entry.token, entry.offset) for delta in deltas for entry in delta.logprobs]


def test_logprobs_come_with_the_first_character_of_their_token() -> None:
    """한 in three bytes, then a stop that spans two tokens and begins within one."""
    builder = DeltaBuilder(["END"], offset=5)
    written = [("<1>", ""), ("<2>", ""), ("<3>", "한"), (" wE", " wE"), ("N", "N"), ("Dx", "Dx")]
    deltas = [builder.add(text, TokenLogprob(token, -1.0)) for token, text in written]
    assert [delta.text for delta in deltas] == ["", "", "한", " w", "", ""]
    assert [[entry.token for entry in delta.logprobs] for delta in deltas] == [
        [],
        [],
        ["<1>", "<2>", "<3>"],
        [" wE"],
        [],
        [],
    ]
    assert tokens_of(deltas) == [("<1>", 5), ("<2>", 5), ("<3>", 5), (" wE", 6)]
    assert [delta.finish_reason for delta in deltas] == [None] * 5 + ["stop"]


def test_a_token_cut_by_a_stop_sequence_keeps_the_text_before_it() -> None:
    builder = DeltaBuilder(["\n"])
    deltas = [
        builder.add("one", TokenLogprob("one", -1.0)),
        builder.add(" two\nthree", TokenLogprob(" two\nthree", -2.0)),
    ]
    assert "".join(delta.text for delta in deltas) == "one two"
    assert tokens_of(deltas) == [("one", 0), (" two", 3)]
    assert deltas[-1].finish_reason == "stop"


def test_pending_text_and_tokens_come_at_the_end() -> None:
    builder = DeltaBuilder(["abc"])
    deltas = [builder.add("xab", TokenLogprob("xab", -1.0)), builder.add("", TokenLogprob("<7>", -1.0))]
    assert [delta.text for delta in deltas] == ["x", ""]
    last = builder.finish("xab\ufffd", "length")
    assert (last.text, last.finish_reason, tokens_of([last])) == ("ab\ufffd", "length", [("<7>", 3)])


def test_generators_are_merged_as_they_come_and_an_error_ends_all() -> None:
    closed = []

    async def source(name: str, *, fails: bool) -> AsyncGenerator[TextDelta, None]:
        try:
            for n in range(3):
                await asyncio.sleep(0)
                yield TextDelta(f"{name}{n}")
            if fails:
                raise ValueError(name)
            yield TextDelta("", (), "stop")
        finally:
            closed.append(name)

    async def all_of(*fails: bool) -> list[tuple[int, str]]:
        sources = [source("abc"[n], fails=fault) for n, fault in enumerate(fails)]
        return [(index, delta.text) async for index, delta in merge(sources)]

    merged = asyncio.run(all_of(False, False, False))
    for index, name in enumerate("abc"):
        assert [text for at, text in merged if at == index] == [f"{name}0", f"{name}1", f"{name}2", ""]
    assert merged != sorted(merged)  # they take turns
    assert sorted(closed) == ["a", "b", "c"]
    closed.clear()

    async def broken_off() -> list[str]:
        with pytest.raises(ValueError, match="b"):
            await all_of(False, True, False)
        return sorted(closed)

    assert asyncio.run(broken_off()) == ["a", "b", "c"]
