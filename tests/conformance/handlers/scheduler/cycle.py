"""Operation cycle: load the objects, run one session with the given actions, and compare its decisions."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from tests.conformance.handlers.scheduler.world import INPUTS, clock_of, load, policy_of
from tests.conformance.operations import Operation, Outcome, same, same_set
from tests.conformance.row_files import Case
from volcano_py.framework.state.memory import Memory
from volcano_py.model.decisions import (
    Bind,
    Decision,
    Evict,
    LiftGate,
    Nominate,
    RecordEvent,
    SetPodCondition,
    SetPodGroupStatus,
)
from volcano_py.model.hyper_nodes import NodeNames
from volcano_py.model.objects import JobKey
from volcano_py.model.resources import EPSILON
from volcano_py.model.statuses import ALLOCATED_STATUSES, PodGroupPhase, TaskStatus
from volcano_py.model.sub_groups import SubGroupId, sub_group_of, tier_limits
from volcano_py.scheduler import run_cycle
from volcano_py.snapshot.columns import Snapshot


@dataclass(slots=True)
class Decided:
    """The decisions of one cycle, sorted by kind."""

    binds: list[Bind] = field(default_factory=list)
    evictions: list[Evict] = field(default_factory=list)
    phases: dict[JobKey, str] = field(default_factory=dict)

    def take(self, batch: tuple[Decision, ...]) -> None:
        for decision in batch:
            match decision:
                case Bind():
                    self.binds.append(decision)
                case Evict():
                    self.evictions.append(decision)
                case SetPodGroupStatus():
                    self.phases[decision.job] = decision.phase
                case SetPodCondition() | RecordEvent() | Nominate() | LiftGate():
                    pass  # rows compare neither texts of cycles nor conditions of pending pods
                case _:
                    raise AssertionError(f"the runner does not know what {decision} does to a row")


def _run(case: Case) -> Outcome:
    policy, snapshot = policy_of(case), load(case)
    held_before = snapshot.jobs.held.copy()
    scattered_before = _scattered(snapshot)
    idle_before = snapshot.nodes.idle.copy()
    decided = Decided()
    decided.phases = {
        record.key: PodGroupPhase.of(record.phase).label for record in snapshot.jobs.records if record is not None
    }
    _, report = run_cycle(snapshot, policy, clock_of(case), 0, Memory(), decided.take)
    assert not report.failures
    bound = Counter(bind.task for bind in decided.binds)
    assert max(bound.values(), default=1) == 1, "a pod is bound twice"
    gone = Counter(eviction.task for eviction in decided.evictions)
    assert max(gone.values(), default=1) == 1, "a pod is evicted twice"
    over = (snapshot.nodes.idle < -EPSILON) & (snapshot.nodes.idle < idle_before)
    assert not over.any(), "a node has more than is allocatable"
    arrived = [bind for bind in decided.binds if not bind.prepare]  # nobody prepares binds here
    return {
        "bindMap": {str(bind.task): bind.node for bind in arrived},
        "bindsNum": len(arrived),
        "evicted": [str(eviction.task) for eviction in decided.evictions],
        "evictNum": len(decided.evictions),
        "minimalBindCheck": not _split_gangs(snapshot, decided, held_before)
        and _scattered(snapshot) <= scattered_before,
        "bindNumsInHyperNode": _binds_per_domain(snapshot, decided),
        "pipelined": _pipelined(snapshot),
        "podGroupPhase": {str(key): phase for key, phase in decided.phases.items()},
        "taskStatusNums": _task_statuses(snapshot),
    }


def _split_gangs(snapshot: Snapshot, decided: Decided, held_before: Any) -> list[JobKey]:
    """Return the jobs that have new binds although they are still below their minimum."""
    rows = {record.key: row for row, record in enumerate(snapshot.jobs.records) if record is not None}
    split = []
    for key, more in Counter(bind.job for bind in decided.binds).items():
        row = rows[key]
        if held_before[row] + more < snapshot.jobs.min_available[row]:
            split.append(key)
    return split


def _scattered(snapshot: Snapshot) -> set[tuple[JobKey, SubGroupId | None]]:
    """Return the jobs and sub-groups with a hard topology whose tasks are below no single HyperNode that it allows."""
    tree = snapshot.facts.hyper_nodes
    domains = _domains(snapshot)
    held: dict[tuple[JobKey, SubGroupId | None, int], set[int]] = {}  # with the highest tier that is allowed -> nodes
    for row in np.flatnonzero(np.isin(snapshot.tasks.status, ALLOCATED_STATUSES)):
        task = snapshot.tasks.records[row]
        job = None if task is None or task.key is None else snapshot.jobs.records[snapshot.tasks.job[row]]
        if task is None or job is None:
            continue
        own, below = tier_limits(job.network_topology, job.sub_group_policies, tree)
        which = sub_group_of(job.sub_group_policies, task.label_map)
        for whose, limit in ((None, own), (which, None if which is None else below[which.policy])):
            if limit is not None and not limit.soft and limit.tier < tree.top_tier:
                held.setdefault((job.key, whose, limit.tier), set()).add(int(snapshot.tasks.node[row]))
    return {
        (key, whose)
        for (key, whose, tier), nodes in held.items()
        if tier < tree.top_tier
        and not any(nodes <= rows and tree.by_name[name].tier <= tier for name, rows in domains.items())
    }


def _domains(snapshot: Snapshot) -> dict[str, set[int]]:
    statics = snapshot.nodes.statics
    return snapshot.facts.hyper_nodes.domains(NodeNames(statics.names, [record.labels for record in statics.records]))


def _binds_per_domain(snapshot: Snapshot, decided: Decided) -> list[int]:
    """Return the number of binds below each HyperNode of the lowest tier that has any, sorted."""
    domains = _domains(snapshot)
    lowest = next(iter(snapshot.facts.hyper_nodes.by_tier.values()), ())
    rows = [snapshot.nodes.statics.row_of[bind.node] for bind in decided.binds]
    return sorted(count for name in lowest if (count := sum(row in domains[name] for row in rows)))


def _without_zeros(expected: list[int], actual: list[int], _: Any) -> None:
    assert actual == sorted(count for count in expected if count)


def _pipelined(snapshot: Snapshot) -> dict[str, list[str]]:
    """Return the nodes on which tasks are pipelined, by PodGroup."""
    nodes: dict[str, list[str]] = {}
    for row, record in enumerate(snapshot.tasks.records):
        if record is not None and record.key is not None and snapshot.tasks.status[row] == TaskStatus.PIPELINED:
            nodes.setdefault(str(record.key), []).append(snapshot.nodes.names[int(snapshot.tasks.node[row])])
    return nodes


def _task_statuses(snapshot: Snapshot) -> dict[str, dict[str, int]]:
    return {
        str(record.key): {status.label: int(snapshot.jobs.counts[status, row]) for status in TaskStatus}
        for row, record in enumerate(snapshot.jobs.records)
        if record is not None
    }


def _on_listed_nodes(expected: Mapping[str, list[str]], actual: Mapping[str, list[str]], _: Any) -> None:
    for key, allowed in expected.items():
        assert actual.get(key), f"PodGroup {key} has no pipelined task"
        assert set(actual[key]) <= set(allowed)


def _listed(expected: Mapping[str, Any], actual: Mapping[str, Any], _: Any) -> None:
    """Compare only the listed keys, at both levels."""
    for key, wanted in expected.items():
        found = actual[key]
        assert found == wanted if not isinstance(wanted, dict) else {name: found[name] for name in wanted} == wanted


OPERATION: Final = Operation(
    _run,
    {
        "bindMap": same,
        "bindsNum": same,
        "evicted": same_set,
        "evictNum": same,
        "minimalBindCheck": same,
        "bindNumsInHyperNode": _without_zeros,
        "pipelined": _on_listed_nodes,
        "podGroupPhase": _listed,
        "taskStatusNums": _listed,
    },
    INPUTS,
    needs_session=True,
)
