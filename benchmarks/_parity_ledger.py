"""One model in the parity ledger: its figures at every size, and its way out into transformers and in again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import torch
from torch import Tensor

from _parity_cases import Case, at_once, cached, cases, reference_output
from _parity_figures import BAR, Figures, compare, worst
from heedful.core import DecoderOnly, EncoderDecoder
from heedful.families import read_checkpoint, write_checkpoint
from published_pairs import MAKERS, Pair, pair, reference
from published_readers import CHANGES, PARTS

LENGTHS = (1, 9, 64, 512)
WRITE, READ, IMAGES, SERIES = "Generative models", "Text encoders", "Images", "Series"
KINDS = (WRITE, READ, IMAGES, SERIES)


@dataclass(frozen=True)
class Row:
    """Figures of one model at one size, the worst of all ways of padding and caching. The reference is float64."""

    size: str
    way: str  # where the two float32 runs differ most
    beside: Figures  # Heedful compared with transformers, both float32
    heedful: Figures  # float32 compared with float64
    hf: Figures
    heedful_half: Figures  # bfloat16 compared with float64
    hf_half: Figures


@dataclass(frozen=True)
class Exchange:
    """What a folder that Heedful wrote gives in transformers, and whether it is read back bit by bit."""

    exported: float  # the difference of the logits; 0 where every bit is the same
    imported: bool

    @property
    def within_the_bar(self) -> bool:
        return self.exported <= BAR and self.imported


@dataclass(frozen=True)
class Entry:
    """One model's page in the ledger."""

    model: str
    kind: str
    rows: tuple[Row, ...]
    exchange: Exchange

    @property
    def within_the_bar(self) -> bool:
        return all(row.beside.within_the_bar for row in self.rows) and self.exchange.within_the_bar


class Twins(NamedTuple):
    """The same weights in float32 and bfloat16 on both sides, and in float64 in transformers."""

    single: Pair
    half: Pair
    truth: Any

    @classmethod
    def of(cls, name: str) -> Twins:
        return cls(pair(name), pair(name, torch.bfloat16), reference(name, torch.float64))


def ledger(lengths: Sequence[int] = LENGTHS) -> Iterator[Entry]:
    """Every model there is a maker for."""
    for name in MAKERS:
        yield entry(name, Twins.of(name), lengths)


def entry(name: str, twins: Twins, lengths: Sequence[int] = LENGTHS) -> Entry:
    """Measure one model at all lengths."""
    by_size: dict[str, list[Row]] = {}
    for case in cases(twins.single, lengths):
        by_size.setdefault(case.size, []).extend(_measured(twins, case))
    rows = tuple(merged(group) for group in by_size.values())
    return Entry(name, kind_of(twins.single), rows, exchange(twins.single, CHANGES.get(name, {}), PARTS.get(name, {})))


def merged(rows: Sequence[Row]) -> Row:
    """The worst of several, with the name of the row that differs most."""
    most = max(rows, key=lambda row: row.beside.difference)
    names = ("beside", "heedful", "hf", "heedful_half", "hf_half")
    figures = {name: worst([getattr(row, name) for row in rows]) for name in names}
    return Row(most.size, most.way, **figures)


def kind_of(both: Pair) -> str:
    """Which table a model belongs in."""
    dimensions = both.inputs(1, 1).dim()
    if dimensions > 2:
        return SERIES if dimensions == 3 else IMAGES
    return WRITE if _writes(both) else READ


def exchange(both: Pair, changes: Mapping[str, Any], parts: Mapping[str, Any]) -> Exchange:
    """Write a folder, load it in transformers and here. `changes` and `parts` are what no config.json says."""
    with TemporaryDirectory() as scratch:
        folder = Path(scratch) / "written"
        write_checkpoint(folder, both.module, both.config, both.generation)
        loaded = _unmapped(type(both.reference).from_pretrained(folder, **parts).eval())
        again = _unmapped(read_checkpoint(folder, **changes).module)
    first, second = both.module.state_dict(), again.state_dict()
    differences = [
        compare(reference_output(loaded, case).values, reference_output(both.reference, case).values, chosen=False)
        for case in cases(both, [9])
    ]
    same = first.keys() == second.keys() and all(torch.equal(tensor, second[key]) for key, tensor in first.items())
    return Exchange(worst(differences).difference, same)


def _measured(twins: Twins, case: Case) -> Iterator[Row]:
    single, half = (reference_output(both.reference, case) for both in (twins.single, twins.half))
    truth, chosen = reference_output(twins.truth, case)

    def beside(answer: Tensor, other: Tensor) -> Figures:
        return compare(answer, other, chosen=chosen)

    for way, run in ways(twins.single).items():
        heedful, heedful_half = run(twins.single.module, case), run(twins.half.module, case)
        yield Row(
            case.size,
            f"{case.padding}, {way}",
            beside=beside(heedful, single.values),
            heedful=beside(heedful, truth),
            hf=beside(single.values, truth),
            heedful_half=beside(heedful_half, truth),
            hf_half=beside(half.values, truth),
        )


def _unmapped(model: Any) -> Any:
    """With its tensors in memory: in a file they are not aligned, and the same numbers are summed in another order."""
    for tensor in (*model.parameters(), *model.buffers()):
        tensor.data = tensor.data.clone()
    return model


def ways(both: Pair) -> dict[str, Callable[[Any, Case], Tensor]]:
    """How a model of Heedful is run."""
    return {"at once": at_once, "cached": cached} if _writes(both) else {"at once": at_once}


def _writes(both: Pair) -> bool:
    return isinstance(both.module, EncoderDecoder | DecoderOnly)
