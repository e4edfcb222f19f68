"""A model that writes, at work: its answer is read once more, to see what went on while each token was written.

The answer is the one that `predict` finds, with all that the search considered on the way; or a given one.

Shapes: T tokens read, S source tokens, V vocabulary.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ...data.pairs import tidy
from ...errors import ConfigError, DataError
from ...generation import GenerationConfig, Hypothesis, SearchStep
from ...generation.runners import runner_of
from ...lens.alignment import predicting_rows
from ...lens.document import kind_of_weights
from ...lens.tokens import token_text, tokens_of
from ...lens.trace import hookable_copy, trace
from ..predictor import plain, within
from .alignment import WordSequence, alignment
from .document import EMPTY, Inspection, check_options

if TYPE_CHECKING:
    from ..language_model import CausalLanguageModel
    from ..text_generator import TextGenerator

TOP = 10  # tokens that might have come next
OPEN, ENDED = "open", "ended"
FATES = {
    OPEN: "kept",
    ENDED: "finished",
    "cut": "finished",
    "below the beam": "pruned",
    "end below the beam": "pruned",
}

SearchTrace = Sequence[SearchStep]  # step by step, as `generate` fills it
Spell = Callable[[Sequence[int]], str]  # the last of some tokens as text


def inspect_seq2seq(
    generator: TextGenerator, item: Any, inspection: Inspection, options: Mapping[str, Any]
) -> dict[str, Any]:
    """Of the answer to a text; or of the `target` that is given, as if the model had written it."""
    source, target = _only_part(generator, item), options.get("target")
    answer = _search(generator, source, options) if target is None else _forced_answer(generator, source, options)
    start, ends = _start_and_ends(generator)
    ids = [start, *answer.tokens]
    source_tokenizer, target_tokenizer = generator.tokenizer, generator.target_tokenizer
    with torch.inference_mode(), trace(module := hookable_copy(generator.module)) as seen:
        logits = module(_row(generator, source), _row(generator, ids[:-1]))[0]
    tokens = tokens_of(target_tokenizer, ids, start=start, ends=ends)
    sources = tokens_of(source_tokenizer, source, ends=ends if source_tokenizer is target_tokenizer else ())
    rows = predicting_rows(seen.recording, 0, len(ids) - 1, len(source))
    sides = (
        WordSequence.of(source_tokenizer, source, sources),
        WordSequence.of(target_tokenizer, ids[1:], tokens[1:]),
    )
    return {
        "kind": "translation",
        "question": item,
        "answer": answer.text,
        "given": target is not None,
        "sequences": {"source": sources, "target": tokens[:-1]},
        "written": [token["text"] for token in tokens[1:]],
        "generation": {
            "steps": _steps(logits, ids, spell := partial(token_text, target_tokenizer, ends=ends)),
            "beam": answer.beam_tree(spell),
        },
        "alignment": alignment(rows, *sides, inspection.arrays, kind_of_weights(seen)),
        **inspection.internals(generator.module, seen),
    }


def inspect_continuation(
    generator: CausalLanguageModel, item: Any, inspection: Inspection, options: Mapping[str, Any]
) -> dict[str, Any]:
    """Of a text and what follows it."""
    if "target" in options:
        check_options(options, generator)
    prompt = _only_part(generator, item)
    answer = _continue(generator, prompt, options)
    ids, (start, ends) = [*prompt, *answer.tokens], _start_and_ends(generator)
    with torch.inference_mode(), trace(module := hookable_copy(generator.module)) as seen:
        logits = module(_row(generator, ids[:-1]))[0]
    tokens = tokens_of(generator.tokenizer, ids, start=start, ends=ends)
    return {
        "kind": "writing",
        "question": item,
        "answer": answer.text,
        "sequences": {"target": tokens[:-1]},
        "written": [token["text"] for token in tokens[1:]],
        "prompt": len(prompt),
        "generation": {
            "steps": _steps(logits, ids, spell := partial(token_text, generator.tokenizer, ends=ends)),
            "beam": answer.beam_tree(lambda written: spell([*prompt, *written])),
        },
        **inspection.internals(generator.module, seen),
    }


def _steps(logits: Tensor, ids: Sequence[int], spell: Spell) -> list[dict[str, Any]]:
    """What each row (T, V) gave to the token that came after it, and to those that might have."""
    logprobs = logits.float().log_softmax(dim=-1).cpu()
    top = logprobs.exp().topk(min(TOP, logprobs.shape[-1]))
    steps = []
    for row, (indices, shares) in enumerate(zip(top.indices.tolist(), top.values.tolist(), strict=True)):
        read, came = ids[: row + 1], ids[row + 1]
        texts = {index: spell([*read, index]) for index in (came, *indices)}
        steps.append(
            {
                "token": texts[came],
                "logprob": logprobs[row, came].item(),
                "top": [[texts[index], share] for index, share in zip(indices, shares, strict=True)],
            }
        )
    return steps


def _row(generator: TextGenerator, ids: Sequence[int]) -> Tensor:
    return torch.tensor([ids], device=next(generator.module.parameters()).device)


@dataclass(frozen=True)
class InspectedAnswer:
    """An answer's text and its tokens, the end among them where it came to one; no search where it was given."""

    text: str
    tokens: list[int]
    best: Hypothesis | None = None
    search_trace: SearchTrace = ()
    config: GenerationConfig | None = None

    def beam_tree(self, spell: Spell) -> dict[str, Any] | None:
        """The tree of the search, where it had more than one beam."""
        if self.best is None or self.config is None or self.config.beam == 1:
            return None
        return beam_tree(self.search_trace, self.tokens, self.best, self.config, spell)


