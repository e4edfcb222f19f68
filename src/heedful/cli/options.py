"""Options that several commands share, and the construction of command signatures, which typer reads."""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import typer

from .language import choose


def panel(name: str | None) -> Callable[..., Any]:
    """Return a function that makes options of one panel of the help, with their help text and any flags."""
    return lambda text, *flags, **more: typer.Option(*flags, help=text, rich_help_panel=name, **more)


option = panel(None)
search, sampling, constraints = panel("Beam search"), panel("Sampling"), panel("Constraints")

# One spelling and one text each, wherever a command has the option.
SEED = "The random seed; the same seed gives the same result."
PRECISION = "The number format. Formats other than float32 are faster (bf16 on GPUs, int8 on CPUs) and less precise."
DEVICE = "The device to compute on: auto, cpu, cuda, cuda:1, …"
COLUMNS = "The columns of the data files, separated by commas."
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="The folder of a trained model, or ko-en or en-ko.")]
Device = Annotated[str, option(DEVICE)]
Language = Annotated[
    Literal["en", "ko"] | None,
    option("The language of the terminal, pages and pictures; the default is HEEDFUL_LANGUAGE or the system's."),
]
Settings = Annotated[
    list[str] | None,
    option("A single setting, such as training.steps=20000. Repeatable.", "--set", metavar="NAME=VALUE"),
]
Overwrite = Annotated[bool, option("Replace the run in --out.", "--overwrite")]


@dataclass(frozen=True, kw_only=True)
class GenerationFlags:
    """The options of generation, named after the fields of GenerationConfig; None or False is the model's default."""

    beam: Annotated[int | None, search("The beam size; 1 is greedy search.", min=1)] = None
    n_best: Annotated[int | None, search("The number of answers for each text.", min=1)] = None
    length_penalty: Annotated[float | None, search("Values above 0 favor longer answers.")] = None
    length_penalty_kind: Annotated[
        Literal["power", "google"] | None,
        search("Divide scores by length^α (power) or by ((5 + length) / 6)^α (google, as in the paper)."),
    ] = None
    precision: Annotated[Literal["float32", "bf16", "int8"] | None, option(PRECISION)] = None
    sample: Annotated[bool, sampling("Sample instead of searching.", "--sample")] = False
    temperature: Annotated[
        float | None, sampling("Values below 1 make answers more predictable, above 1 more varied.")
    ] = None
    top_k: Annotated[int | None, sampling("Sample from the k most likely tokens.", min=1)] = None
    top_p: Annotated[
        float | None, sampling("Sample from the most likely tokens that together have this probability.")
    ] = None
    min_p: Annotated[
        float | None, sampling("Sample from tokens with at least this fraction of the best one's probability.")
    ] = None
    seed: Annotated[int | None, sampling(SEED)] = None
    min_new_tokens: Annotated[int | None, constraints("The minimum length, without the end token.", min=0)] = None
    max_new_tokens: Annotated[int | None, constraints("The maximum length, with the end token.", min=1)] = None
    repetition_penalty: Annotated[
        float | None, constraints("Values above 1 make tokens of the prompt and the answer less likely.")
    ] = None
    no_repeat_ngram_size: Annotated[int | None, constraints("Forbid repeating any n-gram of this size.", min=1)] = None


def with_generation(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add generation options (all if none are named) to a command, which gets those that are set as `overrides`."""
    available = {option.name: option for option in parameters_of(GenerationFlags)}
    options = [available[name] for name in names or available]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command, eval_str=True).parameters
        parameters = [parameter for parameter in signature.values() if parameter.name != "overrides"]

        def run(**values: Any) -> None:
            chosen = {option.name: values.pop(option.name) for option in options}
            overrides = {name: value for name, value in chosen.items() if value is not None and value is not False}
            command(**values, overrides=overrides)

        return with_signature(run, [*parameters, *options], command.__doc__)

    return decorate


def with_language(command: Callable[..., None]) -> Callable[..., None]:
    """Add the option --language to a command."""
    parameters = inspect.signature(command, eval_str=True).parameters.values()

    def run(*, language: str | None, **values: Any) -> None:
        if language is not None:  # else it is chosen already
            choose(language)
        command(**values)

    return with_signature(run, [*parameters, parameter("language", Language, None)], command.__doc__)


def parameters_of(options: type[Any]) -> list[inspect.Parameter]:
    """Return the fields of a dataclass of options as parameters of a command."""
    types = get_type_hints(options, include_extras=True)
    return [parameter(option.name, types[option.name], option.default) for option in fields(options)]


def parameter(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    """Return a keyword-only parameter of a command."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def with_signature(
    command: Callable[..., None], parameters: Iterable[inspect.Parameter], doc: str | None
) -> Callable[..., None]:
    """Set the parameters and the docstring of a command that typer reads."""
    parameters = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # functions may have one
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    command.__doc__ = doc
    return command
