"""Configs are strict on the way in, whole on the way out, and their errors say what to do."""

from __future__ import annotations

import json
import tracemalloc
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pytest

from heedful.config import assign, read_mapping
from heedful.errors import ConfigError
from heedful.families import OriginalConfig, RecurrentConfig, build, config_of, presets


@pytest.mark.parametrize("suffix", [".json", ".yaml", ".yml"])
def test_a_config_comes_back_from_its_file(tmp_path: Path, suffix: str) -> None:
    config = OriginalConfig(d_model=96, n_heads=6, n_kv_heads=2, dropout=0.25, positions="rotary", tied="output")
    path = tmp_path / f"config{suffix}"
    config.save(path)
    assert config_of(read_mapping(path)) == config


def test_the_dict_of_a_config_names_its_family_and_is_plain() -> None:
    values = RecurrentConfig(attention="none").to_dict()
    assert next(iter(values.items())) == ("family", "recurrent")
    assert json.loads(json.dumps(values)) == values
    assert config_of(values) == RecurrentConfig(attention="none")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"d_modle": 64}, ["d_modle", "did you mean 'd_model'"]),
        ({"d_model": "64"}, ["original.d_model", "whole number", "'64'"]),
        ({"d_model": 64.0}, ["whole number", "64.0"]),
        ({"d_model": True}, ["whole number", "True"]),
        ({"bias": 1}, ["true or false"]),
        ({"dropout": "0.1"}, ["number", "'0.1'"]),
        ({"dropout": float("nan")}, ["finite"]),
        ({"dropout": 1.0}, ["dropout", "below 1"]),
        ({"n_heads": 0}, ["n_heads", "at least 1"]),
        ({"d_model": 100, "n_heads": 8}, ["d_model=100", "n_heads=8", "divisible"]),
        ({"n_heads": 8, "n_kv_heads": 3}, ["n_heads=8", "n_kv_heads=3"]),
        ({"d_head": 7, "positions": "rotary"}, ["even", "7"]),
        ({"positions": "rotery"}, ["did you mean 'rotary'", "sinusoidal"]),
        ({"positions": None}, ["None", "sinusoidal"]),
        ({"vocab_size": 10, "target_vocab_size": 20}, ["one vocabulary", 'tied="output"']),
        ({"max_length": None}, ["max_length", "whole number"]),
    ],
)
def test_a_wrong_value_is_refused_in_words(values: dict[str, Any], expected: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        config_of({"family": "original", **values})
    for word in expected:
        assert word in str(caught.value)


def test_python_construction_is_checked_like_a_file() -> None:
    wrong: Any = "64"
    with pytest.raises(ConfigError, match="whole number"):
        OriginalConfig(d_model=wrong)
    with pytest.raises(ConfigError, match="d_modle"):
        OriginalConfig().changed(d_modle=3)
    with pytest.raises(FrozenInstanceError):
        OriginalConfig().d_model = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("bse", "did you mean 'base'"),
        ({"family": "orignal"}, "did you mean 'original'"),
        ({"d_model": 64}, '"family"'),
        ({"family": "recurrent", "n_heads": 8}, "unknown key 'n_heads'"),
    ],
)
def test_what_names_no_model_is_refused(spec: Any, expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        build(spec)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.json", '{"family": "original", "family": "recurrent"}', "twice"),
        ("a.yaml", "d_model: 64\nd_model: 128\n", "twice"),
        ("a.yaml", "- 1\n- 2\n", "keys and values"),
        ("a.yaml", "a: [1,", "a.yaml"),
        ("a.yaml", "a: !!python/object/apply:os.getcwd []\n", "a.yaml"),
        ("a.json", "{", "a.json"),
        ("a.toml", "", ".json, .yaml or .yml"),
    ],
)
def test_a_broken_file_is_named(tmp_path: Path, name: str, text: str, expected: str) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=expected):
        read_mapping(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        read_mapping(tmp_path / "nowhere.yaml")


def test_yaml_reads_small_numbers_as_people_write_them(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("dropout: 1e-1\nd_model: 64\n", encoding="utf-8")
    assert read_mapping(path) == {"dropout": 0.1, "d_model": 64}


def test_the_presets_are_the_papers() -> None:
    base, big = presets()["base"], presets()["big"]
    assert base == OriginalConfig()
    assert isinstance(big, OriginalConfig)
    assert (big.d_model, big.n_heads, big.d_ff, big.dropout) == (1024, 16, 4096, 0.3)
    assert {"tiny", "small", "base", "big"} <= presets().keys()


LISTS = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10)
)
MERGES = "a0: &a0 {x: 1}\n" + "".join(f"a{n}: &a{n}\n  <<: [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LISTS, "more than 100,000 values"),
        (MERGES, "more than 100,000 values"),
        ("a: [" + "1," * 100_001 + "]", "more than 100,000 values"),
        ("a: &a [*a]", "recursive"),
        ("a: " + "[" * 5000 + "]" * 5000, "recursion"),
    ],
    ids=["aliases", "merges", "values", "a cycle", "depth"],
)
def test_a_yaml_file_has_a_limited_number_of_values_with_its_aliases(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(text, encoding="utf-8")
    tracemalloc.start()
    try:
        with pytest.raises(ConfigError, match=rf"a\.yaml: .*{message}"):
            read_mapping(path)
        assert tracemalloc.get_traced_memory()[1] < 200_000_000
    finally:
        tracemalloc.stop()


def test_aliases_and_merges_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("base: &b {x: 1, y: [1, 2]}\nother:\n  <<: *b\n  z: 2\nlist: [*b, *b]\n", encoding="utf-8")
    base = {"x": 1, "y": [1, 2]}
    assert read_mapping(path) == {"base": base, "other": {**base, "z": 2}, "list": [base, base]}


def test_a_setting_that_is_nested_too_deeply_is_refused() -> None:
    with pytest.raises(ConfigError, match="recursion"):
        assign({}, f"a={'[' * 5000}")


def test_a_config_that_does_not_end_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").symlink_to("/dev/zero")
    with pytest.raises(ConfigError, match=r"a\.yaml: it is not a regular file"):
        read_mapping(tmp_path / "a.yaml")
