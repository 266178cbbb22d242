"""Which domains a part of a gang may be placed in, and in which order they are tried.

A part that has not begun is tried in the domains of the lowest tier first. A part that has begun stays where it is: its
present domain is tried first, and then the domains above it, as far as its limit allows. So it never spreads more than
it must. (Volcano tries the domains below the highest allowed one again, from the lowest tier on.)
"""

import numpy as np

from volcano_py.model.arrays import Rows
from volcano_py.model.sub_groups import TierLimit
from volcano_py.snapshot.domains import Domains


def by_tier(domains: Domains, within: int, limit: TierLimit) -> list[Rows]:
    """Return the domains at or below one, up to the limit, by tier, the lowest tier first."""
    below = domains.below(within)
    allowed = below[domains.tier_of[below] <= limit.tier]
    changes = np.flatnonzero(np.diff(domains.tier_of[allowed])) + 1
    return [group for group in np.split(allowed, changes) if len(group)]


def outward(domains: Domains, begun: int, within: int, limit: TierLimit) -> list[int]:
    """Return the domains that a part may use that has tasks in the domain ``begun``, the nearest first.

    If it already spans more than its limit, there are none.
    """
    allowed = [one for one in domains.ancestors(begun) if domains.tier_of[one] <= limit.tier]
    if not allowed:
        return []
    inside = set(domains.below(within).tolist())
    nearest = [one for one in allowed if one in inside]
    # If the part already spans all of ``within``, it may use all of it.
    return nearest or ([within] if begun in domains.ancestors(within) else [])


def around(domains: Domains, nodes: Rows, within: int, limit: TierLimit) -> list[int]:
    """Return the domains that a part may use that has tasks on these nodes, given once each; the nearest first.

    Where domains overlap, these are all that contain the nodes.
    """
    if domains.nested:
        begun = domains.around(nodes)
        return [] if begun is None else outward(domains, begun, within, limit)
    containing = np.flatnonzero(domains.counts(nodes) == len(nodes))
    inside = set(domains.below(within).tolist())
    return [one for one in containing.tolist() if domains.tier_of[one] <= limit.tier and one in inside]
