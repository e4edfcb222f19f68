"""The logit lens: what the vocabulary would say after each layer.

Shapes: L layers, B batch, T tokens, V vocabulary.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ..core import VocabularyHead
from ..errors import RecordingError
from .inputs import evaluated, teacher_forced
from .intervention import Place, collect, intervene, stacks_of


@dataclass(frozen=True, eq=False)
class LayerLogits:
    """The logits of the stream before the first layer and after each: (L + 1, B, T, V); the last are the model's."""

    logits: Tensor = field(repr=False)
    spell: Callable[[int], str] | None = field(default=None, repr=False)

    def top(self, k: int = 1, *, row: int = 0) -> list[list[list[tuple[Any, float]]]]:
        """Return by layer and position the k likeliest tokens, as texts if there is a tokenizer, with probabilities."""
        values, indices = self.logits[:, row].float().softmax(dim=-1).topk(k)
        name: Callable[[int], Any] = self.spell or int
        return [
            [[(name(index), share) for index, share in zip(*pair, strict=True)] for pair in zip(*layer, strict=True)]
            for layer in zip(indices.tolist(), values.tolist(), strict=True)
        ]

    def log_probability(self, token: int, *, row: int = 0) -> Tensor:
        """Return the log-probability of a token by layer and position: (L + 1, T)."""
        return self.logits[:, row].float().log_softmax(dim=-1)[..., token]


@torch.no_grad()
def logit_lens(model: Any, inputs: Any) -> LayerLogits:
    """Apply the final norm and the output projection to the stream of every layer, as if it were the last one.

    The stream is the decoder's, or the encoder's where there is no decoder.

    Args:
        model: A module whose head gives logits, or what `heedful.load` returns for a model that writes text.
        inputs: For a module, its argument or a tuple of them. For a predictor, a text, or a text and its answer; a
            translator without an answer writes one, and a language model reads the text.

    >>> heedful.lens.logit_lens(translator, "나는 학생입니다").top(3)[-1]  # as the model itself
    """
    module, forced = evaluated(model), teacher_forced(model, inputs)
    name, stack = list(stacks_of(module).items())[-1]
    head: Any = getattr(module, "head", None)
    if not isinstance(head, VocabularyHead):
        raise RecordingError(f"the logit lens needs a head over a vocabulary, not a {type(head).__name__}")
    places = [Place(name, layer, "layer") for layer in range(len(stack.layers))]
    entry: list[Tensor] = []
    first = {places[0]: lambda x, _: entry.append(x)}
    with intervene(module, first), collect(module, places) as streams:
        module(*forced.inputs)
    layers = [*entry, *(stream for place in places for stream in streams[place])]
    return LayerLogits(torch.stack([head(stack.norm(layer)) for layer in layers]), forced.spell)
