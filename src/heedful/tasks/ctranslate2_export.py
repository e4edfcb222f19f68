"""Exports models to CTranslate2, and compares both engines before the new folder appears.

Both engines score the same tokens and answer the same inputs.
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
from .run.data import DATA, VALID
from .seq2seq import spread_evenly
from .translation.predictor import Translator

FLOAT_TOLERANCE = 1e-4  # of every log-probability in float32
QUANTIZED_TOLERANCE = 0.25  # of the mean difference of a quantized model
N_EXAMPLES = 4  # validation sentences that are compared, where the model's folder has some
LENGTHS = (1, 2, 5, 9, 17, 33)  # of random answers
BEAMS = (1, 4)
MAX_NEW_TOKENS = 24
# The end counts as a token, and CTranslate2 searches up to the limit while fewer than `patience` beams have ended.
SEARCH: dict[str, Any] = {"return_scores": True, "return_end_token": True, "length_penalty": 1.0, "patience": 1e4}
TIE = 1e-3  # rounding may change the order of log-probabilities that differ by less


class TokenPair(NamedTuple):
    """An input and an answer to be scored, both without the special tokens around them."""

    source: list[int]
    target: list[int]


@dataclass(frozen=True)
class Agreement:
    """How far the two engines differ; a tie that rounding decided is no difference."""

    scored: int  # the compared log-probabilities: of each token of a given answer, and the mean of a generated one
    largest: float  # of their differences
    mean: float  # of their differences
    worst: str  # where the largest difference is
    answers: int  # that are compared
    different: tuple[str, ...]  # descriptions of the answers that are not the same


@dataclass(frozen=True)
class CTranslate2Export:
    """A folder that was written, and how the engines agree: in float32, and as quantized if it is."""

    folder: Path
    files: tuple[str, ...]
    exact: Agreement
    quantized: Agreement | None


def export_ctranslate2(folder: str | Path, out: str | Path, *, quantization: str | None = None) -> CTranslate2Export:
    """Write a translator's bundle as a folder that CTranslate2 loads, with its tokenizers.

    CTranslate2 takes the pieces of a sentence without the end, which it adds.
    """
    folder, translator = Path(folder), load(folder)
    if not isinstance(translator, Translator):
        raise ExportError(f"{folder} is a model for {translator.task}; only translators are written for CTranslate2")
    paths = [folder / name for name in translator.tokenizer_files()]
    tokens = []
    for path in paths:
        ids: dict[str, int] = json.loads(path.read_text(encoding="utf-8"))["model"]["vocab"]
        tokens.append(tuple(sorted(ids, key=ids.__getitem__)))
    vocabularies = Vocabularies(tokens[0], tokens[-1], suffix=(translator.tokenizer.end,))
    model = Model(translator.module, vocabularies, translator.tokens.changed(suppress_tokens=()))
    examples = []
    if (folder / DATA / VALID).is_dir():  # the folder of a run keeps its validation sentences
        store = TokenStore(folder / DATA / VALID)
        rows = [store[index] for index in spread_evenly(len(store), N_EXAMPLES)]
        examples = [TokenPair(source.tolist(), target.tolist()) for source, target in rows]
    return write_ctranslate2(model, out, quantization=quantization, examples=examples, beside=paths)


def write_ctranslate2(
    model: Model,
    out: str | Path,
    *,
    quantization: str | None = None,
    examples: Sequence[TokenPair] = (),
    beside: Sequence[Path] = (),
) -> CTranslate2Export:
    """Write a model into a new folder, if CTranslate2 supports all of its parts and both engines agree.

    Args:
        model: The module with its vocabularies and special tokens.
        out: The new folder.
        quantization: One of CTranslate2's types, such as "int8".
        examples: Compared along with random tokens.
        beside: Files that are copied into the folder.
    """
    out = Path(out)
    accepted = library().specs.model_spec.ACCEPTED_MODEL_TYPES
    if quantization not in (None, *accepted):
        raise ConfigError(f"unknown quantization {quantization!r}; allowed: {', '.join(accepted)}")
    if model.module.training:
        raise ExportError("the model is being trained, with dropout; call module.eval() first")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise FolderError(f"{out} already exists and is not an empty folder; choose another one (--out)")
    longest = _max_lengths(model)[0]
    fitting = [pair for pair in examples if all(0 < len(side) <= longest for side in pair)]
    pairs = [*random_pairs(model), *fitting]
    with new_folder(out) as partial:
        write_folder(model, partial)
        exact = compare(model, partial, pairs)
        if exact.different or not exact.largest <= FLOAT_TOLERANCE:
            raise _difference_error(exact, "float32")
        quantized = None
        if quantization is not None:
            write_folder(model, partial, quantization=quantization)
            quantized = compare(model, partial, pairs)
            if not quantized.mean <= QUANTIZED_TOLERANCE:
                raise _difference_error(quantized, quantization)
        for path in beside:
            shutil.copyfile(path, partial / path.name)
        files = tuple(sorted(path.name for path in partial.iterdir()))
    return CTranslate2Export(out, files, exact, quantized)


def _difference_error(agreement: Agreement, precision: str) -> ExportError:
    answers = f"; {'; '.join(agreement.different[:2])}" if agreement.different else ""
    return ExportError(
        f"CTranslate2 does not compute what the model does, so nothing was written: in {precision} the "
        f"log-probabilities differ by up to {agreement.largest:.1e} and on average by {agreement.mean:.1e}, most at "
        f"{agreement.worst}{answers}"
    )


def random_pairs(model: Model) -> Iterator[TokenPair]:
    """Yield random tokens of several lengths; the first answers hold tokens that are hard to write in a file."""
    draw = random.Random(0)
    vocabularies, defaults = model.vocabularies, model.defaults
    special = {defaults.start, defaults.pad, *defaults.end, *vocabularies.prefix, *vocabularies.suffix}
    source, target = (
        [index for index in range(len(tokens)) if index not in special] or [0]
        for tokens in (vocabularies.source, vocabularies.target)
    )
    texts = ((index, vocabularies.target[index]) for index in target)
    hard = [index for index, text in texts if not text.isprintable() or text != text.strip()]
    hard = draw.sample(hard, min(len(hard), sum(LENGTHS) // 2))
    longest = _max_lengths(model)[0]
    for length in (length for length in LENGTHS if length <= longest):
        first, hard = hard[: length // 2], hard[length // 2 :]
        rest = draw.choices(target, k=length - len(first))
        yield TokenPair(draw.choices(source, k=length), draw.sample([*first, *rest], length))


def _max_lengths(model: Model) -> tuple[int, int]:
    """Return the maximal lengths of a source (and a given answer), and of a generated answer.

    The positions limit them: those of a decoder-only model hold the input and both answers.
    """
    schemes = [part for part in model.module.modules() if isinstance(part, Learned | Sinusoidal)]
    reach = min((scheme.max_length for scheme in schemes), default=1 << 30)
    limit = min(MAX_NEW_TOKENS, max(1, reach // 2))
    return max(1, (reach - limit) // 2 if isinstance(model.module, DecoderOnly) else reach - 2), limit


def compare(model: Model, folder: Path, pairs: Sequence[TokenPair]) -> Agreement:
    """Score every answer and generate one for every input, greedily and with a beam, in both engines.

    Both search exactly: the length penalty counts the end, and a finished hypothesis does not end the search.
    """
    engines = (_DecoderEngines if isinstance(model.module, DecoderOnly) else _Engines)(model, folder)
    differences: list[tuple[float, str]] = []
    different: list[str] = []
    for number, pair in enumerate(pairs, 1):
        ct2_log_probs = torch.tensor(engines.ct2_log_probs(pair), dtype=torch.float64)
        gaps = (engines.log_probs(pair) - ct2_log_probs).abs().tolist()
        where = f"input {number}, of {len(pair.source)} tokens, with an answer of {len(pair.target)}"
        differences += [(gap, f"token {place} of {where}") for place, gap in enumerate(gaps, 1)]
        for beam in BEAMS:
            tokens, score = search_answer(model, engines.input(pair.source), beam)
            ct2_tokens, ct2_score = engines.ct2_answer(pair.source, beam)
            gap = abs(score - ct2_score)
            if tokens == ct2_tokens:
                differences.append((gap, f"the score of input {number} with beam {beam}"))
            elif gap >= TIE and not engines.is_tied(pair.source, tokens, ct2_tokens):
                different.append(f"input {number} with beam {beam}: {tokens} here, {ct2_tokens} there")
    mean = sum(gap for gap, _ in differences) / len(differences)
    largest, worst = max(differences, key=lambda pair: math.inf if math.isnan(pair[0]) else pair[0])
    return Agreement(len(differences), largest, mean, worst, len(pairs) * len(BEAMS), tuple(different))


def search_answer(model: Model, ids: list[int], beam: int) -> tuple[list[int], float]:
    """Return the answer of Heedful's engine, and its score."""
    (end,) = model.defaults.end
    start: dict[str, Any] = {} if model.defaults.start is None else {"start": model.defaults.start}
    limit = _max_lengths(model)[1]
    ((best,),) = generate(model.module, [ids], end=end, beam=beam, max_new_tokens=limit, length_penalty=1.0, **start)
    return [*best.tokens, *([end] if best.finished else [])], best.score


