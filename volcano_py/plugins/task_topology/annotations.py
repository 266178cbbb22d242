"""A PodGroup's topology annotations about its roles.

    volcano.sh/task-topology-affinity        ps,worker;chief     groups of roles to place together
    volcano.sh/task-topology-anti-affinity   ps;worker,chief     groups of roles to place apart
    volcano.sh/task-topology-task-order      ps,worker           order of roles, the first goes first

A group of one role applies to the tasks of that role among themselves. A group of several roles applies to every pair
of them. Names are not trimmed. Every name must be the role of a task of the job and appear once in its group; empty
names are allowed. If any name is invalid, the job has no topology.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from volcano_py.model.arrays import Ints
from volcano_py.model.objects import JobKey, TopologyTexts

Groups = tuple[tuple[str, ...], ...]

_SELF_ANTI, _AFFINITY, _SELF_AFFINITY, _ANTI = 4, 3, 2, 1  # priority of a role; of several the highest counts


class InvalidTopology(ValueError):
    """The annotations name a role that does not exist, or name a role twice in a group."""


class Topology(NamedTuple):
    """The parsed annotations."""

    affinity: Groups = ()
    anti_affinity: Groups = ()
    order: tuple[str, ...] = ()


class Rules(NamedTuple):
    """The annotations as arrays over the roles of a job, in the order of its list of roles."""

    attraction: Ints  # (n_roles, n_roles): 1 together, -1 apart, 0 both or neither
    repulsion: Ints  # (n_roles, n_roles): 1 apart
    priority: Ints  # (n_roles,): 0 for a role without affinity and anti-affinity
    rank: Ints  # (n_roles,): the order of roles, 0 first; roles of equal task order and priority have equal ranks


def read(texts: TopologyTexts, roles: Collection[str], job: JobKey) -> Topology:
    """Parse the annotations of a job with these roles; raise InvalidTopology naming the role and the job."""
    topology = Topology(
        affinity=_groups(texts.affinity),
        anti_affinity=_groups(texts.anti_affinity),
        order=() if texts.order is None else tuple(texts.order.split(",")),
    )
    for group in (*topology.affinity, *topology.anti_affinity, topology.order):
        _check(group, roles, job)
    return topology


def _groups(text: str | None) -> Groups:
    return () if text is None else tuple(tuple(group.split(",")) for group in text.split(";"))


def _check(group: Iterable[str], roles: Collection[str], job: JobKey) -> None:
    seen: set[str] = set()
    for role in group:
        if role and role not in roles:
            raise InvalidTopology(f"task {role} do not exist in job <{job}>")
        if role and role in seen:
            raise InvalidTopology(f"task {role} is duplicate in job <{job}>")
        seen.add(role)


def rules_of(topology: Topology, roles: Sequence[str]) -> Rules:
    """Return the rules between these roles."""
    place = {role: number for number, role in enumerate(roles)}
    together, apart = (np.zeros((len(roles), len(roles)), dtype=np.int64) for _ in range(2))
    priority, order = (np.zeros(len(roles), dtype=np.int64) for _ in range(2))  # higher numbers go first
    for groups, matrix, alone, several in (
        (topology.affinity, together, _SELF_AFFINITY, _AFFINITY),
        (topology.anti_affinity, apart, _SELF_ANTI, _ANTI),
    ):
        for group in groups:
            rows = [place[role] for role in group if role in place]
            for row in rows:
                priority[row] = max(priority[row], alone if len(group) == 1 else several)
                others = rows if len(group) == 1 else [other for other in rows if other != row]
                matrix[row, others] = 1
    for number, role in enumerate(topology.order):
        if role in place:
            order[place[role]] = len(topology.order) - number
    keys = list(zip((-order).tolist(), (-priority).tolist(), strict=True))
    ranks = {key: number for number, key in enumerate(sorted(set(keys)))}
    return Rules(together - apart, apart, priority, np.array([ranks[key] for key in keys], dtype=np.int64))
