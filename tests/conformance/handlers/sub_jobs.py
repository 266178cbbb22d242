"""Area sub_jobs: the sub-groups of a job, and the topologies that a job and its sub-groups ask for."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from tests.conformance.operations import Operation, Outcome, same
from tests.conformance.row_files import Case
from volcano_py.api import scheduling as wire
from volcano_py.model import sub_groups
from volcano_py.model.hyper_nodes import HyperNodeTree
from volcano_py.model.statuses import READY_STATUSES, TaskStatus
from volcano_py.model.sub_groups import NetworkTopology, SubGroupPolicy, TaskCounts

_EMPTY: Final = HyperNodeTree(())
_SUB_JOB: Final = frozenset({"minAvailable", "tasks"})


def topology_of(written: Mapping[str, Any]) -> NetworkTopology | None:
    """Return the topology of a job, a policy or a row, None if it has none."""
    found = written.get("networkTopology")
    return None if found is None else sub_groups.network_topology(msgspec.convert(found, wire.NetworkTopology), "row")


def hard_topology(case: Case) -> Outcome:
    topology = topology_of(case.input)
    limit = sub_groups.tier_limit(topology, _EMPTY)
    return {
        "hard": limit is not None and not limit.soft and not limit.problem,
        "highestTier": 0 if topology is None else topology.highest_tier_allowed or 0,
    }


def _policy(written: Mapping[str, Any]) -> SubGroupPolicy:
    return sub_groups.sub_group_policy(msgspec.convert(written, wire.SubGroupPolicy), "row")


def _new_sub_job(case: Case) -> Outcome:
    given = case.input
    policy = _policy(given["policy"]) if "policy" in given else None
    made = sub_groups.sub_group_with(given["job"], given["gid"], given["uid"], policy, given.get("matchValues", ()))
    return {
        "subJob": {
            "gid": made.group_id,
            "uid": made.id,
            "job": made.job,
            "minAvailable": made.min_available,
            "matchIndex": made.match_index,
            "networkTopology": _written(made.topology),
        }
    }


def _written(topology: NetworkTopology | None) -> dict[str, Any] | None:
    if topology is None:
        return None
    tier, name = topology.highest_tier_allowed, topology.highest_tier_name
    return {
        "mode": topology.mode.value,
        **({} if tier is None else {"highestTierAllowed": tier}),
        **({"highestTierName": name} if name else {}),
    }


def _listed(expected: Mapping[str, Any], actual: Mapping[str, Any], _: Mapping[str, Any]) -> None:
    assert {key: actual[key] for key in expected} == expected


def _match_values(case: Case) -> Outcome:
    """Ask a policy; one that cannot be read takes no pod, because its PodGroup is left out."""
    try:
        policy = _policy(case.input["policy"])
    except ValueError:
        return {"values": None}
    values = sub_groups.match_values(policy, case.input["pod"].get("metadata", {}).get("labels", {}))
    return {"values": None if values is None else list(values)}


def _sub_job_id(case: Case) -> Outcome:
    given = case.input
    return {"id": sub_groups.sub_group_name(given["job"], given["policy"], given["matchValues"])}


def _counts(case: Case) -> TaskCounts:
    tasks = {TaskStatus[status.upper()]: found for status, found in case.input["tasks"].items()}
    assert all(facts.keys() <= {"bestEffort"} for found in tasks.values() for facts in found.values())
    return TaskCounts(
        ready=sum(len(tasks.get(status, ())) for status in READY_STATUSES),
        pipelined=len(tasks.get(TaskStatus.PIPELINED, ())),
        best_effort=sum(facts.get("bestEffort", False) for facts in tasks.get(TaskStatus.PENDING, {}).values()),
    )


def _to_hard(case: Case) -> Outcome:
    before = topology_of(case.input)
    after = sub_groups.hardened(before, case.input["maxTier"])
    return {"changed": after != before, **_mode_and_tier(after)}


def _job_to_hard(case: Case) -> Outcome:
    policies = [_policy(written) for written in case.input.get("subGroupPolicies", ())]
    job, found = sub_groups.all_hardened(topology_of(case.input), policies, case.input["maxTier"])
    below = [topology for topology in found if topology is not None]
    limits = [sub_groups.tier_limit(topology, _EMPTY) for topology in (job, *found)]
    assert all(topology.hard and (topology.highest_tier_allowed or 0) > 0 for topology in below)
    return {
        **_mode_and_tier(job),
        "subGroupModes": [topology.mode.value for topology in below],
        "subGroupTiers": [topology.highest_tier_allowed for topology in below],
        "containsHard": any(limit is not None and not limit.soft for limit in limits),
    }


def _mode_and_tier(topology: NetworkTopology | None) -> dict[str, Any]:
    if topology is None:
        return {"mode": "", "highestTier": None}
    return {"mode": topology.mode.value, "highestTier": topology.highest_tier_allowed}


def _unless_null(expected: Any, actual: Any, _: Mapping[str, Any]) -> None:
    """Compare unless the row leaves it open."""
    assert expected in (None, "", actual)


OPERATIONS: Final = {
    "newSubJob": Operation(
        _new_sub_job, {"subJob": _listed}, frozenset({"job", "gid", "uid", "policy", "matchValues"})
    ),
    "isHardTopology": Operation(hard_topology, {"hard": same, "highestTier": same}, frozenset({"networkTopology"})),
    "isSoftTopology": Operation(
        lambda case: {"soft": (found := topology_of(case.input)) is not None and found.soft},
        {"soft": same},
        frozenset({"networkTopology"}),
    ),
    "matchValues": Operation(_match_values, {"values": same}, frozenset({"policy", "pod"})),
    "subJobID": Operation(_sub_job_id, {"id": same}, frozenset({"job", "policy", "matchValues"})),
    "isPipelined": Operation(
        lambda case: {"result": sub_groups.is_pipelined(_counts(case), case.input["minAvailable"])},
        {"result": same},
        _SUB_JOB,
    ),
    "isReady": Operation(
        lambda case: {"result": sub_groups.is_ready(_counts(case), case.input["minAvailable"])},
        {"result": same},
        _SUB_JOB,
    ),
    "toHardTopology": Operation(
        _to_hard,
        {"changed": same, "mode": same, "highestTier": _unless_null},
        frozenset({"networkTopology", "maxTier"}),
    ),
    "jobToHardTopology": Operation(
        _job_to_hard,
        {
            "mode": _unless_null,
            "highestTier": _unless_null,
            "subGroupModes": same,
            "subGroupTiers": same,
            "containsHard": same,
        },
        frozenset({"networkTopology", "subGroupPolicies", "maxTier"}),
    ),
}
