"""The course: chapters whose examples are run and whose figures are computed, in English and Korean."""

from .chapters import Chapter, read_chapter, read_chapters

__all__ = ["Chapter", "read_chapter", "read_chapters"]
