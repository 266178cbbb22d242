"""What happens to pods, as events that policies answer."""

from typing import Any

import msgspec
import pytest

from tests.controllers.job.builders import UID, a_job_task, a_member, a_ready_job, a_vcjob, members_of
from volcano_py.api.batch import Job
from volcano_py.controllers.job import happenings
from volcano_py.controllers.job.happenings import Trigger, is_complete, missed, present, removed
from volcano_py.controllers.job.members import Member, Members

JOB = a_ready_job(a_job_task(replicas=2))


def changes(*states: Member, others: tuple[Member, ...] = (), budget: int = 3) -> list[list[str]]:
    """Return the events of each state of a pod, one after the other."""
    members = members_of(JOB, others)
    found = []
    for state in states:
        before = members.put(state)
        found.append(happenings.changed(members, before, state, budget))
    return found


def test_a_pod_that_starts_and_fails_says_so_once() -> None:
    states = [a_member(phase=phase) for phase in ("Pending", "Pending", "Running", "Running", "Failed", "Failed")]

    assert changes(*states, budget=-1) == [["PodPending"], [], ["PodRunning"], [], ["PodFailed"], []]


def test_a_pod_whose_state_is_unknown_says_nothing_and_runs_again_afterwards() -> None:
    states = [a_member(phase=phase) for phase in ("Running", "Unknown", "Running")]

    assert changes(*states) == [["PodRunning"], [], ["PodRunning"]]


def test_another_pod_with_the_same_name_starts_afresh() -> None:
    assert changes(a_member(uid="u1", phase="Failed"), a_member(uid="u2", phase="Failed"), budget=-1) == [
        ["PodFailed"],
        ["PodFailed"],
    ]


@pytest.mark.parametrize("marks", [{"killed": True}, {"deleting": True}, {"killed": True, "deleting": True}])
def test_pods_that_are_killed_or_deleted_say_nothing(marks: dict[str, Any]) -> None:
    assert changes(a_member(phase="Pending"), a_member(phase="Failed", **marks)) == [["PodPending"], []]


def test_a_task_completes_with_the_last_of_its_pods() -> None:
    first, second = a_member(phase="Succeeded"), a_member("train-worker-1", "Succeeded")

    assert changes(first, second) == [[], ["TaskCompleted"]]


def test_a_task_does_not_complete_while_a_pod_is_missing_or_terminates() -> None:
    gone = a_member("train-worker-1", "Succeeded", deleting=True)

    assert changes(a_member(phase="Succeeded")) == [[]]
    assert changes(a_member(phase="Succeeded"), others=(gone,)) == [[]]


def test_pods_beyond_the_replicas_do_not_complete_a_task() -> None:
    beyond = a_member("train-worker-5", "Succeeded")

    assert changes(a_member(phase="Succeeded"), others=(beyond,)) == [[]]


def test_a_task_without_replicas_never_completes() -> None:
    members = Members()

    assert not is_complete(members, "worker")


@pytest.mark.parametrize(
    ("budget", "restarts", "fails"),
    [(3, 2, False), (3, 3, True), (3, 4, True), (0, 1, True), (-1, 100, False)],
)
def test_a_task_fails_when_its_restarts_are_used_up(budget: int, restarts: int, fails: bool) -> None:
    events = changes(a_member(), a_member(restarts=restarts), budget=budget)[1]

    assert ("TaskFailed" in events) is fails


def test_restarts_of_all_pods_of_a_task_count_together_and_failed_pods_count_as_one() -> None:
    others = (a_member("train-worker-1", restarts=1),)
    failed = a_member(phase="Failed", exit_code=1)

    assert changes(a_member(), failed, others=others, budget=2)[1] == ["PodFailed", "TaskFailed"]
    assert changes(a_member(), failed, others=others, budget=3)[1] == ["PodFailed"]


def test_restarts_of_pods_that_were_killed_count_too() -> None:
    members = members_of(JOB, [])
    members.task("worker").spent = 2
    members.put(state := a_member(restarts=1))

    assert happenings.changed(members, None, state, 3) == ["PodRunning", "TaskFailed"]


def test_the_failure_of_a_task_is_told_once_for_each_restart_beyond_its_budget() -> None:
    states = [a_member(restarts=3), a_member(restarts=3, ready=False), a_member(restarts=4)]

    assert changes(*states, budget=3) == [["PodRunning", "TaskFailed"], [], ["TaskFailed"]]


@pytest.mark.parametrize(
    ("pod", "events"),
    [
        pytest.param(a_member(), ["PodEvicted"], id="deleted-at-once"),
        pytest.param(a_member(deleting=True), ["PodEvicted"], id="deleted-with-grace"),
        pytest.param(a_member(phase="Succeeded"), ["Completed"], id="succeeded"),
        pytest.param(a_member(phase="Succeeded", deleting=True), ["PodEvicted"], id="succeeded-when-told-to-stop"),
        pytest.param(a_member(killed=True), [], id="killed-by-us"),
        pytest.param(a_member("train-worker-2"), [], id="not-needed"),
        pytest.param(a_member("train-nobody-0"), [], id="of-no-task"),
    ],
)
def test_a_pod_that_is_gone_was_evicted_unless_we_killed_it_or_nobody_needs_it(pod: Member, events: list[str]) -> None:
    assert removed(members_of(JOB, []), pod) == events


