"""torch's own weights: pickles from strangers, with more in them than weights, or less data than they say."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from heedful.families import PublishedWarning, read_checkpoint
from heedful.families.checkpoint_files import read_pickled
from heedful.families.weights import WeightsError
from published_pairs import pair, reference

WTE = "transformer.wte.weight"


def pickled(folder: Path, tensors: Any = None, *, old: bool = False) -> Path:
    """A folder whose weights are torch's."""
    model = reference("gpt2")
    model.config.save_pretrained(folder)
    model.config.architectures = ["GPT2LMHeadModel"]
    path = folder / "pytorch_model.bin"
    torch.save(model.state_dict() if tensors is None else tensors, path, _use_new_zipfile_serialization=not old)
    return path


both_formats = pytest.mark.parametrize("old", [False, True], ids=["zip", "before 1.6"])


@both_formats
def test_weights_of_torch_are_read_with_a_warning(old: bool, tmp_path: Path) -> None:
    path = pickled(tmp_path, old=old)
    with pytest.warns(PublishedWarning, match="pytorch_model.bin is a pickle; it is read without running"):
        module = read_checkpoint(tmp_path).module
    for key, tensor in pair("gpt2").module.state_dict().items():
        assert torch.equal(module.state_dict()[key], tensor), key
    reference("gpt2").save_pretrained(tmp_path)
    path.write_bytes(b"damaged")
    read_checkpoint(tmp_path)  # safetensors are preferred


def test_weights_of_torch_in_several_files(tmp_path: Path) -> None:
    tensors = reference("gpt2").state_dict()
    pickled(tmp_path).unlink()
    shards = [f"pytorch_model-0000{place}-of-00002.bin" for place in (1, 2)]
    places = {name: shards[place % 2] for place, name in enumerate(tensors)}
    for shard in shards:
        torch.save({name: tensors[name].clone() for name, place in places.items() if place == shard}, tmp_path / shard)
    (tmp_path / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": places}))
    with pytest.warns(PublishedWarning):
        module = read_checkpoint(tmp_path).module
    assert torch.equal(module.embedding.weight, tensors[WTE])


class Strange:
    """What a pickle makes by calling something."""

    def __init__(self, call: Callable[..., Any], *arguments: Any) -> None:
        self._made = call, arguments

    def __reduce__(self) -> Any:
        return self._made


@both_formats
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (Strange(Path.unlink, Path("precious")), "which is not part of weights; it was not read"),
        (Strange(bytearray, 10**12), "names '__builtin__ bytearray'|names 'builtins bytearray'"),
        (Strange(torch.Tensor, 10**12), "names 'torch Tensor'|names 'torch._tensor Tensor'"),
        (torch.zeros(2).to_sparse(), "names 'torch._utils _rebuild_sparse_tensor'"),
        (torch.zeros(1).expand(10**12), r"'x' is \(1000000000000,\) of 4 bytes"),
        ([torch.zeros(2)], "is not a dict of tensors only: 'x' is list"),
        (5, "is not a dict of tensors only: 'x' is int"),
    ],
)
def test_a_pickle_with_more_or_less_than_weights(value: Any, message: str, old: bool, tmp_path: Path) -> None:
    path = pickled(tmp_path, {"x": value}, old=old)
    with pytest.warns(PublishedWarning), pytest.raises(WeightsError, match=message):
        read_pickled(path)


@both_formats
def test_a_pickle_that_holds_no_weights_by_name(old: bool, tmp_path: Path) -> None:
    path = pickled(tmp_path, [1, 2], old=old)
    with pytest.warns(PublishedWarning), pytest.raises(WeightsError, match="a dict of tensors, but a list"):
        read_pickled(path)


@both_formats
def test_too_many_aliases_are_refused(old: bool, tmp_path: Path) -> None:
    item = torch.zeros(10_000)
    path = pickled(tmp_path, {f"{place}": item for place in range(100)}, old=old)
    with pytest.warns(PublishedWarning), pytest.raises(WeightsError, match="all tensors take 4,000,000"):
        read_pickled(path)
    path = pickled(tmp_path, {f"{place}": item for place in range(4)}, old=old)
    with pytest.warns(PublishedWarning):
        assert len(read_pickled(path)) == 4


@both_formats
def test_a_truncated_pickle_is_refused(old: bool, tmp_path: Path) -> None:
    path = pickled(tmp_path, {"x": torch.zeros(9), "y": torch.zeros(900)}, old=old)
    whole = path.read_bytes()
    for end in (0, 1, 3, 4, 50, 200, 600, len(whole) - 900, len(whole) - 1):
        path.write_bytes(whole[:end])
        with pytest.warns(PublishedWarning), pytest.raises(WeightsError):
            read_pickled(path)


