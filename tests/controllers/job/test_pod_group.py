"""The PodGroup of a job: what is created, and what follows later changes of the job."""

from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from tests.controllers.job.builders import UID, a_job_task, a_ready_job
from tests.controllers.job.world import merged
from volcano_py.api.batch import Job
from volcano_py.api.scheduling import PodGroup
from volcano_py.controllers.job.pod_group import create, follow, version_of

CRD = Path(__file__).parents[3] / "manifests" / "crds" / "scheduling.volcano.sh_podgroups.yaml"
PARTITIONS = {"partitionSize": 2, "totalPartitions": 2, "minPartitions": 1}


def created(job: Job, priorities: dict[str, int] | None = None, waiting: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the PodGroup that is created."""
    body = create(job, priorities or {}, waiting).body
    assert isinstance(body, dict)
    return body


def as_stored(body: dict[str, Any]) -> dict[str, Any]:
    """Return a PodGroup as the API server stores it: with the defaults of its definition."""
    stored = _defaulted(msgspec.json.decode(msgspec.json.encode(body)), _schema())
    return {**stored, "metadata": {**stored["metadata"], "uid": "uid-group"}}


@cache
def _schema() -> dict[str, Any]:
    definition = yaml.safe_load(CRD.read_text())
    schema: dict[str, Any] = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def _defaulted(value: Any, schema: dict[str, Any]) -> Any:
    if isinstance(value, dict):
        fields = schema.get("properties", {})
        missing = {name: one["default"] for name, one in fields.items() if "default" in one and name not in value}
        more = schema.get("additionalProperties") or {}
        return {name: _defaulted(one, fields.get(name, more)) for name, one in {**value, **missing}.items()}
    if isinstance(value, list):
        return [_defaulted(one, schema.get("items", {})) for one in value]
    return value


JOBS = {
    "plain": a_ready_job(),
    "classes": a_ready_job(
        a_job_task("a", template={"spec": {"priorityClassName": "high"}}), a_job_task("b"), priorityClassName="low"
    ),
    "partitions": a_ready_job(a_job_task(replicas=4, partitionPolicy=PARTITIONS)),
    "hard-topology": a_ready_job(
        a_job_task(replicas=4, partitionPolicy={**PARTITIONS, "networkTopology": {"highestTierAllowed": 1}}),
        networkTopology={"highestTierAllowed": 2},
    ),
    "named-tier": a_ready_job(
        a_job_task(
            replicas=4,
            partitionPolicy={**PARTITIONS, "networkTopology": {"mode": "soft", "highestTierName": "rack"}},
        ),
        networkTopology={"mode": "hard", "highestTierName": "rack"},
    ),
    "no-pods": a_ready_job(a_job_task(replicas=0)),
    "no-requests": a_ready_job(a_job_task(template={"spec": {"containers": [{"name": "main"}]}})),
    "odd-quantities": a_ready_job(
        a_job_task(template={"spec": {"containers": [{"resources": {"requests": {"cpu": "0.5", "memory": "1024Mi"}}}]}})
    ),
    "zero-minimum": a_ready_job(a_job_task("a", 2, minAvailable=0), a_job_task("b", 1)),
}


@pytest.mark.parametrize("name", JOBS)
def test_what_was_created_needs_no_change_also_with_the_defaults_of_the_server(name: str) -> None:
    job = JOBS[name]
    priorities = {"high": 10, "low": 1}

    stored = as_stored(created(job, priorities))

    assert follow(job, msgspec.convert(stored, PodGroup), priorities) is None


@pytest.mark.parametrize("before", JOBS)
@pytest.mark.parametrize("after", JOBS)
def test_a_patch_brings_the_group_up_to_the_job_and_the_next_one_changes_nothing(before: str, after: str) -> None:
    stored = as_stored(created(JOBS[before]))
    group = msgspec.convert(stored, PodGroup)

    patch = follow(JOBS[after], group, {})

    if patch is not None:
        assert patch.body["metadata"] == {"uid": "uid-group"}
        changed = msgspec.convert(as_stored(merged(stored, patch.body)), PodGroup)
        assert follow(JOBS[after], changed, {}) is None
        assert changed.spec.min_member == JOBS[after].spec.min_available


def test_the_group_carries_name_marks_and_owner_of_the_job() -> None:
    job = a_ready_job(
        queue="team",
        schedulerName="mine",
        meta={
            "labels": {"l": "1"},
            "annotations": {"a": "1", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
        },
        status={"version": 3},
        minAvailable=1,
    )

    body = created(job)

    meta = body["metadata"]
    assert (meta["name"], meta["namespace"], meta["labels"]) == (f"train-{UID}", "ns", {"l": "1"})
    assert meta["annotations"] == {"a": "1", "volcano.sh/job-version": "3", "volcano.sh/scheduler-name": "mine"}
    assert [(owner["kind"], owner["uid"], owner["controller"]) for owner in meta["ownerReferences"]] == [
        ("Job", UID, True)
    ]
    assert (body["spec"]["queue"], body["spec"]["minMember"]) == ("team", 1)
    assert "status" not in body


def test_each_task_has_its_minimum() -> None:
    tasks = a_job_task("a", 3, minAvailable=1), a_job_task("b", 4, partitionPolicy=PARTITIONS), a_job_task("c", 2)

    assert created(a_ready_job(*tasks))["spec"]["minTaskMember"] == {"a": 1, "b": 2, "c": 2}


def test_partitions_become_sub_groups() -> None:
    topology = {"mode": "hard", "highestTierAllowed": 1}
    task = a_job_task("b", 4, partitionPolicy={**PARTITIONS, "networkTopology": topology})

    assert created(a_ready_job(a_job_task("a"), task))["spec"]["subGroupPolicy"] == [
        {
            "name": "b",
            "subGroupSize": 2,
            "minSubGroups": 1,
            "labelSelector": {"matchLabels": {"volcano.sh/task-spec": "b"}},
            "matchLabelKeys": ["volcano.sh/partition-id"],
            "networkTopology": topology,
        }
    ]


def test_a_tier_by_number_counts_before_one_by_name() -> None:
    both = {"mode": "hard", "highestTierAllowed": 2, "highestTierName": "rack"}

    assert created(a_ready_job(networkTopology=both))["spec"]["networkTopology"] == {
        "mode": "hard",
        "highestTierAllowed": 2,
    }


def test_tasks_that_wait_for_others_do_not_count_for_the_minimum() -> None:
    tasks = a_job_task("a", 2), a_job_task("b", 3, dependsOn={"name": ["a"]})

    waiting = created(a_ready_job(*tasks), waiting=("b",))["spec"]
    assert (waiting["minMember"], waiting["minTaskMember"]) == (2, {"a": 2})

    group = msgspec.convert(as_stored({**created(a_ready_job(*tasks), waiting=("b",))}), PodGroup)
    patch = follow(a_ready_job(*tasks), group, {})
    assert patch is not None
    assert patch.body["spec"] == {"minMember": 5, "minTaskMember": {"b": 3}}


def test_a_task_that_waits_again_loses_its_minimum() -> None:
    tasks = a_job_task("a", 2), a_job_task("b", 3, dependsOn={"name": ["a"]})
    group = msgspec.convert(as_stored(created(a_ready_job(*tasks))), PodGroup)

    patch = follow(a_ready_job(*tasks), group, {}, ("b",))

    assert patch is not None
    assert patch.body["spec"] == {"minMember": 2, "minTaskMember": {"b": None}}


def test_a_smaller_minimum_of_the_job_stays_while_tasks_wait() -> None:
    tasks = a_job_task("a", 4), a_job_task("b", 3, dependsOn={"name": ["a"]})

    assert created(a_ready_job(*tasks, minAvailable=2), waiting=("b",))["spec"]["minMember"] == 2


@pytest.mark.parametrize(
    ("after", "changed"),
    [
        ({"minAvailable": 1}, {"minMember": 1, "minResources": {"cpu": "1"}}),
        ({"priorityClassName": "high"}, {"priorityClassName": "high"}),
    ],
)
def test_a_change_of_the_job_changes_only_what_follows_from_it(after: dict[str, Any], changed: dict[str, Any]) -> None:
    group = msgspec.convert(as_stored(created(a_ready_job())), PodGroup)

    patch = follow(a_ready_job(**after), group, {"high": 1})

    assert patch is not None
    assert patch.body["spec"].keys() == changed.keys()
    for name, value in changed.items():
        found = patch.body["spec"][name]
        assert found == value or {**found, **value} == found


def test_queue_labels_and_topology_of_a_group_stay_as_they_were() -> None:
    group = msgspec.convert(as_stored(created(a_ready_job())), PodGroup)
    job = a_ready_job(queue="other", networkTopology={"mode": "hard"}, meta={"labels": {"new": "1"}})

    assert follow(job, group, {}) is None


def test_what_somebody_else_adds_to_a_group_stays() -> None:
    stored = as_stored(created(a_ready_job()))
    stored["spec"]["minTaskMember"]["theirs"] = 1

    assert follow(a_ready_job(), msgspec.convert(stored, PodGroup), {}) is None


@pytest.mark.parametrize(("text", "version"), [("3", 3), ("", None), ("x", None), (None, None)])
def test_a_group_says_for_which_version_of_the_job_it_is(text: str | None, version: int | None) -> None:
    annotations = {} if text is None else {"volcano.sh/job-version": text}
    group = msgspec.convert({"metadata": {"name": "g", "annotations": annotations}}, PodGroup)

    assert version_of(group) == version
