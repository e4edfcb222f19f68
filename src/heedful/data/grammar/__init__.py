"""The built-in Korean-English corpus: one meaning frame makes both sides and their word alignment."""

from heedful.data.grammar.corpus import Example, Grammar
from heedful.data.grammar.features import PROBES
from heedful.data.grammar.handwritten import HANDWRITTEN
from heedful.data.grammar.lint import lint
from heedful.data.grammar.lookup import Lookup
from heedful.data.grammar.outside import words_outside
from heedful.data.grammar.splits import SPLITS, Split

__all__ = ["HANDWRITTEN", "PROBES", "SPLITS", "Example", "Grammar", "Lookup", "Split", "lint", "words_outside"]
