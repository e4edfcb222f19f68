"""The models of a server: which they are, and by what names."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from heedful.errors import ConfigError, HeedfulError
from heedful.serving.models import Models
from heedful.serving.settings import Settings


def test_models_go_by_their_folders_names_or_by_others_in_the_order_given(bundles: Path) -> None:
    before = int(time.time())
    models = Models.load([f"Korean.1={bundles / 'en-ko'}", str(bundles / "writer"), f"{bundles}/feelings/"], Settings())
    try:
        assert list(models) == ["Korean.1", "writer", "feelings"]
        assert [one.task for one in models.values()] == ["translation", "language-model", "classification"]
        assert [one.name for one in models.of_task("classification", "translation")] == ["Korean.1", "feelings"]
        assert all(before <= one.created <= time.time() for one in models.values())
        assert str(bundles / "en-ko") not in models
        threads = [thread for one in models.values() for thread in one.worker._threads]
        assert all(thread.is_alive() for thread in threads)
    finally:
        models.close()
    assert not any(thread.is_alive() for thread in threads)


def test_an_invalid_model_name_is_refused_with_the_remedy(bundles: Path, tmp_path: Path) -> None:
    one = str(bundles / "en-ko")
    (tmp_path / "en-ko").symlink_to(one)
    cases: list[tuple[list[str], str]] = [
        ([], "no model to serve"),
        ([one, str(tmp_path / "en-ko" / ".." / "en-ko")], "two models have the name 'en-ko'.* NAME="),
        ([f"a={one}", f"a={one}"], "two models have the name 'a'"),
        ([f"a b={one}"], "'a b' is not a valid model name.* NAME="),
        ([f"{'a' * 65}={one}"], "is not a valid model name"),
        ([f"={one}"], "'' is not a valid model name"),
    ]
    for given, said in cases:
        with pytest.raises(ConfigError, match=said):
            Models.load(given, Settings())
    with pytest.raises(HeedfulError, match="nowhere"):
        Models.load([one, str(tmp_path / "nowhere")], Settings())
