"""The task of text-to-text models: pairs of texts, teacher forcing, ROUGE."""

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from torch import nn

from ...config import FamilyConfig
from ...data.batch import SpecialTokens
from ...data.labeled_texts import labeled_files
from ...data.published_tokenizer import NAME, ROLES, PublishedTokenizer
from ...data.store import TokenStore
from ...errors import DataError
from ...files import replacing, sha256_of
from ...lens.report import ScoredSample
from ...training.objective import Monitor
from ..class_scores import share_interval
from ..predictor import located, without_warnings
from ..rivals import Rival, to_other_sources
from ..run import DataReport, Files, Refusals, TooLittleDataError, TrainingData
from ..run.config import settings_json
from ..run.data import DATA, START, TRAIN, VALID, left_out
from ..scoring import Score, corpus_scores, exact_share, mostly_hangul, rouge, rouge_scores, rouge_share
from ..seq2seq import FINAL_TEXTS, MARGIN, SHORT, VALIDATION_TEXTS, Seq2SeqTask, draft_count, spread_evenly
from ..text_generator import Answer, unfinished_share
from .data import (
    TEXTS,
    TOKENS,
    ExampleData,
    ExampleReading,
    TextToTextConfig,
    TextToTextExample,
    create_tokenizer,
    encode_examples,
    read_examples,
    read_tokens,
    split_text_pairs,
    validation_texts,
)
from .predictor import CutWarning, TextToTextGenerator, TextToTextSettings

TOKENIZER, BASE = "the tokeniser settings", "the base"
MAX_DRAFT_TOKENS = 200  # of an average target: longer drafts say less than the loss, and take long
READABLE = 0.85  # of the characters count for ROUGE in prose; code, dates and brackets have fewer letters and digits
SAMPLES = 200  # answers that metrics.json shows
BOOTSTRAP = 1000
MAX_PREFIXES = 50  # that have scores of their own


