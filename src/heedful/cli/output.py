"""What `heedful predict` writes, plain, with scores or as JSON: answers to lines of text, the results of a search, and
what is said of images in files and folders and of series in tables.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

from torch import Tensor

from ..data.image_sets import ENDINGS, images_in
from ..data.readers.files import Line, every_line
from ..errors import ConfigError, DataError
from ..tasks.embedding import Index
from ..tasks.forecasting import SeriesForecaster
from ..tasks.forecasting.task import forecast_files
from ..tasks.images import ImageClassifier
from ..tasks.text_encoder import Text, TextEncoderPredictor
from ..tasks.text_generator import Answer, TextGenerator
from .console import complain

Form = Literal["plain", "scores", "json"]
_CONTROLS = {code: "\ufffd" for code in (*range(32), *range(127, 160)) if chr(code) != "\t"}


class OutputFormat(ABC):
    """A model and the form its answers are written in."""

    model: Any

    def validation_error(self, text: str) -> str | None:
        """Why a line is refused, if it is."""
        why: str | None = self.model.validation_error(text)
        return why

    @abstractmethod
    def answers(self, lines: Sequence[Line]) -> Iterator[tuple[list[str], bool]]:
        """For each line what to write, as lines, and whether the answer came to its end."""

    @abstractmethod
    def refusal(self, line: Line) -> str:
        """What to write in place of an answer."""

    def stream(self, line: Line, out: BinaryIO) -> bool:
        """Write the answer to a line while it is generated; whether it came to its end."""
        raise ConfigError(f"--stream is for models that write; this one, for {self.model.task}, reads")


@dataclass
class GeneratedOutput(OutputFormat):
    """Of a model that writes: its answers, best first. With several, each begins with the number of its line."""

    model: TextGenerator
    form: Form
    overrides: dict[str, Any]  # of generation

    def answers(self, lines: Sequence[Line]) -> Iterator[tuple[list[str], bool]]:
        candidates = self.model.candidates([line.text for line in lines], **self.overrides)
        for line, answers in zip(lines, candidates, strict=True):
            rows = [self._row(line, rank, answer) for rank, answer in enumerate(answers, 1)]
            yield rows, answers[0].finished or not self.model.comes_to_an_end

    def refusal(self, line: Line) -> str:
        return self._row(line, 1, Answer("", 0.0, True))

    def stream(self, line: Line, out: BinaryIO) -> bool:
        """One answer bit by bit; line breaks within it become spaces as soon as something follows them."""
        bits = self.model.stream(line.text, **self.overrides)
        text = written = ""
        for bit in bits:
            text += bit
            out.write(one_line(text)[len(written) :].encode())
            out.flush()
            written = one_line(text)
        out.write(b"\n")
        assert bits.answer is not None  # it has come to its end
        return bits.answer.finished or not self.model.comes_to_an_end

    def _row(self, line: Line, rank: int, answer: Answer) -> str:
        if self.form == "json":
            return as_json(line, _details(rank, answer))
        text, numbered = one_line(answer.text), self.overrides.get("n_best", 1) > 1
        if not numbered and self.form == "plain":
            return text
        columns = [str(line.number)] if numbered else []
        columns.append(text.replace("\t", " "))
        if self.form == "scores":
            confidence = "" if answer.confidence is None else f"{answer.confidence:.4f}"
            columns += [confidence, f"{answer.logprob:.4f}"]
        return "\t".join(columns)


@dataclass
class ReaderOutput(OutputFormat):
    """Of a model that reads: what it says of each line, or of the two texts that a tab parts."""

    model: TextEncoderPredictor[Any]
    form: Form

    def validation_error(self, text: str) -> str | None:
        if self.model.takes_pairs and (tabs := text.count("\t")) != 1:
            counted = "no tab" if not tabs else f"{tabs:,} tabs"
            return f"this model reads two texts with a tab between them: FIRST<TAB>SECOND; the line has {counted}"
        return self.model.validation_error(self._item(text))

    def answers(self, lines: Sequence[Line]) -> Iterator[tuple[list[str], bool]]:
        values = READERS[self.model.output_kind](self.model, [self._item(line.text) for line in lines], self.form)
        for line, value in zip(lines, values, strict=True):
            yield [as_json(line, value) if isinstance(value, dict) else one_line(value)], True

    def refusal(self, line: Line) -> str:
        return as_json(line, {}) if self.form == "json" else ""

    def _item(self, text: str) -> Text:
        if not self.model.takes_pairs:
            return text
        first, second = text.split("\t")
        return first, second


def output_format(model: Any, form: Form, overrides: dict[str, Any]) -> OutputFormat:
    """How a model's answers are written; overrides of generation are for those that write."""
    if model.generates_text:
        return GeneratedOutput(model, form, overrides)
    if model.input_kind != "text":
        raise ConfigError(f'a model for {model.task} is used from Python: heedful.load("…").predict([…])')
    if form == "scores" and model.output_kind not in ("labels", "answer"):
        raise ConfigError(
            f"--scores is for answers with probabilities; a model for {model.task} gives none so; use --json"
        )
    if overrides:
        named = ", ".join(f"--{name.replace('_', '-')}" for name in overrides)
        raise ConfigError(f"{named} is for models that write; this one, for {model.task}, reads")
    return ReaderOutput(model, form)


