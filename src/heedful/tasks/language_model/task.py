"""A language model: running text, a decoder alone, cross-entropy, perplexity and bits per character."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from ...config import FamilyConfig
from ...data.corpus import Corpus, text_files
from ...data.published_tokenizer import BROKEN, NAME, ROLES, PublishedTokenizer
from ...data.report import CorpusReport
from ...data.text_batch import RandomWindows, Row, TokenWindows
from ...data.text_tokenizers import encode
from ...errors import DataError
from ...families import GenerationDefaults
from ...lens.recorder import record
from ...lens.report import AttentionMap, Continuation
from ...training.loss import Loss, cross_entropy
from ...training.objective import Monitor
from ..predictor import located
from ..run import DataReport, Files, Task
from ..run.task import DATA, TRAIN, VALID, settings_json
from ..scoring import Score
from .data import SIZES, CorpusData, LanguageModelConfig, open_corpus, prepare_corpus, row_of
from .predictor import CausalLanguageModel, LanguageModelSettings
from .scoring import TextScore, nats_of, usual_stride

TOKENIZER = "the tokeniser settings"
PROMPTS = 5  # places of the validation text that are continued for people to see
PROMPT = 64  # tokens
MAX_MAP_TOKENS = 24


class LanguageModelTask(Task[LanguageModelConfig, CorpusData, TokenWindows]):
    """Every token is predicted from those before it in its window."""

    name: ClassVar[str] = CausalLanguageModel.task
    predictor_class: ClassVar[type[Any]] = CausalLanguageModel
    config_class: ClassVar[type[Any]] = LanguageModelConfig
    example_name: ClassVar[str] = "tokens"
    artifacts: ClassVar[tuple[str, ...]] = (NAME, ROLES, *(f"{DATA}/{name}" for name in (TRAIN, VALID, SIZES, NAME)))
    frozen_settings: ClassVar[tuple[str, ...]] = (TOKENIZER,)

    def list_files(self, config: LanguageModelConfig, paths: Sequence[str]) -> list[Path]:
        """Those of folders among them."""
        return text_files(paths)

    def data_settings(self, config: LanguageModelConfig, files: Files) -> dict[str, str]:
        """What is held out, and what a token is."""
        return {"the data settings": settings_json(config.data), TOKENIZER: settings_json(config.tokenizer)}

    def prepare(
        self, config: LanguageModelConfig, files: Files, folder: Path, *, keep: bool = False
    ) -> tuple[CorpusData, DataReport[CorpusReport]]:
        """Tokenized once."""
        tokenizer = PublishedTokenizer.load(folder / NAME) if keep else None
        return prepare_corpus(config, files, folder, tokenizer=tokenizer)

    def open(self, config: LanguageModelConfig, folder: Path) -> CorpusData:
        """The ids."""
        return open_corpus(folder)

    def model_config(self) -> FamilyConfig:
        """For the tokenizer's vocabulary."""
        return self.config.model.changed(vocab_size=self.data.tokenizer.vocab_size)

    def setup(self) -> None:
        """Random windows; the score to monitor is the loss on the validation text."""
        config = self.config
        self.monitor = Monitor("loss", higher_is_better=False)
        self.batches = RandomWindows(
            row_of(self.data.train), context=config.window, batch=config.batch, seed=config.training.seed
        )
        self._ends = np.cumsum(self.data.train.lengths.sum(axis=1, dtype=np.int64))  # of the passages

    def loss(self, module: nn.Module, batch: TokenWindows) -> Loss:
        """Sums over all tokens of all windows."""
        return cross_entropy(
            module(batch.inputs), batch.targets, batch.keep, smoothing=self.config.training.label_smoothing
        )

    def validate(self, module: nn.Module) -> dict[str, float]:
        """Over the whole text, in windows side by side."""
        score = self.score(module, stride=self.config.window)
        return {key: found.value for key, found in score.scores().items()}

    def score(self, module: nn.Module, *, stride: int) -> TextScore:
        """Of the validation text."""
        row, sizes = row_of(self.data.valid), self.data.metadata
        size = self.data.tokenizer.vocab_size
        nats = nats_of(module, row, context=self.config.window, stride=stride, vocab_size=size)
        return TextScore(nats, len(row) - 1, sizes.characters, sizes.bytes)

    def predictor(self, module: nn.Module) -> CausalLanguageModel:
        """A module together with what turns text into ids and back."""
        sizes = self.data.metadata
        tokens = GenerationDefaults(start=sizes.start, end=() if sizes.end is None else (sizes.end,))
        settings = LanguageModelSettings(tokens=tokens, generation=self.config.generation, context=self.config.window)
        return CausalLanguageModel(self.model_config(), module, self.data.tokenizer, settings)

    def final_evaluation(self, predictor: CausalLanguageModel) -> dict[str, Any]:
        """In windows that overlap, and beside that side by side, as elsewhere; a few texts continued."""
        context = self.config.window
        stride = self.config.stride or usual_stride(context)
        score = self.score(predictor.module, stride=stride)
        plain = score if stride == context else self.score(predictor.module, stride=context)
        scores = score.scores(f"context {context}, stride {stride}")
        scores["loss_side_by_side"] = Score(
            "loss, windows side by side", plain.loss, signature=f"context {context}, stride {context}"
        )
        return {
            "validation": {
                "n": score.tokens,
                "characters": score.characters,
                "bytes": score.bytes,
                "scores": {key: found.to_dict() for key, found in scores.items()},
            },
            "samples": self._samples(predictor),
        }

    def describe(self, batch: TokenWindows) -> Sequence[str]:
        """The passages in which the windows begin."""
        rows = np.searchsorted(self._ends, batch.starts, side="right")
        return [self.data.train.place(int(row)) for row in rows]

    def identity(self) -> dict[str, str]:
        """The context too."""
        return {**super().identity(), "context": str(self.config.window)}

    def title(self, predictor: CausalLanguageModel) -> str:
        """What it does."""
        return "text that goes on"

    def evaluate(self, predictor: CausalLanguageModel, files: Files) -> dict[str, Any]:
        """Every document whole, each from its own beginning."""
        score = evaluate_files(predictor, files.train)
        signature = f"context {predictor.context}, stride {usual_stride(predictor.context)}"
        return {"n": score.tokens, "scores": {name: vars(found) for name, found in score.scores(signature).items()}}

    def report_sections(
        self, predictor: CausalLanguageModel, metrics: Mapping[str, Any], folder: Path
    ) -> dict[str, Any]:
        """Texts of the validation set as the model continues them, and where it looks in the first."""
        texts = [(sample["source"], sample["output"]) for sample in metrics["samples"]]
        return {
            "continuations": [Continuation(before, after) for before, after in texts],
            "attention": [attention_map(predictor, before + after) for before, after in texts[:1] if before + after],
        }

    def card_notes(self, predictor: CausalLanguageModel, metrics: Mapping[str, Any]) -> list[str]:
        """How the scores are to be read."""
        validation = metrics["validation"]
        return [
            f"The validation text has {validation['characters']:,} characters; every token of it counts once.",
            "Windows that overlap (stride below the context) give each token more to be predicted from; the loss of "
            "windows side by side is the one to compare with others that are measured so, such as nanoGPT's.",
            f"It sees {predictor.context:,} tokens at once.",
        ]

    def _samples(self, predictor: CausalLanguageModel) -> list[dict[str, str]]:
        """Texts from evenly spread places of the validation text: how they go on, and how the model does."""
        row = row_of(self.data.valid)
        prompt, length = min(PROMPT, self.config.window), predictor.generation.max_new_tokens or PROMPT
        places = [1 + place * max(0, len(row) - prompt - length) // PROMPTS for place in range(PROMPTS)]
        found = []
        for place in dict.fromkeys(places):
            *_, before = self._documents(row[place : place + prompt])
            after, *_ = self._documents(row[place + prompt : place + prompt + length])
            if predictor.validation_error(before) is None:
                found.append((before, after))
        outputs = predictor.predict([before for before, _ in found])
        return [
            {"source": before, "reference": after, "output": output}
            for (before, after), output in zip(found, outputs, strict=True)
        ]

    def _documents(self, row: Row) -> list[str]:
        """What ids say, apart where a document ends; of a character that was cut in two, nothing."""
        parts = np.split(row, np.flatnonzero(row == self.data.metadata.end))
        ids = [part[part != self.data.metadata.end].tolist() for part in parts]
        return [self.data.tokenizer.decode(part).strip(BROKEN) for part in ids]


def evaluate_files(
    continuer: CausalLanguageModel, paths: Iterable[str | Path], *, stride: int | None = None
) -> TextScore:
    """Of all documents of files and folders together, each predicted from its own beginning, whole."""
    corpus = Corpus(tuple(text_files(paths)))
    total = TextScore()
    for place, text in corpus.documents():
        with located([str(place)]):
            total += continuer.score([text], stride=stride)[0]
    if not total.characters:
        raise DataError(f"{', '.join(map(str, corpus.files[:3]))}: there is no text to evaluate on")
    return total


@torch.inference_mode()
def attention_map(continuer: CausalLanguageModel, text: str) -> AttentionMap:
    """What each of the first tokens of a text gives to those before it, by the heads of the last layer."""
    module, tokenizer = continuer.module, continuer.tokenizer
    ids = encode(tokenizer, text)[: min(MAX_MAP_TOKENS, continuer.context)]
    last = len(module.decoder.layers) - 1
    with record(module, layers=last) as recording:
        module(torch.tensor([ids], device=next(module.parameters()).device))
    names = [visible(tokenizer.token_of(index)) for index in ids]
    return AttentionMap(visible(tokenizer.decode(ids)), names, names, recording.decoder[last][0].float().cpu().tolist())


def visible(text: str) -> str:
    """On one line, its line ends to be seen."""
    return text.replace("\n", "⏎").replace("\t", "⇥")
