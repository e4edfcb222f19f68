"""Faults of bundles: weights with NaN or inf, sizes that disagree with the weights, damaged and linked files."""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _faults import Bench, Seen, fault

GROUP = "Models"
INF, NAN = float("inf"), float("nan")
BIG = 1e30  # finite, and too large to compute with


def change_config(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change config.json of a bundle or a published folder."""
    path = folder / "config.json"
    values = json.loads(path.read_text(encoding="utf-8"))
    change(values)
    path.write_text(json.dumps(values), encoding="utf-8")


def change_weights(folder: Path, change: Callable[[bytearray], object]) -> None:
    """Change the numbers of model.safetensors, behind its header; the checksum of a bundle stays right."""
    path = folder / "model.safetensors"
    content = path.read_bytes()
    begin = 8 + struct.unpack("<Q", content[:8])[0]
    numbers = bytearray(content[begin:])
    change(numbers)
    path.write_bytes(content[:begin] + numbers)
    change_config(folder, lambda values: renew_sums(folder, values))


def renew_sums(folder: Path, values: dict[str, Any]) -> None:
    """Correct the checksums of a bundle's config."""
    for name in values.get("sha256", {}):
        values["sha256"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()


def put(value: float) -> Callable[[bytearray], None]:
    """Return a change that sets the last number."""

    def change(numbers: bytearray) -> None:
        numbers[-4:] = struct.pack("<f", value)

    return change


def fill(value: float) -> Callable[[bytearray], None]:
    """Return a change that sets every number."""

    def change(numbers: bytearray) -> None:
        numbers[:] = struct.pack("<f", value) * (len(numbers) // 4)

    return change


def predict(bench: Bench, model: str, *options: str) -> Any:
    """Run `heedful predict` on lines of text."""
    return bench.run("predict", bench.folder / model, bench.sound / "data" / "texts.txt", *options)


def _broken(model: str, value: float) -> Callable[[Bench], Seen]:
    def check(bench: Bench) -> Seen:
        change_weights(bench.copy(model), put(value))
        return bench.refused(predict(bench, model), "model.safetensors", "holds NaN or inf")

    return check


for model in ("classifier", "lm", "translator"):
    for value in (INF, NAN):
        fault(
            GROUP,
            f"weights-{value}-{model}",
            f"one weight of a {model} becomes {value}; `predict`",
            "an error names the tensor; nothing is answered",
        )(_broken(model, value))


@fault(GROUP, "weights-overflow", "all weights become 1e30; `predict`", "an error, no answer with NaN")
def _overflow(bench: Bench) -> Seen:
    change_weights(bench.copy("classifier"), fill(BIG))
    return bench.refused(predict(bench, "classifier", "--json"), "NaN or inf")


@fault(GROUP, "weights-overflow-evaluate", "all weights become 1e30; `evaluate`", "an error, no score")
def _overflow_evaluate(bench: Bench) -> Seen:
    change_weights(bench.copy("classifier"), fill(BIG))
    ended = bench.run("evaluate", bench.folder / "classifier", "--data", bench.sound / "data" / "labelled.tsv")
    return bench.refused(ended, "NaN or inf")


def _size(model: str, changes: dict[str, Any], *parts: str) -> Callable[[Bench], Seen]:
    def check(bench: Bench) -> Seen:
        change_config(bench.copy(model), lambda values: values["model"].update(changes))
        return bench.refused(predict(bench, model), *parts)

    return check


SIZES: dict[str, tuple[str, dict[str, Any]]] = {
    "size-width": ("lm", {"d_model": 40_000, "n_heads": 4}),
    "size-width-10^9": ("lm", {"d_model": 10**9, "n_heads": 10**9}),
    "size-layers": ("translator", {"n_encoder_layers": 10**6}),
    "size-vocabulary": ("lm", {"vocab_size": 10**10}),
    "size-positions": ("lm", {"max_length": 10**10}),
    "size-classes": ("classifier", {"n_classes": 10**9}),
}
for name, (model, changes) in SIZES.items():
    settings = ", ".join(f"{key}={value}" for key, value in changes.items())
    action = f"`{settings}` in the config.json of a {model} of under 1 MB; `predict`"
    fault(GROUP, name, action, "an error compares it with the weights; nothing is built")(_size(model, changes))


@fault(GROUP, "size-beam", "a stored `beam` of 10,000,000; `predict`", "an error names the limit")
def _beam(bench: Bench) -> Seen:
    change_config(bench.copy("lm"), lambda values: values["settings"]["generation"].update(beam=10**7))
    return bench.refused(predict(bench, "lm"), "beam must be at most 1,000")


@fault(GROUP, "damage-truncated", "model.safetensors loses its second half", "an error names the file")
def _truncated(bench: Bench) -> Seen:
    path = bench.copy("classifier") / "model.safetensors"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    return bench.refused(predict(bench, "classifier"), r"model\.safetensors does not belong to this config\.json")


@fault(GROUP, "damage-bit", "one bit of the weights flips", "an error: the checksum differs")
def _bit(bench: Bench) -> Seen:
    path = bench.copy("classifier") / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    return bench.refused(predict(bench, "classifier"), r"model\.safetensors does not belong to this config\.json")


@fault(GROUP, "config-deep", "config.json holds 100,000 nested lists", "an error names the file")
def _deep(bench: Bench) -> Seen:
    (bench.copy("classifier") / "config.json").write_text("[" * 100_000 + "]" * 100_000)
    return bench.refused(predict(bench, "classifier"), r"config\.json")


@fault(GROUP, "config-large-number", "a number of 5,000 digits in config.json", "an error names the file")
def _large_number(bench: Bench) -> Seen:
    path = bench.copy("classifier") / "config.json"
    path.write_text(path.read_text().replace('"format": 1', f'"format": {"1" * 5000}'))
    return bench.refused(predict(bench, "classifier"), r"config\.json")


@fault(GROUP, "config-path", "config.json names a checksum of `../../secret`", "nothing outside of the folder is read")
def _path(bench: Bench) -> Seen:
    folder = bench.copy("classifier")
    (bench.folder / "secret").write_text("secret")
    change_config(folder, lambda values: values["sha256"].update({"../secret": "0" * 64}))
    ended = predict(bench, "classifier")
    seen = bench.refused(ended, r"secret")
    return Seen(seen.passed and "does not belong" not in ended.err, seen.text)


def _link(bench: Bench, name: str, target: str) -> Path:
    path = bench.copy("classifier") / name
    path.unlink(missing_ok=True)
    path.symlink_to(target)
    return path


for linked in ("config.json", "model.safetensors", "tokenizer.json"):

    @fault(GROUP, f"link-zero-{linked}", f"{linked} is a link to /dev/zero; `predict`", "an error names the file")
    def _zero(bench: Bench, name: str = linked) -> Seen:
        _link(bench, name, "/dev/zero")
        return bench.refused(predict(bench, "classifier"), rf"{name}.*not a regular file")

    @fault(GROUP, f"fifo-{linked}", f"{linked} is a named pipe; `predict`", "an error at once, no waiting")
    def _fifo(bench: Bench, name: str = linked) -> Seen:
        path = bench.copy("classifier") / name
        path.unlink()
        os.mkfifo(path)
        return bench.refused(predict(bench, "classifier"), rf"{name}.*not a regular file")


@fault(GROUP, "link-card", "README.md of a published folder is a link to /etc/passwd; `import`", "it is not copied")
def _card(bench: Bench) -> Seen:
    folder = bench.copy("published")
    (folder / "README.md").symlink_to("/etc/passwd")
    ended = bench.run("import", folder, "--out", bench.folder / "out")
    leaked = [path.name for path in (bench.folder / "out").rglob("*") if b"root:" in path.read_bytes()]
    if ended.code:
        return bench.refused(ended, "README.md")
    return Seen(not leaked, f"imported; copied: {leaked or 'nothing of the linked file'}")


@fault(
    GROUP,
    "link-card-zero",
    "README.md of a published folder is a link to /dev/zero; `import`",
    "it ends, with little memory",
)
def _card_zero(bench: Bench) -> Seen:
    folder = bench.copy("published")
    (folder / "README.md").symlink_to("/dev/zero")
    ended = bench.run("import", folder, "--out", bench.folder / "out")
    return bench.refused(ended, "README.md") if ended.code else bench.answered(ended)
