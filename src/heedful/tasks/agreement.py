"""Whether CTranslate2 computes what our own engine does: the same tokens scored, the same inputs answered."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from ..core import DecoderOnly, Learned, Sinusoidal
from ..families.ctranslate2 import ExportError, Model, library
from ..generation import generate

LENGTHS = (1, 2, 5, 9, 17, 33)
BEAMS = (1, 4)
LIMIT = 24  # tokens of an answer
# The end counts as a token, and CTranslate2 goes on to the limit as long as fewer than so many beams have ended.
EXACTLY: dict[str, Any] = {"return_scores": True, "return_end_token": True, "length_penalty": 1.0, "patience": 1e4}
TIED = 1e-3  # log-probabilities as near as this may be put in another order by rounding


class Pair(NamedTuple):
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


def compare(model: Model, folder: Path, pairs: Sequence[Pair]) -> Agreement:
    """Score every answer and search one for every input, greedily and with a beam, in both engines.

    Both search exactly: their length penalty counts the end, and what has ended does not end the search.
    """
    kind = _Continuing if isinstance(model.module, DecoderOnly) else _Translating
    engine: _Engine = kind(model, folder)
    gaps: list[tuple[float, str]] = []
    different: list[str] = []
    for number, pair in enumerate(pairs, 1):
        gap = (engine.ours(pair) - torch.tensor(engine.theirs(pair), dtype=torch.float64)).abs()
        where = f"input {number}, of {len(pair.source)} tokens, with an answer of {len(pair.target)}"
        gaps += [(value, f"token {place} of {where}") for place, value in enumerate(gap.tolist(), 1)]
        for beam in BEAMS:
            our_tokens, our_score = _answer(model, engine.input(pair.source), beam)
            their_tokens, their_score = engine.answer(pair.source, beam)
            apart = abs(our_score - their_score)
            if our_tokens == their_tokens:
                gaps.append((apart, f"the score of input {number} with beam {beam}"))
            elif apart >= TIED and not _split_by_a_tie(engine, pair.source, our_tokens, their_tokens):
                different.append(f"input {number} with beam {beam}: {our_tokens} here, {their_tokens} there")
    values = [value for value, _ in gaps]
    largest, worst = max(gaps, key=lambda gap: float("inf") if math.isnan(gap[0]) else gap[0])
    return Agreement(len(gaps), largest, sum(values) / len(values), worst, len(pairs) * len(BEAMS), tuple(different))


def made_up(model: Model) -> Iterator[Pair]:
    """Random tokens of several lengths, as far as the positions reach; those hard to write come first."""
    draw = random.Random(0)
    vocabularies, defaults = model.vocabularies, model.defaults
    special = {defaults.start, defaults.pad, *defaults.end, *vocabularies.before, *vocabularies.after}
    source, target = (
        [index for index in range(len(tokens)) if index not in special] or [0]
        for tokens in (vocabularies.source, vocabularies.target)
    )
    hard = [index for index in target if _is_hard(vocabularies.target[index])]
    wanted = draw.sample(hard, min(len(hard), sum(LENGTHS) // 2))
    for length in (length for length in LENGTHS if length <= _Room.of(model).longest):
        forced, wanted = wanted[: length // 2], wanted[length // 2 :]
        rest = draw.choices(target, k=length - len(forced))
        yield Pair(draw.choices(source, k=length), draw.sample([*forced, *rest], length))


def fitting(model: Model, pairs: Sequence[Pair]) -> list[Pair]:
    """Those that the positions have room for."""
    longest = _Room.of(model).longest
    return [pair for pair in pairs if all(0 < len(side) <= longest for side in pair)]


def _is_hard(token: str) -> bool:
    return not token.isprintable() or token != token.strip()


class _Room(NamedTuple):
    """How long a source and a forced answer may be, and how many tokens are searched."""

    longest: int
    limit: int

    @classmethod
    def of(cls, model: Model) -> _Room:
        """As far as the positions reach: those of a decoder alone hold the input and both answers."""
        schemes = [part for part in model.module.modules() if isinstance(part, Learned | Sinusoidal)]
        reach = min((scheme.max_length for scheme in schemes), default=1 << 30)
        limit = min(LIMIT, max(1, reach // 2))
        alone = isinstance(model.module, DecoderOnly)
        return cls(max(1, (reach - limit) // 2 if alone else reach - 2), limit)


def _answer(model: Model, ids: list[int], beam: int) -> tuple[list[int], float]:
    (end,) = model.defaults.end
    given: dict[str, Any] = {} if model.defaults.start is None else {"start": model.defaults.start}
    limit = _Room.of(model).limit
    ((best,),) = generate(model.module, [ids], end=end, beam=beam, max_new_tokens=limit, length_penalty=1.0, **given)
    return [*best.tokens, *([end] if best.finished else [])], best.score


def _split_by_a_tie(engine: _Engine, source: list[int], ours: list[int], theirs: list[int]) -> bool:
    """Whether the first token in which two answers differ was as likely as the other."""
    same = next((place for place, pair in enumerate(zip(ours, theirs, strict=False)) if pair[0] != pair[1]), None)
    if same is None:
        return False
    one, other = (float(engine.ours(Pair(source, answer[: same + 1]))[same]) for answer in (ours, theirs))
    return abs(one - other) < TIED


class _Engine(Protocol):
    """The log-probabilities of a forced answer in both engines, and what CTranslate2 answers by itself."""

    def ours(self, pair: Pair) -> Tensor: ...
    def theirs(self, pair: Pair) -> list[float]: ...
    def input(self, source: list[int]) -> list[int]: ...
    def answer(self, source: list[int], beam: int) -> tuple[list[int], float]: ...


class _Translating:
    def __init__(self, model: Model, folder: Path) -> None:
        self._module: Any = model.module
        self._vocabularies, self._limit = model.vocabularies, _Room.of(model).limit
        self._start, self._end = model.defaults.start, model.defaults.end[0]
        self._engine = _opened("Translator", folder)
        self._ids = {token: index for index, token in enumerate(model.vocabularies.target)}

    def input(self, source: list[int]) -> list[int]:
        return [*self._vocabularies.before, *source, *self._vocabularies.after]

    def ours(self, pair: Pair) -> Tensor:
        started = [self._start, *pair.target]
        return _log_probs(self._module, (self.input(pair.source), started), [*pair.target, self._end])

    def theirs(self, pair: Pair) -> list[float]:
        target = self._vocabularies.tokens(pair.target)
        (scored,) = self._engine.score_batch([self._texts(pair.source)], [target], max_input_length=0)
        return list(scored.log_probs)

    def answer(self, source: list[int], beam: int) -> tuple[list[int], float]:
        (found,) = self._engine.translate_batch(
            [self._texts(source)],
            beam_size=beam,
            max_input_length=0,
            max_decoding_length=self._limit,
            min_decoding_length=0,
            **EXACTLY,
        )
        return [self._ids[token] for token in found.hypotheses[0]], found.scores[0]

    def _texts(self, source: list[int]) -> list[str]:
        return [self._vocabularies.source[index] for index in source]


class _Continuing:
    def __init__(self, model: Model, folder: Path) -> None:
        self._module: Any = model.module
        self._tokens, self._limit = model.vocabularies.tokens, _Room.of(model).limit
        self._engine = _opened("Generator", folder)
        self._ids = {token: index for index, token in enumerate(model.vocabularies.target)}

    def input(self, source: list[int]) -> list[int]:
        return source

    def ours(self, pair: Pair) -> Tensor:
        whole = [*pair.source, *pair.target]
        return _log_probs(self._module, (whole[:-1],), whole[1:])[-len(pair.target) :]

    def theirs(self, pair: Pair) -> list[float]:
        (scored,) = self._engine.score_batch([self._tokens([*pair.source, *pair.target])], max_input_length=0)
        return list(scored.log_probs)[-len(pair.target) :]

    def answer(self, source: list[int], beam: int) -> tuple[list[int], float]:
        (found,) = self._engine.generate_batch(
            [self._tokens(source)],
            beam_size=beam,
            max_length=self._limit,
            min_length=0,
            include_prompt_in_result=False,
            **EXACTLY,
        )
        return [self._ids[token] for token in found.sequences[0]], found.scores[0]


def _opened(kind: str, folder: Path) -> Any:
    try:
        return getattr(library(), kind)(str(folder), device="cpu")
    except (RuntimeError, ValueError) as error:
        raise ExportError(f"CTranslate2 cannot load the model: {error}") from None


def _log_probs(module: Any, inputs: tuple[list[Any], ...], answer: list[int]) -> Tensor:
    device = next(module.parameters()).device
    with torch.inference_mode():
        logits = module(*(torch.tensor([ids], device=device) for ids in inputs))[0]
        return logits.double().log_softmax(dim=-1).cpu()[torch.arange(len(answer)), torch.tensor(answer)]
