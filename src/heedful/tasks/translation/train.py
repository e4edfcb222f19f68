"""From files of pairs to a translator in a folder: one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..run import Files
from ..run import train as run
from .config import TranslationConfig
from .task import TranslationTask
from .translator import Translator


def train(
    config: TranslationConfig,
    files: Files,
    out: str | Path,
    *,
    accepted: Mapping[str, Sequence[str]] | None = None,
    **words: Any,
) -> Translator:
    """Train a translator and leave its bundle, its scores, its card and its report in `out`.

    `accepted` lists every right answer to a validation source, where there are more than the file has. The other
    words are those of `heedful.tasks.run.train`: resume, allow_changes, overwrite, on_read, watch.

    >>> config = TranslationConfig(source="ko", target="en")
    >>> train(config, Files(train=("pairs.tsv",)), "runs/ko-en").predict(["나는 책을 읽어요."])
    """
    translator: Translator = run(TranslationTask(accepted), config, files, out, **words)
    return translator
