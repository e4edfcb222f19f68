"""The terminal in Korean: every sentence has a translation, and texts of the user are printed as they are."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from heedful.cli import language
from heedful.cli.language import choose, current, translate
from heedful.demo.experiment import HANDWRITTEN_SET, SETS
from heedful.demo.splits import PROBES
from heedful.errors import ConfigError
from heedful.tasks.registry import TRAINED
from shell import QUICK, SIZE, heedful
from terminal_sentences import helps, sentences, source_text

CATALOG: dict[str, dict[str, str]] = json.loads(
    (Path(language.__file__).parent / "locales" / "ko.json").read_text(encoding="utf-8")
)
ENTRIES = {source: target for section in CATALOG.values() for source, target in section.items()}
ENGLISH_SENTENCE = re.compile(r"[a-z']{2,}(?: [a-z']{2,}){3}")  # four words in a row; names of settings stand alone
NOT_SENTENCES = {  # names, or composed of sentences
    *("heedful 7", "Python", "7 (generation.max_new_tokens)", "7, not 7", "7 is 7", "7=7, but 7"),
}
PAIRS = [
    (f"{subject} {thing} {verb}", f"{who} {does} {what}.")
    for subject, who in (("고양이가", "The cat"), ("개가", "The dog"), ("새가", "The bird"), ("소가", "The cow"))
    for thing, what in (("물을", "water"), ("밥을", "rice"), ("책을", "books"), ("차를", "tea"))
    for verb, does in (("봐요.", "sees"), ("사요.", "buys"), ("찾아요.", "finds"))
]


@pytest.fixture(autouse=True)
def _language() -> Iterator[None]:
    """Leave the language of the terminal as other tests expect it."""
    yield
    choose(None)


def test_every_sentence_of_the_commands_and_every_frequent_error_is_translated() -> None:
    printed = sentences("cli", "tasks", "demo", "training", errors=False)
    errors = sentences(
        *("cli", "errors.py", "config.py", "data", "tasks", "training", "families"),
        *("generation/config.py", "serving/server.py", "serving/models.py", "serving/settings.py"),
        errors=True,
    )
    assert len(printed) > 70
    assert len(errors) > 400
    choose("ko")
    missing = {text: place for text, place in {**printed, **errors}.items() if not is_korean(translate(text))}
    assert missing.keys() - NOT_SENTENCES == set(), "add them to cli/locales/ko.json"


def test_names_that_tables_show_are_translated() -> None:
    tasks = [TRAINED[name]() for name in TRAINED]
    names = {
        *(f"{key} {name}" for key, name in SETS.items()),
        HANDWRITTEN_SET,
        *PROBES,
        *(task.example_name for task in tasks),
    }
    choose("ko")
    assert {name for name in names if not is_korean(translate(name))} == set()
    counts = {f"12 {task.example_name}{note}" for task in tasks for note in ("", " (3 of 15 refused)")}
    assert {text for text in counts if re.search("[a-z]", translate(text))} == set()
    rates = {f"12 {task.counted}/s  8 s left" for task in tasks}
    assert {text for text in rates if re.search("[a-z]", translate(text))} == set()


def test_every_help_text_is_translated() -> None:
    choose("en")
    texts = helps()
    assert len(texts) > 150
    choose("ko")
    prose = {text for text in texts if not text.startswith("Example: ")}  # what follows it is a command line
    assert {text for text in prose if not is_korean(translate(text))} == set(), "add them to cli/locales/ko.json"


def is_korean(text: str) -> bool:
    return bool(re.search("[가-힣]", text)) and not ENGLISH_SENTENCE.search(text)


def test_every_entry_of_the_catalog_is_a_sentence_of_the_program() -> None:
    """One that is reworded in the code alone stays English."""
    sources = source_text()

    def is_there(words: str) -> bool:
        """Return whether these words are in a text of the sources, or in two that follow each other."""
        places = [match.start() for match in re.finditer(" ", words)]
        return words in sources or any(words[:place] in sources and words[place + 1 :] in sources for place in places)

    own = [source for name, section in CATALOG.items() if name not in ("system", "usage") for source in section]
    runs = {source: re.findall(r"[\w'= -]+", re.sub(r"{\w+}", "|", source)) for source in own}
    assert {source for source in own if not all(is_there(run.strip()) for run in runs[source])} == set()


def test_both_sides_of_an_entry_have_the_same_placeholders() -> None:
    names = {source: re.findall(r"{(\w+)}", source) for source in ENTRIES}
    assert {source for source, each in names.items() if len(each) > len(set(each))} == set()
    assert {
        source for source, each in names.items() if set(each) != set(re.findall(r"{(\w+)}", ENTRIES[source]))
    } == set()
    assert sum(map(len, CATALOG.values())) == len(ENTRIES)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("there is no such file", "그런 파일이 없습니다"),
        ("error: a: b.tsv:3: it is empty", "오류: a: b.tsv:3: 비어 있습니다"),
        ("warning: dropped, too few columns: 1 (a.tsv:82)", "경고: 제외함, 열이 부족함: 1 (a.tsv:82)"),
        ("the option --a is now --b", "옵션 --a의 이름이 --b(으)로 바뀌었습니다"),
        ("a must be true or false, but 3 (int) was given", "a은(는) true나 false 값이어야 합니다. 지정한 값: 3 (int)"),
        ("나무 is missing", "나무가 없습니다"),
        ("'책' is missing", "'책'이 없습니다"),
        ("layer1 is missing", "layer1이 없습니다"),
        ("layer2 is missing", "layer2가 없습니다"),
        ("the option 나무 is now 길", "옵션 나무의 이름이 길로 바뀌었습니다"),
        ("no columns are named a; change one", "이름이 a인 열이 없습니다. 하나를 바꾸세요"),
        ("it is empty; it is empty", "비어 있습니다; 비어 있습니다"),
        ("The Project Gutenberg edition; of 3 books", "The Project Gutenberg edition; of 3 books"),
        ("twelve s", "twelve s"),
        ("12 s", "12초"),
    ],
)  # fmt: skip
def test_sentences_are_recognized_by_their_patterns(source: str, target: str) -> None:
    choose("ko")
    assert translate(source) == target
    choose("en")
    assert translate(source) == source


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, "en"),
        ({"LANG": "ko_KR.UTF-8"}, "ko"),
        ({"LANG": "ko"}, "ko"),
        ({"LANG": "kok_IN"}, "en"),
        ({"LC_MESSAGES": "ko_KR", "LANG": "en_US"}, "ko"),
        ({"LC_ALL": "C", "LANG": "ko_KR"}, "en"),
        ({"LC_ALL": "", "LANG": "ko_KR"}, "ko"),
        ({"HEEDFUL_LANGUAGE": "en", "LANG": "ko_KR"}, "en"),
        ({"HEEDFUL_LANGUAGE": "ko"}, "ko"),
    ],
)
def test_the_environment_chooses_the_language(
    variables: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HEEDFUL_LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    choose(None)
    assert current() == expected
    choose("ko")  # as --language does
    assert current() == "ko"
    monkeypatch.setenv("HEEDFUL_LANGUAGE", "en")
    choose(None)


def test_a_wrong_language_is_an_error_that_names_the_allowed_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    done = heedful("doctor", "--language", "fr")
    assert (done.code, done.err) == (2, "error: --language: unknown language 'fr'; allowed: en, ko\n")
    with monkeypatch.context() as patch:
        patch.setenv("HEEDFUL_LANGUAGE", "fr")
        with pytest.raises(ConfigError, match="HEEDFUL_LANGUAGE: unknown language 'fr'"):
            choose(None)


@pytest.mark.parametrize(
    "arguments",
    ["--help", "train --help", "train translation --help", "train images --help", "predict --help", "serve --help",
     "look --help", "dmo", "predict", "predict --beam 0 model", "demo --nothing", "predict nowhere text"],
)  # fmt: skip
def test_help_and_errors_are_korean_wherever_the_option_stands(arguments: str) -> None:
    first, last = heedful("--language", "ko", *arguments.split()), heedful(*arguments.split(), "--language=ko")
    assert first == last
    text = re.sub(r"(예|사용법|도움말):.*", "", first.out + first.err)  # followed by a command line
    assert is_korean(text)
    assert "Options" not in text
    assert "…" not in re.sub("(FILE|TEXT|cuda:1, )…", "", text), "a line was cut"
    english = heedful(*arguments.split())
    assert "옵션" not in english.out
    assert "오류" not in english.err


def test_a_run_is_korean_and_its_answers_are_unchanged(tmp_path: Path) -> None:
    data, run = tmp_path / "pairs.tsv", tmp_path / "run"
    rows = [*(f"{source}\t{target}" for source, target in PAIRS), "한 칸"]
    data.write_text("\n".join(rows) + "\n", encoding="utf-8")
    settings = [word for setting in (*SIZE, *QUICK) for word in ("--set", setting)]
    korean = ("--language", "ko")
    languages = ("--source", "ko", "--target", "en")
    command = ("train", "translation", "--out", run)
    train = heedful(*command, "--data", data, *languages, "--model", "original", *settings, *korean)
    evaluation = heedful("evaluate", run, "--data", data, "--samples", 2, *korean)
    report = heedful("report", run, *korean)
    resumed = heedful(*command, "--resume", *korean)
    again = heedful(*command, "--data", data, *languages, *korean)
    wrong = heedful(*command, "--data", data, *languages, "--set", "training.stesp=3", *korean)
    assert [each.code for each in (train, evaluation, report)] == [0, 0, 0], train.err + evaluation.err
    for each in (train, evaluation, report, resumed, again, wrong):
        printed = (each.out + each.err).replace(str(tmp_path), "")
        assert is_korean(re.sub("[A-Z][a-z]+ .*[.]", "", printed)), printed  # without the translations
    for words in (
        "데이터를 읽습니다",
        "제외: 열이 부족함",
        "스텝 8  검증: 손실",
        "8스텝을 모두 마침",
        "써 보기: heedful",
    ):
        assert words in train.out
    assert "완전 일치" in evaluation.out
    assert "'steps'을(를) 찾으셨나요?" in wrong.err
    assert 'lang="ko"' in (run / "report.html").read_text(encoding="utf-8")

    for options in ([], ["--json"], ["--scores", "--n-best", 2, "--beam", 2]):
        arguments = ("predict", run, data, "--max-new-tokens", 2, *options)
        assert heedful(*arguments, *korean).raw == heedful(*arguments).raw
    done = heedful("predict", run, data, "--max-new-tokens", 2, *korean)
    assert re.search(r"경고: 답 49개 중 \d+개가 길이 한도에서 잘렸습니다: 1, 2", done.err), done.err
    assert is_korean(done.err.replace(str(tmp_path), ""))
