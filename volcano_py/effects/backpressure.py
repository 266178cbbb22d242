"""Backpressure from the binds to the cycle that decides them."""

import threading
from typing import Final

DEFAULT_CAPACITY: Final = 10_000
_PATIENCE_S: Final = 60.0
_CAPACITY_ASIDE: Final = 10_000


class BindBackpressure:
    """Counts the binds that are decided and have not ended, and holds the cycle's thread while they are too many.

    It is the only object here that two threads share. A batch enters as a whole, so the count may exceed the capacity
    by one batch.

    Binds that are being prepared are set aside: they may take minutes, and use no connection meanwhile. They hold
    nothing up, unless there are too many of them.
    """

    def __init__(
        self,
        capacity: int = DEFAULT_CAPACITY,
        patience_s: float = _PATIENCE_S,
        capacity_aside: int = _CAPACITY_ASIDE,
    ) -> None:
        self._capacity = capacity
        self._capacity_aside = capacity_aside
        self._aside = 0
        self._patience_s = patience_s
        self._count = 0
        self._closed = False
        self._changed = threading.Condition()

    @property
    def count(self) -> int:
        """How many binds are under way."""
        return self._count

    def under_way(self) -> bool:
        """Say whether any bind is under way."""
        return self._count > 0

    def enter(self, binds: int) -> bool:
        """Wait on the cycle's thread until there is room; return False if there is none in time, or after `close`.

        The caller drops a batch that may not enter. Nothing was assumed for it, and the next cycle decides anew.
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
            self._wake()

    def set_aside(self, binds: int) -> bool:
        """Count binds as set aside, no longer as under way; return False, changing nothing, if too many are."""
        with self._changed:
            if self._aside + binds > self._capacity_aside:
                return False
            self._aside += binds
            self._count -= binds
            self._wake()
            return True

    def take_up(self, binds: int) -> None:
        """Count binds that were set aside as under way again."""
        with self._changed:
            self._aside -= binds
            self._count += binds

    def close(self) -> None:
        """Refuse every further batch, and wake the cycle if it waits."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _wake(self) -> None:
        """Wake the cycle if it may enter: to wake it with each bind would cost as much as a tenth of the bind."""
        if self._count < self._capacity:
            self._changed.notify_all()
