"""Cases: calls of a function of an exercise whose answer is known from the real parts.

A wrong answer is explained by the mistake of `mistakes.json` that gives the same answer in the same case. A mistake is
a replacement of text in the solution.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from ...errors import HeedfulError
from .layout import solution


@dataclass(frozen=True)
class Case:
    """A call of a function, the right answer, and values for the messages that explain wrong ones."""

    function: str
    run: Callable[[ModuleType], Any]
    expected: Any
    values: Mapping[str, Any] = field(default_factory=dict)


Cases = Callable[[], Iterator[Case]]
CASES: dict[int, Cases] = {}


class AnswerError(HeedfulError):
    """A wrong answer: the key of the message that explains it, and the values of the message."""

    def __init__(self, key: str, **values: Any) -> None:
        super().__init__(key)
        self.key = key
        self.values = values


def exercise(number: int) -> Callable[[Cases], Cases]:
    """Register a function that yields the cases of an exercise, from the simplest on."""

    def register(cases: Cases) -> Cases:
        CASES[number] = cases
        return cases

    return register


def call(function: str, expected: Any, *arguments: Any) -> Case:
    """Return the case of a function with these arguments."""
    return Case(function, lambda module: getattr(module, function)(*arguments), expected)


def entries(function: str, expected: Mapping[str, Any]) -> Iterator[Case]:
    """Yield a case for each entry of the dictionary that a function without arguments returns."""

    def entry(module: ModuleType, name: str) -> Any:
        answers = getattr(module, function)()
        if not isinstance(answers, dict):
            raise AnswerError("type", function=function, type=type(answers).__name__, expected="dict")
        if name not in answers:
            raise AnswerError("missing-key", function=function, name=name)
        return answers[name]

    for name, value in expected.items():
        yield Case(function, partial(entry, name=name), value, {"name": name})


@cache
def mistakes(number: int) -> list[tuple[str, ModuleType]]:
    """Return the typical mistakes of an exercise: the key of the message, and a module that makes the mistake."""
    catalog = json.loads((Path(__file__).parent / "mistakes.json").read_text(encoding="utf-8"))
    return [(key, variant(number, replacements)) for key, replacements in catalog[str(number)]]


def variant(number: int, replacements: Mapping[str, str] | None = None) -> ModuleType:
    """Return the solution of an exercise as a module, with replacements in its text."""
    source, module = solution(number), ModuleType(f"solution_{number}")
    for old, new in (replacements or {}).items():
        source = source.replace(old, new)
    # The text is part of the package; nothing that a person has written is run here.
    exec(compile(source, module.__name__, "exec"), vars(module))
    return module


def check_case(number: int, case: Case, module: ModuleType) -> None:
    """Raise AnswerError, or the exception of the call, unless a module's answer is right."""
    actual = _answer(case, module)
    if _equal(actual, case.expected):
        return
    values = {"function": case.function, **case.values, **_difference(actual, case.expected)}
    if isinstance(actual, NotImplementedError):
        raise AnswerError("unfinished", **values)
    for key, wrong in mistakes(number):
        if _equal(_answer(case, wrong), actual):
            raise AnswerError(key, **values)
    if isinstance(actual, Exception):
        raise actual
    if not isinstance(actual, type(case.expected)):
        raise AnswerError("type", type=type(actual).__name__, expected=type(case.expected).__name__, **values)
    if isinstance(actual, Tensor):
        if actual.shape != case.expected.shape:
            raise AnswerError("shape", **values)
        if (actual.dtype == torch.bool) != (case.expected.dtype == torch.bool):
            raise AnswerError("dtype", dtype=actual.dtype, **values)
        if not actual.isfinite().all():
            raise AnswerError("not-finite", **values)
        raise AnswerError("element", **values)
    raise AnswerError("value", **values)


def _answer(case: Case, module: ModuleType) -> Any:
    """Return what the call returns, or the exception that it raises."""
    try:
        answer = case.run(module)
    except AnswerError:
        raise
    except Exception as error:
        return error
    is_number = isinstance(answer, int | float) or (isinstance(answer, Tensor) and answer.numel() == 1)
    return float(answer) if is_number and isinstance(case.expected, float) else answer


def _equal(actual: Any, expected: Any) -> bool:
    if isinstance(actual, Tensor) and isinstance(expected, Tensor):
        tolerance = 1e-6 if expected.dtype == torch.float64 else 1e-4
        same_kind = actual.shape == expected.shape and (actual.dtype == torch.bool) == (expected.dtype == torch.bool)
        pair = actual.detach().double(), expected.double()
        return same_kind and torch.allclose(*pair, rtol=tolerance, atol=tolerance, equal_nan=True)
    if isinstance(actual, float) and isinstance(expected, float):
        return abs(actual - expected) <= 1e-4 * abs(expected)
    if isinstance(actual, Exception) and isinstance(expected, Exception):
        return type(actual) is type(expected) and str(actual) == str(expected)
    return type(actual) is type(expected) and bool(actual == expected)


def _difference(actual: Any, expected: Any) -> dict[str, Any]:
    """Return values for messages; for tensors of one shape, those at the index of the largest difference."""
    if not isinstance(actual, Tensor) or not isinstance(expected, Tensor):
        return {"got": _short(actual), "want": _short(expected)}
    shapes = {"got_shape": tuple(actual.shape), "want_shape": tuple(expected.shape)}
    if actual.shape != expected.shape or not actual.numel():
        return shapes
    errors = (actual.double() - expected.double()).abs().nan_to_num(torch.inf)
    at = tuple(int(index) for index in torch.unravel_index(errors.argmax(), errors.shape))
    total = actual[at[:-1]].sum() if at else actual
    place = {"at": list(at), "row": list(at[:-1])}
    return shapes | place | {"got": _short(actual[at]), "want": _short(expected[at]), "total": _short(total)}


def _short(value: Any) -> Any:
    """Return a number in four digits for a message, and other values as they are."""
    value = value.item() if isinstance(value, Tensor) and value.numel() == 1 else value
    return f"{value:.4g}" if isinstance(value, float) else value
