"""The card of a model that came from elsewhere: what it is, and how it is used."""

from __future__ import annotations

from typing import Any


def card(model: Any, theirs: str | None = None) -> str:
    """In Markdown; `theirs` is the file with its authors' own words."""
    parameters = sum(parameter.numel() for parameter in model.module.parameters())
    lines = [
        f"# A model for {model.task}",
        "",
        f"A model of the family {model.config.family} with {parameters:,} parameters, imported as it was published.",
        *([f"Its authors' own words, licence included, are in {theirs}."] if theirs else []),
        "",
        "```python",
        "import heedful",
        "",
        'model = heedful.load("this folder")',
        "model.predict([…])",
        "```",
        "",
    ]
    return "\n".join(lines)
