"""The demo in small: every part of it runs, in both directions, and what it says is what it measured."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import heedful
from heedful.config import read_mapping
from heedful.demo import PROBES, Grammar
from heedful.demo.experiment import (
    FIRST_CONTACT_SETS,
    HANDWRITTEN_SET,
    SETS,
    Direction,
    DirectionAdapter,
    recipe,
    run_demo,
)
from heedful.lens.page.rendering import catalog


@pytest.mark.parametrize("direction", ["ko-en", "en-ko"])
def test_the_demo_leaves_a_model_scores_and_a_page(direction: Direction, tmp_path: Path) -> None:
    config = recipe(direction, model={"d_model": 16, "d_ff": 16, "n_heads": 2}, steps=2, validate_every=0)
    found = run_demo(tmp_path / "demo", config, n_train=300, n_test=6)
    assert [result.name for result in found.sets][:6] == list(SETS)
    assert len(found.sets[-1].evaluation.samples) >= 100
    assert (found.sets[0].lookup is None) == (direction == "en-ko")
    metrics = read_mapping(tmp_path / "demo" / "metrics.json")
    assert set(metrics["sets"]) == {result.title for result in found.sets}
    assert sum(total for _, total in found.constructions.values()) >= 30
    page = found.report.read_text(encoding="utf-8")
    for result in found.sets:
        assert result.title in page
    assert found.alignment is not None
    assert heedful.load(tmp_path / "demo", "translation").predict(["안녕"]) == found.translator.predict(["안녕"])


def test_the_course_level_scores_what_people_type_first_and_names_its_words(tmp_path: Path) -> None:
    small = {"d_model": 16, "d_ff": 16, "n_heads": 2, "n_encoder_layers": 1, "n_decoder_layers": 1}
    config = recipe("en-ko", model=small, level="course", steps=2, validate_every=0)
    result = run_demo(tmp_path / "demo", config, level="course", n_train=300, n_test=6)
    names = [part.name for part in result.sets]
    assert names == [*SETS, HANDWRITTEN_SET, *FIRST_CONTACT_SETS.values()]
    rows = DirectionAdapter("en-ko").first_contact("grammar")
    assert [sample.source for sample in result.sets[-1].evaluation.samples] == list(rows)
    assert heedful.load(tmp_path / "demo", "translation").settings.lexicon == "course"
    training = (tmp_path / "demo" / "corpus" / "train.tsv").read_text(encoding="utf-8")
    assert training.count("\nThank you.\t감사합니다.\n") >= 8


def test_a_direction_turns_the_links_round_and_makes_room_for_the_tag() -> None:
    for example in Grammar("demo").sample(200, split="valid"):
        forth, back = DirectionAdapter("ko-en").gold(example).sure, DirectionAdapter("en-ko").gold(example).sure
        korean, tagged = example.korean.split(), example.tagged_english.split()
        words = {(korean[i], example.english.split()[j]) for i, j in forth}
        assert {(korean[j], tagged[i]) for i, j in back} == words


def test_a_korean_page_has_korean_names_for_sets_and_constructions() -> None:
    sampled = [
        example.constructions for level in ("demo", "course") for example in Grammar(level).sample(300, split="train")
    ]
    titles = [f"{name} {meaning}" for name, meaning in SETS.items()]
    names = {
        *titles,
        HANDWRITTEN_SET,
        *FIRST_CONTACT_SETS.values(),
        *(name for found in (*sampled, *PROBES.values()) for name in found),
    }
    english, korean = (catalog(language)["names"] for language in ("en", "ko"))
    keys = {name: name.lower().replace(" ", "_") for name in names}  # as the page looks them up
    assert [name for name, key in keys.items() if not re.search("[가-힣]", korean.get(key, ""))] == []
    assert {english[key] for key in keys.values()} == names