def one_line(text: str) -> str:
    """What a terminal would obey is shown as a mark: a sample may hold any byte."""
    return " ".join(text.splitlines()).translate(_CONTROLS)


def as_json(line: Line, values: dict[str, Any]) -> str:
    """Beside the number of the line; and why it was refused, if it was."""
    fault = {"error": line.fault} if line.fault else {}
    return json.dumps({"line": line.number, **values, **fault}, ensure_ascii=False)


def _details(rank: int, answer: Answer) -> dict[str, Any]:
    return {
        "rank": rank,
        "text": answer.text,
        "confidence": answer.confidence,
        "logprob": answer.logprob,
        "score": answer.score,
        "finished": answer.finished,
        "tokens": [piece.text for piece in answer.pieces],
        "token_logprobs": [piece.logprob for piece in answer.pieces],
    }


def _labels(model: Any, texts: Sequence[Text], form: Form) -> Iterator[str | dict[str, Any]]:
    """Plain is the answer itself: the likeliest class, all that hold where several may, or the number of a score."""
    means = model.settings.means
    for shares in model.predict(texts):
        label, share = next(iter(shares.items()))
        if form == "json":
            yield {"label": label, "scores" if means == "score" else "probabilities": shares}
        elif means == "score":
            yield "\t".join(
                f"{name}\t{score:.4f}" if form == "scores" else f"{score:.6g}" for name, score in shares.items()
            )
        elif form == "scores":
            yield f"{label}\t{share:.4f}"
        else:
            yield label if means == "one" else "\t".join(name for name in shares if shares[name] >= 0.5)


def _vectors(model: Any, texts: Sequence[Text], form: Form) -> Iterator[str | dict[str, Any]]:
    for vector in model.predict(texts):
        yield {"vector": vector} if form == "json" else " ".join(f"{number:.6g}" for number in vector)


def _gaps(model: Any, texts: Sequence[Text], form: Form) -> Iterator[str | dict[str, Any]]:
    for text, guesses in zip(texts, model.guesses(texts), strict=True):
        filled = model.filled(text, guesses)
        gaps = [[guess._asdict() for guess in gap] for gap in guesses]
        yield {"text": filled, "gaps": gaps} if form == "json" else filled


def _answers(model: Any, items: Sequence[Text], form: Form) -> Iterator[str | dict[str, Any]]:
    """Plain is the best answer, an empty line where the context has none; JSON has others too."""
    for best, *others in model.candidates(items):
        if form == "json":
            yield {**best, "alternatives": others}
        else:
            yield f"{best['answer']}\t{best['probability']:.4f}" if form == "scores" else best["answer"]


def _spans(model: Any, texts: Sequence[Text], form: Form) -> Iterator[str | dict[str, Any]]:
    """Plain is each span with its label: Anna/PER, with tabs between them."""
    for spans in model.predict(texts):
        yield {"spans": spans} if form == "json" else "\t".join(f"{span['text']}/{span['label']}" for span in spans)


