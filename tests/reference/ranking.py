"""All of nodeorder, one node at a time: kube-scheduler's scores and the comparison of nodes."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tests.reference.accounts import NodeAccount, asked
from tests.reference.scoring import least_allocated
from tests.reference.selection import matches, tolerates
from volcano_py.model.shape import Shape

GPU = "nvidia.com/gpu"
MIB = 1024 * 1024


@dataclass(frozen=True)
class Weights:
    least: int = 1
    most: int = 0
    balanced: int = 1
    node_affinity: int = 2
    taints: int = 3
    images: int = 1
    pod_affinity: int = 2
    pod_spread: int = 2


ALL = Weights()
LEAST_ALLOCATED = Weights(balanced=0, node_affinity=0, taints=0, images=0, pod_affinity=0, pod_spread=0)


def nodeorder(shape: Shape, group: Sequence[NodeAccount], everybody: Sequence[NodeAccount], by: Weights) -> list[int]:
    """Return the score of every candidate; images are counted on ``everybody``, that is all nodes."""
    affinity = highest_is_best([preference(shape, node) for node in group])
    taints = [100 - score for score in highest_is_best([intolerable(shape, node) for node in group])]
    scores = []
    for index, node in enumerate(group):
        score = by.least * least_allocated(shape, node) + by.most * most_allocated(shape, node)
        score += by.balanced * balanced_allocation(shape, node)
        score += by.node_affinity * affinity[index] + by.taints * taints[index]
        scores.append(score + by.images * image_locality(shape, node, everybody))
    return scores


def highest_is_best(raw: Sequence[int]) -> list[int]:
    highest = max(raw, default=0)
    return [100 * one // highest if highest > 0 else 0 for one in raw]


def preference(shape: Shape, node: NodeAccount) -> int:
    return sum(weight for weight, term in shape.preferred if matches(term, node.record))


def intolerable(shape: Shape, node: NodeAccount) -> int:
    soft = [taint for taint in node.record.taints if taint.effect == "PreferNoSchedule"]
    return sum(not any(tolerates(one, taint) for one in shape.tolerations) for taint in soft)


def most_allocated(shape: Shape, node: NodeAccount) -> int:
    wanted = (node.nonzero_cpu + int(shape.nonzero[0]), node.nonzero_memory + int(shape.nonzero[1]))
    has = (node.allocatable["cpu"], node.allocatable["memory"])
    parts = [min(want, capacity) * 100 // capacity for want, capacity in zip(wanted, has, strict=True) if capacity]
    return sum(parts) // len(parts) if parts else 0


def balanced_allocation(shape: Shape, node: NodeAccount) -> int:
    request = asked(shape)
    if not any(request.get(name) for name in ("cpu", "memory", GPU)):
        return 0
    names = [name for name in ("cpu", "memory", GPU) if node.allocatable[name] and (name != GPU or request.get(GPU))]
    used = node.used + node.pipelined
    return 50 + (50 + _balance(names, node, used + Counter(request)) - _balance(names, node, used)) // 2


def _balance(names: Sequence[str], node: NodeAccount, used: Counter[str]) -> int:
    fractions = [min(used[name] / node.allocatable[name], 1.0) for name in names]
    deviation = 0.0
    if len(fractions) == 2:
        deviation = abs((fractions[0] - fractions[1]) / 2)
    elif len(fractions) > 2:
        mean = sum(fractions) / len(fractions)
        deviation = math.sqrt(sum((one - mean) * (one - mean) for one in fractions) / len(fractions))
    return int((1 - deviation) * 100.0)


def image_locality(shape: Shape, node: NodeAccount, everybody: Sequence[NodeAccount]) -> int:
    smallest, largest = 23 * MIB, shape.n_containers * 1000 * MIB
    if largest <= smallest:
        return 0
    total = 0
    for image in shape.images:
        holders = sum(image in other.record.images for other in everybody)
        total += int(node.record.images.get(image, 0) * (holders / len(everybody)))
    return 100 * (min(max(total, smallest), largest) - smallest) // (largest - smallest)
