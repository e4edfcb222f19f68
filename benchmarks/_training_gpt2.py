"""A training step of GPT-2 124M: tokens a second, and the share of what the matrix units give in the same run."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from _measure import table
from _training_loops import HeedfulLoop, Loop, PlainLoop, random_text
from _training_setup import TRANSFORMERS, Bench, has_transformers, verdict

MODEL = {
    "family": "gpt2",
    "vocab_size": 50_304,
    "d_model": 768,
    "n_heads": 12,
    "d_ff": 3072,
    "n_layers": 12,
    "max_length": 1024,
    "dropout": 0.0,
    "embedding_dropout": 0.0,
    "attention_dropout": 0.0,
}
SMALL = {"vocab_size": 512, "d_model": 32, "n_heads": 2, "d_ff": 64, "n_layers": 2, "max_length": 32}
# Tokens a second of nanoGPT, compiled, without biases: measured elsewhere on the same kind of GPU, an H200.
NANOGPT = {16: 466_000, 32: 488_000, 64: 507_000}
FLOOR, REACH, REACHED_SHARE = 1.0, 1.2, 0.65
WARM_UP, STEPS = 6, 20


def gpt2(bench: Bench) -> dict[str, Any]:
    """Every batch size, each loop alone in memory."""
    peak = matrix_peak(bench)
    print(f"matrix products in bf16: {peak / 1e12:.0f} TFLOP/s")
    model: dict[str, Any] = {**MODEL, **(SMALL if bench.small else {})}
    peer, rows = has_transformers(), []
    for batch in (2,) if bench.small else NANOGPT:
        for name, make in contenders(bench, model, batch, peer=peer).items():
            row: dict[str, Any] = {"batch": batch, "name": name} | speed_of(
                make, bench, batch * int(model["max_length"])
            )
            if "tokens_per_second" in row:
                row["share"] = row["tokens_per_second"] * flops_per_token(model) / peak
                row["times_nanogpt"] = row["tokens_per_second"] / NANOGPT[batch] if batch in NANOGPT else None
            print({key: value for key, value in row.items() if key != "rounds"}, flush=True)
            rows.append(row)
    for row in rows:
        beside = [r for r in rows if r["batch"] == row["batch"] and r["name"] == TRANSFORMERS and "share" in r]
        if beside and "share" in row:
            row["times_transformers"] = row["tokens_per_second"] / beside[0]["tokens_per_second"]
    _show(rows)
    return {"model": model, "matrix_peak": peak, "flops_per_token": flops_per_token(model), "rows": rows}


def contenders(bench: Bench, model: dict[str, Any], batch: int, *, peer: bool) -> dict[str, Callable[[], Loop]]:
    """Everyone who trains this model, not yet made."""

    def ours(engine: str) -> Loop:
        folder = bench.folder()
        training = {"engine": engine, "precision": bench.precision, "device": bench.device.type}
        job, config = random_text(model, batch, folder, training)
        return HeedfulLoop(job, config, folder)

    def theirs() -> Loop:
        import transformers

        shape = {"n_embd": "d_model", "n_head": "n_heads", "n_layer": "n_layers", "n_positions": "max_length"}
        config = transformers.GPT2Config(
            vocab_size=model["vocab_size"],
            **{name: model[own] for name, own in shape.items()},
            **dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0),
        )
        module = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="sdpa")
        job, _ = random_text(model, batch, bench.folder(), {})
        batches = list(job.batches.epoch(0))[:STEPS]
        return PlainLoop(module, batches, _their_loss, bench.device, bf16=bench.device.type == "cuda")

    found: dict[str, Callable[[], Loop]] = {
        f"heedful, {engine}, {bench.precision}": lambda engine=engine: ours(engine)  # type: ignore[misc]
        for engine in bench.captured
    }
    return found | ({TRANSFORMERS: theirs} if peer else {})


def speed_of(make: Callable[[], Loop], bench: Bench, tokens: int) -> dict[str, Any]:
    """Tokens a second of each round after a warm-up; where memory runs out, that."""
    loop = None
    steps = 2 if bench.small else STEPS
    try:
        loop = make()
        began = time.perf_counter()
        loop.steps(WARM_UP)
        warm = time.perf_counter() - began
        rounds = []
        for _ in range(3):
            began = time.perf_counter()
            loop.steps(steps)
            rounds.append(steps * tokens / (time.perf_counter() - began))
    except torch.OutOfMemoryError:
        return {"why_not": "out of memory"}
    finally:
        if loop is not None:
            loop.close()
    return {"tokens_per_second": statistics.median(rounds), "rounds": rounds, "seconds_to_warm_up": warm}


def flops_per_token(model: dict[str, Any]) -> float:
    """NanoGPT's count: 6 for every parameter but the positions', and 12·L·H·Q·T for attention."""
    d, length, layers = model["d_model"], model["max_length"], model["n_layers"]
    layer = 4 * d * (d + 1) + 2 * d * model["d_ff"] + model["d_ff"] + d + 4 * d  # attention, feed-forward, two norms
    parameters = model["vocab_size"] * d + layers * layer + 2 * d
    return float(6 * parameters + 12 * layers * d * length)


def matrix_peak(bench: Bench) -> float:
    """Operations a second of square bf16 products of random numbers, the median of many."""
    n, repeats, times = (256, 2, 3) if bench.small else (8192, 10, 40)
    left, right, product = (torch.randn(n, n, device=bench.device, dtype=torch.bfloat16) for _ in range(3))

    def seconds() -> float:
        began = time.perf_counter()
        for _ in range(repeats):
            torch.mm(left, right, out=product)
        if bench.device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - began

    seconds()
    return 2.0 * n**3 * repeats / statistics.median(seconds() for _ in range(times))


def _their_loss(module: Any, batch: Any) -> Tensor:
    return module(input_ids=batch.inputs, labels=batch.inputs, use_cache=False).loss


def _show(rows: list[dict[str, Any]]) -> None:
    header = ["loop", "batch", "tokens/s", "of the peak", "× transformers", "nanoGPT*", "× nanoGPT"]
    lines = []
    for row in rows:
        cells = [row["name"], str(row["batch"]), row.get("why_not", ""), "", "", "", "", ""]
        if "share" in row:
            cells[2:4] = [f"{row['tokens_per_second']:,.0f}", f"{row['share']:.1%}"]
        if "times_transformers" in row:
            cells[4] = f"{row['times_transformers']:.2f}"
        if (times := row.get("times_nanogpt")) is not None:
            cells[5:] = [f"{NANOGPT[row['batch']]:,}", f"{times:.2f}", verdict(times >= FLOOR)]
        lines.append(cells)
    print("\n" + table([*header, f"floor {FLOOR:g}, reach {REACH:g}"], lines))
    print(f"* compiled, measured elsewhere on the same kind of GPU (H200). Reach for {REACHED_SHARE:.0%} of the peak.")
