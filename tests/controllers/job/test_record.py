"""What the controller knows of a job: older states are ignored, and what happened before it began is derived."""

from typing import Any

import msgspec
import pytest

from tests.controllers.job.builders import NOW, a_job_pod, a_job_task, a_member, a_ready_job, a_vcjob, on
from tests.controllers.job.world import World, later
from volcano_py.api.batch import Job
from volcano_py.api.scheduling import PodGroup
from volcano_py.controllers.job import policies
from volcano_py.controllers.job.applied import following
from volcano_py.controllers.job.delays import Delayed
from volcano_py.controllers.job.observed import Problem
from volcano_py.controllers.job.plugins.registry import BUILT_IN
from volcano_py.controllers.job.policies import Request
from volcano_py.controllers.job.record import Record

ALL_POLICIES = [on("*", "RestartJob")]


def a_record(job: Job | None = None, *, started: bool = True) -> Record:
    record = Record("uid-train", BUILT_IN)
    if job is not None:
        record.put_job(job, "volcano", "default")
        if started:
            record.start()
    return record


def happened(record: Record) -> list[tuple[str, str]]:
    """Return event and pod of each trigger."""
    return [(one.event, one.member.name if one.member else "") for one in record.triggers]


def version(job: Job, resource_version: str, **status: Any) -> Job:
    meta = msgspec.structs.replace(job.metadata, resource_version=resource_version)
    return msgspec.structs.replace(job, metadata=meta, status=msgspec.structs.replace(job.status, **status))


def a_job_group(uid: str, resource_version: str, phase: str = "Inqueue") -> PodGroup:
    meta = {"name": "train-uid-train", "namespace": "ns", "uid": uid, "resourceVersion": resource_version}
    return msgspec.convert({"metadata": meta, "status": {"phase": phase}}, PodGroup)


# The job


def test_an_older_state_of_a_job_is_ignored_and_so_is_the_same() -> None:
    record = a_record(version(a_vcjob(), "10", retry_count=2))

    assert not record.put_job(version(a_vcjob(), "9", retry_count=1), "volcano", "default")
    assert not record.put_job(version(a_vcjob(), "10", retry_count=3), "volcano", "default")
    assert record.job is not None
    assert record.job.status.retry_count == 2
    assert record.put_job(version(a_vcjob(), "11", retry_count=3), "volcano", "default")


def test_a_job_has_its_defaults_also_after_a_change_of_its_status() -> None:
    record = a_record(a_vcjob())
    record.put_job(version(a_vcjob(), "2", retry_count=1), "volcano", "default")

    assert record.job is not None
    assert (record.job.spec.queue, record.job.spec.max_retry, record.job.status.retry_count) == ("default", 3, 1)


def test_a_change_of_replicas_is_known_at_once() -> None:
    record = a_record(a_vcjob(a_job_task(replicas=1)))
    grown = a_vcjob(a_job_task(replicas=3), meta={"resourceVersion": "2", "generation": 2})

    assert record.put_job(grown, "volcano", "default")
    assert record.members.task("worker").missing == {0, 1, 2}


def test_running_pods_keep_variables_that_depend_on_the_replicas_and_an_event_says_so() -> None:
    tasks = a_job_task("master", 1), a_job_task("worker", 1)
    record = a_record(a_vcjob(*tasks, plugins={"pytorch": []}))
    record.put_pod(a_job_pod())
    record.news.clear()
    grown = a_vcjob(
        a_job_task("master", 1),
        a_job_task("worker", 2),
        plugins={"pytorch": []},
        meta={"resourceVersion": "2", "generation": 2},
    )

    record.put_job(grown, "volcano", "default")

    assert record.news == [
        "the number of replicas changed: new pods get the new VC_*_HOSTS, VC_*_NUM, WORLD_SIZE, "
        "and running pods keep theirs"
    ]


def test_restarts_of_pods_that_are_gone_are_read_from_the_job() -> None:
    record = a_record(a_vcjob(status={"controlledResources": {"restarts-worker": "4"}}))

    assert record.members.task("worker").spent == 4


# Pods


def test_an_older_state_of_a_pod_is_ignored_and_so_is_the_same() -> None:
    record = a_record(a_vcjob())

    assert record.put_pod(a_job_pod(phase="Running", resource_version="10"))
    assert not record.put_pod(a_job_pod(phase="Pending", resource_version="9"))
    assert not record.put_pod(a_job_pod(phase="Failed", resource_version="10"))
    assert record.members.counts().running == 1


def test_a_pod_that_is_gone_stays_gone() -> None:
    record = a_record(a_vcjob())
    record.put_pod(a_job_pod(uid="u1"))

    assert record.remove_pod("train-worker-0", "u1")
    assert not record.put_pod(a_job_pod(uid="u1", resource_version="99"), answered_at=1.0)
    assert len(record.members) == 0
    assert record.put_pod(a_job_pod(uid="u2"))


