"""Text to text: summaries, translations, rewriting, by an encoder and a decoder."""

from .predictor import SOURCE, TARGET, CutWarning, Rewriter, RewriterSettings

__all__ = ["SOURCE", "TARGET", "CutWarning", "Rewriter", "RewriterSettings"]
