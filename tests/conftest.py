"""One thread per worker and one seed per test, so that a run is the same every time."""

import os
import signal

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch, whose threads read it; two workers share two cores
os.environ["HEEDFUL_LANGUAGE"] = "en"  # whatever the locale of this machine

import pytest
import torch

from heedful.errors import MissingDependencyError

torch.set_num_threads(1)
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background of a shell; what tests start would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.fixture
def hangul_font() -> str:
    """The family that draws Korean on this machine."""
    from heedful.lens import pictures

    try:
        return pictures.Lettering(["각힣"]).families[-1]
    except MissingDependencyError:
        pytest.skip("no installed font has Hangul; apt install fonts-nanum to run this test")
