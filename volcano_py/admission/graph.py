"""Order by dependency: of the tasks of a job, and of the flows of a job flow."""

from collections.abc import Collection, Mapping


def unknown_targets(graph: Mapping[str, Collection[str]]) -> list[str]:
    """Return the names that others depend on and that are not there."""
    return sorted({target for targets in graph.values() for target in targets} - graph.keys())


def in_order(graph: Mapping[str, Collection[str]]) -> list[str] | None:
    """Return the names so that each comes after those it depends on; None if there is no such order.

    Names that could change places keep the order in which they are written.
    """
    missing = {name: set(targets) for name, targets in graph.items()}
    waiting: dict[str, list[str]] = {}
    for name, targets in missing.items():
        for target in targets:
            waiting.setdefault(target, []).append(name)
    ready = [name for name, targets in missing.items() if not targets]
    order = []
    for name in ready:  # grows while it is read
        order.append(name)
        for other in waiting.get(name, ()):
            missing[other].discard(name)
            if not missing[other]:
                ready.append(other)
    return order if len(order) == len(missing) else None
