"""Generation on a CPU beside the engines people deploy: one model, the same work, in one run, answers compared.

    python benchmarks/generation.py --rounds 5

A base encoder-decoder (6 + 6 layers, d 512, vocabulary 16,000) of random weights answers 64 sentences of 8 to 40
tokens with 24 tokens each: beam 5 and greedy in batches of 32, and greedy one sentence at a time. `--long` measures
instead what a token costs after up to 2,000 others. Engines that are not installed are left out.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import torch

import heedful
from heedful.backends import prepare
from heedful.families import GenerationDefaults, config_of, write_published
from heedful.families.ctranslate2 import Model, Vocabularies, write_folder
from heedful.generation import generate

RESULTS = Path(__file__).parent / "results"
START, END, PAD, VOCABULARY, NEW, BATCH = 1, 2, 0, 16_000, 24, 32
WORK = {"beam 5, batch 32": (5, BATCH), "greedy, batch 32": (1, BATCH), "greedy, one at a time": (1, 1)}
FLOORS = {  # how many times CTranslate2 in the same precision
    "beam 5, batch 32": {"float32": 1.1, "int8": 1.1},
    "greedy, batch 32": {"float32": 1.3, "int8": 1.3},
    "greedy, one at a time": {"float32": 1.5, "int8": 3.0},
}
CONFIG = {
    "family": "marian",
    "vocab_size": VOCABULARY,
    "d_model": 512,
    "n_heads": 8,
    "d_ff": 2048,
    "n_encoder_layers": 6,
    "n_decoder_layers": 6,
    "activation": "relu",
    "max_length": 512,
}
DEFAULTS = GenerationDefaults(start=START, end=(END,), pad=PAD)
Sources = list[list[int]]
Engine = Callable[[Sources, int, int], list[list[int]]]  # sources, beam, batch → answers


def sources(seed: int = 1) -> Sources:
    """64 of 8 to 40 tokens."""
    random = Random(seed)
    return [[random.randrange(3, VOCABULARY) for _ in range(random.randint(8, 40))] for _ in range(64)]


def heedful_engine(module: Any, precision: Any) -> Engine:
    """Ours."""
    prepare(module, precision)

    def run(inputs: Sources, beam: int, batch: int) -> list[list[int]]:
        budget = batch * beam * max(map(len, inputs))
        answers = generate(
            module, inputs, beam=beam, max_new_tokens=NEW, start=START, end=END, suppress_tokens=[END],
            precision=precision, batch_tokens=budget,
        )  # fmt: skip
        return [list(best.tokens) for best, *_ in answers]

    return run


def ctranslate2_engine(folder: Path, precision: str, threads: int) -> Engine:
    """CTranslate2, as it advises: one model, all threads inside it."""
    import ctranslate2

    translator = ctranslate2.Translator(
        str(folder), device="cpu", compute_type=precision, intra_threads=threads, inter_threads=1
    )
    names = [str(token) for token in range(VOCABULARY)]

    def run(inputs: Sources, beam: int, batch: int) -> list[list[int]]:
        answers = translator.translate_batch(
            [[names[token] for token in ids] for ids in inputs], beam_size=beam, max_batch_size=batch,
            min_decoding_length=NEW, max_decoding_length=NEW,
        )  # fmt: skip
        return [[int(token) for token in answer.hypotheses[0]] for answer in answers]

    return run


def transformers_engine(module: Any) -> Engine:
    """Transformers' generate, sorted by length as anyone would."""
    import transformers

    config, _, tensors = write_published(module, config_of(CONFIG), DEFAULTS)
    theirs = transformers.MarianMTModel(transformers.MarianConfig(**config))
    theirs.load_state_dict(tensors, strict=False)
    theirs.tie_weights()
    theirs.eval()

    def run(inputs: Sources, beam: int, batch: int) -> list[list[int]]:
        order = sorted(range(len(inputs)), key=lambda index: -len(inputs[index]))
        answers: dict[int, list[int]] = {}
        for first in range(0, len(order), batch):
            chosen = order[first : first + batch]
            longest = max(len(inputs[index]) for index in chosen)
            ids = torch.tensor([inputs[index] + [PAD] * (longest - len(inputs[index])) for index in chosen])
            real = torch.tensor([[position < len(inputs[index]) for position in range(longest)] for index in chosen])
            with torch.inference_mode():
                found = theirs.generate(
                    input_ids=ids, attention_mask=real.long(), num_beams=beam, do_sample=False, min_new_tokens=NEW,
                    max_new_tokens=NEW, decoder_start_token_id=START, eos_token_id=END, pad_token_id=PAD,
                    bad_words_ids=None, forced_eos_token_id=None, early_stopping="never" if beam > 1 else False,
                )  # fmt: skip
            answers.update(zip(chosen, found[:, 1 : NEW + 1].tolist(), strict=True))
        return [answers[index] for index in range(len(inputs))]

    return run


