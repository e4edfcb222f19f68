"""Text to text: texts and what they become, an encoder and a decoder, cross-entropy, ROUGE."""

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar

from torch import nn

from ...config import FamilyConfig
from ...data.batch import SpecialTokens
from ...data.labeled_texts import labeled_files
from ...data.published_tokenizer import NAME, ROLES, PublishedTokenizer
from ...data.store import TokenStore
from ...errors import DataError
from ...families.weights import put_weights
from ...files import replacing, sha256_of
from ...lens.report import ScoredSample
from ...training.objective import Monitor
from ..class_scores import share_interval
from ..predictor import located
from ..run import DataReport, Files, TooLittleDataError, TrainingData
from ..run.task import DATA, START, TRAIN, VALID, left_out, settings_json
from ..scoring import Score, corpus_scores, exact_share, mostly_hangul, rouge, rouge_scores
from ..seq2seq import FINAL_TEXTS, VALIDATION_TEXTS, Drafts, Seq2SeqTask, spread_evenly
from ..text_generator import Answer
from .config import TextToTextConfig
from .data import (
    TEXTS,
    TOKENS,
    ExampleData,
    ExampleEncoder,
    ExampleReading,
    TextToTextExample,
    read_examples,
    read_tokens,
    settle_tokenizer,
    split_pairs,
    validation_texts,
)
from .predictor import CutWarning, TextToTextGenerator, TextToTextSettings

TOKENIZER, BASE = "the tokeniser settings", "the base"
LONG = 200  # tokens of a target on average: beyond that, a greedy draft says less than the loss, and takes long
SAMPLES = 200  # answers that metrics.json shows
BOOTSTRAP = 1000
TASKS = 50  # prefixes whose scores are told apart


