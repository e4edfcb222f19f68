"""Faults of data: files that are damaged, grow when they are read, or do not end."""

from __future__ import annotations

import gzip
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

from _faults import Bench, Ended, Seen, fault, train_command

GROUP = "Data"
SMALL_CLASSIFIER = ("model.d_model=16", "model.n_heads=2", "model.d_ff=32", "model.n_layers=1", "model.max_length=32")
SHORT = ("training.steps=4", "training.validate_every=0", "training.batch_tokens=256", "training.device=cpu")
ERROR, NO_MEMORY = "an error names the file", "an error names the file; little memory"


def trained(bench: Bench, *paths: Path, options: tuple[str, ...] = (), seconds: float = 120) -> Ended:
    """Train a tiny translator on these files."""
    return bench.run(*train_command("run"), "--data", *paths, *options, seconds=seconds)


def classify(bench: Bench, path: Path, *changes: str) -> Ended:
    """Train a tiny classifier on a file."""
    settings = [word for setting in (*SMALL_CLASSIFIER, *SHORT, *changes) for word in ("--set", setting)]
    return bench.run("train", "classification", "--data", path, "--out", "run", *settings, seconds=120)


def mo(entries: list[tuple[tuple[int, int], tuple[int, int]]], texts: bytes) -> bytes:
    """Return a compiled catalog with these spans (length, offset into the texts)."""
    count = len(entries)
    begin = 28 + 16 * count
    tables = [
        b"".join(struct.pack("<2I", length, begin + offset) for length, offset in column)
        for column in zip(*entries, strict=True)
    ]
    return struct.pack("<7I", 0x950412DE, 0, count, 28, 28 + 8 * count, 0, 0) + b"".join(tables) + texts


@fault(GROUP, "mo-overlap", "20,000 messages of a 1 MB .mo file share one span of 1,000,000 bytes", NO_MEMORY)
def _mo(bench: Bench) -> Seen:
    path = bench.folder / "ko.mo"
    header = b"Content-Type: text/plain; charset=UTF-8\nLanguage: ko\n"
    spans = [((0, 0), (len(header), 0)), *[((1_000_000, 100), (1_000_000, 101))] * 20_000]
    path.write_bytes(mo(spans, header.ljust(100, b" ") + b"a" * 1_000_001))
    return bench.refused(trained(bench, path), r"ko\.mo")


@fault(
    GROUP,
    "po-placeholders",
    "a quarter of the messages of a .po file with `c-format` lose their placeholder or get another",
    "they are left out and counted",
)
def _po(bench: Bench) -> Seen:
    path = bench.folder / "ko.po"
    rows = ['msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\nLanguage: ko\\n"\n']
    for number in range(400):
        target = "%s" if number % 4 else ("" if number % 8 else "%d")
        rows.append(f'#, c-format\nmsgid "open the file %s of {number}"\nmsgstr "{number} 파일 {target} 열기"\n')
    path.write_text("\n".join(rows), encoding="utf-8")
    return bench.answered(trained(bench, path), r"placeholder\D*100\b|100\D*placeholder")


@fault(GROUP, "gz-bomb", "pairs.tsv.gz of 1 MB holds 1 GB of zeros", NO_MEMORY)
def _gz(bench: Bench) -> Seen:
    path = bench.folder / "pairs.tsv.gz"
    with gzip.open(path, "wb") as file:
        for _ in range(1000):
            file.write(bytes(1_000_000))
    return bench.refused(trained(bench, path), r"pairs\.tsv\.gz|too few|no pairs|nothing")


@fault(GROUP, "line-long", "one line of 200 MB among 300 pairs", "the line is left out and counted; little memory")
def _line(bench: Bench) -> Seen:
    path = bench.folder / "pairs.tsv"
    content = (bench.sound / "data" / "pairs.tsv").read_bytes()
    with path.open("wb") as file:
        file.write(content)
        for _ in range(200):
            file.write(b"a" * 1_000_000)
        file.write(b"\tb\n")
    ended = trained(bench, path)
    path.write_bytes(content)  # the memory of a command must not follow from this line
    return bench.answered(ended, "over 1 MiB|long")


