"""What a user may not read is unknown: no number is told of it, and no advice rests on it."""

from __future__ import annotations

import io
from typing import Any

import pytest

from tests.cli.vcctl.canned import Canned, call_of
from tests.cli.vcctl.gangs import NOW, facts, gang, machine, member, section, share, vcjob
from volcano_py.cli.vcctl import explaining
from volcano_py.client.api import Obj
from volcano_py.client.problem import ApiProblem
from volcano_py.client.waiting_facts import Facts, facts_of_job
from volcano_py.client.why import Explanation, why_job, why_queue
from volcano_py.kube.resource import EVENTS, NODES, PODGROUPS, PODS, QUEUES, VCJOBS, Resource

FALSE = ("not exist", "pods exist", "lacks", "controller-manager", "0 have", "0 of", "volcano-scheduler")
"""What only pods could tell."""


class Viewer(Canned):
    """The user has the role vcjob-viewer-role in one namespace: jobs and PodGroups, and nothing else."""

    readable = (VCJOBS, PODGROUPS)

    def list(self, kind: Resource, namespace: str = "", **query: str) -> list[Obj]:
        if kind not in self.readable or (not namespace and kind.namespaced):
            raise ApiProblem(403, "Forbidden", f"{kind.label} is forbidden: you cannot list it")
        return super().list(kind, namespace, **query)


class OnlyJobs(Viewer):
    readable = (VCJOBS,)


def job(phase: str = "Running", replicas: int = 2, minimum: int = 0, message: str = "", **counts: int) -> Any:
    found = vcjob(phase, replicas=replicas, cpu="100m", message=message)
    found["spec"]["minAvailable"] = minimum or replicas
    found["status"] |= counts
    return found


def explained(obj: Any, group: str = "Running", api: type[Canned] = Viewer, **status: Any) -> Explanation:
    of_job = gang(group, **status)
    of_job["spec"] |= {"minMember": obj["spec"]["minAvailable"]}
    lists: dict[Resource, list[Any]] = {VCJOBS: [obj], PODGROUPS: [of_job]}
    return why_job(facts_of_job(api(lists), "train", "a", "none"), NOW)


def text(found: Explanation) -> str:
    told = [" ".join(row) for one in found.sections if one.title != "Not seen" for row in one.rows]
    return "\n".join([found.answer, *told, *found.ways_out])


@pytest.mark.parametrize(
    ("obj", "answer"),
    [
        (job(running=2), "it does not wait: 2 of 2 pods run"),
        (job(replicas=1, running=1), "it does not wait: its pod runs"),
        (job(running=1, succeeded=1), "it does not wait: 1 of 2 pods runs, 1 has succeeded"),
        (
            job(replicas=5, minimum=1, running=2, pending=3),
            "its gang runs; 2 of 5 pods run, and whether the others have a node is unknown: pods cannot be read",
        ),
        (
            job("Pending", message="the pods of the job are created; they wait for nodes", pending=2),
            "it is Pending (the pods of the job are created; they wait for nodes); "
            "what it waits for is unknown, because pods cannot be read",
        ),
        (job("Pending"), "it is Pending; what it waits for is unknown, because pods cannot be read"),
        (job("Completed", succeeded=2), "it does not wait: it is Completed"),
        (job("Pending", minimum=3), "it can never start: minAvailable is 3, and its tasks have only 2 pods"),
    ],
)
@pytest.mark.parametrize("api", [Viewer, OnlyJobs])
def test_pods_that_cannot_be_read_are_not_called_missing(api: type[Canned], obj: Any, answer: str) -> None:
    found = explained(obj, api=api)

    assert found.answer == answer
    assert not [word for word in FALSE if word in text(found)]
    assert not [one for one in found.sections if one.title.startswith(("Nodes", "Who holds"))]
    assert any(row[0].startswith("pods cannot be read: ") for row in section(found, "Not seen"))


def test_the_status_of_the_job_says_how_many_pods_there_are() -> None:
    assert section(explained(job(running=2)), "Gang") == [
        ("needs 2 pods at the same time; the status of the job counts pods: 2 running",)
    ]
    assert section(explained(job("Pending", pending=1, failed=1)), "Gang") == [
        ("needs 2 pods at the same time; the status of the job counts pods: 1 pending, 1 failed",),
        ("which pods have a node is unknown: pods cannot be read",),
    ]
    assert "counts no pods" in section(explained(job("Pending")), "Gang")[0][0]


