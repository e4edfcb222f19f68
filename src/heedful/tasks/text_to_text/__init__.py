"""Text to text: summaries, translations, rewriting, by an encoder and a decoder."""

from .predictor import SOURCE, TARGET, CutWarning, TextToTextGenerator, TextToTextSettings

__all__ = ["SOURCE", "TARGET", "CutWarning", "TextToTextGenerator", "TextToTextSettings"]
