"""The objects that Volcano leaves are such that its own controller, as far as it is known here, does nothing more."""

import random
from typing import Any

import pytest

from tests.migration.volcano_job_kinds import KINDS, Obj, Pods, job
from tests.migration.volcano_job_sync import acts
from tests.migration.volcano_workloads import STATES, Belongings, belongings

QUEUES = {"default": {}}
PODS = Pods()


def made(kind: str, state: str, **more: Any) -> tuple[Obj, Belongings]:
    """Return a job as if the API server had created it, and what belongs to it."""
    one = job("train", "default", KINDS[kind](PODS))
    one["metadata"]["uid"] = "0a9d3c52-2f6a-4b0e-8d57-3f1c9b7e6a11"
    found = belongings(one, state, lambda pod: "node", **more)
    one["status"] = found.status
    for pod in found.pods:
        if pod["metadata"]["name"] in found.dying:
            pod["metadata"]["deletionTimestamp"] = "2026-11-20T10:00:00Z"
    return one, found


def acts_on(one: Obj, found: Belongings) -> Any:
    return acts(one, [] if found.group is None else [found.group], found.pods, QUEUES)


@pytest.mark.parametrize("kind", KINDS)
def test_a_job_that_runs_is_left_alone(kind: str) -> None:
    found = acts_on(*made(kind, "running"))

    assert found.restless == []
    assert found.phase == "Running"
    assert found.group_changes == []
    assert not found.objects_created


@pytest.mark.parametrize("kind", KINDS)
def test_a_job_without_room_waits(kind: str) -> None:
    for state in ("pending-without-pods", "pending-with-pods"):
        found = acts_on(*made(kind, state))
        assert (found.restless, found.phase, found.group_changes) == ([], "Pending", [])


@pytest.mark.parametrize("state", STATES)
def test_a_job_in_any_state_creates_no_pod(state: str) -> None:
    for kind in KINDS:
        found = acts_on(*made(kind, state))
        assert found.created == []
        assert found.deleted == []


def test_the_stand_in_sees_a_lost_pod_a_surplus_one_and_a_stranger() -> None:
    one, found = made("plain", "running")
    lost = found.pods.pop(0)
    assert acts_on(one, found).created == [lost["metadata"]["name"]]

    one, found = made("plain", "running")
    one["spec"]["tasks"][0]["replicas"] = 2
    assert acts_on(one, found).deleted == ["train-worker-2"]

    one, found = made("plain", "running")
    del found.pods[0]["metadata"]["annotations"]["volcano.sh/job-version"]
    assert acts_on(one, found).restless == ["creates train-worker-0", "does not know train-worker-0"]


def test_the_stand_in_sees_a_policy_a_mark_a_changed_group_and_a_missing_one() -> None:
    one, found = made("evictions", "running", ended={"train-worker-1": (2,)})
    assert acts_on(one, found).restless == ["executes RestartJob because of train-worker-1"]

    one, found = made("plain", "running")
    found.pods[1]["metadata"]["annotations"]["volcano.sh/controller-out-of-sync"] = "true"
    assert acts_on(one, found).deleted == ["train-worker-1"]

    one, found = made("plain", "running")
    assert found.group is not None
    found.group["spec"]["minResources"]["cpu"] = "7"
    assert acts_on(one, found).group_changes == ["minResources"]
    found.group = None
    assert acts_on(one, found).restless == ["creates a PodGroup"]


def test_quantities_are_written_as_go_writes_them() -> None:
    _, found = made("limited", "running")
    assert found.group is not None
    wanted = {"cpu": "500m", "requests.cpu": "500m", "limits.cpu": "3", "memory": "2Gi", "limits.memory": "4Gi"}
    assert wanted.items() <= found.group["spec"]["minResources"].items()


def test_a_job_that_has_ended_has_no_counters() -> None:
    rng = random.Random(1)
    one, found = made(rng.choice(list(KINDS)), "completed")
    assert one["status"]["version"] == 1
    assert "succeeded" not in one["status"]
    assert {pod["status"]["phase"] for pod in found.pods} == {"Succeeded"}
