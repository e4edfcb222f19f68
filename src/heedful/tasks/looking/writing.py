"""A model that writes, at work: its answer is read once more, to see what went on while each token was written.

Shapes: T tokens read, S source tokens, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ...lens.alignment import predicting_rows
from ...lens.document import kind_of_weights
from ...lens.tokens import TokenDict, spelt, tokens_of
from ...lens.trace import trace, twin
from ..language_model import CausalLanguageModel
from ..text_to_text import TextToTextGenerator
from ..translation.predictor import Translator
from .alignment import Side, alignment
from .answering import answered, continued, given_to, only_part, start_and_ends
from .assembling import Notes, only
from .beams import Spell

TOP = 10  # tokens that might have come next


def see_translation(
    writer: Translator | TextToTextGenerator, item: Any, notes: Notes, words: Mapping[str, Any]
) -> dict[str, Any]:
    """Of the answer to a text; or of the `target` that is given, as if the model had written it."""
    source = only_part(writer, item)
    target = words.get("target")
    answer = answered(writer, source, words) if target is None else given_to(writer, source, words)
    start, ends = start_and_ends(writer)
    ids = [start, *answer.tokens]
    with torch.inference_mode(), trace(module := twin(writer.module)) as seen:
        logits = module(_row(writer, source), _row(writer, ids[:-1]))[0]
    tokens = tokens_of(writer.target_tokenizer, ids, start=start, ends=ends)
    sources = tokens_of(writer.tokenizer, source, ends=ends if writer.tokenizer is writer.target_tokenizer else ())
    rows = predicting_rows(seen.recording, 0, len(ids) - 1, len(source))
    both = Side.of(writer.tokenizer, source, sources), Side.of(writer.target_tokenizer, ids[1:], tokens[1:])
    return {
        "kind": "translation",
        "question": item,
        "answer": answer.text,
        "given": target is not None,
        "sequences": {"source": sources, "target": tokens[:-1]},
        "written": _texts(tokens[1:]),
        "generation": {
            "steps": _steps(logits, ids, spell := partial(spelt, writer.target_tokenizer, ends=ends)),
            "beam": answer.beam(spell),
        },
        "alignment": alignment(rows, *both, notes.arrays, kind_of_weights(seen)),
        **notes.inside(writer.module, seen),
    }


def see_continuation(
    continuer: CausalLanguageModel, item: Any, notes: Notes, words: Mapping[str, Any]
) -> dict[str, Any]:
    """Of a text and what follows it."""
    if "target" in words:
        only(words, continuer)
    prompt = only_part(continuer, item)
    answer = continued(continuer, prompt, words)
    ids, (start, ends) = [*prompt, *answer.tokens], start_and_ends(continuer)
    with torch.inference_mode(), trace(module := twin(continuer.module)) as seen:
        logits = module(_row(continuer, ids[:-1]))[0]
    tokens = tokens_of(continuer.tokenizer, ids, start=start, ends=ends)
    return {
        "kind": "writing",
        "question": item,
        "answer": answer.text,
        "sequences": {"target": tokens[:-1]},
        "written": _texts(tokens[1:]),
        "prompt": len(prompt),
        "generation": {
            "steps": _steps(logits, ids, spell := partial(spelt, continuer.tokenizer, ends=ends)),
            "beam": answer.beam(lambda written: spell([*prompt, *written])),
        },
        **notes.inside(continuer.module, seen),
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


def _texts(tokens: Sequence[TokenDict]) -> list[str]:
    return [token["text"] for token in tokens]


def _row(writer: Translator | TextToTextGenerator | CausalLanguageModel, ids: Sequence[int]) -> Tensor:
    return torch.tensor([ids], device=next(writer.module.parameters()).device)
