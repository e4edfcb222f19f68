"""Where a language model looks while it reads."""

from __future__ import annotations

import torch

from ...data.text_tokenizers import encode
from ...lens.recorder import record
from ...lens.report import AttentionMap
from .continuer import CausalLanguageModel

MOST = 24  # tokens of a map


@torch.inference_mode()
def look(continuer: CausalLanguageModel, text: str) -> AttentionMap:
    """What each of the first tokens of a text gives to those before it, by the heads of the last layer."""
    module, tokenizer = continuer.module, continuer.tokenizer
    ids = encode(tokenizer, text)[: min(MOST, continuer.context)]
    last = len(module.decoder.layers) - 1
    with record(module, layers=last) as recording:
        module(torch.tensor([ids], device=next(module.parameters()).device))
    names = [visible(tokenizer.token_of(index)) for index in ids]
    return AttentionMap(visible(tokenizer.decode(ids)), names, names, recording.decoder[last][0].float().cpu().tolist())


def visible(text: str) -> str:
    """On one line, its line ends to be seen."""
    return text.replace("\n", "⏎").replace("\t", "⇥")
