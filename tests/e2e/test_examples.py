"""The jobs of `examples/` on a real API server: it takes them as they are, and they run to their end.

For the second, containers that have a command get `sleep 1`, and pods select nodes whose kubelet stand-ins run that.
Nothing else is changed, but the time of the cron job.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane.waiting import wait_until
from tests.e2e.control_plane import ControlPlane
from tests.e2e.jobs import PATIENCE_S, Jobs, phase_of
from tests.e2e.scripted_kubelet import SELECTOR
from tests.e2e.together import together

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FILES = sorted(file.stem for file in EXAMPLES.glob("*.yaml"))
JOBS = [name for name in FILES if name not in ("cron", "flow")]
GPU = "nvidia.com/gpu"
RESOURCES = {"ConfigMap": "configmaps", "Job": "jobs", "CronJob": "cronjobs"}
RESOURCES |= {"JobTemplate": "jobtemplates", "JobFlow": "jobflows"}

Obj = dict[str, Any]


def documents(name: str) -> list[Obj]:
    return list(yaml.safe_load_all((EXAMPLES / f"{name}.yaml").read_text()))


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("name", FILES)
def test_the_server_takes_an_example_as_it_is(control_plane: ControlPlane, namespace: str, name: str) -> None:
    file = str(EXAMPLES / f"{name}.yaml")

    said = control_plane.kubectl("apply", "-n", namespace, "--dry-run=server", "--validate=strict", "-f", file).stdout

    assert said.count(" created (server dry run)") == len(documents(name))


def job_specs(document: Obj) -> Iterator[Obj]:
    if document["kind"] in ("Job", "JobTemplate"):
        yield document["spec"]
    elif document["kind"] == "CronJob":
        yield document["spec"]["jobTemplate"]["spec"]


def shortened(document: Obj, selector: Mapping[str, str]) -> Obj:
    """Let the pods of an example sleep for a second, on nodes of the test."""
    for spec in job_specs(document):
        for task in spec["tasks"]:
            pod = task["template"]["spec"]
            pod["nodeSelector"] = {**SELECTOR, **selector}
            for container in pod["containers"]:
                if "command" in container:
                    container["command"] = ["sleep", "1"]
    return document


def create(jobs: Jobs, name: str, **change: Any) -> Obj:
    """Create the objects of an example and return the last one; `change` goes into its spec."""
    *before, last = documents(name)
    selector = jobs.cluster.selector
    if GPU in (EXAMPLES / f"{name}.yaml").read_text():
        _, selector = jobs.cluster.own_nodes(2, cpu=32, memory="128Gi", extended={GPU: 8})
    last["spec"] |= change
    answer: Obj = {}
    for document in (*before, last):
        version = document["apiVersion"]
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        path = f"{root}/namespaces/{jobs.namespace}/{RESOURCES[document['kind']]}?fieldValidation=Strict"
        answer = jobs.plane.request("POST", path, shortened(document, selector))
    return answer


def path_of(obj: Obj) -> str:
    meta = obj["metadata"]
    return f"/apis/{obj['apiVersion']}/namespaces/{meta['namespace']}/{RESOURCES[obj['kind']]}/{meta['name']}"


def children(jobs: Jobs, parent: Obj) -> list[Obj]:
    """Return the jobs that an object controls."""
    uid = parent["metadata"]["uid"]
    items = jobs.plane.request("GET", f"/apis/batch.volcano.sh/v1alpha1/namespaces/{jobs.namespace}/jobs")["items"]
    return [job for job in items if uid in [owner["uid"] for owner in job["metadata"].get("ownerReferences", ())]]


@together
@pytest.mark.parametrize("name", JOBS)
def test_the_job_of_an_example_runs_to_its_end(jobs: Jobs, name: str) -> None:
    job = jobs.adopt(create(jobs, name))

    job.wait_phase("Completed")
    job.rests()

    assert job.phases[:2] == ["Pending", "Running"], job.story()
    assert "Restarting" not in job.phases, job.story()


@together
def test_the_cron_job_makes_jobs_that_run_to_their_end(jobs: Jobs) -> None:
    cron = create(jobs, "cron", schedule="@every 3s")
    try:
        wait_until(
            "a job of the cron job is complete",
            lambda: "Completed" in map(phase_of, children(jobs, cron)),
            PATIENCE_S,
        )
        assert {job["metadata"]["labels"]["app"] for job in children(jobs, cron)} == {"nightly-report"}
    finally:
        jobs.plane.request("DELETE", path_of(cron), {"propagationPolicy": "Background"})


@together
def test_the_flow_succeeds_and_keeps_its_four_jobs(jobs: Jobs) -> None:
    flow = create(jobs, "flow")

    wait_until(
        "the flow succeeds",
        lambda: jobs.plane.request("GET", path_of(flow)).get("status", {}).get("state", {}).get("phase") == "Succeed",
        PATIENCE_S,
    )

    made = {job["metadata"]["name"]: phase_of(job) for job in children(jobs, flow)}
    assert made == dict.fromkeys(
        ("models-prepare", "models-train-small", "models-train-large", "models-compare"), "Completed"
    )