@fault(GROUP, "xml-entities", "a TMX file of 1 KB whose entities expand to 3 GB", NO_MEMORY)
def _entities(bench: Bench) -> Seen:
    entities = ['<!ENTITY a0 "ha">'] + [f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10)]
    path = bench.folder / "pairs.tmx"
    path.write_text(f'<?xml version="1.0"?><!DOCTYPE tmx [{"".join(entities)}]><tmx><body>&a9;</body></tmx>')
    return bench.refused(trained(bench, path), r"pairs\.tmx")


@fault(GROUP, "xml-external", "an entity of a TMX file names /etc/passwd", "an error; the file is not read")
def _external(bench: Bench) -> Seen:
    path = bench.folder / "pairs.tmx"
    path.write_text(
        '<?xml version="1.0"?><!DOCTYPE tmx [<!ENTITY x SYSTEM "file:///etc/passwd">]>'
        '<tmx version="1.4"><body><tu><tuv xml:lang="en"><seg>&x;</seg></tuv></tu></body></tmx>'
    )
    return bench.refused(trained(bench, path), r"pairs\.tmx")


@fault(GROUP, "json-deep", "a line of JSON with 100,000 nested lists", "an error names file and line")
def _json(bench: Bench) -> Seen:
    path = bench.folder / "pairs.jsonl"
    path.write_text('{"en": "a", "ko": "b"}\n{"en": ' + "[" * 100_000 + "]" * 100_000 + "}\n")
    return bench.refused(trained(bench, path), r"pairs\.jsonl:2")


@fault(GROUP, "json-number", "a number of 5,000 digits in a line of JSON", "an error names file and line")
def _number(bench: Bench) -> Seen:
    path = bench.folder / "pairs.jsonl"
    path.write_text('{"en": "a", "ko": "b"}\n{"en": "a", "ko": "b", "n": ' + "1" * 5000 + "}\n")
    return bench.refused(trained(bench, path), r"pairs\.jsonl:2")


@fault(GROUP, "cp949", "a file in CP949 instead of UTF-8", "an error names file, line and encoding")
def _cp949(bench: Bench) -> Seen:
    path = bench.folder / "pairs.tsv"
    path.write_bytes((bench.sound / "data" / "pairs.tsv").read_text(encoding="utf-8").encode("cp949"))
    return bench.refused(trained(bench, path), r"pairs\.tsv:1", "CP949")


@fault(GROUP, "data-zero", "the data file links to /dev/zero", "an error at once")
def _zero(bench: Bench) -> Seen:
    path = bench.folder / "pairs.tsv"
    path.symlink_to("/dev/zero")
    return bench.refused(trained(bench, path, seconds=40), r"pairs\.tsv")


@fault(GROUP, "data-fifo", "the data file is a named pipe to which nobody writes", "an error at once")
def _fifo(bench: Bench) -> Seen:
    path = bench.folder / "pairs.tsv"
    os.mkfifo(path)
    return bench.refused(trained(bench, path, seconds=40), r"pairs\.tsv")


@fault(GROUP, "predict-fifo", "`predict` reads a named pipe", "what is written to it is answered")
def _predict_fifo(bench: Bench) -> Seen:
    path = bench.folder / "texts"
    os.mkfifo(path)
    if not os.fork():
        with path.open("wb") as file:
            file.write(b"the cat reads\n")
        os._exit(0)
    ended = bench.run("predict", bench.sound / "classifier", path)
    os.wait()
    return bench.answered(ended)


def _images(bench: Bench, path: Path) -> Ended:
    settings = [word for setting in ("training.steps=2", "training.device=cpu") for word in ("--set", setting)]
    return bench.run("train", "images", "--data", path, "--out", "run", *settings, seconds=120)


