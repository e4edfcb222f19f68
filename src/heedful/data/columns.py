"""Which columns of a table, or which keys of an object, hold the texts and their label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

from ..errors import ConfigError

TEXT, LABEL, OTHER = "text", "label", "-"

# What headers usually say, the likeliest first.
PAIRS = (
    *(("text1", "text2"), ("text_a", "text_b"), ("sentence1", "sentence2"), ("sentence_a", "sentence_b")),
    *(("premise", "hypothesis"), ("question1", "question2"), ("question", "sentence")),
)
TEXTS = (
    *(TEXT, "texts", "document", "sentence", "review", "comment", "content", "body", "message", "utterance"),
    *("question", "query", "title", "headline", "tweet", "본문", "문장", "내용", "리뷰", "텍스트"),
)
LABELS = (
    *(LABEL, "labels", "class", "category", "target", "sentiment", "intent", "emotion", "topic", "gold_label"),
    *("tag", "rating", "라벨", "레이블", "분류", "감정"),
)


class Places(NamedTuple):
    """Where a row has its one text or two, and its label."""

    texts: tuple[int, ...]
    label: int


@dataclass(frozen=True)
class Columns:
    """`names` are those of the header, the label's last; `order` says what columns without a header hold.

    With neither, the header's names must be among the usual ones.
    """

    names: tuple[str, ...] = ()
    order: tuple[str, ...] = ()

    @classmethod
    def of(cls, given: Sequence[str] | None) -> Self:
        """As a person writes them: ("review", "stars") by name, or ("label", "-", "text") by order."""
        words = tuple(word.strip() for word in given or ())
        if not words:
            return cls()
        if set(words) <= {TEXT, LABEL, OTHER}:
            if words.count(LABEL) != 1 or words.count(TEXT) not in (1, 2):
                raise ConfigError(f"--columns {','.join(words)}: there are one or two texts and one label")
            return cls(order=words)
        if len(words) not in (2, 3) or not all(words):
            raise ConfigError(
                f"--columns {','.join(words)}: give the names of one or two texts, then the label's (review,stars), "
                f"or for columns without names what each holds: {TEXT}, {LABEL}, or {OTHER} for something else"
            )
        return cls(names=words)

    def in_header(self, header: Sequence[str]) -> Places | None:
        """Where a header has them; None where it does not name them."""
        found = {name.strip().lower(): place for place, name in reversed(list(enumerate(header)))}
        if self.names:
            places = [found.get(name.lower()) for name in self.names]
            known = [place for place in places if place is not None]
            return Places(tuple(known[:-1]), known[-1]) if len(known) == len(places) else None
        label = next((found[name] for name in LABELS if name in found), None)
        both = next(((found[one], found[two]) for one, two in PAIRS if one in found and two in found), None)
        alone = next(((found[name],) for name in TEXTS if name in found), None)
        texts = both or alone
        return None if label is None or texts is None else Places(texts, label)

    def in_order(self) -> Places | None:
        """Where columns without names have them, if that was said."""
        if not self.order:
            return None
        texts = tuple(place for place, role in enumerate(self.order) if role == TEXT)
        return Places(texts, self.order.index(LABEL))

    def missing(self, found: Sequence[str]) -> str:
        """What to say where they are not found."""
        there = {name.strip().lower() for name in found}
        absent = [name for name in self.names if name.lower() not in there]
        wanted = f"named {', '.join(absent)}" if absent else "named as a text's and a label's usually are"
        listed = ", ".join(repr(name[:40]) for name in found[:12]) + (", …" if len(found) > 12 else "")
        return (
            f"no columns are {wanted}; there are {listed or 'none'}. "
            f"Name them, the label last: --columns review,stars; or where there is no header, "
            f"say what each column holds: --columns {TEXT},{LABEL}"
        )
