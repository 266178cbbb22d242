"""Node events. A node is closed, so that it takes no more pods, if it or a pod on it cannot be used or read."""

from dataclasses import replace

from volcano_py.api.core import Node
from volcano_py.cache.changes import Change
from volcano_py.cache.nodes import NO_ALLOCATABLE, answers_changed, could_take_more, node_record
from volcano_py.cache.state import ClusterState
from volcano_py.cache.unreadable_objects import Unreadable, UnreadableObjects
from volcano_py.kube.delivery import Event, EventType, Quarantined
from volcano_py.model.objects import NodeRecord


class NodeEvents:
    """Keeps the store's nodes equal to the API server's."""

    def __init__(self, state: ClusterState, unreadable: UnreadableObjects) -> None:
        self._state = state
        self._unreadable = unreadable
        self._own_reasons: dict[str, str] = {}  # node -> why the node itself is closed
        self._closed_by: dict[str, dict[str, str]] = {}  # node -> uid of a pod on it -> why that pod closes it
        self._closes: dict[str, str] = {}  # uid of a pod -> the node it closes

    def on_events(self, events: list[Event[Node]]) -> None:
        """Apply changes in order."""
        for event in events:
            if event.type is EventType.DELETED or event.object is None:
                self._remove(event.name, event.uid)
            else:
                self._apply(event.object)
        self._state.notify()

    def on_quarantine(self, entry: Quarantined) -> None:
        """Leave out a node that does not fit its type."""
        self._leave_out(Unreadable("Node", "", entry.name, entry.uid, entry.message))
        self._state.notify()

    def on_release(self, entry: Quarantined) -> None:
        """Forget why a node was left out; its event follows, unless it is gone."""
        self._unreadable.discard("Node", entry.uid)

    def close(self, name: str, uid: str, reason: str) -> None:
        """Close a node because of a pod on it."""
        if self._closes.get(uid, name) != name:
            self.reopen(uid)
        self._closes[uid] = name
        self._closed_by.setdefault(name, {})[uid] = reason
        self._refresh(name)

    def reopen(self, uid: str) -> None:
        """Remove a pod from the reasons why its node is closed."""
        name = self._closes.pop(uid, None)
        if name is not None:
            reasons = self._closed_by[name]
            del reasons[uid]
            if not reasons:
                del self._closed_by[name]
            self._refresh(name)

    def _apply(self, node: Node) -> None:
        name, uid = node.metadata.name, node.metadata.uid
        try:
            record = node_record(node)
        except ValueError as error:
            self._leave_out(Unreadable("Node", "", name, uid, f"node {name} cannot be read: {error}"))
            return
        if record.closed == NO_ALLOCATABLE:
            problem = (
                f"node {name}: {NO_ALLOCATABLE}, so nothing is placed there: start its kubelet, or delete the node"
            )
            self._unreadable.add(Unreadable("Node", "", name, uid, problem))
        else:
            self._unreadable.discard("Node", uid)
        if record.closed:
            self._own_reasons[name] = record.closed
        else:
            self._own_reasons.pop(name, None)
        self._put(record)

    def _leave_out(self, entry: Unreadable) -> None:
        self._unreadable.add(entry)
        self._drop(entry.name)

    def _remove(self, name: str, uid: str) -> None:
        self._unreadable.discard("Node", uid)
        self._drop(name)

    def _drop(self, name: str) -> None:
        self._own_reasons.pop(name, None)
        if self._state.store.nodes.record(name) is not None:
            self._state.store.remove_node(name)
            self._state.touch_node(name, present=False)
            self._state.note(Change.NODE_WORSE)

    def _refresh(self, name: str) -> None:
        record = self._state.store.nodes.record(name)
        if record is not None:
            self._put(record)

    def _put(self, record: NodeRecord) -> None:
        """Store the record of a node, closed if there is a reason; do nothing if it is unchanged."""
        closed = self._own_reasons.get(record.name) or min(self._closed_by.get(record.name, {}).values(), default="")
        if record.closed != closed:
            record = replace(record, closed=closed)
        before = self._state.store.nodes.record(record.name)
        if before == record:
            return
        self._state.store.set_node(record)
        if answers_changed(before, record):
            self._state.touch_node(record.name, present=True)
        self._state.note(Change.NODE if could_take_more(before, record) else Change.NODE_WORSE)
