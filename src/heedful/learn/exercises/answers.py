"""Compares the answer of a function with the right one, and finds the mistake that gives the same wrong answer.

A mistake is a replacement of text in the solution, from `mistakes.json`.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from math import isclose
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from ...errors import HeedfulError
from .layout import HERE, solution


@dataclass(frozen=True)
class Case:
    """A call of a function, the right answer, and values for the messages that explain wrong ones."""

    function: str
    run: Callable[[ModuleType], Any]
    expected: Any
    values: Mapping[str, Any] = field(default_factory=dict)


class AnswerError(HeedfulError):
    """A wrong answer: the key of the message that explains it, and the values of the message."""

    def __init__(self, key: str, **values: Any) -> None:
        super().__init__(key)
        self.key = key
        self.values = values


@cache
def mistakes(number: int) -> list[tuple[str, ModuleType]]:
    """Return the typical mistakes of an exercise: the key of the message, and a module that makes the mistake."""
    catalog = json.loads((HERE / "mistakes.json").read_text(encoding="utf-8"))
    return [(key, variant(number, replacements)) for key, replacements in catalog[str(number)]]


def variant(number: int, replacements: Mapping[str, str] | None = None) -> Any:
    """Return the solution of an exercise as a module, with replacements in its text."""
    source, module = solution(number), ModuleType(f"solution_{number}")
    for old, new in (replacements or {}).items():
        source = source.replace(old, new)
    # The text is part of the package; nothing that a person has written is run here.
    exec(compile(source, module.__name__, "exec"), vars(module))
    return module


def check_case(number: int, case: Case, module: ModuleType) -> None:
    """Raise AnswerError, or the exception of the call, unless a module's answer is right."""
    actual, expected = _answer(case, module), case.expected
    if _equal(actual, expected):
        return
    values = {"function": case.function, **case.values, **_difference(actual, expected)}
    if isinstance(actual, NotImplementedError):
        raise AnswerError("unfinished", **values)
    for key, wrong in mistakes(number):
        if _equal(_answer(case, wrong), actual):
            raise AnswerError(key, **values)
    if isinstance(actual, Exception):
        raise actual
    if not isinstance(actual, type(expected)):
        raise AnswerError("type", type=type(actual).__name__, expected=type(expected).__name__, **values)
    if not isinstance(actual, Tensor):
        raise AnswerError("value", **values)
    if actual.shape != expected.shape:
        raise AnswerError("shape", **values)
    if (actual.dtype == torch.bool) != (expected.dtype == torch.bool):
        raise AnswerError("dtype", dtype=actual.dtype, **values)
    raise AnswerError("element" if actual.isfinite().all() else "not-finite", **values)


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
    if isinstance(actual, Exception):
        return repr(actual) == repr(expected)
    if not isinstance(actual, type(expected)):
        return False
    if isinstance(actual, float):
        return isclose(actual, expected, rel_tol=1e-4)
    if isinstance(actual, Tensor):
        tolerance = 1e-6 if expected.dtype == torch.float64 else 1e-4
        same_kind = actual.shape == expected.shape and (actual.dtype == torch.bool) == (expected.dtype == torch.bool)
        pair = actual.detach().double(), expected.double()
        return same_kind and torch.allclose(*pair, rtol=tolerance, atol=tolerance, equal_nan=True)
    return bool(actual == expected)


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
