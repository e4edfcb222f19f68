"""The page at `/`: whatever is served, to be tried by hand and looked into."""

from .routes import router

__all__ = ["router"]
