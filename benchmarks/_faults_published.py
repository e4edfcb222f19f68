"""Faults of models by others: pickles, safetensors headers, tokenizers, and CTranslate2 files."""

from __future__ import annotations

import json
import os
import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _faults import Bench, Seen, fault
from _faults_bundles import NAN, change_config, change_weights, put

GROUP = "Imports"
REFUSED = "an error names the file; nothing is written"


def imported(bench: Bench, folder: Path, *parts: str, seconds: float = 60) -> Seen:
    """Import a folder that should be refused with a message of these patterns."""
    out = bench.folder / "out"
    return bench.refused(bench.run("import", folder, "--out", out, seconds=seconds), *parts, absent=out)


@fault(
    GROUP, "import-nan", "one published weight becomes NaN; `import`", "an error names the tensor; nothing is written"
)
def _nan(bench: Bench) -> Seen:
    folder = bench.copy("published")
    change_weights(folder, put(NAN))
    return imported(bench, folder, "holds NaN or inf")


CONFIGS: dict[str, dict[str, Any]] = {
    "import-width": {"hidden_size": 40_000},
    "import-layers": {"num_hidden_layers": 10**9},
    "import-vocabulary": {"vocab_size": 10**12},
    "import-positions": {"max_position_embeddings": 10**12},
    "import-code": {"auto_map": {"AutoModel": "code.Evil"}, "model_type": "evil"},
}
for name, changes in CONFIGS.items():

    @fault(GROUP, name, f"a published config.json with `{json.dumps(changes)}`; `import`", REFUSED)
    def _config(bench: Bench, changes: dict[str, Any] = changes) -> Seen:
        folder = bench.copy("published")
        change_config(folder, lambda values: values.update(changes))
        return imported(bench, folder, "published")


def _header(entries: dict[str, Any], data: bytes = b"") -> bytes:
    header = json.dumps(entries).encode()
    return struct.pack("<Q", len(header)) + header + data


HEADERS: dict[str, tuple[str, bytes]] = {
    "length": ("a header of 2^60 bytes", struct.pack("<Q", 2**60) + b"{}"),
    "deep": ("a header of 100,000 nested lists", struct.pack("<Q", 200_000) + b"[" * 100_000 + b"]" * 100_000),
    "offsets": (
        "a tensor whose data lie beyond the end",
        _header({"a": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}}),
    ),
    "overflow": (
        "a shape whose product overflows",
        _header({"a": {"dtype": "F32", "shape": [2**32, 2**32], "data_offsets": [0, 0]}}),
    ),
    "overlap": (
        "two tensors that share their bytes",
        _header(
            {
                "a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
                "b": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
            },
            bytes(4),
        ),
    ),
}
for name, (text, content) in HEADERS.items():

    @fault(GROUP, f"safetensors-{name}", f"model.safetensors has {text}; `import`", REFUSED)
    def _safetensors(bench: Bench, content: bytes = content) -> Seen:
        folder = bench.copy("published")
        (folder / "model.safetensors").write_bytes(content)
        return imported(bench, folder, r"model\.safetensors")


class _Runs:
    """Runs a command when it is unpickled."""

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, ("touch ran",)


def _archive(path: Path, content: bytes) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", content)
        archive.writestr("archive/version", "3\n")


NESTED = b"\x80\x02}" + b")" + b"q\x00h\x00\x86" * 60 + b"K\x01s."  # a key of 2^60 empty tuples, stored once
PICKLES: dict[str, tuple[str, bytes, str]] = {
    "code": ("calls os.system", pickle.dumps({"a": _Runs()}, protocol=2), "which is not part of weights"),
    "nested-keys": ("has nested tuples as a key", NESTED, "pytorch_model.bin"),
    "nested-values": (
        "has nested tuples as a value",
        b"\x80\x02}X\x01\x00\x00\x00a" + b")" + b"q\x00h\x00\x86" * 60 + b"s.",
        "pytorch_model.bin",
    ),
    "large-text": ("is no pickle", b"\x80\x02" + b"x" * 1000, "pytorch_model.bin"),
}
for name, (text, content, part) in PICKLES.items():
    for kind in ("archive", "legacy"):

        @fault(GROUP, f"pickle-{name}-{kind}", f"a pytorch_model.bin ({kind}) whose pickle {text}; `import`", REFUSED)
        def _pickled(bench: Bench, kind: str = kind, content: bytes = content, part: str = part) -> Seen:
            folder = bench.copy("published")
            (folder / "model.safetensors").unlink()
            path = folder / "pytorch_model.bin"
            if kind == "archive":
                _archive(path, content)
            else:
                magic = pickle.dumps(0x1950A86A20F9469CFC6C, protocol=2) + pickle.dumps(1001, protocol=2)
                path.write_bytes(
                    magic + pickle.dumps({"little_endian": True}, protocol=2) + content + pickle.dumps([], 2)
                )
            seen = imported(bench, folder, part, seconds=30)
            return Seen(seen.passed and not (bench.folder / "ran").exists(), seen.text)


