"""One thread per worker and one seed per test, so that a run is the same every time."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch, whose threads read it; two workers share two cores

import pytest
import torch

torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)
