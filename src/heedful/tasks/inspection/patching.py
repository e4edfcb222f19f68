"""`inspect_patched`: how much of an answer each activation brings back while the model reads another text."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ...errors import ConfigError, DataError
from ...lens import patch
from ...lens.intervention import stacks_of
from ...lens.logit_lens import has_vocabulary
from ...lens.tokens import token_text, tokens_of
from .generation import only_part

N_CANDIDATES = 5  # of each of the two runs


def check_patchable(predictor: Any) -> None:
    """Raise ConfigError or RecordingError for a model that has no next token to measure or no layers to patch."""
    if not predictor.generates_text or not has_vocabulary(predictor.module):
        raise ConfigError(f"patching needs a model that writes text, and this one is for {predictor.task}")
    stacks_of(predictor.module)


def patching_tokens(document: Mapping[str, Any], stack: str | None = None) -> int:
    """Return how many tokens `inspect_patched` reads at most: all of them, once for each layer and position."""
    sequences = document["sequences"]
    positions = len(sequences["source" if stack == "encoder" and "source" in sequences else "target"])
    return len(document["layers"]) * positions * sum(map(len, sequences.values()))


@torch.inference_mode()
def inspect_patched(
    predictor: Any,
    document: Mapping[str, Any],
    text: str,
    *,
    step: int | None = None,
    token: int | None = None,
    against: int | None = None,
    stack: str | None = None,
    part: str = "layer",
) -> dict[str, Any]:
    """Patch activations of a document's run into a run of the same model over another text; see `heedful.lens.patch`.

    Both runs read the answer of the document up to a step. What is measured is the log-probability of the next token,
    or its difference to that of another one. `effects` are by layer and position, `candidates` the likeliest next
    tokens of the two runs, with their probabilities in both.

    Args:
        predictor: What `heedful.load` returns for a model that writes text.
        document: What `inspect` returns for the clean text.
        text: The corrupted text, of as many tokens.
        step: The place in the document's `written` of the token that is measured; the first one that the corrupted
            run would not write by default.
        token: The id of the token that is measured; by default the written one, against what the corrupted run finds
            likeliest.
        against: The id of the token whose log-probability is subtracted.
        stack: As in `patch`.
        part: As in `patch`.

    >>> clean = inspect(translator, "고양이가 쥐를 잡았다.")
    >>> inspect_patched(translator, clean, "쥐가 고양이를 잡았다.", stack="encoder")["effects"]
    """
    check_patchable(predictor)
    rows, first = _inputs(predictor, document, text)
    module = predictor.hookable_copy().module
    logits = module(*rows)
    written, likeliest = rows[-1][0, 1:].tolist(), logits[1].argmax(dim=-1).tolist()
    last = len(document["written"]) - 1
    if step is None:
        step = next((place for place in range(first, last) if written[place] != likeliest[place]), last)
    if not first <= step <= last:
        raise DataError(f"there is no step {step} to measure; this answer has the steps {first} to {last}")
    shares = logits[:, step].float().softmax(dim=-1)
    if token is None:
        token = written[step] if step < last else int(shares[0].argmax())
        against = None if likeliest[step] == token else likeliest[step]
    for index in (token, against or 0):
        if not 0 <= index < shares.shape[1]:
            raise DataError(f"there is no token {index}; the ids of this vocabulary are 0 to {shares.shape[1] - 1}")
    clean, corrupted = ((*(x[[run]] for x in rows[:-1]), rows[-1][[run], : step + 1]) for run in range(2))
    result = patch(module, clean, corrupted, token, against=against, stack=stack, part=part)
    stack = stack or "decoder"
    ends = predictor.tokens.end
    spell = partial(token_text, predictor.target_tokenizer, ends=ends)
    best = shares.topk(min(N_CANDIDATES, shares.shape[1])).indices.flatten().tolist()
    candidates = sorted({token, against or token, *best}, key=lambda index: -float(shares[:, index].max()))
    if stack == "encoder":
        tokens = tokens_of(predictor.tokenizer, corrupted[0][0].tolist(), ends=ends)
    else:
        start = predictor.tokens.start or 0
        tokens = tokens_of(predictor.target_tokenizer, corrupted[-1][0].tolist(), start=start, ends=ends)
    return {
        "input": text,
        "step": step,
        "token": token,
        "against": against,
        "stack": stack,
        "part": part,
        "candidates": [
            {"id": index, "text": spell([*written[:step], index]), "clean": float(p), "corrupted": float(q)}
            for index in candidates
            for p, q in [shares[:, index]]
        ],
        "first_step": first,
        "tokens": [each["text"] for each in tokens],
        "clean": result.clean,
        "corrupted": result.corrupted,
        "effects": result.effects.tolist(),
    }


def _inputs(predictor: Any, document: Mapping[str, Any], text: str) -> tuple[list[Tensor], int]:
    """Return the module's inputs for both runs, (2, T) each, and the first step that a measure may be of."""
    device = next(predictor.module.parameters()).device
    ids = {name: entry["ids"] for name, entry in document["entries"].items()}
    n_prompt = document.get("prompt")
    clean = ids["target"][:n_prompt] if n_prompt else ids["source"]
    corrupted = only_part(predictor, text)
    if len(clean) != len(corrupted):
        first, second = (
            f"{len(row)} ({' | '.join(token['text'] for token in tokens_of(predictor.tokenizer, row))})"
            for row in (clean, corrupted)
        )
        raise DataError(
            f"patching needs two texts with the same number of tokens, but the first has {first}, the second {second}; "
            "use words with as many tokens"
        )
    if n_prompt:
        return [torch.tensor([ids["target"], [*corrupted, *ids["target"][n_prompt:]]], device=device)], n_prompt - 1
    return [torch.tensor([clean, corrupted], device=device), torch.tensor([ids["target"]] * 2, device=device)], 0
