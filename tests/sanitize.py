"""Runs the tests of the layers in C with AddressSanitizer and UndefinedBehaviorSanitizer, which must find nothing.

The library is compiled by gcc with both sanitizers into a folder of its own. Python is started with their runtime
libraries, so that also the memory of tensors has guards around it. What they find ends the run with a report. Arguments
are options of pytest.

    make sanitize
    python tests/sanitize.py -k product
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TESTS = ("test_native.py", "test_native_choosing.py")
RUNTIMES = ("libasan.so", "libubsan.so", "libstdc++.so")  # the last throws the exceptions that the first intercepts
FLAGS = "-O1 -g -fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all -fno-omit-frame-pointer"
COMPILER = """#!/bin/sh
unset LD_PRELOAD
exec {gcc} "$@" {flags}
"""
OPTIONS = {
    # Python and torch never free some of their memory, and free other memory in their own ways.
    "ASAN_OPTIONS": "detect_leaks=0:alloc_dealloc_mismatch=0",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "PYTHONMALLOC": "malloc",
}


def main() -> int:
    """Run the tests; return 0 if all pass and the sanitizers find nothing."""
    gcc = shutil.which("gcc")
    if gcc is None:
        print("gcc is needed: its libraries of the sanitizers are loaded into Python")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        compiler = Path(folder) / "cc"
        compiler.write_text(COMPILER.format(gcc=gcc, flags=FLAGS))
        compiler.chmod(0o700)
        environment = OPTIONS | {"CC": str(compiler), "XDG_CACHE_HOME": folder}
        environment["LD_PRELOAD"] = " ".join(_runtime(gcc, library) for library in RUNTIMES)
        tests = [str(ROOT / "tests" / "backends" / name) for name in TESTS]
        command = [sys.executable, "-m", "pytest", "-s", "-p", "no:cacheprovider", *tests, *sys.argv[1:]]
        code = subprocess.run(command, env=os.environ | environment, cwd=ROOT, check=False).returncode
        is_compiled = any((Path(folder) / "heedful").glob("layers-*.so"))
    if not is_compiled:
        print("the layers in C were not compiled, so nothing was tested")
    elif code == 0:
        print("the sanitizers found nothing")
    return int(code != 0 or not is_compiled)


def _runtime(gcc: str, library: str) -> str:
    done = subprocess.run([gcc, f"-print-file-name={library}"], capture_output=True, text=True, check=True)
    return str(Path(done.stdout.strip()).resolve())


if __name__ == "__main__":
    sys.exit(main())
