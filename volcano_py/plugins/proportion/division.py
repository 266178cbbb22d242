"""Dividing the cluster between queues: rounds of water filling.

Every queue begins with nothing. In a round what is left is dealt out by weight among the queues that are not met:

    deserved = max(min(deserved + left * weight / sum of weights, capability, request), guarantee)

A queue whose request is met, or that a round gave nothing more, is met and leaves the rounds. What was dealt out and
not used is left for the next round. (Volcano: proportion's OnSessionOpen.)

Volcano calls a request met when 0.1 of it is missing and stops as soon as less than 0.1 of everything is left, so a
share that takes many rounds ends a little short, and the last pod of it is refused. Here the rounds go on until nothing
is left, and a result that misses a whole number by no more than rounding explains is that number. A scalar that
guarantees of others take in full has no capability in Volcano, which it takes for no limit; here it is 0.
"""

from typing import Final

import numpy as np

from volcano_py.model.arrays import Bools, Floats
from volcano_py.model.resources import PODS_ROW

_NOTHING: Final = 1e-14  # this part of the total counts as nothing
_ROUNDING: Final = (1e-6, 1e-9)  # absolute and relative error that many rounds may add up to
_MAX_ROUNDS: Final = 10_000  # each round deals out a fixed part of what is left or settles a queue


def deserved(
    total: Floats, weights: Floats, request: Floats, capability: Floats, guarantee: Floats, wanting: Bools
) -> Floats:
    """Return the share of every queue, shape (n_resources, n_queues); of those that are not ``wanting`` it is 0.

    ``weights`` is (n_queues,), the others (n_resources, n_queues).
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
    """Return shares with those that miss a whole number by a rounding error set to it."""
    nearest = np.rint(share)
    absolute, relative = _ROUNDING
    return np.where(np.abs(share - nearest) <= np.maximum(absolute, relative * nearest), nearest, share)
