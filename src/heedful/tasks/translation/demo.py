"""The main job in a few minutes: the built-in corpus, a small Transformer, and honest held-out scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, cast

from ...config import read_mapping, write_mapping
from ...data.grammar import HANDWRITTEN, PROBES, Example, Grammar, Lookup, Split, words_outside
from ...data.tokenizer import TokenizerConfig
from ...families import config_of
from ...files import write_text
from ...generation import GenerationConfig
from ...lens.alignment import Gold
from ...training import FolderError, Observer, RunFolder
from ...training.config import TrainingConfig
from ..run import DataReport, Files, read_run, write_report
from ..run.folder import METRICS, RUN
from ..scoring import exact_share
from .inspection import AlignmentScore, alignment_score, has_attention
from .predictor import Translator
from .task import DataConfig, Evaluation, TranslationConfig, TranslationTask, evaluate, train

Direction = Literal["ko-en", "en-ko"]
SETS: dict[Split, str] = {
    "T1": "new sentences",
    "T2": "unseen word pairs",
    "T3": "unseen lemma with ending",
    "T4": "unseen pairs of constructions",
    "T5": "one clause deeper",
    "T6": "unseen numbers and dates",
}
HAND = "hand-written sentences"
KNOWN = ("T1", "T2", "T3", "T4", "T6")  # the sets whose sentences are as deep as those in training
MODELS: dict[str, dict[str, Any]] = {
    "original": {"preset": "tiny", "n_encoder_layers": 2, "n_decoder_layers": 2, "dropout": 0.0},
    "recurrent": {"preset": "recurrent", "d_model": 128, "dropout": 0.0},
}
BEYOND = "코끼리가 피아노를 쳐요."  # of words that the demo's lexicon lacks


@dataclass(frozen=True)
class SetResult:
    """How the model did on a held-out set, and how the template look-up did."""

    name: str
    evaluation: Evaluation
    lookup: float | None  # in percent; from Korean only

    @property
    def title(self) -> str:
        """The name with what it stands for."""
        return f"{self.name} {meaning}" if (meaning := SETS.get(cast("Split", self.name))) else self.name


@dataclass(frozen=True)
class DemoResult:
    """Everything the demo has to show."""

    translator: Translator
    sets: list[SetResult]
    constructions: dict[str, tuple[int, int]]  # right and all, over the sets of KNOWN depth
    probes: dict[str, tuple[int, int]]  # the same for what one asks about a translator
    alignment: AlignmentScore | None
    report: Path


def recipe(
    direction: Direction,
    family: Literal["original", "recurrent"] = "original",
    model: dict[str, Any] | None = None,
    **training: Any,
) -> TranslationConfig:
    """The demo's settings: found on validation sentences, for two cores. `model` and `training` change them."""
    source, target = direction.split("-")
    return TranslationConfig(
        source=source,
        target=target,
        data=DataConfig(max_tokens=64),
        tokenizer=TokenizerConfig(vocab_size=1500),
        model=config_of({**MODELS[family], **(model or {})}),
        training=TrainingConfig(
            **{
                "steps": 1600,
                "batch_tokens": 1536,
                "learning_rate": 4e-3,
                "schedule": "cosine",
                "warmup_steps": 150,
                "ema": 0.99,
                "validate_every": 200,
                "save_every": 400,
                "log_every": 10,
                **training,
            }
        ),
        generation=GenerationConfig(beam=1),
    )


class Side:
    """An example seen from one direction: what goes in, what should come out, and what else is right."""

    def __init__(self, direction: Direction) -> None:
        self.to_english = direction == "ko-en"

    def source(self, example: Example) -> str:
        return example.korean if self.to_english else example.tagged_english

    def target(self, example: Example) -> str:
        return example.english if self.to_english else example.korean

    def accepted(self, example: Example) -> tuple[str, ...]:
        return example.accepted if self.to_english else example.accepted_korean

    def row(self, example: Example) -> tuple[str, Sequence[str]]:
        """The source and all its right answers."""
        return self.source(example), self.accepted(example)

    def probes(self, example: Example) -> list[str]:
        """What one asks about a translator; whether it keeps the speech level, only where it speaks Korean."""
        found = [name for name, constructions in PROBES.items() if example.constructions & set(constructions)]
        return found if self.to_english else [*found, f"level {example.level}체"]

    def gold(self, example: Example) -> Gold:
        """Links as (source word, target word); the tag of a speech level is a word of its own."""
        if self.to_english:
            return Gold(frozenset(example.alignment))
        shift = len(example.tagged_english.split()) - len(example.english.split())
        return Gold(frozenset((english + shift, korean) for korean, english in example.alignment))


