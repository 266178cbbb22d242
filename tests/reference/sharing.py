"""Shares of queues by weight, in exact fractions, one resource at a time, by the rounds in the users' guide."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

Amounts = Mapping[str, Fraction]

ENOUGH_ROUNDS = 400
NOTHING = Fraction(1, 10**9)


@dataclass
class Queue:
    """A queue and its request; a resource that the capability does not name is unlimited."""

    weight: int
    request: Amounts
    capability: Amounts = field(default_factory=dict)
    guarantee: Amounts = field(default_factory=dict)


def shares(
    total: Amounts, queues: Mapping[str, Queue], others: Sequence[Amounts] = ()
) -> dict[str, dict[str, Fraction]]:
    """Return every queue's deserved share: each round divides the rest, until nothing is left or all are satisfied.

    ``others`` are the guarantees of queues without jobs, which get no share.
    """
    share = {name: {resource: Fraction(0) for resource in total} for name in queues}
    left, unmet = dict(total), set(queues)
    guarantees = [queue.guarantee for queue in queues.values()] + list(others)
    guaranteed = {
        resource: sum((one.get(resource, Fraction(0)) for one in guarantees), Fraction(0)) for resource in total
    }
    for _ in range(ENOUGH_ROUNDS):
        weight = sum(queues[name].weight for name in unmet)
        if not weight or all(amount <= NOTHING for resource, amount in left.items() if resource != "pods"):
            break
        used = {resource: Fraction(0) for resource in total}
        for name in sorted(unmet):
            queue, before = queues[name], share[name]
            after = {}
            for resource in total:
                own = queue.guarantee.get(resource, Fraction(0))
                most = max(total[resource] - guaranteed[resource], Fraction(0)) + own
                if resource in queue.capability:
                    most = min(most, queue.capability[resource])
                dealt = before[resource] + left[resource] * queue.weight / weight
                after[resource] = max(min(dealt, most, queue.request.get(resource, Fraction(0))), own)
                used[resource] += after[resource] - before[resource]
            share[name] = after
            satisfied = all(queue.request.get(resource, Fraction(0)) <= amount for resource, amount in after.items())
            if satisfied or after == before:
                unmet.discard(name)
        rest = {resource: max(left[resource] - used[resource], Fraction(0)) for resource in total}
        # Exact fractions would grow with every round; a billionth of a unit is far below the compared precision.
        left = {resource: Fraction(round(amount * 10**12), 10**12) for resource, amount in rest.items()}
    return share
