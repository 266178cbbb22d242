"""JSON that is nested too deeply for its decoder: the API server accepts it from any user, so no program may end."""

import re
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

DEEPEST: Final = 200
"""No field that anything here reads is nested half as deeply."""
_TOKEN: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)


def decoded(decode: Callable[[bytes], T], data: bytes) -> T:
    """Decode JSON; what is nested too deeply for ``decode`` becomes null.

    Python bounds the depth of calls, also within decoders (RecursionError). The API server allows 10,000 levels, for
    example in metadata.managedFields.
    """
    try:
        return decode(data)
    except RecursionError:
        return decode(flattened(data))


def flattened(data: bytes, deepest: int = DEEPEST) -> bytes:
    """Return JSON with null in place of what is nested more deeply than this."""
    kept: list[bytes] = []
    depth = since = 0
    for token in _TOKEN.finditer(data):
        match token[0]:
            case b"{" | b"[":
                if depth == deepest:
                    kept += (data[since : token.start()], b"null")
                    since = len(data)  # unless it ends
                depth += 1
            case b"}" | b"]":
                depth -= 1
                if depth == deepest:
                    since = token.end()
    kept.append(data[since:])
    return b"".join(kept)
