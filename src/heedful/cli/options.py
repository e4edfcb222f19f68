"""Options that several commands share, and how they come into a command's signature, which typer reads."""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal, get_type_hints

import typer


def panel(name: str | None) -> Callable[..., Any]:
    """Options that the help shows together under a name: each with its text, its flags where they are not its name."""
    return lambda text, *flags, **more: typer.Option(*flags, help=text, rich_help_panel=name, **more)


option = panel(None)
search, sampling, rules = panel("Search"), panel("Sampling"), panel("What may be written")


@dataclass(frozen=True, kw_only=True)
class GenerationFlags:
    """The options of generation, by the names of GenerationConfig; None or False: as the model says."""

    beam: Annotated[int | None, search("How many hypotheses to keep open. 1 is greedy.", min=1)] = None
    n_best: Annotated[int | None, search("How many answers to give for each text.", min=1)] = None
    length_penalty: Annotated[float | None, search("Above 0 favours longer answers.")] = None
    length_penalty_kind: Annotated[
        Literal["power", "google"] | None, search("Divide by length^α, or by ((5 + length) / 6)^α as the paper does.")
    ] = None
    precision: Annotated[
        Literal["float32", "bf16", "int8"] | None,
        search("int8 is faster on a CPU, bf16 on a GPU; both are less exact."),
    ] = None
    sample: Annotated[bool, sampling("Draw answers instead of searching.", "--sample")] = False
    temperature: Annotated[float | None, sampling("Below 1 is safer, above 1 more varied.")] = None
    top_k: Annotated[int | None, sampling("Draw from the most likely so many.", min=1)] = None
    top_p: Annotated[float | None, sampling("Draw from the fewest that have this share of the probability.")] = None
    min_p: Annotated[float | None, sampling("Draw from those with this share of the best one's.")] = None
    seed: Annotated[int | None, sampling("The same seed, the same answers.")] = None
    min_new_tokens: Annotated[int | None, rules("Fewest tokens, the end not counted.", min=0)] = None
    max_new_tokens: Annotated[int | None, rules("Most tokens, the end counted.", min=1)] = None
    repetition_penalty: Annotated[float | None, rules("Above 1 makes what was written less likely.")] = None
    no_repeat_ngram_size: Annotated[int | None, rules("Forbid repeating any n-gram of this size.", min=1)] = None


def with_generation(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add these options of generation (all unless named) behind a command's own; it takes those that were given as
    `overrides`.
    """
    every = {option.name: option for option in parameters_of(GenerationFlags)}
    options = [every[name] for name in names or every]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command, eval_str=True).parameters
        own = [parameter for parameter in signature.values() if parameter.name != "overrides"]

        def run(**values: Any) -> None:
            chosen = {option.name: values.pop(option.name) for option in options}
            overrides = {name: value for name, value in chosen.items() if value is not None and value is not False}
            command(**values, overrides=overrides)

        return with_signature(run, [*own, *options], command.__doc__)

    return decorate


def parameters_of(options: type[Any]) -> list[inspect.Parameter]:
    """The fields of a dataclass of options, as parameters of a command."""
    types = get_type_hints(options, include_extras=True)
    return [parameter(option.name, types[option.name], option.default) for option in fields(options)]


def parameter(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    """One parameter of a command."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def with_signature(
    command: Callable[..., None], parameters: Iterable[inspect.Parameter], doc: str | None
) -> Callable[..., None]:
    """The command, with the parameters and the docstring that typer is to read."""
    parameters = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # functions may have one
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    command.__doc__ = doc
    return command
