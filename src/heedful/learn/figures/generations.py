"""The figure of the three generations of translators, each trained on the same sentences, and scored by length.

The weights are in generations.safetensors; `python -m heedful.learn.figures.generations` trains them again.
Shapes: B batch, S source tokens, T target tokens.
"""

import random
from functools import cache
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn import functional as F

from ...core import EncoderDecoder
from ...core.recurrent import final_states
from ...families import build
from ...generation import generate
from ...lab.models import fall, seeded, shifted, train
from ...lens.recorder import record
from ..toy import CORPORA, END, PADDING, START, WordVocabulary
from . import figure, rounded

WEIGHTS = Path(__file__).with_name("generations.safetensors")
SUBJECTS, VERBS, OBJECTS = (CORPORA["generations"][name] for name in ("subjects", "verbs", "objects"))
HELD_OUT = ("I", "love", "deep learning"), ("I", "study", "the Transformer")  # never in a training sentence
MOST_CLAUSES = 4
N_SCORED, N_SHOWN = 100, 3  # sentences of each length
SCORE_SEED, EXAMPLE_SEED = 1_000_001, 1_000_002  # seeds that no training step has
CONFIGS: dict[str, dict[str, Any]] = {
    "vector": {"family": "recurrent", "attention": "none"},
    "additive": {"family": "recurrent", "attention": "additive"},
    "transformer": {
        "family": "original", "norm": "pre", "n_heads": 4, "d_ff": 64, "n_encoder_layers": 1, "n_decoder_layers": 1,
    },
}  # fmt: skip
Clause = tuple[str, str, str]


def sentence_pair(clauses: list[Clause]) -> tuple[str, str]:
    """Return the English and the Korean of clauses (subject, verb, object)."""
    endings = ["하고"] * (len(clauses) - 1) + ["한다"]
    korean = [
        f"{SUBJECTS[subject]} {OBJECTS[thing]} {VERBS[verb]}{ending}"
        for (subject, verb, thing), ending in zip(clauses, endings, strict=True)
    ]
    return " and ".join(" ".join(clause) for clause in clauses), " ".join(korean)


_PREDICATES = (verb + ending for verb in VERBS.values() for ending in ("하고", "한다"))
ENGLISH = WordVocabulary(" ".join([*SUBJECTS, *VERBS, *OBJECTS, "and"]).split())
KOREAN = WordVocabulary(" ".join([*SUBJECTS.values(), *OBJECTS.values(), *_PREDICATES]).split())


def sample(seed: int, n_clauses: int, count: int) -> list[list[Clause]]:
    """Draw sentences without the held-out clauses."""
    draw = random.Random(seed)

    def clause() -> Clause:
        drawn = draw.choice([*SUBJECTS]), draw.choice([*VERBS]), draw.choice([*OBJECTS])
        return clause() if drawn in HELD_OUT else drawn

    return [[clause() for _ in range(n_clauses)] for _ in range(count)]


def encode(sentences: list[list[Clause]]) -> tuple[Tensor, Tensor]:
    """Return the ids of both sides, each with </s>, padded: (B, S) and (B, T)."""
    english, korean = zip(*map(sentence_pair, sentences), strict=True)
    return ENGLISH.batch(english), KOREAN.batch(korean)


@seeded()
def new_model(name: str) -> EncoderDecoder:
    """Build a model with random weights: "vector", "additive" or "transformer"."""
    sizes = {"vocab_size": len(ENGLISH.tokens), "target_vocab_size": len(KOREAN.tokens), "d_model": 32}
    model = build({**CONFIGS[name], **sizes, "tied": "output", "dropout": 0.0})
    assert isinstance(model, EncoderDecoder)
    return model


@cache
def trained_model(name: str) -> EncoderDecoder:
    """Load a trained model."""
    model, weights = new_model(name), load_file(WEIGHTS)
    model.load_state_dict({key: weights[f"{name}.{key}"].float() for key in model.state_dict()})
    return model.eval()


def logits_of(model: EncoderDecoder, source: Tensor, target: Tensor) -> Tensor:
    """Return the logits (B, T, V) of all target tokens, each given those before it."""
    return model(source, shifted(target, START), source != PADDING)


@torch.no_grad()
def exact(model: EncoderDecoder, sentences: list[list[Clause]]) -> list[bool]:
    """Return for each sentence whether greedy decoding writes exactly its translation.

    It does if and only if every token is the most likely one after the right ones before it.
    """
    source, target = encode(sentences)
    right = (logits_of(model, source, target).argmax(-1) == target) | (target == PADDING)
    return right.all(dim=1).tolist()


def train_generation(name: str, steps: int = 1200) -> EncoderDecoder:
    """Train a model on sentences of one to four clauses, 64 at a time."""
    model = new_model(name)

    def loss(step: int) -> Tensor:
        source, target = encode(sample(step, step % MOST_CLAUSES + 1, 64))
        return F.cross_entropy(logits_of(model, source, target).mT, target, ignore_index=PADDING)

    train(model, loss, steps, fall(4e-3, steps))
    return model


def sentences_of(n_clauses: int) -> list[list[Clause]]:
    """Return sentences to show, those that the one-vector model fails first; each begins with a held-out clause."""
    drawn = sample(EXAMPLE_SEED, n_clauses, 16) if n_clauses > 1 else [[HELD_OUT[0]]]
    drawn = [[HELD_OUT[0], *clauses[1:]] for clauses in drawn]
    right = exact(trained_model("vector"), drawn)
    return [drawn[n] for n in sorted(range(len(drawn)), key=lambda n: right[n])][:N_SHOWN]


@torch.no_grad()
def _translated(name: str, sentence: list[Clause]) -> dict[str, Any]:
    """Return the tokens a model writes, and what it reads the source from: attention weights, or one vector."""
    model, (source, _) = trained_model(name), encode([sentence])
    ((best, *_),) = generate(model, source.tolist(), beam=1, max_new_tokens=40, start=START, end=END)
    answer = {"output": KOREAN.text(best.tokens).split()}
    if name == "vector":
        return answer | {"vector": rounded(final_states(model.encode(source), None)[0], 2)}
    with record(model) as recording:
        model(source, torch.tensor([[START, *best.tokens]]))
    return answer | {"heads": rounded(recording.cross[0][0, :, :-1])}


@figure("three-generations")
def three_generations(language: str) -> dict[str, Any]:
    """Translate sentences of one to four clauses with each model; return outputs, weights and scores by length."""
    lengths: list[list[dict[str, Any]]] = []
    for n in range(1, MOST_CLAUSES + 1):
        lengths.append([])
        for sentence in sentences_of(n):
            english, korean = (text.split() for text in sentence_pair(sentence))
            outputs = {name: _translated(name, sentence) for name in CONFIGS}
            lengths[-1].append({"source": [*english, "</s>"], "target": korean, **outputs})
    scored = [sample(SCORE_SEED, n, N_SCORED) for n in range(1, MOST_CLAUSES + 1)]
    scores = {name: [sum(exact(trained_model(name), each)) / N_SCORED for each in scored] for name in CONFIGS}
    return {"lengths": lengths, "scores": scores, "n_scored": N_SCORED}


if __name__ == "__main__":
    trained = {name: train_generation(name).state_dict() for name in CONFIGS}
    weights = {f"{name}.{key}": value.half() for name, state in trained.items() for key, value in state.items()}
    save_file(weights, WEIGHTS)
