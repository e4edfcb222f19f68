"""What every model that is asked about a list of things has in common: plain values out, a bundle on disk."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from torch import nn

from ..config import Config, FamilyConfig
from ..errors import DataError
from .bundle import Bundle

InputKind = Literal["text", "image", "series"]
OutputKind = Literal["translation", "continuation", "text", "labels", "vector", "gaps", "forecast"]


class ItemError(DataError):
    """One that cannot be answered, and which of those given it is."""

    def __init__(self, what: str, index: int, reason: str) -> None:
        super().__init__(f"{what} {index + 1}: {reason}")
        self.index, self.reason = index, reason


def listed(items: object, what: str) -> list[Any] | tuple[Any, ...]:
    """A list of items, and not one that would be taken for several."""
    if not isinstance(items, list | tuple):
        raise DataError(
            f"predict takes a list, not {type(items).__name__}; put one {what} in brackets: predict([{what}])"
        )
    return items


class Predictor(ABC):
    """A task says what it is asked about, how that is checked and prepared, and what the module's output means."""

    task: ClassVar[str]
    kind: ClassVar[type[Config]]  # of its settings
    what: ClassVar[str]  # it is asked about, in the singular
    tokenizer: Any = None  # where there are no tokens
    input_kind: ClassVar[InputKind] = "text"
    output_kind: ClassVar[OutputKind]
    generates_text: ClassVar[bool] = False
    accepts_pairs: ClassVar[bool] = False  # an item may be two texts that belong together
    batch_method: ClassVar[str | None] = None  # takes a list of prepared items: what several processes can share

    @property
    def takes_pairs(self) -> bool:
        """Whether every item is two texts that belong together."""
        return False

    def __init__(self, config: FamilyConfig, module: nn.Module, settings: Any) -> None:
        self.config = config
        self.module: Any = module.eval()
        self.settings = settings

    @abstractmethod
    def predict(self, items: Sequence[Any]) -> list[Any]:
        """Plain values, one for each item, in order."""

    @abstractmethod
    def prepared(self, item: Any) -> Any:
        """As the module reads it, or a DataError."""

    def why_not(self, item: Any) -> str | None:
        """Why `predict` would refuse an item, if it would."""
        try:
            self.prepared(item)
        except DataError as error:
            return str(error)
        return None

    def save(self, folder: str | Path) -> None:
        """Write the bundle."""
        Bundle(self.task, self.config, self.settings.to_dict()).write(folder, self.module)

    @classmethod
    def from_bundle(cls, folder: Path, bundle: Bundle) -> Self:
        """The one in a folder."""
        return cls(bundle.model, bundle.module(folder), bundle.settings_as(cls.kind, folder))

    def _listed(self, items: object) -> list[Any] | tuple[Any, ...]:
        return listed(items, self.what)

    def _numbered(self, item: Any, index: int) -> Any:
        try:
            return self.prepared(item)
        except DataError as error:
            raise ItemError(self.what, index, str(error)) from None
