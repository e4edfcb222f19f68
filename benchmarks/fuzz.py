"""Fuzz everything that reads untrusted input, and keep each new finding with the input that shows it.

The targets and their mutations are those of tests/fuzzing, which runs the first cases of each. Here every target runs
in a process of its own, in turns, from a case that differs in each run; a crash or a hang of the process is a finding
as well. The input of a case depends on its target and number alone, so that a finding can be repeated:

    python benchmarks/fuzz.py --minutes 60
    python benchmarks/fuzz.py --target npz --case 1234567     # one case again, with its traceback
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "fuzzing")]
os.environ.setdefault("RUST_BACKTRACE", "0")

TURN = 60.0  # seconds that a target runs before the next one
STARTING = 10.0  # seconds that a process takes to start, about
HANG = 60.0  # seconds without progress after which a process is ended
MAX_ADDRESSES = 24 << 30  # bytes of address space
FIRST_OF_TESTS = 1_000_000  # the tests run the cases below


def main() -> int:
    """Run the targets in turns, or repeat one case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0, help="how long to run")
    parser.add_argument("--target", action="append", help="run only these targets")
    parser.add_argument("--case", type=int, help="repeat this case of the target")
    parser.add_argument("--start", type=int, help="the first case; by default it depends on the time")
    parser.add_argument("--out", type=Path, default=Path("runs/fuzz"), help="the folder of the findings")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()

    from targets import TARGETS

    names = arguments.target or [target.name for target in TARGETS]
    if unknown := set(names) - {target.name for target in TARGETS}:
        parser.error(f"unknown target {min(unknown)!r}; there are {', '.join(target.name for target in TARGETS)}")
    if arguments.worker is not None:
        return work(names[0], arguments.start, arguments.minutes * 60, arguments.worker)
    if arguments.case is not None:
        return repeat(names[0], arguments.case)
    return fuzz(names, arguments)


def work(name: str, start: int, seconds: float, progress: Path) -> int:
    """Run cases of one target in this process; print each finding as JSON, and note the number of the current case."""
    import torch
    from checking import run_case
    from targets import TARGETS

    resource.setrlimit(resource.RLIMIT_AS, (MAX_ADDRESSES, MAX_ADDRESSES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    torch.set_num_threads(1)
    target = next(target for target in TARGETS if target.name == name)
    seen: Counter[str] = Counter()
    handle = os.open(progress, os.O_RDWR | os.O_CREAT)
    with tempfile.TemporaryDirectory() as folder:
        run_case(target, 0, Path(folder) / "input")  # imports and caches
        case, until = start, time.monotonic() + seconds
        while time.monotonic() < until:
            os.pwrite(handle, struct.pack("<q", case), 0)
            finding = run_case(target, case, Path(folder) / "input")
            if finding is not None:
                seen[finding.signature] += 1
                if seen[finding.signature] == 1:
                    print(json.dumps(dataclasses.asdict(finding)), flush=True)
            case += 1
    os.pwrite(handle, struct.pack("<q", case), 0)
    return 0


def repeat(name: str, case: int) -> int:
    """Run one case in this process, and print what was wrong."""
    from checking import run_case
    from targets import TARGETS

    target = next(target for target in TARGETS if target.name == name)
    with tempfile.TemporaryDirectory() as folder:
        finding = run_case(target, case, Path(folder) / "input")
    print(f"{name}, case {case}: no finding" if finding is None else f"{finding.signature}\n{finding.details}")
    return int(finding is not None)


def fuzz(names: list[str], arguments: argparse.Namespace) -> int:
    """Run the targets in turns until the time is over; return 1 if there was a finding."""
    from targets import TARGETS

    targets = {target.name: target for target in TARGETS}
    begin, n_cases = time.monotonic(), 0
    first = FIRST_OF_TESTS + int(time.time()) * 1000 if arguments.start is None else arguments.start
    following, tried = dict.fromkeys(names, first), set()
    offset = first // 1000 % len(names)  # so that a short run does not always leave out the same targets
    names = names[offset:] + names[:offset]
    findings: dict[str, int] = {}
    arguments.out.mkdir(parents=True, exist_ok=True)
    turn = min(TURN, max(1.0, arguments.minutes * 60 / len(names) - STARTING))
    while (left := arguments.minutes * 60 - (time.monotonic() - begin)) > 1:
        for name in names:
            if (left := arguments.minutes * 60 - (time.monotonic() - begin)) <= 1:
                break
            found, after = run_worker(name, following[name], min(turn, left))
            n_cases += after - following[name]
            following[name] = after
            tried.add(name)
            for finding in found:
                signature = f"{finding['target']}: {finding['kind']}, {finding['place']}"
                findings[signature] = findings.get(signature, 0) + 1
                if findings[signature] > 1:
                    continue
                stem = arguments.out / f"{name.replace(' ', '-')}-{finding['case']}"
                stem.with_suffix(".input").write_bytes(targets[name].content(finding["case"]))
                stem.with_suffix(".txt").write_text(f"{signature}\n\n{finding['details']}\n", errors="backslashreplace")
                print(f"new: {signature}\n     {stem}.input, --target {name!r} --case {finding['case']}", flush=True)
    minutes = (time.monotonic() - begin) / 60
    print(f"{n_cases:,} cases of {len(tried)} targets in {minutes:.0f} minutes: {len(findings)} findings", flush=True)
    return int(bool(findings))


def run_worker(name: str, start: int, seconds: float) -> tuple[list[dict[str, Any]], int]:
    """Run a target in a process; return its findings and the next case."""
    with tempfile.TemporaryDirectory() as folder:
        progress, out = Path(folder) / "case", Path(folder) / "out"
        command = [sys.executable, __file__, "--worker", str(progress), "--target", name]
        command += ["--start", str(start), "--minutes", str(seconds / 60)]
        with out.open("wb") as file:
            process = subprocess.Popen(command, stdout=file, stderr=subprocess.DEVNULL)
            case, moved = start, time.monotonic()
            while process.poll() is None:
                time.sleep(0.2)
                if (current := _current(progress, start)) != case:
                    case, moved = current, time.monotonic()
                elif time.monotonic() - moved > HANG + (0 if progress.exists() else HANG):
                    process.kill()
        case = _current(progress, start)
        findings = [json.loads(line) for line in out.read_text().splitlines() if line.startswith("{")]
        if process.returncode:
            kind = "hang" if process.returncode == -signal.SIGKILL else f"crash ({process.returncode})"
            findings.append({"target": name, "case": case, "kind": kind, "place": "", "details": ""})
            case += 1
        return findings, case


def _current(progress: Path, start: int) -> int:
    content = progress.read_bytes() if progress.exists() else b""
    return int(struct.unpack("<q", content[:8])[0]) if len(content) >= 8 else start


if __name__ == "__main__":
    sys.exit(main())
