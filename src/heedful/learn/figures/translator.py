"""Figures of the toy translator: how it writes word by word, the beams of a search, and how it is trained."""

from functools import cache
from typing import Any

import torch

from ...core import EncoderDecoder
from ...generation import SearchStep, generate
from ...lens.recorder import record
from ...training import TrainingConfig
from ...training.optimizers import schedule
from ..toy import START, VOCABULARY, toy_ids, toy_pairs, toy_text, train_toy
from . import figure, rounded

SENTENCES = ("I like money", "I love music", "we like movies")
BEAMS = (1, 2, 3, 4)
LEAST = 0.005  # prefixes that are less likely are not drawn
STEPS, WARMUP, D_MODEL = 100, 40, 64
PEAK = (D_MODEL * WARMUP) ** -0.5  # of the paper's schedule
SNAPSHOTS = (1, 5, 10, 15, 20, 30, 40, 60, 80, 100)


@cache
def translator() -> EncoderDecoder:
    """Return the toy translator, trained once."""
    return train_toy()


@figure("word-by-word")
@torch.no_grad()
def word_by_word(language: str) -> dict[str, Any]:
    """Return for each step of greedy search what is written, the logits of the next word, and the cross-attention."""
    model = translator()
    return {"words": VOCABULARY, "sentences": [_written(model, sentence) for sentence in SENTENCES]}


def _written(model: EncoderDecoder, sentence: str) -> dict[str, Any]:
    source = torch.tensor([toy_ids(sentence)])
    tokens = generate(model, source, beam=1)[0][0].tokens
    with record(model) as recording:
        logits = model(source, torch.tensor([[START, *tokens]]))[0]
    return {
        "source": [VOCABULARY[index] for index in source[0]],
        "written": [VOCABULARY[index] for index in tokens],
        "logits": rounded(logits),
        "attention": rounded(recording.cross[0][0].mean(dim=0)),  # (T, S) over the heads
    }


@figure("beam-tree")
def beam_tree(language: str) -> dict[str, Any]:
    """Return the tree of prefixes that each width of a beam search compares."""
    trees: dict[str, list[list[dict[str, Any]]]] = {sentence: [] for sentence in SENTENCES}
    for beam in BEAMS:
        traces: list[list[SearchStep]] = []
        generate(translator(), [toy_ids(sentence) for sentence in SENTENCES], beam=beam, search_trace=traces)
        for sentence, trace in zip(SENTENCES, traces, strict=True):
            trees[sentence].append(_nodes(trace))
    return {"beams": BEAMS, "trees": [{"source": sentence, "nodes": nodes} for sentence, nodes in trees.items()]}


def _nodes(trace: list[SearchStep]) -> list[dict[str, Any]]:
    """Return the prefixes that are likely enough, each with the index of its parent: -1 is the start."""
    nodes: list[dict[str, Any]] = []
    open_prefixes: list[int | None] = [-1]
    for step in trace:
        following: list[int | None] = []
        for outcome in step:
            candidate, parent = outcome.candidate, open_prefixes[outcome.candidate.beam]
            likely = parent is not None and torch.tensor(candidate.total).exp() >= LEAST
            if outcome.outcome == "open":
                following.append(len(nodes) if likely else None)
            if likely:
                nodes.append(
                    {
                        "parent": parent,
                        "word": toy_text([candidate.token]) or VOCABULARY[candidate.token],
                        "logprob": round(candidate.logprob, 4),
                        "total": round(candidate.total, 4),
                        "outcome": outcome.outcome,
                    }
                )
        open_prefixes = following
    return nodes


# The paper's learning rate, by the schedule that `heedful train` uses.
_CONFIG = TrainingConfig(schedule="inverse_sqrt", warmup_steps=WARMUP, learning_rate=PEAK, steps=4 * STEPS)
PAPER_RATE = schedule(_CONFIG, STEPS)
RUNS: dict[str, dict[str, Any]] = {
    "warmup": {"rate": PAPER_RATE},
    "none": {"rate": lambda step: PEAK},
    "smoothing": {"rate": PAPER_RATE, "label_smoothing": 0.1},
}


@cache
def run_of(name: str) -> dict[str, Any]:
    """Train with the settings of a run; return its losses, its rates and its translations at the steps of SNAPSHOTS."""
    settings = RUNS[name]
    losses: list[float] = []
    translations: list[list[str]] = []

    def on_step(step: int, model: EncoderDecoder, loss: float) -> None:
        losses.append(round(loss, 3))
        if step in SNAPSHOTS:
            answers = generate(model, [toy_ids(sentence) for sentence in SENTENCES], max_new_tokens=8)
            translations.append([toy_text(best.tokens) for best, *_ in answers])

    train_toy(STEPS, on_step=on_step, **settings)
    rates = [round(settings["rate"](step), 5) for step in range(1, STEPS + 1)]
    return {"losses": losses, "rates": rates, "translations": translations}


@figure("training-run")
def training_run(language: str) -> dict[str, Any]:
    """Return the three runs, the sentences with their right translations, and which of them was never trained on."""
    trained = {pair.source for pair in toy_pairs()}
    pairs = toy_pairs() + toy_pairs(held_out=True)
    return {
        "steps": SNAPSHOTS,
        "sentences": [
            {
                "source": sentence,
                "right": [pair.target for pair in pairs if pair.source == sentence],
                "trained": sentence in trained,
            }
            for sentence in SENTENCES
        ],
        "runs": {name: run_of(name) for name in RUNS},
    }
