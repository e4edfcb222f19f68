"""A model written for CTranslate2, and proved against the engine here before it takes its place.

In both engines the same tokens are scored and the same inputs answered.
"""

import json
import math
import random
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..core import DecoderOnly, Learned, Sinusoidal
from ..data.store import TokenStore
from ..errors import ConfigError
from ..families.ctranslate2 import ExportError, Model, Vocabularies, library, write_folder
from ..files import new_folder
from ..generation import generate
from ..training.errors import FolderError
from . import load
from .run.task import DATA, VALID
from .translation.predictor import Translator

EXACT = 1e-4  # what a log-probability may be off in float32
ROUGH = 0.25  # what those of a quantized model may be off on average
SENTENCES = 4  # real ones that are compared, where the model's folder has some
LENGTHS = (1, 2, 5, 9, 17, 33)
BEAMS = (1, 4)
LIMIT = 24  # tokens of an answer
# The end counts as a token, and CTranslate2 goes on to the limit as long as fewer than so many beams have ended.
EXACTLY: dict[str, Any] = {"return_scores": True, "return_end_token": True, "length_penalty": 1.0, "patience": 1e4}
TIED = 1e-3  # log-probabilities as near as this may be put in another order by rounding


class TokenPair(NamedTuple):
    """An input, without what the model puts around it, and an answer to be scored, without its end."""

    source: list[int]
    target: list[int]


@dataclass(frozen=True)
class Agreement:
    """What was compared, and how far the two were apart; a tie that rounding decided is no difference."""

    scored: int  # log-probabilities compared: of each token of a forced answer, and the mean of each found one
    largest: float  # difference
    mean: float
    worst: str  # where the largest one is
    answers: int
    different: tuple[str, ...]  # answers that are not the same, in words


@dataclass(frozen=True)
class CTranslate2Export:
    """What was written, and how it compared: in float32, and as it was quantized, where it was."""

    folder: Path
    files: tuple[str, ...]
    exact: Agreement
    quantized: Agreement | None


def export_ctranslate2(folder: str | Path, out: str | Path, *, quantization: str | None = None) -> CTranslate2Export:
    """Write a translator's bundle as a folder that CTranslate2 loads; its tokenizers go with it.

    CTranslate2 is handed the pieces of a sentence without the end, which it adds.
    """
    folder, translator = Path(folder), load(folder)
    if not isinstance(translator, Translator):
        raise ExportError(f"{folder} is a model for {translator.task}; only translators are written for CTranslate2")
    paths = [folder / name for name in translator.tokenizer_files()]
    tokens = [_tokens(path) for path in paths]
    vocabularies = Vocabularies(tokens[0], tokens[-1], suffix=(translator.tokenizer.end,))
    defaults = translator.tokens.changed(suppress_tokens=())
    model = Model(translator.module, vocabularies, defaults)
    return write_ctranslate2(model, out, quantization=quantization, examples=_examples(folder), beside=paths)


def write_ctranslate2(
    model: Model,
    out: str | Path,
    *,
    quantization: str | None = None,
    examples: Sequence[TokenPair] = (),
    beside: Sequence[Path] = (),
) -> CTranslate2Export:
    """Write any model whose parts CTranslate2 has a place for, into a new folder, once both engines agree.

    They are compared on random tokens and on the `examples`. Files named in `beside` are copied into the folder.
    """
    out = Path(out)
    accepted = library().specs.model_spec.ACCEPTED_MODEL_TYPES
    if quantization not in (None, *accepted):
        raise ConfigError(f"unknown quantization {quantization!r}; allowed: {', '.join(accepted)}")
    if model.module.training:
        raise ExportError("the model is being trained, with dropout; call module.eval() first")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise FolderError(f"{out} is there already, and not an empty folder; choose another one (--out)")
    longest = _max_lengths(model)[0]
    fitting = [pair for pair in examples if all(0 < len(side) <= longest for side in pair)]
    pairs = [*random_pairs(model), *fitting]
    with new_folder(out) as partial:
        write_folder(model, partial)
        exact = compare(model, partial, pairs)
        _refuse_if(exact.different or not exact.largest <= EXACT, exact, "float32")
        quantized = None
        if quantization is not None:
            write_folder(model, partial, quantization=quantization)
            quantized = compare(model, partial, pairs)
            _refuse_if(not quantized.mean <= ROUGH, quantized, quantization)
        for path in beside:
            shutil.copyfile(path, partial / path.name)
        files = tuple(sorted(path.name for path in partial.iterdir()))
    return CTranslate2Export(out, files, exact, quantized)


