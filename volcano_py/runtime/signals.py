"""The two signals of an operator: please end, and end now."""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

import structlog

log = structlog.get_logger()

DEFAULT_SIGNALS = (signal.SIGTERM, signal.SIGINT)
TOGETHER_S: Final = 0.3
"""Signals so close together are one wish: who ends a group of processes often signals its members once more."""


class Shutdown:
    """What was asked for: the first request sets ``graceful``, a second one ``force``."""

    def __init__(self, on_force: Callable[[], None] | None = None) -> None:
        self.graceful = asyncio.Event()
        self.force = asyncio.Event()
        self._on_force = on_force

    def request(self, reason: str) -> None:
        """Ask for the end; a second time, demand it."""
        if not self.graceful.is_set():
            log.info("shutting down; a second signal forces it", reason=reason)
            self.graceful.set()
        elif not self.force.is_set():
            log.warning("forced to end", reason=reason)
            self.force.set()
            if self._on_force is not None:
                self._on_force()


@contextmanager
def shutdown_on_signals(
    shutdown: Shutdown, signals: tuple[signal.Signals, ...] = DEFAULT_SIGNALS, *, together_s: float = TOGETHER_S
) -> Iterator[Shutdown]:
    """Lead signals to a Shutdown while the context is open, then restore what handled them before.

    What follows the first one within ``together_s`` counts as the same. Needs the main thread and a running loop.
    """
    loop = asyncio.get_running_loop()
    first_at: float | None = None

    def request(name: str) -> None:
        nonlocal first_at
        if first_at is None:
            first_at = loop.time()
        elif loop.time() - first_at < together_s:
            return
        shutdown.request(name)

    before: dict[signal.Signals, Callable[[int, FrameType | None], Any] | int | None] = {}
    for number in signals:
        before[number] = signal.getsignal(number)
        loop.add_signal_handler(number, request, number.name)
    try:
        yield shutdown
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            # A handler that was not set from Python (None) cannot be put back; the default is the nearest to it.
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
