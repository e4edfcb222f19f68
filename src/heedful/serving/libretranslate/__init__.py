"""LibreTranslate's API for the translators of a server.

Where LibreTranslate leaves the behavior open: plain text is translated line by line and keeps its line breaks; a text
without letters stays as it is; the language of each text of an array is detected by itself, and a text that is in the
target language already stays; inline tags go where their words went; characters that are escaped in HTML stay escaped.
"""
