"""What a browser may do with our pages: run our scripts and no others, and reach this server alone."""

from __future__ import annotations

import base64
import hashlib
from functools import cache

from ...lens.page.writing import script, style

COMMON = {"Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff"}


@cache
def page_headers() -> dict[str, str]:
    """Of the page at `/`.

    It shows the looks it has fetched in a sandboxed frame, and such a frame inherits this policy: so the one inline
    script and the one style sheet that a look is made of are named by their hashes. Nothing else inline may run.
    """
    policy = (
        f"default-src 'none'; script-src 'self' {_hash(script())}; style-src 'self' {_hash(style())}; "
        "connect-src 'self'; img-src 'self' data: blob:; frame-src blob:; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    )
    return {"Content-Security-Policy": policy, "Cache-Control": "no-cache", **COMMON}


@cache
def look_headers() -> dict[str, str]:
    """Of a look on its own: as strict as the page says of itself, and never kept, for it holds what someone asked."""
    policy = (
        f"default-src 'none'; script-src {_hash(script())}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return {"Content-Security-Policy": policy, "Cache-Control": "no-store", **COMMON}


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
