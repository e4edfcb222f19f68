"""Words with a tag each, from CoNLL columns, CoNLL-U and JSON lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from heedful.data.tagged import join_tokens, read_tagged
from heedful.errors import ConfigError, DataError

CONLL_2003 = """-DOCSTART- -X- -X- O

EU NNP B-NP B-ORG
rejects VBZ B-VP O
German JJ B-NP B-MISC

Peter NNP B-NP B-PER
"""
CONLL_U = """# sent_id = 1
# text = vámonos # ya
1-2\tvámonos\t_\t_\t_\t_\t_\t_\t_\t_
1\tvamos\tir\tVERB\t_\t_\t0\troot\t_\t_
2\tnos\tnosotros\tPRON\t_\t_\t1\tobj\t_\t_
3\t#\t#\tSYM\t_\t_\t1\tdep\t_\t_
"""
KLUE = "## klue-ner-v1_dev_00000\t세종은 왕\n세\tB-PS\n종\tI-PS\n은\tO\n \tO\n왕\tO\n"


def written(folder: Path, text: str, name: str = "a.conll") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_conll_2003(tmp_path: Path) -> None:
    first, second = read_tagged([written(tmp_path, CONLL_2003)])
    assert first.text == "EU rejects German"
    assert first.tokens == ["EU", "rejects", "German"]
    assert first.tags == ("B-ORG", "O", "B-MISC")
    assert (second.tokens, second.tags, second.line) == (["Peter"], ("B-PER",), 7)


def test_columns_say_which_tag_is_meant(tmp_path: Path) -> None:
    first, _ = read_tagged([written(tmp_path, CONLL_2003)], columns=["word", "tag", "-", "-"])
    assert first.tags == ("NNP", "VBZ", "JJ")


def test_conll_u_has_no_multiword_tokens(tmp_path: Path) -> None:
    (sentence,) = read_tagged([written(tmp_path, CONLL_U)])
    assert (sentence.tokens, sentence.tags) == (["vamos", "nos", "#"], ("VERB", "PRON", "SYM"))


def test_characters_with_spaces_among_them_are_one_text(tmp_path: Path) -> None:
    (sentence,) = read_tagged([written(tmp_path, KLUE, "klue.tsv")])
    assert sentence.text == "세종은 왕"
    assert sentence.tokens == ["세", "종", "은", " ", "왕"]
    assert sentence.tags[:2] == ("B-PS", "I-PS")


def test_json_lines(tmp_path: Path) -> None:
    (sentence,) = read_tagged([written(tmp_path, '{"tokens": ["a", "b"], "ner_tags": ["O", "B-X"]}\n', "a.jsonl")])
    assert (sentence.text, sentence.tags) == ("a b", ("O", "B-X"))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.conll", "alone\n", "1 columns where 2 were expected"),
        ("a.conll", "a O\nb\n", ":2: 1 columns"),
        ("a.jsonl", '{"tokens": ["a"], "tags": [3]}\n', "by their names"),
        ("a.jsonl", '{"tokens": ["a"], "tags": []}\n', "1 words and 0 tags"),
        ("a.jsonl", '{"x": 1}\n', "--columns tokens,tags"),
        ("a.conll", "", "empty"),
    ],
)
def test_mistakes_are_named_with_their_place(tmp_path: Path, name: str, text: str, message: str) -> None:
    path = written(tmp_path, text, name)
    with pytest.raises(DataError, match=message) as caught:
        list(read_tagged([path]))
    assert str(caught.value).startswith(path)


def test_columns_need_a_word_and_a_tag(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="word,-,-,tag"):
        list(read_tagged([written(tmp_path, CONLL_2003)], columns=["word", "-"]))


def test_words_are_laid_out_with_spaces() -> None:
    assert join_tokens(["New", "York"]) == ("New York", ((0, 3), (4, 8)))
