"""Figures of chapter 1: one sentence through three generations of translators, and their scores by length."""

from typing import Any

import torch

from ...core import EncoderDecoder
from ...core.recurrent import final_states
from ...generation import generate
from ...lens.recorder import record
from . import figure, rounded
from .generations import (
    CONFIGS,
    END,
    HELD_OUT,
    MOST_CLAUSES,
    START,
    Clause,
    encode,
    exact,
    sample,
    sentence_pair,
    trained_model,
    vocabularies,
)

N_SCORED = 100  # sentences of each length
N_SHOWN = 3
SCORE_SEED, EXAMPLE_SEED = 1_000_001, 1_000_002  # seeds that no training step has
LENGTHS = range(1, MOST_CLAUSES + 1)


def sentences_of(n_clauses: int) -> list[list[Clause]]:
    """Return sentences to show, those that the one-vector model fails first; each begins with a held-out clause."""
    drawn = sample(EXAMPLE_SEED, n_clauses, 16) if n_clauses > 1 else [[HELD_OUT[0]]]
    drawn = [[HELD_OUT[0], *clauses[1:]] for clauses in drawn]
    right = exact(trained_model("vector"), drawn)
    return [drawn[n] for n in sorted(range(len(drawn)), key=lambda n: right[n])][:N_SHOWN]


def _translated(model: EncoderDecoder, sentence: list[Clause]) -> dict[str, Any]:
    """Return the tokens a model writes, and what it reads the source from: attention weights, or one vector."""
    source, target = encode([sentence])
    if exact(model, [sentence])[0]:
        written = target[:, :-1]
    else:
        (best,) = generate(model, source.tolist(), beam=1, max_new_tokens=40, start=START, end=END)
        written = torch.tensor([[START, *best[0].tokens]])
    answer = {"output": [vocabularies()[1][token] for token in written[0, 1:].tolist()]}
    with torch.no_grad():
        if model is trained_model("vector"):
            return answer | {"vector": rounded(final_states(model.encode(source), None)[0], 2)}
        with record(model) as recording:
            model(source, written)
    return answer | {"heads": rounded(recording.cross[0][0, :, :-1], 3)}


@figure("three-generations")
def three_generations(language: str) -> dict[str, Any]:
    """Translate sentences of one to four clauses with each model; return outputs, weights and scores by length."""
    models = {name: trained_model(name) for name in CONFIGS}
    scored = {n: sample(SCORE_SEED, n, N_SCORED) for n in LENGTHS}
    return {
        "lengths": [
            [
                {
                    "source": [*sentence_pair(sentence)[0], "</s>"],
                    "target": sentence_pair(sentence)[1],
                    **{name: _translated(model, sentence) for name, model in models.items()},
                }
                for sentence in sentences_of(n)
            ]
            for n in LENGTHS
        ],
        "scores": {name: [sum(exact(model, scored[n])) / N_SCORED for n in LENGTHS] for name, model in models.items()},
        "n_scored": N_SCORED,
    }
