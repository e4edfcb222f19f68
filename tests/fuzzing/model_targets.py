"""Everything that reads models of strangers: weights, configs, tokenizers, bundles, checkpoints."""

from __future__ import annotations

import hashlib
import io
import json
import pickletools
import shutil
import struct
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import torch
from checking import Target, expect_error_of, reading
from data_targets import changed_archive
from mutations import SIZES, changed_bytes, changed_json, changed_text, changed_value, dump
from safetensors.torch import save

import heedful
from every_task import TINY, built, wordpiece
from heedful.data.published_tokenizer import PublishedTokenizer
from heedful.data.text_tokenizers import EncoderTokenizerConfig, learn_tokenizer
from heedful.data.tokenizer import Tokenizer
from heedful.errors import HeedfulError
from heedful.families import config_of
from heedful.families.checkpoint_files import read_mapped, read_pickled, read_tensors
from heedful.families.ctranslate2 import from_ctranslate2
from heedful.families.hf_io import read_checkpoint, write_checkpoint
from heedful.families.weights import finite_tensors, stored_shapes
from heedful.tasks.ctranslate2_export import export_ctranslate2
from heedful.training import checkpoint

TENSORS = {
    "a.weight": torch.arange(6.0).reshape(2, 3),
    "a.bias": torch.zeros(2, dtype=torch.float16),
    "empty": torch.ones(0),
}
TEXTS = ("The cat reads.", "나는 물을 마셔요!", "", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "[MASK] <s> \0\n\t")


