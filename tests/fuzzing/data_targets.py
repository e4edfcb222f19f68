"""Everything that reads data files: pairs of sentences, texts, tables, images, configs."""

from __future__ import annotations

import gzip
import io
import json
import struct
import warnings
import zipfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from checking import Target, reading
from mutations import Mutate, changed_bytes, changed_json, changed_lines, packed, text_with

from heedful.config import assign, read_mapping
from heedful.data.corpus import Corpus
from heedful.data.image_sets import image_sources
from heedful.data.images import pixels_of
from heedful.data.labeled_texts import read_labeled_texts
from heedful.data.questions import read_questions
from heedful.data.readers import read_pairs
from heedful.data.report import CorpusReport
from heedful.data.series.tables import read_series
from heedful.data.tagged import read_tagged
from heedful.errors import DataError, HeedfulError
from heedful.training import TrainingConfig

TSV = "The cat reads.\t고양이가 읽어요.\nI drink water.\t나는 물을 마셔요.\nYes\t네\n".encode()
CSV = 'en,ko,note\r\n"The ""cat"", reads",고양이가 읽어요.,1\r\n"two\r\nlines",두 줄,2\r\n'.encode()
JSONL = (
    '{"source": "The cat reads.", "target": "고양이가 읽어요."}\n{"translation": {"en": "Yes", "ko": null}}\n'
    '{"en": "I drink.", "ko": "나는 마셔요."}\n'
).encode()
PO = """# a comment
msgid ""
msgstr ""
"Language: ko\\n"
"Content-Type: text/plain; charset=UTF-8\\n"

#: app.c:1
#, fuzzy
msgctxt "menu"
msgid "Open \\"%s\\"\\n"
msgstr "열기"

msgid "one file"
msgid_plural "%d files"
msgstr[0] "파일 %d개"

#~ msgid "old"
#~ msgstr "낡은"
""".encode()
TMX = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang="en"/><body>
<tu><tuv xml:lang="en-US"><seg>The <bpt i="1">&lt;b></bpt>cat<ept i="1">&lt;/b></ept> reads.</seg></tuv>
<tuv xml:lang="ko"><seg>고양이가 읽어요.</seg></tuv></tu>
<!-- a comment --><tu><tuv xml:lang="en"><seg><![CDATA[a & b]]></seg></tuv></tu></body></tmx>
""".encode()
XLIFF = """<?xml version="1.0"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file source-language="en" target-language="ko">
<body><trans-unit id="1"><source>The <ph id="1"/>cat</source><target state="translated">고양이</target>
<alt-trans><target>x</target></alt-trans></trans-unit>
<trans-unit id="2"><source>Yes</source><target state="needs-translation">네</target></trans-unit></body></file></xliff>
""".encode()
XML_PARTS = (
    *(b"<!ENTITY a 'b'>", b"&a;", b"<!DOCTYPE x [", b"]>", b"<![CDATA[", b"]]>", b"<!--", b"-->", b"<?x", b"<x>" * 200),
    *(
        b'encoding="utf-16"',
        b'encoding="cp949"',
        b'encoding="idna"',
        b'encoding="zip"',
        b"<seg>",
        b"</tu>",
        b"&#xD800;",
    ),
)
PO_PARTS = (
    b"charset=utf-7",
    b"charset=idna",
    b"charset=hex",
    b"msgid",
    b"msgstr[9]",
    b'msgctxt "',
    b"#~|",
    b'"\\',
    b"%s",
)


def mo(*messages: tuple[str, str]) -> bytes:
    """Return a compiled catalog: a header of seven numbers, two tables, and the texts."""
    texts = [text.encode() + b"\0" for side in (0, 1) for text in (message[side] for message in messages)]
    head, place, table = 28 + 8 * len(texts), 0, b""
    for text in texts:
        table += struct.pack("<2I", len(text) - 1, head + place)
        place += len(text)
    return struct.pack("<7I", 0x950412DE, 0, len(messages), 28, 28 + 4 * len(texts), 0, 0) + table + b"".join(texts)


MO = mo(
    ("", "Language: ko\nContent-Type: text/plain; charset=UTF-8\n"), ("menu\4Open", "열기"), ("a\0as", "하나\0여럿")
)
LABELED = b"text\tlabel\nThe cat reads.\tglad\nI am sad.\tsad\nSo good!\tglad\nNo.\tsad\n"
LABELED_LINES = b'{"text": "The cat", "label": 1}\n{"text": "No", "label": "sad"}\n{"text": "Yes", "label": null}\n'
SQUAD = json.dumps(
    {
        "data": [
            {
                "paragraphs": [
                    {
                        "context": "The cat reads a book.",
                        "qas": [
                            {"id": "1", "question": "Who?", "answers": [{"text": "The cat", "answer_start": 0}]},
                            {"question": "Where?", "is_impossible": True, "answers": []},
                        ],
                    }
                ]
            }
        ]
    }
).encode()
QUESTION_LINES = b'{"question": "Who?", "context": "The cat.", "answers": {"text": ["cat"], "answer_start": [4]}}\n' * 2
CONLL = b"-DOCSTART- -X- O\n\nThe DT O\ncat NN B-PER\n\n# text = x\nI PRP O\n"
CONLLU = b"# text = a b\n1-2\ta" + b"\t_" * 8 + b"\n1\ta\ta\tDET" + b"\t_" * 6 + b"\n2\tb\tb\tNOUN" + b"\t_" * 6 + b"\n"
TAGGED_LINES = b'{"tokens": ["The", "cat"], "tags": ["O", "B-PER"]}\n{"words": ["a", " "], "ner_tags": ["O", "O"]}\n'
SERIES = b"date,close,open\n2024-01-01,1.5,2\n2024-01-02,,3e2\n2024-01-03 10:00,nan,4\n"
SERIES_NAMED = b"symbol\ttime\tvalue\na\t1\t1\na\t2\t2\nb\t1\t3\nb\t2\t4\n"
YAML = b"""family: original
model: &model {d_model: 32, n_heads: 4, dropout: 1e-1}
training:
  steps: 20
  learning_rate: 1e-3
  <<: {seed: 1}
