"""Lessons of known attacks on programs that read models and data of strangers, one test each.

docs/trust.md lists these tests and those elsewhere that hold such a lesson.
"""

from __future__ import annotations

import ast
import importlib
import io
import json
import os
import pkgutil
import re
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from re import _constants as opcodes
from re import _parser as regex_parser
from typing import Any

import numpy as np
import pytest
import torch

import heedful
from every_task import TINY, wordpiece
from heedful.config import assign
from heedful.data.image_sets import image_sources
from heedful.data.published_tokenizer import PublishedTokenizer
from heedful.errors import ConfigError, DataError, HeedfulError
from heedful.families.hf_io import read_checkpoint
from heedful.families.weights import WeightsError
from heedful.tasks.bundle import Bundle, BundleError
from heedful.tasks.model_import import import_model
from heedful.training import checkpoint
from heedful.training.errors import CheckpointError
from published_folders import bert, publish, write

PACKAGE = Path(heedful.__file__).parent
SOURCES = {path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text()) for path in PACKAGE.rglob("*.py")}


def calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


# Code in data

RUNS_CODE = {"eval", "exec", "compile", "__import__", "os.system", "os.popen", "runpy.run_path", "import_module"}
RUNS_CODE |= {
    "importlib.import_module",
    "pickle.load",
    "pickle.loads",
    "pickle.Unpickler",
    "marshal.loads",
    "yaml.unsafe_load",
}
ALLOWED_TO_RUN = "learn/"  # the course runs its own chapters and what a student wrote as an exercise


def test_nothing_in_the_package_runs_code_from_data() -> None:
    found = {
        (name, function)
        for name, tree in SOURCES.items()
        for function, call in calls(tree)
        if function in RUNS_CODE
        and not name.startswith(ALLOWED_TO_RUN)
        and not (function.endswith("import_module") and _names_the_package(call))
    }
    assert found == set()


def _names_the_package(call: ast.Call) -> bool:
    """Whether a module is imported that the source names, not the data."""
    return not call.args or "folder" not in ast.unparse(call)


def test_pickles_and_yaml_are_only_read_without_code() -> None:
    for name, tree in SOURCES.items():
        for function, call in calls(tree):
            keywords = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
            if function == "torch.load":
                assert keywords.get("weights_only") == "True", name
            if function == "yaml.load":
                assert "SafeLoader" in ast.unparse(SOURCES["config.py"])
                assert keywords.get("Loader") == "_StrictLoader", name
            if function in ("np.load", "numpy.load"):
                assert keywords.get("allow_pickle", "False") == "False", name
            assert "shell" not in keywords, name  # of subprocess


NETWORK = {"urllib.request", "http.client", "requests", "httpx", "aiohttp", "huggingface_hub", "ftplib", "smtplib"}


def test_nothing_in_the_package_opens_a_connection() -> None:
    """Serving listens, processes of one training run talk to each other, and nothing is fetched."""
    found = {}
    for name, tree in SOURCES.items():
        modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        modules |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        connects = {
            function for function, _ in calls(tree) if function.endswith(("create_connection", ".connect", "urlopen"))
        }
        if outside := (modules & NETWORK) | connects:
            found[name] = outside
    assert found == {}


@pytest.mark.parametrize("field", ["auto_map", "custom_pipelines", "trust_remote_code", "_name_or_path"])
def test_config_fields_that_load_code_load_none(field: str, tmp_path: Path) -> None:
    folder = publish(tmp_path / "theirs", bert())
    write(folder / "evil.py", f"open({str(tmp_path / 'ran')!r}, 'w')")
    values = {"AutoModel": "evil.Code", "AutoConfig": "evil.Code", "AutoTokenizer": ["evil.Code", None]}
    for name in ("config.json", "tokenizer_config.json"):
        write(folder / name, json.loads((folder / name).read_text()) | {field: values})
    import_model(folder, tmp_path / "ours")
    assert not (tmp_path / "ran").exists()
    assert not list((tmp_path / "ours").glob("*.py"))


def test_templates_are_never_rendered(tmp_path: Path) -> None:
    template = "{% for x in ().__class__.__base__.__subclasses__() %}{{ x.__init__.__globals__ }}{% endfor %}"
    wordpiece().save(tmp_path / "tokenizer.json")
    plain = PublishedTokenizer.load(tmp_path / "tokenizer.json").encode("The cat")
    write(tmp_path / "tokenizer_config.json", {"chat_template": template, "mask_token": "[MASK]"})
    (tmp_path / "chat_template.jinja").write_text(template)
    assert PublishedTokenizer.load(tmp_path / "tokenizer.json").encode("The cat") == plain
    assert not [name for name, tree in SOURCES.items() if "jinja" in ast.unparse(tree)]


