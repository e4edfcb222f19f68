"""Which classes are taken for which."""

from __future__ import annotations

from .data import Confusion
from .heatmap import share_figure
from .markup import Html, join, tag
from .words import Words, number

MOST_CLASSES = 30  # drawn as a map; the most frequent mistakes are listed whatever there are
MOST_MISTAKES = 12


def confusion(given: Confusion | None, words: Words) -> Html | None:
    """A map of shares, each row a class, and the most frequent mistakes in words."""
    if given is None:
        return None
    n = len(given.labels)
    drawing = share_figure(words("truth_and_answer"), given.labels, given.counts) if n <= MOST_CLASSES else None
    mistakes = sorted(
        (
            (count, given.labels[row], given.labels[column])
            for row, counts in enumerate(given.counts)
            for column, count in enumerate(counts)
            if row != column and count
        ),
        reverse=True,
    )
    listed = (
        tag("li", words("taken_for", truth=truth, answer=answer, n=number(count)), dir="auto")
        for count, truth, answer in mistakes[:MOST_MISTAKES]
    )
    below = join(tag("h3", words("mistakes")), tag("ul", *listed)) if mistakes else None
    return join(tag("p", words("confusion_reading"), class_="soft"), drawing, below)