def test_a_pod_that_we_deleted_stays_gone_although_the_watch_shows_an_older_change() -> None:
    record = a_record(a_vcjob())
    record.put_pod(a_job_pod(uid="u1"))

    record.remove_pod("train-worker-0", "u1", answered=True)

    assert not record.put_pod(a_job_pod(uid="u1", resource_version="99"))
    assert len(record.members) == 0


def test_what_an_older_list_had_left_out_is_there_again_when_the_watch_shows_it() -> None:
    record = a_record(a_vcjob())
    record.put_pod(a_job_pod(uid="u1"))
    record.put_group(a_job_group("g1", "4"))

    record.remove_pod("train-worker-0", "u1")
    record.remove_group("g1")

    assert record.put_pod(a_job_pod(uid="u1", resource_version="99"))
    assert record.put_group(a_job_group("g1", "5"))


def test_what_was_just_read_exists() -> None:
    record = a_record(a_vcjob())
    record.remove_group("g1", answered=True)
    assert not record.put_group(a_job_group("g1", "4"), 1.0)

    record.exists("g1")

    assert record.put_group(a_job_group("g1", "4"), 1.0)


def test_the_end_of_a_predecessor_does_not_touch_its_successor() -> None:
    record = a_record(a_vcjob())
    record.put_pod(a_job_pod(uid="u2"))

    assert not record.remove_pod("train-worker-0", "u1")
    assert len(record.members) == 1


def test_a_pod_that_we_deleted_terminates_although_an_older_change_is_seen_after_that() -> None:
    record = a_record(a_vcjob())
    record.put_pod(a_job_pod(resource_version="1"))
    record.members.mark_deleting("train-worker-0", "uid-train-worker-0")

    record.put_pod(a_job_pod(resource_version="2", ready=False))

    counts = record.members.counts()
    assert (counts.running, counts.terminating) == (0, 1)
    assert record.members.marked() == []


def test_a_pod_of_another_uid_means_that_the_former_was_evicted() -> None:
    record = a_record(a_vcjob(policies=ALL_POLICIES))
    record.put_pod(a_job_pod(uid="u1"))
    record.triggers.clear()

    record.put_pod(a_job_pod(uid="u2", phase="Pending", resource_version="2"))

    assert happened(record) == [("PodEvicted", "train-worker-0"), ("PodPending", "train-worker-0")]


def test_events_that_no_policy_answers_are_not_kept() -> None:
    record = a_record(a_vcjob(policies=[on("PodFailed", "RestartJob")]))

    record.put_pod(a_job_pod(phase="Pending"))
    record.put_pod(a_job_pod(phase="Failed", resource_version="2"))

    assert happened(record) == [("PodFailed", "train-worker-0")]


# The first look


def test_until_the_first_look_nothing_is_kept_because_another_process_may_be_answering() -> None:
    record = a_record(a_vcjob(policies=ALL_POLICIES), started=False)
    record.put_pod(a_job_pod(uid="u1", phase="Failed"))
    record.remove_pod("train-worker-0", "u1")
    record.put_pod(a_job_pod(uid="u2", phase="Running"))
    record.put_pod(a_job_pod("train-worker-1", "Failed"))

    assert happened(record) == []

    record.start()
    record.start()

    assert happened(record) == [("PodFailed", "train-worker-1")]


def test_a_task_that_completed_before_the_first_look_counts_once_although_its_pods_were_seen_before_the_job() -> None:
    record = a_record()
    for name in ("train-worker-0", "train-worker-1"):
        record.put_pod(a_job_pod(name, "Succeeded"))
    record.put_job(a_vcjob(a_job_task(policies=[on("TaskCompleted", "CompleteJob")])), "volcano", "default")

    record.start()

    assert happened(record) == [("TaskCompleted", "train-worker-0")]


def test_a_task_that_used_up_its_restarts_before_the_first_look_counts_once() -> None:
    record = a_record()
    for name in ("train-worker-0", "train-worker-1"):
        record.put_pod(a_job_pod(name, restarts=2))
    record.put_job(a_vcjob(policies=[on("TaskFailed", "TerminateJob")]), "volcano", "default")

    record.start()

    assert happened(record) == [("TaskFailed", "train-worker-0")]


def test_a_group_that_was_unknown_before_the_first_look_is_answered() -> None:
    record = a_record(a_vcjob(policies=[on("Unknown", "RestartJob")]), started=False)
    record.put_group(a_job_group("g1", "1", "Unknown"))

    record.start()

    assert happened(record) == [("Unknown", "")]