def test_a_pickle_is_not_read_in_place_of_safetensors_that_are_broken(tmp_path: Path) -> None:
    """A fallback to the more dangerous format would be a way around the safer one."""
    folder = publish(tmp_path / "theirs", bert())
    torch.save({}, folder / "pytorch_model.bin")
    (folder / "model.safetensors").write_bytes(b"broken")
    with pytest.raises(WeightsError, match=r"model\.safetensors is not a safetensors file"):
        read_checkpoint(folder)


# Sizes and shapes


def packed_zeros(name: str, shape: tuple[int, ...], dtype: str) -> tuple[str, bytes]:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": dtype, "fortran_order": False, "shape": shape})
    return f"{name}.npy", header.getvalue()


def test_classes_that_unpack_to_gigabytes_are_refused(tmp_path: Path) -> None:
    path, count = tmp_path / "bomb.npz", 300 << 20
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, shape in (("x", (count, 1, 1)), ("y", (count,))):
            member, header = packed_zeros(name, shape, "|u1")
            with archive.open(member, "w", force_zip64=True) as file:
                file.write(header)
                for _ in range(count >> 20):
                    file.write(bytes(1 << 20))
    assert path.stat().st_size < 10 << 20
    with pytest.raises(DataError, match=r"bomb\.npz: y is too large: 314,572,800 classes"):
        next(iter(image_sources([str(path)])[0].images()))


# JSON and YAML

ODD_JSON = {
    "deep": '{"a": ' + "[" * 100_000 + "]" * 100_000 + "}",
    "a key twice": '{"format": 1, "format": 2, "model_type": "bert", "model_type": "gpt2"}',
    "a huge number": '{"format": ' + "9" * 5000 + "}",
    "NaN": '{"format": NaN, "layer_norm_epsilon": NaN, "model_type": NaN, "sha256": Infinity}',
    "half a surrogate pair": '{"format": "\\ud800", "model_type": "\\ud800", "eos_token": "\\ud800"}',
    "a list": "[]",
}


def tokenizer_in(folder: Path) -> object:
    return PublishedTokenizer.load(folder / "tokenizer.json")


JSON_READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "bundle": ("config.json", Bundle.read),
    "published": ("config.json", read_checkpoint),
    "tokenizer": ("tokenizer.json", tokenizer_in),
    "checkpoint": ("manifest.json", checkpoint.load),
    "index": ("model.safetensors.index.json", read_checkpoint),
}


@pytest.mark.parametrize("odd", ODD_JSON)
@pytest.mark.parametrize("kind", JSON_READERS)
def test_odd_json_is_refused_and_the_file_named(kind: str, odd: str, tmp_path: Path) -> None:
    name, read = JSON_READERS[kind]
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}')
    (tmp_path / name).write_text(ODD_JSON[odd])
    with pytest.raises(HeedfulError) as caught:
        read(tmp_path)
    assert str(tmp_path) in str(caught.value)
    assert len(str(caught.value)) < 2000


@pytest.mark.parametrize(
    "value", ["!!timestamp 2024-99", "!!int x", "!!bool 7", "!!binary é", "[" * 2000, "{[a]: 1}", "!!timestamp ="]
)
def test_odd_yaml_in_a_setting_is_refused(value: str) -> None:
    with pytest.raises(ConfigError, match=r"data\.x="):
        assign({}, f"data.x={value}")


# Files and links


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_a_pipe_or_a_device_in_a_bundle_is_not_read(name: str, kind: str, tmp_path: Path) -> None:
    TINY["feelings"]().save(tmp_path)
    (tmp_path / name).unlink()
    if kind == "pipe":
        os.mkfifo(tmp_path / name)
    else:
        (tmp_path / name).symlink_to("/dev/zero")
    with pytest.raises(BundleError, match=name):
        heedful.load(tmp_path)


