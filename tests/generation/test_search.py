"""The search over plain functions, against every answer there is and against a beam search written out."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from heedful.errors import NonFiniteOutputError
from heedful.generation import GenerationConfig, GenerationError
from heedful.generation.batch import SequenceBatch
from heedful.generation.sequence import SequenceState
from heedful.generation.strategies import LogitsProcessors, strategy_of
from slow_search import (
    END,
    Prefix,
    Prefixes,
    beam_search,
    exhaustive,
    greedy_search,
    random_model,
    same,
    sequences,
)

V = 4
EVERYTHING = 200  # a beam that no step's candidates fill: 4 tokens, of which 3 go on, four times


def run(
    models: list[Any], found: list[SequenceState], config: GenerationConfig, kind: type[Prefixes] = Prefixes, **ids: Any
) -> Prefixes:
    decoding = kind(models)
    batch = SequenceBatch(lambda _: decoding, strategy_of(config), LogitsProcessors(config, (END,), **ids))
    for sequence in found:
        batch.admit(sequence)
    while stepped := batch.step():
        for sequence in stepped:
            if sequence.error is not None:
                raise sequence.error
    return decoding


@pytest.mark.parametrize("min_new_tokens", [0, 2])
@pytest.mark.parametrize("penalty", ["power", "google"])
@pytest.mark.parametrize("alpha", [-0.5, 0.0, 0.6, 1.0, 2.0])
def test_a_beam_that_holds_everything_finds_the_best_answers(alpha: float, penalty: Any, min_new_tokens: int) -> None:
    config = GenerationConfig(
        beam=EVERYTHING, n_best=10, length_penalty=alpha, length_penalty_kind=penalty, min_new_tokens=min_new_tokens
    )
    models, limits = [random_model(seed, V) for seed in range(3)], [4, 3, 4]
    found = sequences(config, *limits)
    run(models, found, config)
    for model, limit, sequence in zip(models, limits, found, strict=True):
        same(sequence.hypotheses, exhaustive(model, V, limit, config)[:10])


@pytest.mark.parametrize("beam", [2, 3, 5])
@pytest.mark.parametrize(("alpha", "penalty"), [(-0.5, "power"), (0.0, "power"), (1.0, "power"), (1.4, "google")])
def test_a_narrow_beam_equals_one_that_never_stops_early(beam: int, alpha: float, penalty: Any) -> None:
    vocab_size, limits = 9, [1, 12, 3, 7, 12]
    models = [random_model(seed, vocab_size) for seed in range(len(limits))]
    for n_best in (1, beam):
        config = GenerationConfig(
            beam=beam, n_best=n_best, length_penalty=alpha, length_penalty_kind=penalty, min_new_tokens=1
        )
        found = sequences(config, *limits)
        run(models, found, config)
        for model, limit, sequence in zip(models, limits, found, strict=True):
            same(sequence.hypotheses, beam_search(model, limit, config))


def test_greedy_takes_the_best_token_and_stops_at_the_end() -> None:
    models, limits = [random_model(seed, 6) for seed in range(12)], [6] * 12
    config = GenerationConfig()
    found = sequences(config, *limits)
    run(models, found, config)
    for model, limit, sequence in zip(models, limits, found, strict=True):
        (best,) = sequence.hypotheses
        assert best.tokens == greedy_search(model, limit)
        assert best.finished == (len(best.tokens) < limit)
        written = (*best.tokens, END) if best.finished else best.tokens
        assert math.isclose(best.logprob, sum(model(written[:i])[token] for i, token in enumerate(written)))
    assert {sequence.hypotheses[0].finished for sequence in found} == {True, False}


def chain(*steps: dict[int, float]) -> Any:
    """A model that looks at the length alone: probabilities of the next token, one dict for each step."""
    assert all(math.isclose(sum(step.values()), 1) for step in steps)

    def logprobs(prefix: Prefix) -> list[float]:
        given = steps[min(len(prefix), len(steps) - 1)]
        return [math.log(given.get(token, 1e-12)) for token in range(V)]

    return logprobs


def test_a_long_answer_overtakes_a_short_one_that_ended_long_before() -> None:
    """−1.2 over two tokens ended first; −1.6 over ten is better by far under α = 1."""
    model = chain({3: 0.6, 0: 0.4}, {END: 0.5, 3: 0.5}, *[{3: 0.95, 0: 0.05}] * 7, {END: 0.99, 3: 0.01})
    config = GenerationConfig(beam=2)
    (sequence,) = sequences(config, 12)
    run([model], [sequence], config)
    assert sequence.hypotheses[0].tokens == (3,) * 9
    config = config.changed(length_penalty=0.0)
    (sequence,) = sequences(config, 12)
    decoding = run([model], [sequence], config)
    assert sequence.hypotheses[0].tokens == (3,)
    assert len(decoding.rows) < 12


def test_the_search_stops_as_soon_as_nothing_open_can_win() -> None:
    """The answer ends with −0.02 a token; what is open then has −4.6, which could at best be −4.6 / 20 a token."""
    model = chain({3: 0.98, 0: 0.02}, {END: 0.98, 0: 0.01, 3: 0.01})
    config = GenerationConfig(beam=2, length_penalty=1.0)
    sure, doubtful = sequences(config, 20, 300)
    assert len(run([model], [sure], config).rows) == 2
    assert len(run([model], [doubtful], config).rows) > 2  # −4.6 / 300 would win
    assert sure.hypotheses[0].tokens == doubtful.hypotheses[0].tokens == (3,)


def test_under_a_negative_penalty_the_next_token_is_what_an_open_answer_hopes_for() -> None:
    """−1.2 ended at once; −0.46 · √2 after it is better, though −0.36 · √12, at the limit, would not be."""
    model = chain({3: 0.7, END: 0.3}, {END: 0.9, 3: 0.1})
    config = GenerationConfig(beam=2, length_penalty=-0.5)
    (sequence,) = sequences(config, 12)
    run([model], [sequence], config)
    assert sequence.hypotheses[0].tokens == (3,)


def test_a_settled_sequence_leaves_the_batch_at_once() -> None:
    short, long = chain({END: 0.9, 3: 0.1}), chain(*[{3: 0.9, 0: 0.1}] * 4, {END: 0.9, 3: 0.1})
    config = GenerationConfig()
    found = sequences(config, 9, 9, 9, 2)
    decoding = run([long, short, long, long], found, config)
    assert decoding.rows == [4, 3, 2, 2, 2]
    assert [sequence.hypotheses[0].tokens for sequence in found] == [(3,) * 4, (), (3,) * 4, (3, 3)]
    assert [sequence.hypotheses[0].finished for sequence in found] == [True, True, True, False]


def test_an_end_below_the_beam_does_not_count() -> None:
    """Else a poor end would win for being short: here −1.9 at once against −2.4 later, with α = 0."""
    model = chain({0: 0.45, 3: 0.4, END: 0.15}, *[{0: 0.6, 3: 0.4}] * 3, {END: 0.95, 0: 0.05})
    config = GenerationConfig(beam=2, length_penalty=0.0)
    (sequence,) = sequences(config, 8)
    run([model], [sequence], config)
    assert sequence.hypotheses[0].tokens == (0,) * 4


def test_banned_tokens_are_never_written_and_change_no_logprob() -> None:
    model = random_model(5, 6)
    config = GenerationConfig(beam=4, n_best=4)
    (sequence,) = sequences(config, 5)
    run([model], [sequence], config, suppress_tokens=[0, 4])
    for best in sequence.hypotheses:
        assert not {0, 4} & set(best.tokens)
        written = (*best.tokens, END) if best.finished else best.tokens
        assert math.isclose(best.logprob, sum(model(written[:i])[token] for i, token in enumerate(written)))


def test_what_cannot_be_answered_is_said() -> None:
    config = GenerationConfig(beam=2, min_new_tokens=1)
    with pytest.raises(GenerationError, match="impossible or suppressed"):
        run([random_model(0, V)], sequences(config, 5), config, suppress_tokens=[0, 1, 3])
    with pytest.raises(NonFiniteOutputError, match="NaN"):
        run([lambda prefix: [math.nan] * V], sequences(config, 5), config)
    with pytest.raises(GenerationError, match=r"from 0 to 3, not 7"):
        run([random_model(0, V)], sequences(config, 5), config, suppress_tokens=[7])


def test_half_precision_is_summed_in_float32() -> None:
    class Half(Prefixes):
        def prefill(self) -> torch.Tensor:
            return super().prefill().bfloat16()

    model = random_model(1, 50)
    for config in (GenerationConfig(), GenerationConfig(beam=3)):
        (sequence,) = sequences(config, 6)
        run([model], [sequence], config, kind=Half)
        best = sequence.hypotheses[0]
        written = (*best.tokens, END) if best.finished else best.tokens
        steps = [torch.tensor(model(written[:i])).bfloat16().float().log_softmax(0)[t] for i, t in enumerate(written)]
        assert math.isclose(best.logprob, float(sum(steps)), rel_tol=1e-5)
