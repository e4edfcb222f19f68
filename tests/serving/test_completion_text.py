"""What is shown of a text while it is written: never a stop, never more than is certain."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator

import pytest

from heedful.serving.openai.completion import StopSequences, TextDelta, TextShaper, gathered, merged
from heedful.serving.openai.logprobs import TokenLogprob


def test_text_is_shown_up_to_the_first_stop_however_it_arrives() -> None:
    draw = random.Random(3)
    for _ in range(2000):
        stops = ["".join(draw.choices("ab", k=draw.randint(1, 4))) for _ in range(draw.randint(1, 3))]
        bits = ["".join(draw.choices("abc", k=draw.randint(0, 3))) for _ in range(6)]
        watch, shown = StopSequences(stops), ""
        for bit in bits:
            shown += watch.passed(bit)
        held, shown = shown, shown + watch.passed("", last=True)
        whole = "".join(bits)
        arrived = ["".join(bits[: n + 1]) for n in range(len(bits))]
        ended = next((text for text in arrived if any(stop in text for stop in stops)), None)
        assert watch.reached == (ended is not None)
        if ended is None:
            assert shown == whole
            # What is held is the beginning of a stop, and the longest such.
            waiting = [size for stop in stops for size in range(len(stop)) if whole.endswith(stop[:size])]
            assert len(whole) - len(held) == max(waiting)
        else:
            assert shown == held == ended[: min(ended.find(stop) for stop in stops if stop in ended)]


def marks(bits: list[TextDelta]) -> list[tuple[str, int]]:
    return [(mark.token, mark.offset) for bit in bits for mark in bit.marks]


def test_a_mark_comes_with_the_first_of_its_text() -> None:
    """한 in three bytes, then a stop that spans two tokens and begins within one."""
    shaping = TextShaper(["END"], offset=5)
    written = [("<1>", ""), ("<2>", ""), ("<3>", "한"), (" wE", " wE"), ("N", "N"), ("Dx", "Dx")]
    bits = [shaping.more(text, TokenLogprob(token, -1.0)) for token, text in written]
    assert [bit.text for bit in bits] == ["", "", "한", " w", "", ""]
    assert [[mark.token for mark in bit.marks] for bit in bits] == [[], [], ["<1>", "<2>", "<3>"], [" wE"], [], []]
    assert marks(bits) == [("<1>", 5), ("<2>", 5), ("<3>", 5), (" wE", 6)]
    assert [bit.finish for bit in bits] == [None] * 5 + ["stop"]


def test_a_token_that_a_stop_cuts_shows_what_comes_before() -> None:
    shaping = TextShaper(["\n"])
    bits = [
        shaping.more("one", TokenLogprob("one", -1.0)),
        shaping.more(" two\nthree", TokenLogprob(" two\nthree", -2.0)),
    ]
    assert "".join(bit.text for bit in bits) == "one two"
    assert marks(bits) == [("one", 0), (" two", 3)]
    assert bits[-1].finish == "stop"


def test_what_was_held_back_comes_at_the_end() -> None:
    shaping = TextShaper(["abc"])
    bits = [shaping.more("xab", TokenLogprob("xab", -1.0)), shaping.more("", TokenLogprob("<7>", -1.0))]
    assert [bit.text for bit in bits] == ["x", ""]
    last = shaping.rest("xab\ufffd", "length")
    assert (last.text, last.finish, marks([last])) == ("ab\ufffd", "length", [("<7>", 3)])


def test_several_are_merged_as_they_come_and_the_first_fault_ends_all() -> None:
    closed = []

    async def given(name: str, *, fails: bool) -> AsyncGenerator[TextDelta, None]:
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
        sources = [given("abc"[n], fails=fault) for n, fault in enumerate(fails)]
        return [(index, bit.text) async for index, bit in merged(sources)]

    found = asyncio.run(all_of(False, False, False))
    for index, name in enumerate("abc"):
        assert [text for at, text in found if at == index] == [f"{name}0", f"{name}1", f"{name}2", ""]
    assert found != sorted(found)  # they take turns
    assert sorted(closed) == ["a", "b", "c"]
    closed.clear()

    async def broken_off() -> list[str]:
        with pytest.raises(ValueError, match="b"):
            await all_of(False, True, False)
        return sorted(closed)

    assert asyncio.run(broken_off()) == ["a", "b", "c"]


def test_what_came_meanwhile_is_gathered() -> None:
    found: list[list[int]] = []

    async def given() -> AsyncGenerator[int, None]:
        for n in range(7):
            await asyncio.sleep(0)
            yield n
        raise ValueError("the end")

    async def gather() -> None:
        async for batch in gathered(given()):
            found.append(batch)
            for _ in range(20 * (len(found) == 2)):  # busy with the second
                await asyncio.sleep(0)

    with pytest.raises(ValueError, match="the end"):
        asyncio.run(gather())
    assert found == [[0], [1], [2, 3, 4, 5, 6]]
