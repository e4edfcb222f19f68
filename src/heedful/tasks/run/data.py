"""The data of a run: examples for training and for validation, and what is counted while they are read."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from ...data.published_tokenizer import PublishedTokenizer
from ...data.report import FIRST_PLACES, DataReport, SplitReport
from ...data.validation_split import EVERY, held_out, unsplittable
from ...errors import DataError
from ...files import replacing, sha256_of
from .config import Files

TRAIN, VALID, START = "train", "valid", "start.safetensors"  # in a run's data folder
SCRATCH = ".clean"  # there too, while data is prepared
DATA = "data"  # the data folder of a run
VALIDATION = " (validation)"  # after the name of a file that is read for validation


class ExampleStore(Protocol):
    """The examples of one split in a run's folder."""

    @property
    def fingerprint(self) -> str: ...

    def __len__(self) -> int: ...

    def place(self, row: int) -> str:
        """Return the file and line of an example."""


StoreT = TypeVar("StoreT", bound=ExampleStore)
TokenizerT = TypeVar("TokenizerT")
MetadataT = TypeVar("MetadataT")


@dataclass(frozen=True, eq=False)
class TrainingData(Generic[StoreT, TokenizerT, MetadataT]):
    """Everything that training needs from the data of a run."""

    folder: Path  # the data folder of the run
    train: StoreT
    valid: StoreT
    tokenizer: TokenizerT  # which encoded the examples; None where there are no tokens
    metadata: MetadataT  # what else the task needs, such as the names of the classes

    def start_weights(self) -> dict[str, Tensor] | None:
        """Return the weights that training starts from; None for a run without a base."""
        path = self.folder / START
        try:
            return load_file(path) if path.exists() else None
        except (SafetensorError, OSError) as error:
            raise DataError(f"{path}: the weights to begin with cannot be read: {error}") from None

    def identity(self) -> dict[str, str]:
        """Return short fingerprints of what must not change between a run and its resumption."""
        start = self.folder / START
        fingerprints = {"training data": self.train.fingerprint, "validation data": self.valid.fingerprint}
        if isinstance(self.tokenizer, PublishedTokenizer):
            fingerprints["tokeniser"] = self.tokenizer.fingerprint
        if start.exists():
            fingerprints["weights to begin with"] = sha256_of(start)
        return {name: fingerprint[:16] for name, fingerprint in fingerprints.items()}


class TooLittleDataError(DataError):
    """Too little data is left to train on; `report` counts what was dropped."""

    def __init__(self, message: str, report: DataReport[Any]) -> None:
        super().__init__(message)
        self.report = report


def write_start_weights(path: Path, weights: Mapping[str, Tensor]) -> None:
    """Write the weights that a run starts from into its folder, which then needs its base no more."""
    with replacing(path) as partial:
        save_file({name: tensor.cpu().contiguous() for name, tensor in weights.items()}, partial)
        partial.chmod(0o644)  # safetensors makes it readable for the owner only


E = TypeVar("E")
R = TypeVar("R", bound=SplitReport)


@dataclass(frozen=True)
class Split(Generic[E]):
    """Examples for training and for validation, with none in both. Each pass reads them again."""

    files: Files
    read: Callable[[Sequence[str]], Iterator[E]]  # the examples of some paths
    digest: Callable[[E], bytes]  # which identifies an example
    set_apart: frozenset[bytes]  # the digests of the examples that are not trained on

    def train(self) -> Iterator[E]:
        return (example for example in self.read(self.files.train) if self.digest(example) not in self.set_apart)

    def valid(self) -> Iterator[E]:
        """Yield the examples of the validation files; without such files, those held out."""
        if self.files.valid:
            return self.read(self.files.valid)
        return (example for example in self.read(self.files.train) if self.digest(example) in self.set_apart)


def split_examples(
    files: Files,
    read: Callable[[Sequence[str], R], Iterator[E]],
    report_class: Callable[[], R],
    *,
    digest: Callable[[E], bytes],
    drop: Callable[[R, str, E], None],
    wanted: int,
    name: str,
    label: Callable[[E], str] = lambda _: "",
    every: int = EVERY,
) -> tuple[Split[E], DataReport[R]]:
    """Read all examples once, and choose those for validation.

    Args:
        files: The files to read; all examples of validation files are for validation.
        read: Reads the examples of some paths, and counts them in its report.
        report_class: Creates an empty report.
        digest: Identifies an example; equal digests are never on both sides.
        drop: Counts an example as dropped that was counted as kept, with the reason.
        wanted: The number of examples to hold out, at most one in `every`; of each `label` its share.
        name: What examples are called, in the plural.

    Raises:
        TooLittleDataError: There is nothing left for training or for validation.
    """
    train = report_class()
    examples = read(files.train, train)
    if not files.valid:
        set_apart = held_out(((label(example), digest(example)) for example in examples), wanted, every)
        report = DataReport(train, None, len(set_apart))
    else:
        valid = report_class()
        report = DataReport(train, valid)
        set_apart = frozenset(digest(example) for example in read(files.valid, valid))
        for example in examples:
            if digest(example) in set_apart:  # a score on these would measure memory
                drop(train, "also in validation", example)
    if report.valid is None and not set_apart:
        labelled = ((label(example), digest(example)) for example in read(files.train, report_class()))
        reason = unsplittable(labelled, name)
        raise TooLittleDataError(f"{reason}; add data, or give validation files (--valid)", report)
    for paths, part in ((files.train, train), (files.valid, report.valid)):
        if part is not None and not part.kept:
            reason = f"all {part.total} are dropped or also in validation"
            raise TooLittleDataError(f"{', '.join(paths)}: no {name} are left to use; {reason}", report)
    return Split(files, lambda paths: read(paths, report_class()), digest, set_apart), report


class Refusals:
    """Counts the examples of a test set that a model refuses. With `strict`, the first one is an error."""

    def __init__(self, *, strict: bool = False) -> None:
        self.strict, self.n_examples, self.count = strict, 0, 0
        self.first: list[str] = []

    def accepted(
        self,
        examples: Iterable[E],
        fault: Callable[[E], str | None],
        place: Callable[[E], object] = attrgetter("place"),
    ) -> Iterator[E]:
        """Yield the examples for which `fault` returns no reason. DataError if there are others alone."""
        for example in examples:
            self.n_examples += 1
            if (reason := fault(example)) is None:
                yield example
                continue
            message = f"{place(example)}: {reason}"
            if self.strict:
                raise DataError(message)
            self.count += 1
            if len(self.first) < FIRST_PLACES:
                self.first.append(message)
        if self.count and self.count == self.n_examples:
            raise DataError(f"the model refuses every example; the first: {self.first[0]}")

    def to_dict(self) -> dict[str, Any]:
        """Return "refused" for the result of `Task.evaluate` if there are any."""
        return {"refused": {"count": self.count, "of": self.n_examples, "first": self.first}} if self.count else {}


def left_out(report: SplitReport) -> dict[str, list[str]]:
    """Return the sentences for `Task.evaluate` that say which examples were not scored, and what was guessed."""
    sentences = [f"left out: {reason}: {tally}" for reason, tally in report.dropped.items()]
    sentences += [*report.cautions, *(f"{what}: {tally}" for what, tally in report.noted.items())]
    return {"verdict": sentences} if sentences else {}
