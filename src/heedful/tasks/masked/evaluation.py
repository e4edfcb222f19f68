"""How well a model guesses the words of texts it has not seen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ...data.corpus import text_files
from ...data.store import TokenStore
from ...data.text_batch import TextLoader
from ...errors import DataError
from ..reader import BATCH_TOKENS
from .config import MaskingConfig
from .filler import Filler
from .job import score, scores_of
from .masking import MaskedLoader, Masking
from .prepare import encoded
from .splitting import texts_of


def evaluate_files(filler: Filler, paths: Sequence[str]) -> dict[str, Any]:
    """Over every line of the files; the gaps are the same every time."""
    tokenizer, limit = filler.tokenizer, filler.module.encoder.positions.limit
    texts = (one for one in texts_of(text_files(paths), "line") if one.text.strip())
    with TemporaryDirectory() as folder:
        try:
            rows = encoded(texts, tokenizer, limit)
            store = TokenStore.write(Path(folder) / "texts", rows, vocab_size=tokenizer.largest + 1)
        except DataError as error:
            raise DataError(f"{', '.join(paths)}: there is no text to evaluate on ({error})") from None
        masked = MaskedLoader(TextLoader(store, BATCH_TOKENS), Masking(MaskingConfig(), tokenizer))
        loss, right, n = score(filler.module, masked)
        said = {name: found.to_dict() for name, found in scores_of(loss, right, n).items()}
        return {"n": len(store), "masked": n, "scores": said}