def test_the_way_out_is_the_right_that_is_missing() -> None:
    assert explained(job("Pending")).ways_out == ("ask for the right to list pods in namespace a",)


def test_what_the_scheduler_says_of_the_pod_group_is_known() -> None:
    refused = [{"type": "Unschedulable", "status": "True", "message": "no room"}]

    assert explained(job("Pending", pending=2), "Inqueue", conditions=refused).answer == "the scheduler says: no room"


class SeesQueues(Viewer):
    readable = (VCJOBS, PODGROUPS, QUEUES, NODES)


def of_queue(obj: Any, phase: str, *queues: Any) -> Explanation:
    lists: dict[Resource, list[Any]] = {VCJOBS: [obj], PODGROUPS: [gang(phase)], QUEUES: [share("root"), *queues]}
    lists[NODES] = [machine("n1", "1")]
    return why_job(facts_of_job(SeesQueues(lists), "train", "a", "none"), NOW)


def test_a_queue_without_room_is_known_before_the_pods_of_a_gang_are_made() -> None:
    full = share("research", may={"cpu": "10"}, used={"cpu": "6"})

    found = of_queue(job("Pending", replicas=4), "Pending", full)

    assert found.answer == "queue research has no room: it may use cpu 10, 6 is in use, and the gang needs 8 more"
    assert found.ways_out == (
        "vcctl queue why research",
        "wait until others in the queue end, or raise the capability of the queue",
    )
    found = of_queue(job("Pending", replicas=4, pending=4), "Inqueue", full)
    assert "unknown, because pods cannot be read" in found.answer
    assert section(found, "Queue")[0][-1] == "not full"


def test_a_closed_queue_stops_a_job_whose_pods_cannot_be_read_only_before_it_runs() -> None:
    closed = share("research", state="Closed")

    assert of_queue(job("Pending", replicas=4), "Pending", closed).answer == "queue research is Closed"
    assert of_queue(job(replicas=4, running=4), "Running", closed).answer == "it does not wait: 4 of 4 pods run"


def test_a_job_that_is_deleted_is_not_said_to_have_no_pods() -> None:
    obj = job(running=2)
    obj["metadata"] |= {"deletionTimestamp": "2026-03-01T11:58:00Z", "finalizers": ["foregroundDeletion"]}

    found = explained(obj)

    assert found.answer == "it is being deleted, and waits until its pods are gone"
    assert found.ways_out == ()


def unread(kind: Resource, **given: Any) -> Facts:
    return facts(notes=[f"{kind.plural} cannot be read: {kind.plural} is forbidden"], **given)


def test_a_pod_group_or_events_that_cannot_be_read_are_not_called_missing() -> None:
    found = why_job(unread(PODGROUPS, group=None, pods=[member(f"w-{number}") for number in range(4)]), NOW)
    assert found.answer == "it is Pending; what it waits for is unknown, because podgroups cannot be read"
    found = why_job(unread(EVENTS, group=gang("Pending")), NOW)
    assert found.answer == "it is Pending; what it waits for is unknown, because events cannot be read"
    found = why_job(unread(PODS, job=None, group=gang("Running", running=4)), NOW)
    assert found.answer == "it does not wait: 4 of 4 pods run"
    with pytest.raises(ApiProblem, match="there is no job of this name, and podgroups cannot be read: "):
        facts_of_job(OnlyJobs({}), "train", "a", "none")


@pytest.mark.parametrize(
    ("kind", "answer", "state"),
    [
        (PODGROUPS, "what waits in it is unknown: podgroups cannot be read", "Open; PodGroups: unknown"),
        (
            PODS,
            "no job waits for its start; whether pods of jobs that run wait is unknown: pods cannot be read",
            "Open; PodGroups: none",
        ),
    ],
)
def test_a_queue_whose_jobs_cannot_be_read_is_not_called_idle(kind: Resource, answer: str, state: str) -> None:
    found = why_queue(unread(kind, job=None, group=None), "research", NOW)

    assert (found.answer, section(found, "State")) == (answer, [(state,)])


def test_the_command_ends_well_for_a_viewer() -> None:
    out, of_job = io.StringIO(), gang("Running")
    of_job["spec"]["minMember"] = 2
    lists: dict[Resource, list[Any]] = {VCJOBS: [job(running=2)], PODGROUPS: [of_job]}

    assert explaining.why_job(call_of("job why train -n a --scheduler-url none", Viewer(lists), out, NOW)) == 0
    assert out.getvalue().startswith("job a/train: it does not wait: 2 of 2 pods run\n")
