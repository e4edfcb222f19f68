"""A model card: what the bundle is, how it was made, how good it is, how to use it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .translator import Translator


def card(translator: Translator, metrics: Mapping[str, Any], out: Path) -> str:
    """README.md for a bundle's folder."""
    settings, training = translator.settings, metrics["training"]
    validation = metrics["validation"]
    scores = "\n".join(
        f"| {score['metric']} | {score['value']:.2f}{_around(score)} | `{_escaped(score['signature'])}` |"
        for score in validation["scores"].values()
    )
    return f"""# {settings.source} → {settings.target}

A translator of the family `{translator.config.family}` with {metrics["parameters"]:,} parameters, trained with Heedful.

```sh
heedful predict {out} "…"
```

```python
import heedful

heedful.load("{out}").predict(["…"])
```

## How good it is

On {validation["pairs"]:,} validation pairs, beam {settings.generation.beam}:

| score | value | signature |
|---|---|---|
{scores}
| exact match | {validation["exact"]:.2f} | |

{_confidence(metrics["confidence"])}
The scores are of pairs like the training data; on other kinds of text they will be lower. `report.html` shows more.

## How it was made

{training["steps"]:,} steps in {training["seconds"]:,.0f} s. It ended because {training["ended"]}.
The weights are {training["weights"]}.
`run.yaml` holds every setting and the names of the data files, `log.jsonl` the course of the training.
Sources of more than {settings.max_tokens} pieces are cut at sentence ends, or refused where there is none.
"""


def _confidence(learned: Mapping[str, Any]) -> str:
    if "why_not" in learned:
        return f"It gives no confidence with its answers: {learned['why_not']}."
    return "It says how likely each answer is right (`heedful predict --scores`), as learned from these pairs."


def _escaped(signature: str) -> str:
    """A bar would end the table's cell, even inside a code span."""
    return signature.replace("|", "\\|")


def _around(score: Mapping[str, Any]) -> str:
    return "" if score["interval"] is None else f" ± {score['interval']:.1f}"
