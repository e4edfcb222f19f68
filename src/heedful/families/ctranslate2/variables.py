"""The variables of a CTranslate2 model, taken one by one: those nobody asked for are known at the end."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

import torch
from torch import Tensor

from ..weights import NAMED, WeightsError


class Variables:
    """Weights come as float32, whatever they were stored as; settings as numbers."""

    def __init__(self, stored: Mapping[str, Tensor]) -> None:
        self._stored = stored
        self._asked: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._stored

    def weight(self, name: str) -> Tensor:
        """A weight by its name, dequantised."""
        found = self._taken(name)
        if found is None:
            raise WeightsError(f"the model lacks {name}")
        if found.is_floating_point():
            return found.float()
        scale = self._taken(f"{name}_scale")
        if found.dtype not in (torch.int8, torch.int16) or scale is None:
            raise WeightsError(f"{name} holds {found.dtype} without a {name}_scale to make numbers of them")
        if scale.dim() and tuple(scale.shape) != tuple(found.shape[:1]):
            raise WeightsError(f"{name} is {tuple(found.shape)}, but its scales are {tuple(scale.shape)}")
        return found.float() / scale.float().reshape(-1, *[1] * (found.dim() - 1))

    def matrix(self, name: str) -> Tensor:
        """A weight of two dimensions."""
        found = self.weight(name)
        if found.dim() != 2 or not found.numel():
            raise WeightsError(f"{name} is {tuple(found.shape)} and should be a matrix")
        return found

    def vector(self, name: str) -> Tensor | None:
        """A weight of one dimension; None where it is left out."""
        if name not in self:
            return None
        found = self.weight(name)
        if found.dim() != 1:
            raise WeightsError(f"{name} is {tuple(found.shape)} and should be a vector")
        return found

    def number(self, name: str, default: float) -> float:
        """A setting, or what it is where it is left out."""
        found = self._taken(name)
        if found is None:
            return default
        if found.numel() != 1:
            raise WeightsError(f"{name} is {tuple(found.shape)} and should be one number")
        value = float(found)
        if not math.isfinite(value):
            raise WeightsError(f"{name} is {value} and should be finite")
        return value

    def is_flag(self, name: str) -> bool:
        """Whether a setting is stored as yes or no."""
        return self._stored[name].dtype == torch.int8

    def count(self, prefix: str) -> int:
        """How many layers there are: the numbers behind a prefix, which leave none out."""
        found = {
            int(match[1]) for name in self._stored if (match := re.match(rf"{re.escape(prefix)}(\d{{1,6}})/", name))
        }
        if not found or found != set(range(len(found))):
            raise WeightsError(f"{prefix}0, {prefix}1, … are not all there")
        return len(found)

    def same(self, first: str, second: str) -> bool:
        """Whether two names stand for one weight, or for equal ones: older files know no aliases."""
        one, other = self._stored[first], self._stored[second]
        if one is other:
            return True
        return (
            one.dtype == other.dtype
            and torch.equal(one, other)
            and torch.equal(self.weight(first), self.weight(second))
        )

    def refuse_others(self) -> None:
        """All that was not asked for changes what the model computes in a way that nothing here does."""
        others = sorted(set(self._stored) - self._asked)
        if others:
            more = f", and {len(others) - NAMED} more" if len(others) > NAMED else ""
            raise WeightsError(f"the model has parts that have no place here: {', '.join(others[:NAMED])}{more}")

    def _taken(self, name: str) -> Tensor | None:
        self._asked.add(name)
        return self._stored.get(name)
