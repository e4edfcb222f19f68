"""What a search considered, as plain data: the tree of its beams, and the way through it that became the answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...generation import GenerationConfig, Hypothesis, SearchStep

History = Sequence[SearchStep]  # step by step, as `generate` fills it
Spell = Callable[[Sequence[int]], str]  # the last of some tokens as text

OPEN, ENDED = "open", "ended"
FATES = {
    OPEN: "kept",
    ENDED: "finished",
    "cut": "finished",
    "below the beam": "pruned",
    "end below the beam": "pruned",
}


@dataclass
class _Node:
    """A candidate: all tokens as far as it goes, and what they are worth."""

    number: int
    parent: _Node | None
    tokens: tuple[int, ...]
    logprob: float
    score: float
    fate: str


def end_of(history: History, found: Hypothesis, words: GenerationConfig) -> list[int]:
    """The token that ended an answer, of those that may; none where the limit cut it off."""
    if not found.finished:
        return []
    step = len(found.tokens) + 1
    last = [fate.candidate for fate in history[step - 1] if fate.outcome == ENDED]
    return [next(each.token for each in last if _score(each.total, step, words) == found.score)]


def beam_tree(
    history: History, written: Sequence[int], found: Hypothesis, words: GenerationConfig, spell: Spell
) -> Any:
    """Every candidate of a search, as the page shows it; those on the way to what was `written` are "chosen"."""
    nodes = [_Node(0, None, (), 0.0, 0.0, "kept")]
    going = [nodes[0]]
    for step, fates in enumerate(history, 1):
        before, going = going, []
        for fate in fates:
            one = fate.candidate
            parent = before[one.beam]
            score, logprob = _score(one.total, step, words), parent.logprob + one.logprob
            nodes.append(_Node(len(nodes), parent, (*parent.tokens, one.token), logprob, score, FATES[fate.outcome]))
            if fate.outcome == OPEN:
                going.append(nodes[-1])
    _choose(nodes, tuple(written), found)
    return {
        "width": words.beam,
        "length_penalty": words.length_penalty,
        "penalty": words.length_penalty_kind,
        "nodes": [_shown(node, spell) for node in nodes],
    }


def _choose(nodes: Sequence[_Node], written: tuple[int, ...], found: Hypothesis) -> None:
    finished = [node for node in nodes if node.fate == "finished" and node.tokens == written]
    node: _Node | None = next(node for node in finished if node.score == found.score)
    while node is not None:
        node.fate, node = "chosen", node.parent


def _score(total: float, length: int, words: GenerationConfig) -> float:
    return total / words.length_normalizer(length)


def _shown(node: _Node, spell: Spell) -> dict[str, Any]:
    return {
        "id": node.number,
        "parent": None if node.parent is None else node.parent.number,
        "step": len(node.tokens),
        "text": spell(node.tokens) if node.tokens else "",
        "logprob": node.logprob,
        "score": node.score,
        "fate": node.fate,
    }
