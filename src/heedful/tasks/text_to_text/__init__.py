"""Text to text: summaries, translations, rewriting, by an encoder and a decoder."""

from .predictor import CutWarning, TextToTextGenerator, TextToTextSettings

__all__ = ["CutWarning", "TextToTextGenerator", "TextToTextSettings"]
