"""Levelling between queues: what a queue that has less may take from one that has more, beyond what others lend it.

A queue that holds no more than it deserves is no lender, and still it may have to give: where pods of other schedulers,
closed nodes or whole gangs take room that no queue can use, the deserved parts add up to more than there is, and a
newcomer would wait for ever. With the share of a queue as the list of held / due over all resources but pods, largest
first, a task of queue L may go for queue T

    if L has at least T's share when the plan is carried out, the shares compared like words in a dictionary, or
    if T held nothing before the plan, as long as L keeps something

A plan is a job's whole minimum, or one task beyond it. So shares may be levelled and never inverted: of two queues that
a plan moves the lower one always ends higher than before, and takings come to an end.
"""

from collections.abc import Callable

import numpy as np

from volcano_py.framework.contract.extension_points import Preemptor
from volcano_py.framework.contract.victim_candidates import VictimCandidates
from volcano_py.model.arrays import Bools, Codes, Floats, Rows
from volcano_py.model.resources import EPSILON, PODS_ROW


def share_lists(held: Floats, due: Floats) -> Floats:
    """Return the shares of queues, largest first, shape (n_resources, n); ``held`` and ``due`` are of that shape.

    What is not due (0) and pods do not count.
    """
    parts = np.divide(held, due, out=np.zeros_like(held), where=due > 0)
    parts[PODS_ROW] = 0.0
    return np.asarray(-np.sort(-parts, axis=0))


def not_below(left: Floats, right: Floats) -> Bools:
    """Return whether shares are not below others, each (n_resources, n): the first difference decides. Shape (n,)."""
    differences = left - right
    first = (differences != 0).argmax(axis=0)
    return np.asarray(differences[first, np.arange(differences.shape[1])] >= 0)


def nothing(held: Floats) -> Bools:
    """Return which queues hold nothing but perhaps places for pods, of amounts (n_resources, n); shape (n,)."""
    holds = held >= EPSILON
    holds[PODS_ROW] = False
    return np.asarray(~holds.any(axis=0))


def may_level(left: Floats, left_due: Floats, before: Floats, after: Floats, due: Floats) -> Bools:
    """Return whether a task may go by levelling, shape (n,); everything is (n_resources, n), a column per task.

    ``left`` is what its queue has without it, ``before`` and ``after`` what the other queue has without and with the
    plan.
    """
    level = not_below(share_lists(left, left_due), share_lists(after, due))
    return np.asarray(level | (nothing(before) & ~nothing(left)))


def given_and_gains(preemptor: Preemptor, n_resources: int) -> tuple[Floats, Floats]:
    """Return what the plan of a claim has given so far and what it gives at the most, each (n_resources,).

    A claim for a job as a whole that does not say so gains nothing.
    """
    nothing_yet = np.zeros(n_resources)
    gains = preemptor.gains
    if gains is None:
        gains = nothing_yet if preemptor.task is None else preemptor.task.request
    return nothing_yet if preemptor.given is None else preemptor.given, gains


def compared(keys: Floats, left: int, right: int) -> float:
    """Return a negative number if a column of keys (n_keys, n) comes before another one, a positive one if after."""
    one, other = keys[:, left].tolist(), keys[:, right].tolist()
    return float(one > other) - float(one < other)


Agrees = Callable[[Bools], Bools]
"""Takes who of all candidates goes (n,) and returns who of them may go if whoever stands before goes as well, (n,)."""


def who_may_go(candidates: VictimCandidates, shapes: Codes, apart: Rows, agrees: Agrees) -> Bools:
    """Return who may go if candidates are asked in order and only those that go count for those behind; shape (n,).

    ``apart`` numbers candidates (n,): whether one may go depends on no candidate of another number or group. With more
    gone before it nobody is let go who was not let go with less. Those that go together are asked as one.
    """
    going = np.ones(len(candidates), dtype=bool)
    failing = np.flatnonzero(~agrees(going))
    if not len(failing):
        return going
    segments = numbered(candidates.groups, apart)
    heads = candidates.first_of_unit
    kinds = numbered(segments, candidates.queues, _like_units(heads, shapes))
    # Each step settles, in every segment, the first who may not go and all behind it that are alike, with their units.
    while len(failing):
        _, first = np.unique(segments[failing], return_index=True)
        settled = heads[failing[first]]
        since = np.full(len(candidates), len(candidates))
        since[kinds[settled]] = settled
        going[heads >= since[kinds]] = False
        failing = np.flatnonzero(going & ~agrees(going))
    return going


def _like_units(heads: Rows, shapes: Codes) -> Rows:
    """Return the same number for the members of units that hold as many tasks of each shape; shape (n,).

    ``heads`` are the places of the first of each candidate's unit.
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
    """Return the same number below n for those that are equal in every column (n,), shape (n,)."""
    numbers = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        low = int(column.min())
        numbers = np.unique(numbers * (int(column.max()) - low + 1) + (column - low), return_inverse=True)[1]
    return numbers.reshape(-1)