def engines(module: Any, folder: Path, threads: int) -> dict[str, Engine]:
    """All that are installed."""
    found = {f"heedful {precision}": heedful_engine(module, precision) for precision in ("float32", "int8")}
    if find_spec("ctranslate2"):
        names = tuple(str(token) for token in range(VOCABULARY))
        write_folder(Model(module, Vocabularies(names, names), DEFAULTS), folder)
        for precision in ("float32", "int8"):
            found[f"ctranslate2 {precision}"] = ctranslate2_engine(folder, precision, threads)
    if find_spec("transformers"):
        found["transformers float32"] = transformers_engine(module)
    return found


def measure(found: dict[str, Engine], rounds: int) -> dict[str, dict[str, list[float]]]:
    """Tokens a second, of each kind of work and each engine, round by round."""
    inputs = sources()
    speeds: dict[str, dict[str, list[float]]] = {work: {name: [] for name in found} for work in WORK}
    answers: dict[tuple[str, str], list[list[int]]] = {}
    for turn in range(rounds + 1):  # the first is a rehearsal
        for work, (beam, batch) in WORK.items():
            some = inputs if batch > 1 else inputs[:16]
            for name, engine in found.items():
                began = time.perf_counter()
                got = [engine([ids], beam, 1)[0] for ids in some] if batch == 1 else engine(some, beam, batch)
                seconds = time.perf_counter() - began
                answers[work, name] = got
                if turn:
                    speeds[work][name].append(sum(map(len, got)) / seconds)
    for work in WORK:
        ours = answers[work, "heedful float32"]
        for name in found:
            same = sum(one == other for one, other in zip(answers[work, name], ours, strict=True))
            print(f"{work}: {name} gives the same answer as heedful float32 to {same} of {len(ours)}")
    return speeds


def report(speeds: dict[str, dict[str, list[float]]]) -> dict[str, Any]:
    """A table of medians, and how many times the peers."""
    rows: dict[str, Any] = {}
    for work, found in speeds.items():
        middle = {name: statistics.median(values) for name, values in found.items()}
        print(f"\n{work}, tokens a second (lowest to highest)")
        for name, values in found.items():
            print(f"  {name:22} {middle[name]:8.0f}   ({min(values):.0f} to {max(values):.0f})")
        ratios = {}
        for precision in ("float32", "int8"):
            for peer in (f"ctranslate2 {precision}", "transformers float32"):
                if peer in middle:
                    turns = zip(found[f"heedful {precision}"], found[peer], strict=True)
                    ratios[f"{precision} / {peer}"] = statistics.median(own / other for own, other in turns)
            floor = FLOORS[work][precision]
            reached = ratios.get(f"{precision} / ctranslate2 {precision}")
            if reached is not None:
                print(
                    f"  {precision}: {reached:.2f} x ctranslate2 (floor {floor}){'' if reached >= floor else '  BELOW'}"
                )
        rows[work] = {"tokens_per_second": middle, "ratios": ratios}
    return rows


