"""Every event of the policies with every action, on job and task level, on a real API server.

All jobs have the same shape: task `train` with four pods in two partitions, and task `aside` with one. The event
happens to pod `train-0`, once: containers see how often their job was restarted. A case says which phases the job goes
through, and which pods are still those from before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from tests.e2e.jobs import Job, Jobs
from tests.e2e.together import together
from tests.e2e.vcjobs import FOR_EVER, on, task, template

TRAIN = ("train-0", "train-1", "train-2", "train-3")
EVERY = (*TRAIN, "aside-0")
AGAIN = ("Restarting", "Pending", "Running")
ENDS: Mapping[str, tuple[str, ...]] = {
    "AbortJob": ("Aborting", "Aborted"),
    "TerminateJob": ("Terminating", "Terminated"),
    "CompleteJob": ("Completing", "Completed"),
}
REPLACED: Mapping[str, tuple[str, ...]] = {
    "RestartJob": EVERY,
    "RestartTask": TRAIN,
    "RestartPartition": ("train-0", "train-1"),
    "RestartPod": ("train-0",),
}
"""The pods that an action on `train-0` replaces."""
ACTIONS = (*REPLACED, *ENDS)
WHOLE_JOB = ("RestartJob", *ENDS)
"""The actions that kill all pods of a job, so that its version grows."""

FIRST = "[ $RETRY = 0 ] && [ $INDEX = 0 ]"


@dataclass(frozen=True)
class Event:
    """How an event is brought about, and what it leaves."""

    policy: Any
    """What `on` takes as the event."""
    happen: Callable[[Jobs, Job], None]
    script: str = FOR_EVER
    init: str | None = None
    restart: str = "Never"
    timeout: str | None = None
    max_retry: int = 3
    before: tuple[str, ...] = ("Pending", "Running")
    finished: tuple[str, ...] = ()
    """Pods that have ended when the action begins: a kill that ends the job keeps them."""
    told: tuple[str, ...] = ("train-0",)
    """Words in the message of the state."""
    own_node: bool = False


def fails(_: Jobs, job: Job) -> None:
    job.say("go", "train-0")


def is_evicted(_: Jobs, job: Job) -> None:
    job.evict("train-0")


def nothing_more(_: Jobs, __: Job) -> None:
    """The event happens by itself."""


def task_ends(_: Jobs, job: Job) -> None:
    """End train-0 last, so that it is the pod which completes the task."""
    job.say("go")
    job.wait("three pods have succeeded", lambda: job.status.get("succeeded") == 3)
    job.say("last")


def cannot_run_again(jobs: Jobs, job: Job) -> None:
    """Take a pod away and let no other onto its node, until the job is restarted."""
    node = job.pods()[job.pod_name("train", 0)]["spec"]["nodeName"]
    jobs.cluster.cordon(node)
    job.evict("train-0")
    job.wait("something is done about it", lambda: job.executed(""))
    jobs.cluster.uncordon(node)


FAILS = f"{FIRST} && await go && exit 3; {FOR_EVER}"

EVENTS: Mapping[str, Event] = {
    "PodFailed": Event("PodFailed", fails, FAILS, finished=("train-0",), told=("train-0", "3")),
    "PodEvicted": Event("PodEvicted", is_evicted),
    "PodPending": Event(
        "PodPending",
        nothing_more,
        init=f"{FIRST} && {FOR_EVER}; exit 0",
        timeout="12s",
        before=("Pending",),
    ),
    "Unknown": Event("Unknown", cannot_run_again, before=("Pending", "Running", "Pending"), told=(), own_node=True),
    "TaskCompleted": Event(
        "TaskCompleted",
        task_ends,
        f"{FIRST} && await last && exit 0; [ $RETRY = 0 ] && await go && exit 0; {FOR_EVER}",
        finished=TRAIN,
        told=("train",),
    ),
    "TaskFailed": Event(
        "TaskFailed",
        fails,
        f"{FIRST} && await go && exit 3; {FOR_EVER}",
        restart="OnFailure",
        max_retry=2,
        told=("train",),
    ),
    "*": Event("*", fails, FAILS, finished=("train-0",)),
    "exit-code": Event(3, fails, FAILS, finished=("train-0",), told=("train-0", "3")),
    "list": Event(["PodEvicted", "PodFailed"], fails, FAILS, finished=("train-0",)),
}


def create(jobs: Jobs, event: Event, action: str, level: str) -> Job:
    """Create the job of a case."""
    selector: dict[str, str] = {}
    if event.own_node:
        _, selector = jobs.cluster.own_nodes()
    policies = [on(event.policy, action, event.timeout)]
    first = task(
        "train",
        4,
        template(event.script, restart=event.restart, init=event.init, selector=selector),
        maxRetry=event.max_retry,
        partitionPolicy={"totalPartitions": 2, "partitionSize": 2},
        policies=policies if level == "task" else [],
    )
    second = task("aside", 1, template(selector=selector))
    return jobs.create([first, second], policies=policies if level == "job" else [], maxRetry=5)


@together
@pytest.mark.parametrize("level", ["job", "task"])
@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("name", [name for name in EVENTS if name != "Unknown"])
def test_an_action_follows_an_event_once(jobs: Jobs, name: str, action: str, level: str) -> None:
    event = EVENTS[name]
    job = create(jobs, event, action, level)
    old = bring_about(jobs, job, event)

    judge(job, event, action, old)


@together
@pytest.mark.parametrize("action", WHOLE_JOB)
def test_an_action_on_the_whole_job_follows_when_its_group_becomes_unknown(jobs: Jobs, action: str) -> None:
    event = EVENTS["Unknown"]
    job = create(jobs, event, action, "job")
    old = bring_about(jobs, job, event)

    judge(job, event, action, old)


@together
@pytest.mark.parametrize("action", ["RestartTask", "RestartPod", "RestartPartition"])
def test_an_unknown_group_names_no_pod_so_that_an_action_on_one_kills_none(jobs: Jobs, action: str) -> None:
    _, selector = jobs.cluster.own_nodes()
    job = jobs.create([task("train", 2, template(selector=selector))], policies=[on("Unknown", action)])
    job.wait_phases("Pending", "Running")
    old = job.uids()
    node = job.pods()[job.pod_name("train", 0)]["spec"]["nodeName"]
    jobs.cluster.cordon(node)
    job.evict("train-0")
    job.wait("its group is Unknown", lambda: (job.group() or {}).get("status", {}).get("phase") == "Unknown")
    jobs.cluster.uncordon(node)
    job.wait("both run again", lambda: job.in_phase("Running") == ["train-0", "train-1"])
    job.wait_phase("Running")

    assert job.uids()["train-1"] == old["train-1"]
    assert job.status.get("retryCount", 0) <= 1
    assert job.status.get("version", 0) == 0


@together
@pytest.mark.parametrize("action", ACTIONS)
def test_an_unknown_group_concerns_no_task_so_that_the_policies_of_a_task_do_not_apply(jobs: Jobs, action: str) -> None:
    _, selector = jobs.cluster.own_nodes()
    policies = [on("Unknown", action)]
    job = jobs.create([task("train", 2, template(selector=selector), policies=policies)])
    job.wait_phases("Pending", "Running")
    old = job.uids()
    node = job.pods()[job.pod_name("train", 0)]["spec"]["nodeName"]
    jobs.cluster.cordon(node)
    job.evict("train-0")
    job.wait("its group is Unknown", lambda: (job.group() or {}).get("status", {}).get("phase") == "Unknown")
    jobs.cluster.uncordon(node)
    job.wait("both run again", lambda: job.in_phase("Running") == ["train-0", "train-1"])
    job.wait_phase("Running")

    assert set(job.phases) == {"Pending", "Running"}
    assert job.uids()["train-1"] == old["train-1"]
    assert job.events("ExecuteAction") == []


def bring_about(jobs: Jobs, job: Job, event: Event) -> dict[str, str]:
    """Bring the event about, and return the UIDs of the pods that the job had before."""
    job.wait("has all its pods", lambda: sorted(job.uids()) == sorted(EVERY))
    old = job.uids()
    if event.before[:2] == ("Pending", "Running"):
        job.wait_phases("Pending", "Running")
    event.happen(jobs, job)
    return old


def judge(job: Job, event: Event, action: str, old: Mapping[str, str]) -> None:
    """Check what the action did, and that it did it once."""
    after = ENDS.get(action, AGAIN)
    paths = [[*event.before, *after]]
    if event.own_node:  # the group may become Unknown before the job is seen to wait for the new pod
        paths.append([*event.before[:-1], *after])
    job.wait("has gone through its phases", lambda: job.phases in paths)
    if action in REPLACED:
        job.wait("all its pods are there", lambda: there(job, event, action))
    else:
        job.wait("its other pods are gone", lambda: set(job.uids()) == set(event.finished))
    job.rests()
    assert job.phases in paths, job.story()

    judge_numbers(job, event, action)
    judge_pods(job, event, action, old)
    judge_words(job, event, action)


def there(job: Job, event: Event, action: str) -> bool:
    """Say whether every pod runs that has not ended before and is not replaced."""
    kept = set(event.finished) - set(REPLACED[action])
    return set(job.in_phase("Running")) == set(EVERY) - kept and set(job.uids()) == set(EVERY)


def judge_numbers(job: Job, event: Event, action: str) -> None:
    """Judge retries, version and counters."""
    status = job.status
    assert status.get("retryCount", 0) == (1 if action in REPLACED else 0), job.story()
    assert status.get("version", 0) == (1 if action in WHOLE_JOB else 0), job.story()
    kept = set(event.finished) - set(REPLACED.get(action, ()))
    ended = "succeeded" if event.policy == "TaskCompleted" else "failed"
    expected = {ended: len(kept)} if kept else {}
    if action in REPLACED:
        expected["running"] = len(EVERY) - len(kept)
    assert job.counts() == expected, job.story()


def judge_pods(job: Job, event: Event, action: str, old: Mapping[str, str]) -> None:
    """Judge which pods are those from before, and what the new ones say about their job."""
    now = job.uids()
    same = {name for name in now if now[name] == old.get(name)}
    if action not in REPLACED:
        assert same == set(now) == set(event.finished), job.story()
        job.wait("its group is gone", lambda: job.group() is None)
        return
    replaced = set(REPLACED[action])
    assert same == set(EVERY) - replaced, job.story()
    for name in replaced:
        annotations = job.pods()[f"{job.name}-{name}"]["metadata"]["annotations"]
        assert annotations["volcano.sh/job-retry-count"] == "1"
        assert annotations["volcano.sh/job-version"] == ("1" if action == "RestartJob" else "0")


def judge_words(job: Job, event: Event, action: str) -> None:
    """Judge the event about the action, the message of the state, and the count of terminating pods."""
    executed = job.executed(action)
    assert job.times(action) == 1, job.story()
    assert all(each["type"] == "Normal" and each["lastTimestamp"] for each in executed)
    others = [each["message"] for each in job.events("ExecuteAction") if each not in executed]
    assert not others, job.story()
    entered = ENDS.get(action, AGAIN)[0]
    first = job.entered(entered).obj["status"]
    assert all(word in first["state"]["message"] for word in event.told), job.story()
    killed = set(REPLACED.get(action, EVERY)) - ({"train-0"} if event.policy == "PodEvicted" else set())
    if action not in REPLACED:
        killed -= set(event.finished)
    if killed:
        assert first.get("terminating", 0) > 0, job.story()
