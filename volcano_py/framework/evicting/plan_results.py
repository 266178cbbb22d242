"""What has come of the plans of a session: how many were concluded, and which classes of plans fail at present."""

from collections.abc import Hashable


class PlanResults:
    """Results of plans; those for the nodes of one domain have classes of their own."""

    def __init__(self, whole: "PlanResults | None" = None) -> None:
        """Begin without results; ``whole`` are those of the session if these are for one domain."""
        self._whole = whole or self
        self.failed: dict[Hashable, int] = {}
        """Classes of plans (`Plan`) that fail at present -> the smallest number of tasks that was too many."""
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

    def success(self) -> None:
        """Note that a plan is carried out: others that have failed may succeed now, wherever they were made."""
        self._whole.concluded += 1
        self.failed.clear()
        self._whole.failed.clear()