READERS: dict[str, Callable[[Any, Sequence[Text], Form], Iterator[str | dict[str, Any]]]] = {  # by `output_kind`
    "labels": _labels,
    "vector": _vectors,
    "gaps": _gaps,
    "answer": _answers,
    "spans": _spans,
}


def search(
    model: Any, queries: Sequence[str], index: Path, stream: BinaryIO, *, count: int, as_json: bool = False
) -> None:
    """Write for each query its nearest lines, the nearest first: the score, the number of the line, and the line.

    As JSON, a line holds a query and all its matches. Lines that cannot be read are named and left out.
    """
    if model.output_kind != "vector":
        raise ConfigError(
            f"--query searches by the vectors of an embedder; this model is for {model.task}. "
            "Import one: heedful import FOLDER --task embedding --out OUT"
        )
    for number, query in enumerate(queries, 1):
        if why := ("it is empty" if not query.strip() else model.validation_error(query)):
            raise DataError(f"--query {number}: {why}")
    lines = Index(model, every_line(index))
    for line in lines.refused:
        complain(f"{index}:{line.number}: {line.fault}")
    for query in queries:
        matches = lines.search(query, count)
        rows = [f"{match.score:.4f}\t{match.line}\t{one_line(match.text)}" for match in matches]
        if as_json:
            values = {"query": query, "matches": [match._asdict() for match in matches]}
            rows = [json.dumps(values, ensure_ascii=False)]
        stream.writelines(f"{row}\n".encode() for row in rows)
    stream.flush()
    if lines.refused:
        raise DataError(f"{len(lines.refused):,} lines of {index} could not be read, and were not searched")


def predict_images(model: ImageClassifier, name: str, form: Form, stream: BinaryIO) -> str | None:
    """A line for each image: its path, its class and, where asked for, how likely it is; what to say at the end.

    One that cannot be read is named; its line has the path alone, and in JSON the reason.
    """
    refused = 0
    paths = _images(_existing(name))
    for first in range(0, len(paths), model.batch_size):
        several = paths[first : first + model.batch_size]
        prepared: dict[Path, Tensor] = {}
        faults: dict[Path, str] = {}
        for path in several:
            try:
                prepared[path] = model.prepared(path)
            except DataError as error:
                faults[path] = str(error)
                complain(str(error))
        answers = dict(zip(prepared, model.look(list(prepared.values())), strict=True))
        for path in several:
            stream.write(f"{_image_row(path, answers.get(path, {}), faults.get(path), form)}\n".encode())
        stream.flush()
        refused += len(faults)
    return f"{refused:,} of {len(paths):,} images could not be read" if refused else None


def _image_row(path: Path, shares: dict[str, float], fault: str | None, form: Form) -> str:
    label, share = next(iter(shares.items()), ("", None))
    if form == "json":
        result = {"error": fault} if fault else {"label": label, "probabilities": shares}
        return json.dumps({"image": str(path), **result}, ensure_ascii=False)
    columns = [one_line(str(path)), one_line(label)]
    return "\t".join([*columns, "" if share is None else f"{share:.4f}"] if form == "scores" else columns)


def predict_series(model: SeriesForecaster, name: str, form: Form, stream: BinaryIO) -> str | None:
    """A line for each column of each series: their names, then the steps that follow."""
    if form == "scores":
        raise ConfigError("--scores is for answers with probabilities; a forecast has none")
    for series in forecast_files(model, [_existing(name)]):
        if form == "json":
            stream.write(f"{json.dumps(series, ensure_ascii=False)}\n".encode())
            continue
        for column, values in series["forecast"].items():
            cells = [one_line(str(series["series"])), one_line(column), *(f"{value:.6g}" for value in values)]
            stream.write(("\t".join(cells) + "\n").encode())
    return None


def _existing(name: str) -> Path:
    path = Path(name)
    if name == "-" or not path.exists():
        raise DataError(f"{name}: there is no such file; this model reads files, not text")
    return path


def _images(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    images, _ = images_in(path)
    if not images:
        raise DataError(f"{path}: there is no image in this folder ({', '.join(ENDINGS)})")
    return images


PREDICTORS: dict[str, Callable[[Any, str, Form, BinaryIO], str | None]] = {  # by `input_kind`
    "image": predict_images,
    "series": predict_series,
}
