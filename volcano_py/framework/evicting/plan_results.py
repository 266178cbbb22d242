"""What has come of the plans of a session: how many were concluded, and which classes of plans fail at present.

A cycle carries out at most `MOST_PLANS` plans that evict somebody; the next cycle, which begins at once, continues in
scheduling order. Otherwise one cycle would last for minutes when thousands of jobs may evict others, and meanwhile no
victim's room would be given to anybody, and no job that needs no eviction would be placed.
"""

from collections.abc import Hashable
from typing import Final

MOST_PLANS: Final = 200
"""A number of plans and not a time: equal clusters lead to equal decisions. One plan takes a few milliseconds."""


class PlanResults:
    """Results of plans; those for the nodes of one domain have classes of their own."""

    def __init__(self, whole: "PlanResults | None" = None) -> None:
        """Begin without results; ``whole`` are those of the session if these are for one domain."""
        self._whole = whole or self
        self.failed: dict[Hashable, int] = {}
        """Classes of plans (`Plan`) that fail at present -> the smallest number of tasks that was too many."""
        self._that_evict = 0
        self.concluded = 0
        """How many plans have found nothing or have been carried out; only the whole session counts."""

    def within(self) -> "PlanResults":
        """Return results for the nodes of one domain."""
        return PlanResults(self._whole)

    def fails(self, plan_class: Hashable, needed: int) -> bool:
        """Say whether a plan of a class is known to fail for so many needed tasks."""
        return needed >= self.failed.get(plan_class, needed + 1)

    def failure(self, plan_class: Hashable | None, needed: int) -> None:
        """Note that a plan failed for so many needed tasks; None stands for a class of its own."""
        self._whole.concluded += 1
        if plan_class is not None:
            self.failed[plan_class] = min(needed, self.failed.get(plan_class, needed))

    def success(self, *, evicts: bool) -> None:
        """Note that a plan is carried out: others that have failed may succeed now, wherever they were made."""
        self._whole.concluded += 1
        self._whole._that_evict += evicts
        self.failed.clear()
        self._whole.failed.clear()

    @property
    def exhausted(self) -> bool:
        """Whether this session has carried out as many plans that evict somebody as one may."""
        return self._whole._that_evict >= MOST_PLANS
