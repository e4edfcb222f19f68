"""Models behind HTTP, for clients that people already have. Needs the extra: pip install 'heedful[serve]'."""
