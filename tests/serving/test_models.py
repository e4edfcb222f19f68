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
        assert [served.task for served in models.values()] == ["translation", "language-model", "classification"]
        assert all(before <= served.created <= time.time() for served in models.values())
        assert str(bundles / "en-ko") not in models
        threads = [thread for served in models.values() for thread in served.worker._threads]
        assert all(thread.is_alive() for thread in threads)
    finally:
        models.close()
    assert not any(thread.is_alive() for thread in threads)


def test_an_invalid_model_name_is_refused_with_the_remedy(bundles: Path, tmp_path: Path) -> None:
    served = str(bundles / "en-ko")
    (tmp_path / "en-ko").symlink_to(served)
    cases: list[tuple[list[str], str]] = [
        ([], "no model to serve"),
        ([served, str(tmp_path / "en-ko" / ".." / "en-ko")], "two models have the name 'en-ko'.* NAME="),
        ([f"a={served}", f"a={served}"], "two models have the name 'a'"),
        ([f"a b={served}"], "'a b' is not a valid model name.* NAME="),
        ([f"{'a' * 65}={served}"], "is not a valid model name"),
        ([f"={served}"], "'' is not a valid model name"),
    ]
    for arguments, message in cases:
        with pytest.raises(ConfigError, match=message):
            Models.load(arguments, Settings())
    with pytest.raises(HeedfulError, match="nowhere"):
        Models.load([served, str(tmp_path / "nowhere")], Settings())
