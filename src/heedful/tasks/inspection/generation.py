"""Inspects a model that generates text: its answer is read once more, and every step of it is shown.

The answer is the one that `predict` returns, with everything that the search considered; or a given one.

Shapes: T target tokens, S source tokens, V vocabulary; J target words, I source words.
"""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from ...data.pairs import tidy
from ...data.published_tokenizer import PublishedTokenizer
from ...data.tokenizer import Tokenizer
from ...errors import ConfigError, DataError
from ...generation import GenerationConfig, GenerationEngine, Hypothesis, SearchStep
from ...generation.runners import DecoderOnlyRunner, runner_of
from ...lens.alignment import Head, best_links, predicting_rows, with_means, word_weights
from ...lens.document import Arrays, Kind, kind_of_weights
from ...lens.inputs import TeacherForced
from ...lens.tokens import TokenDict, token_text, tokens_of
from ...lens.trace import hookable_copy, trace
from ..predictor import plain, within
from .document import EMPTY, Inspection, check_options

if TYPE_CHECKING:
    from ..text_generator import TextGenerator

N_LIKELIEST = 10  # tokens that are shown for each step
OPEN, ENDED = "open", "ended"
FATES = {
    OPEN: "kept",
    ENDED: "finished",
    "cut": "finished",
    "below the beam": "pruned",
    "end below the beam": "pruned",
}

SearchTrace = Sequence[SearchStep]  # as the engine fills it, step by step
Spell = Callable[[Sequence[int]], str]  # the text of the last of some tokens
WordList = tuple[list[str], list[int | None]]  # words, and for each token the index of its word, if it has one


class InspectedAnswer(NamedTuple):
    """An answer's text, its tokens with the end token if there is one, and the tree of its search if it had a beam."""

    text: str
    tokens: list[int]
    beam: dict[str, Any] | None = None


