"""Tiny models in their folders, once for all tests; a server over all of them, and others on demand."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from running import Lines, Running, start

from every_task import TINY, write_all
from heedful.serving.models import Models
from heedful.serving.settings import Settings


@pytest.fixture(scope="session")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a bundle for each of TINY; do not write into them."""
    folder = tmp_path_factory.mktemp("served")
    write_all(folder)
    return folder


@pytest.fixture(scope="session")
def server(bundles: Path) -> Iterator[Running]:
    """Serves every model; shared by all tests, so leave it as it was."""
    settings = Settings(port=0)
    running = start(Models.load([str(bundles / name) for name in TINY], settings), settings)
    yield running
    running.server.stop()  # that servers end is tested elsewhere; clients of many tests may still hold this one


@pytest.fixture
def serving(bundles: Path) -> Iterator[Callable[..., Running]]:
    """`serving("en-ko", max_concurrency=1)`: another server, of some models and with other limits."""
    started: list[Running] = []

    def start_one(*names: str, **limits: Any) -> Running:
        settings = Settings(port=0, **limits)
        models = Models.load([str(bundles / name) for name in names], settings)
        started.append(start(models, settings))
        return started[-1]

    yield start_one
    for running in started:
        running.stop()


@pytest.fixture
def lines() -> Iterator[Lines]:
    """The log of every server that runs."""
    log, handler = logging.getLogger("heedful.serving"), Lines()
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    yield handler
    log.removeHandler(handler)
    log.setLevel(level)
