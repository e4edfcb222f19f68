"""The options of generation, as verbs that generate offer them."""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated, Any, Literal

import typer

from ..generation import GenerationConfig

SEARCH, SAMPLING, RULES = "Search", "Sampling", "What may be written"

Beam = Annotated[
    int | None, typer.Option(min=1, help="How many hypotheses to keep open. 1 is greedy.", rich_help_panel=SEARCH)
]
NBest = Annotated[
    int | None, typer.Option(min=1, help="How many answers to give for each text.", rich_help_panel=SEARCH)
]
LengthPenalty = Annotated[float | None, typer.Option(help="Above 0 favours longer answers.", rich_help_panel=SEARCH)]
LengthPenaltyKind = Annotated[
    Literal["power", "google"] | None,
    typer.Option(help="Divide by length^α, or by ((5 + length) / 6)^α as the paper does.", rich_help_panel=SEARCH),
]
Precision = Annotated[
    Literal["float32", "bf16", "int8"] | None,
    typer.Option(help="int8 is faster on a CPU, bf16 on a GPU; both are less exact.", rich_help_panel=SEARCH),
]
Sample = Annotated[bool, typer.Option("--sample", help="Draw answers instead of searching.", rich_help_panel=SAMPLING)]
Temperature = Annotated[
    float | None, typer.Option(help="Below 1 is safer, above 1 more varied.", rich_help_panel=SAMPLING)
]
TopK = Annotated[int | None, typer.Option(min=1, help="Draw from the most likely so many.", rich_help_panel=SAMPLING)]
TopP = Annotated[
    float | None,
    typer.Option(help="Draw from the fewest that have this share of the probability.", rich_help_panel=SAMPLING),
]
MinP = Annotated[
    float | None, typer.Option(help="Draw from those with this share of the best one's.", rich_help_panel=SAMPLING)
]
Seed = Annotated[int | None, typer.Option(help="The same seed, the same answers.", rich_help_panel=SAMPLING)]
MinNewTokens = Annotated[
    int | None, typer.Option(min=0, help="Fewest tokens, the end not counted.", rich_help_panel=RULES)
]
MaxNewTokens = Annotated[int | None, typer.Option(min=1, help="Most tokens, the end counted.", rich_help_panel=RULES)]
RepetitionPenalty = Annotated[
    float | None, typer.Option(help="Above 1 makes what was written less likely.", rich_help_panel=RULES)
]
NoRepeatNgramSize = Annotated[
    int | None, typer.Option(min=1, help="Forbid repeating any n-gram of this size.", rich_help_panel=RULES)
]


def given(context: typer.Context) -> dict[str, Any]:
    """Those that were given, by the names of GenerationConfig; the others are as the model says."""
    names = {field.name for field in fields(GenerationConfig)}
    values = {name: value for name, value in context.params.items() if name in names}
    return {name: value for name, value in values.items() if value is not None and value is not False}
