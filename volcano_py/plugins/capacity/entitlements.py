"""The entitlements of queues: ceiling, deserved amount and guarantee.

Without a hierarchy, with G = the sum of the guarantees of all queues:

    ceiling  = min(max(total - G, 0) + guarantee, capability)
    deserved = max(min(spec.deserved, ceiling), guarantee)

In a tree, from the root down, with G = the sum of the guarantees of all children of the parent:

    capability = spec.capability; resources that it does not name: the parent's capability
    ceiling    = min(max(ceiling of the parent - G, 0) + guarantee, capability)
    deserved   = max(spec.deserved, guarantee)

The root is limited only by its own capability, not by the cluster's total, so a job that requests more than the cluster
has today may wait for new nodes. The root's guarantee and deserved amount are the sums of its children's. For cpu and
memory, 0 means no limit; any other resource is unlimited only if it is not named. (Volcano: capacity's buildQueueAttrs
and checkHierarchicalQueue.)

Differences: if the root's capability names only some resources, the others are not limited; in Volcano they are then 0.
A guarantee above the queue's own capability counts up to the capability, and the queue is reported.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from volcano_py.api.keys import ROOT_QUEUE
from volcano_py.model.arrays import Bools, Floats
from volcano_py.model.objects import QueueRecord
from volcano_py.model.queue_limits import capabilities, columns, real_capability
from volcano_py.model.queue_tree import QueueTree
from volcano_py.model.resource_lists import ResourceList
from volcano_py.model.resources import CPU_ROW, EPSILON, MEMORY_ROW, PODS_ROW, ResourceRegistry


@dataclass(frozen=True, eq=False)
class Entitlements:
    """Amounts by resource and queue, all (n_resources, n_queues)."""

    capability: Floats  # infinite where there is no limit
    ceiling: Floats  # what others' guarantees and ancestors leave of the capability (Volcano: realCapability)
    deserved: Floats
    deserved_named: Bools  # whether spec.deserved or spec.guarantee names it; cpu and memory only if above 0
    guarantee: Floats
    measure: Floats  # deserved; for a parent without a deserved amount the sum over its children
    problems: dict[int, str]  # what is wrong with a queue's amounts, by row


def side_by_side(records: Sequence[QueueRecord], resources: ResourceRegistry, total: Floats) -> Entitlements:
    """Return the entitlements of queues without a hierarchy; ``total`` is (n_resources,)."""
    lists = _Lists(records, resources)
    ceiling = real_capability(total, lists.guarantee, lists.capability)
    # If others' guarantees use up a scalar, the ceiling does not name it and does not limit deserved (Volcano).
    limiting = (total > lists.guarantee.sum(axis=1))[:, None] | lists.guarantee_named
    deserved = np.where(limiting, np.minimum(lists.deserved, ceiling), lists.deserved)
    deserved = np.maximum(deserved, lists.guarantee)
    return lists.entitlements(lists.capability, ceiling, deserved, deserved)


def in_a_tree(
    records: Sequence[QueueRecord], resources: ResourceRegistry, total: Floats, tree: QueueTree
) -> Entitlements:
    """Return the entitlements of queues in a tree; queues set aside are entitled to nothing."""
    lists = _Lists(records, resources)
    deserved = np.maximum(lists.deserved, lists.guarantee)
    there = total > 0
    there[[CPU_ROW, MEMORY_ROW]] = True
    limits = np.where(np.isinf(lists.capability) & ~there[:, None], 0.0, lists.capability)
    ceiling = limits.copy()
    # A Python loop over the few levels of the tree below the top.
    for rows in tree.levels[1:]:
        parents = tree.parents[rows]
        limits[:, rows] = np.where(np.isinf(lists.capability[:, rows]), limits[:, parents], limits[:, rows])
        guaranteed = [np.bincount(parents, weights=row, minlength=len(records)) for row in lists.guarantee[:, rows]]
        rest = np.maximum(ceiling[:, parents] - np.array(guaranteed)[:, parents], 0.0) + lists.guarantee[:, rows]
        ceiling[:, rows] = np.minimum(rest, limits[:, rows])
    root = next((row for row, record in enumerate(records) if record.name == ROOT_QUEUE), None)
    if root is not None:
        children = np.flatnonzero(tree.parents == root)
        for amounts in (lists.guarantee, deserved):
            amounts[:, root] = amounts[:, children].sum(axis=1)
        lists.deserved_named[:, root] = lists.deserved_named[:, children].any(axis=1)
    aside = np.array(sorted(tree.problems), dtype=np.intp)
    for amounts in (limits, ceiling, deserved, lists.guarantee):
        amounts[:, aside] = 0.0
    return lists.entitlements(limits, ceiling, deserved, _measure(deserved, tree))


def _measure(deserved: Floats, tree: QueueTree) -> Floats:
    measure, n = deserved.copy(), deserved.shape[1]
    # A Python loop over the levels of the tree, from the bottom up.
    for rows in tree.levels[:0:-1]:
        parents = tree.parents[rows]
        below = np.array([np.bincount(parents, weights=row, minlength=n) for row in measure[:, rows]])
        above = np.unique(parents)
        measure[:, above] = np.where(deserved[:, above] >= EPSILON, deserved[:, above], below[:, above])
    return measure


class _Lists:
    """The amounts in the queues' specs, as columns."""

    def __init__(self, records: Sequence[QueueRecord], resources: ResourceRegistry) -> None:
        self._records = records
        self.capability = capabilities(records, resources)
        self.deserved = columns([record.deserved for record in records], resources)
        written = columns([record.guarantee for record in records], resources)
        self.guarantee = np.minimum(written, self.capability)
        self.excess = written > self.capability + EPSILON
        self.guarantee_named = _named([record.guarantee for record in records], resources)
        named = _named([record.deserved for record in records], resources)
        self.deserved_named = named | self.guarantee_named
        self._names = resources.names

    def entitlements(self, limits: Floats, ceiling: Floats, deserved: Floats, measure: Floats) -> Entitlements:
        named = self.deserved_named.copy()
        plain = [CPU_ROW, MEMORY_ROW]
        named[plain] = deserved[plain] >= EPSILON
        return Entitlements(limits, ceiling, deserved, named, self.guarantee, measure, self._problems())

    def _problems(self) -> dict[int, str]:
        problems = {}
        # A Python loop over the few queues with a guarantee above their capability.
        for row in np.flatnonzero(self.excess.any(axis=0)).tolist():
            names = ", ".join(self._names[resource] for resource in np.flatnonzero(self.excess[:, row]))
            problems[row] = f"spec.guarantee is above spec.capability in {names}: it counts up to the capability"
        return problems


def _named(lists: Sequence[ResourceList], resources: ResourceRegistry) -> Bools:
    """Say for each resource and list whether it is named, shape (n_resources, n_queues)."""
    return np.array([each.named(resources) for each in lists], dtype=bool).reshape(len(lists), len(resources)).T


def share(taken: Sequence[float], deserved: Sequence[tuple[int, float]]) -> float:
    """Return the largest ratio of taken to deserved; 1 for a queue that deserves nothing besides pods.

    ``deserved`` lists the row and amount of each resource of which the queue deserves any. (Volcano:
    updateQueueAttrShare.)
    """
    if not any(row != PODS_ROW for row, _ in deserved):
        return 1.0
    return max(taken[row] / due for row, due in deserved)