data: [a.tsv, "b.tsv", 2024-01-01, 0x10, 1_000, .inf, 12:30:00]
other: *model
text: |
  two
  lines
"""
YAML_PARTS = (
    *(b"&a [*a]", b"*model", b"<<: *model", b"!!python/object/apply:os.system [ls]", b"!!timestamp 2024-99-99", b"? a"),
    *(
        b"!!binary x",
        b"!!set {a}",
        b"!!omap [a: 1]",
        b"!!int x",
        b"!!float x",
        b"!!bool x",
        b"!!merge x",
        b"%YAML 9.9\n",
    ),
    *(
        b"[" * 500,
        b"{a: " * 500,
        b"- " * 500,
        b"\t",
        b"---\n",
        b"...",
        b"!<x>",
        b"1:" * 2000 + b"1",
        b"2024-13-01",
        b"='",
    ),
)
PARTS_OF_TEXT = (
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\x1f\x8b",
    b"\t\t",
    b",,",
    b'"',
    b"\r",
    b";",
    b"[{",
    b'{"',
    b"a" * 140_000,
)


def idx(shape: Sequence[int], kind: int = 8) -> bytes:
    """Return an idx file of zeros and ones."""
    size = {8: 1, 9: 1, 11: 2, 12: 4, 13: 4, 14: 8}[kind]
    body = bytes(number % 2 for number in range(size * int(np.prod(shape))))
    return bytes([0, 0, kind, len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + body


@cache
def npz_seeds() -> list[bytes]:
    """Return archives of images and labels: numbers or texts, compressed or not."""
    images, seeds = np.arange(3 * 4 * 4, dtype=np.uint8).reshape(3, 4, 4), []
    for labels in (np.array([0, 1, 0]), np.array(["cat", "dog", "나"]), np.array([[1], [2], [3]], np.int8)):
        for save in (np.savez, np.savez_compressed):
            file = io.BytesIO()
            save(file, x_train=images, y_train=labels)
            seeds.append(file.getvalue())
    return seeds


def changed_archive(inner: Mutate) -> Mutate:
    """Return the mutation of a zip file: a member, which gets a right checksum; the names; or the bytes of the file."""

    def mutate(random: Random, content: bytes) -> bytes:
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                members = [(record.filename, archive.read(record)) for record in archive.infolist()]
        except Exception:  # an earlier mutation left no archive
            return changed_bytes(random, content)
        choice = random.random()
        if choice < 0.25 or not members:
            return changed_bytes(random, content)
        place = random.randrange(len(members))
        name, member = members[place]
        if choice < 0.8:
            members[place] = name, inner(random, member)
        elif choice < 0.9:
            members[place] = random.choice((name.replace("x", "y"), f"../{name}", "", "/a.npy", name + "\0")), member
        else:
            members += [(name, inner(random, member))] * random.choice((1, 2))
        file = io.BytesIO()
        method = random.choice((zipfile.ZIP_STORED, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2))
        with zipfile.ZipFile(file, "w", method) as archive:
            for name, member in members:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # a name may occur twice
                    archive.writestr(zipfile.ZipInfo(name), member, method)
        return file.getvalue()

    return mutate


NPY_PARTS = (
    *(b"'|O'", b"'<U3'", b"'<f8'", b"'|S0'", b"'<U0'", b"'M8[us]'", b"'|V8'", b"True", b"(2**9,)", b"(-1, 4, 4)"),
    *(
        b"(0, 4, 4)",
        b"(3, 0, 4)",
        b"(3, 4294967296, 4294967296)",
        b"[('a', '<i4')]",
        b"()",
        b"(" * 200,
        b"{" * 50,
        b"-1",
    ),
)


@cache
def pictures() -> list[bytes]:
    """Return small images in every format that is read."""
    from PIL import Image

    pixels = np.arange(8 * 8 * 3, dtype=np.uint8).reshape(8, 8, 3)
    seeds = []
    for kind in ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF"):
        for image in (Image.fromarray(pixels), Image.fromarray(pixels[..., 0])):
            file = io.BytesIO()
            image.save(file, kind)
            seeds.append(file.getvalue())
    return seeds


def changed_picture(random: Random, content: bytes) -> bytes:
    """Change the bytes of an image; half of the time near its beginning, where the sizes are."""
    if random.random() < 0.5:
        head = changed_bytes(random, content[:64])
        return head + content[64:]
    return changed_bytes(random, content)


def read_all(read: Callable[..., Any], *arguments: Any) -> Callable[[Path], object]:
    """Return a reader that takes a path and reads everything."""
    return lambda path: list(read([path], *arguments))


def read_corpus(path: Path) -> None:
    """Read running text as a language model's training does."""
    corpus = Corpus((path,))
    corpus.survey(CorpusReport())
    list(corpus.documents())


