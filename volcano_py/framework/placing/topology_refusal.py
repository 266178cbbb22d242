"""Why a gang with a hard topology waits: what the allowed tiers lack, in numbers, and which tier would do."""

from typing import Final

import numpy as np

from volcano_py.model.arrays import Ints, Rows
from volcano_py.model.rejections import Reason, Rejection
from volcano_py.snapshot.domains import Domains

PLUGIN: Final = "network-topology-aware"
"""The plugin that asks for topologies."""


def why_no_domain(
    domains: Domains,
    room: Ints,
    needed: int,
    highest: int,
    plain: Rejection | None,
    who: str = "",
    *,
    why: str = "",
) -> Reason:
    """Return the reason; ``room`` is how many of the waiting tasks each domain could take at most, (n_domains,).

    ``needed`` is how many tasks the gang, or the sub-group that ``who`` names, lacks at least. ``highest`` is the
    highest tier that it allows. ``plain`` says why nodes refuse such a task, whatever their domain. ``why`` is the
    reason if there is room for all tasks, taken by themselves.
    """
    needed = max(needed, 1)
    allowed = np.flatnonzero(domains.tier_of <= highest)
    above = np.flatnonzero((domains.tier_of > highest) & (room >= needed))
    head = f"no HyperNode up to tier {highest} has room for {_tasks(needed)}"
    if len(allowed) and room[allowed].max() >= needed:
        takes = f"no HyperNode up to tier {highest} takes {_tasks(needed)}" + (f", {why}" if why else "")
        return Reason(PLUGIN, "no-domain", f"{who}{takes}: {_best(domains, room, allowed)}")
    text = f"{head}: {_best(domains, room, allowed)}" if len(allowed) else f"{head}: there is none"
    if len(above):
        tier = int(domains.tier_of[above].min())
        mine = above[domains.tier_of[above] == tier]
        text += f"; tier {tier} would do: {_named(domains, room, mine)}"
    else:
        text += f"; no tier would do: the whole cluster has room for {int(room[domains.top])}"
        if plain is not None and (plain.blocked is not None or plain.refusals):
            text += f" ({plain.message})"
    return Reason(PLUGIN, "no-domain", f"{who}{text}")


def _tasks(count: int) -> str:
    return "1 more task" if count == 1 else f"{count} more tasks"


def _best(domains: Domains, room: Ints, allowed: Rows) -> str:
    """Return the best domain of each allowed tier with its room."""
    tiers = np.unique(domains.tier_of[allowed]).tolist()
    return ", ".join(
        f"the best of tier {tier} is {_named(domains, room, allowed[domains.tier_of[allowed] == tier])}"
        for tier in tiers
    )


def _named(domains: Domains, room: Ints, of_tier: Rows) -> str:
    best = int(of_tier[room[of_tier].argmax()])  # the first by name among equals
    name = "the whole cluster" if best == domains.top else domains.names[best]
    return f"{name} with room for {int(room[best])}"
