"""Sub-groups of a gang and the network topologies that a gang and its sub-groups ask for.

A policy of a PodGroup divides tasks into sub-groups: tasks with the same values of its labels (``matchLabelKeys``)
belong together. Each sub-group needs a number of tasks (``subGroupSize``), and the policy a number of such sub-groups
(``minSubGroups``). Tasks that no policy takes form the sub-group of the job itself.

    job  ──┬── policy worker ──┬── sub-group worker-0   tasks with volcano.sh/partition-id=0
           │                   └── sub-group worker-1
           └── tasks of no policy

A topology is hard or soft. A hard one keeps all tasks in one domain of an allowed tier. A soft one prefers that, and
allows every domain, also the whole cluster.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from volcano_py.api import scheduling as wire
from volcano_py.model.hyper_nodes import HyperNodeTree
from volcano_py.model.selectors import IN, LabelSelector, label_selector

DEFAULT_SIZE: Final = 1
"""How many tasks a sub-group needs if its policy does not say."""

MOST_POLICIES: Final = 256
"""Policies that a PodGroup may have: each costs time in every cycle, for each task that waits."""

_LONGEST_VALUES: Final = 128
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_INT64: Final = range(-(2**63), 2**63)


class TopologyMode(Enum):
    """Whether a topology is a condition or a wish."""

    HARD = "hard"
    SOFT = "soft"


@dataclass(frozen=True, slots=True)
class NetworkTopology:
    """How far apart tasks may be placed, as written: the highest tier is given as a number, by name, or not at all."""

    mode: TopologyMode = TopologyMode.HARD
    highest_tier_allowed: int | None = None
    highest_tier_name: str = ""

    @property
    def hard(self) -> bool:
        """Whether it is a condition: it is hard and says up to which tier (Volcano: IsHardTopologyMode)."""
        return self.mode is TopologyMode.HARD and (
            self.highest_tier_allowed is not None or bool(self.highest_tier_name)
        )

    @property
    def soft(self) -> bool:
        """Whether it is a wish."""
        return self.mode is TopologyMode.SOFT


@dataclass(frozen=True, slots=True)
class SubGroupPolicy:
    """Which tasks form sub-groups, and what these need."""

    name: str
    selector: LabelSelector | None = None
    """None selects every task."""
    match_label_keys: tuple[str, ...] = ()
    size: int = DEFAULT_SIZE
    """How many tasks a sub-group needs."""
    minimum: int = 0
    """How many sub-groups the job needs."""
    topology: NetworkTopology | None = None


class SubGroupId(NamedTuple):
    """Which sub-group of a job: the policy by its place in the PodGroup, and the values of its labels."""

    policy: int
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SubGroup:
    """A sub-group and what it needs (Volcano: SubJobInfo).

    The texts are for people. Two sub-groups may have the same text, but never the same `SubGroupId`.
    """

    job: str
    group_id: str
    """Equal for all sub-groups of a policy."""
    id: str
    min_available: int = DEFAULT_SIZE
    match_index: int = 0
    """Its place among the sub-groups of its policy, if the first label value is a number."""
    topology: NetworkTopology | None = None


class TaskCounts(NamedTuple):
    """How many tasks of a sub-group have which state."""

    ready: int = 0
    """They have a node and stay there, or have succeeded (`statuses.READY_STATUSES`)."""
    pipelined: int = 0
    best_effort: int = 0
    """They are pending and request nothing."""


class TierLimit(NamedTuple):
    """The highest tier of a domain that a job or a sub-group accepts."""

    tier: int
    soft: bool = False
    """Every domain is accepted; the lower its tier, the better."""
    problem: str = ""
    """Why the topology is not enforced as written."""


# Which task belongs where


def match_values(policy: SubGroupPolicy, labels: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the label values that place a task in a sub-group of a policy; None if the policy does not take it.

    A policy without label keys gives no values. It takes no task, see `sub_group_of`.
    """
    if policy.selector is not None and not policy.selector.matches(labels):
        return None
    values = tuple(labels.get(key, "") for key in policy.match_label_keys)
    return values if all(values) else None


