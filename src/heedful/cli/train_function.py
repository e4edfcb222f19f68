"""`heedful.train`: `heedful train` as a function, which also takes data that a program holds."""

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, overload

from ..data.in_memory import data_files
from ..errors import ConfigError, unknown
from ..tasks.classification import Classifier
from ..tasks.forecasting import SeriesForecaster
from ..tasks.images import ImageClassifier
from ..tasks.language_model import CausalLanguageModel
from ..tasks.masked import MaskedLanguageModel
from ..tasks.question_answering import QuestionAnswerer
from ..tasks.registry import TRAINED
from ..tasks.run import AnyTask, Files
from ..tasks.run.folder import clear
from ..tasks.tagging import Tagger
from ..tasks.text_to_text import TextToTextGenerator
from ..tasks.translation.predictor import Translator
from ..training import RunFolder
from .console import console
from .distributed import joined_processes
from .train import COMMANDS, RESOLVE, CommonOptions
from .train_command import FROM_OPTIONS, apply_options, run_training, show_result

INPUTS = "inputs"  # in a run's folder: the files of data from memory


@overload
def train(task: Literal["translation"], data: Any, **settings: Any) -> Translator: ...
@overload
def train(task: Literal["text-to-text"], data: Any, **settings: Any) -> TextToTextGenerator: ...
@overload
def train(task: Literal["language-model"], data: Any, **settings: Any) -> CausalLanguageModel: ...
@overload
def train(task: Literal["masked-lm"], data: Any, **settings: Any) -> MaskedLanguageModel: ...
@overload
def train(task: Literal["classification"], data: Any, **settings: Any) -> Classifier: ...
@overload
def train(task: Literal["question-answering"], data: Any, **settings: Any) -> QuestionAnswerer: ...
@overload
def train(task: Literal["tagging"], data: Any, **settings: Any) -> Tagger: ...
@overload
def train(task: Literal["images"], data: Any, **settings: Any) -> ImageClassifier: ...
@overload
def train(task: Literal["forecasting"], data: Any, **settings: Any) -> SeriesForecaster: ...


def train(
    task: str,
    data: Any,
    *,
    valid: Any = None,
    out: str | Path | None = None,
    resume: bool = False,
    allow_changes: bool = False,
    overwrite: bool = False,
    progress: bool = True,
    **settings: Any,
) -> Any:
    """Train a model and return its predictor, as `heedful.load` does.

    Args:
        task: What the model is for, as in `heedful train TASK`.
        data: Paths of files or folders; or items as tuples or dicts, a data frame, or a mapping of columns. An item is
            (source, target) for translation and text-to-text, (text, label) or (text1, text2, label) for
            classification, (question, context, answer) for question answering, (words, tags) for tagging,
            (image, label) for images, and a text for language models. Series are columns of numbers.
        valid: The validation data, in the same form. Without it, a part of the data is used.
        out: The folder of the run; by default nothing is kept but the predictor, whose `save` writes it.
        resume, allow_changes, overwrite: As the options of the shell.
        progress: Print the data, the progress and the scores.
        settings: The options of the shell by the same names (preset="tiny", source="ko", columns=("review", "stars")),
            sections as mappings (training={"steps": 500}), and single settings (**{"training.steps": 500}).

    Raises:
        ConfigError: A setting is unknown or invalid.
        DataError: The data cannot be used.

    >>> heedful.train("classification", [("a lovely film", "pos"), …], preset="tiny").predict(["a dull film"])
    """
    if task not in TRAINED:
        raise ConfigError(unknown("task", task, TRAINED))
    bound: AnyTask = TRAINED[task]()
    values, columns = _settings(task, settings)
    config = bound.config_class.from_dict(values)
    if valid is not None and not COMMANDS[task].valid:
        raise ConfigError(f"{task} splits each series by time (data.split); leave out valid")
    common = CommonOptions(resume=resume, allow_changes=allow_changes, overwrite=overwrite)
    with ExitStack() as stack:
        world = stack.enter_context(joined_processes())
        if out is None and world.size > 1:
            raise ConfigError(f"{world.size} processes need one folder: give out")
        folder = Path(out or stack.enter_context(TemporaryDirectory(prefix="heedful-")))
        stack.callback(setattr, console, "quiet", False)
        console.quiet = console.quiet or not progress
        first = world.rank == 0
        if first and not resume:
            with RunFolder(folder).locked():
                clear(bound, folder, overwrite=overwrite)  # before the inputs of an earlier run are replaced
        files = Files(
            data_files(task, data, folder / INPUTS, "train", write=first),
            () if valid is None else data_files(task, valid, folder / INPUTS, "valid", write=first),
            columns,
        )
        predictor = run_training(bound, config, files, folder, common, world)
        if first:
            show_result(bound, folder, keeps_folder=out is not None)
        return predictor


def _settings(task: str, settings: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...] | None]:
    """Return the settings of a run and the columns: single settings override options, which override sections."""
    command = COMMANDS[task]
    flags = dict.fromkeys(command.all_options())
    # model={…} is a section, and not the option --model
    flags |= {name: settings[name] for name in settings.keys() & flags if not isinstance(settings[name], Mapping)}
    options = command.settings(flags)
    options = dict(RESOLVE.get(task, dict)(options))
    columns = options.pop("files.columns", None)
    options |= {f"training.{name}": settings.get(name) for name in FROM_OPTIONS}
    others = {name: value for name, value in settings.items() if flags.get(name) is None and name not in FROM_OPTIONS}
    values = {name: value for name, value in others.items() if "." not in name}
    apply_options(values, options, command.default_model)
    apply_options(values, {name: value for name, value in others.items() if "." in name}, command.default_model)
    return values, None if columns is None else tuple(columns)
