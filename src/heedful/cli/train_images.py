"""`heedful train images`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ..tasks.images.task import ImagesTask
from .running import Common, Out, Valid, launch, with_common

NAME = ImagesTask.name
EXAMPLE = "Example: heedful train images --data photos --out runs/photos --image-size 64 --flip"


@with_common
def images(
    out: Out,
    data: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE…",
            help="A folder with a folder of images for each class; idx files (train-images-idx3-ubyte, labels beside, "
            "or their folder); .npz with x and y; .csv or .tsv with path and label.",
        ),
    ] = None,
    valid: Valid = None,
    columns: Annotated[
        str | None, typer.Option(help="The columns of the path and of the class in a table: file,breed.")
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help="A sized model: vit-tiny, vit-small-16, vit-base-16, deit-tiny, …")
    ] = None,
    image_size: Annotated[
        int | None,
        typer.Option(min=1, help="The side of the square that images become. Their own, where all have a small one."),
    ] = None,
    flip: Annotated[
        bool, typer.Option("--flip", help="Swap left and right at random in training: for photos, not for letters.")
    ] = False,
    *,
    common: Common,
) -> None:
    """Train an image classifier. Files that are broken are left out, counted and named.

    Where a set has a part to test on (t10k, x_test), `heedful evaluate` uses it.
    To validate on it, give the set again with --valid.
    Settings come from --config, then from the options, then from --set.
    A run that was stopped goes on with --resume, exactly where it was.
    """

    def options(values: dict[str, Any]) -> None:
        if preset is not None:
            values["model"] = {"preset": preset}
        if image_size is not None:
            values.setdefault("data", {})["image_size"] = image_size
        if flip:
            values.setdefault("augment", {})["flip"] = True

    launch(
        ImagesTask(),
        out,
        common,
        data=data,
        valid=valid,
        columns=columns,
        options=options,
    )
