from collections.abc import Callable

import pytest

from heedful.demo.numerals import clock_time, month, native, sino, with_counter, won

NATIVE = {
    1: ("하나", "한"), 2: ("둘", "두"), 3: ("셋", "세"), 4: ("넷", "네"), 5: ("다섯", "다섯"), 10: ("열", "열"),
    11: ("열하나", "열한"), 14: ("열넷", "열네"), 20: ("스물", "스무"), 21: ("스물하나", "스물한"),
    23: ("스물셋", "스물세"), 30: ("서른", "서른"), 32: ("서른둘", "서른두"), 45: ("마흔다섯", "마흔다섯"),
    56: ("쉰여섯", "쉰여섯"), 67: ("예순일곱", "예순일곱"), 78: ("일흔여덟", "일흔여덟"), 89: ("여든아홉", "여든아홉"),
    94: ("아흔넷", "아흔네"),
}  # fmt: skip
SINO = {
    1: "일", 7: "칠", 10: "십", 11: "십일", 16: "십육", 20: "이십", 99: "구십구",
}  # fmt: skip
COUNTED = [
    (1, "개", "한 개"), (3, "개", "세 개"), (20, "살", "스무 살"), (21, "살", "스물한 살"), (2, "명", "두 명"),
    (4, "마리", "네 마리"), (5, "권", "다섯 권"), (12, "시", "열두 시"), (2, "시간", "두 시간"),
    (3, "잔", "세 잔"), (1, "달", "한 달"), (2, "켤레", "두 켤레"), (3, "층", "삼 층"), (10, "층", "십 층"),
    (5, "원", "오 원"), (26, "년", "이십육 년"), (25, "일", "이십오 일"), (30, "초", "삼십 초"),
    (2, "인분", "이 인분"), (3, "개월", "삼 개월"), (1, "주일", "일주일"), (2, "주일", "이 주일"),
    (1, "학년", "일 학년"),
]  # fmt: skip
CALENDAR = [
    (lambda: month(1), "일월"), (lambda: month(2), "이월"), (lambda: month(6), "유월"), (lambda: month(10), "시월"),
    (lambda: month(11), "십일월"), (lambda: month(12), "십이월"),
    (lambda: clock_time(3, 15), "세 시 십오 분"), (lambda: clock_time(3, 30), "세 시 반"),
    (lambda: clock_time(12), "열두 시"),
    (lambda: clock_time(1, 5), "한 시 오 분"), (lambda: clock_time(11, 59), "열한 시 오십구 분"),
    (lambda: with_counter(2, "분", "native"), "두 분"), (lambda: with_counter(2, "분", "sino"), "이 분"),
    (lambda: with_counter(3, "번", "native"), "세 번"), (lambda: with_counter(3, "번", "sino"), "삼 번"),
]  # fmt: skip
MONEY = {
    500: "500 원", 1000: "1천 원", 1500: "1,500 원", 5000: "5천 원", 10000: "1만 원", 35000: "3만 5천 원",
    12500: "1만 2,500 원", 120000: "12만 원", 1000000: "100만 원",
}  # fmt: skip


@pytest.mark.parametrize("n", NATIVE)
def test_native_numbers_and_their_forms_before_a_counter(n: int) -> None:
    assert (native(n), native(n, before_counter=True)) == NATIVE[n]


@pytest.mark.parametrize("n", SINO)
def test_sino_korean_numbers(n: int) -> None:
    assert sino(n) == SINO[n]


@pytest.mark.parametrize(("n", "counter", "words"), COUNTED)
def test_counters_choose_their_numbers(n: int, counter: str, words: str) -> None:
    assert with_counter(n, counter) == words


@pytest.mark.parametrize(("say", "words"), CALENDAR, ids=[words for _, words in CALENDAR])
def test_dates_times_and_counters_with_two_senses(say: Callable[[], str], words: str) -> None:
    assert say() == words


@pytest.mark.parametrize("n", MONEY)
def test_money(n: int) -> None:
    assert won(n) == MONEY[n]


def test_no_two_numbers_are_written_alike() -> None:
    numbers = [*range(1, 12_000), *range(99_990, 100_020), *range(10**6 - 5, 10**6 + 20_000, 7)]
    assert len({won(n) for n in numbers}) == len(numbers)
    assert len({native(n) for n in range(1, 100)}) == len({sino(n) for n in range(1, 100)}) == 99


@pytest.mark.parametrize(
    ("say", "why"),
    [
        (lambda: native(0), "1 to 99, not 0"),
        (lambda: native(100), "1 to 99, not 100"),
        (lambda: sino(-1), "not -1"),
        (lambda: with_counter(0, "개"), "1 to 99, not 0"),
        (lambda: with_counter(100, "층"), "1 to 99, not 100"),
        (lambda: with_counter(2, "분"), r"people \(두 분\) or minutes \(이 분\); say system="),
        (lambda: with_counter(2, "갸"), r"unknown counter '갸'.*; allowed: .*개"),
        (lambda: month(13), "a month is 1 to 12, not 13"),
        (lambda: clock_time(13), "1 to 12, not 13"),
        (lambda: clock_time(3, 60), "0 to 59, not 60"),
        (lambda: won(-1), "not -1"),
    ],
)
def test_what_has_no_words_is_refused(say: Callable[[], str], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        say()
