"""Every fault that users and strangers may cause, run end to end: what was done, what should happen, what did.

    python benchmarks/faults.py                       all of them; about a quarter of an hour
    python benchmarks/faults.py --only weights load   those whose names begin so
    python benchmarks/faults.py --list                their names
    python benchmarks/faults.py --docs                rewrites docs/faults.md from a whole run

Commands and servers are processes of their own, on this machine's loopback and in a temporary folder. The exit code is
1 if a fault did not end as expected.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import _faults_bundles  # noqa: F401  (registers faults)
import _faults_data  # noqa: F401
import _faults_load  # noqa: F401
import _faults_published  # noqa: F401
import _faults_requests  # noqa: F401
import _faults_training  # noqa: F401
from _faults import FAULTS, Bench, Seen, Shared, train_command
from _faults_page import page
from _measure import machine, write, write_json
from _serving_processes import pin

HERE = Path(__file__).resolve().parent
RESULT, PAGE = HERE / "results" / "faults.json", HERE.parent / "docs" / "faults.md"


def main() -> None:
    """Run the faults, print a line for each, and keep the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="faults whose names begin so")
    parser.add_argument("--list", action="store_true", help="print the names and end")
    parser.add_argument("--cores", type=int, nargs="+", default=[], help="for commands and servers; all without it")
    parser.add_argument("--patience", type=float, default=1.0, help="times the time limits, for a busy machine")
    parser.add_argument("--models", type=Path, help="a folder for the undamaged models, kept for the next run")
    parser.add_argument("--out", type=Path, default=RESULT, help="the results; those of other faults are kept")
    parser.add_argument("--docs", action="store_true", help=f"write {PAGE.parent.name}/{PAGE.name} from the results")
    options = parser.parse_args()
    names = [name for name in FAULTS if options.only is None or name.startswith(tuple(options.only))]
    if options.list:
        print("\n".join(names))
        return
    earlier: dict[str, Any] = json.loads(options.out.read_text("utf-8"))["faults"] if options.out.exists() else {}
    results = {name: earlier[name] for name in FAULTS if name in earlier}
    with tempfile.TemporaryDirectory() as scratch:
        sound = options.models or Path(scratch) / "sound"
        if not sound.is_dir():
            write_models(sound, options.cores)
        bench = Bench(Path(scratch), sound, options.cores, Shared(options.patience))
        for name in names:
            seen, seconds = run(name, bench)
            results[name] = {**asdict(seen), "seconds": round(seconds, 1)}
            print(f"{'pass' if seen.passed else 'FAIL'}  {name} ({seconds:.0f} s): {seen.text}", flush=True)
    ordered = {name: results[name] for name in FAULTS if name in results}
    failed = [name for name in names if not ordered[name]["passed"]]
    print(f"{len(names) - len(failed)} of {len(names)} passed")
    write_json(options.out, {"machine": machine(), "faults": ordered})
    if options.docs:
        facts = machine()
        write(PAGE, page(ordered, f"{facts['cores']} cores of an {facts['processor']} CPU"))
    sys.exit(bool(failed))


def run(name: str, bench: Bench) -> tuple[Seen, float]:
    """Commit a fault in a folder of its own."""
    folder, began = bench.folder / name, time.monotonic()
    folder.mkdir()
    try:
        seen = FAULTS[name].check(bench.within(folder))
    except Exception as error:  # the fault itself could not be committed
        seen = Seen(False, f"{type(error).__name__}: {error}")
    finally:
        shutil.rmtree(folder)
    return seen, time.monotonic() - began


def write_models(folder: Path, cores: list[int]) -> None:
    """Write undamaged models and a run, in processes of their own: this one should stay small."""
    folder.mkdir(parents=True)
    training = [*train_command(str(folder / "run")), "--data", str(folder / "data" / "pairs.tsv")]
    for arguments in ([str(HERE / "_faults_models.py"), str(folder)], ["-m", "heedful", *training]):
        command = [sys.executable, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, preexec_fn=lambda: pin(cores), check=False)
        if done.returncode:
            shutil.rmtree(folder)
            raise RuntimeError(done.stderr)


if __name__ == "__main__":
    main()