@pytest.mark.parametrize("name", ["../secret", "/etc/hostname", "a/../../secret"])
def test_names_in_checksums_do_not_leave_their_folder(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "bundle"
    TINY["feelings"]().save(folder)
    (tmp_path / "secret").write_text("a secret")
    values = json.loads((folder / "config.json").read_text())
    values["sha256"][name] = "0" * 64
    (folder / "config.json").write_text(json.dumps(values))
    with pytest.raises(BundleError, match=rf"^{folder}/(secret|hostname) "):
        heedful.load(folder)
    saved = checkpoint.save(tmp_path / "run", 1, checkpoint.Checkpoint({}, {}))
    manifest = json.loads((saved / "manifest.json").read_text())
    manifest["sha256"][name] = "0" * 64
    (saved / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(CheckpointError, match="which is not a file of a checkpoint"):
        checkpoint.load(saved)


# Regular expressions


def patterns() -> Iterator[tuple[str, re.Pattern[Any]]]:
    """Yield the patterns in the modules of the package, and those written out where they are used."""
    for module in pkgutil.walk_packages([str(PACKAGE)], "heedful."):
        if not module.name.startswith(
            ("heedful.backends.triton", "heedful.learn.exercises.solutions", "heedful.__main__")
        ):
            loaded = importlib.import_module(module.name)
            for value in vars(loaded).values():
                for inner in value.values() if isinstance(value, dict) else [value]:
                    if isinstance(inner, re.Pattern):
                        yield module.name, inner
    for name, tree in SOURCES.items():
        for function, call in calls(tree):
            if function.startswith("re.") and call.args and isinstance(call.args[0], ast.Constant):
                module_name = f"heedful.{name.removesuffix('.py').replace('/', '.')}"
                yield module_name, re.compile(call.args[0].value, re.VERBOSE if "VERBOSE" in ast.unparse(call) else 0)


# Here each part of a repetition ends with a sign that no part holds inside, such as a line's end.
LINEAR = {"heedful.data.readers.catalogs", "heedful.learn.chapters"}
MANY = 20  # a part that may be repeated more often can make a search slow


def repeats_a_repetition(parsed: Any, inside: bool = False) -> bool:
    """Return whether a part that is repeated repeats a part, with a choice of where one ends and the next begins."""
    for operation, argument in parsed:
        inner, is_inside = [], inside
        if operation in (opcodes.MAX_REPEAT, opcodes.MIN_REPEAT):
            _, most, part = argument
            is_many = most is opcodes.MAXREPEAT or most > MANY
            if is_many and inside:
                return True
            inner, is_inside = [part], inside or is_many
        elif operation is opcodes.POSSESSIVE_REPEAT:
            inner, is_inside = [argument[2]], False
        elif operation is opcodes.ATOMIC_GROUP:
            inner, is_inside = [argument], False
        elif operation is opcodes.SUBPATTERN:
            inner = [argument[-1]]
        elif operation is opcodes.BRANCH:
            inner = argument[1]
        elif operation in (opcodes.ASSERT, opcodes.ASSERT_NOT):
            inner, is_inside = [argument[1]], False
        if any(repeats_a_repetition(part, is_inside) for part in inner):
            return True
    return False


def test_no_regular_expression_backtracks_without_end() -> None:
    assert repeats_a_repetition(regex_parser.parse("x(a+)+b"))
    assert not repeats_a_repetition(regex_parser.parse('"([^"]*+(?:b[^"]*+)*+)"'))
    slow = {
        (name, pattern.pattern)
        for name, pattern in patterns()
        if name not in LINEAR and repeats_a_repetition(regex_parser.parse(pattern.pattern, pattern.flags & re.VERBOSE))
    }
    assert slow == set()


# Packages

# The first version without a known hole that a server or a reader of images could meet.
SAFE = {
    "serve": {
        "fastapi": "0.133",  # lets Starlette be newer
        "h11": "0.16",  # CVE-2025-43859: ends of chunks, request smuggling
        "python-multipart": "0.0.32",  # CVE-2026-24486, -40347, -53540: paths, slow parsing, unbounded header fields
        "starlette": "1.3.1",  # CVE-2025-62727 (Range), CVE-2026-48710 (Host), limits of URL-encoded forms
    },
    "images": {"Pillow": "12.3"},  # CVE-2026-59199 and others: writes outside of buffers, decompression bombs
    "": {"torch": "2.10"},  # CVE-2025-32434: code in pickles that were read with weights_only
}


def numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text.partition("+")[0]))


@pytest.mark.parametrize("extra", SAFE)
def test_packages_with_known_holes_are_not_allowed(extra: str) -> None:
    project = tomllib.loads((PACKAGE.parents[1] / "pyproject.toml").read_text())["project"]
    required = project["optional-dependencies"][extra] if extra else project["dependencies"]
    bounds = dict(item.split(">=") for item in required)
    for name, safe in SAFE[extra].items():
        assert numbers(bounds[name]) >= numbers(safe), name
        assert numbers(version(name)) >= numbers(safe), name
