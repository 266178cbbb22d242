"""Estimates of what pods use until a measurement shows it, and the loads of nodes including these estimates.

    load      = clamp((measured / 100 * capacity + estimates) / capacity, 0, 1), 0 without capacity
    mean      = (load_cpu * w_cpu + load_memory * w_memory) / (w_cpu + w_memory), 0 for no weights
    risk      = risk_factor if mean >= risk_threshold else 1
    estimate  = clamp((request * request_ratio + (limit - request) * burst_ratio) * risk, 0, limit)
                with limit = request if it is missing or smaller; for a best-effort pod: fixed amounts * risk

(Volcano: plugins/usage, estimator.go.) All functions take arrays whose first axis is cpu and memory.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from volcano_py.model.arrays import Floats, Ints

MIB: Final = 1024.0 * 1024.0
_STEPS: Final = np.array([2.0**-24, 2.0**-8])
"""The units to which estimates of millicores and bytes are rounded: sums up to 500,000 cores and 32 TiB are exact."""


@dataclass(frozen=True, slots=True)
class Estimator:
    """The parameters of estimates."""

    request_ratio: float = 0.7
    burst_ratio: float = 0.0
    risk_threshold: float = 0.6
    risk_factor: float = 1.2
    best_effort: tuple[float, float] = (250.0, 200.0 * MIB)  # cpu and memory of a pod without requests


def load(percent: Any, estimated: Any, capacity: Any) -> Floats:
    """Return loads from 0 to 1; the arguments broadcast to one shape."""
    has = np.asarray(capacity) > 0
    found = (np.asarray(percent) / 100.0 * capacity + estimated) / np.where(has, capacity, np.inf)
    return np.asarray(np.minimum(np.maximum(found, 0.0), 1.0))


def mean_load(loads: Floats, weights: tuple[int, int]) -> Floats:
    """Return the weighted mean of the loads of cpu and memory (2, ...), shape (...)."""
    total = sum(weights)
    if total == 0:
        return np.zeros_like(loads[0])
    return np.asarray((loads[0] * weights[0] + loads[1] * weights[1]) / total)


def risk(mean: Any, estimator: Estimator) -> Floats:
    """Return the factor for estimates at a mean load; a risk_factor below 1 counts as 1."""
    return np.asarray(np.where(np.asarray(mean) >= estimator.risk_threshold, max(estimator.risk_factor, 1.0), 1.0))


def pod_estimate(request: Any, limit: Any, factor: float, estimator: Estimator) -> Floats:
    """Return the estimate of a pod with these requests and limits, multiplied by the risk ``factor``."""
    asked = np.maximum(request, 0.0)
    most = np.where(np.asarray(limit) > asked, limit, asked)
    used = (asked * estimator.request_ratio + (most - asked) * estimator.burst_ratio) * factor
    return np.asarray(np.clip(used, 0.0, most))


def best_effort_estimate(amount: Any, factor: float) -> Floats:
    """Return the estimate of a best-effort pod, multiplied by the risk ``factor``."""
    return np.asarray(np.maximum(amount, 0.0) * factor)


@dataclass(frozen=True, slots=True)
class Growth:
    """What a task of one shape adds to a node: ``calm`` while its mean load is below risk_threshold, else ``careful``.

    Amounts are multiples of `_STEPS`, so sums do not depend on their order.
    """

    calm: Floats  # (2,)
    careful: Floats  # (2,)


def growth_of(request: Floats, limits: Floats, best_effort: bool, estimator: Estimator) -> Growth:
    """Return what a pod adds to the estimates of its node."""
    factor = max(estimator.risk_factor, 1.0)
    if best_effort:
        fixed = np.array(estimator.best_effort)
        calm, careful = best_effort_estimate(fixed, 1.0), best_effort_estimate(fixed, factor)
    else:
        calm, careful = (pod_estimate(request, limits, one, estimator) for one in (1.0, factor))
    return Growth(np.rint(calm / _STEPS) * _STEPS, np.rint(careful / _STEPS) * _STEPS)


@dataclass(frozen=True, slots=True)
class Gauge:
    """The measured loads and capacities of nodes, (2, n_nodes) each."""

    percent: Floats
    capacity: Floats
    weights: tuple[int, int]
    estimator: Estimator

    def at(self, nodes: Any) -> "Gauge":
        """Return the gauge of the nodes in these rows."""
        return Gauge(self.percent[:, nodes], self.capacity[:, nodes], self.weights, self.estimator)

    def loads(self, estimated: Floats) -> Floats:
        """Return the loads of the nodes with these estimates, (2, n_nodes) both."""
        return load(self.percent, estimated, self.capacity)

    def mean(self, estimated: Floats) -> Floats:
        """Return the mean load of each node with these estimates (2, n_nodes), shape (n_nodes,)."""
        return mean_load(self.loads(estimated), self.weights)

    def calm_steps(self, estimated: Floats, growth: Growth, copies: Ints) -> Ints:
        """Return how many of ``copies`` (n_nodes,) tasks are added before the mean load reaches the threshold.

        Loads never fall while tasks are added, so a binary search finds the first task with a careful estimate.
        """
        low, high = np.zeros_like(copies), copies.copy()
        for _ in range(int(copies.max(initial=0)).bit_length()):
            middle = (low + high) // 2
            reached = self.mean(estimated + growth.calm[:, None] * middle) >= self.estimator.risk_threshold
            searching = low < high
            high = np.where(searching & reached, middle, high)
            low = np.where(searching & ~reached, middle + 1, low)
        return low

    def after(self, estimated: Floats, growth: Growth, copies: Ints) -> Floats:
        """Return the estimates (2, n_nodes) after adding ``copies`` (n_nodes,) tasks one after the other."""
        calm = self.calm_steps(estimated, growth, copies)
        return np.asarray(estimated + growth.calm[:, None] * calm + growth.careful[:, None] * (copies - calm))
