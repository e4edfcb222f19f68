"""The task of translation: sentence pairs, teacher forcing, BLEU and chrF."""

import json
import math
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from torch import nn

from ...config import FamilyConfig
from ...data.languages import CODE
from ...data.pairs import CleaningConfig, Pair
from ...data.readers import files_of
from ...data.report import PairReport
from ...data.store import TokenStore, encode_pairs
from ...data.tokenizer import TokenizerConfig
from ...errors import DataError
from ...families import config_of
from ...families.encoder_decoder import EncoderDecoderConfig
from ...generation import GenerationConfig
from ...lens.report import ScoredSample
from ...training.objective import Monitor
from ..predictor import without_warnings
from ..rivals import Rival, to_other_sources
from ..run import DataReport, Files, RunConfig, TooLittleDataError
from ..run import train as train_task
from ..run.config import settings_json
from ..run.data import DATA, SCRATCH, TRAIN, VALID
from ..scoring import Score, by_length, calibration_error, corpus_scores, exact_share, main_metric, sentence_score
from ..seq2seq import FINAL_TEXTS, MARGIN, Seq2SeqTask, draft_count, length_limits, length_setting
from ..text_generator import SOURCE, TARGET, Answer, unfinished_share
from .data import LongTextWarning, PairData, Tokenizers, has_single_sentences, split_sentence_pairs, validation_texts
from .inspection import attention_maps
from .predictor import Confidence, ScoredAnswer, Translator, TranslatorSettings

PRESET = "small"
DEFAULT_MAX_TOKENS = 1024
LEAST_READ = 64  # tokens of a sentence that a translator reads without a warning, at least
TOKENIZER = "the tokeniser settings"
TOO_MANY_TOKENS = "too many tokens"  # why a pair is dropped
SAMPLES = 200  # translations that metrics.json shows
CANDIDATES = 4  # of each sentence, from which the confidence is learned


@dataclass(frozen=True, kw_only=True)
class DataConfig(CleaningConfig):
    """How pairs are cleaned, and how many are held out."""

    max_tokens: int | None = None  # Pairs with a longer side are dropped; None: 1024, or model.max_length
    holdout: int = 1000  # Pairs for validation, at most a twentieth, if there are no validation files

    def check(self) -> None:
        super().check()
        self.require_positive("max_tokens", "holdout")


@dataclass(frozen=True, kw_only=True)
class TranslationConfig(RunConfig):
    """The settings of a translation run, from the language `source` to the language `target`."""

    preset: ClassVar[str] = PRESET
    supports_r_drop: ClassVar[bool] = True

    source: str  # Code of the language to translate from, such as ko or pt-BR
    target: str  # Code of the language to translate to
    data: DataConfig = field(default_factory=DataConfig)
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    model: FamilyConfig = field(default_factory=lambda: config_of(PRESET))
    generation: GenerationConfig = field(default_factory=lambda: GenerationConfig(beam=5))

    def check(self) -> None:
        for side in ("source", "target"):
            code = getattr(self, side)
            self.require(
                CODE.fullmatch(code) is not None, f"{side} must be a language code such as ko or pt-BR, not {code!r}"
            )
        self.require(self.source != self.target, f"source and target are both {self.source!r}")
        self.require(
            isinstance(self.model, EncoderDecoderConfig),
            f"a model of the family {self.model.title!r} does not translate",
        )
        room = getattr(self.model, "max_length", None)
        self.require(
            room is None or self.data.max_tokens is None or self.data.max_tokens <= room,
            f"data.max_tokens={self.data.max_tokens} is more than the model's max_length={room}",
        )

    @property
    def limit(self) -> int:
        """The most tokens that a side of a pair may have."""
        return self.data.max_tokens or getattr(self.model, "max_length", None) or DEFAULT_MAX_TOKENS

    def model_for(self, source_size: int, target_size: int) -> FamilyConfig:
        """Return the model's config for these vocabularies; two vocabularies cannot share one matrix."""
        if self.tokenizer.joint:
            return self.model.changed(vocab_size=source_size, target_vocab_size=None)
        tied = "none" if getattr(self.model, "tied", "none") == "none" else "output"
        return self.model.changed(vocab_size=source_size, target_vocab_size=target_size, tied=tied)


