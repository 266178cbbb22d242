"""The other objects that verdicts rest on, as the watches show them, and the same objects as live reads found them."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from volcano_py.admission.contract import Obj, View
from volcano_py.api.meta import ObjectMeta, Wire
from volcano_py.api.quantity import parse_quantity
from volcano_py.kube.delivery import Event, EventType, Quarantined

_PODS: Final = "pods"


class QueueObject(Wire, frozen=True):
    """A queue: metadata is typed, the rest is as it stands on the API server."""

    metadata: ObjectMeta
    spec: dict[str, Any] | None = None
    status: dict[str, Any] | None = None


class NamespaceObject(Wire, frozen=True):
    """A namespace."""

    metadata: ObjectMeta


class Key(NamedTuple):
    """One thing that a rule may read."""

    kind: str
    name: str = ""


QUEUE: Final = "queue"
QUEUES: Final = "queues"
CHILDREN: Final = "children"
NAMESPACE: Final = "namespace"
ALL_QUEUES: Final = Key(QUEUES)


def queue_as_json(queue: QueueObject) -> Obj:
    """Return a queue as rules read it; its version is left out, so that equal queues are equal."""
    meta = queue.metadata
    metadata = {"name": meta.name, "uid": meta.uid, "labels": meta.labels, "annotations": meta.annotations}
    return {"metadata": metadata, "spec": queue.spec or {}, "status": queue.status or {}}


def parent_of(queue: Obj) -> str:
    """Return the parent that a queue names, "" for none."""
    parent = queue["spec"].get("parent")
    return parent if isinstance(parent, str) else ""


def allocated_pods(queue: Obj | None) -> int:
    """Return the pods that a queue's status counts."""
    allocated = (queue or {}).get("status", {}).get("allocated")
    text = allocated.get(_PODS) if isinstance(allocated, Mapping) else None
    return 0 if text is None else int(parse_quantity(text))


class QueueView:
    """The queues as the watch shows them, by name and by parent."""

    def __init__(self) -> None:
        self.by_name: dict[str, Obj] = {}
        self._children: dict[str, set[str]] = {}

    def children(self, name: str) -> list[Obj]:
        """Return the queues of a parent, in order of name."""
        return [self.by_name[child] for child in sorted(self._children.get(name, ()))]

    def on_events(self, events: list[Event[QueueObject]]) -> None:
        """Apply changes in order."""
        for event in events:
            self._drop(event.key)
            if event.type is not EventType.DELETED and event.object is not None:
                queue = queue_as_json(event.object)
                self.by_name[event.key] = queue
                if parent := parent_of(queue):
                    self._children.setdefault(parent, set()).add(event.key)

    def on_quarantine(self, entry: Quarantined) -> None:
        """Keep the last readable state; live reads decide."""

    def on_release(self, entry: Quarantined) -> None:
        """Do nothing: the event of the object follows."""

    def _drop(self, name: str) -> None:
        before = self.by_name.pop(name, None)
        if before is not None and (parent := parent_of(before)):
            self._children[parent].discard(name)
            if not self._children[parent]:
                del self._children[parent]


class NamespaceView:
    """The annotations of namespaces as the watch shows them."""

    def __init__(self) -> None:
        self.annotations: dict[str, Mapping[str, str]] = {}

    def on_events(self, events: list[Event[NamespaceObject]]) -> None:
        """Apply changes in order."""
        for event in events:
            self.annotations.pop(event.key, None)
            if event.type is not EventType.DELETED and event.object is not None and event.object.metadata.annotations:
                self.annotations[event.key] = event.object.metadata.annotations

    def on_quarantine(self, entry: Quarantined) -> None:
        """Keep the last readable state; live reads decide."""

    def on_release(self, entry: Quarantined) -> None:
        """Do nothing: the event of the object follows."""


class WatchedView(View):
    """What the watches show. It notes what is read, so that the same can be read live."""

    def __init__(self, queues: QueueView, namespaces: NamespaceView) -> None:
        self._queues, self._namespaces = queues, namespaces
        self.noted: dict[Key, Any] = {}
        """Each thing that was read, with what was found."""

    def queue(self, name: str) -> Obj | None:
        """Return the queue of this name."""
        found = self._queues.by_name.get(name)
        self.noted[Key(QUEUE, name)] = found
        return found

    def queues(self) -> Iterable[Obj]:
        """Return all queues, in order of name."""
        found = dict(self._queues.by_name)
        self.noted[ALL_QUEUES] = found
        return [found[name] for name in sorted(found)]

    def children(self, name: str) -> Iterable[Obj]:
        """Return the queues whose parent this queue is."""
        found = self._queues.children(name)
        self.noted[Key(CHILDREN, name)] = found
        return found

    def namespace_annotations(self, name: str) -> Mapping[str, str]:
        """Return the annotations of a namespace."""
        found = self._namespaces.annotations.get(name, {})
        self.noted[Key(NAMESPACE, name)] = found
        return found

    def allocated_pods(self, queue: str) -> int:
        """Return the pods that a queue holds."""
        return allocated_pods(self.queue(queue))


class NotRead(Exception):
    """A rule asks for something that was not read live yet."""

    def __init__(self, key: Key) -> None:
        self.key = key
        super().__init__(f"{key.kind} {key.name}".rstrip())


class LiveView(View):
    """What live reads found; it raises NotRead for anything else. ``queues()`` answers for every single queue, too."""

    def __init__(self) -> None:
        self.found: dict[Key, Any] = {}

    def has(self, key: Key) -> bool:
        """Say whether something was read."""
        return key in self.found or (key.kind in (QUEUE, CHILDREN) and ALL_QUEUES in self.found)

    def value(self, key: Key) -> Any:
        """Return what was found; raise NotRead if it was not read."""
        if key.kind == QUEUE and ALL_QUEUES in self.found:
            return self.found[ALL_QUEUES].get(key.name)
        if key.kind == CHILDREN and ALL_QUEUES in self.found:
            return [queue for queue in self.queues() if parent_of(queue) == key.name]
        if key not in self.found:
            raise NotRead(key)
        return self.found[key]

    def queue(self, name: str) -> Obj | None:
        """Return the queue of this name."""
        found: Obj | None = self.value(Key(QUEUE, name))
        return found

    def queues(self) -> Iterable[Obj]:
        """Return all queues, in order of name."""
        found: Mapping[str, Obj] = self.value(ALL_QUEUES)
        return [found[name] for name in sorted(found)]

    def children(self, name: str) -> Iterable[Obj]:
        """Return the queues whose parent this queue is."""
        found: list[Obj] = self.value(Key(CHILDREN, name))
        return found

    def namespace_annotations(self, name: str) -> Mapping[str, str]:
        """Return the annotations of a namespace."""
        found: Mapping[str, str] = self.value(Key(NAMESPACE, name))
        return found

    def allocated_pods(self, queue: str) -> int:
        """Return the pods that a queue holds."""
        return allocated_pods(self.queue(queue))
