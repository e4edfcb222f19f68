"""The task of causal language models: running text, cross-entropy, perplexity and bits per character."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from ...config import FamilyConfig, read_mapping, write_mapping
from ...data.corpus import Corpus, text_files
from ...data.published_tokenizer import BROKEN, NAME, ROLES, PublishedTokenizer
from ...data.report import CorpusReport
from ...data.store import Encoded, TokenStore
from ...data.text_batch import RandomWindows, Row, TokenWindows
from ...data.text_tokenizers import encode, end_of
from ...errors import ConfigError, DataError
from ...families import GenerationDefaults
from ...lens.recorder import record
from ...lens.report import AttentionMap, Continuation
from ...lens.tokens import visible
from ...training.loss import Loss, cross_entropy
from ...training.objective import Monitor
from ..predictor import refusal
from ..rivals import Rival
from ..run import DataReport, Files, Refusals, Task, TooLittleDataError
from ..run.config import settings_json
from ..run.data import DATA, TRAIN, VALID
from ..scoring import Score
from .data import CorpusData, CorpusSizes, LanguageModelConfig, encode_corpus, split_corpus, train_tokenizer
from .predictor import CausalLanguageModel, LanguageModelSettings, TextScore, half_context, negative_log_likelihood

SIZES = "sizes.json"  # in a run's data folder
TOKENIZER = "the tokeniser settings"
N_SAMPLES = 5  # places of the validation text that metrics.json shows continued
PROMPT_TOKENS = 64
MAX_MAP_TOKENS = 24


class LanguageModelTask(Task[LanguageModelConfig, CorpusData, TokenWindows]):
    """Trains a decoder to predict every token from those before it in its window."""

    name: ClassVar[str] = CausalLanguageModel.task
    predictor_class: ClassVar[type[Any]] = CausalLanguageModel
    config_class: ClassVar[type[Any]] = LanguageModelConfig
    example_name: ClassVar[str] = "tokens"
    artifacts: ClassVar[tuple[str, ...]] = (NAME, ROLES, *(f"{DATA}/{name}" for name in (TRAIN, VALID, SIZES, NAME)))
    frozen_settings: ClassVar[tuple[str, ...]] = (TOKENIZER,)
    rivals: ClassVar[tuple[Rival, ...]] = (Rival("frequency_perplexity", ("perplexity",), higher_is_better=False),)

    def list_files(self, config: LanguageModelConfig, paths: Sequence[str]) -> list[Path]:
        return text_files(paths)

    def data_settings(self, config: LanguageModelConfig, files: Files) -> dict[str, str]:
        return {"the data settings": settings_json(config.data), TOKENIZER: settings_json(config.tokenizer)}

    def prepare(
        self, config: LanguageModelConfig, files: Files, folder: Path, *, keep: bool = False
    ) -> tuple[CorpusData, DataReport[CorpusReport]]:
        """Write the ids of the training and the validation text, each tokenized once.

        The validation row begins with a token that is read and not scored.
        """
        train_text, valid_text, report = split_corpus(config, files)
        if keep:
            tokenizer = PublishedTokenizer.load(folder / NAME)
        else:
            tokenizer = train_tokenizer(config.tokenizer, train_text, report)
        tokenizer.save(folder / NAME)
        end, size = end_of(tokenizer), tokenizer.vocab_size
        train = TokenStore.write(folder / TRAIN, encode_corpus(tokenizer, train_text, end), vocab_size=size)
        row = train.flat
        if len(row) <= config.window:
            raise TooLittleDataError(
                f"the training text has {len(row):,} tokens, too few for one window of {config.window:,} and the token "
                f"after it; give more text, or a smaller context: {max(1, len(row) - 1):,} at most",
                report,
            )
        end = end if end in row else None  # the model knows nothing of a token that was never seen
        # A text may be taken to follow another one, a line, a space; or it begins as the training text does.
        candidates = (end, tokenizer.id_of("\n"), tokenizer.id_of(" "))
        start = next((index for index in candidates if index is not None), int(row[0]))
        is_held_out = valid_text.start > 0  # then it follows the training text
        before: Encoded = ([int(row[-1]) if is_held_out else start], [], ("the token before", 0))
        rows = chain([before], encode_corpus(tokenizer, valid_text, end, continues=is_held_out))
        valid = TokenStore.write(folder / VALID, rows, vocab_size=size)
        n_characters = sum(len(passage.text) for passage in valid_text)
        n_bytes = sum(len(passage.text.encode("utf-8")) for passage in valid_text)
        sizes = CorpusSizes(n_characters, n_bytes, start, end)
        write_mapping(folder / SIZES, asdict(sizes))
        return CorpusData(folder, train, valid, tokenizer, sizes), report

    def open(self, config: LanguageModelConfig, folder: Path) -> CorpusData:
        try:
            sizes = CorpusSizes(**read_mapping(folder / SIZES))
        except (ConfigError, TypeError) as error:  # missing, or with other keys
            raise DataError(f"{folder / SIZES} was changed since it was written: {error}") from None
        stores = TokenStore(folder / TRAIN), TokenStore(folder / VALID)
        return CorpusData(folder, *stores, PublishedTokenizer.load(folder / NAME), sizes)

    def model_config(self) -> FamilyConfig:
        return self.config.model.changed(vocab_size=self.data.tokenizer.vocab_size)

    def setup(self) -> None:
        """Set up random windows for training; the monitored score is the loss of the validation text."""
        config = self.config
        self.monitor = Monitor("loss", higher_is_better=False)
        self.batches = RandomWindows(
            self.data.train.flat, context=config.window, batch=config.batch, seed=config.training.seed
        )
        self._ends = np.cumsum(self.data.train.lengths.sum(axis=1, dtype=np.int64))  # of the passages

    def loss(self, module: nn.Module, batch: TokenWindows) -> Loss:
        return cross_entropy(
            module(batch.inputs), batch.targets, batch.keep, smoothing=self.config.training.label_smoothing
        )

    def validate(self, module: nn.Module) -> dict[str, float]:
        """Score the whole validation text in windows side by side."""
        scores = self.score(module, stride=self.config.window).scores()
        return {key: score.value for key, score in scores.items()}

    def score(self, module: nn.Module, *, stride: int) -> TextScore:
        """Score the validation text in windows that begin every `stride` tokens."""
        row, sizes, window = self.data.valid.flat, self.data.metadata, self.config.window
        vocab_size = self.data.tokenizer.vocab_size
        nats = negative_log_likelihood(module, row, context=window, stride=stride, vocab_size=vocab_size)
        return TextScore(nats, len(row) - 1, sizes.characters, sizes.bytes)

    def predictor(self, module: nn.Module) -> CausalLanguageModel:
        """Return a predictor with this run's tokenizer and settings."""
        sizes = self.data.metadata
        tokens = GenerationDefaults(start=sizes.start, end=() if sizes.end is None else (sizes.end,))
        settings = LanguageModelSettings(tokens=tokens, generation=self.config.generation, context=self.config.window)
        return CausalLanguageModel(self.model_config(), module, self.data.tokenizer, settings)

    def final_evaluation(self, predictor: CausalLanguageModel) -> dict[str, Any]:
        """Score the validation text in overlapping windows, side by side, and by frequency; continue a few texts."""
        context = self.config.window
        stride = self.config.stride or half_context(context)
        text_score = self.score(predictor.module, stride=stride)
        loss = text_score.loss if stride == context else self.score(predictor.module, stride=context).loss
        scores = text_score.scores(f"context {context}, stride {stride}")
        scores["loss_side_by_side"] = Score(
            "loss, windows side by side", loss, signature=f"context {context}, stride {context}"
        )
        scores["frequency_perplexity"] = Score("perplexity by frequency alone", self._by_frequency())
        return {
            "validation": {
                "n": text_score.tokens,
                "characters": text_score.characters,
                "bytes": text_score.bytes,
                "scores": {key: score.to_dict() for key, score in scores.items()},
            },
            "samples": self._samples(predictor),
        }

    def _by_frequency(self) -> float:
        """Return the perplexity of predicting from token frequencies in training, with add-one smoothing."""
        counts = self.data.train.counts(self.data.tokenizer.vocab_size) + 1
        return float(np.exp(-np.log(counts / counts.sum())[self.data.valid.flat[1:]].mean()))

    def describe(self, batch: TokenWindows) -> Sequence[str]:
        """Return the passages in which the windows begin."""
        rows = np.searchsorted(self._ends, batch.starts, side="right")
        return [self.data.train.place(int(row)) for row in rows]

    def identity(self) -> dict[str, str]:
        return {**super().identity(), "context": str(self.config.window)}

    def title(self, predictor: CausalLanguageModel) -> str:
        return "language model"

    def evaluate(self, predictor: CausalLanguageModel, files: Files, *, strict: bool = False) -> dict[str, Any]:
        """Score every document as a whole, each from its own beginning."""
        corpus, text_score = Corpus(tuple(text_files(files.train))), TextScore()
        refusals = Refusals(strict=strict)

        def fault(document: tuple[str, str]) -> str | None:
            return refusal(lambda text: encode(predictor.tokenizer, text), document[1])

        for _, text in refusals.accepted(corpus.documents(), fault, itemgetter(0)):
            text_score += predictor.score([text])[0]
        if not text_score.characters:
            raise DataError(f"{', '.join(map(str, corpus.files[:3]))}: there is no text to evaluate on")
        signature = f"context {predictor.context}, stride {half_context(predictor.context)}"
        scores = text_score.scores(signature)
        return {
            "n": text_score.tokens,
            "scores": {name: score.to_dict() for name, score in scores.items()},
            **refusals.to_dict(),
        }

    def report_sections(
        self, predictor: CausalLanguageModel, metrics: Mapping[str, Any], folder: Path
    ) -> dict[str, Any]:
        """Return texts of the validation set with their continuations, and the attention within the first."""
        texts = [(sample["source"], sample["output"]) for sample in metrics["samples"]]
        return {
            "continuations": [Continuation(prompt, output) for prompt, output in texts],
            "attention": [attention_map(predictor, prompt + output) for prompt, output in texts[:1] if prompt + output],
        }

    def card_notes(self, predictor: CausalLanguageModel, metrics: Mapping[str, Any]) -> list[str]:
        validation = metrics["validation"]
        return [
            f"The validation text has {validation['characters']:,} characters; every token of it counts once.",
            "Overlapping windows (stride below the context) give each token more context. Compare the loss of windows "
            "side by side with losses that are measured in that way, such as nanoGPT's.",
            f"It sees {predictor.context:,} tokens at once.",
        ]

    def _samples(self, predictor: CausalLanguageModel) -> list[dict[str, str]]:
        """Continue texts from evenly spread places of the validation text."""
        row = self.data.valid.flat
        prompt, length = min(PROMPT_TOKENS, self.config.window), predictor.generation.max_new_tokens or PROMPT_TOKENS
        places = [1 + place * max(0, len(row) - prompt - length) // N_SAMPLES for place in range(N_SAMPLES)]
        texts = []
        for place in dict.fromkeys(places):
            *_, source = self._documents(row[place : place + prompt])
            reference, *_ = self._documents(row[place + prompt : place + prompt + length])
            if predictor.validation_error(source) is None:
                texts.append({"source": source, "reference": reference})
        outputs = predictor.predict([text["source"] for text in texts])
        return [{**text, "output": output} for text, output in zip(texts, outputs, strict=True)]

    def _documents(self, row: Row) -> list[str]:
        """Decode ids, split where a document ends; a character that was cut in two is left out."""
        parts = np.split(row, np.flatnonzero(row == self.data.metadata.end))
        ids = [part[part != self.data.metadata.end].tolist() for part in parts]
        return [self.data.tokenizer.decode(part).strip(BROKEN) for part in ids]


@torch.inference_mode()
def attention_map(model: CausalLanguageModel, text: str) -> AttentionMap:
    """Return the attention among the first tokens of a text, for each head of the last layer."""
    module, tokenizer = model.module, model.tokenizer
    ids = encode(tokenizer, text)[: min(MAX_MAP_TOKENS, model.context)]
    last = len(module.decoder.layers) - 1
    with record(module, layers=last) as recording:
        module(torch.tensor([ids], device=next(module.parameters()).device))
    names = [visible(tokenizer.token_of(index)) for index in ids]
    return AttentionMap(visible(tokenizer.decode(ids)), names, names, recording.decoder[last][0].float().cpu().tolist())