class _Engines:
    """Computes log-probabilities of a given answer in both engines, and the answers of CTranslate2."""

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
        (result,) = self.ct2.translate_batch([self._texts(source)], beam_size=beam, **limits, **SEARCH)
        return [self.ids[token] for token in result.hypotheses[0]], result.scores[0]

    def is_tied(self, source: list[int], first: list[int], second: list[int]) -> bool:
        """Whether the first different tokens of two answers are equally likely."""
        place = next((place for place, pair in enumerate(zip(first, second, strict=False)) if pair[0] != pair[1]), None)
        if place is None:
            return False
        first_value, second_value = (
            float(self.log_probs(TokenPair(source, ids[: place + 1]))[place]) for ids in (first, second)
        )
        return abs(first_value - second_value) < TIE

    def _texts(self, source: list[int]) -> list[str]:
        return [self.vocabularies.source[index] for index in source]

    @torch.inference_mode()
    def _token_log_probs(self, inputs: tuple[list[Any], ...], answer: list[int]) -> Tensor:
        device = next(self.module.parameters()).device
        logits = self.module(*(torch.tensor([ids], device=device) for ids in inputs))[0]
        log_probs: Tensor = logits.double().log_softmax(dim=-1).cpu()
        return log_probs[torch.arange(len(answer)), torch.tensor(answer)]


class _DecoderEngines(_Engines):
    """The same for a decoder-only model, whose answer continues the input."""

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
        options = {"max_length": self.limit, "min_length": 0, "include_prompt_in_result": False, **SEARCH}
        (result,) = self.ct2.generate_batch([self.vocabularies.tokens(source)], beam_size=beam, **options)
        return [self.ids[token] for token in result.sequences[0]], result.scores[0]
