"""The Commands for one job: which wait, which were carried out, and one that cannot be deleted."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from volcano_py.api.batch import Command
from volcano_py.controllers.writes import Delete
from volcano_py.kube.backoff import Backoff

_FIRST_S: Final = 1.0
_CAP_S: Final = 60.0
_TOLD: Final = 3  # refusals before users are told: a single one may have been a passing fault


@dataclass(slots=True)
class _Held:
    """A Command that was answered and whose deletion was refused."""

    delete: Delete
    backoff: Backoff
    due: float = 0.0


class JobCommands:
    """Commands by namespace/name.

    A Command is answered first and deleted then; if the process ends in between, the note in the status of the job says
    that it was carried out. There is only one such note. Therefore, later Commands wait while one that was answered
    cannot be deleted: with another note, the next process would carry it out again.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, Command] = {}
        self._deleted: set[str] = set()  # uids; the watch may still show them
        self._held: _Held | None = None

    def __iter__(self) -> Iterator[str]:
        """Iterate over those that exist, as far as is known."""
        held = self._held
        return iter([*self._waiting, *([_key(held.delete)] if held is not None else [])])

    def put(self, key: str, command: Command) -> bool:
        """Let a Command wait for its turn; return whether it does, because it has not been answered yet."""
        if self.has_answered(command.metadata.uid):
            return False
        self._waiting[key] = command
        return True

    def changes(self, key: str, *, gone: bool) -> None:
        """Take that a Command is gone, or that another state of it follows; one that was answered remains so."""
        self._waiting.pop(key, None)
        if gone and self._held is not None and _key(self._held.delete) == key:
            self._held = None

    def has_answered(self, uid: str) -> bool:
        """Say whether a Command was answered, so that it only has to go."""
        return uid in self._deleted or (self._held is not None and self._held.delete.uid == uid)

    def in_turn(self) -> list[Command]:
        """Return those that can be answered, the oldest first."""
        return sorted(self._waiting.values(), key=_age) if self._held is None else []

    def was_deleted(self, delete: Delete) -> None:
        """Take that a Command was answered and deleted."""
        self.changes(_key(delete), gone=True)
        self._deleted.add(delete.uid)

    def was_refused(self, delete: Delete, now: float, rng: random.Random) -> bool:
        """Take that the deletion of an answered Command was refused; return whether users have to know."""
        self._waiting.pop(_key(delete), None)
        if self._held is None or self._held.delete.uid != delete.uid:
            self._held = _Held(delete, Backoff(rng, _FIRST_S, _CAP_S))
        self._held.due = now + self._held.backoff.next()
        return self._held.backoff.failures == _TOLD

    def due(self, now: float) -> Delete | None:
        """Return the deletion to try again now."""
        held = self._held
        return held.delete if held is not None and held.due <= now else None

    def next_due_s(self, now: float) -> float | None:
        """Return in how many seconds a deletion is to be tried again, None if there is none."""
        return None if self._held is None else max(0.0, self._held.due - now)


def _key(delete: Delete) -> str:
    return f"{delete.namespace}/{delete.name}"


def _age(command: Command) -> tuple[float, int, str]:
    meta = command.metadata
    created, version = meta.creation_timestamp, meta.resource_version
    return (created.timestamp() if created else 0.0, int(version) if version.isdigit() else 0, meta.name)