def folder_of(write: Callable[[Path], object]) -> dict[str, bytes]:
    """Return the files of a folder that a function writes."""
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "model"
        write(folder)
        return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def write_files(folder: Path, files: dict[str, bytes]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


# Folders: what is changed is the file that the first line of an input names; its other bytes are that file.


def in_folder(name: str, content: bytes) -> bytes:
    return name.encode() + b"\n" + content


def changed_file(random: Random, content: bytes) -> bytes:
    """Change the file of an input by its kind."""
    name, _, file = content.partition(b"\n")
    if name.endswith(b".safetensors"):
        return name + b"\n" + changed_safetensors(random, file)
    if name.endswith(b".json"):
        return name + b"\n" + (changed_json if random.random() < 0.9 else changed_bytes)(random, file)
    return name + b"\n" + (changed_text if name.endswith((b".txt", b".jsonl")) else changed_bytes)(random, file)


def reading_folder(
    files: Callable[[], dict[str, bytes]], read: Callable[[Path], object], *, sums: str = ""
) -> Callable[[bytes, Path], None]:
    """Return the check of a reader of a folder.

    Args:
        files: Returns the valid files.
        read: Reads the folder.
        sums: The JSON file with the checksums of the others, which are made right again.
    """

    def check(content: bytes, folder: Path) -> None:
        name, _, file = content.partition(b"\n")
        changed = files() | {name.decode(errors="replace"): file}
        if sums and name.decode(errors="replace") != sums:
            values = json.loads(changed[sums])
            paths = {key: str(Path(sums).with_name(key)) for key in values["sha256"]}
            values["sha256"] = {key: hashlib.sha256(changed[path]).hexdigest() for key, path in paths.items()}
            changed[sums] = json.dumps(values).encode()
        write_files(folder, changed)
        expect_error_of(folder, lambda: read(folder))

    return check


def seeds_of(files: Callable[[], dict[str, bytes]], *names: str) -> Callable[[], Sequence[bytes]]:
    """Return the seeds of a folder: each of these files, or all."""
    return lambda: [in_folder(name, content) for name, content in files().items() if not names or name in names]


# Weights


def changed_safetensors(random: Random, content: bytes) -> bytes:
    """Change the header as JSON and state its length rightly, or change the bytes of the file."""
    if len(content) < 8 or random.random() < 0.3:
        return changed_bytes(random, content)
    (length,) = struct.unpack("<Q", content[:8])
    if length > len(content):
        return changed_bytes(random, content)
    header = changed_json(random, content[8 : 8 + length])
    if random.random() < 0.1:
        return struct.pack("<Q", random.choice(SIZES)) + header + content[8 + length :]
    return struct.pack("<Q", len(header)) + header + content[8 + length :]


def read_every_way(path: Path) -> None:
    """Read a safetensors file in each of the ways of the package; what one reads must not crash another."""
    errors = []
    for read in (read_mapped, stored_shapes, finite_tensors):
        try:
            read(path)
        except HeedfulError as error:
            errors.append(error)
    if errors:
        raise errors[0]


def torch_file(tensors: Any, *, old: bool = False) -> bytes:
    file = io.BytesIO()
    torch.save(tensors, file, _use_new_zipfile_serialization=not old)
    return file.getvalue()


@cache
def zipped_pickles() -> list[bytes]:
    shared = torch.zeros(4)
    return [
        torch_file(OrderedDict(TENSORS)),
        torch_file({"a": shared, "b": shared[1:], "c": torch.nn.Parameter(torch.ones(2, 2))}),
    ]


@cache
def old_pickles() -> list[bytes]:
    return [torch_file(TENSORS, old=True)]


OPCODES = (
    *(
        b"cos\nsystem\n",
        b"(S'ls'\nios\nsystem\n",
        b"\x8c\x02os\x8c\x06system\x93",
        b"\x82\x01",
        b"ctorch\nFloatStorage\n",
    ),
    *(b"ccollections\nOrderedDict\n", b"ctorch._utils\n_rebuild_tensor_v2\n", b")", b"R", b"b", b"}", b"]", b"(", b"t"),
    *(b"\x85", b"\x86", b"\x87", b"u", b"s", b"0", b"2", b"N", b"Q", b"\x81", b"\x92", b"o", b"."),
    *(b"\x85" * 5000, b"(" * 5000, b"2\x86" * 40, b"K\x01", b"J\xff\xff\xff\x7f", b"\x8a\x09" + b"\xff" * 8 + b"\x7f"),
    *(
        b"h\x00",
        b"q\x00",
        b"r\xff\xff\xff\xff",
        b"\x96" + b"\xff" * 8,
        b"\x8b\xff\xff\xff\x7f",
        b"\x95" + b"\0" * 8,
        b"P0\n",
    ),
    *(b"I" + b"9" * 5000 + b"\n", b"F1e999\n", b"\x8c\x01a", b"X\x01\0\0\0a", b"\x88", b"\x8f", b"\x94"),
)


def changed_pickle(random: Random, content: bytes) -> bytes:
    """Insert, remove or repeat whole instructions of a pickle, or change its bytes."""
    try:
        starts = [place for _, _, place in pickletools.genops(content) if place is not None]
    except Exception:  # an earlier mutation left no pickle
        return changed_bytes(random, content)
    place = random.choice(starts)
    other = random.choice(starts)
    match random.randrange(4):
        case 0 | 1:
            return content[:place] + random.choice(OPCODES) + content[place:]
        case 2:
            return content[: min(place, other)] + content[max(place, other) :]
        case _:
            return content[:place] + content[min(place, other) : max(place, other)] + content[place:]


def changed_member(random: Random, content: bytes) -> bytes:
    return changed_pickle(random, content) if content[:1] == b"\x80" else changed_bytes(random, content)


def changed_old_pickle(random: Random, content: bytes) -> bytes:
    """Change one of the pickles that follow one another in a file before torch 1.6."""
    file, parts = io.BytesIO(content), []
    for _ in range(5):
        start = file.tell()
        try:
            list(pickletools.genops(file))
        except Exception:
            return changed_bytes(random, content)
        parts.append(content[start : file.tell()])
    rest = content[file.tell() :]
    place = random.choice((0, 1, 2, 3, 3, 3, 3, 4))
    parts[place] = changed_pickle(random, parts[place])
    return b"".join(parts) + rest


# Published folders


@cache
def published(name: str) -> dict[str, bytes]:
    """Return the files of a tiny published model: GPT-2 in one file of weights, or BART in several."""
    config = config_of(
        {"preset": "gpt2", "vocab_size": 40, "max_length": 16, "d_model": 8, "n_heads": 2, "n_layers": 1}
        if name == "gpt2"
        else {"family": name, "vocab_size": 40, "max_length": 16, "d_model": 8, "n_heads": 2, "d_ff": 12}
        | ({"n_encoder_layers": 1, "n_decoder_layers": 1} if name == "bart" else {"n_layers": 1})
    )
    shard = 2000 if name == "bart" else 10**9
    return folder_of(lambda folder: write_checkpoint(folder, built(config), config, shard_bytes=shard))


@cache
def ctranslate2_files() -> dict[str, bytes]:
    """Return the files of a tiny translator, written for CTranslate2."""

    def write(folder: Path) -> None:
        TINY["en-ko"]().save(folder.with_name("bundle"))
        export_ctranslate2(folder.with_name("bundle"), folder)

    return folder_of(write)


@cache
def bundle(name: str) -> dict[str, bytes]:
    files = folder_of(lambda folder: TINY[name]().save(folder))
    return {name: content for name, content in files.items() if name != "README.md"}


ITEMS: dict[str, Any] = {"pictures": [[0] * 16] * 16, "sales": [float(number % 7) for number in range(60)]}


def load_and_predict(name: str) -> Callable[[Path], object]:
    """Return a reader of bundles, which also answers one item: a broken tokenizer may show only then."""

    def run(folder: Path) -> object:
        model = heedful.load(folder)
        try:
            return model.predict([ITEMS.get(name, TEXTS[0])])
        except HeedfulError:
            return None  # of the item or of its answer, and not of a file

    return run


@cache
def checkpoint_files() -> dict[str, bytes]:
    state = {"step": 3, "progress": {"epoch": 0, "losses": [1.5, 1.25]}, "identity": {"data": "x"}}
    tensors = {"model": TENSORS, "optimizer": {"a": torch.ones(2)}}
    return folder_of(lambda folder: checkpoint.save(folder, 3, checkpoint.Checkpoint(state, tensors)))


def load_checkpoint(folder: Path) -> object:
    return checkpoint.load(folder / "step-00000003")


# Tokenizers


@cache
def tokenizer_files() -> list[bytes]:
    texts = list(TEXTS) * 3
    own = Tokenizer.train(texts, vocab_size=300).to_json()
    encoder = learn_tokenizer(texts, EncoderTokenizerConfig(vocab_size=300, lowercase=True))
    return [own.encode(), encoder._text.encode(), wordpiece()._text.encode()]


def own_tokenizer_files() -> list[bytes]:
    return tokenizer_files()[:1]


NORMALIZERS: tuple[Any, ...] = (
    {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"},
    {"type": "Replace", "pattern": {"Regex": "(a+)+b"}, "content": ""},
    {"type": "Replace", "pattern": {"Regex": "(?:)"}, "content": "x"},
    {"type": "Replace", "pattern": {"Regex": "(("}, "content": "x"},
    {"type": "Prepend", "prepend": "a" * 50},
    *({"type": kind} for kind in ("NFD", "NFKC", "Lowercase", "StripAccents", "Nmt", "ByteLevel", "Precompiled")),
)
PRE_TOKENIZERS: tuple[Any, ...] = (
    {"type": "Split", "pattern": {"Regex": "(a+)+b"}, "behavior": "Isolated", "invert": False},
    {"type": "Split", "pattern": {"Regex": "(?=x)|a*"}, "behavior": "Removed", "invert": True},
    {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
    *({"type": kind} for kind in ("Whitespace", "WhitespaceSplit", "BertPreTokenizer", "Digits", "UnicodeScripts")),
)
DECODERS: tuple[Any, ...] = (
    *({"type": kind} for kind in ("ByteFallback", "Fuse", "ByteLevel", "WordPiece", "CTC", "Metaspace", "BPEDecoder")),
    {"type": "Strip", "content": " ", "start": 10**9, "stop": 10**9},
    {"type": "Replace", "pattern": {"String": ""}, "content": "x"},
)
PARTS = {"normalizer": NORMALIZERS, "pre_tokenizer": PRE_TOKENIZERS, "decoder": DECODERS}
LISTS = {"normalizer": "normalizers", "pre_tokenizer": "pretokenizers", "decoder": "decoders"}


def changed_tokenizer(random: Random, content: bytes) -> bytes:
    """Change a value of a tokenizer.json outside its long vocabulary, or put other parts into it."""
    try:
        value = json.loads(content)
        vocabulary = value["model"].pop("vocab")
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return changed_json(random, content)
    choice = random.random()
    if choice < 0.4:
        kind = random.choice(list(PARTS))
        parts = [random.choice(PARTS[kind]) for _ in range(random.choice((1, 2, 3)))]
        value[kind] = parts[0] if len(parts) == 1 else {"type": "Sequence", LISTS[kind]: parts}
        value["model"]["vocab"] = vocabulary
        return dump(value).encode()
    if choice < 0.8:
        value = changed_value(random, value)
    else:
        vocabulary = changed_value(random, vocabulary)
    if isinstance(value, dict) and isinstance(value.get("model"), dict):
        value["model"]["vocab"] = vocabulary
    return dump(value).encode("utf-8", "surrogatepass")


def use_tokenizer(path: Path) -> None:
    """Load a tokenizer and use it; errors about a text need no name of a file."""
    tokenizer = PublishedTokenizer.load(path)
    for text in TEXTS:
        try:
            ids = tokenizer.encode(text)
            tokenizer.decode(ids)
            tokenizer.readable(ids)
            tokenizer.encode_windows(text, text, max_tokens=16, stride=4)
        except HeedfulError:
            continue


def use_own_tokenizer(path: Path) -> None:
    tokenizer = Tokenizer.load(path)
    for text in TEXTS:
        tokenizer.decode(tokenizer.encode(text))


def constant(*seeds: bytes) -> Callable[[], Sequence[bytes]]:
    return lambda: seeds


def folder_target(
    name: str,
    files: Callable[[], dict[str, bytes]],
    read: Callable[[Path], object],
    cases: int,
    *changed: str,
    sums: str = "",
) -> Target:
    """Return the target of a folder, of which one file is changed in each case: any, or one of these."""
    return Target(name, seeds_of(files, *changed), changed_file, reading_folder(files, read, sums=sums), cases)


def published_target(name: str) -> Target:
    return folder_target(f"published {name}", lambda: published(name), read_checkpoint, 100)


def bundle_target(name: str) -> Target:
    return folder_target(f"bundle {name}", lambda: bundle(name), load_and_predict(name), 40, sums="config.json")


TARGETS = [
    Target(
        "safetensors",
        constant(save(TENSORS), save({})),
        changed_safetensors,
        reading("model.safetensors", read_every_way),
    ),
    Target("pickle", zipped_pickles, changed_archive(changed_member), reading("pytorch_model.bin", read_pickled), 100),
    Target("old pickle", old_pickles, changed_old_pickle, reading("pytorch_model.bin", read_pickled), 100),
    folder_target("ctranslate2", ctranslate2_files, from_ctranslate2, 60),
    folder_target("index of weights", lambda: published("bart"), read_tensors, 300, "model.safetensors.index.json"),
    *map(published_target, ("gpt2", "bart", "bert")),
    *map(bundle_target, ("writer", "en-ko", "feelings", "pictures", "sales")),
    folder_target("checkpoint", checkpoint_files, load_checkpoint, 300, sums="step-00000003/manifest.json"),
    Target("tokenizer", tokenizer_files, changed_tokenizer, reading("tokenizer.json", use_tokenizer), 100),
    Target("own tokenizer", own_tokenizer_files, changed_tokenizer, reading("tokenizer.json", use_own_tokenizer), 100),
]
