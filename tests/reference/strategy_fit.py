"""Resource-strategy-fit on one node, in fractions."""

from collections.abc import Mapping
from fractions import Fraction

from tests.reference.accounts import NodeAccount, asked
from volcano_py.model.shape import Shape


def strategy(shape: Shape, node: NodeAccount, entries: Mapping[str, tuple[str, int]], weight: int) -> Fraction:
    """Weighted mean of the strategies of the requested resources; ``entries`` maps exact name -> (type, weight)."""
    score, weights = Fraction(0), 0
    for name, amount in asked(shape).items():
        if amount == 0 or name not in entries:
            continue
        kind, part = entries[name]
        weights += part
        capacity = node.allocatable[name]
        if capacity == 0:
            continue
        after = node.used[name] + amount
        if after > capacity:
            return Fraction(0)
        score += Fraction((after if kind == "MostAllocated" else capacity - after) * part, capacity)
    return score / weights * 100 * weight if weights else Fraction(0)


def scarce(shape: Shape, node: NodeAccount, weights: Mapping[str, int], weight: int) -> Fraction:
    """The weight left without the scarce resources that the node has."""
    total = sum(weights.values())
    if not total or any(amount and node.allocatable[name] == 0 for name, amount in asked(shape).items()):
        return Fraction(0)
    held = sum(part for name, part in weights.items() if node.allocatable[name] > 0)
    return (1 - Fraction(held, total)) * 100 * weight


def refused_for(shape: Shape, node: NodeAccount, shares: Mapping[str, tuple[int, int]]) -> str | None:
    """The first listed resource that lacks its (cores, 10^9 bytes) per idle unit, None if none does."""
    wanted = asked(shape)
    if any(wanted.get(name, 0) > 0 for name in shares):
        return None
    for name, (cores, memory) in shares.items():
        units = node.idle(name)  # in thousandths
        short = node.idle("cpu") - wanted.get("cpu", 0) < units * cores
        short |= node.idle("memory") - wanted.get("memory", 0) < units * memory * 10**6
        if node.allocatable[name] > 0 and short:
            return name
    return None
