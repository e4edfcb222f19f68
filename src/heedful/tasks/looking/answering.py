"""The answer that is looked at: as `predict` finds it, with all that was considered on the way; or a given one."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...data.pairs import tidy
from ...errors import ConfigError, DataError
from ...generation import GenerationConfig, Hypothesis, SearchStep
from ...generation.runners import runner_of
from ..language_model import CausalLanguageModel
from ..predictor import plain, within
from ..text_generator import TextGenerator
from ..text_to_text import TextToTextGenerator
from ..translation.predictor import Translator
from .assembling import EMPTY
from .beams import History, Spell, beam_tree, end_of


@dataclass(frozen=True)
class Search:
    """What a search found, and how."""

    found: Hypothesis
    history: History
    words: GenerationConfig

    @classmethod
    def of(cls, writer: TextGenerator, ids: list[int], given: Mapping[str, Any]) -> Search:
        """For the best answer to these ids."""
        config, traces = writer.generation_config(given), list[list[SearchStep]]()
        ((found, *_),) = writer.generate([ids], config, traces)
        return cls(found, traces[0], config)


@dataclass(frozen=True)
class Written:
    """An answer's text and its tokens, the end among them where it came to one; no search where it was given."""

    text: str
    tokens: list[int]
    search: Search | None = None

    @classmethod
    def of(cls, writer: TextGenerator, ids: list[int], search: Search) -> Written:
        """What a search found."""
        found = search.found
        end = end_of(search.history, found, search.words)
        return cls(writer.answer(ids, found).text, [*found.tokens, *end], search)

    def beam(self, spell: Spell) -> dict[str, Any] | None:
        """The tree of the search, where it had more than one beam."""
        if self.search is None or self.search.words.beam == 1:
            return None
        return beam_tree(self.search.history, self.tokens, self.search.found, self.search.words, spell)


def only_part(writer: TextGenerator, item: Any) -> list[int]:
    """The ids of a text that is read as one; a page shows one answer."""
    parts = writer.inputs(plain(item))
    if not parts:
        raise DataError(EMPTY)
    if len(parts) > 1:
        raise DataError(
            f"the text is answered in {len(parts)} parts, sentence by sentence or as much as fits, and a page shows "
            "one of them; look at each on its own"
        )
    return list(parts[0])


def answered(writer: Translator | TextToTextGenerator, ids: list[int], given: Mapping[str, Any]) -> Written:
    """The best answer to a source."""
    return Written.of(writer, ids, Search.of(writer, ids, given))


def continued(continuer: CausalLanguageModel, ids: list[int], given: Mapping[str, Any]) -> Written:
    """The best that follows a text. It must fit what the model sees at once: beyond, it forgets what it has read.

    Where nobody has said how long it is to be, it is as long as fits.
    """
    search = Search.of(continuer, ids, given)
    limit, n_read = continuer.limit, len(ids) + len(search.found.tokens) - (not search.found.finished)
    if limit is None or n_read <= limit:
        return Written.of(continuer, ids, search)
    fitting = limit - len(ids) + 1
    if "max_new_tokens" not in given and fitting > 0:
        warnings.warn(
            f"this model sees {limit:,} tokens at once, and the text has {len(ids):,} of them: the answer is cut after "
            f"{fitting:,} new ones, so that the page shows all that the model did",
            stacklevel=2,
        )
        return Written.of(continuer, ids, Search.of(continuer, ids, {**given, "max_new_tokens": fitting}))
    raise DataError(
        f"text and answer have {n_read:,} tokens together, and this model sees {limit:,} at once, so no page could "
        f"show all it did; ask for at most {fitting:,} new ones (max_new_tokens)"
    )


def given_to(writer: Translator | TextToTextGenerator, ids: list[int], words: Mapping[str, Any]) -> Written:
    """A person's answer, the `target`, in the tokens that training would have had."""
    if strange := [word for word in words if word != "target"]:
        raise ConfigError(
            f"a given target excludes searching for an answer: leave out {' and '.join(map(repr, strange))}, "
            "or leave out 'target'"
        )
    text = tidy(plain(words["target"]))
    tokens, (_, ends) = writer.target_tokenizer.encode(text), start_and_ends(writer)
    tokens = tokens if tokens[-1:] and tokens[-1] in ends else [*tokens, ends[0]]
    forced = writer.forced()
    tokens = tokens if tokens[: len(forced)] == forced else [*forced, *tokens]
    try:
        return Written(text, within(tokens, runner_of(writer.module).room(writer.module, len(ids))))
    except DataError as error:
        raise DataError(f"the target: {error}") from None


def start_and_ends(writer: TextGenerator) -> tuple[int, tuple[int, ...]]:
    """The token that every answer begins behind, and those that may end it."""
    tokens = writer.special_tokens()
    start, end = tokens["start"], tokens["end"]
    return 0 if start is None else start, (end,) if isinstance(end, int) else tuple(end)
