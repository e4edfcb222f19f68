"""`heedful train TASK`: the options of every task. What is the same for all is added by `_train_command`.

A task's function has its own options as parameters and gives back the settings they change, by dotted names. A new
task is such a function with the decorator around it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import ConfigError, unknown
from .console import Command, CommandGroup
from .options import option, parameter, parameters_of, with_signature

SEVERAL = ("--data", "--valid")
EXAMPLE = (
    "Example: heedful train translation --data pairs.tsv --from ko --to en --out runs/ko-en --set training.steps=20000"
)
COLUMNS = "files.columns"
RESET = object()  # in place of a value: the setting takes its default again

Overrides = dict[str, Any]  # None where an option was not given

Out = Annotated[Path, option("The run's folder; the model ends up there.", show_default=False)]
Valid = Annotated[
    list[str] | None, option("What to validate on. Without it, some of the data is set apart.", metavar="FILE…")
]
Preset = Annotated[str | None, option("A sized model.")]
Base = Annotated[
    str | None, option("Begin with a model: one of Heedful's folders, or a published one.", "--from", metavar="MODEL")
]

app = typer.Typer(cls=CommandGroup, help="Train a model on your own files.", no_args_is_help=True)


@dataclass(frozen=True, kw_only=True)
class CommonOptions:
    """The options that every `heedful train TASK` has after its own."""

    config: Annotated[Path | None, option("A file of settings (YAML or JSON), such as a run.yaml.")] = None
    setting: Annotated[
        list[str] | None,
        option("One setting, such as training.steps=20000. Repeatable.", "--set", metavar="NAME=VALUE"),
    ] = None
    engine: Annotated[str | None, option("How steps are run: auto, eager, graph (CUDA graphs) or compile.")] = None
    processes: Annotated[
        int | None, option("Train with so many processes on this machine, one for each GPU.", min=1)
    ] = None
    resume: Annotated[bool, option("Go on with the run in --out.", "--resume")] = False
    allow_changes: Annotated[bool, option("Go on although data or settings have changed.", "--allow-changes")] = False
    overwrite: Annotated[bool, option("Replace the run in --out.", "--overwrite")] = False


class ManyFiles(Command):
    """`--data a b` means `--data a --data b`: these commands have no arguments that could stand there."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Write the option before each of its files."""
        spread: list[str] = []
        option, filled = "", False
        for argument in args:
            if argument.startswith("-") and argument != "-":
                option, filled = argument if argument in SEVERAL else "", False
            elif option and filled:
                spread.append(option)
            else:
                filled = True
            spread.append(argument)
        return super().parse_args(ctx, spread)


def _train_command(
    task: str,
    *,
    data: str,
    example: str,
    valid: bool = True,
    required: Sequence[tuple[str, str]] = (),
    default_model: str | None = None,
) -> Callable[[Callable[..., Overrides]], Callable[..., None]]:
    """Register the command of a task.

    Args:
        task: The name of the task, and of its command.
        data: The help of --data.
        example: A command line for the help.
        valid: Whether there is --valid.
        required: Options that must be given, each with the setting it becomes.
        default_model: The preset that options for "model.…" change where nothing else chose a model.
    """
    files = Annotated[list[str] | None, option(data, metavar="FILE…")]
    before = [parameter("out", Out), parameter("data", files, None)]
    before += [parameter("valid", Valid, None)] if valid else []
    after = parameters_of(CommonOptions)

    def register(options: Callable[..., Overrides]) -> Callable[..., None]:
        middle = inspect.signature(options, eval_str=True).parameters.values()

        def command(*, out: Path, data: list[str] | None, valid: list[str] | None = None, **values: Any) -> None:
            from .train_command import launch  # torch comes in here

            common = CommonOptions(**{option.name: values.pop(option.name) for option in after})
            overrides = partial(options, **values)
            files = {"data": data, "valid": valid}
            launch(task, out, common, overrides, **files, required=required, default_model=default_model)

        with_signature(command, [*before, *middle, *after], options.__doc__)
        app.command(task, cls=ManyFiles, epilog=f"Example: {example}")(command)
        return command

    return register


@_train_command(
    "translation",
    data="Pairs: .tsv, .csv, .jsonl, .po, .mo, .tmx, .xliff, parallel text (one of both files), .gz, folders.",
    example=EXAMPLE.removeprefix("Example: "),
    required=(("--from", "source"), ("--to", "target")),
    default_model="recurrent",
)
def translation(
    *,
    source: Annotated[str | None, option("The language to translate from: ko.", "--from")] = None,
    target: Annotated[str | None, option("The language to translate to: en.", "--to")] = None,
    columns: Annotated[
        str | None, option("Languages of unnamed columns, where the source is not first: en,ko.")
    ] = None,
    preset: Annotated[str | None, option("A sized model: tiny, small, base, big.")] = None,
    model: Annotated[str | None, option("A family: original (the Transformer) or recurrent.")] = None,
    attention: Annotated[str | None, option("For recurrent: additive or none.")] = None,
) -> Overrides:
    """Train a translator on files of sentence pairs.

    Settings come from --config, then from the options, then from --set.
    A run that was stopped goes on with --resume, exactly where it was.
    """
    sized = _translation_preset(preset, model)
    return {"source": source, "target": target, COLUMNS: columns, "model": sized, "model.attention": attention}