@fault(GROUP, "shard-outside", "an index names the shard `../secret.safetensors`; `import`", "it is not opened")
def _shard(bench: Bench) -> Seen:
    folder = bench.copy("published")
    (folder / "model.safetensors").rename(bench.folder / "secret.safetensors")
    index = {"weight_map": {"bert.embeddings.word_embeddings.weight": "../secret.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return imported(bench, folder, "parts are files of the same folder")


def change_tokenizer(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change tokenizer.json."""
    change_json(folder / "tokenizer.json", change)


def change_json(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change a JSON file."""
    values = json.loads(path.read_text(encoding="utf-8"))
    change(values)
    path.write_text(json.dumps(values), encoding="utf-8")


REPLACE = {"type": "Replace", "pattern": {"String": "a"}, "content": "aaaaaaaaaa"}
TEXT = "the cat drinks water " * 50


@fault(
    GROUP,
    "tokenizer-replace",
    "nine Replace rules in tokenizer.json, each of which makes ten letters of one; `import`, then `predict`",
    "refused, or little memory",
)
def _replace(bench: Bench) -> Seen:
    folder = bench.copy("published")
    change_tokenizer(
        folder, lambda values: values.update(normalizer={"type": "Sequence", "normalizers": [REPLACE] * 9})
    )
    out = bench.folder / "out"
    ended = bench.run("import", folder, "--out", out, seconds=60)
    if ended.code:
        return bench.refused(ended, "tokenizer", absent=out)
    return bench.refused(bench.run("predict", out, stdin=b"a cat reads\n", seconds=60))


@fault(
    GROUP,
    "tokenizer-expression",
    "the regular expression `(a+)+b` in tokenizer.json; `import`, then `predict` for 40 letters a",
    "an error for the text, and no hanging",
)
def _expression(bench: Bench) -> Seen:
    folder = bench.copy("published")
    split = {"type": "Split", "pattern": {"Regex": "(a+)+b"}, "behavior": "Isolated", "invert": False}
    change_tokenizer(folder, lambda values: values.update(pre_tokenizer=split))
    out = bench.folder / "out"
    ended = bench.run("import", folder, "--out", out, seconds=60)
    if ended.code:
        return bench.refused(ended, "tokenizer", absent=out)
    ended = bench.run("predict", out, stdin=b"a" * 40 + b"\nthe cat reads\n", seconds=60)
    return bench.refused(ended, "tokenizer") if ended.code else bench.answered(ended)


@fault(GROUP, "tokenizer-special", "an added token with the id 10^9 in tokenizer.json; `import`", REFUSED)
def _special(bench: Bench) -> Seen:
    folder = bench.copy("published")
    token = {"id": 10**9, "content": "<x>", "special": True}
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    change_tokenizer(folder, lambda values: values["added_tokens"].append({**token, **flags}))
    return imported(bench, folder, r"tokenizer\.json")


@fault(GROUP, "tokenizer-deep", "tokenizer.json with 5,000 nested normalizers; `import`", REFUSED)
def _deep(bench: Bench) -> Seen:
    folder = bench.copy("published")
    path = folder / "tokenizer.json"
    values = json.loads(path.read_text(encoding="utf-8"))
    values["normalizer"] = "NESTED"
    nested = '{"type": "Sequence", "normalizers": [' * 5000 + '{"type": "NFC"}' + "]}" * 5000
    path.write_text(json.dumps(values).replace('"NESTED"', nested), encoding="utf-8")
    return imported(bench, folder, r"tokenizer\.json")


@fault(
    GROUP, "tokenizer-fifo", "the tokenizer.json of a published folder is a named pipe; `import`", "an error at once"
)
def _fifo(bench: Bench) -> Seen:
    folder = bench.copy("published")
    (folder / "tokenizer.json").unlink()
    os.mkfifo(folder / "tokenizer.json")
    return imported(bench, folder, r"tokenizer\.json", seconds=30)


@fault(
    GROUP, "tokenizer-zero", "the tokenizer.json of a published folder links to /dev/zero; `import`", "an error at once"
)
def _zero(bench: Bench) -> Seen:
    folder = bench.copy("published")
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer.json").symlink_to("/dev/zero")
    return imported(bench, folder, r"tokenizer\.json", seconds=30)


def binary(shape: tuple[int, ...], size: int, dtype: int = 0, data: bytes = b"") -> bytes:
    """Return a model.bin of one variable."""

    def text(value: bytes) -> bytes:
        return struct.pack("<H", len(value) + 1) + value + b"\0"

    head = struct.pack("<I", 6) + text(b"TransformerSpec") + struct.pack("<II", 7, 1)
    dimensions = struct.pack("<B", len(shape)) + b"".join(struct.pack("<I", number) for number in shape)
    return head + text(b"a") + dimensions + struct.pack("<BI", dtype, size) + data + struct.pack("<I", 0)


BINARIES = {
    "shape-zero": ("a shape of 0 × (2^32 - 1) × (2^32 - 1)", binary((0, 2**32 - 1, 2**32 - 1), 0)),
    "shape-large": ("a shape of 2^31 × 2^31 in 4 bytes", binary((2**31, 2**31), 4, data=bytes(4))),
    "size": ("a variable of 4 GB in a file of 60 bytes", binary((2**30,), 2**32 - 4)),
    "rank": ("255 dimensions", binary((1,) * 255, 4, data=bytes(4))),
}
for name, (text, content) in BINARIES.items():

    @fault(GROUP, f"ctranslate2-{name}", f"a model.bin of CTranslate2 with {text}; `import`", REFUSED)
    def _binary(bench: Bench, content: bytes = content) -> Seen:
        folder = bench.copy("ctranslate2")
        (folder / "model.bin").write_bytes(content)
        return imported(bench, folder, "ctranslate2")


@fault(GROUP, "ctranslate2-nan", "a model.bin of CTranslate2 whose weights are NaN; `import`", REFUSED)
def _ctranslate2_nan(bench: Bench) -> Seen:
    folder = bench.copy("ctranslate2")
    content = bytearray((folder / "model.bin").read_bytes())
    middle = len(content) // 2 // 4 * 4
    for place in range(middle, middle + 64):
        content[place] = 0xFF
    (folder / "model.bin").write_bytes(content)
    return imported(bench, folder, "NaN or inf")


@fault(GROUP, "ctranslate2-number", "a number of 5,000 digits in the config.json of CTranslate2; `import`", REFUSED)
def _number(bench: Bench) -> Seen:
    folder = bench.copy("ctranslate2")
    (folder / "config.json").write_text(f'{{"layer_norm_epsilon": {"1" * 5000}}}')
    return imported(bench, folder, r"config\.json")


@fault(
    GROUP, "ctranslate2-number-large", "a number of 4,000 digits in the config.json of CTranslate2; `import`", REFUSED
)
def _number_large(bench: Bench) -> Seen:
    folder = bench.copy("ctranslate2")
    (folder / "config.json").write_text(f'{{"layer_norm_epsilon": {"1" * 4000}}}')
    return imported(bench, folder, r"config\.json")


@fault(GROUP, "ctranslate2-vocabulary", "the vocabulary of CTranslate2 links to /dev/zero; `import`", REFUSED)
def _vocabulary(bench: Bench) -> Seen:
    folder = bench.copy("ctranslate2")
    path = folder / "shared_vocabulary.json"
    path.unlink()
    path.symlink_to("/dev/zero")
    return imported(bench, folder, "vocabulary", seconds=30)
