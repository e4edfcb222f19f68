"""Tiny models of transformers that look at images, with odd sizes. Their weights are made random in published_pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

IMAGES: dict[str, Callable[[], Any]] = {}
