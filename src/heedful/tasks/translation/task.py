"""Translation: sentence pairs, an encoder and a decoder, cross-entropy, BLEU and chrF."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from torch import nn

from ...config import FamilyConfig
from ...data.languages import CODE
from ...data.pairs import CleaningConfig
from ...data.readers import files_of
from ...data.report import PairReport
from ...data.tokenizer import TokenizerConfig
from ...families import config_of
from ...families.translator import TranslatorConfig
from ...generation import GenerationConfig
from ...lens.report import ScoredSample
from ...training.objective import Monitor
from ..run import DataReport, Files, RunConfig
from ..run import train as train_task
from ..run.task import DATA, TRAIN, VALID, settings_json
from ..scoring import (
    LengthScore,
    Score,
    by_length,
    calibration_error,
    corpus_scores,
    exact_share,
    main_metric,
    sentence_score,
)
from ..seq2seq import FINAL_TEXTS, VALIDATION_TEXTS, Drafts, Seq2SeqTask
from ..text_generator import SOURCE, TARGET, Answer
from . import confidence
from .data import (
    PairData,
    Tokenizers,
    has_single_sentences,
    open_pairs,
    prepare_pairs,
    validation_texts,
)
from .inspection import attention_maps
from .predictor import Translator, TranslatorSettings

PRESET = "small"
TOKENIZER = "the tokeniser settings"
SAMPLES = 200  # translations that metrics.json shows


@dataclass(frozen=True, kw_only=True)
class DataConfig(CleaningConfig):
    """Which pairs are used. Without validation files, `holdout` pairs (at most a twentieth) are set apart."""

    max_tokens: int = 256
    holdout: int = 1000

    def check(self) -> None:
        super().check()
        self.require_positive("max_tokens", "holdout")


@dataclass(frozen=True, kw_only=True)
class TranslationConfig(RunConfig):
    """From which language to which, with which data, pieces, model, training and search."""

    preset: ClassVar[str] = PRESET
    supports_r_drop: ClassVar[bool] = True

    source: str
    target: str
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
            isinstance(self.model, TranslatorConfig), f"a model of the family {self.model.title!r} does not translate"
        )
        room = getattr(self.model, "max_length", None)
        self.require(
            room is None or self.data.max_tokens <= room,
            f"data.max_tokens={self.data.max_tokens} is more than the model's max_length={room}",
        )

    def model_for(self, source_size: int, target_size: int) -> FamilyConfig:
        """The model's config once the vocabularies are known; two of them cannot share one matrix."""
        if self.tokenizer.joint:
            return self.model.changed(vocab_size=source_size, target_vocab_size=None)
        tied = "none" if getattr(self.model, "tied", "none") == "none" else "output"
        return self.model.changed(vocab_size=source_size, target_vocab_size=target_size, tied=tied)


