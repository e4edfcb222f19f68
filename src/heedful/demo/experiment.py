"""The demo: train a small Transformer on the built-in corpus in a few minutes and score it on held-out sets."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any, Literal, cast

from ..config import read_mapping, write_mapping
from ..data.tokenizer import TokenizerConfig
from ..families import config_of
from ..files import write_text
from ..generation import GenerationConfig
from ..lens.alignment import Gold
from ..tasks.run import DataReport, Files, read_run, write_report
from ..tasks.run.folder import METRICS, RUN
from ..tasks.scoring import exact_share
from ..tasks.translation.inspection import AlignmentScore, alignment_score, has_attention
from ..tasks.translation.predictor import Translator
from ..tasks.translation.task import DataConfig, Evaluation, TranslationConfig, TranslationTask, evaluate, train
from ..training import FolderError, Observer, RunFolder
from ..training.config import TrainingConfig
from .corpus import STYLES, TAGS, Grammar, ParallelExample, handwritten_sentences
from .course import Kind, first_contact_sentences
from .english_realization import EnglishRealizer
from .lexicon import Level
from .splits import PROBES, Split
from .template_lookup import TemplateLookup
from .text_checks import unknown_words

Direction = Literal["ko-en", "en-ko"]
SETS: dict[Split, str] = {
    "T1": "new sentences",
    "T2": "unseen word pairs",
    "T3": "unseen lemma with ending",
    "T4": "unseen pairs of constructions",
    "T5": "one clause deeper",
    "T6": "unseen numbers and dates",
}
HANDWRITTEN_SET = "hand-written sentences"
FIRST_CONTACT_SETS: dict[Kind, str] = {"fixed": "fixed expressions", "grammar": "first-contact sentences"}
SAME_DEPTH = ("T1", "T2", "T3", "T4", "T6")  # the sets whose sentences have as many clauses as those in training
MODELS: dict[str, dict[str, Any]] = {
    "original": {"preset": "tiny", "n_encoder_layers": 2, "n_decoder_layers": 2, "dropout": 0.0},
    "recurrent": {"preset": "recurrent", "d_model": 128, "dropout": 0.0},
}
TRAINING: dict[str, Any] = {
    "steps": 1600, "batch_tokens": 1536, "learning_rate": 4e-3, "schedule": "cosine", "warmup_steps": 150,
    "ema_decay": 0.99, "validate_every": 200, "save_every": 400, "log_every": 10,
}  # fmt: skip
COURSE: dict[str, Any] = {  # what the course level needs more of
    "model": {"d_model": 160, "d_ff": 320, "n_encoder_layers": 3, "n_decoder_layers": 3},
    "training": {"steps": 1600, "optimizer": "muon", "warmup_steps": 100, "validate_every": 400, "save_every": 800},
    "vocab_size": 2000,
    "n_train": 120_000,
}
FIXED_REPEATS = 15  # of each fixed expression in the training data of the course
SHORT, SHORT_REPEATS = 5, 200  # characters of one that is in batches of its own, of which there would be too few
OUT_OF_VOCABULARY = "코끼리가 피아노를 쳐요."  # of words that the demo's lexicon lacks


@dataclass(frozen=True)
class SetResult:
    """The scores of the model and of the template look-up on one held-out set."""

    name: str
    evaluation: Evaluation
    lookup: float | None  # in percent; from Korean only

    @property
    def title(self) -> str:
        """The name of the set with its meaning."""
        return f"{self.name} {meaning}" if (meaning := SETS.get(cast("Split", self.name))) else self.name


@dataclass(frozen=True)
class DemoResult:
    """All results of a demo run."""

    translator: Translator
    sets: list[SetResult]
    constructions: dict[str, tuple[int, int]]  # right and all, over the sets of the same depth
    probes: dict[str, tuple[int, int]]  # the same for what one asks about a translator
    alignment: AlignmentScore | None
    report: Path


def recipe(
    direction: Direction,
    family: Literal["original", "recurrent"] = "original",
    model: dict[str, Any] | None = None,
    level: Level = "demo",
    **training: Any,
) -> TranslationConfig:
    """Return the demo's settings, chosen on validation sentences; `model` and `training` override them."""
    source, target = direction.split("-")
    more = COURSE if level == "course" else {}
    larger = more.get("model", {}) if family == "original" else {}
    return TranslationConfig(
        source=source,
        target=target,
        data=DataConfig(max_tokens=64, drop_duplicates=level != "course"),
        tokenizer=TokenizerConfig(vocab_size=more.get("vocab_size", 1500)),
        model=config_of({**MODELS[family], **larger, **(model or {})}),
        training=TrainingConfig(**{**TRAINING, **more.get("training", {}), **training}),
        generation=GenerationConfig(beam=1),
    )


