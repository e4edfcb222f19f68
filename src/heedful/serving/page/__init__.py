"""The web page at `/`, where people can try and inspect the served models."""

from .routes import router

__all__ = ["router"]