def test_pods_that_the_status_counts_and_that_do_not_exist_were_evicted() -> None:
    status = {"taskStatusCount": {"worker": {"phase": {"Running": 2}}}}
    record = a_record(a_vcjob(phase="Running", status=status, policies=ALL_POLICIES), started=False)
    record.put_pod(a_job_pod("train-worker-1", "Pending", deleting=True))

    record.start()

    assert happened(record) == [("PodEvicted", "train-worker-0")]


def test_delayed_actions_that_stand_on_the_job_are_armed_again() -> None:
    world = World(a_vcjob(policies=[on("PodEvicted", "TerminateJob", timeout="60s")]))
    world.runs()
    world.pod_goes("train-worker-0")
    world.settle()

    world.restart()
    world.record.start()

    (delayed,) = world.record.armed.by_key.values()
    assert (delayed.due, delayed.action) == (later(60), "TerminateJob")


# The PodGroup


def test_a_phase_that_becomes_unknown_is_an_event_and_an_older_state_is_ignored() -> None:
    record = a_record(a_vcjob(policies=[on("Unknown", "RestartJob")]))
    assert record.put_group(a_job_group("g1", "1"))
    assert record.put_group(a_job_group("g1", "3", "Unknown"))
    assert not record.put_group(a_job_group("g1", "2", "Running"))
    assert not record.put_group(a_job_group("g1", "4", "Unknown"))

    assert happened(record) == [("Unknown", "")]
    assert record.group is not None
    assert record.group.status.phase == "Unknown"


def test_late_news_of_a_former_group_do_not_hide_its_successor() -> None:
    record = a_record(a_vcjob())
    record.put_group(a_job_group("g2", "5"))

    assert not record.remove_group("g1")
    assert not record.put_group(a_job_group("g1", "4"))
    assert record.group is not None
    assert record.group.metadata.uid == "g2"
    assert record.remove_group("g2")
    assert record.group is None


# Plugins


def test_an_object_is_outdated_until_it_is_written_as_wanted() -> None:
    record = a_record(a_vcjob(plugins={"svc": []}))
    wanted = record.plugin_objects()
    assert record.applied.outdated(wanted) == wanted

    for one in wanted:
        record.applied.note(one, "uid")
    assert record.applied.outdated(record.plugin_objects()) == ()

    grown = a_vcjob(a_job_task(replicas=3), plugins={"svc": []}, meta={"resourceVersion": "2", "generation": 2})
    record.put_job(grown, "volcano", "default")

    assert [one.resource.kind for one in record.applied.outdated(record.plugin_objects())] == ["ConfigMap"]


def test_only_fields_that_follow_the_job_count_as_changes() -> None:
    record = a_record(a_vcjob(plugins={"svc": []}))

    assert {one.resource.kind: following(one) == b"{}" for one in record.plugin_objects()} == {
        "ConfigMap": False,
        "Service": True,
        "NetworkPolicy": True,
    }


def test_a_plugin_that_does_not_exist_is_a_problem_of_the_job() -> None:
    record = a_record(a_vcjob(plugins={"no-such-plugin": []}))

    with pytest.raises(Problem, match="no-such-plugin") as raised:
        record.plugin_objects()
    assert raised.value.reason == "PluginError"


# Delayed actions


def a_delayed(pod: str, seconds: float) -> Delayed:
    return Delayed(later(seconds), policies.RESTART_POD, Request(event="PodFailed", task="worker", pod=pod))


def test_delayed_actions_come_due_in_order_and_only_while_they_are_armed() -> None:
    record = a_record(a_ready_job())
    late, early, void = a_delayed("b", 20), a_delayed("a", 10), a_delayed("c", 5)
    record.armed.arm((late, early, void))
    record.armed.disarm([void.key])

    assert record.armed.due(later(4)) == []
    assert record.armed.next_due_s(NOW) == 10.0
    assert record.armed.due(later(30)) == [early, late]
    assert record.armed.next_due_s(later(15)) == 0.0
    record.armed.disarm([early.key, late.key])
    assert record.armed.next_due_s(NOW) is None


def test_a_member_that_is_put_without_a_job_is_counted_when_the_job_arrives() -> None:
    record = a_record()
    record.put_pod(a_job_pod("train-worker-5"))

    record.put_job(a_vcjob(a_job_task(replicas=2)), "volcano", "default")

    assert record.members.extra() == [a_member("train-worker-5")]


def test_an_old_state_of_a_job_that_is_gone_does_not_bring_it_back() -> None:
    """An answer may have said that it is gone while the watch is late."""
    record = a_record(a_vcjob())
    record.gone, record.job = True, None
    assert not record.put_job(version(a_vcjob(), "7"), "volcano", "default")
    assert record.job is None
