"""Node scores, in whole numbers and fractions."""

from collections.abc import Mapping
from fractions import Fraction

from tests.reference.accounts import NodeAccount, asked
from volcano_py.model.shape import Shape


def least_allocated(shape: Shape, node: NodeAccount) -> int:
    """kube-scheduler's LeastAllocated for cpu and memory, integer divisions as in Go."""
    wanted = (node.nonzero_cpu + int(shape.nonzero[0]), node.nonzero_memory + int(shape.nonzero[1]))
    total, weights = 0, 0
    for name, amount in zip(("cpu", "memory"), wanted, strict=True):
        capacity = node.allocatable[name]
        if capacity == 0:
            continue
        weights += 50
        if amount <= capacity:
            total += 50 * ((capacity - amount) * 100 // capacity)
    return total // weights if weights else 0


def binpack(shape: Shape, node: NodeAccount, weights: Mapping[str, int], plugin_weight: int = 1) -> Fraction:
    """Volcano's binpack score; 0 if something would not fit."""
    score, divisor = Fraction(0), 0
    for name, amount in asked(shape).items():
        weight = weights.get(name, 0)
        if amount == 0 or weight == 0:
            continue
        divisor += weight
        capacity = node.allocatable[name]
        if capacity == 0:
            continue
        if node.used[name] + amount > capacity:
            return Fraction(0)
        score += Fraction((node.used[name] + amount) * weight, capacity)
    return score / divisor * 100 * plugin_weight if divisor else Fraction(0)
