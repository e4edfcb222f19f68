"""A run's data: what was made of its files, and which examples are for training and which for validation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from ...data.holding_out import EVERY, held_out
from ...data.published_tokenizer import PublishedTokenizer
from ...data.report import DataReport, SplitReport
from ...errors import DataError
from ...files import replacing, sha256_of
from .config import Files

TRAIN, VALID, START = "train", "valid", "start.safetensors"  # in a run's data folder
SCRATCH = ".clean"  # there too, while data is prepared


class ExampleStore(Protocol):
    """The examples of one split, as they lie in a run's folder."""

    @property
    def fingerprint(self) -> str: ...

    def __len__(self) -> int: ...

    def place(self, row: int) -> str:
        """Where an example stood in the files."""


StoreT = TypeVar("StoreT", bound=ExampleStore)
TokenizerT = TypeVar("TokenizerT")
MetadataT = TypeVar("MetadataT")


@dataclass(frozen=True, eq=False)
class TrainingData(Generic[StoreT, TokenizerT, MetadataT]):
    """Everything training needs from the data of a run, in its folder.

    Attributes:
        folder: where it lies.
        train, valid: the examples to learn from, and those to validate on.
        tokenizer: what the examples were encoded with; None where there are no tokens.
        metadata: what else the task must know of its data, such as the names of the classes.
    """

    folder: Path
    train: StoreT
    valid: StoreT
    tokenizer: TokenizerT
    metadata: MetadataT

    def start_weights(self) -> dict[str, Tensor] | None:
        """The weights that training starts from, of a run that has a base."""
        path = self.folder / START
        return read_start_weights(path) if path.exists() else None

    def identity(self) -> dict[str, str]:
        """What must stay the same for a run to go on, as fingerprints short enough to be shown."""
        start = self.folder / START
        fingerprints = {"training data": self.train.fingerprint, "validation data": self.valid.fingerprint}
        if isinstance(self.tokenizer, PublishedTokenizer):
            fingerprints["tokeniser"] = self.tokenizer.fingerprint
        if start.exists():
            fingerprints["weights to begin with"] = sha256_of(start)
        return {name: fingerprint[:16] for name, fingerprint in fingerprints.items()}


class TooLittleDataError(DataError):
    """Not enough is left to train on; `report` says what became of the rest."""

    def __init__(self, message: str, report: DataReport[Any]) -> None:
        super().__init__(message)
        self.report = report


def write_start_weights(path: Path, weights: Mapping[str, Tensor]) -> None:
    """Keep weights in a run's folder: it goes on without the model they came from."""
    with replacing(path) as partial:
        save_file({name: tensor.cpu().contiguous() for name, tensor in weights.items()}, partial)
        partial.chmod(0o644)  # the library makes it the owner's alone


def read_start_weights(path: Path) -> dict[str, Tensor]:
    """What `write_start_weights` wrote."""
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise DataError(f"{path}: the weights to begin with cannot be read: {error}") from None


E = TypeVar("E")
R = TypeVar("R", bound=SplitReport)


@dataclass(frozen=True)
class Split(Generic[E]):
    """Examples for training and for validation, with none on both sides. They are read again for each pass.

    Attributes:
        read: reads the examples of some paths.
        digest: by which an example is known again.
        set_apart: the digests of the examples that are not trained on.
    """

    files: Files
    read: Callable[[Sequence[str]], Iterator[E]]
    digest: Callable[[E], bytes]
    set_apart: frozenset[bytes]

    def train(self) -> Iterator[E]:
        """What is learned from."""
        return (example for example in self.read(self.files.train) if self.digest(example) not in self.set_apart)

    def valid(self) -> Iterator[E]:
        """What is validated on: files of its own, whole, or what is held out."""
        if self.files.valid:
            return self.read(self.files.valid)
        return (example for example in self.read(self.files.train) if self.digest(example) in self.set_apart)


def split_examples(
    files: Files,
    read: Callable[[Sequence[str], R | None], Iterator[E]],
    report_class: Callable[[], R],
    *,
    digest: Callable[[E], bytes],
    drop: Callable[[R, str, E], None],
    wanted: int,
    label: Callable[[E], str] = lambda _: "",
    every: int = EVERY,
) -> tuple[Split[E], DataReport[R]]:
    """Read everything once: what there is, and which examples are set apart for validation.

    Args:
        files: where the examples are; validation files, where they are given, are taken whole.
        read: reads the examples of some paths, and counts them in the report that it gets.
        report_class: makes an empty report.
        digest: two examples with the same digest never stand on both sides.
        drop: counts an example as dropped that was counted as kept, with the reason.
        wanted: how many examples to hold out, at most one in `every`; of each `label` its share.
    """
    train = report_class()
    examples = read(files.train, train)
    if not files.valid:
        set_apart = held_out(((label(example), digest(example)) for example in examples), wanted, every)
        report = DataReport(train, None, len(set_apart))
    else:
        report = DataReport(train, report_class())
        set_apart = frozenset(digest(example) for example in read(files.valid, report.valid))
        for example in examples:
            if digest(example) in set_apart:  # a score on these would be of memory
                drop(train, "also in validation", example)
    return Split(files, lambda paths: read(paths, None), digest, set_apart), report