class DirectionAdapter:
    """Reads examples in one direction: source, target and accepted answers."""

    def __init__(self, direction: Direction, level: Level = "demo") -> None:
        self.to_english, self.is_course = direction == "ko-en", level == "course"

    def source(self, example: ParallelExample) -> str:
        return example.korean if self.to_english else example.tagged_english

    def target(self, example: ParallelExample) -> str:
        if self.to_english:
            return example.english
        return example.plain_korean if self.is_course else example.korean

    def accepted(self, example: ParallelExample) -> tuple[str, ...]:
        return example.accepted if self.to_english else example.accepted_korean

    def row(self, example: ParallelExample) -> tuple[str, Sequence[str]]:
        """Return the source and all accepted answers."""
        return self.source(example), self.accepted(example)

    def training_row(self, example: ParallelExample, random: Random) -> str:
        """Return a line of training data of the course: the source as people type it, and its target.

        English has its other right wordings too, and a final period may be missing.
        """
        source = self.source(example)
        if not self.to_english and random.random() < 0.3:
            source = TAGS[example.level] + EnglishRealizer(example.frame, random.choice(STYLES)).text()
        return f"{source.removesuffix('.') if random.random() < 0.1 else source}\t{self.target(example)}\n"

    def first_contact(self, kind: Kind) -> dict[str, tuple[str, ...]]:
        """Return each source of the first-contact sentences of this kind with its answers, the best one first.

        Of fixed expressions, every wording is a source. A Korean answer may say or leave out that it speaks of me.
        """
        answers: dict[str, list[str]] = {}
        sources: list[str] = []
        for sentence in first_contact_sentences():
            wordings = sentence.english if sentence.kind == "fixed" else sentence.english[:1]
            tagged = [TAGS[level] + text for level in sentence.levels for text in wordings]
            others = [text.removeprefix("저는 ").removeprefix("나는 ") for text in sentence.korean]
            if sentence.english[0].startswith("I "):
                others += [f"{me} {text}" for me in ("저는", "나는") for text in sentence.korean]
            for source in sentence.korean if self.to_english else tagged:
                right = sentence.english if self.to_english else (*sentence.korean, *others)
                answers.setdefault(source, []).extend(right)
                sources += [source] if sentence.kind == kind else []
        return {source: tuple(dict.fromkeys(answers[source])) for source in sources}

    def fixed_rows(self) -> list[str]:
        """Return the lines of training data for the fixed expressions, with and without their last mark."""
        rows: dict[str, str] = {}
        for source, answers in self.first_contact("fixed").items():
            rows[source] = answers[0]
            rows.setdefault(source.rstrip(".?!"), answers[0])
        return [f"{source}\t{answer}\n" for source, answer in rows.items() for _ in range(_repeats(source, answer))]

    def probes(self, example: ParallelExample) -> list[str]:
        """Return the probes that the example belongs to; speech levels count only where the target is Korean."""
        names = [name for name, constructions in PROBES.items() if example.constructions & set(constructions)]
        return names if self.to_english else [*names, f"level {example.level}체"]

    def gold(self, example: ParallelExample) -> Gold:
        """Return links as (source word, target word); the tag of a speech level counts as a word."""
        if self.to_english:
            return Gold(frozenset(example.alignment))
        shift = len(example.tagged_english.split()) - len(example.english.split())
        return Gold(frozenset((english + shift, korean) for korean, english in example.alignment))


def _repeats(source: str, answer: str) -> int:
    return SHORT_REPEATS if max(len(source.rpartition("] ")[2]), len(answer)) <= SHORT else FIXED_REPEATS


