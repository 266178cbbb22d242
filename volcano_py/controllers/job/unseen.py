"""What was created for a job and does not appear in the watch: it must be read again after some time.

The answer to a creation counts at once. If somebody deletes the object while the watch is broken, the next list does
not name it, and since the watch never showed it, nothing reports its end. A job would wait for such a pod for ever.
"""

from typing import Final, NamedTuple

from volcano_py.kube.resource import Resource

SEEN_WITHIN_S: Final = 10.0
"""The watch shows a new object within this time, unless it is broken."""


class Created(NamedTuple):
    """An object that was created."""

    resource: Resource
    name: str
    uid: str


class Unseen:
    """Objects that were created and that the watch has not shown, the oldest first."""

    def __init__(self) -> None:
        self._since: dict[str, tuple[float, Created]] = {}  # by uid

    def add(self, created: Created, now: float) -> None:
        """Note an object that was created just now."""
        self._since.pop(created.uid, None)
        self._since[created.uid] = (now, created)

    def exists(self, created: Created, now: float) -> None:
        """Note that an object was read just now, unless the watch has shown it meanwhile."""
        if created.uid in self._since:
            self.add(created, now)

    def seen(self, uid: str) -> None:
        """Note that the watch shows an object, or that it is gone."""
        if self._since:
            self._since.pop(uid, None)

    def overdue(self, now: float) -> list[Created]:
        """Return what the watch should have shown by now."""
        return [created for since, created in self._since.values() if _overdue_in_s(since, now) <= 0]

    def next_overdue_s(self, now: float) -> float | None:
        """Return the seconds until something is overdue, None if the watch has shown all."""
        oldest = next(iter(self._since.values()), None)
        return None if oldest is None else max(0.0, _overdue_in_s(oldest[0], now))


def _overdue_in_s(since: float, now: float) -> float:
    return since + SEEN_WITHIN_S - now
