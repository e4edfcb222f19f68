"""`python -m heedful`."""

from .cli import main

main()