class TranslationTask(Seq2SeqTask[TranslationConfig, PairData]):
    """`accepted` lists every right answer to a validation source, where there are more than the file has."""

    name: ClassVar[str] = Translator.task
    predictor_class: ClassVar[type[Any]] = Translator
    config_class: ClassVar[type[Any]] = TranslationConfig
    artifacts: ClassVar[tuple[str, ...]] = (
        *(SOURCE, TARGET),
        *(f"{DATA}/{name}" for name in (TRAIN, VALID, SOURCE, TARGET)),
    )
    frozen_settings: ClassVar[tuple[str, ...]] = (TOKENIZER,)

    def __init__(self, accepted: Mapping[str, Sequence[str]] | None = None) -> None:
        self.accepted = accepted or {}

    def list_files(self, config: TranslationConfig, paths: Sequence[str]) -> list[Path]:
        """Both sides of parallel text among them."""
        return files_of(paths, config.source, config.target)

    def data_settings(self, config: TranslationConfig, files: Files) -> dict[str, str]:
        """Languages, columns, cleaning, pieces."""
        return {
            "the languages": f"{config.source} to {config.target}",
            "the columns": json.dumps(files.columns),
            "the data settings": settings_json(config.data),
            TOKENIZER: settings_json(config.tokenizer),
        }

    def prepare(
        self, config: TranslationConfig, files: Files, folder: Path, *, keep: bool = False
    ) -> tuple[PairData, DataReport[PairReport]]:
        """Cleaned and tokenized once."""
        tokenizers = Tokenizers.load(folder, joint=config.tokenizer.joint) if keep else None
        return prepare_pairs(config, files, folder, tokenizers=tokenizers)

    def open(self, config: TranslationConfig, folder: Path) -> PairData:
        """The stores."""
        return open_pairs(folder, joint=config.tokenizer.joint)

    def model_config(self) -> FamilyConfig:
        """For the vocabularies of both languages."""
        return self.config.model_for(*self.data.tokenizer.sizes)

    @property
    def vocab_size(self) -> int:
        """Of the source."""
        return self.data.tokenizer.source.vocab_size

    def setup(self) -> None:
        """The score to monitor is that of greedy translations."""
        super().setup()
        self.monitor = Monitor(main_metric(self.config.target), higher_is_better=True)
        self.sources, self.references = validation_texts(self.data, VALIDATION_TEXTS)
        self.one_sentence = has_single_sentences(self.data)

    def predictor(self, module: nn.Module) -> Translator:
        """A module together with what turns text into ids and back."""
        settings = TranslatorSettings(
            source=self.config.source,
            target=self.config.target,
            joint=self.config.tokenizer.joint,
            max_tokens=self.config.data.max_tokens,
            one_sentence=self.one_sentence,
            generation=self.config.generation,
        )
        return Translator(self.model_config(), module, self.data.tokenizer, settings)

    def draft(self, module: nn.Module) -> Drafts:
        """Greedy translations."""
        return Drafts(self.sources, self.references, self.predictor(module).predict(self.sources, beam=1))

    def draft_scores(self, drafts: Drafts) -> dict[str, float]:
        """BLEU and chrF, and the share that is exactly right."""
        scores = corpus_scores(drafts.outputs, drafts.references, self.config.target)
        right = sum(a == b for a, b in zip(drafts.references, drafts.outputs, strict=True))
        return {**{name: score.value for name, score in scores.items()}, "exact": 100.0 * right / len(drafts.outputs)}

    def final_evaluation(self, predictor: Translator) -> dict[str, Any]:
        """With the full search. What is right among its candidates teaches the translator how sure it may be."""
        sources, references = validation_texts(self.data, FINAL_TEXTS)
        pairs = zip(sources, references, strict=True)
        right = [self.accepted.get(source, (reference,)) for source, reference in pairs]
        several = min(confidence.CANDIDATES, predictor.generation.beam)
        evaluation = evaluate(predictor, sources, references, accepted=right, n_best=several)
        learned = learn_confidence(predictor, evaluation, right)
        return {
            "validation": evaluation.to_dict(),
            "confidence": learned,
            "samples": [asdict(sample) for sample in evaluation.samples[:SAMPLES]],
        }

    def identity(self) -> dict[str, str]:
        """Both tokenizers too."""
        tokenizers = {"source tokeniser": self.data.tokenizer.source, "target tokeniser": self.data.tokenizer.target}
        return {**super().identity(), **{name: tokenizer.fingerprint[:16] for name, tokenizer in tokenizers.items()}}

    def title(self, predictor: Translator) -> str:
        """From which language to which."""
        return f"{predictor.settings.source} → {predictor.settings.target}"

    def card_notes(self, predictor: Translator, metrics: Mapping[str, Any]) -> list[str]:
        """How it searches, what its confidence is worth, what it does with long texts."""
        settings, learned = predictor.settings, metrics["confidence"]
        sure = (
            f"It gives no confidence with its answers: {learned['why_not']}."
            if "why_not" in learned
            else "It says how likely each answer is right (`heedful predict --scores`), as learned from these pairs."
        )
        return [
            f"It was scored with beam {settings.generation.beam}.",
            sure,
            f"Sources of more than {settings.max_tokens} pieces are cut at sentence ends, or refused if there is none.",
        ]

    def report_sections(self, predictor: Translator, metrics: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        """Translations, constructions, and what a few sentences attend to."""
        constructions = metrics.get("constructions", {})
        return {
            "constructions": [(name, right, total) for name, (right, total) in constructions.items()],
            "samples": [ScoredSample(**sample) for sample in metrics["samples"]],
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
    by_length: list[LengthScore]
    samples: list[ScoredSample]
    candidates: list[list[Answer]]
    calibration: dict[str, float]

    @property
    def answers(self) -> list[Answer]:
        """The best candidate of each."""
        return [best for best, *_ in self.candidates]

    @property
    def unfinished(self) -> int:
        """How many outputs had not come to an end when their room did."""
        return sum(not answer.finished for answer in self.answers)

    @property
    def right(self) -> list[bool]:
        """Which outputs are an accepted answer."""
        return [sample.exact for sample in self.samples]

    @property
    def best(self) -> list[ScoredSample]:
        """From the best sentence to the worst."""
        return sorted(self.samples, key=lambda sample: -sample.score)

    def to_dict(self) -> dict[str, Any]:
        """For metrics.json: everything but the samples."""
        return {
            "n": len(self.samples),
            "scores": {
                "exact": Score("exact %", self.exact).to_dict(),
                **{name: score.to_dict() for name, score in self.scores.items()},
            },
            "by_length": [[group.label, group.count, group.score] for group in self.by_length],
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
    """Translate the sources and compare. `accepted` lists every right answer where a reference is only one of them."""
    language = translator.settings.target
    candidates = translator.candidates(sources, **generation)
    answers = [best for best, *_ in candidates]
    outputs = [answer.text for answer in answers]
    right = [[reference] for reference in references] if accepted is None else accepted
    exact = [output in rights for output, rights in zip(outputs, right, strict=True)]
    return Evaluation(
        scores=corpus_scores(outputs, references, language, bootstrap=bootstrap),
        exact=exact_share(outputs, right),
        by_length=by_length(sources, outputs, references, language),
        samples=[
            ScoredSample(source, reference, output, sentence_score(output, reference), hit)
            for source, reference, output, hit in zip(sources, references, outputs, exact, strict=True)
        ],
        candidates=candidates,
        calibration=_calibration(answers, exact),
    )


def _calibration(answers: Sequence[Answer], exact: Sequence[bool]) -> dict[str, float]:
    stated = {"probability": [math.exp(answer.logprob) for answer in answers]}
    sure = [answer.confidence for answer in answers if answer.confidence is not None]
    if len(sure) == len(answers):
        stated["confidence"] = sure
    return {name: calibration_error(shares, exact) for name, shares in stated.items()}


def learn_confidence(
    translator: Translator, evaluation: Evaluation, accepted: Sequence[Sequence[str]]
) -> dict[str, Any]:
    """Teach the translator how sure it may be, by several candidates of each sentence; what was learned, or why not."""
    found = evaluation.candidates
    if translator.generation.beam < confidence.CANDIDATES:  # it has a narrower search of its own
        sources = [sample.source for sample in evaluation.samples]
        found = translator.candidates(sources, n_best=confidence.CANDIDATES)
    candidates = [
        confidence.ScoredAnswer(answer.logprob, answer.n_tokens, answer.text in right)
        for answers, right in zip(found, accepted, strict=True)
        for answer in answers
    ]
    reason = confidence.why_not(candidates)
    if reason is not None:
        return {"why_not": reason}
    given = zip(evaluation.answers, evaluation.right, strict=True)
    own = [confidence.ScoredAnswer(answer.logprob, answer.n_tokens, right) for answer, right in given]
    learned = confidence.fit(candidates, own)
    translator.settings = translator.settings.changed(confidence=learned)
    return learned.to_dict()


def train(
    config: TranslationConfig,
    files: Files,
    out: str | Path,
    *,
    accepted: Mapping[str, Sequence[str]] | None = None,
    **options: Any,
) -> Translator:
    """Train a translator and leave its bundle, its scores, its card and its report in `out`.

    `accepted` lists every right answer to a validation source, where there are more than the file has. The other
    options are those of `heedful.tasks.run.train`: resume, allow_changes, overwrite, on_read, watch.

    >>> config = TranslationConfig(source="ko", target="en")
    >>> train(config, Files(train=("pairs.tsv",)), "runs/ko-en").predict(["나는 책을 읽어요."])
    """
    translator: Translator = train_task(TranslationTask(accepted), config, files, out, **options)
    return translator
