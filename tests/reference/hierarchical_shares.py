"""Hierarchical dominant resource fairness, node by node, computed from scratch for every question."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Amounts = Mapping[str, float]
NOTHING = 0.1


@dataclass
class Job:
    """A leaf: its total request and its allocation."""

    asked: Amounts
    held: dict[str, float]


@dataclass
class Node:
    """An inner node; ``jobs`` hang directly below it."""

    weight: float = 1.0
    below: dict[str, "Node"] = field(default_factory=dict)
    jobs: list[Job] = field(default_factory=list)


@dataclass
class Standing:
    share: float
    saturated: bool
    held: dict[str, float]


def tree(ways: Mapping[str, Sequence[tuple[str, float]]], jobs: Mapping[str, Sequence[Job]]) -> Node:
    """Build the tree of queues, by name; the first queue that names a node sets its weight."""
    root = Node()
    for name in sorted(ways):
        node = root
        for step, weight in ways[name]:
            node = node.below.setdefault(step, Node(weight))
        node.jobs.extend(jobs.get(name, ()))
    return root


def compare(root: Node, left: Sequence[str], right: Sequence[str], total: Amounts) -> int:
    """Return -1 if the queue at the end of the left path goes first, 1 if the right one does, 0 if they are equal."""
    used = _used(root, total)
    one, other = root, root
    for step in range(min(len(left), len(right)) + 1):
        if step:
            one, other = one.below[left[step - 1]], other.below[right[step - 1]]
        mine, theirs = standing(one, total, used), standing(other, total, used)
        if mine.saturated != theirs.saturated:
            return 1 if mine.saturated else -1
        first, second = mine.share / one.weight, theirs.share / other.weight
        if first != second:
            return -1 if first < second else 1
    return 0


def standing(node: Node, total: Amounts, used: Amounts) -> Standing:
    """Return the share of an inner node."""
    children = [_leaf(job, total, used) for job in node.jobs]
    children += [standing(below, total, used) for below in node.below.values()]
    growing = [child.share for child in children if child.share and not child.saturated]
    least = min([1.0, *growing])
    held = dict.fromkeys(total, 0.0)
    for child in children:
        for resource in total if child.share else ():
            held[resource] += child.held[resource] * (1.0 if child.saturated else least / child.share)
    return Standing(_share(held, total), all(child.saturated for child in children), held)


def _leaf(job: Job, total: Amounts, used: Amounts) -> Standing:
    saturated = any(
        job.held[resource] >= NOTHING
        and job.asked.get(resource, 0.0) != 0
        and (job.held[resource] >= job.asked[resource] or used[resource] >= total[resource])
        for resource in total
    )
    return Standing(_share(job.held, total), saturated, job.held)


def _share(held: Amounts, total: Amounts) -> float:
    return max((held[resource] / amount for resource, amount in total.items()), default=0.0)


def _used(node: Node, total: Amounts) -> dict[str, float]:
    used = {resource: sum(job.held[resource] for job in node.jobs) for resource in total}
    for below in node.below.values():
        for resource, amount in _used(below, total).items():
            used[resource] += amount
    return used