def sub_group_of(
    policies: Sequence[SubGroupPolicy], labels: Mapping[str, str], among: Iterable[int] | None = None
) -> SubGroupId | None:
    """Return the sub-group of a task with these labels: that of the first policy that takes it; None if none does.

    ``among`` has the places of the policies that may take it, in order; None stands for all (see `PolicyIndex`).
    """
    for index in range(len(policies)) if among is None else among:
        values = match_values(policies[index], labels)
        if values:
            return SubGroupId(index, values)
    return None


class PolicyIndex:
    """Finds the policies that may take a task by a label that their selectors require.

    The policies of a job usually differ in the value of one label, its task. Thousands of tasks would ask each of them.
    """

    def __init__(self, policies: Sequence[SubGroupPolicy]) -> None:
        self._by_label: dict[tuple[str, str], list[int]] = {}
        self._others: list[int] = []
        for index, policy in enumerate(policies):
            requirements = () if policy.selector is None else policy.selector.requirements
            wanted = next((one for one in requirements if one.operator == IN), None)
            if wanted is None:
                self._others.append(index)
                continue
            for value in dict.fromkeys(wanted.values):
                self._by_label.setdefault((wanted.key, value), []).append(index)

    def candidates(self, labels: Mapping[str, str]) -> list[int]:
        """Return the places of the policies that may take a task with these labels, in order."""
        found = [index for label in labels.items() for index in self._by_label.get(label, ())]
        return sorted(self._others + found)


def sub_group(job: str, policies: Sequence[SubGroupPolicy], which: SubGroupId) -> SubGroup:
    """Return a sub-group of a job."""
    policy = policies[which.policy]
    name = sub_group_name(job, policy.name, which.values)
    return sub_group_with(job, group_name(job, policy.name), name, policy, which.values)


def own_sub_group(
    job: str, min_available: int, topology: NetworkTopology | None, policies: Sequence[SubGroupPolicy]
) -> SubGroup:
    """Return the sub-group of the tasks that no policy takes. Without policies, these are all tasks of the job."""
    return SubGroup(job, job, job, DEFAULT_SIZE if policies else min_available, topology=topology)


def sub_group_with(job: str, group_id: str, id_: str, policy: SubGroupPolicy | None, values: Sequence[str]) -> SubGroup:
    """Return a sub-group with these names; without a policy, it needs one task."""
    index = match_index(values)
    if policy is None:
        return SubGroup(job, group_id, id_, match_index=index)
    return SubGroup(job, group_id, id_, policy.size, index, policy.topology)


def group_name(job: str, policy: str) -> str:
    """Return the text that all sub-groups of a policy have in common."""
    return f"{job}/{policy}"


def sub_group_name(job: str, policy: str, values: Sequence[str]) -> str:
    """Return the text that names a sub-group; long values are shortened to their FNV-1a hash of 32 bits."""
    joined = "-".join(values)
    if len(joined) > _LONGEST_VALUES:
        joined = str(_fnv1a(joined.encode()))
    return f"{group_name(job, policy)}-{joined}"


def match_index(values: Sequence[str]) -> int:
    """Return the first label value as a number, 0 if it is none."""
    if not values or _INTEGER.fullmatch(values[0]) is None:
        return 0
    number = int(values[0])
    return number if number in _INT64 else 0


# What a gang needs of its sub-groups


def is_ready(counts: TaskCounts, min_available: int) -> bool:
    """Say whether a sub-group has its tasks (Volcano: SubJobInfo.IsReady)."""
    return counts.ready + counts.best_effort >= min_available


def is_pipelined(counts: TaskCounts, min_available: int) -> bool:
    """Say whether a sub-group has its tasks, those that wait for room included (Volcano: SubJobInfo.IsPipelined)."""
    return counts.pipelined + counts.ready + counts.best_effort >= min_available


