"""docs/trust.md names only tests that exist, in both languages, and is what its script writes."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parent
DOCS = TESTS.parent / "docs"


def build_trust() -> Any:
    spec = spec_from_file_location("build_trust", DOCS / "build_trust.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TRUST = build_trust()


def test_every_promise_names_tests_that_exist() -> None:
    assert TRUST.missing(TESTS) == []
    assert all(promise["tests"] for part in TRUST.CONTENT["parts"] for promise in part["promises"])


def test_a_test_that_does_not_exist_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "backends").mkdir()
    (tmp_path / "backends" / "test_native.py").write_text("def test_heads_of_any_width_and_more(): ...\n")
    assert TRUST.missing(tmp_path) == TRUST.named_tests()


def test_the_pages_are_up_to_date() -> None:
    for language, path in TRUST.PAGES.items():
        assert path.read_text(encoding="utf-8") == TRUST.page(language), "run `make trust` and commit the result"
