"""How many PodGroups of a queue are in which phase; nobody keeps these numbers in the queue's status."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from volcano_py.api import keys


class Counts(NamedTuple):
    """PodGroups of one queue by phase."""

    inqueue: int = 0
    pending: int = 0
    running: int = 0
    unknown: int = 0
    completed: int = 0


class Groups:
    """The queue and the phase of each PodGroup."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], tuple[str, str]] = {}

    def replace(self, groups: Iterable[Mapping[str, Any]]) -> None:
        """Forget all and take these."""
        self._seen.clear()
        for group in groups:
            self.put(group)

    def put(self, group: Mapping[str, Any]) -> None:
        """Take a PodGroup as it is now."""
        queue = str((group.get("spec") or {}).get("queue") or keys.DEFAULT_QUEUE)
        self._seen[_key(group)] = queue, str((group.get("status") or {}).get("phase") or "").lower()

    def remove(self, group: Mapping[str, Any]) -> None:
        """Forget a PodGroup."""
        self._seen.pop(_key(group), None)

    def counts(self) -> dict[str, Counts]:
        """Return the counts of each queue that has a PodGroup; groups without a phase are not counted."""
        found: dict[str, Counter[str]] = {}
        for queue, phase in self._seen.values():
            found.setdefault(queue, Counter())[phase] += 1
        return {queue: Counts(*(phases[name] for name in Counts._fields)) for queue, phases in found.items()}


def _key(group: Mapping[str, Any]) -> tuple[str, str]:
    metadata = group["metadata"]
    return str(metadata.get("namespace") or ""), metadata["name"]