def inspect_generator(
    generator: TextGenerator, item: Any, inspection: Inspection, options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the document of the answer to a text; for an encoder-decoder, the option `target` is the answer."""
    continues, target = runner_of(generator.module) is DecoderOnlyRunner, options.get("target")
    if continues and target is not None:
        check_options(options, generator)
    source = only_part(generator, item)
    prompt = source if continues else []
    start, ends = generator.tokens.start or 0, generator.tokens.end
    spell = partial(token_text, generator.target_tokenizer, ends=ends)
    if target is not None:
        answer = _forced_answer(generator, source, options)
    else:
        search = _continue if continues else _search
        answer = search(generator, source, options, lambda written: spell([*prompt, *written]))
    ids = [*(source if continues else [start]), *answer.tokens]
    rows = [ids[:-1]] if continues else [source, ids[:-1]]
    device = next(generator.module.parameters()).device
    with torch.inference_mode(), trace(module := hookable_copy(generator.module)) as seen:
        logits = module(*(torch.tensor([row], device=device) for row in rows))[0]
    tokens = tokens_of(generator.target_tokenizer, ids, start=start, ends=ends)
    document = {
        "kind": "writing" if continues else "translation",
        "question": item,
        "answer": answer.text,
        "sequences": {"target": tokens[:-1]},
        "written": [token["text"] for token in tokens[1:]],
        "generation": {"steps": _steps(logits, ids, spell), "beam": answer.beam},
    }
    if continues:
        document["prompt"] = len(prompt)
    else:
        tokenizer = generator.tokenizer
        sources = tokens_of(tokenizer, source, ends=ends if tokenizer is generator.target_tokenizer else ())
        by_head = predicting_rows(seen.recording, 0, len(ids) - 1, len(source))
        sides = words_of(tokenizer, source, sources), words_of(generator.target_tokenizer, ids[1:], tokens[1:])
        document["given"] = target is not None
        document["sequences"] = {"source": sources, "target": tokens[:-1]}
        document["alignment"] = alignment(by_head, *sides, inspection.arrays, kind_of_weights(seen))
    return {**document, **inspection.internals(generator.module, seen, lambda index: spell([index]))}


def read_answer(generator: TextGenerator, text: str, answer: str | None) -> TeacherForced:
    """Return a module's inputs to read an answer, which a translator writes and a language model does without."""
    source, ends = only_part(generator, text), generator.tokens.end
    spell = partial(token_text, generator.target_tokenizer, ends=ends)
    if runner_of(generator.module) is DecoderOnlyRunner:
        written = [] if answer is None else only_part(generator, answer)
        rows = [[*source, *written][: -1 if written else None]]
    else:
        forced = None if answer is None else _forced_answer(generator, source, {"target": answer})
        written = (forced or _search(generator, source, {}, lambda ids: spell(ids))).tokens
        rows = [source, [generator.tokens.start or 0, *written[:-1]]]
    device = next(generator.module.parameters()).device
    return TeacherForced(
        tuple(torch.tensor([row], device=device) for row in rows), written, lambda index: spell([index])
    )


def _steps(logits: Tensor, ids: Sequence[int], spell: Spell) -> list[dict[str, Any]]:
    """Return for each row of logits (T, V) the token that followed, and the likeliest ones."""
    logprobs = logits.float().log_softmax(dim=-1).cpu()
    top = logprobs.exp().topk(min(N_LIKELIEST, logprobs.shape[-1]))
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


def only_part(generator: TextGenerator, item: Any) -> list[int]:
    """Return the ids of a text that is answered as one part: a page shows one answer."""
    parts = generator.inputs(plain(item))
    if not parts:
        raise DataError(EMPTY)
    if len(parts) > 1:
        raise DataError(
            f"the text is answered in {len(parts)} parts, sentence by sentence or as much as fits, and a page shows "
            "one of them; inspect each part separately"
        )
    generator.warn_about(parts)
    return list(parts[0])


def _search(generator: TextGenerator, ids: list[int], options: Mapping[str, Any], spell: Spell) -> InspectedAnswer:
    """Return the best answer to an input; `spell` returns the text of the last of some of its tokens."""
    config, steps = generator.generation_config(options), list[SearchStep]()
    (request,) = generator.requests([ids], config)
    request.search_trace = steps
    ((best, *_),) = GenerationEngine(generator.module, max_wait_steps=None).generate([request])
    tokens = [*best.tokens, *end_of(steps, best, config)]
    tree = None if config.beam == 1 else beam_tree(steps, tokens, best, config, spell)
    return InspectedAnswer(generator.answer(ids, best).text, tokens, tree)


def _continue(generator: TextGenerator, ids: list[int], options: Mapping[str, Any], spell: Spell) -> InspectedAnswer:
    """Return the best continuation of a text, no longer than what the model sees at once.

    A page can show nothing beyond that. The answer is cut there, unless the options ask for a longer one.
    """
    answer, limit = _search(generator, ids, options, spell), generator.limit
    n_read = len(ids) + len(answer.tokens) - 1  # the last token is written and not read
    if limit is None or n_read <= limit:
        return answer
    fitting = limit - len(ids) + 1
    if "max_new_tokens" not in options and fitting > 0:
        warnings.warn(
            f"this model sees {limit:,} tokens at once, and the text has {len(ids):,} of them: the answer is limited "
            f"to {fitting:,} new tokens, so that the page can show all of it",
            stacklevel=2,
        )
        return _search(generator, ids, {**options, "max_new_tokens": fitting}, spell)
    raise DataError(
        f"text and answer have {n_read:,} tokens together, and this model sees {limit:,} at once, so no page could "
        f"show everything; ask for at most {fitting:,} new tokens (max_new_tokens)"
    )


def _forced_answer(generator: TextGenerator, ids: list[int], options: Mapping[str, Any]) -> InspectedAnswer:
    """Return the answer that the option `target` gives, in the tokens that training would use."""
    if extra := [option for option in options if option != "target"]:
        raise ConfigError(
            f"with a target, no answer is generated: leave out {' and '.join(map(repr, extra))}, or leave out 'target'"
        )
    text, forced, ends = tidy(plain(options["target"])), generator.forced(), generator.tokens.end
    tokens = generator.target_tokenizer.encode(text)
    tokens = tokens if tokens[-1:] and tokens[-1] in ends else [*tokens, ends[0]]
    tokens = tokens if tokens[: len(forced)] == forced else [*forced, *tokens]
    try:
        return InspectedAnswer(text, within(tokens, runner_of(generator.module).room(generator.module, len(ids))))
    except DataError as error:
        raise DataError(f"the target: {error}") from None


def end_of(search_trace: SearchTrace, best: Hypothesis, config: GenerationConfig) -> list[int]:
    """Return the end token of an answer, of several possible ones; none where the limit cut it off."""
    if not best.finished:
        return []
    step = len(best.tokens) + 1
    last = [outcome.candidate for outcome in search_trace[step - 1] if outcome.outcome == ENDED]
    return [next(each.token for each in last if _score(each.total, step, config) == best.score)]


def beam_tree(
    search_trace: SearchTrace, written: Sequence[int], best: Hypothesis, config: GenerationConfig, spell: Spell
) -> dict[str, Any]:
    """Return every candidate of a search as a tree; those on the path to the `written` tokens are "chosen"."""
    nodes: list[dict[str, Any]] = [
        {"id": 0, "parent": None, "step": 0, "text": "", "logprob": 0.0, "score": 0.0, "fate": "kept"}
    ]
    prefixes: list[tuple[int, ...]] = [()]  # all tokens of each node
    beams = [0]  # the nodes that the next step extends
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


def words_of(tokenizer: Tokenizer | PublishedTokenizer, ids: Sequence[int], tokens: Sequence[TokenDict]) -> WordList:
    """Return the words of a sentence from its ids and their tokens."""
    places = [token["word"] for token in tokens]
    texts: dict[int, str] = {}
    for text, start, _ in tokenizer.readable(ids):
        if (place := places[start]) is not None:
            texts[place] = texts.get(place, "") + text
    return [unicodedata.normalize("NFC", texts[place]).strip() for place in sorted(texts)], places


def alignment(
    rows: Mapping[Head, Tensor], source: WordList, target: WordList, arrays: Arrays, kind: Kind
) -> dict[str, Any] | None:
    """Return the alignment maps between words, from the weights (T, S) of each head; None without words.

    Row i of the weights predicted token i of the target. The map with the highest `agreement` is chosen, since no true
    alignment is known; the means come first, and of equal maps the first is taken.
    """
    (source_words, source_places), (target_words, target_places) = source, target
    if not source_words or not target_words:
        return None
    by_head = {head: word_weights(each.float().cpu(), source_places, target_places) for head, each in rows.items()}
    maps = with_means(by_head)
    ordered = sorted(maps, key=lambda head: (head.head is not None, head.layer is not None, head.layer, head.head))
    chosen = max(ordered, key=lambda head: agreement(maps[head]))
    return {
        "source": source_words,
        "target": target_words,
        "maps": [{"layer": head.layer, "head": head.head, "weights": arrays.put(maps[head], kind)} for head in ordered],
        "chosen": ordered.index(chosen),
        "links": sorted(map(list, best_links(maps[chosen]))),
    }


def agreement(weights: Tensor) -> float:
    """Return the share of target words that are the best target word of their own best source word.

    It is small for a head that always looks at the same word. The weights are (J, I).
    """
    forth, back = weights.argmax(dim=1), weights.argmax(dim=0)
    return float((back[forth] == torch.arange(len(weights))).float().mean())