def _refuse_if(apart: object, agreement: Agreement, precision: str) -> None:
    if apart:
        answers = f"; {'; '.join(agreement.different[:2])}" if agreement.different else ""
        raise ExportError(
            f"CTranslate2 does not compute what the model does, so nothing was written: in {precision} the "
            f"log-probabilities are up to {agreement.largest:.1e} and on average {agreement.mean:.1e} apart, most at "
            f"{agreement.worst}{answers}"
        )


def _tokens(path: Path) -> tuple[str, ...]:
    """Every token by its id, as a tokenizer.json that was trained here holds them."""
    places: dict[str, int] = json.loads(path.read_text(encoding="utf-8"))["model"]["vocab"]
    return tuple(sorted(places, key=places.__getitem__))


def _examples(folder: Path) -> list[TokenPair]:
    """Some of the validation sentences that a run's folder keeps."""
    if not (folder / DATA / VALID).is_dir():
        return []
    store = TokenStore(folder / DATA / VALID)
    rows = [store[index * len(store) // SENTENCES] for index in range(min(SENTENCES, len(store)))]
    return [TokenPair(source.tolist(), target.tolist()) for source, target in rows]


def random_pairs(model: Model) -> Iterator[TokenPair]:
    """Random tokens of several lengths, as far as the positions reach; those hard to write come first."""
    draw = random.Random(0)
    vocabularies, defaults = model.vocabularies, model.defaults
    special = {defaults.start, defaults.pad, *defaults.end, *vocabularies.prefix, *vocabularies.suffix}
    source, target = (
        [index for index in range(len(tokens)) if index not in special] or [0]
        for tokens in (vocabularies.source, vocabularies.target)
    )
    hard = [index for index in target if _is_hard(vocabularies.target[index])]
    wanted = draw.sample(hard, min(len(hard), sum(LENGTHS) // 2))
    longest = _max_lengths(model)[0]
    for length in (length for length in LENGTHS if length <= longest):
        forced, wanted = wanted[: length // 2], wanted[length // 2 :]
        rest = draw.choices(target, k=length - len(forced))
        yield TokenPair(draw.choices(source, k=length), draw.sample([*forced, *rest], length))


def _is_hard(token: str) -> bool:
    return not token.isprintable() or token != token.strip()


def _max_lengths(model: Model) -> tuple[int, int]:
    """How long a source and a forced answer may be, and how many tokens are searched.

    As far as the positions reach: those of a decoder alone hold the input and both answers.
    """
    schemes = [part for part in model.module.modules() if isinstance(part, Learned | Sinusoidal)]
    reach = min((scheme.max_length for scheme in schemes), default=1 << 30)
    limit = min(LIMIT, max(1, reach // 2))
    return max(1, (reach - limit) // 2 if isinstance(model.module, DecoderOnly) else reach - 2), limit


def compare(model: Model, folder: Path, pairs: Sequence[TokenPair]) -> Agreement:
    """Score every answer and search one for every input, greedily and with a beam, in both engines.

    Both search exactly: their length penalty counts the end, and what has ended does not end the search.
    """
    engines = (_DecoderEngines if isinstance(model.module, DecoderOnly) else _Engines)(model, folder)
    gaps: list[tuple[float, str]] = []
    different: list[str] = []
    for number, pair in enumerate(pairs, 1):
        gap = (engines.log_probs(pair) - torch.tensor(engines.ct2_log_probs(pair), dtype=torch.float64)).abs()
        where = f"input {number}, of {len(pair.source)} tokens, with an answer of {len(pair.target)}"
        gaps += [(value, f"token {place} of {where}") for place, value in enumerate(gap.tolist(), 1)]
        for beam in BEAMS:
            tokens, score = search_answer(model, engines.input(pair.source), beam)
            ct2_tokens, ct2_score = engines.ct2_answer(pair.source, beam)
            apart = abs(score - ct2_score)
            if tokens == ct2_tokens:
                gaps.append((apart, f"the score of input {number} with beam {beam}"))
            elif apart >= TIED and not engines.is_tied(pair.source, tokens, ct2_tokens):
                different.append(f"input {number} with beam {beam}: {tokens} here, {ct2_tokens} there")
    values = [value for value, _ in gaps]
    largest, worst = max(gaps, key=lambda gap: float("inf") if math.isnan(gap[0]) else gap[0])
    return Agreement(len(gaps), largest, sum(values) / len(values), worst, len(pairs) * len(BEAMS), tuple(different))


def search_answer(model: Model, ids: list[int], beam: int) -> tuple[list[int], float]:
    """What the engine here answers, and its score."""
    (end,) = model.defaults.end
    start: dict[str, Any] = {} if model.defaults.start is None else {"start": model.defaults.start}
    limit = _max_lengths(model)[1]
    ((best,),) = generate(model.module, [ids], end=end, beam=beam, max_new_tokens=limit, length_penalty=1.0, **start)
    return [*best.tokens, *([end] if best.finished else [])], best.score


class _Engines:
    """The log-probabilities of a forced answer in both engines, and what CTranslate2 answers by itself."""

    kind = "Translator"

    def __init__(self, model: Model, folder: Path) -> None:
        self.module: Any = model.module
        self.vocabularies, self.defaults, self.limit = model.vocabularies, model.defaults, _max_lengths(model)[1]
        self.ids = {token: index for index, token in enumerate(model.vocabularies.target)}
        try:
            self.ct2 = getattr(library(), self.kind)(str(folder), device="cpu")
        except (RuntimeError, ValueError) as error:
            raise ExportError(f"CTranslate2 cannot load the model: {error}") from None

    def input(self, source: list[int]) -> list[int]:
        return [*self.vocabularies.prefix, *source, *self.vocabularies.suffix]

    def log_probs(self, pair: TokenPair) -> Tensor:
        started = [self.defaults.start, *pair.target]
        return self._token_log_probs((self.input(pair.source), started), [*pair.target, self.defaults.end[0]])

    def ct2_log_probs(self, pair: TokenPair) -> list[float]:
        target = self.vocabularies.tokens(pair.target)
        (scored,) = self.ct2.score_batch([self._texts(pair.source)], [target], max_input_length=0)
        return list(scored.log_probs)

    def ct2_answer(self, source: list[int], beam: int) -> tuple[list[int], float]:
        limits = {"max_input_length": 0, "max_decoding_length": self.limit, "min_decoding_length": 0}
        (found,) = self.ct2.translate_batch([self._texts(source)], beam_size=beam, **limits, **EXACTLY)
        return [self.ids[token] for token in found.hypotheses[0]], found.scores[0]

    def is_tied(self, source: list[int], first: list[int], second: list[int]) -> bool:
        """Whether the first token in which two answers differ was as likely as the other."""
        place = next((place for place, pair in enumerate(zip(first, second, strict=False)) if pair[0] != pair[1]), None)
        if place is None:
            return False
        one, other = (float(self.log_probs(TokenPair(source, ids[: place + 1]))[place]) for ids in (first, second))
        return abs(one - other) < TIED

    def _texts(self, source: list[int]) -> list[str]:
        return [self.vocabularies.source[index] for index in source]

    @torch.inference_mode()
    def _token_log_probs(self, inputs: tuple[list[Any], ...], answer: list[int]) -> Tensor:
        device = next(self.module.parameters()).device
        logits = self.module(*(torch.tensor([ids], device=device) for ids in inputs))[0]
        log_probs: Tensor = logits.double().log_softmax(dim=-1).cpu()
        return log_probs[torch.arange(len(answer)), torch.tensor(answer)]


class _DecoderEngines(_Engines):
    """Those of a decoder alone, whose answer continues the input."""

    kind = "Generator"

    def input(self, source: list[int]) -> list[int]:
        return source

    def log_probs(self, pair: TokenPair) -> Tensor:
        whole = [*pair.source, *pair.target]
        return self._token_log_probs((whole[:-1],), whole[1:])[-len(pair.target) :]

    def ct2_log_probs(self, pair: TokenPair) -> list[float]:
        tokens = self.vocabularies.tokens([*pair.source, *pair.target])
        (scored,) = self.ct2.score_batch([tokens], max_input_length=0)
        return list(scored.log_probs)[-len(pair.target) :]

    def ct2_answer(self, source: list[int], beam: int) -> tuple[list[int], float]:
        options = {"max_length": self.limit, "min_length": 0, "include_prompt_in_result": False, **EXACTLY}
        (found,) = self.ct2.generate_batch([self.vocabularies.tokens(source)], beam_size=beam, **options)
        return [self.ids[token] for token in found.sequences[0]], found.scores[0]
