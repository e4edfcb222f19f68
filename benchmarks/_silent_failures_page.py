"""What benchmarks/silent_failures.py shows: the table, and why each of its rows matters."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import nn

import heedful
from _probing import Finding, Outcome
from heedful import core

PAGE = """# Twelve silent failures

Most of these errors raise nothing: a model trains, answers, and is wrong. Each is a test in
`tests/test_silent_failures.py`, over every wiring of the core. Here each is run on torch.nn {torch} and on Heedful,
which is given the same weights wherever torch.nn has the part; where it has none, the few lines that many tutorials
put in its place are run instead ("usual code"). All numbers come from the run: float64 on a CPU, small sizes, no
dropout, in training, in evaluation, and in evaluation without gradients. Where these disagree, the table says so.

{table}

## Why each matters

{reasons}

## Claims, stated rightly

- The feed-forward is two thirds of an encoder *layer*, not of the model. In the base model it holds
  {of_an_encoder_layer} of an encoder layer's parameters, {of_a_decoder_layer} of a decoder layer's, {of_the_stacks}
  of the two stacks', and {of_the_model} of the whole model's, embeddings included.
- It widens four times and narrows again. That is an expansion, not a bottleneck: a bottleneck is narrower inside.
- The memory mask is the source's padding, not a causal mask: every target token may see the whole source.
- Layer normalisation steadies training. It does not prevent over-fitting: dropout and label smoothing are for that.
- Self-attention takes O(n²·d) time. Its memory is O(n² + n·d) where the weights are kept, O(n·d) with a fused
  kernel.

Made by `python benchmarks/silent_failures.py --docs`.
"""

HEADER = "error", "what was probed", "torch.nn.Transformer", "Heedful"

WHY = [
    "The exponent is 2i/d_model, where 2i is the even dimension itself. A loop that steps i by two and writes 2·i "
    "again squares every wavelength. Most dimensions then hardly move over a whole sentence, and the model trains "
    "all the same, only worse.",
    "With an odd width there is one sine more than there are cosines. The usual assignment to every second column "
    "fails there; the last cosine has to be left out.",
    "Softmax over nothing is 0/0. With −∞ it gives NaN, which the next update spreads over all weights; with −1e9 "
    "the row attends evenly to the very places it must not see. Heedful gives zero with finite gradients, fused "
    "and written out.",
    "The memory mask is the source's padding. nn.Transformer takes it apart from the source's own mask, and "
    "whoever gives only one lets the decoder attend to padding without a word. In Heedful `source_keep` goes to "
    "both places.",
    "With a cache there are fewer queries than keys, and the last query must see all of them. A mask aligned to "
    "the top left shows it the first key only. Heedful defines causality by the slot of each token, so a cache "
    "shifts it by itself.",
    "The two directions end at opposite ends of the sentence, and each holds half of what the decoder starts "
    "from. The forward state of the last real token must be joined with the backward state of the first, and then "
    "mapped to the decoder's width.",
    "What is checked in evaluation should be what was trained. A second implementation for evaluation may agree "
    "wherever tokens are real and still write something else where they are padding: whoever averages over all "
    "places then gets two answers. Heedful has one path.",
    "An answer must not depend on who else is in the batch. Masks alone do not ensure that: positions counted by "
    "place move every token behind padding on the left, and rows that see nothing must not poison their "
    "neighbours. Heedful counts real tokens.",
    "Zero times NaN is NaN: neither a weight of zero nor a gradient of zero hides it. Heedful replaces what "
    "stands in padded places, by `where`, before anything is computed from it.",
    "Pre-norm never normalises what passes straight through, so the sum grows from layer to layer and the stack "
    "must end with a norm; post-norm, the paper's order, ends with one already. Heedful's original family is "
    "post-norm unless told otherwise, and adds the final norm with pre-norm only.",
    "Attention that keeps its weights holds n² numbers per head beside the n·d of its inputs, whatever d is. A "
    "fused kernel computes them again in the backward pass: twice the length, twice the memory. A mask multiplied "
    "out to n × n takes that away again, so Heedful's masks stay symbolic.",
    "A table has an end. The usual slice of it fails with two shapes that do not match, or an index without a "
    "name. Heedful computes sinusoids from the formula, so there is no end; learned positions refuse what they "
    "have not learned, and name both lengths.",
]


def print_table(findings: Sequence[Finding]) -> None:
    """For a terminal."""
    table = Table(*HEADER, show_lines=True)
    for number, finding in enumerate(findings, 1):
        table.add_row(
            f"{number}. {finding.error}", finding.probed, _cell(finding.theirs, "\n"), _cell(finding.ours, "\n")
        )
    Console(markup=False, width=None if sys.stdout.isatty() else 160).print(table)


def page(findings: Sequence[Finding]) -> str:
    """For the documentation."""
    rows = [
        f"| {number}. {finding.error} | {finding.probed} | {_cell(finding.theirs)} | {_cell(finding.ours)} |"
        for number, finding in enumerate(findings, 1)
    ]
    numbered = enumerate(zip(findings, WHY, strict=True), 1)
    reasons = [f"**{number}. {finding.error}.** {why}" for number, (finding, why) in numbered]
    table = "\n".join([f"| {' | '.join(HEADER)} |", "|---|---|---|---|", *rows])
    return PAGE.format(torch=torch.__version__.split("+")[0], table=table, reasons="\n\n".join(reasons), **shares())


def shares() -> dict[str, str]:
    """How much of the base model's parameters the feed-forward holds."""
    with torch.device("meta"):
        model: Any = heedful.build("base")

    def share(*parts: nn.Module) -> str:
        inside = [module for part in parts for module in part.modules() if isinstance(module, core.FeedForward)]
        return f"{sum(map(_size, inside)) / sum(map(_size, parts)):.0%}"

    encoder, decoder = model.encoder, model.decoder
    return {
        "of_an_encoder_layer": share(encoder.layers[0]),
        "of_a_decoder_layer": share(decoder.layers[0]),
        "of_the_stacks": share(encoder, decoder),
        "of_the_model": share(model),
    }


def _size(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def _cell(outcomes: Sequence[Outcome], newline: str = "<br>") -> str:
    return newline.join(str(outcome) for outcome in outcomes)
