"""The entry point of `python -m heedful`, the same as the command."""

from .cli import main

main()
