"""`python -m heedful.lens.page DOCUMENT.json PAGE.html`: the page of a document that was kept as JSON."""

import json
import sys
from pathlib import Path

from ...errors import HeedfulError
from . import write_page


def main(arguments: list[str]) -> int:
    """Write the page; the exit status."""
    if len(arguments) != 2:
        print("usage: python -m heedful.lens.page DOCUMENT.json PAGE.html", file=sys.stderr)
        return 2
    source, out = map(Path, arguments)
    try:
        write_page(out, json.loads(source.read_text(encoding="utf-8")))
    except (HeedfulError, OSError, json.JSONDecodeError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
