"""Wait for a condition with a deadline, instead of sleeping for a fixed time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class NotInTime(Exception):
    """The condition did not hold before the deadline."""


def wait_until(
    what: str,
    probe: Callable[[], T],
    timeout: float,
    *,
    every: float = 0.1,
    tolerate: tuple[type[BaseException], ...] = (),
) -> T:
    """Call `probe` until it returns a true value, and return that value.

    Exceptions named in `tolerate` count as "not yet"; the last one becomes the cause of NotInTime.
    """
    deadline = time.monotonic() + timeout
    seen: BaseException | None = None
    answer: T | None = None
    while True:
        try:
            answer = probe()
            if answer:
                return answer
            seen = None
        except tolerate as failed:
            seen = failed
        if time.monotonic() >= deadline:
            last = f"last answer {answer!r}" if seen is None else f"last error {seen!r}"
            raise NotInTime(f"{what}: not within {timeout:g} s ({last})") from seen
        time.sleep(every)
