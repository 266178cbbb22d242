"""The division of the cluster between queues, in rounds of water filling.

Every queue starts at 0. Each round divides the remaining resources by weight among the unmet queues:

    deserved = max(min(deserved + left * weight / sum of weights, capability, request), guarantee)

A queue is met, and takes part in no further round, when its request is met or a round gave it nothing more. Resources
that it could not use remain for the next round. (Volcano: proportion's OnSessionOpen.)

Volcano counts a request as met if only 0.1 is missing, and it stops when less than 0.1 of every resource is left. So a
share that takes many rounds ends a little short, and its last pod is refused. Here the rounds go on until nothing is
left, and a result that misses a whole number only by rounding becomes that number. If the guarantees of other queues
use up a scalar, a queue's capability is 0 here; Volcano then has no entry for it and applies no limit.
"""

from typing import Final

import numpy as np

from volcano_py.model.arrays import Bools, Floats
from volcano_py.model.resources import PODS_ROW

_NOTHING: Final = 1e-14  # this fraction of the total counts as nothing
_ROUNDING: Final = (1e-6, 1e-9)  # absolute and relative error that many rounds may add up to
_MAX_ROUNDS: Final = 10_000  # each round divides a fixed part of the rest or meets a queue


def deserved(
    total: Floats, weights: Floats, request: Floats, capability: Floats, guarantee: Floats, wanting: Bools
) -> Floats:
    """Return what every queue deserves, shape (n_resources, n_queues); 0 for queues that are not ``wanting``.

    ``total`` is (n_resources,), ``weights`` and ``wanting`` are (n_queues,), the others (n_resources, n_queues).
    """
    share = np.zeros_like(request)
    ceiling = np.minimum(capability, request)
    nothing = total * _NOTHING
    left, unmet = total, wanting.copy()
    for _ in range(_MAX_ROUNDS):
        weight = weights[unmet].sum()
        if not weight > 0:
            break
        before = share[:, unmet]
        dealt = before + left[:, None] * (weights[unmet] / weight)
        after = np.maximum(np.minimum(dealt, ceiling[:, unmet]), guarantee[:, unmet])
        share[:, unmet] = after
        met = (request[:, unmet] <= after).all(axis=0) | (after == before).all(axis=0)
        unmet[np.flatnonzero(unmet)[met]] = False
        rest = np.maximum(left - (after - before).sum(axis=1), 0.0)
        if (rest == left).all() or (np.delete(rest, PODS_ROW) <= np.delete(nothing, PODS_ROW)).all():
            break
        left = rest
    return _whole(share)


def _whole(share: Floats) -> Floats:
    """Return the shares, with those within a rounding error of a whole number set to it."""
    nearest = np.rint(share)
    absolute, relative = _ROUNDING
    return np.where(np.abs(share - nearest) <= np.maximum(absolute, relative * nearest), nearest, share)
