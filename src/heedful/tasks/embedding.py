"""Text embedding: texts as vectors whose cosine measures similarity, and search by it.

The pooling of published models is read from a sentence-transformers folder, and written into one.

Shapes: N lines, U different texts among them, D d_model.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from ..config import Config, read_mapping
from ..data.published_tokenizer import NAME, PublishedTokenizer
from ..data.readers.files import Line
from ..errors import ConfigError, DataError, unknown
from ..families import Imported
from .predictor import OutputKind, in_chunks
from .text_encoder import Text, TextEncoderPredictor

CHUNK = 1024  # texts that are read together

# Of a sentence-transformers folder.
MODULES, SETTINGS = "modules.json", "sentence_bert_config.json"
FOLDER = re.compile(r"\w[\w.-]*")
LARGEST = 1 << 20  # bytes of a list of modules
POOLING = {"pooling_mode_cls_token": "first", "pooling_mode_mean_tokens": "mean"}  # as our heads call it
MODES = {"cls": "first", "mean": "mean"}  # the same in newer folders, which say pooling_mode


@dataclass(frozen=True, kw_only=True)
class EmbedderSettings(Config):
    """`normalized` vectors have length one, so that their dot product is their cosine similarity."""

    title: ClassVar[str] = "embedding"

    normalized: bool = True


class Embedder(TextEncoderPredictor[list[float]]):
    """Computes a vector for each text, which the model's head pools: what `heedful.load` returns for embeddings."""

    task: ClassVar[str] = "embedding"
    head: ClassVar[str] = "mean"
    settings_class: ClassVar[type[Config]] = EmbedderSettings
    output_kind: ClassVar[OutputKind] = "vector"
    accepts_pairs: ClassVar[bool] = True

    def predict_valid(self, texts: Sequence[Text]) -> list[list[float]]:
        return [
            (F.normalize(output, dim=-1) if self.settings.normalized else output).tolist()
            for output in self.outputs(texts)
        ]

    @classmethod
    def checkpoint_settings(cls, checkpoint: Imported, folder: Path, tokenizer: PublishedTokenizer) -> EmbedderSettings:
        """Return whether vectors have length one, as sentence-transformers' files say."""
        path = folder / SETTINGS
        lowers_case = path.is_file() and read_mapping(path).get("do_lower_case") is True
        if lowers_case and tokenizer.encode("A") != tokenizer.encode("a"):
            raise ConfigError(f"{folder}: do_lower_case is set, which its {NAME} does not do; that is not supported")
        return EmbedderSettings(normalized=pooling_of(folder).normalized)

    def hf_files(self, config: Mapping[str, Any]) -> dict[str, Any]:
        model_config: Any = self.config
        return pooling_files(Pooling(model_config.head, self.settings.normalized), model_config.d_model)


class Match(NamedTuple):
    """A line, and the cosine of the angle between its meaning and the question's: 1 at most."""

    line: int
    text: str
    score: float


class Index:
    """The lines of a file as vectors, read once and held in memory; empty lines are left out.

    A text that stands there twice is read once, so that both are equally near. `refused` holds lines that the model
    cannot read, each with the reason as its fault.
    """

    def __init__(self, embedder: Embedder, lines: Iterable[Line]) -> None:
        self.embedder = embedder
        self.lines: list[Line] = []
        self.refused: list[Line] = []
        texts: dict[str, int] = {}
        vectors = [self._unit(chunk) for chunk in in_chunks(self._read(lines, texts), CHUNK)]
        self.vectors = torch.cat(vectors) if vectors else torch.zeros(0, 1)  # (U, D), each of length one
        self.owners = torch.tensor([texts[line.text] for line in self.lines], dtype=torch.long)  # (N,)

    def __len__(self) -> int:
        return len(self.lines)

    def search(self, question: str, count: int = 10) -> list[Match]:
        """Return the `count` nearest lines, the nearest first; ties are in the order of the file."""
        if count < 1:
            raise ConfigError(f"count must be at least 1, not {count}")
        if not question.strip():
            raise DataError("the query is empty")
        if not self.lines:
            return []
        scores = (self.vectors @ self._unit([question])[0])[self.owners]
        order = scores.argsort(descending=True, stable=True)[:count].tolist()
        return [Match(self.lines[place].number, self.lines[place].text, float(scores[place])) for place in order]

    def _read(self, lines: Iterable[Line], texts: dict[str, int]) -> Iterator[str]:
        """Yield the texts that are new; add every line to `lines` or `refused`."""
        for line in lines:
            seen = line.text in texts
            fault = line.fault or (
                self.embedder.validation_error(line.text) if line.text.strip() and not seen else None
            )
            if fault:
                self.refused.append(line._replace(fault=fault))
            elif line.text.strip():
                self.lines.append(line)
                if not seen:
                    texts[line.text] = len(texts)
                    yield line.text

    def _unit(self, texts: Sequence[str]) -> Tensor:
        return F.normalize(torch.stack(self.embedder.outputs(texts)), dim=-1)


class Pooling(NamedTuple):
    """The head that pools, and whether vectors have length one."""

    head: str
    normalized: bool


DEFAULT = Pooling("mean", True)


def pooling_of(folder: Path) -> Pooling:
    """Return the pooling that a folder names; the default if it names none."""
    if not (folder / MODULES).is_file():
        return DEFAULT
    head, normalized = "mean", False
    for kind, path in _modules(folder / MODULES):
        if kind == "Pooling":
            head = _pooling(folder / path / "config.json")
        elif kind == "Normalize":
            normalized = True
        elif kind != "Transformer":
            raise ConfigError(f"{folder / MODULES}: {unknown('module', kind, ['Transformer', 'Pooling', 'Normalize'])}")
        elif path:
            raise ConfigError(f"{folder / MODULES}: the model is in {path}; only one beside {MODULES} is read")
    return Pooling(head, normalized)


def _modules(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the kind and the folder of each module."""
    try:
        with path.open(encoding="utf-8") as file:
            modules = json.loads(file.read(LARGEST))
        entries = [(str(module["type"]).rpartition(".")[2], str(module["path"])) for module in modules]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ConfigError(f"{path} is not a list of modules: {error}") from None
    for kind, name in entries:
        if name and not FOLDER.fullmatch(name):
            raise ConfigError(f"{path}: a module's path is the name of a folder beside it, not {name!r}")
        yield kind, name


def _pooling(path: Path) -> str:
    values: dict[str, Any] = read_mapping(path)
    if values.get("pooling_mode") in tuple(MODES):
        return MODES[values["pooling_mode"]]
    modes = [key for key, value in values.items() if key.startswith("pooling_mode") and value not in (False, None)]
    if len(modes) != 1 or modes[0] not in POOLING:
        raise ConfigError(
            f"{path}: {' and '.join(modes) or 'no pooling'} is not supported; one of {', '.join(POOLING)} is"
        )
    return POOLING[modes[0]]


def pooling_files(pooling: Pooling, width: int) -> dict[str, Any]:
    """Return the files that describe a pooling, by name, as `pooling_of` and sentence-transformers read them."""
    kinds = {"Transformer": "", "Pooling": "1_Pooling"} | ({"Normalize": "2_Normalize"} if pooling.normalized else {})
    modules = [
        {"idx": place, "name": str(place), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for place, (kind, path) in enumerate(kinds.items())
    ]
    modes = {key: head == pooling.head for key, head in POOLING.items()}
    return {MODULES: modules, "1_Pooling/config.json": {"word_embedding_dimension": width, **modes}}
