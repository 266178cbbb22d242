"""Nominations from the decision to their end: assumed until the watch shows them, fails them or takes too long."""

from collections.abc import Callable

from volcano_py.cache.assumed_nominations import AssumedNominations, Nomination
from volcano_py.cache.pod_events import PodEvents
from volcano_py.model.decisions import Nominate
from volcano_py.model.objects import TaskRef
from volcano_py.runtime.clock import Clock


class Nominations:
    """Assumes nominations and ends them."""

    def __init__(self, assumed: AssumedNominations, pods: PodEvents, clock: Clock) -> None:
        self._assumed = assumed
        self._pods = pods
        self._clock = clock

    def assume(self, nomination: Nominate) -> bool:
        """Count a waiting pod as nominated to a node.

        Return False if the pod no longer waits, or is nominated to this node already. A nomination that another
        program has written is not withdrawn either.
        """
        uid, node = nomination.task.uid, nomination.node
        shown = self._pods.nominated(uid)
        if shown is None or shown.node == node or not (node or shown.ours):
            return False
        self._assumed.assume(nomination.task, node, shown, self._clock.monotonic())
        self._pods.set_nominated(uid, Nomination(node))
        return True

    def still_counts(self, task: TaskRef, node: str) -> bool:
        """Say whether a nomination must still be written; a withdrawal ends if another program nominates the pod."""
        shown = self._pods.nominated(task.uid)
        return bool(node) or shown is None or shown.ours

    def failed(self, task: TaskRef) -> None:
        """Count a pod as nominated to what the watch says: the nomination could not be written."""
        self._end(task.uid)

    def written(self, task: TaskRef) -> None:
        """Note that the nomination of a pod was written: the watch has some time to show it."""
        self._assumed.written(task.uid, self._clock.monotonic())

    def to_write_again(self, holds: Callable[[TaskRef], bool]) -> list[Nominate]:
        """Return the nominations that were not written and that the write queue does not hold: it was full."""
        return [Nominate(task, node) for task, node in self._assumed.unwritten() if not holds(task)]

    def end_expired(self, holds: Callable[[TaskRef], bool], now: float | None = None) -> None:
        """End the nominations that the watch should have shown by now; ``holds`` says which have yet to be written."""
        for task in self._assumed.expired(self._clock.monotonic() if now is None else now):
            if not holds(task):
                self._end(task.uid)

    def _end(self, uid: str) -> None:
        shown = self._assumed.end(uid)
        if shown is not None:
            self._pods.set_nominated(uid, shown)
