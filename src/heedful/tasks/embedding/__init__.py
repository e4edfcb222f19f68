"""Embedding: texts as vectors."""

from .embedder import Embedder, EmbedderSettings

__all__ = ["Embedder", "EmbedderSettings"]
