"""What a pod will use before any measurement shows it, and what a node's load comes to with that.

    load      = clamp((measured / 100 * capacity + estimates) / capacity, 0, 1), 0 without capacity
    mean      = (load_cpu * w_cpu + load_memory * w_memory) / (w_cpu + w_memory), 0 for no weights
    risk      = risk_factor if mean >= risk_threshold else 1
    estimate  = clamp((request * request_ratio + (limit - request) * burst_ratio) * risk, 0, limit)
                with limit = request where it is missing or smaller; a best-effort pod counts fixed amounts times risk

(Volcano: plugins/usage, estimator.go.) All functions take arrays; cpu and memory are the first axis.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from volcano_py.model.arrays import Floats, Ints

MIB: Final = 1024.0 * 1024.0
_STEPS: Final = np.array([2.0**-24, 2.0**-8])
"""The finest parts of a thousandth of a core and of a byte that count: sums up to 500,000 cores, 32 TiB are exact."""


@dataclass(frozen=True, slots=True)
class Estimator:
    """How careful estimates are."""

    request_ratio: float = 0.7
    burst_ratio: float = 0.0
    risk_threshold: float = 0.6
    risk_factor: float = 1.2
    best_effort: tuple[float, float] = (250.0, 200.0 * MIB)  # cpu and memory of a pod that asks for nothing


def load(percent: Any, estimated: Any, capacity: Any) -> Floats:
    """Return loads from 0 to 1; the arguments have one shape, or broadcast to one."""
    has = np.asarray(capacity) > 0
    found = (np.asarray(percent) / 100.0 * capacity + estimated) / np.where(has, capacity, np.inf)
    return np.asarray(np.minimum(np.maximum(found, 0.0), 1.0))


def mean_load(loads: Floats, weights: tuple[int, int]) -> Floats:
    """Return the weighted mean of loads of cpu and memory (2, ...), shape (...)."""
    total = sum(weights)
    if total == 0:
        return np.zeros_like(loads[0])
    return np.asarray((loads[0] * weights[0] + loads[1] * weights[1]) / total)


def risk(mean: Any, estimator: Estimator) -> Floats:
    """Return what estimates are multiplied with at a mean load; a factor below 1 counts as 1."""
    return np.asarray(np.where(np.asarray(mean) >= estimator.risk_threshold, max(estimator.risk_factor, 1.0), 1.0))


def pod_estimate(request: Any, limit: Any, factor: float, estimator: Estimator) -> Floats:
    """Return what a pod with these requests and limits uses at a risk."""
    asked = np.maximum(request, 0.0)
    most = np.where(np.asarray(limit) > asked, limit, asked)
    used = (asked * estimator.request_ratio + (most - asked) * estimator.burst_ratio) * factor
    return np.asarray(np.clip(used, 0.0, most))


def best_effort_estimate(amount: Any, factor: float) -> Floats:
    """Return what a best-effort pod counts at a risk."""
    return np.asarray(np.maximum(amount, 0.0) * factor)


@dataclass(frozen=True, slots=True)
class Growth:
    """What a task of one kind adds to a node: calm while its mean load is below the threshold, careful from then on.

    Amounts are multiples of `_STEPS`, so that sums do not depend on their order.
    """

    calm: Floats  # (2,)
    careful: Floats  # (2,)


def growth_of(request: Floats, limits: Floats, best_effort: bool, estimator: Estimator) -> Growth:
    """Return what a pod adds."""
    factor = max(estimator.risk_factor, 1.0)
    if best_effort:
        fixed = np.array(estimator.best_effort)
        calm, careful = best_effort_estimate(fixed, 1.0), best_effort_estimate(fixed, factor)
    else:
        calm, careful = (pod_estimate(request, limits, one, estimator) for one in (1.0, factor))
    return Growth(np.rint(calm / _STEPS) * _STEPS, np.rint(careful / _STEPS) * _STEPS)


@dataclass(frozen=True, slots=True)
class Gauge:
    """Nodes with what is measured of them; (2, n_nodes) each."""

    percent: Floats
    capacity: Floats
    weights: tuple[int, int]
    estimator: Estimator

    def at(self, nodes: Any) -> "Gauge":
        """Return the gauge of some nodes, by their rows."""
        return Gauge(self.percent[:, nodes], self.capacity[:, nodes], self.weights, self.estimator)

    def loads(self, estimated: Floats) -> Floats:
        """Return the loads of the nodes with these estimates, (2, n_nodes) both."""
        return load(self.percent, estimated, self.capacity)

    def mean(self, estimated: Floats) -> Floats:
        """Return the mean load of each node with these estimates (2, n_nodes), shape (n_nodes,)."""
        return mean_load(self.loads(estimated), self.weights)

    def calm_steps(self, estimated: Floats, growth: Growth, copies: Ints) -> Ints:
        """Return how many of ``copies`` (n_nodes,) tasks come before the mean load reaches the threshold.

        Loads never fall while tasks come, so the first task that is counted carefully is found by halving.
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
        """Return the estimates (2, n_nodes) with ``copies`` (n_nodes,) more tasks, one after the other."""
        calm = self.calm_steps(estimated, growth, copies)
        return np.asarray(estimated + growth.calm[:, None] * calm + growth.careful[:, None] * (copies - calm))
