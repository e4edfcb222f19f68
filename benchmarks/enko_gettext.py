"""English to Korean on the messages of free software: train on a localiser's memory, report chrF and BLEU on dev.

    python benchmarks/enko_gettext.py --data enko_gettext

The folder holds clean.train.tsv.gz and clean.dev.tsv.gz, English TAB Korean. A part of the training pairs is set apart
for validation; dev is translated once, at the end.
"""

from __future__ import annotations

from _translation import arguments, run
from heedful.tasks.run import Files

RECIPE = {
    "source": "en",
    "target": "ko",
    "tokenizer": {"vocab_size": 16_000, "joint": True},
    "model": {"preset": "small", "dropout": 0.2},
    "data": {"max_tokens": 128},
    "training": {
        "steps": 5000,
        "batch_tokens": 12_000,
        "learning_rate": 2e-3,
        "schedule": "cosine",
        "warmup_steps": 500,
        "ema_decay": 0.999,
        "validate_every": 1000,
    },
    "generation": {"beam": 5},
}


def main() -> None:
    """Train, translate dev once, report."""
    options = arguments(__doc__ or "", "enko_gettext")
    train, dev = (str(options.data / f"clean.{name}.tsv.gz") for name in ("train", "dev"))
    run("enko_gettext", RECIPE, Files((train,)), Files((dev,)), options)


if __name__ == "__main__":
    main()
