"""Says in plain words what changes in the cluster; these remarks make up most of a story."""

from typing import Any, Final

from tests.simulation import objects
from tests.simulation.history import History
from tests.simulation.servers import ASKED
from volcano_py.apiserver.store import Collection, Event

TOLD: Final = "change"
"""The kind of these remarks."""
_TOLD_CONDITIONS: Final = ("PodScheduled", "Unschedulable")
_SHORT: Final = {
    objects.PODS: "pod",
    objects.NODES: "node",
    objects.GROUPS: "PodGroup",
    objects.JOBS: "job",
    objects.QUEUES: "queue",
    objects.LEASES: "lease",
    objects.COMMANDS: "command",
    objects.CLAIMS: "claim",
}


class Narrator:
    """Listens to the true state of the cluster, and remarks what matters for a story."""

    def __init__(self, history: History) -> None:
        self._history = history

    def changed(self, collection: Collection, event: Event) -> None:
        """Remark a change."""
        kind = _SHORT.get(collection.name)
        if kind is None:
            return
        said = _said(collection.name, event)
        if said:
            asked = ASKED.get()
            who = "the cluster" if asked is None else asked.client.name
            name = event.stored.key.removeprefix(f"{objects.NAMESPACE}/")
            self._history.remark(TOLD, f"{kind} {name}: {'; '.join(said)} ({who})")


def _said(resource: str, event: Event) -> list[str]:
    new = event.stored.obj
    if event.type == "DELETED":
        return ["is deleted"]
    old = event.prev.obj if event.prev is not None else {}
    if resource == objects.LEASES:
        return _of_lease(old, new)
    found = [] if old else ["is created"]
    if resource == objects.COMMANDS and not old:
        found = [f"is created: {new['action']} {new['target']['kind'].lower()} {new['target']['name']}"]
    if not old.get("metadata", {}).get("deletionTimestamp") and new["metadata"].get("deletionTimestamp"):
        found.append("is being deleted")
    for path, text in (
        (("spec", "nodeName"), "gets node {}"),
        (("spec", "unschedulable"), "unschedulable is {} now"),
        (("status", "phase"), "phase is {} now"),
        (("status", "state", "phase"), "phase is {} now"),
        (("status", "state"), "state is {} now"),
    ):
        before, after = _at(old, path), _at(new, path)
        if after is not None and after != before and not isinstance(after, dict):
            found.append(text.format(after))
    return [*found, *_of_conditions(old, new)]


def _of_lease(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    holder = _at(new, ("spec", "holderIdentity"))
    if holder == _at(old, ("spec", "holderIdentity")):
        return []
    return [f"is held by {holder} now" if holder else "is given up"]


def _of_conditions(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    before = {each.get("type"): each.get("status") for each in _at(old, ("status", "conditions")) or ()}
    return [
        f"condition {each['type']} is {each.get('status')}{_reason(each)}"
        for each in _at(new, ("status", "conditions")) or ()
        if each.get("type") in _TOLD_CONDITIONS and each.get("status") != before.get(each["type"])
    ]


def _reason(condition: dict[str, Any]) -> str:
    return f" ({condition['reason']})" if condition.get("reason") else ""


def _at(obj: Any, path: tuple[str, ...]) -> Any:
    for part in path:
        obj = obj.get(part) if isinstance(obj, dict) else None
    return obj
