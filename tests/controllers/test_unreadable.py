"""Objects that a controller cannot read, or over which its code raises: they are told, and all others go on."""

from typing import Any

import pytest

from tests.controllers.managing import controllers, group_of, put_pod
from tests.effects.waiting import until
from volcano_py.api import keys
from volcano_py.apiserver import ApiServer
from volcano_py.controllers.job.controller import JobController
from volcano_py.kube.own_faults import OwnFaults

QUARANTINED = "volcano_py_quarantined_objects"


def a_vcjob(name: str, **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": metadata, "spec": spec}


def warnings(server: ApiServer, name: str) -> list[tuple[str, str, str]]:
    return [
        (event["involvedObject"]["apiVersion"], event["reason"], event["message"])
        for event in server.list("events", "default")
        if event["involvedObject"]["name"] == name
    ]


async def test_a_job_that_does_not_fit_its_type_has_an_event_and_is_counted(server: ApiServer) -> None:
    server.faults.inject(a_vcjob("bad", minAvailable="many"))
    async with controllers(server.url) as manager:
        await until(lambda: warnings(server, "bad"))
        assert manager.registry.get_sample_value(QUARANTINED, {"resource": "jobs.batch.volcano.sh"}) == 1

        put_pod(server, "good")
        await until(lambda: group_of(server, "good"))

    ((version, reason, message),) = warnings(server, "bad")
    assert (version, reason) == ("batch.volcano.sh/v1alpha1", "Unreadable")
    assert "default/bad cannot be read: Expected `int" in message
    assert "until it is corrected" in message


async def test_a_pod_over_which_a_controller_raises_is_counted_and_others_go_on(
    server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OwnFaults, "survived", True)
    changed = JobController.pod_changed

    def pod_changed(self: JobController, pod: Any, owner: str) -> bool:
        if pod.metadata.name == "bad":
            raise LookupError("a bug")
        return changed(self, pod, owner)

    monkeypatch.setattr(JobController, "pod_changed", pod_changed)
    put_pod(server, "bad", server.create(a_vcjob("j")), labels={keys.JOB_NAME: "j"})
    async with controllers(server.url) as manager:
        assert manager.registry.get_sample_value(QUARANTINED, {"resource": "pods of jobs"}) == 1
        put_pod(server, "good")
        await until(lambda: group_of(server, "good"))
        assert manager.not_ready() == []
