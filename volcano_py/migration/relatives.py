"""The queues of a cluster as the rules of the webhooks see them."""

from collections.abc import Iterable, Mapping
from typing import Final

from volcano_py.admission.contract import View
from volcano_py.admission.views import allocated_pods, parent_of
from volcano_py.migration.findings import Obj, mapping, text


class Queues(View):
    """A fixed set of queues."""

    def __init__(self, queues: Iterable[Obj]) -> None:
        self.by_name: Mapping[str, Obj] = {text(one, "metadata", "name"): _readable(one) for one in queues}
        self._children: dict[str, list[Obj]] = {}
        for _, queue in sorted(self.by_name.items()):
            self._children.setdefault(parent_of(queue), []).append(queue)

    def queue(self, name: str) -> Obj | None:
        """Return the queue of this name, None if there is none."""
        return self.by_name.get(name)

    def queues(self) -> Iterable[Obj]:
        """Return all queues."""
        return self.by_name.values()

    def children(self, name: str) -> Iterable[Obj]:
        """Return the queues whose parent this queue is."""
        return self._children.get(name, ())

    def namespace_annotations(self, name: str) -> Mapping[str, str]:
        """Return nothing: no rule about queues asks for namespaces."""
        return {}

    def allocated_pods(self, queue: str) -> int:
        """Return the pods that a queue holds."""
        return allocated_pods(self.by_name.get(queue))


def _readable(queue: Obj) -> Obj:
    """Return a queue whose parts are mappings: without its schema, an API server takes anything."""
    return {**queue, **{part: mapping(queue, part) for part in ("spec", "status") if part in queue}}


NO_OBJECTS: Final = Queues(())
