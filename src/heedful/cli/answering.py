"""Lines in, answers out as lines: of models that write and of models that read, plain, with scores, or as JSON."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Literal

from ..data.readers.files import Line
from ..errors import ConfigError
from ..tasks.classification import Classifier
from ..tasks.embedding import Embedder
from ..tasks.masked import Filler
from ..tasks.reader import Reader, Text
from ..tasks.text_generator import Answer, TextGenerator

Form = Literal["plain", "scores", "json"]
_CONTROLS = {code: "\ufffd" for code in (*range(32), *range(127, 160)) if chr(code) != "\t"}


class Answering(ABC):
    """A model and the form its answers are shown in."""

    model: Any

    def why_not(self, text: str) -> str | None:
        """Why a line is refused, if it is."""
        why: str | None = self.model.why_not(text)
        return why

    @abstractmethod
    def answers(self, lines: Sequence[Line]) -> Iterator[tuple[list[str], bool]]:
        """For each line what to write, as lines, and whether the answer came to its end."""

    @abstractmethod
    def refusal(self, line: Line) -> str:
        """What to write in place of an answer."""


@dataclass
class Writing(Answering):
    """Of a model that writes: its answers, best first. With several, each begins with the number of its line."""

    model: TextGenerator
    form: Form
    words: dict[str, Any]  # of generation

    def answers(self, lines: Sequence[Line]) -> Iterator[tuple[list[str], bool]]:
        found = self.model.candidates([line.text for line in lines], **self.words)
        for line, answers in zip(lines, found, strict=True):
            shown = [self._shown(line, rank, answer) for rank, answer in enumerate(answers, 1)]
            yield shown, answers[0].finished or not self.model.comes_to_an_end

    def refusal(self, line: Line) -> str:
        return self._shown(line, 1, Answer("", 0.0, True))

    def stream(self, line: Line, out: BinaryIO) -> bool:
        """One answer bit by bit; line breaks within it become spaces as soon as something follows them."""
        bits = self.model.stream(line.text, **self.words)
        text = shown = ""
        for bit in bits:
            text += bit
            out.write(one_line(text)[len(shown) :].encode())
            out.flush()
            shown = one_line(text)
        out.write(b"\n")
        assert bits.answer is not None  # it has come to its end
        return bits.answer.finished or not self.model.comes_to_an_end

    def _shown(self, line: Line, rank: int, answer: Answer) -> str:
        if self.form == "json":
            return as_json(line, _details(rank, answer))
        text, numbered = one_line(answer.text), self.words.get("n_best", 1) > 1
        if not numbered and self.form == "plain":
            return text
        columns = [str(line.number)] if numbered else []
        columns.append(text.replace("\t", " "))
        if self.form == "scores":
            sure = "" if answer.confidence is None else f"{answer.confidence:.4f}"
            columns += [sure, f"{answer.logprob:.4f}"]
        return "\t".join(columns)


@dataclass
class Reading(Answering):
    """Of a model that reads: what it says of each line, or of the two texts that a tab parts."""

    model: Reader
    form: Form

    @property
    def pairs(self) -> bool:
        """Whether a line holds two texts."""
        return isinstance(self.model, Classifier) and self.model.settings.texts == 2

    def why_not(self, text: str) -> str | None:
        if self.pairs and (tabs := text.count("\t")) != 1:
            found = "no tab" if not tabs else f"{tabs:,} tabs"
            return f"this model reads two texts with a tab between them: FIRST<TAB>SECOND; the line has {found}"
        return self.model.why_not(self._asked(text))

    def answers(self, lines: Sequence[Line]) -> Iterator[tuple[list[str], bool]]:
        shown = SHOWN[type(self.model)](self.model, [self._asked(line.text) for line in lines], self.form)
        for line, value in zip(lines, shown, strict=True):
            yield [as_json(line, value) if isinstance(value, dict) else one_line(value)], True

    def refusal(self, line: Line) -> str:
        return as_json(line, {}) if self.form == "json" else ""

    def _asked(self, text: str) -> Text:
        if not self.pairs:
            return text
        first, second = text.split("\t")
        return first, second


def answering(model: Any, form: Form, words: dict[str, Any]) -> Answering:
    """The way for a model; words of generation are for those that write."""
    if isinstance(model, TextGenerator):
        return Writing(model, form, words)
    if not isinstance(model, Reader):
        raise ConfigError(f'a model for {model.task} is used from Python: heedful.load("…").predict([…])')
    if form == "scores" and not isinstance(model, Classifier):
        raise ConfigError(
            f"--scores is for answers with probabilities; a model for {model.task} gives none so; use --json"
        )
    if words:
        named = ", ".join(f"--{name.replace('_', '-')}" for name in words)
        raise ConfigError(f"{named} is for models that write; this one, for {model.task}, reads")
    return Reading(model, form)


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


def _classes(model: Any, texts: Sequence[Text], form: Form) -> Iterator[str | dict[str, Any]]:
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
    for text, found in zip(texts, model.guesses(texts), strict=True):
        filled = model.filled(text, found)
        gaps = [[guess._asdict() for guess in gap] for gap in found]
        yield {"text": filled, "gaps": gaps} if form == "json" else filled


SHOWN: dict[type, Callable[[Any, Sequence[Text], Form], Iterator[str | dict[str, Any]]]] = {
    Classifier: _classes,
    Embedder: _vectors,
    Filler: _gaps,
}
