"""The translators that are installed with the package: small, named, and right on every first-contact sentence."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import heedful
from heedful.demo import unknown_words
from heedful.demo.experiment import Direction, DirectionAdapter
from heedful.tasks.bundle import BundleError
from heedful.tasks.shipped import SHIPPED, shipped_folder
from heedful.tasks.translation.predictor import Translator

COURSE = {  # of the course's chapters
    "ko-en": {
        "나는 딥러닝을 사랑한다.": "I love deep learning.",
        "나는 딥러닝을 사랑한다": "I love deep learning.",
        "나는 트랜스포머를 공부한다.": "I study the Transformer.",
        "나는 돈을 좋아해.": "I like money.",
        "저는 학생입니다.": "I am a student.",
        "나는 너를 사랑해.": "I love you.",
        "안녕하세요?": "Hello.",
        "안녕하세요": "Hello.",
        "고양이가 쥐를 잡았다.": "The cat caught a mouse.",
        "쥐가 고양이를 잡았다.": "The mouse caught a cat.",
        "선생님이 학생을 기다렸어요.": "The teacher waited for a student.",
        "동물은 너무 피곤해서 길을 건너지 않았다.": "The animal didn't cross the street because it was too tired.",
        "동물은 길이 너무 넓어서 길을 건너지 않았다.": "The animal didn't cross the street because it was too wide.",
    },
    "en-ko": {
        "I am a student": "저는 학생이에요.",
        "I like money": "저는 돈을 좋아해요.",
        "[casual] I like money.": "나는 돈을 좋아해.",
        "I love deep learning": "저는 딥러닝을 사랑해요.",
        "[plain] I love deep learning.": "나는 딥러닝을 사랑한다.",
        "[plain] The cat caught a mouse.": "고양이가 쥐를 잡았다.",
        "Thank you": "감사합니다.",
    },
}


@pytest.fixture(scope="module", params=SHIPPED)
def direction(request: pytest.FixtureRequest) -> Direction:
    chosen: Direction = request.param
    return chosen


@pytest.fixture(scope="module")
def translator(direction: Direction) -> Translator:
    return heedful.translator(direction)


@pytest.mark.parametrize("kind", ["fixed", "grammar"])
def test_every_first_contact_sentence_gets_an_accepted_answer(
    kind: str, direction: Direction, translator: Translator
) -> None:
    rows = DirectionAdapter(direction).first_contact(kind)  # type: ignore[arg-type]
    assert len(rows) > 170
    answers = dict(zip(rows, translator.predict(list(rows)), strict=True))
    assert {text: answer for text, answer in answers.items() if answer not in rows[text]} == {}


def test_the_sentences_of_the_course_are_right(direction: Direction, translator: Translator) -> None:
    expected = COURSE[direction]
    assert dict(zip(expected, translator.predict(list(expected)), strict=True)) == expected


def test_a_shipped_translator_is_small_and_in_half_precision(direction: Direction, translator: Translator) -> None:
    files = {path.name: path.stat().st_size for path in shipped_folder(direction).iterdir()}
    assert files.keys() == {"config.json", "model.safetensors", "tokenizer.json"}
    assert sum(files.values()) < 4_000_000
    dtypes = {weight.dtype for weight in load_file(shipped_folder(direction) / "model.safetensors").values()}
    assert dtypes == {torch.float16}
    assert {parameter.dtype for parameter in translator.module.parameters()} == {torch.float32}


def test_words_outside_the_vocabulary_are_named_from_the_bundle_alone(translator: Translator) -> None:
    assert unknown_words(translator, "저는 우주선을 탔어요.") == ["우주선을"]
    assert unknown_words(translator, "[casual] The dragon is hungry.") == ["dragon"]
    assert unknown_words(translator, "안녕하세요? 저는 딥러닝을 공부한다.") == []


def test_a_name_stands_for_the_shipped_folder_unless_there_is_one(
    direction: Direction, translator: Translator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = "The cat is small." if direction == "en-ko" else "고양이가 작아요."
    assert heedful.load(direction).predict([text]) == translator.predict([text])
    shutil.copytree(shipped_folder(direction), tmp_path / direction)
    (tmp_path / direction / "config.json").unlink()
    with pytest.raises(BundleError, match="holds no trained model"):
        heedful.load(direction)
    assert heedful.translator(direction).settings.lexicon == "course"


def test_another_name_is_refused_with_those_there_are() -> None:
    with pytest.raises(BundleError, match=r"unknown translator 'ko-fr' .*; allowed: en-ko, ko-en"):
        heedful.translator("ko-fr")  # type: ignore[arg-type]
    with pytest.raises(BundleError, match="or ko-en or en-ko"):
        heedful.load("nowhere")