def run_demo(
    out: str | Path,
    config: TranslationConfig,
    *,
    level: Level = "demo",
    seed: int = 0,
    overwrite: bool = False,
    n_train: int | None = None,
    n_test: int = 500,
    language: str = "en",
    say: Callable[[str], None] = lambda _: None,
    on_read: Callable[[DataReport[Any]], None] = lambda _: None,
    watch: Callable[[TranslationTask], Sequence[Observer]] = lambda _: (),
) -> DemoResult:
    """Make the data, train, evaluate on every held-out set, and write the bundle and its report.

    `level` is that of the grammar. The course level has twice the sentences, fixed expressions among them, and scores
    the first-contact sentences too.
    What an earlier demo left in `out` is replaced; any other run only with `overwrite`.
    """
    direction: Direction = "ko-en" if config.source == "ko" else "en-ko"
    adapter, out = DirectionAdapter(direction, level), Path(out)
    files = Files((str(out / "corpus" / "train.tsv"),), (str(out / "corpus" / "valid.tsv"),))
    if not overwrite and (out / RUN).exists() and read_run(TranslationTask(), out)[1] != files:
        raise FolderError(f"{out} holds another run; choose another folder (--out), or replace it (--overwrite)")
    say("Generating the corpus …")
    grammar, is_course = Grammar(level, seed=seed), level == "course"
    n_train = n_train or (COURSE["n_train"] if is_course else 60_000)
    examples: dict[str, list[ParallelExample]] = {name: list(grammar.sample(n_test, split=name)) for name in SETS}
    examples["valid"] = list(grammar.sample(min(n_test, 300), split="valid"))
    training = list(grammar.sample(n_train, split="train"))
    with RunFolder(out).locked():  # while no other demo writes there
        for name, members in {"train": training, **examples}.items():  # tab-separated, as a user would bring them
            rows = [f"{adapter.source(example)}\t{adapter.target(example)}\n" for example in members]
            if is_course and name == "train":
                random = Random(f"wordings {seed}")
                rows = [adapter.training_row(example, random) for example in members]
                rows += adapter.fixed_rows()
            write_text(out / "corpus" / f"{name}.tsv", "".join(rows))
    accepted = dict(adapter.row(example) for example in examples["valid"])
    translator = train(config, files, out, overwrite=True, accepted=accepted, on_read=on_read, watch=watch)
    translator.settings = translator.settings.changed(lexicon=level)
    translator.save(out)  # with the level of its words
    say("Translating the held-out sets …")
    lookup = TemplateLookup() if adapter.to_english else None
    if lookup is not None:
        lookup.learn((example.korean, example.english) for example in training)
    sets = [_result(translator, lookup, name, [adapter.row(example) for example in examples[name]]) for name in SETS]
    by_hand = handwritten_sentences()
    reversed_pairs = [(answers[0], (korean,)) for korean, answers in by_hand]
    sets.append(_result(translator, lookup, HANDWRITTEN_SET, by_hand if adapter.to_english else reversed_pairs))
    for kind, name in FIRST_CONTACT_SETS.items() if is_course else ():
        sets.append(_result(translator, lookup, name, list(adapter.first_contact(kind).items())))
    return _finish(translator, adapter, sets, examples, out, language)


def _result(
    translator: Translator, lookup: TemplateLookup | None, name: str, rows: Sequence[tuple[str, Sequence[str]]]
) -> SetResult:
    """Score sources against their accepted answers, the first of which is the reference."""
    sources, accepted = [source for source, _ in rows], [answers for _, answers in rows]
    references = [answers[0] for answers in accepted]
    evaluation = evaluate(translator, sources, references, accepted=accepted)
    looked_up = None if lookup is None else exact_share([lookup.answer(text) or "" for text in sources], accepted)
    return SetResult(name, evaluation, looked_up)


def _finish(
    translator: Translator,
    adapter: DirectionAdapter,
    sets: Sequence[SetResult],
    examples: dict[str, list[ParallelExample]],
    out: Path,
    language: str,
) -> DemoResult:
    """Add the demo's own metrics to those of the run and write the report again."""
    constructions = _counts(sets, examples, lambda example: example.constructions)
    probes = _counts(sets, examples, adapter.probes)
    alignment = _alignment(translator, adapter, examples)
    metrics = read_mapping(out / METRICS)
    metrics["sets"] = {result.title: result.evaluation.to_dict() for result in sets}
    metrics["lookup"] = {result.title: result.lookup for result in sets if result.lookup is not None}
    metrics["constructions"] = constructions
    if alignment is not None:
        metrics["alignment"] = {**asdict(alignment), "head": str(alignment.head)}
    metrics["samples"] = [asdict(sample) for result in sets for sample in result.evaluation.samples[:40]]
    if adapter.to_english:
        guess = translator.predict([OUT_OF_VOCABULARY])[0]
        why = (
            f"{', '.join(unknown_words(translator, OUT_OF_VOCABULARY))}: not among the demo's words, so this is a guess"
        )
        metrics["notes"] = [f"{OUT_OF_VOCABULARY} → {guess} ({why})"]
    write_mapping(out / METRICS, metrics)
    page = write_report(TranslationTask(), [out], language=language)
    return DemoResult(translator, list(sets), constructions, probes, alignment, page)


def _counts(
    sets: Sequence[SetResult],
    examples: dict[str, list[ParallelExample]],
    groups: Callable[[ParallelExample], Iterable[str]],
) -> dict[str, tuple[int, int]]:
    """Count the right sentences of each group, over the sets of the same depth as training."""
    right: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for result in (result for result in sets if result.name in SAME_DEPTH):
        for example, sample in zip(examples[result.name], result.evaluation.samples, strict=True):
            total.update(groups(example))
            right.update(groups(example) if sample.exact else ())
    return {name: (right[name], total[name]) for name in sorted(total)}


def _alignment(
    translator: Translator, adapter: DirectionAdapter, examples: dict[str, list[ParallelExample]]
) -> AlignmentScore | None:
    """Choose the head on validation sentences and score it on new ones."""
    if not has_attention(translator):
        return None
    chosen_on, reported_on = (
        [(adapter.source(example), adapter.target(example), adapter.gold(example)) for example in examples[name][:100]]
        for name in ("valid", "T1")
    )
    return alignment_score(translator, chosen_on, reported_on)
