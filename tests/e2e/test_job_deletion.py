"""Jobs deleted in any phase on a real API server: everything goes, and nothing is made again."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import pytest

from tests.e2e.jobs import Job, Jobs, owners
from tests.e2e.recorder import Seen
from tests.e2e.together import together
from tests.e2e.vcjobs import FOR_EVER, on, task, template

SLOW = {"kubelet.volcano-py/stop-after": "3"}
START = ("Pending", "Running")
NOTICE_S = 1.0  # a write that was under way when the job was deleted may still arrive


def command(action: str, *phases: str) -> Callable[[Job], None]:
    """Return how to bring a running job into a phase by a command."""

    def act(job: Job) -> None:
        job.wait_phases(*START)
        job.command(action)
        job.wait_phases(*START, *phases)

    return act


def reach(*phases: str) -> Callable[[Job], None]:
    def wait(job: Job) -> None:
        job.wait_phases(*phases)

    return wait


PHASES: Mapping[str, tuple[str, Callable[[Job], None]]] = {
    "just-created": (FOR_EVER, lambda _: None),
    "Pending": (FOR_EVER, reach("Pending")),
    "Running": (FOR_EVER, reach(*START)),
    "Restarting": (FOR_EVER, command("RestartJob", "Restarting")),
    "Aborting": (FOR_EVER, command("AbortJob", "Aborting")),
    "Aborted": (FOR_EVER, command("AbortJob", "Aborting", "Aborted")),
    "Terminating": (FOR_EVER, command("TerminateJob", "Terminating")),
    "Terminated": (FOR_EVER, command("TerminateJob", "Terminating", "Terminated")),
    "Completing": (FOR_EVER, command("CompleteJob", "Completing")),
    "Completed": ("sleep 1", reach(*START, "Completed")),
    "Failed": ("sleep 1; exit 1", reach(*START, "Failed")),
}


@together
@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
@pytest.mark.parametrize("phase", PHASES)
def test_a_deleted_job_takes_everything_with_it_and_nothing_is_made_again(
    jobs: Jobs, phase: str, propagation: str
) -> None:
    script, bring = PHASES[phase]
    policies = [on("*", "RestartJob")] if phase not in {"Failed", "Completed"} else []
    cpu = "1000" if phase == "Pending" else "10m"
    job = jobs.create(
        [task("worker", 2, template(script, annotations=SLOW, cpu=cpu))],
        policies=policies,
        plugins={"svc": [], "ssh": []},
        maxRetry=10,
    )
    bring(job)
    retries = job.status.get("retryCount", 0)
    job.delete(propagation)
    deleted = time.monotonic()
    job.wait("is gone", job.gone)
    job.wait("all its objects are gone", lambda: not left(jobs, job))
    job.stays("nothing is made again", lambda: not left(jobs, job), 2.0)

    late = [
        history[0].obj["metadata"]["name"]
        for history in [*job.pod_histories(), *groups(jobs, job)]
        if history[0].at > deleted + NOTICE_S
    ]
    assert late == [], job.story()
    assert job.status.get("retryCount", 0) == retries, "pods that go with their job are no eviction"


@together
def test_a_job_of_the_same_name_begins_anew_while_pods_of_the_deleted_one_terminate(jobs: Jobs) -> None:
    older = jobs.create([task("worker", 2, template(annotations=SLOW))], plugins={"svc": []})
    older.wait_running("worker-0", "worker-1")
    old = older.uids()
    older.delete()
    older.wait("is gone", older.gone)
    job = jobs.create([task("worker", 2)], name=older.name, plugins={"svc": []})
    job.wait_phases(*START)
    job.wait_running("worker-0", "worker-1")

    assert not set(old.values()) & set(job.uids().values())
    assert job.status.get("retryCount", 0) == 0


@together
def test_a_deleted_job_with_a_pending_delay_leaves_nothing_to_do(jobs: Jobs) -> None:
    job = jobs.create([task("worker", 1, template(cpu="1000"))], policies=[on("PodPending", "RestartJob", "3s")])
    job.wait("its pod waits", lambda: job.in_phase("Pending") == ["worker-0"])
    job.delete()
    job.wait("all is gone", lambda: job.gone() and not left(jobs, job))
    job.stays("nothing is made again", lambda: not left(jobs, job), 5.0)


def groups(jobs: Jobs, job: Job) -> list[list[Seen]]:
    """Return the histories of the PodGroups of a job."""
    histories = jobs.cluster.records["podgroups"].everything()
    return [history for history in histories if job.uid in owners(history[-1].obj)]


def left(jobs: Jobs, job: Job) -> list[str]:
    """Return the objects that still exist and belong to a job."""
    space = f"namespaces/{jobs.namespace}"
    paths = [
        *(
            f"/api/v1/{space}/{resource}"
            for resource in ("services", "configmaps", "secrets", "persistentvolumeclaims")
        ),
        f"/apis/networking.k8s.io/v1/{space}/networkpolicies",
    ]
    found = [*job.pods(), *([] if job.group() is None else ["podgroup"])]
    if found:
        return found
    for path in paths:
        items = jobs.plane.request("GET", path)["items"]
        found += [f"{path.rpartition('/')[2]}/{each['metadata']['name']}" for each in items if job.uid in owners(each)]
    return found
