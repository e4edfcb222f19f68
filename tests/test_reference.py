"""docs/reference/ is what the docstrings say, and they say something about every public name and every setting."""

from __future__ import annotations

import importlib
import inspect
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from heedful.families import FAMILIES
from heedful.families.llama import ScalingConfig
from heedful.tasks.registry import TRAINED
from heedful.training import TrainingConfig

DOCS = Path(__file__).parents[1] / "docs"


def build_reference() -> Any:
    spec = spec_from_file_location("build_reference", DOCS / "build_reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


REFERENCE = build_reference()


def test_the_reference_is_up_to_date() -> None:
    written = {path.name: path.read_text(encoding="utf-8") for path in (DOCS / "reference").glob("*.md")}
    assert written == REFERENCE.pages(), "run `make reference` and commit the result"


@pytest.mark.parametrize("package", REFERENCE.PACKAGES)
def test_every_public_name_is_documented(package: str) -> None:
    module = importlib.import_module(package)
    members = {name: getattr(module, name) for name in REFERENCE.public_names(module)}
    documented = {name: value for name, value in members.items() if inspect.isclass(value) or inspect.isfunction(value)}
    thin = [name for name, value in documented.items() if len((inspect.getdoc(value) or "").split()) <= 5]
    assert thin == []


@pytest.mark.parametrize(
    "config",
    [
        TrainingConfig,
        ScalingConfig,
        *(task.config_class for task in TRAINED.values()),
        *(family.config for family in FAMILIES.values()),
    ],
    ids=lambda config: config.__name__,
)
def test_every_setting_is_documented(config: Any) -> None:
    settings = {name: about for name, _, _, about in REFERENCE.settings_of(config)}
    assert [name for name, about in settings.items() if not about] == []
    assert [about for about in settings.values() if about[0].islower() or "|" in about] == []
    assert [about for about in settings.values() if about.endswith(".") and about.count(". ") == 0] == []
