"""Requests to the engine: inputs that are no token ids, memories computed before, steps, aborting, keywords."""

from __future__ import annotations

import inspect
from dataclasses import fields
from typing import Any, Unpack, get_type_hints

import pytest
import torch
from torch import Tensor, nn

from every_model import D, build, randomised, sentences
from heedful import core
from heedful.errors import ConfigError, DataError
from heedful.generation import (
    EncoderMemory,
    GenerationConfig,
    GenerationEngine,
    GenerationOptions,
    create_requests,
    generate,
    stream,
)
from heedful.tasks.text_generator import TextGenerator
from slow_search import END, START, Model, beam_search, exhaustive, greedy_search, same

VOCABULARY = 4


class Projected(nn.Module):
    """A source of float vectors (B, T, 3), each made one of the model's."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(3, D)

    def forward(self, x: Tensor, keep: Any = None, *, segments: Any = None) -> Any:
        return self.project(x), core.masks.as_padding(keep)


def reading(embedding: nn.Module, vocab_size: int = VOCABULARY) -> Any:
    """An encoder-decoder whose source is not text."""
    parts = build("sinusoidal", vocab_size=vocab_size)
    return randomised(
        core.EncoderDecoder(
            source_embedding=embedding,
            encoder=parts.encoder,
            target_embedding=parts.target_embedding,
            decoder=parts.decoder,
            head=parts.head,
        )
    )


def images() -> tuple[Any, list[Tensor]]:
    embedding = core.PatchEmbedding(D, image_size=8, patch_size=4, n_channels=1)
    return reading(embedding), [torch.randn(1, 8, 8, dtype=torch.float64) for _ in range(5)]


def vectors() -> tuple[Any, list[Tensor]]:
    """Of several lengths, some of them twice."""
    return reading(Projected()), [torch.randn(n, 3, dtype=torch.float64) for n in (4, 1, 7, 4, 2)]


def as_function(model: Any, source: Tensor) -> Model:
    """The uncached forward pass over the whole prefix, alone."""

    def logprobs(prefix: tuple[int, ...]) -> list[float]:
        with torch.no_grad():
            logits = model(source[None], torch.tensor([[START, *prefix]]))
        values: list[float] = logits[0, -1].log_softmax(dim=-1).tolist()
        return values

    return logprobs


@pytest.mark.parametrize("make", [images, vectors])
def test_any_encoder_decoder_is_searched_exactly(make: Any) -> None:
    model, inputs = make()
    config = GenerationConfig(beam=200, n_best=8, max_new_tokens=4)
    for got, source in zip(generate(model, inputs, config), inputs, strict=True):
        same(got, exhaustive(as_function(model, source), VOCABULARY, 4, config)[:8])


@pytest.mark.parametrize("make", [images, vectors])
def test_greedy_and_beam_equal_the_uncached_forward(make: Any) -> None:
    """Few at a time, so that some join while others are decoded."""
    model, inputs = make()
    config = GenerationConfig(beam=3, n_best=3, max_new_tokens=9, batch_tokens=16 * 3 * 2)
    for got, source in zip(generate(model, inputs, config), inputs, strict=True):
        same(got, beam_search(as_function(model, source), 9, config))
    for (got_one,), source in zip(generate(model, inputs, max_new_tokens=9), inputs, strict=True):
        assert got_one.tokens == greedy_search(as_function(model, source), 9)
        assert tuple(stream(model, source, max_new_tokens=9)) == got_one.tokens


def test_a_batch_tensor_is_its_rows_and_samples_are_drawn_anew() -> None:
    model, inputs = images()
    rows = torch.stack(inputs)
    assert generate(model, rows, max_new_tokens=5) == generate(model, inputs, max_new_tokens=5)
    options: Any = {"sample": True, "max_new_tokens": 20, "end": ()}
    first, second = generate(model, [inputs[0], inputs[0]], **options)
    assert first[0].tokens != second[0].tokens
    same(generate(model, [inputs[1], inputs[0]], **options)[1], first)


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("name", ["sinusoidal", "relative", "additive", "one vector"])
def test_a_memory_gives_the_answers_of_its_source(name: str, single: bool) -> None:
    """In float32 some of these run in C, with no padding."""
    model, inputs = build(name), sentences(5, 1, 8, 3)
    model = model.float() if single else model
    memories = []
    for ids in inputs:
        with torch.no_grad():
            memory = model.encode(torch.tensor([ids]))[0]
        noise = torch.randn(2, memory.shape[1], dtype=memory.dtype)
        keep = torch.tensor([True] * len(ids) + [False, False])
        memories.append(EncoderMemory(torch.cat([memory, noise]), keep) if len(ids) % 2 else EncoderMemory(memory))
    for beam in (1, 3):
        wanted = generate(model, inputs, beam=beam, n_best=beam, max_new_tokens=9)
        got = generate(model, memories, beam=beam, n_best=beam, max_new_tokens=9)
        for one, other in zip(got, wanted, strict=True):
            same(one, other, tolerance=1e-4 if single else 1e-9)


def test_what_no_model_can_read_is_refused_by_its_place() -> None:
    reader, inputs = images()
    language_model = build("rotary language model")
    with pytest.raises(DataError, match="input 1 is not a list of token ids"):
        generate(language_model, [[3], inputs[0]])
    with pytest.raises(DataError, match="input 0 is empty"):
        generate(reader, [torch.zeros(0, 3)])
    with pytest.raises(DataError, match=r"input 0: a memory must be \(S, D\)"):
        generate(reader, [EncoderMemory(torch.zeros(0, D))])
    with pytest.raises(ConfigError, match="context"):
        generate(reader, inputs, context=8)


def test_a_start_is_for_encoder_decoders() -> None:
    language_model, translator = build("rotary language model"), build("sinusoidal")
    assert generate(language_model, [[3, 4]], start=None) == generate(language_model, [[3, 4]], start=7)
    with pytest.raises(DataError, match="give it as start="):
        generate(translator, [[3, 4]], start=None)


def test_the_engine_is_stepped_by_hand() -> None:
    model, inputs = build("sinusoidal"), sentences(4, 7, 2)
    config = GenerationConfig(max_new_tokens=6)
    engine, requests = GenerationEngine(model), create_requests(model, inputs, config, start=START, end=END)
    states = [engine.add_request(request) for request in requests]
    with pytest.raises(ValueError, match="already being answered"):
        engine.add_request(requests[0])
    lengths = []
    while engine.has_unfinished_requests:
        for state in engine.step():
            if state is states[1]:
                lengths.append(len(state.certain_tokens()))
        engine.abort(requests[2])
    assert lengths == sorted(lengths)
    assert states[2].hypotheses == []
    for state, wanted in zip(states[:2], generate(model, inputs[:2], config), strict=True):
        assert state.finished
        same(state.hypotheses, wanted)
        assert state.certain_tokens() == wanted[0].tokens
        assert len(state.certain_logprobs()) == len(wanted[0].tokens)


def test_answers_past_the_context_share_the_engine_with_others() -> None:
    """Two that roll, several samples among them, beside one that does not."""
    model, inputs = build("learned language model"), sentences(4, 7, 2)
    engine = GenerationEngine(model)
    rolling = create_requests(
        model, inputs[:2], GenerationConfig(sample=True, n_best=3, max_new_tokens=90), start=None, end=(), context=16
    )
    plain = create_requests(model, inputs[2:], GenerationConfig(max_new_tokens=20), start=None, end=())
    together = engine.generate([*rolling, *plain])
    assert [[len(answer.tokens) for answer in answers] for answers in together] == [[90] * 3, [90] * 3, [20]]
    for request, answers in zip([*rolling, *plain], together, strict=True):
        same(GenerationEngine(model).generate([request])[0], answers)


def test_misspelled_keywords_are_type_errors() -> None:
    """The keywords that a type checker allows are the settings there are."""
    settings = get_type_hints(GenerationConfig)
    assert list(get_type_hints(GenerationOptions)) == [setting.name for setting in fields(GenerationConfig)]
    for name, kind in get_type_hints(GenerationOptions).items():
        assert settings[name] == kind
    takers: list[Any] = [generate, stream, TextGenerator.predict, TextGenerator.answers, TextGenerator.candidates]
    for function in (*takers, TextGenerator.stream):
        (keywords,) = [one for one in inspect.signature(function).parameters.values() if one.kind is one.VAR_KEYWORD]
        assert get_type_hints(function)[keywords.name] == Unpack[GenerationOptions]
