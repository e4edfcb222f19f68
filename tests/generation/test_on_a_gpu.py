"""On a GPU: the same answers, in every precision a model may have there."""

from __future__ import annotations

import math

import pytest
import torch
from slow_search import same

from every_model import DECODERS, build, sentences
from heedful.generation import GenerationConfig, generate

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