class TranslationTask(Seq2SeqTask[TranslationConfig, PairData]):
    """Trains a translator. `accepted` lists all right answers to a validation source, where there are several."""

    name: ClassVar[str] = Translator.task
    predictor_class: ClassVar[type[Any]] = Translator
    config_class: ClassVar[type[Any]] = TranslationConfig
    artifacts: ClassVar[tuple[str, ...]] = (
        *(SOURCE, TARGET),
        *(f"{DATA}/{name}" for name in (TRAIN, VALID, SOURCE, TARGET)),
    )
    frozen_settings: ClassVar[tuple[str, ...]] = (TOKENIZER,)
    rivals: ClassVar[tuple[Rival, ...]] = (
        Rival("copy", ("chrf",)),
        Rival("other_sources", ("chrf",), margin=1.0),
    )

    def __init__(self, accepted: Mapping[str, Sequence[str]] | None = None) -> None:
        self.accepted = accepted or {}

    def list_files(self, config: TranslationConfig, paths: Sequence[str]) -> list[Path]:
        """Return the files of these paths, both sides of parallel text included."""
        return files_of(paths, config.source, config.target)

    def data_settings(self, config: TranslationConfig, files: Files) -> dict[str, str]:
        return {
            "the languages": f"{config.source} to {config.target}",
            "the columns": json.dumps(files.columns),
            "the data settings": settings_json(config.data),
            TOKENIZER: settings_json(config.tokenizer),
        }

    def prepare(
        self, config: TranslationConfig, files: Files, folder: Path, *, keep: bool = False
    ) -> tuple[PairData, DataReport[PairReport]]:
        """Write the tokenizers and the stores, with every pair cleaned and tokenized once."""
        scratch = folder / SCRATCH
        shutil.rmtree(scratch, ignore_errors=True)  # of a run that was killed
        scratch.mkdir(parents=True)
        try:
            split, report = split_sentence_pairs(config, files, scratch)
            if keep:
                tokenizers = Tokenizers.load(folder, joint=config.tokenizer.joint)
            else:
                tokenizers = Tokenizers.train(config.tokenizer, split.train)
            tokenizers.save(folder)

            def write(name: str, pairs: Iterator[Pair], part: PairReport) -> TokenStore:
                def drop(pair: Pair, length: int) -> None:
                    part.drop_kept(TOO_MANY_TOKENS, pair.place, *pair.texts)
                    if config.data.max_tokens is None:
                        setting = length_setting(config, "data.max_tokens")
                        part.advise(TOO_MANY_TOKENS, setting, length, pair.texts)

                sides, limit = (tokenizers.source, tokenizers.target), config.limit
                rows = encode_pairs(pairs, *sides, max_tokens=limit, too_long=drop)
                try:
                    return TokenStore.write(folder / name, rows, vocab_size=max(tokenizers.sizes))
                except DataError as error:
                    raise TooLittleDataError(str(error), report) from None

            train = write(TRAIN, split.train(), report.train)
            valid = write(VALID, split.valid(), report.valid or report.train)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        if report.valid is None:
            report.held_out = len(valid)
        return PairData(folder, train, valid, tokenizers, None), report

    def open(self, config: TranslationConfig, folder: Path) -> PairData:
        stores = TokenStore(folder / TRAIN), TokenStore(folder / VALID)
        return PairData(folder, *stores, Tokenizers.load(folder, joint=config.tokenizer.joint), None)

    def model_config(self) -> FamilyConfig:
        return self.config.model_for(*self.data.tokenizer.sizes)

    def setup(self) -> None:
        """Monitor the main score of greedy translations."""
        super().setup()
        self.monitor = Monitor(main_metric(self.config.target), higher_is_better=True)
        self.sources, self.references = validation_texts(self.data, draft_count(self.data.valid.lengths))
        self.one_sentence = has_single_sentences(self.data)

    def predictor(self, module: nn.Module) -> Translator:
        """Return a translator with this run's tokenizers and settings."""
        settings = TranslatorSettings(
            source=self.config.source,
            target=self.config.target,
            joint=self.config.tokenizer.joint,
            max_tokens=max(int(MARGIN * self.data.train.lengths[:, 0].max()), LEAST_READ),
            one_sentence=self.one_sentence,
            generation=self.config.generation.changed(**length_limits(self.data.train.lengths)),
        )
        tokenizers = self.data.tokenizer
        return Translator(self.model_config(), module, tokenizers.source, settings, tokenizers.target)

    def draft_scores(self, module: nn.Module) -> dict[str, float]:
        with without_warnings(LongTextWarning):
            answers = self.predictor(module).answers(self.sources, beam=1)
        outputs = [answer.text for answer in answers]
        self.samples = list(zip(self.sources, self.references, outputs, strict=True))
        scores = corpus_scores(outputs, self.references, self.config.target)
        exact = exact_share(outputs, [[reference] for reference in self.references])
        values = {name: score.value for name, score in scores.items()}
        return {**values, "exact": exact, "unfinished": unfinished_share(answers)}

    def final_evaluation(self, predictor: Translator) -> dict[str, Any]:
        """Score the answers of the full search beside copies of the source, and learn the confidence."""
        sources, references = validation_texts(self.data, FINAL_TEXTS)
        pairs = zip(sources, references, strict=True)
        right = [self.accepted.get(source, (reference,)) for source, reference in pairs]
        several = min(CANDIDATES, predictor.generation.beam)
        with without_warnings(LongTextWarning):
            evaluation = evaluate(predictor, sources, references, accepted=right, n_best=several)
            learned = learn_confidence(predictor, evaluation, right)
        validation = evaluation.to_dict()
        copied = corpus_scores(sources, references, self.config.target)["chrf"].value
        validation["scores"]["copy"] = Score("chrF2 of copying the source", copied).to_dict()
        if outputs := to_other_sources([sample.output for sample in evaluation.samples]):
            other = corpus_scores(outputs, references, self.config.target)["chrf"].value
            validation["scores"]["other_sources"] = Score("chrF2 of its answers to other sources", other).to_dict()
        return {
            "validation": validation,
            "confidence": learned,
            "samples": [asdict(sample) for sample in evaluation.samples[:SAMPLES]],
        }

    def identity(self) -> dict[str, str]:
        tokenizers = {"source tokeniser": self.data.tokenizer.source, "target tokeniser": self.data.tokenizer.target}
        return {**super().identity(), **{name: tokenizer.fingerprint[:16] for name, tokenizer in tokenizers.items()}}

    def title(self, predictor: Translator) -> str:
        return f"{predictor.settings.source} → {predictor.settings.target}"

    def card_notes(self, predictor: Translator, metrics: Mapping[str, Any]) -> list[str]:
        settings, learned = predictor.settings, metrics["confidence"]
        confidence = (
            f"It gives no confidence with its answers: {learned['why_not']}."
            if "why_not" in learned
            else "It estimates how likely each answer is right (`heedful predict --scores`), calibrated on these pairs."
        )
        return [
            f"It was scored with beam {settings.generation.beam}.",
            confidence,
            f"Sources of more than {settings.max_tokens} tokens, more than in training, are split at sentence ends; a "
            "longer sentence is read whole, with a warning.",
        ]

    def report_sections(self, predictor: Translator, metrics: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        constructions = metrics.get("constructions", {})
        return {
            **super().report_sections(predictor, metrics, folder),
            "constructions": [(name, right, total) for name, (right, total) in constructions.items()],
            "attention": attention_maps(predictor, metrics["samples"]),
        }


@dataclass(frozen=True)
class Evaluation:
    """Scores of a set of pairs; the score of a sample is chrF.

    `exact` is the share, in percent, of outputs that are an accepted answer. `calibration` is how far from that, in
    percent, lie the model's own "probability" and its "confidence" (where it has one).
    """

    scores: dict[str, Score]
    exact: float
    by_length: list[tuple[str, int, float]]
    samples: list[ScoredSample]
    candidates: list[list[Answer]]
    calibration: dict[str, float]

    @property
    def unfinished(self) -> int:
        """The number of outputs that were cut off before their end token."""
        return sum(not best.finished for best, *_ in self.candidates)

    def to_dict(self) -> dict[str, Any]:
        """Return the content of metrics.json, without the samples."""
        return {
            "n": len(self.samples),
            "scores": {
                "exact": Score("exact %", self.exact).to_dict(),
                **{name: score.to_dict() for name, score in self.scores.items()},
            },
            "by_length": [list(group) for group in self.by_length],
            "calibration": self.calibration,
            "unfinished": self.unfinished,
        }


def evaluate(
    translator: Translator,
    sources: Sequence[str],
    references: Sequence[str],
    *,
    accepted: Sequence[Sequence[str]] | None = None,
    bootstrap: int = 1000,
    **generation: Any,
) -> Evaluation:
    """Translate the sources and score the outputs; `accepted` lists all right answers where there are several."""
    language = translator.settings.target
    candidates = translator.candidates(sources, **generation)
    answers = [best for best, *_ in candidates]
    outputs = [answer.text for answer in answers]
    right = [[reference] for reference in references] if accepted is None else accepted
    exact = [output in rights for output, rights in zip(outputs, right, strict=True)]
    stated = {"probability": [math.exp(answer.logprob) for answer in answers]}
    confidences = [answer.confidence for answer in answers if answer.confidence is not None]
    if len(confidences) == len(answers):
        stated["confidence"] = confidences
    return Evaluation(
        scores=corpus_scores(outputs, references, language, bootstrap=bootstrap),
        exact=exact_share(outputs, right),
        by_length=by_length(sources, outputs, references, language),
        samples=[
            ScoredSample(source, reference, output, sentence_score(output, reference), hit)
            for source, reference, output, hit in zip(sources, references, outputs, exact, strict=True)
        ],
        candidates=candidates,
        calibration={name: calibration_error(shares, exact) for name, shares in stated.items()},
    )


def learn_confidence(
    translator: Translator, evaluation: Evaluation, accepted: Sequence[Sequence[str]]
) -> dict[str, Any]:
    """Learn the translator's confidence from several candidates of each sentence.

    Returns the learned values; or, where the candidates cannot teach it, {"why_not": the reason}.
    """
    answers = evaluation.candidates
    if translator.generation.beam < CANDIDATES:  # then the evaluation has fewer candidates
        answers = translator.candidates([sample.source for sample in evaluation.samples], n_best=CANDIDATES)
    candidates = [
        ScoredAnswer(answer.logprob, answer.n_tokens, answer.text in right)
        for several, right in zip(answers, accepted, strict=True)
        for answer in several
    ]
    best = [
        ScoredAnswer(answers[0].logprob, answers[0].n_tokens, sample.exact)
        for answers, sample in zip(evaluation.candidates, evaluation.samples, strict=True)
    ]
    try:
        confidence = Confidence.fit(candidates, best)
    except DataError as error:
        return {"why_not": str(error)}
    translator.settings = translator.settings.changed(confidence=confidence)
    return confidence.to_dict()


def train(
    config: TranslationConfig,
    files: Files,
    out: str | Path,
    *,
    accepted: Mapping[str, Sequence[str]] | None = None,
    **options: Any,
) -> Translator:
    """Train a translator, and write its bundle, scores, card and report into `out`.

    `accepted` lists all right answers to a validation source, where there are several. The other options are those of
    `heedful.tasks.run.train`: resume, allow_changes, overwrite, on_read, watch.

    >>> config = TranslationConfig(source="ko", target="en")
    >>> train(config, Files(train=("pairs.tsv",)), "runs/ko-en").predict(["나는 책을 읽어요."])
    """
    translator: Translator = train_task(TranslationTask(accepted), config, files, out, **options)
    return translator
