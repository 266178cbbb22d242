"""Claims of jobs on a real API server: existing ones, generated ones, and one that is missing at first."""

from __future__ import annotations

import re
import secrets
from typing import Any

from tests.e2e.container_view import CLAIM
from tests.e2e.jobs import CORE, Job, Jobs, owners
from tests.e2e.together import together
from tests.e2e.vcjobs import task

DATA = "/data"
SIZE = {"requests": {"storage": "1Gi"}}


def storage(jobs: Jobs) -> str:
    """Create a volume and return the class by which a claim gets it."""
    kind = f"e2e-{secrets.token_hex(3)}"
    volume = {
        "metadata": {"name": kind},
        "spec": {
            "storageClassName": kind,
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteMany"],
            "hostPath": {"path": "/tmp"},
        },
    }
    jobs.plane.request("POST", f"{CORE}/persistentvolumes", volume)
    jobs.cluster.remove_at_end(f"{CORE}/persistentvolumes/{kind}")
    return kind


def claim(kind: str) -> dict[str, Any]:
    return {"storageClassName": kind, "accessModes": ["ReadWriteMany"], "resources": SIZE}


def create_claim(jobs: Jobs, kind: str) -> str:
    body = {"metadata": {"name": kind}, "spec": claim(kind)}
    jobs.plane.request("POST", f"{CORE}/namespaces/{jobs.namespace}/{CLAIM}", body)
    return kind


def runs(job: Job, *pods: str) -> None:
    """Wait until a job has these pods and they run."""
    job.wait("its pods are there", lambda: sorted(job.uids()) == sorted(pods))
    job.wait_running(*pods)


def mounted(pod: dict[str, Any]) -> dict[str, str]:
    """Return the claims of a pod by the path where all of its containers see them."""
    claims = {
        volume["name"]: volume["persistentVolumeClaim"]["claimName"]
        for volume in pod["spec"].get("volumes", ())
        if "persistentVolumeClaim" in volume
    }
    seen = [
        {mount["mountPath"]: claims[mount["name"]] for mount in each["volumeMounts"] if mount["name"] in claims}
        for each in pod["spec"]["containers"]
    ]
    assert all(each == seen[0] for each in seen)
    return seen[0]


@together
def test_the_pods_of_a_job_mount_an_existing_claim(jobs: Jobs) -> None:
    name = create_claim(jobs, storage(jobs))
    job = jobs.create([task("worker", 2)], volumes=[{"mountPath": DATA, "volumeClaimName": name}])
    runs(job, "worker-0", "worker-1")

    assert [mounted(pod) for pod in job.pods().values()] == [{DATA: name}] * 2
    found = jobs.core(CLAIM, name)
    assert found is not None
    assert not owners(found), "a claim of the user is not the job's"
    assert job.status["controlledResources"] == {f"volume-pvc-{name}": name}


@together
def test_a_claim_is_made_for_a_job_kept_when_its_pods_are_killed_and_deleted_with_it(jobs: Jobs) -> None:
    job = jobs.create([task("worker", 2)], volumes=[{"mountPath": DATA, "volumeClaim": claim(storage(jobs))}])
    runs(job, "worker-0", "worker-1")
    (name,) = {mounted(pod)[DATA] for pod in job.pods().values()}
    assert re.fullmatch(rf"{job.name}-pvc-[0-9a-z]{{12}}", name)
    assert job.last["spec"]["volumes"][0]["volumeClaimName"] == name
    made = jobs.core(CLAIM, name)
    assert made is not None
    assert owners(made) == {job.uid}

    job.command("AbortJob")
    job.wait_phase("Aborted")
    assert jobs.core(CLAIM, name) is not None
    job.command("ResumeJob")
    runs(job, "worker-0", "worker-1")
    assert {mounted(pod)[DATA] for pod in job.pods().values()} == {name}

    job.delete()
    job.wait("its claim is gone", lambda: is_going(jobs.core(CLAIM, name)))


@together
def test_a_job_without_its_claim_says_so_and_begins_when_the_claim_appears(jobs: Jobs) -> None:
    name = storage(jobs)
    job = jobs.create([task("worker", 1)], volumes=[{"mountPath": DATA, "volumeClaimName": name}])
    job.wait("says so by an event", lambda: any(name in event["message"] for event in job.events("PVCError")), 30.0)
    job.wait("says so in its status", lambda: name in job.status.get("state", {}).get("message", ""))
    assert job.phase == "Pending"
    assert job.uids() == {}

    create_claim(jobs, name)
    runs(job, "worker-0")
    job.wait_phases("Pending", "Running")
    assert name not in job.status["state"].get("message", "")


@together
def test_two_volumes_of_a_job_are_two_claims(jobs: Jobs) -> None:
    volumes = [{"mountPath": path, "volumeClaim": claim(storage(jobs))} for path in ("/one", "/two")]
    job = jobs.create([task("worker", 1)], volumes=volumes)
    runs(job, "worker-0")

    (pod,) = job.pods().values()
    assert set(mounted(pod)) == {"/one", "/two"}
    assert len(set(mounted(pod).values())) == 2


def is_going(obj: dict[str, Any] | None) -> bool:
    """Say whether an object is gone or told to go: a claim stays as long as pods use it."""
    return obj is None or "deletionTimestamp" in obj["metadata"]