def read_images(path: Path) -> None:
    """Read a set of images; a broken image among them is dropped, so its error needs no name of a file."""
    for source in image_sources([str(path)]):
        for labeled in source.images():
            try:
                pixels_of(labeled.image, 3)
            except DataError:
                continue


def beside_idx(folder: Path) -> None:
    (folder / "train-labels-idx1-ubyte").write_bytes(idx((3,)))


def beside_labels(folder: Path) -> None:
    (folder / "train-images-idx3-ubyte").write_bytes(idx((3, 4, 4)))


def read_labels(path: Path) -> None:
    read_images(path.with_name("train-images-idx3-ubyte"))


def read_settings(path: Path) -> None:
    """Read a config file, and its settings of training strictly."""
    values = read_mapping(path)
    if isinstance(values.get("training"), dict):
        try:
            TrainingConfig.from_dict(values["training"])
        except HeedfulError:
            return  # a command adds the name of the file


def check_assignment(content: bytes, folder: Path) -> None:
    """Read a setting of the command line."""
    text = content.decode("utf-8", "surrogateescape")
    try:
        assign({"training": {"steps": 1}}, text)
    except HeedfulError:
        return


def beside_parallel(folder: Path) -> None:
    (folder / "train.ko").write_bytes("네\n아니요\n".encode())


