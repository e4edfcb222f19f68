"""`inspect_ablated`: a document of a model without some of its heads, and what that does to its answer."""

import math
from collections.abc import Iterable
from typing import Any

import torch

from ...lens import ablate
from ...lens.inputs import log_probability, teacher_forced
from .document import inspect

N_CLASSES = 3  # whose probabilities are compared
SMALLEST = 1e-300  # a probability of 0 has no logarithm


def inspect_ablated(
    predictor: Any, item: Any, heads: Iterable[str], *, name: str = "", language: Any = "en", **options: Any
) -> dict[str, Any]:
    """Return the document of how a model without these heads answers an item; other threads see no change.

    Its `ablation` has the heads and the changes: for the answer of the whole model, or its three likeliest classes,
    the log-probability with all heads (`before`) and without these (`after`).

    Args:
        predictor: What `heedful.load` returns.
        item: What `predict` takes.
        heads: Names as `ablate` takes them, such as "cross.2.5".
        name: As in `inspect`.
        language: As in `inspect`.
        **options: As in `inspect`.
    """
    heads, model = list(heads), predictor.hookable_copy()
    (answer,) = predictor.predict([item], **options)
    before = _logprobs(predictor, item, answer)
    with ablate(model, heads=heads):
        document = inspect(model, item, name=name, language=language, **options)
        after = _logprobs(model, item, answer)
    changes = [{"label": label, "before": logprob, "after": after[label]} for label, logprob in before.items()]
    return {**document, "ablation": {"heads": heads, "changes": changes}}


@torch.inference_mode()
def _logprobs(model: Any, item: Any, answer: Any) -> dict[str, float]:
    """Return the log-probability of an answer in text, or of its likeliest classes; nothing for other answers."""
    if isinstance(answer, str) and model.generates_text and answer:
        forced = teacher_forced(model, item, answer)
        return {answer: float(log_probability(model.module(*forced.inputs), forced.answer))}
    if model.task not in ("classification", "images") or not isinstance(answer, dict):
        return {}
    (classes,) = model.predict([item])
    labels = sorted(answer, key=lambda label: -answer[label])[:N_CLASSES]
    return {label: math.log(max(float(classes[label]), SMALLEST)) for label in labels}
