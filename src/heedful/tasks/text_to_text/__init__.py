"""Text to text: summaries, translations, rewriting, by an encoder and a decoder."""

from .rewriter import SOURCE, TARGET, Rewriter, RewriterSettings

__all__ = ["SOURCE", "TARGET", "Rewriter", "RewriterSettings"]
