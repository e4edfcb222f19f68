"""Faults of training: kills while saving, a full disk, damaged runs, settings that no machine can have."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from _faults import Bench, Seen, fault, train_command
from _faults_bundles import renew_sums
from _faults_published import change_json
from _serving_processes import pin

GROUP = "Training"


def train(bench: Bench, *changes: str, options: tuple[object, ...] = (), **limits: Any) -> Any:
    """Train a tiny translator with changed settings."""
    return bench.run(*train_command("run", *changes), "--data", bench.sound / "data" / "pairs.tsv", *options, **limits)


def resume(bench: Bench, **limits: Any) -> Any:
    """Continue the run in the scratch folder."""
    return bench.run("train", "translation", "--out", "run", "--resume", **limits)


def same_model(bench: Bench) -> bool:
    """Return whether a run ended with the weights of the undisturbed one, to the bit."""
    first, second = (folder / "run" / "model.safetensors" for folder in (bench.sound, bench.folder))
    return second.exists() and first.read_bytes() == second.read_bytes()


@fault(
    GROUP,
    "kill-saving",
    "SIGKILL before each call that changes the disk while two checkpoints are saved and one is removed, and before "
    "every tenth call of the rest of the run; each run is resumed",
    "every checkpoint is whole; every resumed run ends with the same model, to the bit",
)
def _kills(bench: Bench) -> Seen:
    script = Path(__file__).with_name("_faults_kills.py")
    command = [sys.executable, str(script), str(bench.folder), str(bench.sound / "data" / "pairs.tsv")]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=900, check=False, preexec_fn=lambda: pin(bench.cores)
    )
    if done.returncode:
        return Seen(False, done.stderr.strip().splitlines()[-1])
    seen = json.loads(done.stdout.splitlines()[-1])
    text = f"{seen['kills']} kills of {seen['calls']} calls, {len(seen['problems'])} problems"
    return Seen(not seen["problems"] and seen["kills"] >= 50, "; ".join([text, *seen["problems"][:3]]))


@fault(
    GROUP,
    "disk-full-checkpoint",
    "no file may have more than 20 KB, so that a checkpoint does not fit; then resumed",
    "an error names the checkpoint; the resumed run ends with the same model",
)
def _full_checkpoint(bench: Bench) -> Seen:
    seen = bench.refused(train(bench, file_bytes=20_000), "checkpoint of step", "cannot be written")
    again = resume(bench)
    same = again.code == 0 and same_model(bench)
    return Seen(seen.passed and same, f"{seen.text}; resumed: {'the same model' if same else again.message}")


@fault(
    GROUP,
    "disk-full-data",
    "no file may have more than 2 KB, so that the prepared data do not fit",
    "an error names the file",
)
def _full_data(bench: Bench) -> Seen:
    return bench.refused(train(bench, file_bytes=2_000), "run cannot be written")


@fault(
    GROUP,
    "disk-full-report",
    "no file may have more than 100 KB, so that the report does not fit; then resumed",
    "an error names report.html; the resumed run ends with the same model",
)
def _full_report(bench: Bench) -> Seen:
    seen = bench.refused(train(bench, file_bytes=100_000), r"report\.html")
    again = resume(bench)
    same = again.code == 0 and same_model(bench)
    return Seen(seen.passed and same, f"{seen.text}; resumed: {'the same model' if same else again.message}")


@fault(
    GROUP, "disk-full-import", "no file may have more than 20 KB; `import`", "an error names the file; nothing is left"
)
def _full_import(bench: Bench) -> Seen:
    out = bench.folder / "out"
    ended = bench.run("import", bench.sound / "published", "--out", out, file_bytes=20_000)
    return bench.refused(ended, r"out", absent=out)


@fault(
    GROUP, "disk-full-export", "no file may have more than 20 KB; `export`", "an error names the file; nothing is left"
)
def _full_export(bench: Bench) -> Seen:
    out = bench.folder / "out"
    ended = bench.run("export", bench.sound / "classifier", "--to", "hf", "--out", out, file_bytes=20_000)
    return bench.refused(ended, r"out", absent=out)


@fault(GROUP, "disk-full-predict", "no file may have more than 1 KB; `predict --out`", "an error names the file")
def _full_predict(bench: Bench) -> Seen:
    texts = bench.sound / "data" / "texts.txt"
    ended = bench.run("predict", bench.sound / "classifier", texts, "--json", "--out", "answers.txt", file_bytes=1_000)
    return bench.refused(ended, r"answers\.txt")


SETTINGS = {
    "tokenizer.vocab_size=10**9": "tokenizer.vocab_size=1000000000",
    "model.d_model=10**9": "model.d_model=1000000000",
    "model.d_ff=10**12": "model.d_ff=1000000000000",
    "model.n_encoder_layers=10**9": "model.n_encoder_layers=1000000000",
    "training.learning_rate=1e300": "training.learning_rate=1e300",
    "training.batch_tokens=10**15": "training.batch_tokens=1000000000000000",
    "training.steps=10**18": "training.steps=1000000000000000000",
    "training.gradient_accumulation_steps=10**9": "training.gradient_accumulation_steps=1000000000",
    "generation.beam=10**9": "generation.beam=1000000000",
    "training.label_smoothing=1e300": "training.label_smoothing=1e300",
    "training.weight_decay=1e300": "training.weight_decay=1e300",
    "training.seed=10**30": f"training.seed={10**30}",
    "data.max_tokens=10**12": "data.max_tokens=1000000000000",
    "model.dropout=.nan": "model.dropout=.nan",
}
for name, setting in SETTINGS.items():

    @fault(GROUP, f"setting-{name}", f"`--set {name}`", "an error names it, or it does no harm")
    def _setting(bench: Bench, name: str = name, setting: str = setting) -> Seen:
        minutes = ("training.max_minutes=0.05",) if "steps=" in name else ()
        ended = train(bench, setting, *minutes, seconds=60)
        if ended.code == 0:
            return bench.answered(ended)
        return bench.refused(ended, rf"{name.partition('=')[0].rpartition('.')[2]}|of memory|is not finite")


ALIASES = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10)
)
MERGES = "a0: &a0 {x: 1}\n" + "".join(f"a{n}: &a{n}\n  <<: [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10))
BOMBS = {"aliases": ALIASES, "merges": MERGES, "cycle": "a: &a [*a]\n", "deep": "a: " + "[" * 5000 + "]" * 5000}
for name, text in BOMBS.items():

    @fault(
        GROUP,
        f"yaml-{name}-config",
        f"`--config` with {name} of YAML of {len(text):,} bytes",
        "an error names the file; little memory",
    )
    def _yaml(bench: Bench, text: str = text) -> Seen:
        path = bench.folder / "config.yaml"
        path.write_text(text)
        return bench.refused(train(bench, options=("--config", path), seconds=60), r"config\.yaml")

    @fault(
        GROUP,
        f"yaml-{name}-run",
        f"run.yaml becomes {name} of YAML; `--resume`",
        "an error names the file; little memory",
    )
    def _yaml_run(bench: Bench, text: str = text) -> Seen:
        path = bench.copy("run") / "run.yaml"
        path.write_text(path.read_text() + text)
        return bench.refused(resume(bench, seconds=60), r"run\.yaml")


@fault(GROUP, "yaml-zero", "`--config` is a link to /dev/zero", "an error at once")
def _yaml_zero(bench: Bench) -> Seen:
    path = bench.folder / "config.yaml"
    path.symlink_to("/dev/zero")
    return bench.refused(train(bench, options=("--config", path), seconds=40), r"config\.yaml")


@fault(
    GROUP, "log-cut-report", "the last line of log.jsonl is cut; `report`", "the report is written without that line"
)
def _log_report(bench: Bench) -> Seen:
    path = bench.copy("run") / "log.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    return bench.answered(bench.run("report", "run", "--out", "report.html"))


@fault(
    GROUP,
    "log-cut-resume",
    "training is stopped, the last line of log.jsonl is cut, `--resume`",
    "the run ends with the same model",
)
def _log_resume(bench: Bench) -> Seen:
    _interrupted(bench)
    path = bench.folder / "run" / "log.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    ended = resume(bench)
    seen = bench.answered(ended)
    return Seen(seen.passed and same_model(bench), seen.text)


@fault(GROUP, "metrics-empty", "metrics.json becomes {}; `report`", "an error names the file")
def _metrics(bench: Bench) -> Seen:
    (bench.copy("run") / "metrics.json").write_text("{}")
    return bench.refused(bench.run("report", "run", "--out", "report.html"), r"metrics\.json")


@fault(GROUP, "metrics-wrong", "metrics.json holds lists where mappings should be; `report`", "an error names the file")
def _metrics_wrong(bench: Bench) -> Seen:
    (bench.copy("run") / "metrics.json").write_text('{"validation": [], "training": [], "parameters": []}')
    return bench.refused(bench.run("report", "run", "--out", "report.html"), r"metrics\.json")


def _state(change: Callable[[dict[str, Any]], object]) -> Callable[[Bench], Seen]:
    def check(bench: Bench) -> Seen:
        _interrupted(bench)
        for folder in (bench.folder / "run" / "checkpoints").glob("step-*"):
            change_json(folder / "state.json", change)
            change_json(folder / "manifest.json", partial(renew_sums, folder))
        return bench.refused(resume(bench), "step-|state")

    return check


STATES: dict[str, Callable[[dict[str, Any]], object]] = {
    "without progress": lambda values: values.pop("progress", None),
    "with a list as progress": lambda values: values.update(progress=[]),
    "with a text as its step": lambda values: values["progress"].update(step="many"),
}
for name, change in STATES.items():
    fault(
        GROUP,
        f"state-{name.replace(' ', '-')}",
        f"the state.json of every checkpoint is {name}, with right checksums; `--resume`",
        "an error names the checkpoint",
    )(_state(change))


def _interrupted(bench: Bench) -> None:
    """Leave a run as it is after its first checkpoint, where the report did not fit on the disk."""
    bench.copy("run")
    run = bench.folder / "run"
    for name in ("config.json", "model.safetensors", "metrics.json", "report.html"):
        (run / name).unlink()


@fault(
    GROUP,
    "checkpoint-damaged",
    "the newest checkpoint is cut; `--resume`",
    "a warning; the run goes back to the one before it and ends with the same model",
)
def _damaged(bench: Bench) -> Seen:
    _interrupted(bench)
    steps = sorted((bench.folder / "run" / "checkpoints").glob("step-*"))
    path = next(steps[-1].glob("*.safetensors"))
    path.write_bytes(path.read_bytes()[:1000])
    seen = bench.answered(resume(bench), "damaged")
    return Seen(seen.passed and (len(steps) < 2 or same_model(bench)), seen.text)


@fault(GROUP, "data-changed", "a line is added to the data; `--resume`", "an error names the file")
def _changed(bench: Bench) -> Seen:
    data = bench.folder / "pairs.tsv"
    data.write_bytes((bench.sound / "data" / "pairs.tsv").read_bytes())
    bench.run(*train_command("run"), "--data", data, file_bytes=100_000)
    data.write_bytes(data.read_bytes() + b"a new line\tnew\n")
    return bench.refused(resume(bench), r"pairs\.tsv|data")


@fault(
    GROUP,
    "diverges",
    "`--set training.learning_rate=1000` without warm-up",
    "the run ends with an error or a warning, never with NaN in its weights",
)
def _diverges(bench: Bench) -> Seen:
    changes = (
        "training.learning_rate=1000",
        "training.warmup_steps=0",
        "training.optimizer=adamw",
        "training.steps=40",
    )
    ended = train(bench, *changes, "training.max_grad_norm=1000000", "training.log_every=1")
    return bench.answered(ended, "loss|rate") if ended.code == 0 else bench.refused(ended, "NaN|loss|step")


@fault(GROUP, "out-is-a-file", "`--out` is a file", "an error names it")
def _out(bench: Bench) -> Seen:
    (bench.folder / "run").write_text("a file")
    return bench.refused(train(bench), "run")
