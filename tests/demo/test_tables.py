"""The tables of the grammar: what a person gets wrong in them is named with its file and line."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

import heedful.demo
from heedful.demo import semantics, tables
from heedful.demo.lexicon import Level, Lexicon, lexicon
from heedful.demo.tables import parse_rows, read_table, read_yaml
from heedful.errors import DataError

PACKAGE = Path(heedful.demo.__file__).parent


def test_rows_are_read_with_comments_and_without_empty_cells_at_the_end() -> None:
    rows = parse_rows("x.tsv", "# what it is\nword\tmarks\n책\ta, b\n\n물\n", ("word", "marks"))
    assert [(row.place, row["word"], row.listed("marks")) for row in rows] == [
        ("x.tsv:3", "책", ["a", "b"]),
        ("x.tsv:5", "물", []),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# only a comment\n", "x.tsv has no rows"),
        ("word\tmark\n책\ta\n", "x.tsv:1: the columns are word, marks, not word, mark"),
        ("word\tmarks\n책\ta\tb\n", "x.tsv:2: a row has 2 cells, the first not empty; this has 3"),
        ("word\tmarks\n\ta\n", "x.tsv:2: a row has 2 cells"),
    ],
)
def test_a_table_of_another_shape_is_refused(text: str, message: str) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        parse_rows("x.tsv", text, ("word", "marks"))


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("nouns.tsv", "사과\tapple\tdemo", "사과\tapple\tdmeo", r"nouns\.tsv:\d+: unknown level 'dmeo'"),
        ("nouns.tsv", "thing\tmass", "thing\tmas", r"nouns\.tsv:\d+: unknown kind 'mas'"),
        ("predicates.tsv", "food, meal", "fod, meal", r"predicates\.tsv:\d+: no table of words has fod"),
        ("predicates.tsv", "verb\tㄷ", "verb\tx", r"predicates\.tsv:\d+: unknown conjugation 'x'"),
        ("adverbs.tsv", "\thow", "\thwo", r"adverbs\.tsv:\d+: unknown slot 'hwo'"),
        ("noun_classes.yaml", "meal: 아침", "meal: 아칭", r"noun_classes\.yaml: meal: no table of words has 아칭"),
    ],
)  # fmt: skip
def test_a_mistake_in_the_lexicon_is_named_with_its_place(
    name: str, old: str, new: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def changed(table: str, read: Callable[[str], str] = read_table) -> str:
        return read(table).replace(old, new, 1) if table == name else read(table)

    assert old in read_table(name)
    monkeypatch.setattr(tables, "read_table", changed)
    read_yaml.cache_clear()
    try:
        with pytest.raises(DataError, match=message):
            Lexicon("full")
    finally:
        read_yaml.cache_clear()


@pytest.mark.parametrize("level", ["demo", "full"])
def test_every_predicate_with_selectional_restrictions_has_nouns_left(level: Level) -> None:
    rows = {row["lemma"] + row["english"]: row for row in tables.read_rows("predicates.tsv", *COLUMNS)}
    for predicate in lexicon(level).predicates:
        row = rows[predicate.lemma + predicate.english]
        assert bool(predicate.objects) == bool(row["objects"]), predicate.lemma
        assert bool(predicate.subjects) == bool(row["subjects"]), predicate.lemma


COLUMNS = (
    "lemma", "english", "level", "group", "pos", "conjugation", "honorific", "objects", "subjects", "places", "adverbs",
    "marks",
)  # fmt: skip


def test_code_and_semantics_name_the_same_lists() -> None:
    code = "".join(path.read_text(encoding="utf-8") for path in PACKAGE.glob("*.py"))
    content, in_rules = read_yaml("semantics.yaml"), set(re.findall(r"\$([\w-]+)", read_table("restrictions.yaml")))
    for section in ("verbs", "adjectives", "nouns"):
        in_code = set(re.findall(rf'\b{section.upper()}\["(\w+)"\]', code))
        assert in_code | (in_rules & {*content[section]}) == set(content[section])
    in_code = set(re.findall(r'word_sets\("(\w+)"\)', code)) - {"verbs", "adjectives", "nouns"}
    assert in_code | (in_rules & {*content["tables"]}) == set(content["tables"])


def test_every_rule_can_be_read() -> None:
    for name, rules in read_yaml("restrictions.yaml").items():
        assert len(semantics._all_rules(name)) == len(rules) > 0


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("{subject: no}", "{sujbect: no}", "rule 1 of subject: unknown fact 'sujbect'"),
        (
            "$living_quarters",
            "$living_quarter",
            "rule 4 of subject: no list, table or class of nouns is named",
        ),
        ("$pets", "$minor", "rule 11 of subject: no list, table or class of nouns is named minor"),  # those are verbs
        ("only_if: {}", "onlyif: {}", "rule 1 of subject must have `if` and perhaps `only_if`, not"),
    ],
)
def test_a_mistake_in_a_rule_is_named(old: str, new: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = read_yaml("restrictions.yaml")
    text = read_table("restrictions.yaml").replace(old, new, 1)
    assert yaml.safe_load(text) != rules
    monkeypatch.setattr(
        semantics, "read_yaml", lambda name: yaml.safe_load(text) if "rest" in name else read_yaml(name)
    )
    semantics._all_rules.cache_clear()
    try:
        with pytest.raises(DataError, match=message):
            semantics._all_rules("subject")
    finally:
        semantics._all_rules.cache_clear()


def test_words_of_the_semantics_are_in_the_lexicon() -> None:
    words, content = lexicon("full"), read_yaml("semantics.yaml")
    english = {p.english for p in words.predicates} | {"need", "have", "become", "be", "know", "give"}
    for name, verbs in content["verbs"].items():
        assert set(tables.split_list(verbs)) <= english, name
    qualities = {p.quality for p in words.adjectives}
    for name, adjectives in content["adjectives"].items():
        assert set(tables.split_list(adjectives)) <= qualities, name
    for name, nouns in content["nouns"].items():
        assert set(tables.split_list(nouns)) <= {*words.lemmas}, name