def _only_part(generator: TextGenerator, item: Any) -> list[int]:
    """The ids of a text that is read as one; a page shows one answer."""
    parts = generator.inputs(plain(item))
    if not parts:
        raise DataError(EMPTY)
    if len(parts) > 1:
        raise DataError(
            f"the text is answered in {len(parts)} parts, sentence by sentence or as much as fits, and a page shows "
            "one of them; look at each on its own"
        )
    return list(parts[0])


def _search(generator: TextGenerator, ids: list[int], options: Mapping[str, Any]) -> InspectedAnswer:
    """The best answer to a source."""
    config, traces = generator.generation_config(options), list[list[SearchStep]]()
    ((best, *_),) = generator.generate([ids], config, traces)
    tokens = [*best.tokens, *end_of(traces[0], best, config)]
    return InspectedAnswer(generator.answer(ids, best).text, tokens, best, traces[0], config)


def _continue(generator: CausalLanguageModel, ids: list[int], options: Mapping[str, Any]) -> InspectedAnswer:
    """The best that follows a text. It must fit what the model sees at once: beyond, it forgets what it has read.

    Where nobody has said how long it is to be, it is as long as fits.
    """
    answer, limit = _search(generator, ids, options), generator.limit
    n_read = len(ids) + len(answer.tokens) - 1  # the last token is only written
    if limit is None or n_read <= limit:
        return answer
    fitting = limit - len(ids) + 1
    if "max_new_tokens" not in options and fitting > 0:
        warnings.warn(
            f"this model sees {limit:,} tokens at once, and the text has {len(ids):,} of them: the answer is cut after "
            f"{fitting:,} new ones, so that the page shows all that the model did",
            stacklevel=2,
        )
        return _search(generator, ids, {**options, "max_new_tokens": fitting})
    raise DataError(
        f"text and answer have {n_read:,} tokens together, and this model sees {limit:,} at once, so no page could "
        f"show all it did; ask for at most {fitting:,} new ones (max_new_tokens)"
    )


def _forced_answer(generator: TextGenerator, ids: list[int], options: Mapping[str, Any]) -> InspectedAnswer:
    """A person's answer, the `target`, in the tokens that training would have had."""
    if strange := [option for option in options if option != "target"]:
        raise ConfigError(
            f"a given target excludes searching for an answer: leave out {' and '.join(map(repr, strange))}, "
            "or leave out 'target'"
        )
    text = tidy(plain(options["target"]))
    tokens, (_, ends) = generator.target_tokenizer.encode(text), _start_and_ends(generator)
    tokens = tokens if tokens[-1:] and tokens[-1] in ends else [*tokens, ends[0]]
    forced = generator.forced()
    tokens = tokens if tokens[: len(forced)] == forced else [*forced, *tokens]
    try:
        return InspectedAnswer(text, within(tokens, runner_of(generator.module).room(generator.module, len(ids))))
    except DataError as error:
        raise DataError(f"the target: {error}") from None


def _start_and_ends(generator: TextGenerator) -> tuple[int, tuple[int, ...]]:
    """The token that every answer begins behind, and those that may end it."""
    tokens = generator.special_tokens()
    start, end = tokens["start"], tokens["end"]
    return 0 if start is None else start, (end,) if isinstance(end, int) else tuple(end)


def end_of(search_trace: SearchTrace, best: Hypothesis, config: GenerationConfig) -> list[int]:
    """The token that ended an answer, of those that may; none where the limit cut it off."""
    if not best.finished:
        return []
    step = len(best.tokens) + 1
    last = [outcome.candidate for outcome in search_trace[step - 1] if outcome.outcome == ENDED]
    return [next(each.token for each in last if _score(each.total, step, config) == best.score)]


def beam_tree(
    search_trace: SearchTrace, written: Sequence[int], best: Hypothesis, config: GenerationConfig, spell: Spell
) -> dict[str, Any]:
    """Every candidate of a search, as the page shows it; those on the way to what was `written` are "chosen"."""
    nodes: list[dict[str, Any]] = [
        {"id": 0, "parent": None, "step": 0, "text": "", "logprob": 0.0, "score": 0.0, "fate": "kept"}
    ]
    prefixes: list[tuple[int, ...]] = [()]  # all tokens of each node
    beams = [0]  # the nodes that the next step goes on from
    for step, outcomes in enumerate(search_trace, 1):
        before, beams = beams, []
        for outcome in outcomes:
            candidate = outcome.candidate
            parent = before[candidate.beam]
            if outcome.outcome == OPEN:
                beams.append(len(nodes))
            prefixes.append((*prefixes[parent], candidate.token))
            nodes.append(
                {
                    "id": len(nodes),
                    "parent": parent,
                    "step": step,
                    "text": spell(prefixes[-1]),
                    "logprob": nodes[parent]["logprob"] + candidate.logprob,
                    "score": _score(candidate.total, step, config),
                    "fate": FATES[outcome.outcome],
                }
            )
    place: int | None = next(
        node["id"]
        for node, prefix in zip(nodes, prefixes, strict=True)
        if node["fate"] == "finished" and prefix == tuple(written) and node["score"] == best.score
    )
    while place is not None:
        nodes[place]["fate"], place = "chosen", nodes[place]["parent"]
    return {
        "width": config.beam,
        "length_penalty": config.length_penalty,
        "penalty": config.length_penalty_kind,
        "nodes": nodes,
    }


def _score(total: float, length: int, config: GenerationConfig) -> float:
    return total / config.length_normalizer(length)
