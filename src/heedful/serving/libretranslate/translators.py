"""Who translates from which language into which."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from ...data.languages import CODE, matches
from ..models import Models, Served
from ..refusals import Refusal
from .names import name_of

TASKS = ("translation", "text-to-text")


@dataclass(frozen=True)
class Translators:
    """The models by the pair of their languages; of several for one pair, the first."""

    pairs: dict[tuple[str, str], Served]

    @classmethod
    def of(cls, models: Models) -> Translators:
        """Those of the served models that say their languages."""
        pairs: dict[tuple[str, str], Served] = {}
        for model in models.of_task(*TASKS):
            if (pair := _languages(model)) is not None:
                pairs.setdefault(pair, model)
        return cls(pairs)

    @property
    def languages(self) -> list[str]:
        """All codes, in the order of the models, sources first."""
        return list(dict.fromkeys(pair[side] for side in (0, 1) for pair in self.pairs))

    def targets(self, source: str) -> list[str]:
        """What a language is translated into."""
        return [target for of, target in self.pairs if of == source]

    def before(self, target: str) -> list[str]:
        """All codes, first those that are translated into a language: one of them, where nothing else is known."""
        return list(dict.fromkeys([*(source for source, into in self.pairs if into == target), *self.languages]))

    def code(self, asked: str) -> str:
        """The code that a language has here: en-US is answered by a model of en. Refused where there is none."""
        found = next(self._codes(asked), None)
        if found is None:
            allowed = ", ".join(self.languages) or "none, since no translator is served"
            raise Refusal(400, f"{asked[:40]!r} is not supported; the languages are: {allowed}")
        return found

    def between(self, source: str, target: str) -> Served:
        """The translator of a pair."""
        if (source, target) not in self.pairs:
            into = ", ".join(self.targets(source)) or "none"
            raise Refusal(
                400,
                f"{name_of(target)} ({target}) is not available as a target language from {name_of(source)} "
                f"({source}); those that are: {into}",
            )
        return self.pairs[source, target]

    def _codes(self, asked: str) -> Iterator[str]:
        """The same code, then a narrower and a wider one."""
        wanted = asked.lower().replace("_", "-")
        yield from (code for code in self.languages if code.lower().replace("_", "-") == wanted)
        yield from filter(partial(matches, asked), self.languages)
        yield from (code for code in self.languages if matches(code, asked))


def _languages(model: Served) -> tuple[str, str] | None:
    settings = model.predictor.settings
    source, target = getattr(settings, "source", None), getattr(settings, "target", None)
    said = [code for code in (source, target) if isinstance(code, str) and CODE.fullmatch(code)]
    return (said[0], said[1]) if len(said) == 2 else None
