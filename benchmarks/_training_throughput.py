"""Target tokens a second of training steps, Heedful beside transformers' Marian: one architecture, the same batches."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from _measure import Spread, interleaved, table
from _training_loops import FOREVER, First, HeedfulLoop, Loop, PlainLoop
from _training_setup import TRANSFORMERS, Bench, has_transformers, verdict
from heedful.data.batch import Batch
from heedful.families import GenerationDefaults, build, config_of, write_published
from heedful.tasks.translation.data import PairData
from heedful.tasks.translation.task import TranslationConfig, TranslationTask
from heedful.training.parallel.process_group import computes_in_bf16

RECIPE = "multi30k-en-de-small"
MODEL = {
    "family": "marian",
    "d_model": 256,
    "n_heads": 4,
    "d_ff": 1024,
    "n_encoder_layers": 4,
    "n_decoder_layers": 4,
    "max_length": 512,
    "scale_embedding": True,
}
SMALL = {"d_model": 32, "d_ff": 64, "n_encoder_layers": 1, "n_decoder_layers": 1}
# Engines with the precisions that are worth their time: to compile takes minutes.
CONTENDERS = {"eager": ("bf16",), "graph": ("bf16", "bf16-weights"), "compile": ("bf16-weights",)}
FLOOR, REACH = 10.0, 20.0
BATCH_TOKENS, BATCHES = (4096, 1024), 68  # beside the recipe's; so many of each, an epoch of the recipe's
CPU_FLOOR, CPU_THREADS, CPU_TOKENS, CPU_BATCHES = 1.5, 2, 4096, 4
FAST_EPOCHS = 5  # of what takes milliseconds a step, so that a round is long enough to be timed
WARM_UP = 2  # epochs, beside the round that does not count: every shape is seen at least so often


def throughput(bench: Bench) -> dict[str, Any]:
    """On a GPU, in batches of several sizes: the smaller they are, the more a loop waits for its host."""
    recipe = bench.settings(RECIPE)["training"]["batch_tokens"]
    return {"sizes": [_throughput(bench, size) for size in (recipe, *BATCH_TOKENS)]}


def _throughput(bench: Bench, batch_tokens: int) -> dict[str, Any]:
    case = Case(bench, bench.device, batch_tokens=batch_tokens, batches=BATCHES)
    loops: dict[str, tuple[Loop, int]] = {}
    for engine in bench.captured:
        for precision in CONTENDERS[engine] if bench.device.type == "cuda" else ("float32",):
            epochs = 1 if engine == "eager" else FAST_EPOCHS
            loops[f"heedful, {engine}, {precision}"] = case.ours(engine, precision), epochs
    if has_transformers():
        case.agree()
        loops[TRANSFORMERS] = case.theirs(bf16=bench.device.type == "cuda"), 1
    found = case.measured(loops, bench.rounds, FLOOR, REACH, warm_up=WARM_UP)
    return {"batch_tokens": batch_tokens} | found


def cpu(bench: Bench) -> dict[str, Any]:
    """On two threads: a few batches, in float32 and, where the CPU computes in it, in bf16; the peer in both too."""
    before = torch.get_num_threads()
    torch.set_num_threads(CPU_THREADS)
    try:
        case = Case(bench, torch.device("cpu"), batch_tokens=CPU_TOKENS, batches=CPU_BATCHES)
        halves = computes_in_bf16(case.device)
        loops: dict[str, tuple[Loop, int]] = {
            f"heedful, {engine}, {precision}": (case.ours(engine, precision), 1)
            for engine in bench.engines
            for precision in ("float32", *(("bf16-weights",) if halves else ()))
            if engine != "graph"
        }
        if has_transformers():
            case.agree()
            if halves:
                loops[f"{TRANSFORMERS}, bf16"] = case.theirs(bf16=True), 1
            loops[TRANSFORMERS] = case.theirs(bf16=False), 1
        return {"threads": CPU_THREADS, "bf16": halves} | case.measured(
            loops, min(3, bench.rounds), CPU_FLOOR, CPU_FLOOR
        )
    finally:
        torch.set_num_threads(before)


class Case:
    """The model, the batches, and everyone who trains on them."""

    def __init__(self, bench: Bench, device: torch.device, *, batch_tokens: int = 0, batches: int = 0) -> None:
        self.bench, self.device = bench, device
        settings = bench.settings(RECIPE)
        dropout = config_of(settings.get("model", TranslationConfig.preset)).dropout  # type: ignore[attr-defined]
        settings["model"] = {**MODEL, "dropout": dropout, **(SMALL if bench.small else {})}
        # What the peer does not do either.
        settings["training"] |= {
            "steps": FOREVER,
            "epochs": None,
            "r_drop": 0.0,
            "optimizer": "adamw",
            "ema_decay": 0.0,
            "gradient_accumulation_steps": 1,
            "device": device.type,
        }
        if batch_tokens and not bench.small:
            settings["training"]["batch_tokens"] = batch_tokens
        self.config = TranslationConfig.from_dict(settings)
        self.data: PairData
        self.data, _ = TranslationTask().prepare(self.config, bench.pairs(), bench.folder())
        self.model = self.config.model_for(*self.data.tokenizer.sizes)
        self.limit = 3 if bench.small else batches
        self.batches: list[Batch] = list(self.job("eager", "float32").batches.epoch(0))
        self.tokens = sum(int(batch.target_mask.sum()) for batch in self.batches)

    def job(self, engine: str, precision: str) -> Any:
        """With the weights that all begin with."""
        training = self.config.training.changed(engine=engine, precision=precision)
        torch.manual_seed(0)
        job: Any = TranslationTask().bind(self.config.changed(training=training), self.data, build(self.model))
        if self.limit:
            job.batches = First(job.batches, self.limit)
        return job

    def ours(self, engine: str, precision: str) -> Loop:
        """Heedful's loop, which makes its batches as it goes."""
        job = self.job(engine, precision)
        return HeedfulLoop(job, job.config.training, self.bench.folder())

    def theirs(self, *, bf16: bool) -> Loop:
        """Transformers', whose batches wait on the device."""
        return PlainLoop(self._marian(), self.batches, self._their_loss, self.device, bf16=bf16)

    def agree(self) -> None:
        """The same weights give the same loss, or the comparison is worth nothing."""
        job, theirs = self.job("eager", "float32"), self._marian().to(self.device).eval()
        batch = self.batches[0].to(self.device)
        with torch.no_grad():
            sums = job.loss(job.module.to(self.device).eval(), batch)
            pair = float(sums.total / sums.n), float(self._their_loss(theirs, batch))
        print(f"the same weights: loss {pair[0]:.5f} here, {pair[1]:.5f} there")
        if abs(pair[0] - pair[1]) > 1e-3:
            raise AssertionError(f"the two models do not compute the same: {pair}")

    def _marian(self) -> Any:
        import transformers

        module = self.job("eager", "float32").module
        config, _, tensors = write_published(module, self.model, GenerationDefaults(start=1, end=(2,), pad=0))
        theirs = transformers.MarianMTModel(transformers.MarianConfig(**config))
        theirs.load_state_dict(tensors, strict=False)
        theirs.tie_weights()
        return theirs

    def _their_loss(self, module: Any, batch: Batch) -> Tensor:
        """Their cross-entropy, with smoothing. Rows that only fill a fixed shape are left out; a causal decoder with
        padding at the end needs no mask."""
        n = len(batch.rows)
        logits = module(
            input_ids=batch.source[:n],
            attention_mask=batch.source_mask[:n].long(),
            decoder_input_ids=batch.target_in[:n],
            use_cache=False,
        ).logits
        labels = batch.target_out[:n].masked_fill(~batch.target_mask[:n], -100)
        smoothing = self.config.training.label_smoothing
        return functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), label_smoothing=smoothing)

    def measured(
        self, loops: dict[str, tuple[Loop, int]], rounds: int, floor: float, reach: float, *, warm_up: int = 0
    ) -> dict[str, Any]:
        """Rounds in which everyone trains in turn."""
        steps = len(self.batches)
        for name, (loop, _) in loops.items():
            print(f"warming up: {name}", flush=True)
            loop.steps(warm_up * steps)
        runs: dict[str, Callable[[], None]] = {
            name: partial(loop.steps, epochs * steps) for name, (loop, epochs) in loops.items()
        }
        seconds = interleaved(runs, rounds)
        speeds = {name: [self.tokens * loops[name][1] / value for value in values] for name, values in seconds.items()}
        for loop, _ in loops.values():
            loop.close()
        per_step = self.tokens / steps
        print(f"\n{steps} batches, {per_step:,.0f} target tokens in each, {rounds} rounds, {self.device.type}")
        rows, lines = [], []
        for name, values in speeds.items():
            speed = Spread.of(values)
            row: dict[str, Any] = {"name": name, "tokens_per_second": vars(speed)}
            words = ["", ""]
            if TRANSFORMERS in speeds and name != TRANSFORMERS:
                times = Spread.of([own / peer for own, peer in zip(values, speeds[TRANSFORMERS], strict=True)])
                row["times_transformers"] = vars(times)
                words = [f"{times.median:.2f} ({times.low:.2f} to {times.high:.2f})", verdict(times.median >= floor)]
            rows.append(row)
            lines.append([name, f"{speed.median:,.0f}", f"{speed.low:,.0f} to {speed.high:,.0f}", *words])
        header = [
            "loop",
            "target tokens/s",
            "quartiles",
            "× transformers, by round",
            f"floor {floor:g}, reach {reach:g}",
        ]
        print(table(header, lines))
        return {"batches": steps, "target_tokens": self.tokens, "rounds": rounds, "floor": floor, "rows": rows}
