"""Text encoders that read long texts in windows: what question answering and tagging share."""

import json
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic

from torch import Tensor, nn

from ..data.published_tokenizer import EncodedWindow
from ..data.text_batch import TextBatch, TextLoader
from ..errors import DataError
from ..files import write_text
from ..lens.report import ScoredSample
from .predictor import ItemError, in_chunks
from .run.task import DATA, Split
from .scoring import Score
from .text_encoder import EncodedText, Output, TextEncoderPredictor
from .text_encoder_task import C, E, TextConfig, TextEncoderTask

EXAMPLES = "examples.jsonl"  # the validation examples as they were read
SAMPLES = 200  # validation examples in metrics.json
CHUNK = 256  # items whose windows are run together
STRIDE = 32  # tokens that neighboring windows share
DEFAULT_LIMIT = 512  # tokens of a window, where neither settings nor model have a limit


class WindowPredictor(TextEncoderPredictor[Output], Generic[Output]):
    """A predictor that reads an item in one or several windows."""

    @abstractmethod
    def windows(self, item: Any) -> list[EncodedWindow]:
        """Return an item as the module reads it; DataError for one that it cannot read."""

    @property
    def limit(self) -> int:
        """The largest number of tokens in a window."""
        return super().limit or DEFAULT_LIMIT

    def prepared(self, item: Any) -> EncodedText:
        """Return the first window of an item."""
        window = self.windows(item)[0]
        return EncodedText(window.ids, window.segments)

    def run_windows(self, items: object) -> Iterator[tuple[list[EncodedWindow], list[Tensor]]]:
        """Yield the windows of each item, and the module's output for each window."""
        for chunk in in_chunks(enumerate(self._listed(items)), CHUNK):
            windows = [self._windows_of(item, index) for index, item in chunk]
            texts = [EncodedText(window.ids, window.segments) for item in windows for window in item]
            outputs = iter(self.run_encoded(texts))
            yield from ((item, [next(outputs) for _ in item]) for item in windows)

    def _windows_of(self, item: Any, index: int) -> list[EncodedWindow]:
        try:
            return self.windows(item)
        except DataError as error:
            raise ItemError(self.item_name, index, str(error)) from None


@dataclass(frozen=True, kw_only=True)
class WindowedTextConfig(TextConfig):
    """How texts are read, long ones in overlapping windows."""

    stride: int = STRIDE  # Tokens that neighboring windows of a long text share

    def check(self) -> None:
        super().check()
        self.require(self.stride >= 0, f"stride must be 0 or more, not {self.stride}")


class WindowTask(TextEncoderTask[C, E, TextBatch], Generic[C, E]):
    """A task that trains on windows and validates on whole examples, which it keeps as they were read."""

    artifacts: ClassVar[tuple[str, ...]] = (*TextEncoderTask.artifacts, f"{DATA}/{EXAMPLES}")
    batch_class: ClassVar[type[TextBatch]]

    @abstractmethod
    def parse_example(self, values: dict[str, Any]) -> E:
        """Return the example that these JSON values are of."""

    @abstractmethod
    def scores(self, predictor: Any) -> Mapping[str, Score]:
        """Return the scores of all validation examples."""

    def write_examples(self, folder: Path, split: Split[E]) -> None:
        """Write the validation examples as JSON lines, since scores are of texts or words."""
        lines = (json.dumps(asdict(example), ensure_ascii=False) for example in split.valid())  # type: ignore[call-overload]
        write_text(folder / EXAMPLES, "".join(f"{line}\n" for line in lines))

    def setup(self) -> None:
        """Create the batches of windows and read the validation examples."""
        size = self.config.training.batch_tokens
        self.batches = TextLoader(self.data.train, size, seed=self.config.training.seed, batch_class=self.batch_class)
        self.validation = TextLoader(self.data.valid, size, batch_class=self.batch_class)
        path = self.data.folder / EXAMPLES
        try:
            with path.open(encoding="utf-8") as lines:
                self.examples = [self.parse_example(json.loads(line)) for line in lines]
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise DataError(f"{path}: the validation examples cannot be read: {error}") from None

    def validate(self, module: nn.Module) -> dict[str, float]:
        """Return the loss of all windows and the scores of all validation examples."""
        scores = self.scores(self.predictor(module))
        return {"loss": self.mean_loss(module, self.validation)} | {name: score.value for name, score in scores.items()}

    def report_sections(self, predictor: Any, metrics: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        return {"samples": [ScoredSample(**sample) for sample in metrics["samples"]]}
