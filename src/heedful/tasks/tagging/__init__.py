"""Token classification: a tag for every word of a text, and the entities that the tags mark."""

from .predictor import TaggedSpan, Tagger, TaggerSettings

__all__ = ["TaggedSpan", "Tagger", "TaggerSettings"]
