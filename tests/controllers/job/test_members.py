"""Pods of a job: counts that follow every change equal a recount."""

import tracemalloc
from collections import Counter

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.controllers.job.builders import NOW, a_job_pod_body, a_member
from volcano_py.api import keys
from volcano_py.controllers.job import objects
from volcano_py.controllers.job.members import ENDED, Member, Members
from volcano_py.controllers.job.objects import JobPod
from volcano_py.controllers.job.phases import Counts

PHASES = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
TASKS = ("a", "b")


def recounted(members: Members, replicas: dict[str, int]) -> None:
    """Compare all that is counted with what a walk through all pods gives."""
    pods = list(members)
    staying = [pod for pod in pods if not pod.deleting]
    by_phase = Counter(pod.phase for pod in staying)
    assert members.counts() == Counts(
        by_phase["Pending"],
        by_phase["Running"],
        by_phase["Succeeded"],
        by_phase["Failed"],
        len(pods) - len(staying),
        by_phase["Unknown"],
    )
    assert [pod.name for pod in members.marked()] == sorted(pod.name for pod in staying if pod.killed)
    assert members.leaving == {
        pod.name for pod in pods if pod.deleting and not pod.killed and 0 <= pod.index < replicas.get(pod.task, 0)
    }
    for name in TASKS:
        task, wanted = members.task(name), replicas.get(name, 0)
        mine = [pod for pod in pods if pod.task == name]
        here = [pod for pod in mine if not pod.deleting]
        assert task.by_index == {pod.index: pod.name for pod in mine}
        assert task.missing == set(range(wanted)) - {pod.index for pod in mine}
        assert task.extra == {pod.name for pod in here if not 0 <= pod.index < wanted}
        assert task.active == {pod.name for pod in here if pod.phase not in ENDED}
        assert task.ended == {pod.name for pod in here if pod.phase in ENDED}
        assert +task.phases == Counter(pod.phase for pod in here)
        assert task.ready == sum(pod.ready for pod in here)
        assert task.restarts == sum(pod.restarts for pod in here)


_NAMES = st.builds(lambda task, index: f"train-{task}-{index}", st.sampled_from(TASKS), st.integers(0, 4))
_PODS = st.builds(
    a_member,
    _NAMES,
    st.sampled_from(PHASES),
    uid=st.sampled_from(["u1", "u2"]),
    deleting=st.booleans(),
    killed=st.booleans(),
    restarts=st.integers(0, 2),
    ready=st.booleans(),
)
_STEPS = st.one_of(
    st.tuples(st.just("put"), _PODS),
    st.tuples(st.just("remove"), _NAMES),
    st.tuples(st.just("delete"), _NAMES),
    st.tuples(st.just("expect"), st.dictionaries(st.sampled_from(TASKS), st.integers(0, 5))),
)


@settings(max_examples=150)
@given(st.lists(_STEPS, max_size=25))
def test_counts_equal_a_recount_after_any_changes(steps: list[tuple[str, object]]) -> None:
    members, replicas = Members(), dict[str, int]()
    for kind, what in steps:
        match kind, what:
            case "put", Member():
                members.put(msgspec.structs.replace(what))
            case "remove", str():
                members.remove(what)
            case "delete", str() if (pod := members.get(what)) is not None:
                members.mark_deleting(what, pod.uid)
            case "expect", dict():
                replicas = what
                members.expect(what.items())
    recounted(members, replicas)


def test_a_pod_is_read_with_all_that_decisions_need() -> None:
    pod = a_member(
        "train-worker-3", "Failed", uid="u", version=2, exit_code=7, restarts=1, partition="1", resource_version="9"
    )

    assert (pod.name, pod.task, pod.index, pod.uid, pod.version) == ("train-worker-3", "worker", 3, "u", 2)
    assert (pod.phase, pod.exit_code, pod.restarts, pod.partition) == ("Failed", 7, 2, "1")
    assert (pod.created, pod.resource_version, pod.deleting, pod.killed) == (NOW, "9", False, False)


@pytest.mark.parametrize(
    ("mark", "deleting", "killed", "dropped"),
    [
        (objects.KILLED, True, True, False),
        (objects.KILLED, False, True, False),
        (objects.NOT_NEEDED, True, False, True),
        (objects.NOT_NEEDED, False, False, False),  # it was not deleted after all, and may be needed again
        ("", True, False, False),
    ],
)
def test_a_pod_says_for_the_next_process_why_the_controller_deletes_it(
    mark: str, deleting: bool, killed: bool, dropped: bool
) -> None:
    body = a_job_pod_body(deleting=deleting)
    body["metadata"]["annotations"][keys.OUT_OF_SYNC] = mark

    pod = Member.of(msgspec.convert(body, JobPod))

    assert (pod.killed, pod.dropped) == (killed, dropped)


def test_a_pod_without_the_marks_of_a_job_is_read_as_of_no_task() -> None:
    pod = Member.of(msgspec.convert({"metadata": {"name": "x", "labels": {}, "annotations": {}}}, JobPod))

    assert (pod.task, pod.index, pod.version, pod.phase, pod.ready) == ("", -1, 0, "Pending", False)


def test_an_unknown_phase_is_unknown() -> None:
    assert a_member(phase="Dreaming").phase == "Unknown"


