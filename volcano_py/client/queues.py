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


def counts(groups: Iterable[Mapping[str, Any]]) -> dict[str, Counts]:
    """Return the counts of each queue that has a PodGroup; groups without a phase are not counted."""
    found: dict[str, Counter[str]] = {}
    for group in groups:
        queue = str((group.get("spec") or {}).get("queue") or keys.DEFAULT_QUEUE)
        phase = str((group.get("status") or {}).get("phase") or "")
        found.setdefault(queue, Counter())[phase.lower()] += 1
    return {queue: Counts(*(phases[name] for name in Counts._fields)) for queue, phases in found.items()}