def run_demo(
    out: str | Path,
    config: TranslationConfig,
    *,
    seed: int = 0,
    overwrite: bool = False,
    n_train: int = 60_000,
    n_test: int = 500,
    language: str = "en",
    say: Callable[[str], None] = lambda _: None,
    on_read: Callable[[DataReport[Any]], None] = lambda _: None,
    watch: Callable[[TranslationTask], Sequence[Observer]] = lambda _: (),
) -> DemoResult:
    """Make the data, train, evaluate on every held-out set, and write the bundle and its report.

    What an earlier demo left in `out` is replaced; any other run only with `overwrite`.
    """
    direction: Direction = "ko-en" if config.source == "ko" else "en-ko"
    side, out = Side(direction), Path(out)
    files = Files((str(out / "corpus" / "train.tsv"),), (str(out / "corpus" / "valid.tsv"),))
    if not overwrite and (out / RUN).exists() and read_run(TranslationTask(), out)[1] != files:
        raise FolderError(f"{out} holds another run; choose another folder (--out), or replace it (--overwrite)")
    say("Making the corpus …")
    grammar = Grammar("demo", seed=seed)
    examples: dict[str, list[Example]] = {name: list(grammar.sample(n_test, split=name)) for name in SETS}
    examples["valid"] = list(grammar.sample(min(n_test, 300), split="valid"))
    training = list(grammar.sample(n_train, split="train"))
    with RunFolder(out).held():  # not under the feet of another demo
        for name, found in {"train": training, **examples}.items():
            write_pairs(out / "corpus" / f"{name}.tsv", side, found)
    accepted = dict(side.row(example) for example in examples["valid"])
    translator = train(config, files, out, overwrite=True, accepted=accepted, on_read=on_read, watch=watch)
    say("Translating the held-out sets …")
    lookup = Lookup() if side.to_english else None
    if lookup is not None:
        lookup.learn((example.korean, example.english) for example in training)
    sets = [_result(translator, lookup, name, [side.row(example) for example in examples[name]]) for name in SETS]
    by_hand = [(korean, answers) if side.to_english else (answers[0], (korean,)) for korean, answers in HANDWRITTEN]
    sets.append(_result(translator, lookup, HAND, by_hand))
    return _finish(translator, side, sets, examples, out, language)


def write_pairs(path: Path, side: Side, examples: Iterable[Example]) -> None:
    """A tab-separated file, as a user would bring one."""
    rows = (f"{side.source(example)}\t{side.target(example)}\n" for example in examples)
    write_text(path, "".join(rows))


def _result(
    translator: Translator, lookup: Lookup | None, name: str, rows: Sequence[tuple[str, Sequence[str]]]
) -> SetResult:
    """Score sources against their accepted answers, of which the first is the reference."""
    sources, accepted = [source for source, _ in rows], [answers for _, answers in rows]
    references = [answers[0] for answers in accepted]
    evaluation = evaluate(translator, sources, references, accepted=accepted)
    looked_up = None if lookup is None else exact_share([lookup.answer(text) or "" for text in sources], accepted)
    return SetResult(name, evaluation, looked_up)


def _finish(
    translator: Translator,
    side: Side,
    sets: Sequence[SetResult],
    examples: dict[str, list[Example]],
    out: Path,
    language: str,
) -> DemoResult:
    """Add what only the demo knows to the run's metrics, and write its report again."""
    constructions = _counts(sets, examples, lambda example: example.constructions)
    probes = _counts(sets, examples, side.probes)
    alignment = _alignment(translator, side, examples)
    metrics = read_mapping(out / METRICS)
    metrics["sets"] = {found.title: found.evaluation.to_dict() for found in sets}
    metrics["lookup"] = {found.title: found.lookup for found in sets if found.lookup is not None}
    metrics["constructions"] = constructions
    if alignment is not None:
        metrics["alignment"] = {**asdict(alignment), "head": str(alignment.head)}
    metrics["samples"] = [asdict(sample) for found in sets for sample in found.evaluation.samples[:40]]
    if side.to_english:
        outside = ", ".join(words_outside(BEYOND))
        guess = translator.predict([BEYOND])[0]
        metrics["notes"] = [f"{BEYOND} → {guess} ({outside}: not among the demo's words, so this is a guess)"]
    write_mapping(out / METRICS, metrics)
    page = write_report(TranslationTask(), [out], language=language)
    return DemoResult(translator, list(sets), constructions, probes, alignment, page)


def _counts(
    sets: Sequence[SetResult], examples: dict[str, list[Example]], groups: Callable[[Example], Iterable[str]]
) -> dict[str, tuple[int, int]]:
    """How many sentences of each group are right, over the sets of known depth."""
    right: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for found in (found for found in sets if found.name in KNOWN):
        for example, sample in zip(examples[found.name], found.evaluation.samples, strict=True):
            total.update(groups(example))
            right.update(groups(example) if sample.exact else ())
    return {name: (right[name], total[name]) for name in sorted(total)}


def _alignment(translator: Translator, side: Side, examples: dict[str, list[Example]]) -> AlignmentScore | None:
    """Choose the head on validation sentences, report it on new ones."""
    if not has_attention(translator):
        return None
    triples = {
        name: [(side.source(example), side.target(example), side.gold(example)) for example in examples[name][:100]]
        for name in ("valid", "T1")
    }
    return alignment_score(translator, triples["valid"], triples["T1"])