def _translation_preset(preset: str | None, family: str | None) -> str | None:
    """--preset names a size, --model a family (its usual size unless a preset of it is given)."""
    from ..families.registry import family_of, presets
    from ..tasks.translation.task import PRESET

    if family is not None:
        sizes = family_of(family).presets
        if preset is not None and preset not in sizes:
            raise ConfigError(f"--preset {preset} is not of --model {family}, which has: {', '.join(sizes)}")
        preset = preset or (PRESET if PRESET in sizes else next(iter(sizes)))
    if preset is not None and preset not in presets():
        raise ConfigError(f"--preset: {unknown('preset', preset, presets())}")
    return preset


@_train_command(
    "text-to-text",
    data="Texts and what they become: .tsv, .csv, .jsonl, packed or not, or folders.",
    example='heedful train text-to-text --data news.csv --columns article,summary --prefix "summarize: " '
    "--set data.cut=true --out runs/summaries",
)
def text_to_text(
    *,
    columns: Annotated[
        str | None,
        option("The columns' names: article,summary. Without a header, what they hold: source,-,target; prefix too."),
    ] = None,
    prefix: Annotated[
        str | None, option('What stands before every text, in training as in use, such as "summarize: ".')
    ] = None,
    base: Annotated[
        str | None,
        option("Begin with a model: a folder of Heedful's, or a T5, BART, Marian.", "--from", metavar="MODEL"),
    ] = None,
    preset: Preset = None,
) -> Overrides:
    """Train a model that answers a text with a text: it summarises, rewrites, answers, translates.

    A header, or the keys of JSON lines, say where source and target are: text, document, article, question; summary,
    answer, title. A column named prefix or task says for each row what is to be done with it. With --from, tokeniser
    and weights are the model's. Settings come from --config, then from the options, then from --set.
    """
    return {COLUMNS: columns, "prefix": prefix, "base": base, "model": preset}


@_train_command(
    "language_model",
    data='Text: .txt, .md, .jsonl (its "text"), .gz, folders. A file is a document.',
    example="heedful train language_model --data shakespeare.txt --characters --out runs/shakespeare",
)
def language_model(
    *,
    preset: Annotated[
        str | None, option("A sized model: gpt2-tiny, gpt2, llama-tiny, …; of any family that writes alone.")
    ] = None,
    characters: Annotated[
        bool, option("Every character is a token. Without it, pieces of words are (BPE).", "--characters")
    ] = False,
    vocab_size: Annotated[int | None, option("How many pieces to learn; 8,000 usually.", min=1)] = None,
    context: Annotated[
        int | None, option("How many tokens the model sees at once; 256 for the tiny models.", min=1)
    ] = None,
) -> Overrides:
    """Train a language model, which continues text.

    Without --valid, the last tenth of the text is held out. Perplexity and bits per character are of all of it.
    Settings come from --config, then from the options, then from --set. A run that was stopped goes on with --resume.
    """
    return {
        "model": preset,
        "model.max_length": context,
        "context": None if context is None else RESET,
        "tokenizer.kind": "characters" if characters else None,
        "tokenizer.vocab_size": vocab_size,
    }


@_train_command(
    "classification",
    data="Labelled texts: .tsv, .csv, .jsonl, packed (.gz) or not, or folders.",
    example="heedful train classification --data reviews.tsv --out runs/reviews --set training.epochs=5",
)
def classification(
    *,
    base: Base = None,
    columns: Annotated[
        str | None,
        option("The columns' names, the label last: review,stars. Without a header, what they hold: label,-,text."),
    ] = None,
    preset: Preset = None,
) -> Overrides:
    """Train a classifier on texts with a label each, or on pairs of texts.

    A header, or the keys of JSON lines, say where text and label are: text, document, sentence, review; label,
    class, category. With --from, the tokeniser and all weights but those of the classes are the model's.
    Settings come from --config, then from the options, then from --set.
    """
    return {"base": base, COLUMNS: columns, "model": preset}


