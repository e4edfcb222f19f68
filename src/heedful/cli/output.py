"""The output of `heedful predict`, as plain text, with scores or as JSON, for texts, searches, images and series."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

from torch import Tensor

from ..data.image_sets import ENDINGS, images_in
from ..data.readers.files import Line, every_line
from ..errors import ConfigError, DataError, NonFiniteOutputError
from ..tasks.embedding import Index
from ..tasks.forecasting import SeriesForecaster
from ..tasks.forecasting.task import forecast_files
from ..tasks.images import ImageClassifier
from ..tasks.scoring import HANGUL
from ..tasks.text_encoder import Text, TextEncoderPredictor
from ..tasks.text_generator import Answer, TextGenerator
from .console import complain

Form = Literal["plain", "scores", "json"]
_CONTROLS = {code: "\ufffd" for code in (*range(32), *range(127, 160)) if chr(code) != "\t"}


class OutputFormat(ABC):
    """A model and the format of its answers to lines of text."""

    model: Any

    def validation_error(self, text: str) -> str | None:
        """Return why a line is refused, or None."""
        reason: str | None = self.model.validation_error(text)
        return reason

    def unknown_words(self, text: str) -> list[str]:
        """Return the words of a line that the model does not know, as far as it can tell."""
        if not getattr(self.model.settings, "lexicon", ""):
            return []
        from ..demo import unknown_words

        return unknown_words(self.model, text)

    @abstractmethod
    def answers(self, lines: Sequence[Line]) -> Iterator[tuple[list[str], bool]]:
        """Yield for each line its lines of output, and whether the answer is complete."""

    @abstractmethod
    def refusal(self, line: Line) -> str:
        """Return the output for a line that is refused."""

    def stream(self, line: Line, out: BinaryIO) -> bool:
        """Write the answer to a line while it is generated; return whether it is complete."""
        raise ConfigError(f"--stream is for models that generate text; this model is for {self.model.task}")


@dataclass
class GeneratedOutput(OutputFormat):
    """The answers of a text generator, best first. Several answers start with the number of their line."""

    model: TextGenerator
    form: Form
    overrides: dict[str, Any]  # of the generation settings

    def answers(self, lines: Sequence[Line]) -> Iterator[tuple[list[str], bool]]:
        candidates = self.model.candidates([line.text for line in lines], **self.overrides)
        for line, answers in zip(lines, candidates, strict=True):
            rows = [self._row(line, rank, answer) for rank, answer in enumerate(answers, 1)]
            yield rows, answers[0].finished or not self.model.comes_to_an_end

    def refusal(self, line: Line) -> str:
        return self._row(line, 1, Answer("", 0.0, True))

    def stream(self, line: Line, out: BinaryIO) -> bool:
        """Write one answer piece by piece; a line break becomes a space as soon as something follows it."""
        pieces = self.model.stream(line.text, **self.overrides)
        text = written = ""
        for piece in pieces:
            text += piece
            out.write(one_line(text)[len(written) :].encode())
            out.flush()
            written = one_line(text)
        out.write(b"\n")
        assert pieces.answer is not None  # set when the stream ends
        return pieces.answer.finished or not self.model.comes_to_an_end

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
class OutputByScript(OutputFormat):
    """The answers of two translators: Korean lines are for one, all others for the other."""

    from_korean: GeneratedOutput
    to_korean: GeneratedOutput

    def of(self, text: str) -> GeneratedOutput:
        """Return the output of the translator for a line."""
        return self.from_korean if HANGUL.search(text) else self.to_korean

    def validation_error(self, text: str) -> str | None:
        return self.of(text).validation_error(text)

    def unknown_words(self, text: str) -> list[str]:
        return self.of(text).unknown_words(text)

    def answers(self, lines: Sequence[Line]) -> Iterator[tuple[list[str], bool]]:
        korean, others = ([line for line in lines if bool(HANGUL.search(line.text)) is side] for side in (True, False))
        answers = self.from_korean.answers(korean), self.to_korean.answers(others)
        for line in lines:
            yield next(answers[0 if HANGUL.search(line.text) else 1])

    def refusal(self, line: Line) -> str:
        return self.of(line.text).refusal(line)


@dataclass
class EncoderOutput(OutputFormat):
    """The predictions of a text encoder for lines, or for pairs of texts with a tab between them."""

    model: TextEncoderPredictor[Any]
    form: Form

    def validation_error(self, text: str) -> str | None:
        if self.model.takes_pairs and (tabs := text.count("\t")) != 1:
            number = "no tab" if not tabs else f"{tabs:,} tabs"
            return f"this model takes two texts with a tab between them: FIRST<TAB>SECOND; the line has {number}"
        return self.model.validation_error(self._item(text))

    def answers(self, lines: Sequence[Line]) -> Iterator[tuple[list[str], bool]]:
        values = FORMATS[self.model.output_kind](self.model, [self._item(line.text) for line in lines], self.form)
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
    """Return the output format of a model; raise ConfigError for options that do not apply to it."""
    if model.generates_text:
        return GeneratedOutput(model, form, overrides)
    if model.input_kind != "text":
        raise ConfigError(f'a model for {model.task} is used from Python: heedful.load("…").predict([…])')
    if form == "scores" and model.output_kind not in ("labels", "answer"):
        raise ConfigError(f"--scores does not apply to a model for {model.task}; use --json")
    if overrides:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in overrides)
        raise ConfigError(f"{flags} is for models that generate text; this model is for {model.task}")
    return EncoderOutput(model, form)


def one_line(text: str) -> str:
    """Join lines and replace control characters, which generated text may contain."""
    return " ".join(text.splitlines()).translate(_CONTROLS)


def as_json(line: Line, values: dict[str, Any]) -> str:
    """Return values as JSON with the number of the line, and the reason if it was refused."""
    error = {"error": line.fault} if line.fault else {}
    return _json_text({"line": line.number, **values, **error})


def _json_text(values: dict[str, Any]) -> str:
    """Return strict JSON, which has neither NaN nor inf."""
    try:
        return json.dumps(values, ensure_ascii=False, allow_nan=False)
    except ValueError:
        raise NonFiniteOutputError from None


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
    """Yield the likeliest class, all classes above 0.5 of a multi-label model, or the numbers of a scoring model."""
    means = model.settings.means
    for values in model.predict(texts):
        label, probability = next(iter(values.items()))
        if form == "json":
            yield {"label": label, "scores" if means == "score" else "probabilities": values}
        elif means == "score":
            yield "\t".join(
                f"{name}\t{score:.4f}" if form == "scores" else f"{score:.6g}" for name, score in values.items()
            )
        elif form == "scores":
            yield f"{label}\t{probability:.4f}"
        else:
            yield label if means == "one" else "\t".join(name for name in values if values[name] >= 0.5)


def _vectors(model: Any, texts: Sequence[Text], form: Form) -> Iterator[str | dict[str, Any]]:
    for vector in model.predict(texts):
        yield {"vector": vector} if form == "json" else " ".join(f"{number:.6g}" for number in vector)


def _gaps(model: Any, texts: Sequence[Text], form: Form) -> Iterator[str | dict[str, Any]]:
    for text, guesses in zip(texts, model.guesses(texts), strict=True):
        filled = model.filled(text, guesses)
        gaps = [[guess._asdict() for guess in gap] for gap in guesses]
        yield {"text": filled, "gaps": gaps} if form == "json" else filled


def _answers(model: Any, items: Sequence[Text], form: Form) -> Iterator[str | dict[str, Any]]:
    """Yield the best answer, empty if the context has none; as JSON, with the alternatives."""
    for best, *others in model.candidates(items):
        if form == "json":
            yield {**best, "alternatives": others}
        else:
            yield f"{best['answer']}\t{best['probability']:.4f}" if form == "scores" else best["answer"]


def _spans(model: Any, texts: Sequence[Text], form: Form) -> Iterator[str | dict[str, Any]]:
    """Yield each span with its label, such as Anna/PER, separated by tabs."""
    for spans in model.predict(texts):
        yield {"spans": spans} if form == "json" else "\t".join(f"{span['text']}/{span['label']}" for span in spans)


FORMATS: dict[str, Callable[[Any, Sequence[Text], Form], Iterator[str | dict[str, Any]]]] = {  # by `output_kind`
    "labels": _labels,
    "vector": _vectors,
    "gaps": _gaps,
    "answer": _answers,
    "spans": _spans,
}


def search(
    model: Any, queries: Sequence[str], index: Path, stream: BinaryIO, *, count: int, as_json: bool = False
) -> None:
    """Write for each query its nearest lines, nearest first: the score, the number of the line, and the line.

    As JSON, each line of output has a query and all its matches. Lines that cannot be read are reported and skipped.
    """
    if model.output_kind != "vector":
        raise ConfigError(
            f"--query needs an embedding model; this model is for {model.task}. "
            "Import one: heedful import FOLDER --task embedding --out OUT"
        )
    for number, query in enumerate(queries, 1):
        if reason := ("it is empty" if not query.strip() else model.validation_error(query)):
            raise DataError(f"--query {number}: {reason}")
    lines = Index(model, every_line(index))
    for line in lines.refused:
        complain(f"{index}:{line.number}: {line.fault}")
    for query in queries:
        matches = lines.search(query, count)
        rows = [f"{match.score:.4f}\t{match.line}\t{one_line(match.text)}" for match in matches]
        if as_json:
            values = {"query": query, "matches": [match._asdict() for match in matches]}
            rows = [_json_text(values)]
        stream.writelines(f"{row}\n".encode() for row in rows)
    stream.flush()
    if lines.refused:
        raise DataError(f"{len(lines.refused):,} lines of {index} could not be read and were not searched")


def predict_images(model: ImageClassifier, name: str, form: Form, stream: BinaryIO) -> str | None:
    """Write a line for each image: its path, its class and with scores its probability; return an error message.

    The line of an image that cannot be read has only the path, and in JSON the reason.
    """
    n_refused = 0
    path = _existing(name)
    paths = images_in(path)[0] if path.is_dir() else [path]
    if not paths:
        raise DataError(f"{path}: there is no image in this folder ({', '.join(ENDINGS)})")
    for first in range(0, len(paths), model.batch_size):
        batch = paths[first : first + model.batch_size]
        prepared: dict[Path, Tensor] = {}
        errors: dict[Path, str] = {}
        for path in batch:
            try:
                prepared[path] = model.prepared(path)
            except DataError as error:
                errors[path] = str(error)
                complain(str(error))
        answers = dict(zip(prepared, model.look(list(prepared.values())), strict=True))
        for path in batch:
            stream.write(f"{_image_row(path, answers.get(path, {}), errors.get(path), form)}\n".encode())
        stream.flush()
        n_refused += len(errors)
    return f"{n_refused:,} of {len(paths):,} images could not be read" if n_refused else None


def _image_row(path: Path, probabilities: dict[str, float], error: str | None, form: Form) -> str:
    label, probability = next(iter(probabilities.items()), ("", None))
    if form == "json":
        result = {"error": error} if error else {"label": label, "probabilities": probabilities}
        return _json_text({"image": str(path), **result})
    columns = [one_line(str(path)), one_line(label)]
    return "\t".join([*columns, "" if probability is None else f"{probability:.4f}"] if form == "scores" else columns)


def predict_series(model: SeriesForecaster, name: str, form: Form, stream: BinaryIO) -> str | None:
    """Write a line for each column of each series: their names, then the forecast."""
    if form == "scores":
        raise ConfigError("--scores does not apply to a forecast, which has no probabilities; leave it out")
    forecasts = forecast_files(model, [_existing(name)])
    errors = [series["error"] for series in forecasts if "error" in series]
    for error in errors:
        complain(error)
    for series in forecasts:
        if form == "json":
            stream.write(f"{_json_text(series)}\n".encode())
            continue
        if "error" in series:
            stream.write(f"{one_line(str(series['series']))}\n".encode())
            continue
        for column, values in series["forecast"].items():
            cells = [one_line(str(series["series"])), one_line(column), *(f"{value:.6g}" for value in values)]
            stream.write(("\t".join(cells) + "\n").encode())
    return f"{len(errors):,} of {len(forecasts):,} series were refused" if errors else None


def _existing(name: str) -> Path:
    path = Path(name)
    if name == "-" or not path.exists():
        raise DataError(f"{name}: there is no such file; this model takes files, not text")
    return path


PREDICTORS: dict[str, Callable[[Any, str, Form, BinaryIO], str | None]] = {  # by `input_kind`
    "image": predict_images,
    "series": predict_series,
}
