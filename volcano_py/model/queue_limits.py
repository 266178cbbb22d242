"""Limits and shares of queues, for all plugins that divide the cluster between queues.

Amounts are arrays in row order of the session's resources; queues are columns. See `framework.state.queue_accounts`.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import Final

import numpy as np

from volcano_py.model.arrays import Bools, Floats
from volcano_py.model.objects import QueueRecord
from volcano_py.model.rejections import Reason
from volcano_py.model.resource_lists import ResourceList
from volcano_py.model.resources import CPU_ROW, EPSILON, MEMORY_ROW, ResourceRegistry, format_amount

# The source of a limit of 0 that no queue sets.
NO_NODE_HAS_ANY: Final = "in the cluster (no node has any)"


def capability(record: QueueRecord, resources: ResourceRegistry) -> Floats:
    """Return the capability of a queue, shape (n_resources,), infinite where it sets no limit.

    For cpu and memory, 0 means no limit (Volcano). Any other resource is unlimited only if it is not named.
    """
    limit = record.capability.vector(resources, missing=np.inf)
    for row in (CPU_ROW, MEMORY_ROW):
        if limit[row] <= 0:
            limit[row] = np.inf
    return limit


def share(taken: Sequence[float], deserved: Sequence[float]) -> float:
    """Return the largest ratio of taken to deserved over the resources of which something is deserved."""
    return max((held / due for held, due in zip(taken, deserved, strict=True) if due >= EPSILON), default=0.0)


def divisors(deserved: Floats) -> Floats:
    """Return what `shares` divides by, shape (n_resources, n_queues): infinite for what is not deserved."""
    return np.where(deserved >= EPSILON, deserved, inf)


def shares(taken: Floats, divisor: Floats) -> Floats:
    """Return the `share` of every queue, shape (n_queues,), of columns (n_resources, n_queues)."""
    found: Floats = np.maximum.reduce(taken / divisor, axis=0, initial=0.0)
    return found


def not_open(plugin: str, record: QueueRecord) -> Reason:
    """Return the reason why a queue that is not open takes no pods."""
    text = f'queue "{record.name}" is {record.state}, not Open: it takes no new pods'
    return Reason(plugin, "queue-not-open", text)


def over_limit(
    plugin: str,
    queue: str,
    resources: ResourceRegistry,
    asked: Floats,
    held: Floats,
    limits: Mapping[int, tuple[float, str]],
    promised: Floats | None = None,
) -> Reason:
    """Return the reason why a queue may not hold more, with the amounts of each resource above its limit.

    ``limits`` gives the limit and its source for each such row; ``asked`` and ``held`` are (n_resources,). So is
    ``promised``: what of ``held`` is only promised, to nominated pods.

    ``queue "small" may not hold more: 3 cpu asked, 1 held, 2 allowed (its capability)``
    """
    parts = []
    for row, (limit, source) in limits.items():
        name = resources.names[row]
        coming = 0.0 if promised is None else float(promised[row])
        amounts = [format_amount(name, float(amount)) for amount in (asked[row], held[row] - coming, limit)]
        more = f"{format_amount(name, coming)} promised to nominated pods, " if coming >= EPSILON else ""
        parts.append(f"{amounts[0]} {name} asked, {amounts[1]} held, {more}{amounts[2]} {source}")
    return Reason(plugin, "queue-limit", f'queue "{queue}" may not hold more: {"; ".join(parts)}')


def room_for(taken: Sequence[float], asked: Iterable[tuple[int, float]], limit: Sequence[float], wanted: int) -> int:
    """Return how many requests, at most ``wanted``, can be added to ``taken`` one by one without passing a limit.

    ``asked`` lists the row and amount of each resource that counts. A sum equal to its limit is allowed.
    """
    for row, amount in asked:
        held, most = taken[row], limit[row]
        if held + wanted * amount <= most:
            continue
        # The division may be off by one; the exact comparison corrects that.
        count = min(wanted, int((most - held) // amount))
        while count < wanted and held + (count + 1) * amount <= most:
            count += 1
        while count > 0 and held + count * amount > most:
            count -= 1
        wanted = max(0, count)
    return wanted


def without_room(taken: Floats, asked: Iterable[tuple[int, float]], limit: Floats) -> Bools:
    """Return the queues for which `room_for` says 0 for one request, shape (n_queues,), of columns by queue."""
    full = np.zeros(taken.shape[1], dtype=bool)
    for row, amount in asked:
        full |= taken[row] + amount > limit[row]
    return full


def real_capability(total: Floats, guarantee: Floats, capability: Floats) -> Floats:
    """Return the ceiling of each queue, shape (n_resources, n_queues).

    The ceiling is what the guarantees of all other queues leave of the total (n_resources,), but at most the queue's
    own capability (infinite where there is no limit).
    """
    free = np.maximum(total - guarantee.sum(axis=1), 0.0)
    return np.asarray(np.minimum(free[:, None] + guarantee, capability))


def columns(lists: Sequence[ResourceList], resources: ResourceRegistry, missing: float = 0.0) -> Floats:
    """Return one column per list, as `ResourceList.vector`, shape (n_resources, n_lists)."""
    found = np.full((len(resources), len(lists)), missing)
    found[CPU_ROW] = [one.cpu for one in lists]
    found[MEMORY_ROW] = [one.memory for one in lists]
    # A Python loop over lists: few of them name other resources.
    for column, one in enumerate(lists):
        for name, amount in one.scalars.items():
            if (row := resources.find(name)) is not None:
                found[row, column] = amount
    return found


def capabilities(records: Sequence[QueueRecord], resources: ResourceRegistry) -> Floats:
    """Return the `capability` of every queue, shape (n_resources, n_queues)."""
    found = columns([record.capability for record in records], resources, missing=np.inf)
    plain = found[[CPU_ROW, MEMORY_ROW]]
    found[[CPU_ROW, MEMORY_ROW]] = np.where(plain <= 0, np.inf, plain)
    return found
