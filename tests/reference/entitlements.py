"""Capabilities and deserved shares of queues, one queue and resource at a time, by the rules in the users' guide."""

from collections.abc import Mapping
from dataclasses import dataclass, field

INFINITE = float("inf")
ALWAYS = ("cpu", "memory")
Amounts = Mapping[str, float]


@dataclass(frozen=True)
class Queue:
    """The spec of a queue; a resource is absent from a list if the spec does not name it."""

    name: str
    parent: str = ""
    capability: Amounts = field(default_factory=dict)
    deserved: Amounts = field(default_factory=dict)
    guarantee: Amounts = field(default_factory=dict)

    def limit(self, resource: str) -> float | None:
        """Return the queue's own limit, None if it has none."""
        if resource in ALWAYS and self.capability.get(resource, 0.0) <= 0:
            return None
        return self.capability.get(resource)

    def guaranteed(self, resource: str) -> float:
        limit = self.limit(resource)
        written = self.guarantee.get(resource, 0.0)
        return written if limit is None else min(written, limit)


@dataclass(frozen=True)
class Due:
    ceiling: dict[str, float]
    deserved: dict[str, float]
    guarantee: dict[str, float]


def path(queues: Mapping[str, Queue], name: str) -> list[str] | None:
    """Return the names from a queue up to the root, None if its parents do not lead there."""
    way = [name]
    while way[-1] != "root":
        above = queues[way[-1]].parent or "root"
        if above in way:
            return None
        if above not in queues:
            return way if above == "root" else None
        way.append(above)
    return way


def side_by_side(total: Amounts, queues: Mapping[str, Queue]) -> dict[str, Due]:
    found = {}
    for name, queue in queues.items():
        ceiling, deserved = {}, {}
        for resource, amount in total.items():
            guaranteed = sum(other.guaranteed(resource) for other in queues.values())
            ceiling[resource] = max(amount - guaranteed, 0.0) + queue.guaranteed(resource)
            limit = queue.limit(resource)
            if limit is not None:
                ceiling[resource] = min(ceiling[resource], limit)
            due = queue.deserved.get(resource, 0.0)
            if resource in ALWAYS or amount > guaranteed or resource in queue.guarantee:
                due = min(due, ceiling[resource])
            deserved[resource] = max(due, queue.guaranteed(resource))
        found[name] = Due(ceiling, deserved, {resource: queue.guaranteed(resource) for resource in total})
    return found


def in_a_tree(total: Amounts, queues: Mapping[str, Queue]) -> dict[str, Due]:
    """Return the entitlements of the queues in a tree, without queues that have no place in it."""
    placed = {name: way for name in queues if (way := path(queues, name)) is not None}

    def children(name: str) -> list[str]:
        return [child for child, way in placed.items() if way[1:2] == [name]]

    def limit(name: str, resource: str) -> float:
        own = queues[name].limit(resource)
        if own is not None:
            return own
        if len(placed[name]) > 1:
            return limit(placed[name][1], resource)
        return INFINITE if resource in ALWAYS or total[resource] > 0 else 0.0

    def ceiling(name: str, resource: str) -> float:
        if len(placed[name]) == 1:
            return limit(name, resource)
        above = placed[name][1]
        guaranteed = sum(queues[child].guaranteed(resource) for child in children(above))
        rest = max(ceiling(above, resource) - guaranteed, 0.0) + queues[name].guaranteed(resource)
        return min(rest, limit(name, resource))

    def deserved(name: str, resource: str) -> float:
        if name == "root":
            return sum(deserved(child, resource) for child in children(name))
        return max(queues[name].deserved.get(resource, 0.0), queues[name].guaranteed(resource))

    def guarantee(name: str, resource: str) -> float:
        if name == "root":
            return sum(queues[child].guaranteed(resource) for child in children(name))
        return queues[name].guaranteed(resource)

    return {
        name: Due(
            {resource: ceiling(name, resource) for resource in total},
            {resource: deserved(name, resource) for resource in total},
            {resource: guarantee(name, resource) for resource in total},
        )
        for name in placed
    }


def share(taken: Amounts, deserved: Amounts) -> float:
    due = {resource: amount for resource, amount in deserved.items() if amount >= 0.1}
    if not due.keys() - {"pods"}:
        return 1.0
    return max(taken.get(resource, 0.0) / amount for resource, amount in due.items())
