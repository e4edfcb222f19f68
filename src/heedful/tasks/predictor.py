"""`Predictor`: what every trained model has in common: a list of plain values in, as many out, a bundle on disk."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Self, TypeVar

from torch import nn

from ..config import Config, FamilyConfig
from ..data.published_tokenizer import NAME
from ..errors import DataError
from ..families import GenerationDefaults, Imported
from ..lens.trace import hookable_copy
from .bundle import Bundle

if TYPE_CHECKING:
    from .inspection import Inspection

InputKind = Literal["text", "image", "series"]
OutputKind = Literal["translation", "continuation", "text", "labels", "vector", "gaps", "forecast", "answer", "spans"]

Input = TypeVar("Input")
Output = TypeVar("Output")


class ItemError(DataError):
    """An item that cannot be answered, and which of those given it is."""

    def __init__(self, what: str, index: int, reason: str) -> None:
        super().__init__(f"{what} {index + 1}: {reason}")
        self.index, self.reason = index, reason


class Predictor(ABC, Generic[Input, Output]):
    """What `heedful.load` gives: a module, its config and settings, and `predict`.

    A task says what its items are, how one is checked and prepared, and what the module's output means. The class
    attributes say what a model can do, so that nobody needs to know its class.
    """

    task: ClassVar[str]
    settings_class: ClassVar[type[Config]]
    item_name: ClassVar[str] = "text"  # what it is asked about, in the singular
    input_kind: ClassVar[InputKind] = "text"
    output_kind: ClassVar[OutputKind]
    generates_text: ClassVar[bool] = False  # it streams, and takes the settings of a GenerationConfig
    accepts_pairs: ClassVar[bool] = False  # an item may be two texts that belong together
    batch_method: ClassVar[str | None] = None  # takes a list of prepared items: what several processes can share

    config: FamilyConfig
    module: Any
    settings: Any
    tokenizer: Any = None  # where there are no tokens

    def __init__(self, config: FamilyConfig, module: nn.Module, settings: Any) -> None:
        self.config = config
        self.module = module.eval()
        self.settings = settings

    @property
    def takes_pairs(self) -> bool:
        """Whether every item is two texts that belong together."""
        return False

    @property
    def lacks_confidence(self) -> bool:
        """Whether it could say how likely each answer is right, and was not taught to."""
        return False

    @abstractmethod
    def predict(self, items: Sequence[Input], /) -> list[Output]:
        """Plain values, one for each item, in order."""

    @abstractmethod
    def prepared(self, item: Any, /) -> Any:
        """An item as the module reads it; DataError for one that it cannot."""

    def validation_error(self, item: Input, /) -> str | None:
        """Why `predict` would refuse an item; None if it would not."""
        try:
            self.prepared(item)
        except DataError as error:
            return str(error)
        return None

    def save(self, folder: str | Path) -> None:
        """Write the bundle."""
        names = self.save_files(Path(folder))
        Bundle(self.task, self.config, self.settings.to_dict()).write(folder, self.module, beside=names)

    def save_files(self, folder: Path) -> Sequence[str]:
        """Write what the bundle holds beside its config and weights, its tokenizers, and name the files."""
        files = self.tokenizer_files().items()
        return [written for name, tokenizer in files for written in tokenizer.save(folder / name)]

    def tokenizer_files(self) -> dict[str, Any]:
        """The tokenizers by the names of their files."""
        return {} if self.tokenizer is None else {NAME: self.tokenizer}

    @classmethod
    def from_bundle(cls, folder: Path, bundle: Bundle) -> Self:
        """The model in a folder."""
        return cls(bundle.model, bundle.module(folder), bundle.settings_as(cls.settings_class, folder))

    @classmethod
    def from_checkpoint(cls, checkpoint: Imported, folder: Path) -> Self:
        """A published model, from its module and what else its folder says."""
        raise NotImplementedError(f"a published model is not read as a {cls.__name__}")

    def generation_defaults(self) -> GenerationDefaults | None:
        """How a model that writes is published: its special tokens, and how to generate; None for others."""
        return None

    def hf_files(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """What the settings say that neither weights nor tokenizer do, by the JSON file of a published folder that says
        it; `config` is that of config.json."""
        return {}

    def hf_roles(self) -> dict[str, str]:
        """Tokens with a role that only this task knows, as tokenizer_config.json names it."""
        return {}

    @abstractmethod
    def inspect(self, item: Any, inspection: Inspection, options: Mapping[str, Any]) -> dict[str, Any]:
        """Answer an item and look into the model meanwhile: what `heedful.tasks.inspection.inspect` shows of it.

        Args:
            item: What `predict` takes; images and series may be files.
            inspection: Holds the document's arrays, and writes down what happened within the model.
            options: Those of generation, or what else a task offers; unknown ones are refused.
        """

    def hookable_copy(self) -> Self:
        """The same on a module of its own that shares the weights: inspected while others use this one."""
        other = copy.copy(self)
        other.module = hookable_copy(self.module)
        return other

    def _listed(self, items: object) -> list[Any] | tuple[Any, ...]:
        return listed(items, self.item_name)

    def _numbered(self, item: Any, index: int) -> Any:
        """`prepared`, where the error of an item that cannot be answered says which of several it is."""
        try:
            return self.prepared(item)
        except DataError as error:
            raise ItemError(self.item_name, index, str(error)) from None


def listed(items: object, what: str) -> list[Any] | tuple[Any, ...]:
    """A list of items, and not one item that would be taken for several."""
    if not isinstance(items, list | tuple):
        raise DataError(
            f"predict takes a list, not {type(items).__name__}; put one {what} in brackets: predict([{what}])"
        )
    return items


@contextmanager
def located(places: Sequence[str]) -> Iterator[None]:
    """Where one of several items cannot be answered, the error names its place in a file."""
    try:
        yield
    except ItemError as error:
        raise DataError(f"{places[error.index]}: {error.reason}") from None


def in_chunks(items: Iterable[Input], size: int) -> Iterator[list[Input]]:
    """Some items at a time, so that not all are held at once."""
    coming = iter(items)
    while chunk := list(islice(coming, size)):
        yield chunk


def plain(text: object) -> str:
    """A text, or an error for what is none."""
    if not isinstance(text, str):
        raise DataError(f"a text is a str, not {type(text).__name__}")
    return text


def within(ids: list[int], limit: int | None) -> list[int]:
    """No more tokens than a model reads: what is too long is refused, not cut."""
    if limit is not None and len(ids) > limit:
        raise DataError(f"it has {len(ids):,} tokens, and this model reads at most {limit:,}; shorten or split it")
    return ids
