"""Back-pressure from the binds to the cycle that decides them."""

import threading
from typing import Final

DEFAULT_CAPACITY: Final = 10_000
_PATIENCE_S: Final = 60.0


class BindBackpressure:
    """Counts binds that are decided and not ended, and holds the cycle's thread while there are too many.

    The one object here that two threads share. A batch enters whole, so that up to one batch more than the capacity is
    on its way.
    """

    def __init__(self, capacity: int = DEFAULT_CAPACITY, patience_s: float = _PATIENCE_S) -> None:
        self._capacity = capacity
        self._patience_s = patience_s
        self._count = 0
        self._closed = False
        self._changed = threading.Condition()

    @property
    def count(self) -> int:
        """How many are on their way."""
        return self._count

    def enter(self, binds: int) -> bool:
        """Wait on the cycle's thread until there is room; False if there is none in time or the gate is closed.

        A batch that may not enter is forgotten: nothing was assumed for it, and the next cycle decides anew.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._count < self._capacity, self._patience_s)
            if self._closed or self._count >= self._capacity:
                return False
            self._count += binds
            return True

    def leave(self, binds: int = 1) -> None:
        """Count binds that have ended, in whatever way."""
        with self._changed:
            self._count -= binds
            self._changed.notify_all()

    def close(self) -> None:
        """Let nothing in any more and wake who waits."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
