"""Questions about passages, with the spans that answer them: SQuAD and KorQuAD JSON, JSON lines and tables."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import ConfigError
from .columns import are_numbers
from .pairs import TextExample
from .readers.files import ARRAY, InputFile, find_files, suffix_of
from .readers.tables import is_json, table_rows
from .report import SplitReport

ENDINGS = (".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".tab", ".txt")
NOT_IN_CONTEXT = "the answer is not in the context"

# What headers and keys usually say, the likeliest first.
QUESTION = ("question", "query", "질문")
CONTEXT = ("context", "passage", "paragraph", "document", "text", "본문", "지문")
ANSWER = ("answers", "answer", "answer_text", "정답", "답")
START = ("answer_start", "start", "start_position")
ROLES = {"question": QUESTION, "context": CONTEXT, "answer": ANSWER, "start": START}


class AnswerSpan(NamedTuple):
    """An answer: its text, and where it begins in the context."""

    start: int
    text: str

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class QuestionExample(TextExample):
    """A question, the context, and the answers in it; without answers the context does not answer it.

    `line` counts lines in tables and JSON lines, questions in a SQuAD file.
    """

    id: str
    question: str
    context: str
    answers: tuple[AnswerSpan, ...]
    file: str
    line: int

    @property
    def texts(self) -> tuple[str, str]:
        return self.question, self.context

    @property
    def key(self) -> tuple[str, ...]:
        """The context: several questions often share one, and all go to the same side of the split."""
        return (self.context,)


def question_files(paths: Iterable[str | Path], report: SplitReport | None = None) -> list[Path]:
    """Every file to read for these paths; in a folder, those with a known ending, packed or not."""
    return find_files(paths, ENDINGS, report, "file of questions")


def read_questions(
    paths: Iterable[str | Path], *, columns: Sequence[str] | None = None, report: SplitReport | None = None
) -> Iterator[QuestionExample]:
    """The questions of files and folders, streamed.

    Args:
        paths: SQuAD or KorQuAD JSON, JSON lines, or tables with a header.
        columns: The names of the question's, the context's, the answer's and, if there is one, the answer start's
            column, where the header does not name them as usual.
        report: Is told which files are read, and what is left out and why.
    """
    report = SplitReport() if report is None else report
    if columns is not None and len(columns) not in (3, 4):
        raise ConfigError(
            f"--columns {','.join(columns)}: name the question's, the context's and the answer's column, and the "
            "answer start's where there is one, or their numbers: question,context,answer,answer_start or 1,2,3"
        )
    for path in question_files(paths, report):
        yield from _read_file(InputFile(path, report), columns)


def _read_file(file: InputFile, columns: Sequence[str] | None) -> Iterator[QuestionExample]:
    head, ending = file.head(), suffix_of(file.path)
    if not head.strip():
        raise file.error("the file is empty")
    if b'"paragraphs"' in head or b'"qas"' in head or (ending == ".json" and not ARRAY.match(head)):
        file.begin("SQuAD JSON")
        return _of_squad(file)
    if is_json(head) or ending in (".jsonl", ".ndjson"):
        file.begin("JSON lines")
        return _of_rows(file, file.json_rows(), columns)
    if rows := table_rows(file, head):
        return _of_rows(file, _named_cells(file, rows, columns), columns)
    raise file.error(f"not a file of questions; the endings read are {', '.join(ENDINGS)}")


# SQuAD: {"data": [{"paragraphs": [{"context", "qas": [{"id", "question", "answers": [{"text", "answer_start"}]}]}]}]}


def _of_squad(file: InputFile) -> Iterator[QuestionExample]:
    """Read both layouts: KorQuAD 2 has the context and its questions directly under "data"."""
    number = 0
    for passage in _passages(file):
        context = passage.get("context")
        if not isinstance(context, str) or not isinstance(passage.get("qas"), list):
            raise file.error('a passage needs a text under "context" and a list under "qas"', number + 1)
        for entry in passage["qas"]:
            number += 1
            question = entry.get("question") if isinstance(entry, dict) else None
            if not isinstance(question, str):
                raise file.error('an entry of "qas" needs a text under "question"', number)
            answers = [] if entry.get("is_impossible") else entry.get("answers", entry.get("answer"))
            yield from _example(file, number, str(entry.get("id", number)), question, context, answers, None)


def _passages(file: InputFile) -> Iterator[dict[str, Any]]:
    document = file.whole_json()
    articles = document.get("data") if isinstance(document, dict) else None
    if not isinstance(articles, list):
        raise file.error('a SQuAD file has a list under "data"; or write one question a line (.jsonl)')
    for article in articles:
        passages = article.get("paragraphs", [article]) if isinstance(article, dict) else [None]
        for passage in passages if isinstance(passages, list) else [None]:
            if not isinstance(passage, dict):
                raise file.error('an entry of "data" is an object with a list of objects under "paragraphs"')
            yield passage


# Tables and JSON lines: a question a row


def _named_cells(
    file: InputFile, rows: Iterator[tuple[int, list[str]]], columns: Sequence[str] | None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield cells by the names in the header; where columns have numbers, the first row may be none."""
    first = next(rows, (0, []))
    header = [cell.strip() for cell in first[1]]
    if are_numbers(columns) and not any(cell.lower() in names for cell in header for names in ROLES.values()):
        header, rows = list(map(str, range(1, len(header) + 1))), chain([first], rows)
    for number, cells in rows:
        if len(cells) != len(header):
            file.drop("too few columns" if len(cells) < len(header) else "too many columns", number)
        else:
            yield number, dict(zip(header, cells, strict=True))