@pytest.mark.parametrize(
    ("phase", "ready", "expected"),
    [("Running", True, True), ("Running", False, False), ("Succeeded", False, True), ("Pending", True, False)],
)
def test_a_pod_is_ready_if_it_succeeded_or_runs_with_ready_containers(phase: str, ready: bool, expected: bool) -> None:
    assert a_member(phase=phase, ready=ready).ready is expected


@pytest.mark.parametrize(("phase", "ready"), [("Running", True), ("Pending", False), ("Failed", False)])
def test_a_pod_that_lists_no_containers_is_ready_when_it_runs(phase: str, ready: bool) -> None:
    body = a_job_pod_body(phase=phase)

    assert Member.of(msgspec.convert({**body, "status": {"phase": phase}}, JobPod)).ready is ready


def of_containers(*containers: object, phase: str = "Failed", init: object = ()) -> Member:
    status = {"phase": phase, "reason": "Evicted", "message": "disk full", "containerStatuses": containers}
    return Member.of(msgspec.convert({**a_job_pod_body(), "status": {**status, "initContainerStatuses": init}}, JobPod))


def ended(code: int, restarts: int = 0) -> dict[str, object]:
    return {"restartCount": restarts, "state": {"terminated": {"exitCode": code, "finishedAt": NOW}}}


def test_the_exit_code_is_that_of_the_first_container_that_failed() -> None:
    assert of_containers(ended(0), ended(3), ended(4)).exit_code == 3
    assert of_containers(ended(0), {"state": {}}).exit_code == 0
    assert of_containers(ended(3), phase="Running").exit_code == 0


def test_restarts_of_all_containers_count_and_the_failure_of_a_pod_is_one_more() -> None:
    init = [{"restartCount": 4}]

    assert of_containers(ended(1, 1), ended(1, 2), init=init).restarts == 8
    assert of_containers(ended(1, 1), phase="Running", init=init).restarts == 5


def test_a_failed_pod_says_why_and_when() -> None:
    assert (of_containers(ended(1)).reason, of_containers(ended(1)).ended) == ("Evicted", NOW)
    assert (of_containers(ended(1), phase="Running").reason, of_containers(phase="Failed").ended) == ("", None)


# Questions


def a_crowd() -> Members:
    members = Members()
    members.expect([("a", 3), ("b", 1)])
    for pod in (
        a_member("train-b-0", "Running", version=1),
        a_member("train-a-2", "Succeeded"),
        a_member("train-a-0", "Pending", version=1),
        a_member("train-a-1", "Running", deleting=True),
        a_member("train-a-3", "Failed"),
    ):
        members.put(pod)
    return members


def names(found: list[Member]) -> list[str]:
    return [pod.name for pod in found]


def test_victims_are_the_pods_that_do_not_terminate_by_name() -> None:
    assert names(a_crowd().victims()) == ["train-a-0", "train-b-0"]
    assert names(a_crowd().victims(ended=ENDED)) == ["train-a-0", "train-a-2", "train-a-3", "train-b-0"]
    assert names(a_crowd().victims(ended=ENDED, task="a")) == ["train-a-0", "train-a-2", "train-a-3"]
    assert names(a_crowd().victims(ended=ENDED, below=1)) == ["train-a-2", "train-a-3"]
    assert names(a_crowd().victims(ended={"Failed"})) == ["train-a-0", "train-a-3", "train-b-0"]
    assert names(a_crowd().victims(ended=ENDED, task="nobody")) == []


def test_pods_above_the_replicas_are_not_needed_and_all_of_a_task_that_is_gone() -> None:
    members = a_crowd()
    assert names(members.extra()) == ["train-a-3"]

    members.expect([("a", 1)])

    assert sorted(names(members.extra())) == ["train-a-2", "train-a-3", "train-b-0"]
    members.expect([("a", 5), ("b", 1)])
    assert members.extra() == []
    assert members.task("a").missing == {4}


def test_a_pod_that_somebody_deletes_is_leaving_only_while_it_is_needed() -> None:
    members = Members()
    members.put(a_member("train-a-1", deleting=True))
    assert members.leaving == set()

    members.expect([("a", 2)])
    assert members.leaving == {"train-a-1"}

    members.expect([("a", 1)])
    assert members.leaving == set()


def test_a_deletion_counts_only_for_the_pod_with_that_uid_and_once() -> None:
    members = Members()
    members.put(a_member("train-a-0", uid="u2"))

    members.mark_deleting("train-a-0", "u1")
    members.mark_deleting("nobody", "u1")
    assert members.counts().terminating == 0

    members.mark_deleting("train-a-0", "u2")
    members.mark_deleting("train-a-0", "u2")
    assert (members.counts().running, members.counts().terminating) == (0, 1)


def test_the_state_before_is_returned_and_a_pod_that_is_not_there_cannot_be_removed() -> None:
    members = Members()
    first, second = a_member(phase="Pending"), a_member()

    assert members.put(first) is None
    assert members.put(second) is first
    assert members.remove("train-worker-0") is second
    assert members.remove("train-worker-0") is None


def test_what_is_kept_of_a_job_grows_with_its_pods_and_not_with_what_it_asks_for() -> None:
    """Anybody may create thousands of jobs that ask for 200,000 pods each and never start."""
    tracemalloc.start()
    try:
        everyone = [Members() for _ in range(10)]
        for members in everyone:
            members.expect([("a", 200_000)])
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert taken < 100_000
    missing = everyone[0].task("a").missing
    assert len(missing) == 200_000
    assert missing.first(3) == (0, 1, 2)
