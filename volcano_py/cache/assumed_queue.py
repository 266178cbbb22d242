"""A queue for gangs by annotations on a cluster without queues."""

from volcano_py.cache.changes import Change
from volcano_py.cache.state import ClusterState
from volcano_py.model.objects import QueueRecord


class AssumedQueue:
    """The default queue, assumed to exist if there are gangs by annotations and no queue at all.

    This happens if the API server does not serve queues. The first real queue ends the assumption.
    """

    def __init__(self, state: ClusterState, name: str) -> None:
        self._state = state
        self._name = name
        self._assumed = False

    def settle(self, needed: bool) -> None:
        """Assume the queue if it is needed and there is no other."""
        store = self._state.store
        if needed and not store.queues:
            store.set_queue(QueueRecord(self._name))
            self._assumed = True
            self._state.note(Change.QUEUE)

    def end(self) -> None:
        """End the assumption."""
        if self._assumed:
            self._assumed = False
            self._state.store.remove_queue(self._name)