def too_few(policies: Sequence[SubGroupPolicy], found: Mapping[int, int]) -> dict[int, int]:
    """Return how many sub-groups are missing, by policy; {} if each policy has its minimum.

    ``found`` counts, by policy, the sub-groups that exist, that are ready or that are pipelined (Volcano:
    CheckSubJobValid, CheckSubJobReady, CheckSubJobPipelined).
    """
    missing = ((index, policy.minimum - found.get(index, 0)) for index, policy in enumerate(policies))
    return {index: number for index, number in missing if number > 0}


# Topologies


def hardened(topology: NetworkTopology | None, top_tier: int) -> NetworkTopology | None:
    """Return a soft topology as a hard one that accepts domains up to ``top_tier``; others unchanged."""
    if topology is None or not topology.soft:
        return topology
    return NetworkTopology(TopologyMode.HARD, top_tier)


def all_hardened(
    topology: NetworkTopology | None, policies: Sequence[SubGroupPolicy], top_tier: int
) -> tuple[NetworkTopology | None, tuple[NetworkTopology | None, ...]]:
    """Return the topology of a job and those of its policies as hard ones.

    A soft topology of a policy accepts no domain above the job's own tier: the whole job stays below that.
    """
    job = hardened(topology, top_tier)
    within = top_tier if job is None or job.highest_tier_allowed is None else job.highest_tier_allowed
    return job, tuple(hardened(policy.topology, within) for policy in policies)


def tier_limit(topology: NetworkTopology | None, tree: HyperNodeTree) -> TierLimit | None:
    """Return the highest tier that a topology accepts; None if it limits and prefers nothing."""
    if topology is None:
        return None
    if topology.soft:
        return TierLimit(tree.top_tier, soft=True)
    if not topology.hard:
        return None
    if topology.highest_tier_allowed is not None:
        return TierLimit(topology.highest_tier_allowed)
    tier = tree.tier_named(topology.highest_tier_name)
    if tier is not None:
        return TierLimit(tier)
    # Volcano ignores such a topology. Here the closest domain is still preferred, and users are told.
    problem = f'no HyperNode has the tierName "{topology.highest_tier_name}", so the topology is not enforced'
    return TierLimit(tree.top_tier, soft=True, problem=problem)


def tier_limits(
    topology: NetworkTopology | None, policies: Sequence[SubGroupPolicy], tree: HyperNodeTree
) -> tuple[TierLimit | None, tuple[TierLimit | None, ...]]:
    """Return the limit of a job and those of the sub-groups of its policies, soft ones within that of the job."""
    job = tier_limit(topology, tree)
    return job, tuple(_within(job, tier_limit(policy.topology, tree)) for policy in policies)


def _within(job: TierLimit | None, own: TierLimit | None) -> TierLimit | None:
    return own if job is None or own is None or not own.soft else own._replace(tier=job.tier, problem=job.problem)


# Reading


def network_topology(written: wire.NetworkTopology | None, where: str) -> NetworkTopology | None:
    """Return the record of a topology; raise ValueError naming the field that cannot be read."""
    if written is None:
        return None
    known = [mode.value for mode in TopologyMode]
    if written.mode not in ("", *known):
        raise ValueError(f"{where}.mode: {written.mode!r} is not a mode: use one of {', '.join(known)}")
    mode = TopologyMode(written.mode or TopologyMode.HARD.value)
    return NetworkTopology(mode, written.highest_tier_allowed, written.highest_tier_name)


def sub_group_policy(written: wire.SubGroupPolicy, where: str) -> SubGroupPolicy:
    """Return the record of a policy; raise ValueError naming the field that cannot be read."""
    selector, size, minimum = written.label_selector, written.sub_group_size, written.min_sub_groups
    return SubGroupPolicy(
        name=written.name,
        selector=None if selector is None else label_selector(selector, f"{where}.labelSelector"),
        match_label_keys=tuple(written.match_label_keys),
        size=DEFAULT_SIZE if size is None else size,
        minimum=0 if minimum is None else minimum,
        topology=network_topology(written.network_topology, f"{where}.networkTopology"),
    )


def _fnv1a(data: bytes) -> int:
    found = 0x811C9DC5
    for byte in data:
        found = (found ^ byte) * 0x01000193 & 0xFFFFFFFF
    return found
