"""Contract: which values the kinds of Volcano take, by the definitions in `manifests/crds`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.volcano_kinds import OBJECTS, TASK, Kinds, Obj
from tests.tools.samples import CLAIM, every_field


@pytest.mark.parametrize("plural", OBJECTS)
async def test_a_valid_object_of_each_kind_is_accepted(kinds: Kinds, plural: str) -> None:
    answer = await kinds.post(plural)
    assert answer.status == 201, answer


TOO_LONG = "a" * 254
TEMPLATE = "spec.tasks.0.template.spec"
REFUSED: list[tuple[str, str, Any, str]] = [
    # job
    ("jobs", "spec.schedulerName", "s" * 64, "spec.schedulerName"),
    ("jobs", "spec.minAvailable", -1, "spec.minAvailable"),
    ("jobs", "spec.minAvailable", 1 << 31, "spec.minAvailable"),
    ("jobs", "spec.minAvailable", "1", "spec.minAvailable"),
    ("jobs", "spec.volumes", [{}], "spec.volumes[0].mountPath"),
    ("jobs", "spec.volumes", [{"mountPath": ""}], "spec.volumes[0].mountPath"),
    ("jobs", "spec.volumes", [{"mountPath": "/a:b"}], "spec.volumes[0].mountPath"),
    ("jobs", "spec.volumes", [{"mountPath": "/a", "volumeClaimName": TOO_LONG}], "spec.volumes[0].volumeClaimName"),
    (
        "jobs",
        "spec.volumes",
        [{"mountPath": "/a", "volumeClaim": {"resources": {"requests": {"storage": "lots"}}}}],
        "spec.volumes[0].volumeClaim.resources.requests.storage",
    ),
    ("jobs", "spec.tasks", [], "spec.tasks"),
    ("jobs", "spec.plugins", {"env": "x"}, "spec.plugins.env"),
    ("jobs", "spec.runningEstimate", 5, "spec.runningEstimate"),
    ("jobs", "spec.queue", "", "spec.queue"),
    ("jobs", "spec.queue", "A", "spec.queue"),
    ("jobs", "spec.queue", TOO_LONG, "spec.queue"),
    ("jobs", "spec.queue", "a\n", "spec.queue"),
    ("jobs", "spec.maxRetry", -1, "spec.maxRetry"),
    ("jobs", "spec.ttlSecondsAfterFinished", -1, "spec.ttlSecondsAfterFinished"),
    ("jobs", "spec.priorityClassName", "High", "spec.priorityClassName"),
    ("jobs", "spec.priorityClassName", TOO_LONG, "spec.priorityClassName"),
    ("jobs", "spec.minSuccess", 0, "spec.minSuccess"),
    ("jobs", "spec.networkTopology", {"mode": "firm"}, "spec.networkTopology.mode"),
    ("jobs", "spec.networkTopology", {"highestTierAllowed": -1}, "spec.networkTopology.highestTierAllowed"),
    ("jobs", "spec.networkTopology", {"highestTierName": TOO_LONG}, "spec.networkTopology.highestTierName"),
    ("jobs", "spec.tasks.0.name", "a" * 64, "spec.tasks[0].name"),
    ("jobs", "spec.tasks.0.name", "a.b", "spec.tasks[0].name"),
    ("jobs", "spec.tasks.0.replicas", -1, "spec.tasks[0].replicas"),
    ("jobs", "spec.tasks.0.minAvailable", -1, "spec.tasks[0].minAvailable"),
    ("jobs", "spec.tasks.0.topologyPolicy", "strict", "spec.tasks[0].topologyPolicy"),
    ("jobs", "spec.tasks.0.maxRetry", -1, "spec.tasks[0].maxRetry"),
    ("jobs", "spec.tasks.0.dependsOn", {"name": "a"}, "spec.tasks[0].dependsOn.name"),
    ("jobs", "spec.tasks.0.partitionPolicy", {"partitionSize": 1}, "spec.tasks[0].partitionPolicy.totalPartitions"),
    ("jobs", "spec.tasks.0.partitionPolicy", {"totalPartitions": 1}, "spec.tasks[0].partitionPolicy.partitionSize"),
    (
        "jobs",
        "spec.tasks.0.partitionPolicy",
        {"totalPartitions": 0, "partitionSize": 1},
        "spec.tasks[0].partitionPolicy.totalPartitions",
    ),
    (
        "jobs",
        "spec.tasks.0.partitionPolicy",
        {"totalPartitions": 1, "partitionSize": 0},
        "spec.tasks[0].partitionPolicy.partitionSize",
    ),
    (
        "jobs",
        "spec.tasks.0.partitionPolicy",
        {"totalPartitions": 1, "partitionSize": 1, "minPartitions": -1},
        "spec.tasks[0].partitionPolicy.minPartitions",
    ),
    ("jobs", "spec.policies", [{"event": "PodLost"}], "spec.policies[0].event"),
    ("jobs", "spec.policies", [{"events": ["PodFailed", "PodLost"]}], "spec.policies[0].events[1]"),
    ("jobs", "spec.policies", [{"exitCode": "1"}], "spec.policies[0].exitCode"),
    ("jobs", "spec.policies", [{"timeout": 5}], "spec.policies[0].timeout"),
    ("jobs", "spec.tasks.0.policies", [{"event": "PodLost"}], "spec.tasks[0].policies[0].event"),
    # pod template
    ("jobs", f"{TEMPLATE}.containers", None, "spec.tasks[0].template.spec.containers"),
    ("jobs", f"{TEMPLATE}.containers.0.name", None, "spec.tasks[0].template.spec.containers[0].name"),
    ("jobs", f"{TEMPLATE}.containers.0.command", "sleep", "spec.tasks[0].template.spec.containers[0].command"),
    (
        "jobs",
        f"{TEMPLATE}.containers.0.resources",
        {"limits": {"cpu": "much"}},
        "spec.tasks[0].template.spec.containers[0].resources.limits.cpu",
    ),
    (
        "jobs",
        f"{TEMPLATE}.containers.0.env",
        [{"name": "A"}, {"name": "A"}],
        "spec.tasks[0].template.spec.containers[0].env[1]",
    ),
    ("jobs", f"{TEMPLATE}.priority", 1 << 31, "spec.tasks[0].template.spec.priority"),
    ("jobs", f"{TEMPLATE}.hostNetwork", "yes", "spec.tasks[0].template.spec.hostNetwork"),
    # cron job
    ("cronjobs", "spec.schedule", None, "spec.schedule"),
    ("cronjobs", "spec.jobTemplate", None, "spec.jobTemplate"),
    ("cronjobs", "spec.startingDeadlineSeconds", -1, "spec.startingDeadlineSeconds"),
    ("cronjobs", "spec.concurrencyPolicy", "Wait", "spec.concurrencyPolicy"),
    ("cronjobs", "spec.successfulJobsHistoryLimit", -1, "spec.successfulJobsHistoryLimit"),
    ("cronjobs", "spec.failedJobsHistoryLimit", -1, "spec.failedJobsHistoryLimit"),
    ("cronjobs", "spec.jobTemplate.spec.tasks", [], "spec.jobTemplate.spec.tasks"),
    # command
    *(("commands", f"target.{field}", None, f"target.{field}") for field in ("apiVersion", "kind", "name", "uid")),
    # podgroup and queue
    ("podgroups", "spec.minMember", -1, "spec.minMember"),
    ("podgroups", "spec.queue", "A", "spec.queue"),
    ("podgroups", "spec.priorityClassName", TOO_LONG, "spec.priorityClassName"),
    ("podgroups", "spec.minResources", {"cpu": 1.5}, "spec.minResources.cpu"),
    ("podgroups", "spec.subGroupPolicy", [{"subGroupSize": 0}], "spec.subGroupPolicy[0].subGroupSize"),
    ("podgroups", "spec.subGroupPolicy", [{"minSubGroups": -1}], "spec.subGroupPolicy[0].minSubGroups"),
    ("podgroups", "status", {"phase": "Lost"}, "status.phase"),
    ("queues", "spec.weight", 0, "spec.weight"),
    ("queues", "spec.weight", 65536, "spec.weight"),
    ("queues", "spec.parent", "A", "spec.parent"),
    ("queues", "spec.priority", -1, "spec.priority"),
    ("queues", "spec.dequeueStrategy", "lifo", "spec.dequeueStrategy"),
    ("queues", "spec.type", TOO_LONG, "spec.type"),
    # job flow and job template
    ("jobflows", "spec.flows.0.name", None, "spec.flows[0].name"),
    ("jobflows", "spec.flows.0.name", "", "spec.flows[0].name"),
    ("jobflows", "spec.jobRetainPolicy", "keep", "spec.jobRetainPolicy"),
    (
        "jobflows",
        "spec.flows.0.dependsOn.probe",
        {"httpGetList": [{"port": 65536}]},
        "spec.flows[0].dependsOn.probe.httpGetList[0].port",
    ),
    (
        "jobflows",
        "spec.flows.0.dependsOn.probe",
        {"tcpSocketList": [{"taskName": "a"}]},
        "spec.flows[0].dependsOn.probe.tcpSocketList[0].port",
    ),
    (
        "jobflows",
        "spec.flows.0.dependsOn.probe",
        {"taskStatusList": [{"phase": "p" * 64}]},
        "spec.flows[0].dependsOn.probe.taskStatusList[0].phase",
    ),
    (
        "jobflows",
        "spec.flows.0.dependsOn.probe",
        {"taskStatusList": [{"taskName": TOO_LONG}]},
        "spec.flows[0].dependsOn.probe.taskStatusList[0].taskName",
    ),
    ("jobflows", "spec.flows.0.patch", {"jobSpec": {"queue": "A"}}, "spec.flows[0].patch.jobSpec.queue"),
    ("jobtemplates", "spec.tasks", [], "spec.tasks"),
    # hypernode
    ("hypernodes", "spec.tier", None, "spec.tier"),
    ("hypernodes", "spec.tier", -1, "spec.tier"),
    ("hypernodes", "spec.tierName", TOO_LONG, "spec.tierName"),
    ("hypernodes", "spec.members", [], "spec.members"),
    ("hypernodes", "spec.members.0.type", None, "spec.members[0].type"),
    ("hypernodes", "spec.members.0.type", "Rack", "spec.members[0].type"),
    ("hypernodes", "spec.members.0.selector.exactMatch", {}, "spec.members[0].selector.exactMatch.name"),
    ("hypernodes", "spec.members.0.selector.exactMatch.name", "", "spec.members[0].selector.exactMatch.name"),
    ("hypernodes", "spec.members.0.selector.exactMatch.name", "A", "spec.members[0].selector.exactMatch.name"),
    (
        "hypernodes",
        "spec.members.0.selector",
        {"regexMatch": {"pattern": ""}},
        "spec.members[0].selector.regexMatch.pattern",
    ),
    # the others
    ("numatopologies", "spec.cpuDetail", {"0": {"core": -1}}, "spec.cpuDetail.0.core"),
    ("numatopologies", "spec.numares", {"cpu": {"capacity": "4"}}, "spec.numares.cpu.capacity"),
    ("nodeshards", "spec", None, "spec"),
    ("nodeshards", "spec.nodesDesired", None, "spec.nodesDesired"),
    ("colocationconfigurations", "spec", None, "spec"),
    ("colocationconfigurations", "spec.memoryQos", {"highRatio": 101}, "spec.memoryQos.highRatio"),
    ("colocationconfigurations", "spec.memoryQos", {"lowRatio": -1}, "spec.memoryQos.lowRatio"),
    ("colocationconfigurations", "spec.memoryQos", {"minRatio": 101}, "spec.memoryQos.minRatio"),
]


def _named(case: tuple[str, str, Any, str]) -> str:
    plural, path, value, _ = case
    return f"{plural} {path} {'absent' if value is None else str(value)[:30]!r}".replace("-", "_")


@pytest.mark.parametrize("case", REFUSED, ids=_named)
async def test_a_value_outside_its_limits_is_refused_by_the_name_of_its_field(
    kinds: Kinds, case: tuple[str, str, Any, str]
) -> None:
    plural, path, value, field = case
    answer = await kinds.post(plural, {path: value})
    assert (answer.status, answer.reason) == (422, "Invalid"), answer
    assert field in answer.message


@pytest.mark.parametrize(
    ("selector", "reason"),
    [
        pytest.param({}, "one of exactMatch, regexMatch and labelMatch is needed", id="none"),
        pytest.param({"labelMatch": {}, "regexMatch": {"pattern": "a"}}, "only one of exactMatch,", id="two"),
        pytest.param({"exactMatch": {"name": "a"}, "labelMatch": {}}, "only one of exactMatch,", id="others"),
    ],
)
async def test_a_member_of_a_hypernode_is_selected_in_exactly_one_way(kinds: Kinds, selector: Obj, reason: str) -> None:
    answer = await kinds.post("hypernodes", {"spec.members.0.selector": selector})
    assert (answer.status, answer.reason) == (422, "Invalid"), answer
    assert reason in answer.message


ACCEPTED: list[tuple[str, str, Any]] = [
    ("jobs", "spec.tasks", None),
    ("jobs", "spec", {}),
    ("jobs", "spec.volumes", [{"mountPath": "/a", "volumeClaim": every_field(CLAIM)}]),
    ("jobs", "spec.plugins", {"env": [], "svc": ["--publish-not-ready-addresses=true"], "ssh": None}),
    ("jobs", "spec.policies", [{"event": "*", "action": "whatever", "timeout": "1h"}, {"exitCode": 3}]),
    (
        "jobs",
        "spec.policies",
        [
            {"events": ["PodPending", "PodRunning", "PodFailed", "PodEvicted", "Unknown"]},
            {"events": ["TaskCompleted", "TaskFailed", "JobUpdated", "OutOfSync", "CommandIssued"]},
        ],
    ),
    ("jobs", "spec.tasks.0.dependsOn", {"name": ["a"], "iteration": "some"}),
    ("jobs", "spec.tasks.0.topologyPolicy", "single-numa-node"),
    ("jobs", "spec.minAvailable", (1 << 31) - 1),
    ("jobs", "spec.queue", "a.b-c"),
    ("cronjobs", "spec.jobTemplate", {}),
    ("cronjobs", "spec.timeZone", "Europe/Berlin"),
    ("podgroups", "spec.minResources", {"cpu": 1, "count/pods": "3", "limits.nvidia.com/gpu": "1"}),
    ("queues", "spec.extendClusters", [{"name": "a", "weight": 1, "capacity": {"cpu": 1}}]),
    ("jobflows", "spec.flows.0.patch", {"jobSpec": {"tasks": [TASK]}}),
    ("hypernodes", "spec.members.0.selector", {"labelMatch": {"matchLabels": {"rack": "1"}}}),
    ("hypernodes", "spec.members.0.selector", None),
    ("numatopologies", "spec.podAllocations", [{"containerAllocations": [{"allocations": {"cpu": "0-3"}}]}]),
    ("colocationconfigurations", "spec.selector", {"matchLabels": {"a": "b"}}),
]


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: _named((*case, "")))
async def test_a_value_within_its_limits_is_accepted(kinds: Kinds, case: tuple[str, str, Any]) -> None:
    plural, path, value = case
    answer = await kinds.post(plural, {path: value})
    assert answer.status == 201, answer