def test_archives_that_torch_would_not_write(tmp_path: Path) -> None:
    path = pickled(tmp_path, {"x": torch.zeros(9)})
    with zipfile.ZipFile(path) as archive:
        records = {name: archive.read(name) for name in archive.namelist()}
    cases: list[tuple[dict[str, bytes], int, str]] = [
        (records, zipfile.ZIP_DEFLATED, "holds compressed parts"),
        ({"a": b"b"}, zipfile.ZIP_STORED, "an archive with 0 of data.pkl"),
        (records | {"other/data.pkl": b""}, zipfile.ZIP_STORED, "an archive with 2 of data.pkl"),
    ]
    for content, method, message in cases:
        with zipfile.ZipFile(path, "w", method) as archive:
            for name, data in content.items():
                archive.writestr(name, data)
        with pytest.warns(PublishedWarning), pytest.raises(WeightsError, match=message):
            read_pickled(path)


def test_stack_globals_are_refused(tmp_path: Path) -> None:
    """A pickle can spell the name of what it calls as text, where a look at its names would miss it."""
    path = pickled(tmp_path)
    for code in (b"\x80\x04\x8c\x02os\x8c\x06system\x93.", b"(S'ls'\nios\nsystem\n.", b"\x80\x02\x82\x01."):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("a/data.pkl", code)
            archive.writestr("a/version", "3\n")
        with (
            pytest.warns(PublishedWarning),
            pytest.raises(WeightsError, match=r"holds (STACK_GLOBAL|INST|EXT1), which"),
        ):
            read_pickled(path)


def lie(storage: int, shape: tuple[int, ...]) -> bytes:
    """The pickle of one tensor, with data of that many numbers."""

    class Pickler(pickle.Pickler):
        def persistent_id(self, thing: Any) -> Any:
            return ("storage", torch.FloatStorage, "0", "cpu", storage) if thing is marker else None

        def reducer_override(self, thing: Any) -> Any:
            if not isinstance(thing, Tensor):
                return NotImplemented
            return torch._utils._rebuild_tensor_v2, (marker, 0, shape, (1,) * len(shape), False, OrderedDict())

    marker = object()
    saved = io.BytesIO()
    Pickler(saved, protocol=2).dump({"x": torch.zeros(1)})
    return saved.getvalue()


@pytest.mark.parametrize(
    ("storage", "shape"), [(10**12, (10**12,)), (10**12, (2,)), (2, (10**12,)), (10**5, (10**5,)), (2, (3,))]
)
def test_an_archive_with_false_sizes_is_refused(storage: int, shape: tuple[int, ...], tmp_path: Path) -> None:
    path = tmp_path / "pytorch_model.bin"

    def archive(storage: int, shape: tuple[int, ...]) -> None:
        with zipfile.ZipFile(path, "w") as records:
            for name, data in {"data.pkl": lie(storage, shape), "data/0": bytes(16), "version": b"3\n"}.items():
                records.writestr(f"a/{name}", data)

    archive(4, (2, 2))
    with pytest.warns(PublishedWarning):
        assert read_pickled(path)["x"].shape == (2, 2)
    archive(storage, shape)
    with pytest.warns(PublishedWarning), pytest.raises(WeightsError, match=r"damaged|cannot be read as torch weights"):
        read_pickled(path)


def nested(levels: int, before: bytes, after: bytes) -> bytes:
    """A pickle of a dict with a tuple of two references to one tuple, and so on: 2^levels tuples, each stored once."""
    return b"\x80\x02}" + before + b")" + b"q\x00h\x00\x86" * levels + after


@pytest.mark.parametrize(("before", "after"), [(b"", b"K\x01s."), (b"K\x01", b"s.")], ids=["a key", "a value"])
def test_tuples_that_double_at_each_level_are_refused(before: bytes, after: bytes, tmp_path: Path) -> None:
    path = tmp_path / "pytorch_model.bin"

    def archive(levels: int) -> None:
        with zipfile.ZipFile(path, "w") as records:
            records.writestr("a/data.pkl", nested(levels, before, after))
            records.writestr("a/version", b"3\n")

    archive(60)
    with pytest.warns(PublishedWarning), pytest.raises(WeightsError, match="tuples that are nested more than 8 deep"):
        read_pickled(path)
    archive(3)
    with pytest.warns(PublishedWarning), pytest.raises(WeightsError, match="not a dict of tensors only"):
        read_pickled(path)
