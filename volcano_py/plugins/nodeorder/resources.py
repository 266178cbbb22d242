"""Scores of how full a node would be, 0..100, rounded as in kube-scheduler (v1.36, plugins/noderesources).

All results are exact. Requests and capacities are whole numbers below 2^53; a quotient of two of them, times at most
100, is never rounded up to a whole number that it does not reach.
"""

from typing import Final

import numpy as np

from volcano_py.model.arrays import Bools, Floats

# Arrays without dimensions: numpy is half a microsecond faster with them than with a Python number.
_BEST: Final = np.array(100.0)
_ZERO, _HALF, _ONE, _TWO, _HALF_OF_BEST, _MIDDLE = (np.array(number) for number in (0.0, 0.5, 1.0, 2.0, 50.0, 150.0))


def least_allocated(asked: Floats, allocatable: Floats, whole: bool = False) -> Floats:
    """Return LeastAllocated, shape (n_nodes,): the emptier the better.

        floor((s_cpu + s_memory) / 2),   s_r = floor((allocatable_r - asked_r) * 100 / allocatable_r)

    Both arguments are cpu and memory of nodes, (2, n_nodes); ``asked`` includes the task and defaults for missing
    requests. s_r is 0 if asked_r exceeds allocatable_r. A resource that a node does not have is left out of sum and
    divisor (least_allocated.go). ``whole`` says that every node has both.
    """
    left = allocatable - asked
    np.maximum(left, _ZERO, out=left)
    return _mean(left, allocatable, whole)


def most_allocated(asked: Floats, allocatable: Floats, whole: bool = False) -> Floats:
    """Return MostAllocated, shape (n_nodes,): the fuller the better.

    As LeastAllocated with s_r = floor(min(asked_r, allocatable_r) * 100 / allocatable_r) (most_allocated.go).
    """
    return _mean(np.minimum(asked, allocatable), allocatable, whole)


def _mean(part: Floats, allocatable: Floats, whole: bool) -> Floats:
    """Return the mean of floor(100 * part / allocatable) over the resources a node has, rounded down.

    Both are (2, n_nodes); ``part`` is overwritten.
    """
    part *= _BEST
    part /= allocatable if whole else np.maximum(allocatable, 1.0)  # what a node does not have scores 0
    np.floor(part, out=part)
    total = part[0]
    total += part[1]
    if whole:
        total *= _HALF
    else:
        total /= np.maximum(np.count_nonzero(allocatable, axis=0), 1)
    return np.asarray(np.floor(total, out=total))


def balanced_allocation(used: Floats, request: Floats, allocatable: Floats, whole: bool = False) -> Floats:
    """Return BalancedAllocation, shape (n_nodes,): how much more evenly a node's resources would be used.

        50 + floor((50 + b(used + request) - b(used)) / 2),   b(q) = floor((1 - sigma) * 100)

    sigma is the standard deviation of min(q_r / allocatable_r, 1) over the resources that the node has, each (n_rows,
    n_nodes): cpu, memory and, if the task requests them, GPUs. Of two fractions it is |f0 - f1| / 2, of one 0
    (balanced_allocation.go; requests without defaults). ``whole`` says that every node has all of them.
    """
    has = None if whole else allocatable > 0
    fractions = np.empty((2, *used.shape))  # (with and without, n_rows, n_nodes)
    np.add(used, request[:, None], out=fractions[0])
    fractions[1] = used
    fractions /= allocatable if has is None else np.where(has, allocatable, 1.0)
    np.minimum(fractions, _ONE, out=fractions)
    if has is None and len(used) == 2:
        twice = fractions[:, 0] - fractions[:, 1]
        np.abs(twice, out=twice)
    else:
        twice = _deviation(fractions, np.ones(used.shape, dtype=bool) if has is None else has) * 2.0
    # (2 - 2 sigma) * 50 equals (1 - sigma) * 100 to the last bit, and 50 + floor(x) is floor(50 + x): fewer passes.
    np.subtract(_TWO, twice, out=twice)
    twice *= _HALF_OF_BEST
    np.floor(twice, out=twice)
    score = twice[0]
    score -= twice[1]
    score += _MIDDLE
    score *= _HALF
    return np.asarray(np.floor(score, out=score))


def least_and_balanced(
    nonzero: Floats,
    nonzero_request: Floats,
    used: Floats,
    request: Floats,
    allocatable: Floats,
    weights: Floats | None,
) -> Floats:
    """Return the weighted sum of LeastAllocated and BalancedAllocation, shape (n_nodes,), computed together.

    It is for cpu and memory of nodes that have both: all amounts are (2, n_nodes), requests may be (2, 1), weights are
    (2, 1) or None for 1 and 1. The operations are those of the functions above, so results are equal to the last bit.
    They run on both scores at once, because few wide operations cost less than many narrow ones. Where the rows would
    not be contiguous they run row by row, because numpy takes three times as long for such rows.
    """
    parts = np.empty((6, used.shape[1]))
    left, after, before, fractions = parts[:2], parts[2:4], parts[4:], parts[2:]
    np.subtract(allocatable, nonzero, left)
    np.subtract(left, nonzero_request, left)
    np.maximum(left, _ZERO, out=left)
    np.multiply(left, _BEST, left)
    np.divide(left, allocatable, left)
    np.floor(left, left)
    np.add(used, request, after)
    np.divide(after, allocatable, after)
    np.divide(used, allocatable, before)
    np.minimum(fractions, _ONE, out=fractions)
    cpu, memory, cpu_before, memory_before = fractions
    twice = after  # with and without the task; reuses the rows that are free once the difference is taken
    np.subtract(cpu, memory, cpu)
    np.subtract(cpu_before, memory_before, memory)
    np.abs(twice, twice)
    np.subtract(_TWO, twice, twice)
    np.multiply(twice, _HALF_OF_BEST, twice)
    np.floor(twice, twice)
    scores = twice
    least, balance = scores
    np.subtract(least, balance, balance)
    np.add(balance, _MIDDLE, balance)
    np.add(left[0], left[1], least)
    np.multiply(scores, _HALF, scores)
    np.floor(scores, scores)
    if weights is not None:
        np.multiply(scores, weights, scores)
    return np.asarray(least + balance)


def _deviation(fractions: Floats, has: Bools) -> Floats:
    """Return the standard deviation over the resources that each node has, shape (2, n_nodes)."""
    count = np.count_nonzero(has, axis=0)
    present = np.where(has, fractions, 0.0)
    # If exactly two fractions are present, the lower one is the smallest of those present.
    lowest = np.where(has, fractions, np.inf).min(axis=1)
    two = np.abs(present.max(axis=1) - lowest) * 0.5
    sigma = np.where(count == 2, two, 0.0)
    if len(has) > 2:
        first, second, third = fractions[:, 0], fractions[:, 1], fractions[:, 2]
        mean = (first + second + third) / 3.0
        squares = (first - mean) ** 2 + (second - mean) ** 2 + (third - mean) ** 2
        sigma = np.where(count == 3, np.sqrt(squares / 3.0), sigma)
    return sigma