def test_the_present_state_says_what_happened_and_whole_tasks_speak_once() -> None:
    job = a_ready_job(a_job_task("a", 2), a_job_task("b", 3))
    pods = [
        *(a_member(f"train-a-{index}", "Succeeded") for index in (0, 1)),
        a_member("train-b-0", "Failed", exit_code=1, restarts=1),
        a_member("train-b-1", "Running", restarts=1),
        a_member("train-b-2", "Failed", killed=True),
    ]

    found = present(members_of(job, pods), {"a": 3, "b": 2}, {})

    assert [(one.event, one.member.name) for one in found if one.member] == [
        ("TaskCompleted", "train-a-0"),
        ("PodFailed", "train-b-0"),
        ("TaskFailed", "train-b-0"),
        ("PodRunning", "train-b-1"),
    ]


def test_a_trigger_becomes_a_request_with_all_that_policies_ask_for() -> None:
    pod = a_member(phase="Failed", exit_code=3, version=2, partition="1")
    pod.retry = 1

    request = Trigger("PodFailed", pod).request(UID)

    assert request == ("PodFailed", "", UID, "worker", "train-worker-0", "uid-train-worker-0", "1", 3, 2, 1)
    assert Trigger("PodEvicted", pod).request(UID).exit_code == 0
    group = Trigger("Unknown").request(UID)
    assert (group.version, group.pod) == (None, "")


# Evictions that nobody saw


def job_counting(noted: dict[str, str] | None = None, partition: bool = False, **counts: int) -> Job:
    """Return a running job whose status counts so many pods of its task."""
    policy = {"partitionPolicy": {"partitionSize": 1, "totalPartitions": 3}} if partition else {}
    status = {
        "taskStatusCount": {"worker": {"phase": counts}},
        "controlledResources": noted or {},
        "version": 3,
    }
    return a_ready_job(a_job_task(replicas=3, **policy), phase="Running", status=status)


def evicted(job: Job, *pods: Member) -> list[tuple[str, str]]:
    found = missed(job, members_of(job, pods))
    assert {one.event for one in found} <= {"PodEvicted"}
    return [(one.member.name, one.member.partition) for one in found if one.member]


def test_pods_that_the_status_counts_and_that_do_not_exist_were_evicted() -> None:
    assert evicted(job_counting(Running=2, Succeeded=1), a_member("train-worker-1")) == [
        ("train-worker-0", ""),
        ("train-worker-2", ""),
    ]


@pytest.mark.parametrize(
    ("note", "value", "lost"),
    [
        ("restarting-all", "everything", []),
        ("restarting-task/worker", "worker", []),
        ("restarting-partition/worker/0", "0", ["train-worker-1"]),
        ("restarting-pod/train-worker-0", "u", ["train-worker-1"]),
        ("restarting-task/other", "other", ["train-worker-0"]),
        ("restarting-pod/train-other-0", "u", ["train-worker-0"]),
    ],
)
def test_while_a_job_restarts_only_pods_that_the_restart_does_not_kill_are_lost(
    note: str, value: str, lost: list[str]
) -> None:
    job = job_counting({note: value, "evicting-train-worker-2": "u"}, partition=True, Running=1)
    state = msgspec.structs.replace(job.status.state, phase="Restarting")
    job = msgspec.structs.replace(job, status=msgspec.structs.replace(job.status, state=state))

    assert [name for name, _ in evicted(job)] == [*lost, "train-worker-2"]


def test_as_many_pods_were_evicted_as_are_counted_too_much() -> None:
    assert evicted(job_counting(Running=2), a_member("train-worker-1")) == [("train-worker-0", "")]
    assert evicted(job_counting(Running=1), a_member("train-worker-1")) == []
    assert evicted(job_counting()) == []


def test_a_pod_that_terminates_still_exists() -> None:
    assert evicted(job_counting(Running=1), a_member("train-worker-1", deleting=True)) == []


def test_a_pod_whose_deletion_was_noted_and_that_is_gone_was_evicted() -> None:
    noted = {"evicting-train-worker-2": "u1"}

    assert evicted(job_counting(noted), a_member("train-worker-2", uid="u1", deleting=True)) == []
    assert evicted(job_counting(noted)) == [("train-worker-2", "")]
    assert evicted(job_counting(noted), a_member("train-worker-2", uid="u2")) == [("train-worker-2", "")]


def test_a_pod_that_is_missing_for_two_reasons_was_evicted_once() -> None:
    assert evicted(job_counting({"evicting-train-worker-0": "u1"}, Running=1)) == [("train-worker-0", "")]


def test_a_pod_that_is_gone_belonged_to_its_partition_and_to_this_version() -> None:
    job = job_counting(Running=3, partition=True)
    found = missed(job, members_of(job, [a_member("train-worker-0"), a_member("train-worker-1")]))

    assert [(one.member.name, one.member.partition, one.member.version) for one in found if one.member] == [
        ("train-worker-2", "2", 3)
    ]


def test_a_job_without_counts_missed_nothing() -> None:
    assert missed(a_vcjob(), members_of(a_vcjob(), [])) == []
