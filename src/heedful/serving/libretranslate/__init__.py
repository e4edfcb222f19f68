"""LibreTranslate's API for the translators that are served.

Where that server leaves things open: plain text is translated line by line, and its line breaks stay; a text without a
letter stays as it is; each text of an array is detected on its own, and one in the target language already stays; tags
inside of a sentence go where the words went that they stood around; what is escaped in HTML stays so.
"""

from .routes import router

__all__ = ["router"]
