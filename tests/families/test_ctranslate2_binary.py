"""CTranslate2's file, read without CTranslate2: what it holds, and an error wherever it is not what it says."""

from __future__ import annotations

import struct
import tracemalloc
from pathlib import Path

import pytest
import torch

from heedful.families.ctranslate2 import CTranslate2Error, from_ctranslate2, read_binary

Variable = tuple[str, tuple[int, ...], int, int, bytes]  # name, shape, dtype, size, data
FLOAT, INT8, BFLOAT16 = 0, 1, 5
WEIGHT: Variable = ("a/weight", (2, 3), FLOAT, 24, struct.pack("<6f", 1, 2, 3, 4, 5, 6))
SMALL: Variable = ("b/weight", (2,), INT8, 2, struct.pack("<2b", -3, 127))
SCALE: Variable = ("b/weight_scale", (), FLOAT, 4, struct.pack("<f", 2.0))


def text(value: str) -> bytes:
    return struct.pack("<H", len(value.encode()) + 1) + value.encode() + b"\0"


def binary(
    *variables: Variable, version: int = 6, aliases: tuple[tuple[str, str], ...] = (), count: int | None = None
) -> bytes:
    """A file as the format has it, written independently of the reader."""
    whole = struct.pack("<I", version) + text("TransformerSpec") + struct.pack("<I", 7)
    whole += struct.pack("<I", len(variables) if count is None else count)
    for name, shape, dtype, size, data in variables:
        whole += (
            text(name) + struct.pack(f"<B{len(shape)}I", len(shape), *shape) + struct.pack("<BI", dtype, size) + data
        )
    if version >= 3:
        whole += struct.pack("<I", len(aliases)) + b"".join(text(item) + text(other) for item, other in aliases)
    return whole


def read(tmp_path: Path, content: bytes) -> dict[str, torch.Tensor]:
    (tmp_path / "model.bin").write_bytes(content)
    return read_binary(tmp_path / "model.bin").variables


def test_every_variable_is_read_by_name(tmp_path: Path) -> None:
    half = torch.tensor([1.5, -2.0], dtype=torch.bfloat16)
    raw = half.view(torch.uint8).numpy().tobytes()
    (tmp_path / "model.bin").write_bytes(binary(WEIGHT, SMALL, ("c", (2,), BFLOAT16, 4, raw)))
    result = read_binary(tmp_path / "model.bin")
    assert (result.version, result.spec, result.revision) == (6, "TransformerSpec", 7)
    assert result.variables["a/weight"].equal(torch.tensor([[1.0, 2, 3], [4, 5, 6]]))
    assert result.variables["b/weight"].equal(torch.tensor([-3, 127], dtype=torch.int8))
    assert result.variables["c"].equal(half)


def test_an_alias_is_the_tensor_it_stands_for_and_has_its_scale(tmp_path: Path) -> None:
    result = read(tmp_path, binary(SMALL, SCALE, aliases=(("d/weight", "b/weight"),)))
    assert result["d/weight"] is result["b/weight"]
    assert result["d/weight_scale"] is result["b/weight_scale"]


@pytest.mark.parametrize("version", [2, 3])
def test_older_files_store_item_size_and_count(version: int, tmp_path: Path) -> None:
    variables = [
        ("a", (2, 3), 4, 6, WEIGHT[4]),
        ("b", (2,), 1, 2, SMALL[4]),
        ("c", (1,), 2, 1, struct.pack("<h", -300)),
    ]
    result = read(tmp_path, binary(*variables, version=version))
    assert [tensor.dtype for tensor in result.values()] == [torch.float32, torch.int8, torch.int16]
    assert result["a"].flatten().tolist() == [1, 2, 3, 4, 5, 6]
    assert int(result["c"]) == -300


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    whole = binary(WEIGHT, SMALL, aliases=(("d/weight", "b/weight"),))
    assert len(read(tmp_path, whole)) == 3
    for length in range(len(whole)):
        with pytest.raises(CTranslate2Error):
            read(tmp_path, whole[:length])


HUGE = 0xFFFFFFFF
WRONG = {
    "a version of tomorrow": (binary(WEIGHT, version=7), "version is 7"),
    "a version of yesterday": (binary(WEIGHT, version=1), "version is 1"),
    "no such file": (b"PK\x03\x04 and so on", "version"),
    "bytes behind the end": (binary(WEIGHT) + b"\0", "1 bytes follow"),
    "twice the same": (binary(WEIGHT, WEIGHT), "a/weight occurs twice"),
    "an alias of nothing": (binary(WEIGHT, aliases=(("d", "e"),)), "is an alias of e"),
    "an alias that hides a weight": (binary(WEIGHT, SMALL, aliases=(("a/weight", "b/weight"),)), "twice"),
    "an unknown dtype": (binary(("a", (1,), 9, 4, b"\0" * 4)), "unknown dtype 9"),
    "a shape of another size": (binary(("a", (2, 2), FLOAT, 24, WEIGHT[4])), "not 24 bytes"),
    "too many dimensions": (binary(("a", (1,) * 200, FLOAT, 4, b"\0" * 4)), "200 dimensions"),
    "a name that is no text": (binary(WEIGHT).replace(b"a/weight", b"\xff\xfe/weigh"), "not UTF-8"),
    "more bytes than there are": (binary(("a", (HUGE // 4,), FLOAT, HUGE - 3, b"")), "only 4 are left"),
    "a shape beyond all bounds": (binary(("a", (HUGE, HUGE, HUGE), FLOAT, HUGE, b"")), "not 4,294,967,295 bytes"),
    "an empty shape beyond all bounds": (binary(("a", (0, HUGE, HUGE), FLOAT, 0, b"")), "no weight is so large"),
    "more variables than there are": (binary(WEIGHT, count=HUGE), "a name"),
    "a name longer than the file": (struct.pack("<IH", 6, 0xFFFF) + b"Transformer", "65,535"),
}


@pytest.mark.parametrize(("content", "word"), WRONG.values(), ids=WRONG)
def test_damaged_files_are_refused_without_allocating_memory(content: bytes, word: str, tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(content)
    tracemalloc.start()
    try:
        with pytest.raises(CTranslate2Error, match=word) as caught:
            read_binary(tmp_path / "model.bin")
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
    assert str(tmp_path / "model.bin") in str(caught.value)


def test_a_missing_or_empty_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(CTranslate2Error, match="nowhere is not a folder"):
        from_ctranslate2(tmp_path / "nowhere")
    with pytest.raises(CTranslate2Error, match=r"model\.bin cannot be read"):
        from_ctranslate2(tmp_path)
