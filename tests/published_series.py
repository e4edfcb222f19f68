"""Tiny models of transformers that forecast series, with odd sizes. published_pairs makes their weights random."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

SERIES: dict[str, Callable[[], Any]] = {}
