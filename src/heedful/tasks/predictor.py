"""`Predictor`, the base class of every trained model: a list of plain values in, as many out, a bundle on disk."""

from __future__ import annotations

import copy
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Self, TypeVar, overload

from torch import Tensor, nn

from ..config import Config, FamilyConfig
from ..data.labeled_texts import PAIRS, TEXTS
from ..data.published_tokenizer import NAME
from ..errors import DataError, NonFiniteOutputError
from ..families import GenerationDefaults, Imported
from ..lens.trace import hookable_copy
from .bundle import Bundle

if TYPE_CHECKING:
    from .inspection import Inspection

InputKind = Literal["text", "image", "series"]
OutputKind = Literal["translation", "continuation", "text", "labels", "vector", "gaps", "forecast", "answer", "spans"]
Errors = Literal["raise", "return"]  # what becomes of the error about an item that is refused

Input = TypeVar("Input")
Output = TypeVar("Output")


class ItemError(DataError):
    """An item that cannot be answered; `index` is its place among several."""

    def __init__(self, what: str, index: int, reason: str) -> None:
        super().__init__(f"{what} {index + 1}: {reason}")
        self.index, self.reason = index, reason


class Predictor(ABC, Generic[Input, Output]):
    """What `heedful.load` returns: a module, its config and settings, and `predict`.

    The predictor of a task defines what its items are, how one is prepared, and what the module's output means. The
    class attributes describe its abilities, so that callers need not check its class.
    """

    task: ClassVar[str]
    settings_class: ClassVar[type[Config]]
    item_name: ClassVar[str] = "text"  # what an item is called, in the singular
    input_kind: ClassVar[InputKind] = "text"
    output_kind: ClassVar[OutputKind]
    generates_text: ClassVar[bool] = False  # it streams, and takes the settings of a GenerationConfig
    accepts_pairs: ClassVar[bool] = False  # an item may be a pair of texts
    batch_method: ClassVar[str | None] = None  # of a list of prepared items, whose work several processes can share

    config: FamilyConfig
    module: Any
    settings: Any
    tokenizer: Any = None  # None where there are no tokens

    def __init__(self, config: FamilyConfig, module: nn.Module, settings: Any) -> None:
        self.config = config
        self.module = module.eval()
        self.settings = settings

    @property
    def takes_pairs(self) -> bool:
        """Whether every item must be a pair of texts."""
        return False

    @property
    def column_names(self) -> Sequence[tuple[str, ...]]:
        """The usual names of the columns that hold an item's text, or its texts, the likeliest first."""
        return PAIRS if self.takes_pairs else [(name,) for name in TEXTS]

    def text_columns(self, header: Sequence[str]) -> tuple[int, ...] | None:
        """Return the columns of a table that hold an item's texts; None if the header names none as usual."""
        names = [name.strip().lower() for name in header]
        matches = (columns for columns in self.column_names if set(columns) <= set(names))
        return next((tuple(map(names.index, columns)) for columns in matches), None)

    @overload
    def predict(self, items: Iterable[Input], /, *, errors: Literal["raise"] = "raise") -> list[Output]: ...

    @overload
    def predict(self, items: Iterable[Input], /, *, errors: Errors) -> list[Output | ItemError]: ...

    def predict(self, items: Iterable[Input], /, *, errors: Errors = "raise") -> list[Any]:
        """Return one plain value for each item, in order.

        Args:
            items: A list, an array, a column of a table or a generator.
            errors: "raise" the error about the first item that is refused, or "return" each error in the place of the
                item's answer.
        """
        return self.answer_each(items, self.predict_valid, errors)

    @abstractmethod
    def predict_valid(self, items: Sequence[Any]) -> Sequence[Output | ItemError]:
        """Return the answers to items that `predict` does not refuse, or the error about an answer in its place."""

    def answer_each(self, items: object, answer: Callable[[Sequence[Any]], Sequence[Any]], errors: Errors) -> list[Any]:
        """Return what a function answers to a list of items, with `errors` as `predict` has it."""
        values = self._listed(items)
        refused = self.refusals(values) if errors == "return" else {}
        answers = answer([item for index, item in enumerate(values) if index not in refused])
        return self.in_places(answers, refused, errors)

    def refusals(self, items: Sequence[Any]) -> dict[int, str]:
        """Return why `predict` would refuse items, by their indices."""
        reasons = ((index, self.validation_error(item)) for index, item in enumerate(items))
        return {index: reason for index, reason in reasons if reason is not None}

    def in_places(self, answers: Sequence[Any], refused: Mapping[int, str], errors: Errors) -> list[Any]:
        """Return the answers with the errors about refused items between them; raise the first unless they return."""
        remaining = iter(answers)
        results: list[Any] = []
        for index in range(len(answers) + len(refused)):
            reason = refused.get(index)
            answer = None if reason is not None else next(remaining)
            if isinstance(answer, ItemError):
                reason = answer.reason
            results.append(answer if reason is None else ItemError(self.item_name, index, reason))
            if reason is not None and errors == "raise":
                raise results[-1]
        return results

    @abstractmethod
    def prepared(self, item: Any, /) -> Any:
        """Return an item as the module reads it; raise DataError if that is impossible."""

    def validation_error(self, item: Input, /) -> str | None:
        """Return why `predict` would refuse an item; None if it would not."""
        return refusal(self.prepared, item)

    def save(self, folder: str | Path) -> None:
        """Write the bundle into a folder."""
        names = self.save_files(Path(folder))
        Bundle(self.task, self.config, self.settings.to_dict()).write(folder, self.module, beside=names)

    def save_files(self, folder: Path) -> Sequence[str]:
        """Write what the bundle holds beside its config and weights; return the names of the files."""
        files = self.tokenizer_files().items()
        return [written for name, tokenizer in files for written in tokenizer.save(folder / name)]

    def tokenizer_files(self) -> dict[str, Any]:
        """Return the tokenizers by the names of their files."""
        return {} if self.tokenizer is None else {NAME: self.tokenizer}

    @classmethod
    def from_bundle(cls, folder: Path, bundle: Bundle) -> Self:
        """Return the predictor in a folder, whose bundle was read."""
        return cls(bundle.model, bundle.module(folder), bundle.settings_as(cls.settings_class, folder))

    @classmethod
    def from_checkpoint(cls, checkpoint: Imported, folder: Path) -> Self:
        """Return the predictor of a published model; `folder` holds its tokenizer and other files."""
        raise NotImplementedError(f"a published model cannot be imported as a {cls.__name__}")

    def generation_defaults(self) -> GenerationDefaults | None:
        """Return the special tokens and generation settings to publish; None for models that generate no text."""
        return None

    def hf_files(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return further JSON files of a published folder by their names; `config` is the content of config.json."""
        return {}

    def hf_roles(self) -> dict[str, str]:
        """Return special tokens of this task by their names in tokenizer_config.json."""
        return {}

    @abstractmethod
    def inspect(self, item: Any, inspection: Inspection, options: Mapping[str, Any]) -> dict[str, Any]:
        """Answer an item, and return the part of the look document that depends on the task.

        Args:
            item: What `predict` takes; images and series may be files.
            inspection: Holds the document's arrays, and describes the inside of the model.
            options: Settings of generation, or other options of the task; unknown ones are refused.
        """

    def hookable_copy(self) -> Self:
        """Return a copy whose module shares the weights, to be inspected while other threads use this one."""
        other = copy.copy(self)
        other.module = hookable_copy(self.module)
        return other

    def _listed(self, items: object) -> list[Any] | tuple[Any, ...]:
        shape, dtype = getattr(items, "shape", None), str(getattr(items, "dtype", ""))
        single = shape is not None and dtype != "object" and self.is_single(tuple(shape))
        return listed(items, self.item_name, single=single)

    def is_single(self, shape: tuple[int, ...]) -> bool:
        """Return whether an array of numbers with this shape is one item and not several."""
        return False

    def _numbered(self, item: Any, index: int, prepare: Callable[[Any], Any] | None = None) -> Any:
        """Call `prepare`, by default `prepared`; its error becomes an ItemError with the item's index."""
        try:
            return (prepare or self.prepared)(item)
        except DataError as error:
            raise ItemError(self.item_name, index, str(error)) from None


def listed(items: object, what: str, *, single: bool = False) -> list[Any] | tuple[Any, ...]:
    """Return the items of a list, an array, a column or a generator; a single text would be taken for several."""
    if isinstance(items, list | tuple):
        return items
    single = single or isinstance(items, str | bytes | Mapping) or hasattr(items, "columns")
    if single or not isinstance(items, Iterable):
        raise DataError(
            f"predict takes a list, not {type(items).__name__}; put one {what} in brackets: predict([{what}])"
        )
    return list(items)


def refusal(prepare: Callable[[Any], object], item: Any) -> str | None:
    """Return the message of the DataError that a function raises about an item; None if it raises none."""
    try:
        prepare(item)
    except DataError as error:
        return str(error)
    return None


@contextmanager
def located(places: Sequence[str]) -> Iterator[None]:
    """Turn an ItemError into a DataError that names the item's place in a file."""
    try:
        yield
    except ItemError as error:
        raise DataError(f"{places[error.index]}: {error.reason}") from None


@contextmanager
def without_warnings(category: type[Warning]) -> Iterator[None]:
    """Show no warnings of this category inside."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", category)
        yield


def in_chunks(items: Iterable[Input], size: int) -> Iterator[list[Input]]:
    """Yield lists of at most `size` items, so that not all are in memory at once."""
    remaining = iter(items)
    while chunk := list(islice(remaining, size)):
        yield chunk


def finite(output: Tensor) -> Tensor:
    """Return a model's output; NonFiniteOutputError if it holds NaN or inf."""
    if not output.isfinite().all():
        raise NonFiniteOutputError
    return output


def plain(text: object) -> str:
    """Return the argument if it is a text; DataError otherwise."""
    if not isinstance(text, str):
        raise DataError(f"a text is a str, not {type(text).__name__}")
    return text


def within(ids: list[int], limit: int | None) -> list[int]:
    """Return the ids if the model can read that many; DataError otherwise."""
    if limit is not None and len(ids) > limit:
        raise DataError(f"it has {len(ids):,} tokens, and this model reads at most {limit:,}; shorten or split it")
    return ids
