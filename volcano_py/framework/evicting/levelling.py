"""Levelling between queues: when a queue with a lower share may reclaim from one that holds no more than it deserves.

Sometimes such a queue must give up tasks. Pods of other schedulers, closed nodes or whole gangs take room that no queue
can use. Then the deserved amounts add up to more than there is, and a new queue would wait for ever. The share of a
queue is the list of held / deserved over all resources but pods, largest first. A task of queue L may be evicted for
queue T

    if L has at least the share of T once the plan is carried out; shares compare like words in a dictionary, or
    if T held nothing before the plan, and L keeps something

A plan is the whole minimum of a job, or one task beyond it. So shares may be levelled but never inverted: of two queues
that a plan changes, the lower one always ends higher than before, and reclaim always terminates.
"""

from collections.abc import Callable

import numpy as np

from volcano_py.framework.contract.extension_points import Preemptor
from volcano_py.framework.contract.victim_candidates import VictimCandidates
from volcano_py.model.arrays import Bools, Codes, Floats, Rows
from volcano_py.model.resources import EPSILON, PODS_ROW


def share_lists(held: Floats, due: Floats) -> Floats:
    """Return the shares of queues, largest first, shape (n_resources, n); ``held`` and ``due`` are of that shape.

    ``due`` is what queues deserve. Resources with a ``due`` of 0 and pods do not count.
    """
    parts = np.divide(held, due, out=np.zeros_like(held), where=due > 0)
    parts[PODS_ROW] = 0.0
    return np.asarray(-np.sort(-parts, axis=0))


def not_below(left: Floats, right: Floats) -> Bools:
    """Return whether left shares are not below right ones, each (n_resources, n); the first difference decides. (n,)"""
    differences = left - right
    first = (differences != 0).argmax(axis=0)
    return np.asarray(differences[first, np.arange(differences.shape[1])] >= 0)


def nothing(held: Floats) -> Bools:
    """Return which queues hold nothing except pods (the resource), from amounts (n_resources, n); shape (n,)."""
    holds = held >= EPSILON
    holds[PODS_ROW] = False
    return np.asarray(~holds.any(axis=0))


def may_level(left: Floats, left_due: Floats, before: Floats, after: Floats, due: Floats) -> Bools:
    """Return whether a task may be evicted by levelling, shape (n,); all arguments are (n_resources, n), by task.

    ``left`` is what its queue holds without it. ``before`` and ``after`` are what the queue of the preemptor holds
    without and with the plan.
    """
    level = not_below(share_lists(left, left_due), share_lists(after, due))
    return np.asarray(level | (nothing(before) & ~nothing(left)))


def given_and_gains(preemptor: Preemptor, n_resources: int) -> tuple[Floats, Floats]:
    """Return what the plan of a preemptor has given so far and what it gives at the most, each (n_resources,).

    A preemptor without a task and without ``gains`` gains nothing.
    """
    nothing_yet = np.zeros(n_resources)
    gains = preemptor.gains
    if gains is None:
        gains = nothing_yet if preemptor.task is None else preemptor.task.request
    return nothing_yet if preemptor.given is None else preemptor.given, gains


def compared(keys: Floats, left: int, right: int) -> float:
    """Return a negative number if the left column of keys (n_keys, n) comes first, a positive one if the right does."""
    one, other = keys[:, left].tolist(), keys[:, right].tolist()
    return float(one > other) - float(one < other)


Agrees = Callable[[Bools], Bools]
"""Takes which candidates are evicted (n,); returns which may be, given that those before each are evicted, (n,)."""


def who_may_go(candidates: VictimCandidates, shapes: Codes, apart: Rows, agrees: Agrees) -> Bools:
    """Return which candidates may be evicted if they are asked in order and only evicted ones count, shape (n,).

    ``apart`` numbers candidates (n,): an answer depends on no candidate of another number or group. More evictions
    before a candidate must never make ``agrees`` allow one that it refused before. A unit is asked about as one.
    """
    going = np.ones(len(candidates), dtype=bool)
    failing = np.flatnonzero(~agrees(going))
    if not len(failing):
        return going
    segments = numbered(candidates.groups, apart)
    heads = candidates.first_of_unit
    classes = numbered(segments, candidates.queues, _like_units(heads, shapes))
    # Each step settles, in every segment, the first refused candidate and all equal ones behind it, with their units.
    while len(failing):
        _, first = np.unique(segments[failing], return_index=True)
        settled = heads[failing[first]]
        since = np.full(len(candidates), len(candidates))
        since[classes[settled]] = settled
        going[heads >= since[classes]] = False
        failing = np.flatnonzero(going & ~agrees(going))
    return going


def _like_units(heads: Rows, shapes: Codes) -> Rows:
    """Return a number per candidate, equal for members of units with the same number of tasks of each shape, (n,).

    ``heads`` are, by candidate, the places of the first member of its unit.
    """
    if (np.bincount(heads, minlength=len(heads))[heads] == 1).all():
        return shapes.astype(np.intp)
    order = np.lexsort((shapes, heads))
    bounds = np.flatnonzero(np.diff(heads[order])) + 1
    numbers: dict[bytes, int] = {}
    found = np.zeros(len(heads), dtype=np.intp)
    # A Python loop over the units, each a gang as a whole.
    for places in np.split(order, bounds):
        found[places] = numbers.setdefault(shapes[places].tobytes(), len(numbers))
    return found


def numbered(*columns: Rows | Codes) -> Rows:
    """Return a number below n per row, equal for rows that are equal in every column (n,), shape (n,)."""
    numbers = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        low = int(column.min())
        numbers = np.unique(numbers * (int(column.max()) - low + 1) + (column - low), return_inverse=True)[1]
    return numbers.reshape(-1)
