"""From files of pairs to a translator in a folder: one call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from ...config import write_mapping
from ...errors import HeedfulError
from ...families import build
from ...files import write_text
from ...training import Event, Finished, FolderError, Observer, Outcome, RunFolder, Saved, fit
from . import confidence
from .card import card
from .config import TranslationConfig
from .evaluation import Evaluation, evaluate
from .folder import DATA, asked, begin, check_resumable, remember
from .job import TranslationJob
from .prepare import Files, Readings, TooFewPairsError
from .reporting import write_report
from .sources import go_on, read_anew
from .translator import Translator

__all__ = ["METRICS", "asked", "train"]

METRICS = "metrics.json"
FINAL_SENTENCES = 2000  # of the validation data, translated with the full search when training is over


def train(
    config: TranslationConfig,
    files: Files,
    out: str | Path,
    *,
    resume: bool = False,
    allow_changes: bool = False,
    overwrite: bool = False,
    accepted: Mapping[str, Sequence[str]] | None = None,
    on_read: Callable[[Readings], None] = lambda _: None,
    watch: Callable[[TranslationJob], Sequence[Observer]] = lambda _: (),
) -> Translator:
    """Train a translator and leave its bundle, its scores, its card and its report in `out`.

    `on_read` is told what was read before training begins; `watch` gives the observers of the run. With `resume`
    the run in `out` goes on from its newest checkpoint; what has changed since is refused unless `allow_changes`.
    `accepted` lists every right answer to a validation source, where there are more than the file has.

    >>> config = TranslationConfig(source="ko", target="en")
    >>> train(config, Files(train=("pairs.tsv",)), "runs/ko-en").predict(["나는 책을 읽어요."])
    """
    folder = RunFolder(out)
    with folder.held(), _writing(folder.path), _telling(on_read):
        if resume:
            trained = check_resumable(folder.path)
            prepared, readings = go_on(
                config, files, folder.path / DATA, has_trained=trained, allow_changes=allow_changes
            )
        else:
            begin(folder.path, overwrite=overwrite)
            remember(config, files, folder.path)  # before the data is read, so that reading can be interrupted
            prepared, readings = read_anew(config, files, folder.path / DATA)
        if readings is not None:
            on_read(readings)
        torch.manual_seed(config.training.seed)
        model = config.model_for(*prepared.tokenizers.sizes)
        job = TranslationJob(config, prepared, build(model))

        def remembering(event: Event) -> None:
            """Settings that a resumed run has changed become its own with the first checkpoint made with them."""
            if isinstance(event, Saved | Finished):
                remember(config, files, folder.path)

        observers = [remembering, *watch(job)]
        outcome = fit(job, config.training, folder, resume=resume, allow_changes=allow_changes, observers=observers)
        translator = job.translator(outcome.module)
        sources, references = prepared.valid_texts(FINAL_SENTENCES)
        pairs = zip(sources, references, strict=True)
        right = [(accepted or {}).get(source, (reference,)) for source, reference in pairs]
        evaluation = evaluate(translator, sources, references, accepted=right)
        learned = _learn_confidence(translator, evaluation, right)
        _finish(translator, outcome, evaluation, learned, folder.path)
    return translator


@contextmanager
def _telling(on_read: Callable[[Readings], None]) -> Iterator[None]:
    """Where too few pairs are left, what became of the others is told before the error."""
    try:
        yield
    except TooFewPairsError as error:
        on_read(error.readings)
        raise


@contextmanager
def _writing(out: Path) -> Iterator[None]:
    """A full disk names no file: say at least in which folder."""
    try:
        yield
    except OSError as error:
        if isinstance(error, HeedfulError | BrokenPipeError) or error.filename is not None:
            raise
        raise FolderError(f"{out} cannot be written: {error.strerror}") from error


def _finish(
    translator: Translator, outcome: Outcome, evaluation: Evaluation, learned: dict[str, Any], out: Path
) -> None:
    """Everything about the model, and the bundle's config last."""
    metrics = {
        "validation": evaluation.to_dict(),
        "confidence": learned,
        "samples": [asdict(sample) for sample in evaluation.samples[:200]],
        "training": {
            "steps": outcome.step,
            "seconds": round(outcome.seconds, 1),
            "ended": outcome.why,
            "weights": outcome.weights,
        },
        "parameters": sum(parameter.numel() for parameter in translator.module.parameters()),
    }
    write_mapping(out / METRICS, metrics)
    write_text(out / "README.md", card(translator, metrics, out))
    translator.save(out)
    write_report([out])


def _learn_confidence(
    translator: Translator, evaluation: Evaluation, accepted: Sequence[Sequence[str]]
) -> dict[str, Any]:
    """Teach the translator how sure it may be; what was learned, or why nothing."""
    sources = [sample.source for sample in evaluation.samples]
    candidates = [
        confidence.Seen(answer.logprob, answer.n_tokens, answer.text in right)
        for answers, right in zip(translator.candidates(sources, n_best=confidence.CANDIDATES), accepted, strict=True)
        for answer in answers
    ]
    reason = confidence.why_not(candidates)
    if reason is not None:
        return {"why_not": reason}
    given = zip(evaluation.answers, evaluation.right, strict=True)
    own = [confidence.Seen(answer.logprob, answer.n_tokens, right) for answer, right in given]
    learned = confidence.fit(candidates, own)
    translator.settings = translator.settings.changed(confidence=learned)
    return learned.to_dict()
