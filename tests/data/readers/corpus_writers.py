"""Writers for every format, made with other libraries than the readers use: what they write must be read back."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from xml.etree import ElementTree

import polib

from heedful.data.readers import read_pairs

Texts = Sequence[tuple[str, str]]


def write_tsv(folder: Path, texts: Texts) -> Path:
    path = folder / "pairs.tsv"
    path.write_bytes("".join(f"{source}\t{target}\n" for source, target in texts).encode())
    return path


def write_csv(folder: Path, texts: Texts) -> Path:
    """As RFC 4180 has it: everything quoted, quotes doubled, lines ended by both characters."""
    path = folder / "pairs.csv"
    cells = [[text.replace('"', '""') for text in pair] for pair in texts]
    path.write_bytes("".join(f'"{source}","{target}"\r\n' for source, target in cells).encode())
    return path


def write_text(folder: Path, texts: Texts) -> Path:
    for place, code in enumerate(("en", "ko")):
        (folder / f"train.{code}").write_bytes("".join(f"{pair[place]}\n" for pair in texts).encode())
    return folder / "train.en"


def write_jsonl(folder: Path, texts: Texts) -> Path:
    path = folder / "pairs.jsonl"
    path.write_text("".join(json.dumps({"source": source, "target": target}) + "\n" for source, target in texts))
    return path


def catalog(texts: Texts) -> polib.POFile:
    catalog = polib.POFile()
    catalog.metadata = {"Language": "ko", "Content-Type": "text/plain; charset=UTF-8"}
    catalog.extend(polib.POEntry(msgid=source, msgstr=target) for source, target in texts)
    return catalog


def write_po(folder: Path, texts: Texts) -> Path:
    path = folder / "app.po"
    catalog(texts).save(str(path))
    return path


def write_mo(folder: Path, texts: Texts) -> Path:
    path = folder / "app.mo"
    catalog(texts).save_as_mofile(str(path))
    return path


def write_tmx(folder: Path, texts: Texts) -> Path:
    root = ElementTree.Element("tmx", version="1.4")
    body = ElementTree.SubElement(root, "body")
    for pair in texts:
        unit = ElementTree.SubElement(body, "tu")
        for code, text in zip(("en-US", "ko-KR"), pair, strict=True):
            variant = ElementTree.SubElement(unit, "tuv", {"xml:lang": code})
            ElementTree.SubElement(variant, "seg").text = text
    path = folder / "memory.tmx"
    ElementTree.ElementTree(root).write(path, encoding="utf-16")
    return path


def write_xliff(folder: Path, texts: Texts) -> Path:
    root = ElementTree.Element("xliff", version="1.2", xmlns="urn:oasis:names:tc:xliff:document:1.2")
    file = ElementTree.SubElement(root, "file", {"source-language": "en", "target-language": "ko"})
    body = ElementTree.SubElement(file, "body")
    for number, (source, target) in enumerate(texts):
        unit = ElementTree.SubElement(body, "trans-unit", id=str(number))
        ElementTree.SubElement(unit, "source").text = source
        ElementTree.SubElement(unit, "target").text = target
    path = folder / "exchange.xlf"
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)
    return path


WRITERS: dict[str, Callable[[Path, Texts], Path]] = {
    "tab-separated text": write_tsv,
    "comma-separated text": write_csv,
    "parallel text": write_text,
    "JSON lines": write_jsonl,
    "gettext catalog": write_po,
    "compiled gettext catalog": write_mo,
    "TMX": write_tmx,
    "XLIFF": write_xliff,
}


def packed(path: Path) -> Path:
    """The same file compressed, the plain one gone."""
    target = path.with_name(f"{path.name}.gz")
    target.write_bytes(gzip.compress(path.read_bytes(), compresslevel=1))
    path.unlink()
    return target


def texts_of(
    path: Path | list[Path], source: str = "en", target: str = "ko", columns: tuple[str, ...] | None = None
) -> list[tuple[str, str]]:
    return [(pair.source, pair.target) for pair in read_pairs(path, source, target, columns=columns)]


def write(path: Path, content: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode())
    return path