@_train_command(
    "question-answering",
    data="Questions with their contexts and answers: SQuAD or KorQuAD .json, .jsonl, .csv, .tsv, or folders.",
    example="heedful train question-answering --data train-v2.0.json --valid dev-v2.0.json --out runs/answers",
)
def question_answering(
    *,
    base: Base = None,
    columns: Annotated[
        str | None, option("The columns of a table: question,context,answer, and the answer start's if there is one.")
    ] = None,
    preset: Preset = None,
) -> Overrides:
    """Train a model that finds the answer to a question in a text.

    An answer is a span of the context. Questions without an answer (SQuAD 2.0, an empty answer in a table) teach the
    model to refuse. With --from, the tokenizer and all weights below the head are the model's.
    Settings come from --config, then from the options, then from --set.
    """
    return {"base": base, COLUMNS: columns, "model": preset}


@_train_command(
    "tagging",
    data="Words with a tag each: CoNLL columns (.conll, .txt, .tsv), CoNLL-U, .jsonl, or folders.",
    example="heedful train tagging --data train.conll --valid dev.conll --out runs/entities",
)
def tagging(
    *,
    base: Base = None,
    columns: Annotated[
        str | None, option("What the columns hold: word,-,-,tag. The first and the last unless given.")
    ] = None,
    preset: Preset = None,
) -> Overrides:
    """Train a tagger: a tag for every word, such as the entities of a text (B-PER, I-PER, O) or parts of speech.

    With --from, the tokenizer and all weights below the head are the model's.
    Settings come from --config, then from the options, then from --set.
    """
    return {"base": base, COLUMNS: columns, "model": preset}


@_train_command(
    "masked",
    data="Text: one a line (.txt), or .jsonl with a key text, or folders of these.",
    example="heedful train masked --data texts.txt --out runs/reader --preset bert-mini",
)
def masked(*, base: Base = None, preset: Preset = None) -> Overrides:
    """Train a reader as BERT was: on plain text, by guessing words behind gaps. A classifier can begin with it.

    A line is a text of its own; with --set data.text=paragraph, all lines up to an empty one are.
    Settings come from --config, then from the options, then from --set.
    """
    return {"base": base, "model": preset}


@_train_command(
    "images",
    data="A folder with a folder of images for each class; idx files (train-images-idx3-ubyte, labels beside, "
    "or their folder); .npz with x and y; .csv or .tsv with path and label.",
    example="heedful train images --data photos --out runs/photos --image-size 64 --flip",
)
def images(
    *,
    columns: Annotated[str | None, option("The columns of the path and of the class in a table: file,breed.")] = None,
    preset: Annotated[str | None, option("A sized model: vit-tiny, vit-small-16, vit-base-16, deit-tiny, …")] = None,
    image_size: Annotated[
        int | None, option("The side of the square that images become. Their own, where all have a small one.", min=1)
    ] = None,
    flip: Annotated[
        bool, option("Swap left and right at random in training: for photos, not for letters.", "--flip")
    ] = False,
) -> Overrides:
    """Train an image classifier. Files that are broken are left out, counted and named.

    Where a set has a part to test on (t10k, x_test), `heedful evaluate` uses it.
    To validate on it, give the set again with --valid.
    Settings come from --config, then from the options, then from --set.
    A run that was stopped goes on with --resume, exactly where it was.
    """
    return {COLUMNS: columns, "model": preset, "data.image_size": image_size, "augment.flip": flip or None}


@_train_command(
    "forecasting",
    data="Tables (.csv, .tsv, .gz) with a header: a step a row, a channel a column, with a column of dates "
    "(date) or none, and one of names (symbol) where they hold several series.",
    example="heedful train forecasting --data prices.csv --columns close --horizon 5 --out runs/prices",
    valid=False,
)
def forecasting(
    *,
    columns: Annotated[str | None, option("The columns to forecast; all unless given.")] = None,
    series: Annotated[str | None, option("The series to use; all unless given: AAPL,IBM.")] = None,
    context: Annotated[int | None, option("From how many steps. 30 in the usual model.", min=2)] = None,
    horizon: Annotated[int | None, option("How many steps. 5 in the usual model.", min=1)] = None,
    channels: Annotated[
        str | None, option("independent (each on its own, the same weights) or mixed (read together).")
    ] = None,
    preset: Annotated[
        str | None, option("A sized model: patchtst-tiny, patchtst-42, patchtst-64 (the paper's).")
    ] = None,
) -> Overrides:
    """Train a forecaster on tables of series, such as prices, and judge it beside "tomorrow = today".

    Each series is divided by time: the first 70 % to train, 10 % to validate, 20 % to test (data.split). Settings come
    from --config, then from the options, then from --set. A run that was stopped goes on with --resume.
    """
    return {
        COLUMNS: columns,
        "data.series": None if series is None else [name.strip() for name in series.split(",")],
        "model": preset,
        "model.context_length": context,
        "model.horizon": horizon,
        "model.channels": channels,
    }