class TextToTextTask(Seq2SeqTask[TextToTextConfig, ExampleData]):
    """From scratch, or from a model that has learned before."""

    name: ClassVar[str] = TextToTextGenerator.task
    predictor_class: ClassVar[type[Any]] = TextToTextGenerator
    config_class: ClassVar[type[Any]] = TextToTextConfig
    artifacts: ClassVar[tuple[str, ...]] = (
        *(NAME, ROLES),
        *(f"{DATA}/{name}" for name in (TOKENS, TEXTS, TRAIN, VALID, START, NAME, ROLES)),
    )
    frozen_settings: ClassVar[tuple[str, ...]] = (TOKENIZER, BASE)

    def list_files(self, config: TextToTextConfig, paths: Sequence[str]) -> list[Path]:
        """The tables. A base is copied into the run, which then needs it no more."""
        return labeled_files(paths)

    def data_settings(self, config: TextToTextConfig, files: Files) -> dict[str, str]:
        """Columns, prefix, lengths, pieces."""
        limits = {"max_source_tokens": config.source_limit, "max_target_tokens": config.target_limit}
        return {
            "the columns": json.dumps(files.columns),
            "the prefix": config.prefix,
            "the data settings": settings_json(config.data, **limits),
            TOKENIZER: settings_json(config.tokenizer),
            BASE: str(config.base),
        }

    def prepare(
        self, config: TextToTextConfig, files: Files, folder: Path, *, keep: bool = False
    ) -> tuple[ExampleData, DataReport[ExampleReading]]:
        """Settle the tokenizer, which `keep` leaves as it is, and write the stores, the validation texts beside."""
        split, report = split_pairs(files, config.prefix, config.data.holdout)
        if not keep:
            settle_tokenizer(config, folder, (text for one in split.train() for text in (one.text, one.target)))
        tokenizer, tokens = PublishedTokenizer.load(folder / NAME), read_tokens(folder)
        encoder, size = ExampleEncoder(config, tokenizer, tokens), tokenizer.largest + 1
        try:
            train = TokenStore.write(folder / TRAIN, encoder(split.train(), report.train), vocab_size=size)
            with replacing(folder / TEXTS) as partial, partial.open("w", encoding="utf-8", newline="\n") as file:
                rows = encoder(split.valid(), report.valid or report.train, file)
                valid = TokenStore.write(folder / VALID, rows, vocab_size=size)
        except DataError as error:
            raise TooLittleDataError(str(error), report) from None
        if report.valid is None:
            report.held_out = len(valid)
        return TrainingData(folder, train, valid, tokenizer, tokens), report

    def open(self, config: TextToTextConfig, folder: Path) -> ExampleData:
        """The stores, the tokenizer and its special tokens, and as many validation texts as there are rows."""
        stores = TokenStore(folder / TRAIN), TokenStore(folder / VALID)
        data = TrainingData(folder, *stores, PublishedTokenizer.load(folder / NAME), read_tokens(folder))
        if data.metadata.start is None or sum(1 for _ in validation_texts(folder)) != len(data.valid):
            raise DataError(f"{folder}: the validation texts or the tokens are not what was written")
        return data

    def model_config(self) -> FamilyConfig:
        """For the tokenizer's vocabulary."""
        return self.config.model_for(self.data.tokenizer.largest + 1)

    def build(self) -> nn.Module:
        """With fresh weights, or with those of the base."""
        module = super().build()
        start = self.data.start_weights()
        if start is not None:
            put_weights(module, start)
        return module

    @property
    def special_tokens(self) -> SpecialTokens:
        """The tokens that the model begins, ends and pads with."""
        tokens = self.data.metadata
        assert tokens.pad is not None  # a base without them is refused
        assert tokens.start is not None
        return SpecialTokens(tokens.pad, tokens.start, tokens.end[0])

    @property
    def vocab_size(self) -> int:
        """Of both sides."""
        return self.data.tokenizer.vocab_size

    def setup(self) -> None:
        """The score to monitor is ROUGE-L of greedy answers, or the loss if these are long."""
        super().setup()
        self.drafts = float(self.data.valid.lengths[:, 1].mean()) <= LONG
        self.monitor = (
            Monitor("rougeL", higher_is_better=True) if self.drafts else Monitor("loss", higher_is_better=False)
        )

    def valid_examples(self, limit: int) -> list[TextToTextExample]:
        """At most `limit` of those to validate on, spread evenly over all: the texts as they were read."""
        wanted = set(spread_evenly(len(self.data.valid), limit))
        return [one for row, one in enumerate(validation_texts(self.data.folder)) if row in wanted]

    def predictor(self, module: nn.Module) -> TextToTextGenerator:
        """A module together with its tokenizer, its tokens and its search."""
        search = self.config.generation
        if search.max_new_tokens is None:
            search = search.changed(max_new_tokens=max(self.config.target_limit, search.min_new_tokens + 1))
        settings = TextToTextSettings(
            prefix=self.config.prefix,
            max_tokens=self.config.source_limit,
            cut=self.config.data.cut,
            tokens=self.data.metadata,
            generation=search,
        )
        return TextToTextGenerator(self.model_config(), module, self.data.tokenizer, settings)

    def draft(self, module: nn.Module) -> Drafts | None:
        """Greedy answers, where the targets are short."""
        if not self.drafts:
            return None
        examples = self.valid_examples(VALIDATION_TEXTS)
        outputs = [answer.text for answer in quiet_answers(self.predictor(module), examples, beam=1)]
        return Drafts([one.text for one in examples], [one.target for one in examples], outputs)

    def draft_scores(self, drafts: Drafts) -> dict[str, float]:
        """ROUGE, and the share that is exactly right."""
        return quick_scores(drafts.outputs, drafts.references)

    def final_evaluation(self, predictor: TextToTextGenerator) -> dict[str, Any]:
        """With the full search."""
        examples = self.valid_examples(FINAL_TEXTS)
        answers = quiet_answers(predictor, examples)
        samples = [sample_of(answer.text, one) for answer, one in zip(answers, examples, strict=True)]
        return {
            "validation": {**evaluate_answers(answers, examples), "of": len(self.data.valid)},
            "samples": [asdict(sample) for sample in samples[:: -(-len(samples) // SAMPLES)]],
        }

    def identity(self) -> dict[str, str]:
        """The validation texts and the tokens too."""
        return {
            **super().identity(),
            "validation texts": sha256_of(self.data.folder / TEXTS)[:16],
            "tokens": json.dumps(self.special_tokens),
        }

    def evaluate(self, predictor: TextToTextGenerator, files: Files) -> dict[str, Any]:
        """On every pair of the files, with the model's own search; what is left out is said."""
        reading = ExampleReading()
        prefix = predictor.settings.prefix
        examples = list(read_examples(files.train, columns=files.columns, prefix=prefix, reading=reading))
        if not examples:
            raise DataError(f"{', '.join(files.train)}: there is no pair to evaluate on")
        return evaluate_answers(answers_to(predictor, examples), examples) | left_out(reading)

    def title(self, predictor: TextToTextGenerator) -> str:
        """What it is told to do, where it always is."""
        prefix = predictor.settings.prefix.strip()
        return f"text → text, {prefix!r}" if prefix else "text → text"

    def card_notes(self, predictor: TextToTextGenerator, metrics: Mapping[str, Any]) -> list[str]:
        """How it searches, what stands before a text, what it does with long ones, how each task fares."""
        settings, validation = predictor.settings, metrics["validation"]
        tasks = validation["tasks"]
        each = [
            f"| {_cell(one['prefix'])} | {one['n']:,} | {one['exact']:.1f} | {one['rougeL']:.1f} |" for one in tasks
        ]
        before = (
            f"`{settings.prefix}` is put before every text by itself."
            if settings.prefix
            else "What a text's task is stands before it, as in the table above: `predict` takes the text with it."
            if tasks
            else ""
        )
        long = "only the beginning is read, and a warning says so" if settings.cut else "nothing is read: it is refused"
        return [
            *(["| prefix | pairs | exact % | ROUGE-L |", "|---|---|---|---|", *each, ""] if tasks else []),
            f"It was scored on {validation['n']:,} of {validation['of']:,} pairs with beam {settings.generation.beam}.",
            f"{validation['scores']['lead']['metric']}: what the beginning of the source would reach as an answer.",
            *([before] if before else []),
            f"Of a text with more than {predictor.limit} tokens {long}.",
        ]

    def report_sections(
        self, predictor: TextToTextGenerator, metrics: Mapping[str, Any], folder: Path
    ) -> dict[str, Any]:
        """Answers."""
        return {"samples": [ScoredSample(**sample) for sample in metrics["samples"]]}


def _cell(prefix: str) -> str:
    return "`{}`".format(" ".join(prefix.replace("|", "\\|").split())) if prefix.strip() else ""


def answers_to(rewriter: TextToTextGenerator, examples: Sequence[TextToTextExample], **search: Any) -> list[Answer]:
    """To the texts as they stand before the model puts its own prefix there; what it cannot read is named."""
    with located([one.pair.place for one in examples]):
        return rewriter.answers([one.text.removeprefix(rewriter.settings.prefix) for one in examples], **search)


def quiet_answers(rewriter: TextToTextGenerator, examples: Sequence[TextToTextExample], **search: Any) -> list[Answer]:
    """Of a run's own data: that some sources are cut was told when they were read."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CutWarning)
        return answers_to(rewriter, examples, **search)


def evaluate_answers(answers: Sequence[Answer], examples: Sequence[TextToTextExample]) -> dict[str, Any]:
    """What "validation" says in metrics.json."""
    outputs = [answer.text for answer in answers]
    return {
        "n": len(examples),
        "scores": {name: score.to_dict() for name, score in all_scores(outputs, examples).items()},
        "tasks": by_prefix(outputs, examples),
        "unfinished": sum(not answer.finished for answer in answers),
    }


def quick_scores(outputs: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    """What a validation tells, in percent."""
    exact = exact_share(outputs, [[reference] for reference in references])
    return {name: score.value for name, score in rouge_scores(outputs, references).items()} | {"exact": exact}


def all_scores(outputs: Sequence[str], examples: Sequence[TextToTextExample]) -> dict[str, Score]:
    """Everything there is to say; and what as many first words of a source would reach as a reference has on average.

    Where the references are Korean, ROUGE-L of their syllables stands beside that of the words.
    """
    lead = max(1, round(sum(len(one.target.split()) for one in examples) / len(examples)))
    references = [one.target for one in examples]
    exact = exact_share(outputs, [[reference] for reference in references])
    scores = {"exact": Score("exact %", exact, share_interval(exact, len(outputs)))}
    scores |= rouge_scores(outputs, references, bootstrap=BOOTSTRAP)
    if mostly_hangul(references):
        syllables = rouge_scores(outputs, references, unit="characters", bootstrap=BOOTSTRAP)
        scores["rougeL_characters"] = syllables["rougeL"]
    scores["chrf"] = corpus_scores(outputs, references, "en", bootstrap=BOOTSTRAP)["chrf"]  # the same in any language
    beginnings = [" ".join(one.source.split()[:lead]) for one in examples]
    first = rouge_scores(beginnings, references)["rougeL"]
    scores["lead"] = Score(f"ROUGE-L, first {lead} words", first.value, None, first.signature)
    return scores


def by_prefix(outputs: Sequence[str], examples: Sequence[TextToTextExample]) -> list[dict[str, Any]]:
    """The scores of each task, where there are several: by what stands before its texts."""
    rows: dict[str, list[int]] = {}
    for row, one in enumerate(examples):
        rows.setdefault(one.prefix, []).append(row)
    if len(rows) < 2:
        return []
    return [
        {
            "prefix": prefix,
            "n": len(members),
            **quick_scores([outputs[row] for row in members], [examples[row].target for row in members]),
        }
        for prefix, members in sorted(rows.items())[:TASKS]
    ]


def sample_of(output: str, one: TextToTextExample) -> ScoredSample:
    """With its ROUGE-L in percent."""
    score = 100.0 * rouge(output, one.target)["rougeL"]
    return ScoredSample(one.text, one.target, output, score, output == one.target)