class TextToTextTask(Seq2SeqTask[TextToTextConfig, ExampleData]):
    """Trains an encoder-decoder from scratch, or from a base model."""

    name: ClassVar[str] = TextToTextGenerator.task
    predictor_class: ClassVar[type[Any]] = TextToTextGenerator
    config_class: ClassVar[type[Any]] = TextToTextConfig
    artifacts: ClassVar[tuple[str, ...]] = (
        *(NAME, ROLES),
        *(f"{DATA}/{name}" for name in (TOKENS, TEXTS, TRAIN, VALID, START, NAME, ROLES)),
    )
    frozen_settings: ClassVar[tuple[str, ...]] = (TOKENIZER, BASE)
    rivals: ClassVar[tuple[Rival, ...]] = (
        Rival("other_sources", ("rougeL",), margin=1.0),
        Rival("lead", ("rougeL",), is_trivial=False),
    )

    def list_files(self, config: TextToTextConfig, paths: Sequence[str]) -> list[Path]:
        return labeled_files(paths)

    def data_settings(self, config: TextToTextConfig, files: Files) -> dict[str, str]:
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
        """Write the tokenizer, the stores, and the validation texts as they were read."""
        split, report = split_text_pairs(files, config.prefix, config.data.holdout)
        if not keep:
            create_tokenizer(config, folder, (text for example in split.train() for text in example.texts))
        tokenizer, tokens = PublishedTokenizer.load(folder / NAME), read_tokens(folder)
        encode, size = partial(encode_examples, config, tokenizer, tokens), tokenizer.largest + 1
        try:
            train = TokenStore.write(folder / TRAIN, encode(split.train(), report.train), vocab_size=size)
            with replacing(folder / TEXTS) as path, path.open("w", encoding="utf-8", newline="\n") as file:
                rows = encode(split.valid(), report.valid or report.train, file)
                valid = TokenStore.write(folder / VALID, rows, vocab_size=size)
        except DataError as error:
            raise TooLittleDataError(str(error), report) from None
        if report.valid is None:
            report.held_out = len(valid)
        return TrainingData(folder, train, valid, tokenizer, tokens), report

    def open(self, config: TextToTextConfig, folder: Path) -> ExampleData:
        stores = TokenStore(folder / TRAIN), TokenStore(folder / VALID)
        data = TrainingData(folder, *stores, PublishedTokenizer.load(folder / NAME), read_tokens(folder))
        if data.metadata.start is None or sum(1 for _ in validation_texts(folder)) != len(data.valid):
            raise DataError(f"{folder}: the validation texts or the tokens were changed since they were written")
        return data

    def model_config(self) -> FamilyConfig:
        return self.config.model_for(self.data.tokenizer.largest + 1)

    @property
    def special_tokens(self) -> SpecialTokens:
        tokens = self.data.metadata
        assert tokens.pad is not None  # a base without them is refused
        assert tokens.start is not None
        return SpecialTokens(tokens.pad, tokens.start, tokens.end[0])

    def setup(self) -> None:
        """Monitor the loss if targets are long, exact answers if ROUGE ignores much of them, otherwise ROUGE-L."""
        super().setup()
        self.has_drafts = float(self.data.valid.lengths[:, 1].mean()) <= MAX_DRAFT_TOKENS
        targets = [example.target for example in self.valid_examples(VALIDATION_TEXTS)]
        score = "rougeL" if rouge_share(targets) > READABLE else "exact"
        self.monitor = Monitor(score if self.has_drafts else "loss", higher_is_better=self.has_drafts)

    def valid_examples(self, limit: int) -> list[TextToTextExample]:
        """Return at most `limit` validation examples, spread evenly over all."""
        rows = set(spread_evenly(len(self.data.valid), limit))
        return [example for row, example in enumerate(validation_texts(self.data.folder)) if row in rows]

    def predictor(self, module: nn.Module) -> TextToTextGenerator:
        """Return a predictor with this run's tokenizer, prefix and settings of generation."""
        search = self.config.generation
        if search.max_new_tokens is None:
            longest = int(self.data.train.lengths[:, 1].max()) + 1
            limit = min(math.ceil(MARGIN * longest) + SHORT, self.config.target_limit)
            search = search.changed(max_new_tokens=max(limit, search.min_new_tokens + 1))
        settings = TextToTextSettings(
            prefix=self.config.prefix,
            max_tokens=self.config.source_limit,
            cut=self.config.data.cut,
            tokens=self.data.metadata,
            generation=search,
        )
        return TextToTextGenerator(self.model_config(), module, self.data.tokenizer, settings)

    def draft_scores(self, module: nn.Module) -> dict[str, float]:
        if not self.has_drafts:
            return {}
        examples = self.valid_examples(draft_count(self.data.valid.lengths))
        answers = answers_to(self.predictor(module), examples, beam=1)
        outputs = [answer.text for answer in answers]
        pairs = zip(examples, outputs, strict=True)
        self.samples = [(example.text, example.target, output) for example, output in pairs]
        return quick_scores(outputs, examples) | {"unfinished": unfinished_share(answers)}

    def final_evaluation(self, predictor: TextToTextGenerator) -> dict[str, Any]:
        """Score the answers of the full search; the score of a sample is its ROUGE-L in percent."""
        examples = self.valid_examples(FINAL_TEXTS)
        answers = answers_to(predictor, examples)
        samples = [
            ScoredSample(
                example.text,
                example.target,
                text,
                100.0 * rouge(text, example.target)["rougeL"],
                text == example.target,
            )
            for text, example in zip([answer.text for answer in answers], examples, strict=True)
        ]
        validation = {**evaluate_answers(answers, examples), "of": len(self.data.valid)}
        if outputs := to_other_sources([sample.output for sample in samples]):
            other = rouge_scores(outputs, [example.target for example in examples])["rougeL"].value
            validation["scores"]["other_sources"] = Score("ROUGE-L of its answers to other sources", other).to_dict()
        return {
            "validation": validation,
            "samples": [asdict(sample) for sample in samples[:: -(-len(samples) // SAMPLES)]],
        }

    def identity(self) -> dict[str, str]:
        return {
            **super().identity(),
            "validation texts": sha256_of(self.data.folder / TEXTS)[:16],
            "tokens": json.dumps(self.special_tokens),
        }

    def evaluate(self, predictor: TextToTextGenerator, files: Files, *, strict: bool = False) -> dict[str, Any]:
        """Score every pair of the files with the model's settings of generation; report what is left out."""
        reading, refusals = ExampleReading(), Refusals(strict=strict)
        prefix = predictor.settings.prefix
        pairs = read_examples(files.train, columns=files.columns, prefix=prefix, reading=reading)

        def fault(example: TextToTextExample) -> str | None:
            with without_warnings(CutWarning):
                return predictor.validation_error(example.text.removeprefix(prefix))

        examples = list(refusals.accepted(pairs, fault))
        if not examples:
            raise DataError(f"{', '.join(files.train)}: there is no pair to evaluate on")
        answers = answers_to(predictor, examples, warn=True)
        return evaluate_answers(answers, examples) | left_out(reading) | refusals.to_dict()

    def title(self, predictor: TextToTextGenerator) -> str:
        prefix = predictor.settings.prefix.strip()
        return f"text → text, {prefix!r}" if prefix else "text → text"

    def card_notes(self, predictor: TextToTextGenerator, metrics: Mapping[str, Any]) -> list[str]:
        settings, validation = predictor.settings, metrics["validation"]
        notes = []
        if validation["tasks"]:
            notes += ["| prefix | pairs | exact % | ROUGE-L |", "|---|---|---|---|"]
            for scores in validation["tasks"]:
                prefix = " ".join(scores["prefix"].replace("|", "\\|").split())
                cell = f"`{prefix}`" if prefix else ""
                notes.append(f"| {cell} | {scores['n']:,} | {scores['exact']:.1f} | {scores['rougeL']:.1f} |")
            notes.append("")
        notes += [
            f"It was scored on {validation['n']:,} of {validation['of']:,} pairs with beam {settings.generation.beam}.",
            f"{validation['scores']['lead']['metric']}: the score of the source's beginning, used as the answer.",
        ]
        if settings.prefix:
            notes.append(f"`predict` puts `{settings.prefix}` before every text.")
        elif validation["tasks"]:
            notes.append(
                "A prefix names the task of a text, as in the table above: give it to `predict` with the text."
            )
        long = "is cut, with a warning" if settings.cut else "is refused"
        return [*notes, f"A text with more than {predictor.limit} tokens {long}."]


def answers_to(
    model: TextToTextGenerator, examples: Sequence[TextToTextExample], *, warn: bool = False, **generation: Any
) -> list[Answer]:
    """Answer the examples; an error names the place of the text.

    The prefix that the model adds is removed. The data of a run needs no warning for sources that are cut: its report
    counts them.
    """
    texts = [example.text.removeprefix(model.settings.prefix) for example in examples]
    with located([example.place for example in examples]), nullcontext() if warn else without_warnings(CutWarning):
        return model.answers(texts, **generation)


def evaluate_answers(answers: Sequence[Answer], examples: Sequence[TextToTextExample]) -> dict[str, Any]:
    """Return all scores of answers, as "validation" holds them in metrics.json."""
    outputs = [answer.text for answer in answers]
    return {
        "n": len(examples),
        "scores": {name: score.to_dict() for name, score in all_scores(outputs, examples).items()},
        "tasks": by_prefix(outputs, examples),
        "unfinished": sum(not answer.finished for answer in answers),
    }


def quick_scores(outputs: Sequence[str], examples: Sequence[TextToTextExample]) -> dict[str, float]:
    """Return the scores of a validation during training: ROUGE, and the share of exact answers, in percent."""
    references = [example.target for example in examples]
    exact = exact_share(outputs, [[reference] for reference in references])
    return {name: score.value for name, score in rouge_scores(outputs, references).items()} | {"exact": exact}


def all_scores(outputs: Sequence[str], examples: Sequence[TextToTextExample]) -> dict[str, Score]:
    """Return exact matches, ROUGE, chrF, and the ROUGE-L of the baseline "lead".

    The baseline answers with the first words of the source, as many as a reference has on average. Where the
    references are Korean, ROUGE-L of syllables stands beside that of words.
    """
    lead = max(1, round(sum(len(example.target.split()) for example in examples) / len(examples)))
    references = [example.target for example in examples]
    exact = exact_share(outputs, [[reference] for reference in references])
    scores = {"exact": Score("exact %", exact, share_interval(exact, len(outputs)))}
    scores |= rouge_scores(outputs, references, bootstrap=BOOTSTRAP)
    if mostly_hangul(references):
        syllables = rouge_scores(outputs, references, unit="characters", bootstrap=BOOTSTRAP)
        scores["rougeL_characters"] = syllables["rougeL"]
    scores["chrf"] = corpus_scores(outputs, references, "en", bootstrap=BOOTSTRAP)["chrf"]  # the same in any language
    beginnings = [" ".join(example.source.split()[:lead]) for example in examples]
    first = rouge_scores(beginnings, references)["rougeL"]
    scores["lead"] = Score(f"ROUGE-L, first {lead} words", first.value, None, first.signature)
    return scores


def by_prefix(outputs: Sequence[str], examples: Sequence[TextToTextExample]) -> list[dict[str, Any]]:
    """Return the scores for each prefix, where there are several."""
    rows: dict[str, list[int]] = {}
    for row, example in enumerate(examples):
        rows.setdefault(example.prefix, []).append(row)
    if len(rows) < 2:
        return []
    return [
        {
            "prefix": prefix,
            "n": len(members),
            **quick_scores([outputs[row] for row in members], [examples[row] for row in members]),
        }
        for prefix, members in sorted(rows.items())[:MAX_PREFIXES]
    ]
