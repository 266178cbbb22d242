"""PodGroups of jobs that name another scheduler."""

from typing import Any

import msgspec
import pytest

from tests.controllers.managing import GROUPS, controllers
from tests.effects.waiting import until
from volcano_py.api.batch import Job
from volcano_py.api.scheduling import PodGroup
from volcano_py.apiserver import ApiServer
from volcano_py.controllers.podgroup import job_groups
from volcano_py.controllers.writes import Patch
from volcano_py.testing import a_group, as_json, manifest

SCHEDULER = "volcano.sh/scheduler-name"


def a_vcjob(scheduler: str, uid: str = "uid-j") -> dict[str, Any]:
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "default", "uid": uid},
        "spec": {"schedulerName": scheduler, "tasks": [{"name": "t"}]},
    }


def reference(uid: str = "uid-j", api_version: str = "batch.volcano.sh/v1alpha1") -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": "Job", "name": "j", "uid": uid, "controller": True}


def group_of_job(written: str | None = None, **owner: Any) -> PodGroup:
    annotations = {} if written is None else {SCHEDULER: written}
    group = as_json(a_group("j-uid"), metadata={"ownerReferences": [reference(**owner)], "annotations": annotations})
    return msgspec.convert(group, PodGroup)


@pytest.mark.parametrize(
    ("scheduler", "written", "change"),
    [
        pytest.param("other", None, "other", id="foreign"),
        pytest.param("other", "third", "other", id="changed"),
        pytest.param("volcano", "other", None, id="ours-again"),
        pytest.param("", "other", None, id="ours-by-default"),
    ],
)
def test_the_annotation_follows_the_job(scheduler: str, written: str | None, change: str | None) -> None:
    plan = job_groups.plan(group_of_job(written), msgspec.convert(a_vcjob(scheduler), Job), ("volcano",))

    (write,) = plan.steps
    assert isinstance(write, Patch)
    assert write.body["metadata"]["annotations"] == {SCHEDULER: change}


@pytest.mark.parametrize(
    ("scheduler", "written", "uid"),
    [
        pytest.param("volcano", None, "uid-j", id="ours"),
        pytest.param("", None, "uid-j", id="default"),
        pytest.param("other", "other", "uid-j", id="written-already"),
        pytest.param("volcano", "volcano", "uid-j", id="ours-and-says-so"),
        pytest.param("other", None, "uid-earlier", id="group-of-an-earlier-job"),
    ],
)
def test_nothing_is_written_without_need(scheduler: str, written: str | None, uid: str) -> None:
    job = msgspec.convert(a_vcjob(scheduler), Job)

    assert job_groups.plan(group_of_job(written, uid=uid), job, ("volcano",)).steps == ()


def test_a_job_of_kubernetes_is_not_a_job_of_volcano() -> None:
    assert job_groups.job_of(group_of_job()) == "default/j"
    assert job_groups.job_of(group_of_job(api_version="batch/v1")) == ""
    assert job_groups.job_of(a_group()) == ""


async def test_the_group_of_a_job_of_another_scheduler_is_left_to_it(server: ApiServer) -> None:
    body = a_vcjob("other")
    del body["metadata"]["uid"]

    def annotations() -> Any:
        found = server.get(GROUPS, "j-uid", "default")
        return {} if found is None else found["metadata"].get("annotations", {})

    async with controllers(server.url):
        job = server.create(body)
        server.create(manifest(a_group("j-uid"), metadata={"ownerReferences": [reference(job["metadata"]["uid"])]}))

        await until(lambda: annotations().get(SCHEDULER) == "other")  # the job controller adds the version
