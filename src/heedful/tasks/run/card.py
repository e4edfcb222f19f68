"""A model card: what the bundle is, how it was made, how good it is, how to use it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .task import Task


def card(task: Task[Any, Any], predictor: Any, metrics: Mapping[str, Any], out: Path) -> str:
    """README.md for a bundle's folder."""
    validation, training = metrics["validation"], metrics["training"]
    scores = "\n".join(
        f"| {score['metric']} | {score['value']:.4g}{_around(score)} | {_code(score['signature'])} |"
        for score in validation["scores"].values()
    )
    remarks = "\n".join(task.remarks(predictor, metrics))
    return f"""# {task.heading(predictor)}

A model of the family `{predictor.config.family}` with {metrics["parameters"]:,} parameters, trained with Heedful.

```sh
heedful predict {out} …
```

```python
import heedful

heedful.load("{out}").predict([…])
```

## How good it is

On {validation["n"]:,} {task.counted} for validation:

| score | value | signature |
|---|---|---|
{scores}

{remarks}
The scores are of {task.counted} like the training data; on others they will be worse. `report.html` shows more.

## How it was made

{training["steps"]:,} steps in {training["seconds"]:,.0f} s. It ended because {training["ended"]}.
The weights are {training["weights"]}.
`run.yaml` holds every setting and the names of the data files, `log.jsonl` the course of the training.
"""


def _around(score: Mapping[str, Any]) -> str:
    return "" if score["interval"] is None else f" ± {score['interval']:.1f}"


def _code(signature: str) -> str:
    """A bar would end the table's cell, even inside a code span."""
    return "`{}`".format(signature.replace("|", "\\|")) if signature else ""
