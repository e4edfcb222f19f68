"""Write trained translators into src/heedful/models/ in float16, and score them on every first-contact sentence.

Run `make translators`, which trains both and calls this with their folders.
"""

from __future__ import annotations

import sys
from pathlib import Path

import heedful
from heedful.demo.experiment import FIRST_CONTACT_SETS, Direction, DirectionAdapter
from heedful.errors import DataError

MODELS = Path(heedful.__file__).parent / "models"
LARGEST = 4_000_000  # bytes of a model's folder


def ship(run: Path) -> None:
    """Write the bundle of one run in float16; print what is wrong in its translations of first-contact sentences."""
    trained = heedful.load(run, "translation")
    source, target = trained.settings.source, trained.settings.target
    direction: Direction = "ko-en" if (source, target) == ("ko", "en") else "en-ko"
    folder = MODELS / direction
    folder.mkdir(parents=True, exist_ok=True)
    trained.module.half()
    trained.save(folder)
    if (size := sum(path.stat().st_size for path in folder.iterdir())) > LARGEST:
        raise DataError(f"{folder} has {size:,} bytes, more than {LARGEST:,}; train a smaller model")
    shipped, adapter = heedful.load(folder, "translation"), DirectionAdapter(direction)
    for kind, name in FIRST_CONTACT_SETS.items():
        rows = adapter.first_contact(kind)
        answers = dict(zip(rows, shipped.predict(list(rows)), strict=True))
        wrong = [
            f"  {text} -> {answers[text]} (right: {rows[text][0]})" for text in rows if answers[text] not in rows[text]
        ]
        print(f"{direction}, {name}: {len(rows) - len(wrong)} of {len(rows)} right; {size:,} bytes", *wrong, sep="\n")


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        ship(Path(argument))
