"""The logit lens: what the vocabulary would say after each layer.

Shapes: L layers, B batch, T tokens, V vocabulary.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ..core import Stack, VocabularyHead
from ..errors import RecordingError
from .document import Arrays
from .inputs import evaluated, teacher_forced
from .intervention import Place, collect, intervene, stacks_of
from .trace import Trace

N_LIKELIEST = 5  # tokens that a document has for each layer and position
MOST_LOGITS = 100_000_000  # that are computed for a document: seconds for a base model


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
    if not has_vocabulary(module):
        kind = type(getattr(module, "head", None)).__name__
        raise RecordingError(f"the logit lens needs a head over a vocabulary, not a {kind}")
    places = [Place(name, layer, "layer") for layer in range(len(stack.layers))]
    entry: list[Tensor] = []
    first = {places[0]: lambda x, _: entry.append(x)}
    with intervene(module, first), collect(module, places) as streams:
        module(*forced.inputs)
    layers = [*entry, *(stream for place in places for stream in streams[place])]
    return LayerLogits(torch.stack(list(_layer_logits(module, stack, layers))), forced.spell)


def has_vocabulary(module: Any) -> bool:
    """Return whether a module's head gives logits over a vocabulary."""
    return isinstance(getattr(module, "head", None), VocabularyHead)


def _layer_logits(module: Any, stack: Stack, streams: Iterable[Tensor]) -> Iterator[Tensor]:
    return (module.head(stack.norm(stream)) for stream in streams)


@torch.inference_mode()
def likeliest_tokens(
    module: Any, trace: Trace, spell: Callable[[int], str] | None, arrays: Arrays
) -> dict[str, Any] | None:
    """Describe the likeliest tokens of a traced run after each layer, as `logit_lens` gives them.

    `top` (L + 1, T, 5) are indices of `tokens`, `shares` their probabilities. None without a head over a vocabulary, or
    if the input is too long for so many layers and tokens of the vocabulary.
    """
    if spell is None or not trace.streams or not has_vocabulary(module):
        return None
    name, stack = list(stacks_of(module).items())[-1]
    streams = trace.streams[name]
    if len(streams) * len(streams[0]) * len(module.head.weight) > MOST_LOGITS:
        return None
    best = [
        logits.float().softmax(dim=-1).topk(min(N_LIKELIEST, logits.shape[-1]))
        for logits in _layer_logits(module, stack, streams)
    ]
    ids, top = torch.stack([each.indices for each in best]).unique(return_inverse=True)
    return {
        "tokens": [spell(index) for index in ids.tolist()],
        "top": arrays.put(top),
        "shares": arrays.put(torch.stack([each.values for each in best])),
    }
