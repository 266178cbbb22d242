"""What is assumed until the watch shows it: the way from a request to its end, for binds and for evictions."""

from abc import ABC, abstractmethod
from typing import ClassVar

import structlog

from volcano_py.api.core import Pod
from volcano_py.cache.pod_events import PodEvents
from volcano_py.cache.state import ClusterState
from volcano_py.ledger.ledger import Entry, Ledger
from volcano_py.model.objects import TaskRef
from volcano_py.runtime.clock import Clock

log = structlog.get_logger()


class Assumptions(ABC):
    """Requests of one kind that are decided and not yet seen in the watch."""

    what: ClassVar[str]  # in logs

    def __init__(self, state: ClusterState, ledger: Ledger, pods: PodEvents, clock: Clock) -> None:
        self._state = state
        self._store = state.store
        self.ledger = ledger
        self._pods = pods
        self._clock = clock

    @abstractmethod
    def _take_back(self, uid: str) -> None:
        """Let a pod be again what the watch says of it."""

    def sent(self, task: TaskRef) -> None:
        """Note that the request is on its way."""
        self.ledger.sent(task.uid, self._clock.monotonic())

    def acknowledged(self, task: TaskRef) -> None:
        """Note that the API server has done it; the assumption holds until the watch shows it."""
        self.ledger.acknowledged(task.uid, self._clock.monotonic())

    def failed(self, task: TaskRef, why: str) -> None:
        """Take an assumption back because its request failed; do nothing if the watch has ended it already."""
        self._forget(task, why)

    def _forget(self, task: TaskRef, why: str) -> None:
        entry = self.ledger.forget(task.uid)
        if entry is not None:
            log.debug(f"{self.what} failed", task=str(task), uid=task.uid, node=entry.node, reason=why)
            self._take_back(task.uid)
            self._state.notify()

    def expired(self, now: float | None = None) -> list[Entry]:
        """Return what the watch should have confirmed by now; the caller reads its pods again and calls `resolve`."""
        return self.ledger.expired(self._clock.monotonic() if now is None else now)

    def resolve(self, task: TaskRef, pod: Pod | None) -> None:
        """Take a pod as it was read again (None: there is none of this name) as the truth about its request.

        An assumption that has ended meanwhile is beyond it: the watch has told better, and what is gone stays gone.
        """
        if self.ledger.get(task.uid) is None:
            return
        if pod is None or pod.metadata.uid != task.uid:
            self._pods.remove(task.uid)
        else:
            self._pods.apply(pod)
            if self.ledger.forget(task.uid) is not None:
                log.debug(f"{self.what} did not happen", task=str(task), uid=task.uid)
                self._take_back(task.uid)
        self._state.notify()
