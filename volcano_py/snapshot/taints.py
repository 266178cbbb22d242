"""Taints and tolerations, evaluated once per distinct set of taints instead of once per node (kube-scheduler)."""

from typing import Final

import numpy as np

from volcano_py.api import keys
from volcano_py.model.arrays import Bools, Floats
from volcano_py.model.objects import TaintRecord
from volcano_py.model.shape import Tolerance
from volcano_py.snapshot.columns import NodeColumns

_HARD_EFFECTS: Final = ("NoSchedule", "NoExecute")
_SOFT_EFFECT: Final = "PreferNoSchedule"
_CORDON: Final = TaintRecord(keys.TAINT_UNSCHEDULABLE, "", "NoSchedule")


def tolerated(tolerations: tuple[Tolerance, ...], nodes: NodeColumns) -> Bools:
    """Say for each node whether all its NoSchedule and NoExecute taints are tolerated, shape (n_nodes,)."""
    by_set = np.array([_all_tolerated(taints, tolerations) for taints in nodes.statics.taint_sets], dtype=bool)
    result: Bools = by_set[nodes.taint_ids]
    return result


def not_preferred(tolerations: tuple[Tolerance, ...], nodes: NodeColumns) -> Floats:
    """Return how many taints of effect PreferNoSchedule are not tolerated on each node, shape (n_nodes,)."""
    by_set = np.array([_count_not_preferred(taints, tolerations) for taints in nodes.statics.taint_sets], dtype=float)
    result: Floats = by_set[nodes.taint_ids]
    return result


def tolerates_cordon(tolerations: tuple[Tolerance, ...]) -> bool:
    """Say whether a pod may go to a cordoned node: it tolerates the taint that represents the cordon."""
    return any(tolerates(tolerance, _CORDON) for tolerance in tolerations)


def tolerates(tolerance: Tolerance, taint: TaintRecord) -> bool:
    """Say whether one toleration covers one taint.

    It does if its effect is empty or equal, its key is empty or equal, and its operator is Exists, or Equal (the
    default) with equal values. The numeric operators Lt and Gt, off by default in Kubernetes 1.36, never match here.
    """
    if tolerance.effect and tolerance.effect != taint.effect:
        return False
    if tolerance.key and tolerance.key != taint.key:
        return False
    if tolerance.operator == "Exists":
        return True
    return tolerance.operator in ("", "Equal") and tolerance.value == taint.value


def _all_tolerated(taints: tuple[TaintRecord, ...], tolerations: tuple[Tolerance, ...]) -> bool:
    return all(
        any(tolerates(tolerance, taint) for tolerance in tolerations)
        for taint in taints
        if taint.effect in _HARD_EFFECTS
    )


def _count_not_preferred(taints: tuple[TaintRecord, ...], tolerations: tuple[Tolerance, ...]) -> int:
    return sum(
        not any(tolerates(tolerance, taint) for tolerance in tolerations)
        for taint in taints
        if taint.effect == _SOFT_EFFECT
    )
