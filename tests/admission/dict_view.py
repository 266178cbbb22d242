"""A view of other objects that plain lists back."""

from collections.abc import Iterable, Mapping
from typing import Any

from volcano_py.admission.amounts import amount

Obj = Mapping[str, Any]


class DictView:
    """Queues as JSON, and the annotations of namespaces."""

    def __init__(self, queues: Iterable[Obj] = (), namespaces: Mapping[str, Mapping[str, str]] | None = None) -> None:
        self._queues = {queue["metadata"]["name"]: queue for queue in queues}
        self._namespaces = namespaces or {}

    def queue(self, name: str) -> Obj | None:
        return self._queues.get(name)

    def queues(self) -> Iterable[Obj]:
        return list(self._queues.values())

    def children(self, name: str) -> Iterable[Obj]:
        return [queue for queue in self._queues.values() if queue.get("spec", {}).get("parent") == name]

    def namespace_annotations(self, name: str) -> Mapping[str, str]:
        return self._namespaces.get(name, {})

    def allocated_pods(self, queue: str) -> int:
        allocated = self._queues.get(queue, {}).get("status", {}).get("allocated", {})
        return int(amount(allocated.get("pods", 0)) or 0)
