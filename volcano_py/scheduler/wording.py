"""Texts without their numbers: texts that differ in nothing else are not written in place of each other at once."""

import re
from functools import lru_cache
from typing import Final

_NUMBER: Final = re.compile(r"(?<![\w.-])\d[\d./]*[A-Za-z]{0,2}(?![\w-])")
_AMOUNTS: Final = re.compile(r'(queue "[^"]*" (?:may not hold more|holds all that it deserves now)).*')


@lru_cache(maxsize=4096)
def without_numbers(text: str) -> str:
    """Return a text without its numbers, for comparisons; the reasons of nodes are sorted, as they are by number."""
    text = _AMOUNTS.sub(r"\1", text)
    masked = _NUMBER.sub("#", text)
    head, colon, reasons = masked.rpartition("nodes are unavailable: ")
    return masked if not colon else head + colon + ", ".join(sorted(reasons.rstrip(".").split(", ")))
