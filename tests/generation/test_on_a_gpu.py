"""On a GPU: the same answers, in every precision a model may have there."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from every_model import DECODERS, build, sentences
from heedful.generation import GenerationConfig, generate, stream
from slow_search import END, same

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("name", DECODERS)
def test_answers_are_those_of_the_cpu(name: str, beam: int) -> None:
    model, inputs = build(name), sentences(5, 1, 9, 3, 9)
    config = GenerationConfig(beam=beam, n_best=beam, max_new_tokens=12)
    on_cpu = generate(model, inputs, config)
    for got, wanted in zip(generate(model.cuda(), inputs, config), on_cpu, strict=True):
        same(got, wanted)


@pytest.mark.parametrize("beam", [1, 4])
def test_low_precision_runs(beam: int) -> None:
    model, inputs = build("sinusoidal").float().cuda(), sentences(5, 1, 9)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        automatic = generate(model, inputs, beam=beam, max_new_tokens=5)
    for answers in (automatic, generate(model.bfloat16(), inputs, beam=beam, max_new_tokens=5)):
        assert all(math.isfinite(answer.logprob) for (answer,) in answers)


@pytest.mark.parametrize("name", ["sinusoidal", "additive", "rotary language model"])
def test_draws_and_rules_are_those_of_the_cpu(name: str) -> None:
    """Five at a time, so that some join while others are in the middle of their answers."""
    model, inputs = build(name), sentences(5, 1, 9, 3, 9, 2, 7)
    config = GenerationConfig(max_new_tokens=9, repetition_penalty=1.3, no_repeat_ngram_size=2, min_new_tokens=2)
    given: dict[str, Any] = {
        "suppress_tokens": [5],
        "logit_bias": {END: 1.0, 7: 0.5},
        "prefixes": [[4], [], [6, 8], [], [], [9], []],
    }
    ways: list[dict[str, Any]] = [
        {"sample": True, "n_best": 3, "top_p": 0.9, "batch_tokens": 16 * 5 * 3},
        {"beam": 3, "n_best": 3, "batch_tokens": 16 * 5 * 3},
    ]
    for way in ways:
        on_cpu = generate(model.cpu(), inputs, config, **given, **way)
        for got, wanted in zip(generate(model.cuda(), inputs, config, **given, **way), on_cpu, strict=True):
            same(got, wanted)
    streamed = list(stream(model.cpu(), inputs[0], beam=3, max_new_tokens=9))
    assert list(stream(model.cuda(), inputs[0], beam=3, max_new_tokens=9)) == streamed


def test_memory_that_runs_out_halves_the_budget() -> None:
    """A budget far beyond the memory: the answers are those of a small one."""
    model = build("sinusoidal", vocab_size=400_000).float().cuda()
    inputs = [[3 + n % 20] * 12 for n in range(3000)]
    wanted = generate(model, inputs, max_new_tokens=3, batch_tokens=4096)
    free, _ = torch.cuda.mem_get_info()
    held = torch.empty(max(0, free - 3 * 2**30), dtype=torch.uint8, device="cuda")  # three thousand rows take more
    got = generate(model, inputs, max_new_tokens=3, batch_tokens=10**9)
    del held
    assert [answer.tokens for (answer,) in got] == [answer.tokens for (answer,) in wanted]
