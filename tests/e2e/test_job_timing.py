"""What must be quick or cheap about jobs, on a real API server and one test at a time."""

from __future__ import annotations

import time
from collections import Counter

from tests.controlplane.waiting import wait_until
from tests.e2e.container_view import CONFIG_MAP
from tests.e2e.jobs import Job, Jobs
from tests.e2e.recorder import Seen
from tests.e2e.vcjobs import on, task, template

START = ("Pending", "Running")
ADDRESSES_S = 0.1
WRITES = {"create", "update", "patch", "delete"}
PODS = 20


def config_map_versions(jobs: Jobs, job: Job) -> list[Seen]:
    record = jobs.cluster.records[CONFIG_MAP]
    (uid,) = record.named(f"{job.name}-svc")
    return record.history(uid)


def number(seen: Seen) -> int:
    """Return the place of a version among all writes of the cluster."""
    return int(seen.obj["metadata"]["resourceVersion"])


def scaled(jobs: Jobs, job: Job, replicas: int) -> tuple[float, Seen]:
    """Scale a job; return after how long the addresses were there, and their version."""
    begin = time.monotonic()
    job.scale(worker=replicas)

    def there() -> list[Seen]:
        return [seen for seen in config_map_versions(jobs, job) if seen.obj["data"]["VC_WORKER_NUM"] == str(replicas)]

    wait_until("the addresses are there", there, 20.0, every=0.01)
    return there()[0].at - begin, there()[0]


def test_the_addresses_follow_a_change_of_replicas_before_pods_come(jobs: Jobs) -> None:
    job = jobs.create([task("worker", 2)], plugins={"svc": []})
    job.wait_running("worker-0", "worker-1")
    job.rests()
    took, version = scaled(jobs, job, 4)
    job.wait_running("worker-0", "worker-1", "worker-2", "worker-3")

    new = [history[0] for history in job.pod_histories()][2:]
    assert len(new) == 2
    assert all(number(version) < number(first) for first in new)
    assert took <= ADDRESSES_S, f"{took * 1000:.0f} ms"


def test_the_addresses_follow_a_change_of_replicas_before_pods_go(jobs: Jobs) -> None:
    job = jobs.create([task("worker", 4)], plugins={"svc": []})
    job.wait_running("worker-0", "worker-1", "worker-2", "worker-3")
    job.rests()
    took, version = scaled(jobs, job, 2)
    job.wait_running("worker-0", "worker-1")

    told = [
        next(seen for seen in history if "deletionTimestamp" in seen.obj["metadata"])
        for history in job.pod_histories()
        if history[-1].kind == "DELETED"
    ]
    assert len(told) == 2
    assert all(number(version) < number(each) for each in told)
    assert took <= ADDRESSES_S, f"{took * 1000:.0f} ms"


def writes(jobs: Jobs) -> Counter[tuple[str, str]]:
    """Return how many writes the controllers have sent, by verb and resource."""
    found = {
        (verb, what): count for (verb, what), count in jobs.cluster.controllers.requests().items() if verb in WRITES
    }
    return Counter(found)


def settled(jobs: Jobs) -> Counter[tuple[str, str]]:
    """Return the writes of the controllers once there are no more of them for a while."""
    before, deadline = writes(jobs), time.monotonic() + 60.0
    while time.monotonic() < deadline:
        time.sleep(2.0)
        if (now := writes(jobs)) == before:
            return now
        before = now
    raise AssertionError("the controllers do not come to rest")


def test_a_job_of_twenty_pods_costs_twenty_creations_and_ten_other_writes_over_its_life(jobs: Jobs) -> None:
    before = settled(jobs)
    job = jobs.create([task("worker", PODS, template("await go"))])
    job.wait_phases(*START)
    job.say("go")
    job.wait_phases(*START, "Completed")
    spent = settled(jobs) - before

    pods = {verb: spent.pop((verb, "pods"), 0) for verb in ("create", "patch", "update", "delete")}
    assert pods == {"create": PODS, "patch": 0, "update": 0, "delete": 0}
    assert spent.total() <= 10, dict(spent)


def test_a_killed_pod_costs_one_patch_and_one_deletion(jobs: Jobs) -> None:
    pods = template("[ $RETRY = 0 ] && [ $INDEX = 0 ] && await go && exit 1; sleep infinity")
    job = jobs.create([task("worker", PODS, pods)], policies=[on("PodFailed", "RestartJob")])
    job.wait_phases(*START)
    before = settled(jobs)
    job.say("go")
    job.wait_phases(*START, "Restarting", *START)
    spent = settled(jobs) - before

    assert spent["patch", "pods"] == PODS
    assert spent["delete", "pods"] == PODS
    assert spent["create", "pods"] == PODS


def test_a_job_that_rests_costs_nothing(jobs: Jobs) -> None:
    job = jobs.create([task("worker", 3)], plugins={"svc": [], "ssh": [], "env": []})
    job.wait_phases(*START)
    before = settled(jobs)
    time.sleep(5.0)

    assert writes(jobs) == before
