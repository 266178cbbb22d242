"""Texts without their numbers: texts that differ in nothing else are not written in place of each other at once."""

import re
import sys
from functools import lru_cache
from typing import Final

_NUMBER: Final = re.compile(r"(?<![\w.-])\d[\d./]*[A-Za-z]{0,2}(?![\w-])")
_AMOUNTS: Final = re.compile(r'(queue "[^"]*" (?:may not hold more|holds all that it deserves now)).*')


_ORIGIN: Final = " Origin reason is "
"""What stands between the counts of a job, and the name of a pod with the reason of its shape."""


def without_numbers(text: str) -> str:
    """Return a text without its numbers, for comparisons; the reasons of nodes are sorted, as they are by number."""
    counts, origin, reason = text.partition(_ORIGIN)
    if not origin:
        return _masked(text)
    # Thousands of jobs have the same counts and the same reason, each with the name of a pod of its own between them.
    pod, colon, why = reason.partition(": ")
    return f"{_masked(counts)}{origin}{pod}{colon}{_masked(why)}"


@lru_cache(maxsize=4096)
def _masked(text: str) -> str:
    text = _AMOUNTS.sub(r"\1", text)
    masked = _NUMBER.sub("#", text)
    head, colon, reasons = masked.rpartition("nodes are unavailable: ")
    if colon:
        masked = head + colon + ", ".join(sorted(reasons.rstrip(".").split(", ")))
    return sys.intern(masked)  # thousands of texts differ in nothing but numbers