def long(module: Any) -> list[dict[str, Any]]:
    """What a token costs, and what is held, after so many others; one answer, greedy."""
    from heedful.backends.native.runner import NativeRunner

    rows = []
    for precision in ("float32", "int8"):
        native = prepare(module, precision).native
        if native is None:
            print("no layers in C here: heedful doctor says why")
            return []
        with torch.inference_mode():
            batch = NativeRunner(native, [[5] * 24], START)
            batch.prefill()
            token, times = torch.tensor([5]), []
            for _ in range(2_000):
                began = time.perf_counter()
                batch.step(token)
                times.append(time.perf_counter() - began)
        for at in (25, 100, 250, 500, 1_000, 2_000):
            milliseconds = 1e3 * statistics.median(times[at - 25 : at])
            held = sum(part[:, :, :at].numel() * 4 for part in batch._cache.layers) / 2**20
            rows.append({"precision": precision, "after": at, "milliseconds": milliseconds, "cache_mib": held})
            print(f"{precision:8} after {at:5} tokens: {milliseconds:6.2f} ms a token, keys and values {held:6.1f} MiB")
    return rows


def profile(module: Any) -> list[dict[str, Any]]:
    """Milliseconds a decoding step spends in each part, of one row and of 160; the best of three runs."""
    from heedful.generation import batch, strategies

    rows = []
    for precision, (beam, n_inputs) in product(("float32", "int8"), ((1, 1), (5, BATCH))):
        native = prepare(module, precision).native
        if native is None:
            return []
        watched: dict[str, tuple[Any, str]] = {
            "layers": (native.decoder, "run"),
            "head": (native, "logits"),
            "candidates": (strategies.BeamSearch if beam > 1 else strategies.GreedySearch, "choose"),
            "books": (batch._Rows, "_advance"),
        }
        best: dict[str, float] = {}
        for _ in range(3):
            spent = dict.fromkeys(watched, 0.0)
            kept = {name: getattr(owner, method) for name, (owner, method) in watched.items()}
            for name, (owner, method) in watched.items():
                setattr(owner, method, _timed(kept[name], spent, name))
            began = time.perf_counter()
            heedful_engine(module, precision)(sources()[:n_inputs], beam, n_inputs)
            total = time.perf_counter() - began
            for name, (owner, method) in watched.items():
                setattr(owner, method, kept[name])
            steps = {name: 1e3 * seconds / NEW for name, seconds in spent.items()}
            steps["all else, reading the sources included"] = 1e3 * total / NEW - sum(steps.values())
            best = steps if not best or sum(steps.values()) < sum(best.values()) else best
        rows.append({"precision": precision, "rows": beam * n_inputs, **best})
        print(precision, beam * n_inputs, "rows:", {name: round(ms, 2) for name, ms in best.items()})
    return rows


def _timed(call: Callable[..., Any], spent: dict[str, float], name: str) -> Callable[..., Any]:
    def timed(*args: Any, **keywords: Any) -> Any:
        began = time.perf_counter()
        try:
            return call(*args, **keywords)
        finally:
            spent[name] += time.perf_counter() - began

    return timed


def main() -> None:
    """Measure, print, keep as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--long", action="store_true", help="the cost of a token after up to 2,000 others")
    parser.add_argument("--profile", action="store_true", help="where a step's time goes")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    changes = {} if not options.long else {"max_length": 2_100}
    module = heedful.build({**CONFIG, **changes}).eval()
    if options.long:
        result: Any = long(module)
    elif options.profile:
        result = profile(module)
    else:
        with tempfile.TemporaryDirectory() as folder:
            found = engines(module, Path(folder), options.threads)
            result = report(measure(found, options.rounds))
    name = "generation" + ("_long" if options.long else "_profile" if options.profile else "") + ".json"
    facts = {"threads": options.threads, "torch": torch.__version__, "machine": platform.machine(), "result": result}
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / name).write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