def _of_rows(
    file: InputFile, rows: Iterable[tuple[int, dict[str, Any]]], columns: Sequence[str] | None
) -> Iterator[QuestionExample]:
    names: dict[str, str | None] | None = None
    for number, row in rows:
        names = _names(file, number, list(row), columns) if names is None else names
        cells = {role: None if name is None else row.get(name) for role, name in names.items()}
        question, context = cells["question"], cells["context"]
        if not isinstance(question, str) or not isinstance(context, str):
            raise file.error(f"a text was expected under {names['question']!r} and {names['context']!r}", number)
        yield from _example(
            file, number, str(row.get("id", number)), question, context, cells["answer"], cells["start"]
        )


def _names(file: InputFile, number: int, keys: Sequence[str], columns: Sequence[str] | None) -> dict[str, str | None]:
    """Return the key of each role; only the answer's start may have none."""
    if columns is not None and are_numbers(columns):
        columns = [keys[int(number) - 1] if int(number) <= len(keys) else number for number in columns]
    if columns is not None:
        names: dict[str, str | None] = dict(zip(ROLES, [*columns, None], strict=False))
    else:
        lower = {key.strip().lower(): key for key in reversed(keys)}
        names = {role: next((lower[name] for name in names if name in lower), None) for role, names in ROLES.items()}
    absent = [role for role in ("question", "context", "answer") if names[role] not in keys]
    if absent:
        raise file.error(
            f"no column for the {' and the '.join(absent)}; there are {', '.join(map(repr, keys[:12])) or 'none'}. "
            "Give their names or numbers, in this order: --columns question,context,answer or 1,2,3 (and the answer "
            "start's, where there is one)",
            number,
        )
    return names


def _example(
    file: InputFile, number: int, name: str, question: str, context: str, answers: Any, start: Any
) -> Iterator[QuestionExample]:
    if not question.strip() or not context.strip():
        file.drop("empty question" if context.strip() else "empty context", number)
        return
    wanted = list(_answers(file, number, answers, start))
    spans = [span for text, hint in wanted if (span := locate(context, text, hint)) is not None]
    if wanted and not spans:
        file.drop(NOT_IN_CONTEXT, number)
        return
    file.check_unicode(number, question, context)
    pair = file.pair(question, context, number)
    yield QuestionExample(name, question, context, tuple(dict.fromkeys(spans)), pair.file, pair.line)


def _answers(file: InputFile, number: int, answers: Any, start: Any) -> Iterator[tuple[str, int | None]]:
    """Yield the texts and the given starts: of a list of objects, an object of lists (datasets), or one text."""
    if isinstance(answers, Mapping):
        texts, starts = answers.get("text"), answers.get("answer_start")
        texts, starts = ([texts], [starts]) if isinstance(texts, str) else (texts, starts)
        if not isinstance(texts, list) or not isinstance(starts, list | None):
            raise file.error('answers need texts under "text" and numbers under "answer_start"', number)
        answers = [{"text": text, "answer_start": place} for text, place in zip(texts, starts or [], strict=False)]
        answers = answers or [{"text": text} for text in texts]
    elif isinstance(answers, str | None):
        answers = [{"text": answers, "answer_start": start}] if answers and answers.strip() else []
    if not isinstance(answers, list):
        raise file.error(f"answers are a text, a list or an object, not {type(answers).__name__}", number)
    for answer in answers:
        answer = {"text": answer} if isinstance(answer, str) else answer
        text = answer.get("text") if isinstance(answer, Mapping) else None
        if not isinstance(text, str):
            raise file.error('an answer is a text, or an object with a text under "text"', number)
        if text.strip():
            yield text, _whole(file, number, answer.get("answer_start"))


def _whole(file: InputFile, number: int, value: Any) -> int | None:
    if value is None or value == "":
        return None
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):  # the last of inf, which JSON of Python may hold
        raise file.error(f"an answer's start is a number of characters, not {value!r}", number) from None


def locate(context: str, text: str, hint: int | None = None) -> AnswerSpan | None:
    """Return the span of an answer's text in the context, nearest to the hint or the first; None if it is absent."""
    wanted = text.strip()
    near = None if hint is None else hint + len(text) - len(text.lstrip())
    if near is not None and near >= 0 and context.startswith(wanted, near):
        return AnswerSpan(near, wanted)
    places, place = [], -1
    while (place := context.find(wanted, place + 1)) >= 0:
        places.append(place)
    if not places:
        return None
    return AnswerSpan(min(places, key=lambda start: abs(start - (near or 0))), wanted)
