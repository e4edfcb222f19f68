"""What the translation benchmarks share: train with one call, score a test set, print a table, keep it as JSON."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import torch

from heedful.config import assign
from heedful.errors import HeedfulError
from heedful.tasks.run import Files
from heedful.tasks.scoring import corpus_scores
from heedful.tasks.translation.data import read_set
from heedful.tasks.translation.task import TranslationConfig, train
from heedful.training import Event, Trained, Validated

RESULTS = Path(__file__).parent / "results"


def arguments(description: str, folder: str) -> argparse.Namespace:
    """The options that every translation benchmark has."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help=f"the folder {folder}")
    parser.add_argument("--out", type=Path, default=Path("runs") / folder, help="the run's folder")
    parser.add_argument("--preset", help="another size or family: tiny, small, recurrent, recurrent-plain")
    parser.add_argument("--set", action="append", default=[], dest="settings", help="a setting: training.steps=1000")
    parser.add_argument("--result", type=Path, help="where the JSON goes")
    return parser.parse_args()


def run(name: str, recipe: dict[str, Any], files: Files, test: Files, options: argparse.Namespace) -> None:
    """Train, translate the test set once, and say how good it is."""
    for path in (*files.train, *files.valid, *test.train):
        if not Path(path).exists():
            sys.exit(f"{path} is missing; --data names the folder that holds it")
    if options.preset:
        recipe["model"] = {"preset": options.preset}
    for setting in options.settings:
        assign(recipe, setting)
    try:
        result = _measure(name, TranslationConfig.from_dict(recipe), files, test, options.out)
    except HeedfulError as error:
        sys.exit(f"error: {error}")
    target: Path = options.result or RESULTS / f"{name}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(result, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    print(f"wrote {target}")


def _measure(name: str, config: TranslationConfig, files: Files, test: Files, out: Path) -> dict[str, Any]:
    began = time.perf_counter()
    translator = train(config, files, out, overwrite=True, watch=lambda job: [_line])
    trained = time.perf_counter() - began
    pairs = read_set(test, config.source, config.target)
    began = time.perf_counter()
    outputs = translator.predict([pair.source for pair in pairs])
    translated = time.perf_counter() - began
    references = [pair.target for pair in pairs]
    scores = corpus_scores(outputs, references, config.target, bootstrap=1000)
    lower = corpus_scores([text.lower() for text in outputs], [text.lower() for text in references], config.target)
    on_gpu = next(translator.module.parameters()).is_cuda
    device = torch.cuda.get_device_name() if on_gpu else "CPU"
    print(
        f"\n{name}: {config.source} → {config.target}, {len(pairs)} test pairs, beam {config.generation.beam}, {device}"
    )
    for score in scores.values():
        print(f"  {score}   {score.signature}")
    print(f"  lower-cased BLEU {lower['bleu'].value:.2f}")
    print(f"  from the command to the bundle {trained:.0f} s; the test set translated in {translated:.1f} s")
    return {
        "benchmark": name,
        "config": config.to_dict(),
        "device": device,
        "torch": torch.__version__,
        "test_pairs": len(pairs),
        "scores": {key: score.to_dict() for key, score in scores.items()},
        "lower_cased_bleu": lower["bleu"].value,
        "seconds_to_bundle": round(trained, 1),
        "seconds_to_translate": round(translated, 2),
        "samples": [[pair.source, pair.target, text] for pair, text in list(zip(pairs, outputs, strict=True))[:5]],
    }


def _line(event: Event) -> None:
    match event:
        case Trained() if event.step % 200 == 0:
            print(
                f"step {event.step}/{event.total_steps}  loss {event.loss:.3f}  "
                f"{event.items_per_second:,.0f} tokens/s  {event.seconds:.0f} s",
                flush=True,
            )
        case Validated():
            scores = "  ".join(f"{key} {value:.3f}" for key, value in event.scores.items())
            print(f"step {event.step}  {scores}", flush=True)
