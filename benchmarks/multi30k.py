"""Multi30k, English to German: train with a plain recipe and report BLEU on test_2016.

    python benchmarks/multi30k.py --data multi30k

The folder holds train, val and test_2016_flickr, each .en and .de, plain or .gz. Meant for a GPU; on two CPU cores
give a small --set training.steps=300 to see that it works.
"""

from __future__ import annotations

from _translation import arguments, run
from heedful.tasks.run import Files

RECIPE = {
    "source": "en",
    "target": "de",
    "tokenizer": {"vocab_size": 10_000, "joint": True},
    "model": {"preset": "small", "dropout": 0.4},
    "data": {"max_tokens": 128},
    "training": {
        "steps": 2500,
        "batch_tokens": 12_000,
        "learning_rate": 3e-3,
        "schedule": "cosine",
        "warmup_steps": 400,
        "ema_decay": 0.999,
        "validate_every": 500,
    },
    "generation": {"beam": 5},
}


def main() -> None:
    """Train, translate test_2016 once, report."""
    options = arguments(__doc__ or "", "multi30k")
    packed = ".gz" if (options.data / "train.en.gz").exists() else ""

    def both(name: str) -> tuple[str, str]:
        return str(options.data / f"{name}.en{packed}"), str(options.data / f"{name}.de{packed}")

    run("multi30k", RECIPE, Files(both("train"), both("val")), Files(both("test_2016_flickr")), options)


if __name__ == "__main__":
    main()