def constant(*seeds: bytes) -> Callable[[], Sequence[bytes]]:
    return lambda: seeds


pairs = read_all(read_pairs, "en", "ko")
text = text_with(*PARTS_OF_TEXT)
TARGETS = [
    Target("tsv", constant(TSV), text, reading("pairs.tsv", pairs)),
    Target("csv", constant(CSV, CSV.replace(b",", b";")), text, reading("pairs.csv", pairs)),
    Target("parallel text", constant(b"Yes\nNo\n"), text, reading("train.en", pairs, beside=beside_parallel)),
    Target("jsonl", constant(JSONL, b'[{"en": "a", "ko": "b"}]'), changed_lines, reading("pairs.jsonl", pairs)),
    Target("gz", constant(gzip.compress(TSV, mtime=0)), packed(text), reading("pairs.tsv.gz", pairs)),
    Target("po", constant(PO), text_with(*PO_PARTS), reading("ko.po", pairs)),
    Target("mo", constant(MO), changed_bytes, reading("ko.mo", pairs)),
    Target("tmx", constant(TMX), text_with(*XML_PARTS), reading("memory.tmx", pairs)),
    Target("xliff", constant(XLIFF), text_with(*XML_PARTS), reading("exchange.xlf", pairs)),
    Target("labeled texts", constant(LABELED), text, reading("reviews.tsv", read_all(read_labeled_texts))),
    Target("labeled lines", constant(LABELED_LINES), changed_lines, reading("a.jsonl", read_all(read_labeled_texts))),
    Target("squad", constant(SQUAD), changed_json, reading("squad.json", read_all(read_questions))),
    Target("questions", constant(QUESTION_LINES), changed_lines, reading("questions.jsonl", read_all(read_questions))),
    Target("conll", constant(CONLL, CONLLU), text, reading("words.conll", read_all(read_tagged))),
    Target("tagged lines", constant(TAGGED_LINES), changed_lines, reading("words.jsonl", read_all(read_tagged))),
    Target("running text", constant(TSV, "가나다\r\n".encode() * 9), text, reading("corpus.txt", read_corpus)),
    Target("text lines", constant(b'{"text": "a b"}\n{"text": "c"}\n'), changed_lines, reading("a.jsonl", read_corpus)),
    Target(
        "series", constant(SERIES, SERIES_NAMED), text, reading("sales.csv", read_all(lambda paths: read_series(paths)))
    ),
    Target("npz", npz_seeds, changed_archive(text_with(*NPY_PARTS)), reading("images.npz", read_images)),
    Target(
        "idx",
        constant(idx((3, 4, 4)), gzip.compress(idx((3, 2, 2, 3)), mtime=0)),
        changed_bytes,
        reading("train-images-idx3-ubyte", read_images, beside=beside_idx),
    ),
    Target(
        "idx labels",
        constant(idx((3,)), idx((3,), 12)),
        changed_bytes,
        reading("train-labels-idx1-ubyte", read_labels, beside=beside_labels),
    ),
    Target("picture", pictures, changed_picture, reading("picture.png", lambda path: pixels_of(path, 3))),
    Target("yaml", constant(YAML), text_with(*YAML_PARTS), reading("run.yaml", read_settings)),
    Target(
        "json",
        constant(b'{"model": {"d_model": 32}, "training": {"steps": 5}}'),
        changed_json,
        reading("run.json", read_settings),
    ),
    Target("setting", constant(b"training.steps=5", b"data=[a, {b: 1e-3}]"), text_with(*YAML_PARTS), check_assignment),
]
