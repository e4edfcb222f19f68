"""The page that shows a model while it works: one offline HTML file, written from a document."""

from .bundle import bundle
from .writing import render, write_page

__all__ = ["bundle", "render", "write_page"]
