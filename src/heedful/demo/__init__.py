"""The demo: a built-in Korean-English corpus, and (in `experiment`) a translator that learns it in a few minutes.

One meaning frame makes both sides of a sentence and their word alignment; docs/corpus.md tells how.
"""

from .corpus import Grammar, ParallelExample, handwritten_sentences
from .splits import PROBES, SPLITS, Split
from .template_lookup import TemplateLookup
from .text_checks import lint, out_of_vocabulary, unknown_words

__all__ = [
    "PROBES", "SPLITS", "Grammar", "ParallelExample", "Split", "TemplateLookup", "handwritten_sentences", "lint",
    "out_of_vocabulary", "unknown_words",
]  # fmt: skip