def png(width: int, height: int, data: bytes = b"") -> bytes:
    """Return a gray PNG that states these sizes."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    head = chunk(b"IHDR", struct.pack(">2I5B", width, height, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")


@fault(GROUP, "image-bomb", "a PNG of 1 KB that states 60,000 × 60,000 pixels, in a folder of images", NO_MEMORY)
def _bomb(bench: Bench) -> Seen:
    for label in ("cat", "dog"):
        (bench.folder / "images" / label).mkdir(parents=True)
        for number in range(100):
            image = png(8, 8, (b"\0" + bytes([number + 100 * (label == "dog")]) * 8) * 8)
            (bench.folder / "images" / label / f"{number}.png").write_bytes(image)
    (bench.folder / "images" / "cat" / "bomb.png").write_bytes(png(60_000, 60_000, bytes(1000)))
    ended = _images(bench, bench.folder / "images")
    return bench.refused(ended, r"bomb\.png") if ended.code else bench.answered(ended, r"bomb\.png")


@fault(GROUP, "npz-bomb", "images.npz of 1 MB whose array expands to 1 GB", NO_MEMORY)
def _npz(bench: Bench) -> Seen:
    path = bench.folder / "images.npz"
    shape = "(1000000, 32, 32)"
    head = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117) + b"\n"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("images.npy", "labels.npy"):
            with archive.open(name, "w", force_zip64=True) as file:
                file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head)
                for _ in range(1000):
                    file.write(bytes(1_024_000))
    return bench.refused(_images(bench, path), r"images\.npz")


@fault(GROUP, "idx-size", "an idx file of 1 KB states 2^32 images", NO_MEMORY)
def _idx(bench: Bench) -> Seen:
    (bench.folder / "idx").mkdir()
    head = struct.pack(">I3I", 0x803, 2**32 - 1, 28, 28)
    (bench.folder / "idx" / "train-images-idx3-ubyte").write_bytes(head + bytes(1000))
    (bench.folder / "idx" / "train-labels-idx1-ubyte").write_bytes(struct.pack(">2I", 0x801, 2**32 - 1) + bytes(1000))
    return bench.refused(_images(bench, bench.folder / "idx"), "idx")


def _labels(label: Callable[[int], str], text: Callable[[int], str]) -> Callable[[Bench], Path]:
    def write(bench: Bench) -> Path:
        path = bench.folder / "texts.tsv"
        rows = [f"{text(number)}\t{label(number)}" for number in range(300)]
        path.write_text("\n".join(["text\tlabel", *rows]) + "\n", encoding="utf-8")
        return path

    return write


def _text(number: int) -> str:
    return f"the film number {number} was {('great', 'awful')[number % 2]}"


@fault(
    GROUP,
    "few-each-other",
    "300 labelled texts, each with a label of its own",
    "the error says that no label occurs twice",
)
def _each(bench: Bench) -> Seen:
    path = _labels(lambda number: f"label{number}", _text)(bench)
    return bench.refused(classify(bench, path), "label")


@fault(GROUP, "few-one-label", "300 labelled texts, all with one label", "the error says that there is one label")
def _one_label(bench: Bench) -> Seen:
    return bench.refused(classify(bench, _labels(lambda _: "good", _text)(bench)), "'good'|one label|two labels")


@fault(GROUP, "few-same-text", "300 labelled texts, all the same", "the error says that they are equal")
def _same(bench: Bench) -> Seen:
    path = _labels(lambda number: ("pos", "neg")[number % 2], lambda _: "a film")(bench)
    return bench.refused(classify(bench, path), "same|equal|duplicate|twice|different")


@fault(GROUP, "few-empty", "300 labelled texts, all empty", "the error says that they are empty")
def _empty(bench: Bench) -> Seen:
    path = _labels(lambda number: ("pos", "neg")[number % 2], lambda _: "")(bench)
    return bench.refused(classify(bench, path), "empty")


@fault(GROUP, "few-pairs-long", "300 pairs, all longer than `data.max_tokens`", "the error says so")
def _long(bench: Bench) -> Seen:
    path = bench.sound / "data" / "pairs.tsv"
    ended = bench.run(*train_command("run", "data.max_tokens=2"), "--data", path)
    return bench.refused(ended, "max_tokens|long")


LABELS = ("<script>alert(1)</script>", "a|b", "`c`", "[d](javascript:alert(1))", "![e](http://x/y.png)", "# f")


@fault(
    GROUP, "label-markup", "class labels that are HTML and Markdown", "the model card and the report show them as text"
)
def _markup(bench: Bench) -> Seen:
    path = _labels(
        lambda number: LABELS[number % len(LABELS)], lambda number: f"the film was word{number % 6} {number}"
    )(bench)
    ended = classify(bench, path)
    if ended.code:
        return bench.refused(ended)
    run = bench.folder / "run"
    card = (run / "README.md").read_text(encoding="utf-8")
    report = (run / "report.html").read_text(encoding="utf-8")
    unescaped = re.sub(r"\\.", "", card)
    raw = [label for label in LABELS if label in unescaped]
    raw += ["<script> in the report"] * ("<script>alert(1)" in report)
    return Seen(not raw, f"unescaped: {', '.join(raw) or 'nothing'}")
