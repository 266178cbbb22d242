"""The controllers are killed fifty times with SIGKILL while 200 jobs of 10 pods start, run, fail and restart.

New jobs come in every life of the controllers, and each life ends at a seeded moment. In the end every job, its pods
and its numbers are as if the controllers had never been killed. That the controller may end before and after every
single write is tested for jobs of every kind in `tests/controllers/job/test_killed_at_every_write.py`.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

import pytest

from tests.controlplane.waiting import wait_until
from tests.e2e.job_cluster import JobCluster
from tests.e2e.job_rules import NEXT
from tests.e2e.jobs import Job, Jobs
from tests.e2e.vcjobs import on, task, template

KILLS: Final = 50
JOBS: Final = 200
PODS: Final = 10
SEED: Final = 12
LONGEST_LIFE_S: Final = 1.5
PATIENCE_S: Final = 300.0

ONCE: Final = "[ $RETRY = 0 ] && [ $INDEX = 0 ] && sleep 1 && exit 3; sleep 2"
ALWAYS: Final = "[ $INDEX = 0 ] && sleep 1 && exit 3; sleep infinity"


@dataclass(frozen=True)
class Kind:
    """Jobs of one kind, and how they must end."""

    script: str
    phase: str = "Completed"
    retries: int = 0
    version: int = 0
    made: int = PODS
    """Pods that it ever had."""
    left: dict[str, int] = field(default_factory=lambda: {"Succeeded": PODS})
    """Pods that are left, by phase."""
    spec: dict[str, Any] = field(default_factory=dict)
    second: int = 0
    """Pods that belong to a second task, whose containers end well."""
    task_policies: tuple[dict[str, Any], ...] = ()


KINDS: Final = {
    "complete": Kind("sleep 2"),
    "restart": Kind(ONCE, retries=1, version=1, made=2 * PODS, spec={"policies": [on("PodFailed", "RestartJob")]}),
    "restart-task": Kind(
        ONCE, retries=1, made=PODS + 6, second=4, task_policies=(on("PodFailed", "RestartTask"),)
    ),
    "restart-pod": Kind(ONCE, retries=1, made=PODS + 1, spec={"policies": [on("PodFailed", "RestartPod")]}),
    "plugins": Kind(
        ONCE, retries=1, version=1, made=2 * PODS,
        spec={"policies": [on(3, "RestartJob")], "plugins": {"svc": [], "env": []}},
    ),
    "fail": Kind(
        ALWAYS, "Failed", retries=2, version=2, made=2 * PODS, left={"Failed": 1},
        spec={"policies": [on("PodFailed", "RestartJob")], "maxRetry": 2},
    ),
    "abort": Kind(
        ALWAYS, "Aborted", version=1, left={"Failed": 1}, spec={"policies": [on("PodFailed", "AbortJob")]}
    ),
}  # fmt: skip


def create(jobs: Jobs, number: int) -> tuple[str, Job]:
    name = list(KINDS)[number % len(KINDS)]
    kind = KINDS[name]
    tasks = [task("a", PODS - kind.second, template(kind.script), policies=list(kind.task_policies))]
    if kind.second:
        tasks.append(task("b", kind.second, template("sleep 2")))
    return name, jobs.create(tasks, name=f"{name}-{number}", **kind.spec)


@pytest.mark.timeout(1200)
def test_jobs_end_as_if_the_controllers_had_never_been_killed(job_cluster: JobCluster) -> None:
    rng, jobs = random.Random(SEED), Jobs(job_cluster)
    made: list[tuple[str, Job]] = []
    for kill in range(KILLS):
        made += [create(jobs, number) for number in range(len(made), JOBS * (kill + 1) // KILLS)]
        time.sleep(rng.uniform(0.0, LONGEST_LIFE_S))
        with job_cluster.without_controllers(kill=True):
            pass

    unfinished = [job for name, job in made]

    def all_rest() -> bool:
        unfinished[:] = [job for job in unfinished if not rests(job)]
        return not unfinished

    wait_until("all jobs rest", all_rest, PATIENCE_S, every=0.5)

    assert len(made) == JOBS
    wrong = [f"{job.name}: {problem}\n{job.story()}" for name, job in made for problem in problems(KINDS[name], job)]
    assert not wrong, f"{len(wrong)} problems, such as\n" + "\n".join(wrong[:3])
    owned = {job.uid for _, job in made}
    orphans = [
        pod["metadata"]["name"]
        for pod in job_cluster.records["pods"].alive()
        if not {owner["uid"] for owner in pod["metadata"].get("ownerReferences", ())} & owned
    ]
    assert not orphans
    jobs.close(judge=False)


def rests(job: Job) -> bool:
    """Say whether a job has ended and its counters say so."""
    counts = job.counts()
    return job.phase in ("Completed", "Failed", "Aborted") and not set(counts) & {"pending", "running", "terminating"}


def problems(kind: Kind, job: Job) -> list[str]:
    """Return in what a job that rests is not as its kind should be."""
    status = job.status
    found = {
        "phase": job.phase,
        "retries": status.get("retryCount", 0),
        "version": status.get("version", 0),
        "made": len(job.pod_histories()),
        "left": dict(Counter(pod["status"]["phase"] for pod in job.pods().values())),
    }
    wanted = {name: getattr(kind, name) for name in found}
    wrong = [f"{name} is {found[name]} and should be {wanted[name]}" for name in found if found[name] != wanted[name]]
    wrong += [f"from {one} to {other}" for one, other in pairwise(job.phases) if other not in NEXT[one]]
    if job.group() is not None:
        wrong.append("its PodGroup is left")
    return wrong
