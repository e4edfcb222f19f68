"""Figures of the decoder at work: one word after another, and the beams of a search. They train the toy translator."""

from functools import cache
from typing import Any

import torch

from ...core import EncoderDecoder
from ...generation import SearchStep, generate
from ...lens.recorder import record
from ..toy import START, VOCABULARY, toy_ids, toy_text, train_toy
from . import figure, rounded

SENTENCES = ("I like money", "I love music", "we like movies")
BEAMS = (1, 2, 3, 4)
LEAST = 0.005  # prefixes that are less likely are not drawn


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
