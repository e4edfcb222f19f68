"""Memory that is freed is kept."""

import subprocess
import sys

import pytest

KEPT = """
import os, sys, threading, torch
from heedful.serving.memory import keep_memory

if sys.argv[1] == "keep":
    keep_memory()

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20

def batch():
    before = resident()
    blocks = [torch.ones(5 << 18) for _ in range(40)]  # 200 MiB, more than a thread's heap of the C library
    while blocks:
        blocks.pop()
    print(resident() - before)

hand = threading.Thread(target=batch)
hand.start()
hand.join()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the C library's own settings")
def test_what_a_hand_frees_is_there_for_its_next_batch() -> None:
    def mib_kept(way: str) -> int:
        done = subprocess.run([sys.executable, "-c", KEPT, way], capture_output=True, text=True, check=True)
        return int(done.stdout)

    if mib_kept("leave") > 100:
        pytest.skip("this C library keeps its memory anyway")
    assert mib_kept("keep") > 180
