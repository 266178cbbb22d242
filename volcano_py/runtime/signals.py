"""Shutdown on signals: the first signal asks for an orderly end, the second one forces it.

SIGHUP asks a daemon to read its configuration again. It also tells a process that its terminal was closed; then it asks
for an end.
"""

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any, Final

import structlog

log = structlog.get_logger()

DEFAULT_SIGNALS = (signal.SIGTERM, signal.SIGINT)
TOGETHER_S: Final = 0.3
"""Signals this close together count as one, because ending a process group often signals its members twice."""


class Shutdown:
    """The state of a shutdown: the first request sets ``graceful``, the second one ``force``."""

    def __init__(self, on_force: Callable[[], None] | None = None) -> None:
        self.graceful = asyncio.Event()
        self.force = asyncio.Event()
        self._on_force = on_force

    def request(self, reason: str) -> None:
        """Ask for an orderly end; force the end at the second call."""
        if not self.graceful.is_set():
            log.info("shutting down; a second signal forces it", reason=reason)
            self.graceful.set()
        elif not self.force.is_set():
            log.warning("shutdown forced", reason=reason)
            self.force.set()
            if self._on_force is not None:
                self._on_force()


@contextmanager
def shutdown_on_signals(
    shutdown: Shutdown,
    signals: tuple[signal.Signals, ...] = DEFAULT_SIGNALS,
    *,
    together_s: float = TOGETHER_S,
    on_hangup: Callable[[], None] | None = None,
) -> Iterator[Shutdown]:
    """Pass signals to a Shutdown while the context is open, then restore the handlers from before.

    Signals within ``together_s`` after the first one count as one. With ``on_hangup``, SIGHUP calls it; if the terminal
    was closed, SIGHUP is one of the signals instead. Needs the main thread and a running loop.
    """
    loop = asyncio.get_running_loop()
    first_at: float | None = None
    in_terminal = _in_terminal()

    def request(name: str) -> None:
        nonlocal first_at
        if first_at is None:
            first_at = loop.time()
        elif loop.time() - first_at < together_s:
            return
        shutdown.request(name)

    def hang_up() -> None:
        if on_hangup is None or (in_terminal and not _in_terminal()):
            request("the terminal was closed")
        else:
            on_hangup()

    actions: dict[signal.Signals, Callable[[], None]] = {one: partial(request, one.name) for one in signals}
    if on_hangup is not None:
        actions[signal.SIGHUP] = hang_up
    before: dict[signal.Signals, Callable[[int, FrameType | None], Any] | int | None] = {}
    for number, action in actions.items():
        before[number] = signal.getsignal(number)
        loop.add_signal_handler(number, action)
    try:
        yield shutdown
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            # A handler that was not set from Python (None) cannot be restored; the default is closest to it.
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)


def _in_terminal() -> bool:
    return any(os.isatty(number) for number in range(3))
