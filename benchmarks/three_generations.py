"""Three generations of translators on the same sentences and the same number of updates.

python benchmarks/three_generations.py                  prints the tables, and keeps the figures as JSON
python benchmarks/three_generations.py --docs           rewrites docs/recurrent-versus-transformer.md and its pictures
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from pathlib import Path
from typing import Any, Literal

import torch

from _measure import machine, machine_in_words, write, write_json
from _three_generations_page import PAGE, RESULT, page, tables, write_pictures
from heedful.demo import Grammar
from heedful.demo.experiment import DemoResult, recipe, run_demo
from heedful.tasks.translation.inspection import look
from heedful.training import Event, Trained

Family = Literal["original", "recurrent"]
MODELS: dict[str, tuple[Family, dict[str, Any]]] = {
    "GRU, one vector": ("recurrent", {"attention": "none"}),
    "GRU, additive attention": ("recurrent", {"attention": "additive"}),
    "Transformer": ("original", {}),
}
BEFORE_VALIDATION = 150  # at this step memory is read: what was needed so far, training needed


def sentence() -> str:
    """The longest of the new sentences: what does one vector keep of it?"""
    examples = Grammar("demo", seed=0).sample(500, split="T1")
    return max((example.korean for example in examples), key=lambda text: (len(text.split()), len(text)))


def main() -> None:
    """Train all three, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1600, help="updates of each model")
    parser.add_argument("--runs", type=Path, default=Path("runs") / "three-generations", help="where the models go")
    parser.add_argument("--from", dest="result", type=Path, help="no training: the page from figures kept before")
    parser.add_argument("--out", type=Path, default=RESULT, help="where the figures go")
    parser.add_argument("--docs", action="store_true", help="write the page")
    options = parser.parse_args()
    result = _kept(options.result) if options.result else _measured(options.steps, options.runs)
    for text in tables(result).values():
        print(f"\n{text}")
    write_json(options.out, result)
    if options.docs:
        write_pictures(result)
        write(PAGE, page(result))


def _kept(path: Path) -> dict[str, Any]:
    kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return kept


def _measured(steps: int, runs: Path) -> dict[str, Any]:
    rows = {name: _run(name, family, model, steps, runs) for name, (family, model) in MODELS.items()}
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else machine_in_words(machine())
    return {"steps": steps, "device": device, "torch": torch.__version__, "models": rows}


def _run(name: str, family: Family, model: dict[str, Any], steps: int, runs: Path) -> dict[str, Any]:
    config = recipe("ko-en", family, model, steps=steps)
    speeds: list[float] = []
    memory: list[float] = []
    source = sentence()

    def watching(event: Event) -> None:
        if isinstance(event, Trained):
            speeds.append(event.items_per_second)
            if event.step <= BEFORE_VALIDATION:
                memory.append(_peak_memory())
            print(f"\r{name}: step {event.step}, loss {event.loss:.3f}   ", end="", file=sys.stderr, flush=True)

    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    began = time.perf_counter()
    done = run_demo(
        runs / name.replace(", ", "-").replace(" ", "-"), config, overwrite=True, watch=lambda _: [watching]
    )
    seconds = time.perf_counter() - began
    print(file=sys.stderr)
    training = json.loads((done.report.parent / "metrics.json").read_text(encoding="utf-8"))["training"]
    return {
        "parameters": sum(parameter.numel() for parameter in done.translator.module.parameters()),
        "training_seconds": training["seconds"],
        "seconds": round(seconds, 1),
        "tokens_per_second": sorted(speeds)[len(speeds) // 2],
        "peak_megabytes": memory[-1],
        "sets": {found.title: _scores(found.evaluation) for found in done.sets},
        "translation": done.translator.predict([source])[0],
        "alignment_error": None if done.alignment is None else done.alignment.error_rate,
        "attention": _attention(done, source),
    }


def _peak_memory() -> float:
    """Of the GPU; or of the whole process so far, in which a later model cannot show less than an earlier one."""
    if torch.cuda.is_available():
        return round(torch.cuda.max_memory_allocated() / 1e6, 1)
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3, 1)


def _scores(evaluation: Any) -> dict[str, Any]:
    return {
        "exact": evaluation.exact,
        **{name: score.value for name, score in evaluation.scores.items()},
        "by_length": [list(group) for group in evaluation.by_length],
    }


def _attention(done: DemoResult, source: str) -> dict[str, Any] | None:
    """The mean over the heads of the last layer, for the sentence and its own translation."""
    if done.alignment is None:
        return None
    output = done.translator.predict([source])[0]
    seen = look(done.translator, source, output)
    last = max(head.layer for head in seen.weights if head.layer is not None)
    heads = [seen.weights[head] for head in seen.weights if head.layer == last and head.head is not None]
    weights = torch.stack(heads).mean(dim=0)
    return {
        "source": seen.source,
        "target": seen.target,
        "weights": [[round(w, 4) for w in row] for row in weights.tolist()],
    }


if __name__ == "__main__":
    main()
