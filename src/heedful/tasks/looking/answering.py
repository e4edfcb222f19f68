"""The answer that is looked at: as `predict` finds it, with all that was considered on the way; or a given one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...data.cleaning import tidy
from ...errors import DataError
from ...generation import GenerationConfig, Hypothesis, generate
from ...generation.models import wiring_of
from ..language_model import Continuer
from ..language_model.rolling import generate_on
from ..text_to_text import Rewriter
from ..texts import plain, within
from ..translation.translator import Translator
from ..writer import Writer
from .beams import History, Spell, beam_tree, end_of


@dataclass(frozen=True)
class Search:
    """What a search found, and how."""

    found: Hypothesis
    history: History
    words: GenerationConfig


@dataclass(frozen=True)
class Written:
    """An answer's text and its tokens, the end among them where it came to one; no search where it was given."""

    text: str
    tokens: list[int]
    search: Search | None = None

    @classmethod
    def of(cls, writer: Writer, ids: list[int], search: Search) -> Written:
        """What a search found."""
        found = search.found
        end = end_of(search.history, found, search.words)
        return cls(writer.answer(ids, found).text, [*found.tokens, *end], search)

    def beam(self, spell: Spell) -> dict[str, Any] | None:
        """The tree of the search, where it had more than one beam."""
        if self.search is None or self.search.words.beam == 1:
            return None
        return beam_tree(self.search.history, self.tokens, self.search.found, self.search.words, spell)


def only_part(writer: Writer, item: Any) -> list[int]:
    """The ids of a text that is read as one; a page shows one answer."""
    parts = writer.inputs(plain(item))
    if not parts:
        raise DataError("the text is empty, so there is nothing to look at")
    if len(parts) > 1:
        raise DataError(
            f"the text is answered in {len(parts)} parts, sentence by sentence or as much as fits, and a page shows "
            "one of them; look at each on its own"
        )
    return list(parts[0])


def answered(writer: Translator | Rewriter, ids: list[int], given: Mapping[str, Any]) -> Written:
    """The best answer to a source."""
    words, histories = writer._words(dict(given)), list[list[Any]]()
    more = {"prefixes": [writer.forced()], "histories": histories, **writer.tokens()}
    ((found, *_),) = generate(writer.module, [ids], words, **more)
    return Written.of(writer, ids, Search(found, histories[0], words))


def continued(continuer: Continuer, ids: list[int], given: Mapping[str, Any]) -> Written:
    """The best that follows a text. It must fit what the model sees at once: beyond, it forgets what it has read."""
    words, histories = continuer._words(dict(given)), list[list[Any]]()
    more = {"histories": histories, **continuer.tokens()}
    ((found, *_),) = generate_on(continuer.module, [ids], words, continuer.settings.context, **more)
    limit, n_read = continuer.limit, len(ids) + len(found.tokens) - (not found.finished)
    if limit is not None and n_read > limit:
        raise DataError(
            f"text and answer have {n_read:,} tokens together, and this model sees {limit:,} at once, so no page could "
            f"show all it did; ask for at most {limit - len(ids) + 1:,} new ones (max_new_tokens)"
        )
    return Written.of(continuer, ids, Search(found, histories[0], words))


def given_to(writer: Translator | Rewriter, ids: list[int], target: Any) -> Written:
    """A person's answer, in the tokens that training would have had."""
    text = tidy(plain(target))
    tokens, (_, ends) = writer.target_tokenizer.encode(text), start_and_ends(writer)
    tokens = tokens if tokens[-1:] and tokens[-1] in ends else [*tokens, ends[0]]
    forced = writer.forced()
    tokens = tokens if tokens[: len(forced)] == forced else [*forced, *tokens]
    try:
        return Written(text, within(tokens, wiring_of(writer.module).room(writer.module, len(ids))))
    except DataError as error:
        raise DataError(f"the target: {error}") from None


def start_and_ends(writer: Writer) -> tuple[int, tuple[int, ...]]:
    """The token that every answer begins behind, and those that may end it."""
    tokens = writer.tokens()
    end = tokens["end"]
    return tokens["start"], (end,) if isinstance(end, int) else tuple(end)
