"""OpenAI's API for language models and embedders: models, completions, embeddings."""

from .routes import router

__all__ = ["router"]
