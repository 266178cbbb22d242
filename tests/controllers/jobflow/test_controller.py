"""Flows on an embedded API server; the tests play the job controller."""

from typing import Any

from tests.controllers.jobflow.flows import a_step
from tests.controllers.managing import controllers
from tests.daemon.cluster import event_reasons, stays
from tests.effects.waiting import until
from volcano_py.apiserver import ApiServer, Fault
from volcano_py.controllers.manager import ControllerManager
from volcano_py.kube.resource import JOB_FLOWS, JOB_TEMPLATES, VCJOBS
from volcano_py.testing import a_namespace, manifest

JOBS, FLOWS, TEMPLATES = VCJOBS.label, JOB_FLOWS.label, JOB_TEMPLATES.label
SPEC = {"minAvailable": 1, "tasks": [{"name": "t", "replicas": 1, "template": {"spec": {"containers": []}}}]}


def put(server: ApiServer, resource: Any, name: str, spec: dict[str, Any], **meta: Any) -> dict[str, Any]:
    return server.create(
        {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {"name": name, "namespace": "default", **meta},
            "spec": spec,
        }
    )


def put_templates(server: ApiServer, *names: str) -> None:
    for name in names:
        put(server, JOB_TEMPLATES, name, SPEC)


def put_flow(server: ApiServer, *steps: dict[str, Any], policy: str = "retain") -> None:
    put(server, JOB_FLOWS, "f", {"flows": list(steps), "jobRetainPolicy": policy})


def job(server: ApiServer, step: str) -> dict[str, Any] | None:
    return server.get(JOBS, f"f-{step}", "default")


def status(server: ApiServer) -> dict[str, Any]:
    return dict((server.get(FLOWS, "f", "default") or {}).get("status", {}))


def phase(server: ApiServer) -> str:
    return str(status(server).get("state", {}).get("phase", ""))


def delete_job(server: ApiServer, name: str) -> None:
    server.registry.delete(server.resources.named(JOBS), "default", name)


async def enter(manager: ControllerManager, step: str, phase: str) -> None:
    """Let a job enter a phase."""
    body = {"status": {"state": {"phase": phase, "lastTransitionTime": "2024-01-01T00:00:00Z"}}}
    await manager.client.patch(VCJOBS, f"f-{step}", body, dict, namespace="default", subresource="status")


async def run(server: ApiServer, manager: ControllerManager, step: str) -> None:
    """Wait for the job of a step, and let it complete."""
    await until(lambda: job(server, step))
    await enter(manager, step, "Running")
    await enter(manager, step, "Completed")


async def test_a_flow_of_three_runs_step_by_step_and_succeeds(server: ApiServer) -> None:
    put_templates(server, "a", "b", "c")
    async with controllers(server.url) as manager:
        put_flow(server, a_step("a"), a_step("b", "a"), a_step("c", "b"))
        await until(lambda: job(server, "a") and phase(server) == "Pending")
        assert job(server, "b") is None

        for step in ("a", "b", "c"):
            await run(server, manager, step)

        await until(lambda: phase(server) == "Succeed")
        assert status(server)["completedJobs"] == ["f-a", "f-b", "f-c"]
        found = job(server, "c")
        assert found is not None
        assert found["spec"]["minAvailable"] == 1
        await until(lambda: event_reasons(server, "JobFlow", "f") == {"Created", "Succeed"})
        for name in ("a", "b", "c"):
            template = server.get(TEMPLATES, name, "default")
            assert template is not None
            assert template["status"]["jobDependsOnList"] == [f"f-{name}"]


async def test_a_step_whose_job_is_removed_after_completion_is_not_run_again(server: ApiServer) -> None:
    put_templates(server, "a", "b")
    put_flow(server, a_step("a"), a_step("b", "a"))
    async with controllers(server.url) as manager:
        await run(server, manager, "a")
        await until(lambda: job(server, "b"))
        delete_job(server, "f-a")
        await stays(lambda: job(server, "a") is None)
    async with controllers(server.url) as manager:
        await run(server, manager, "b")
        await until(lambda: phase(server) == "Succeed")
        assert job(server, "a") is None


async def test_a_job_that_is_deleted_while_it_runs_is_created_again(server: ApiServer) -> None:
    put_templates(server, "a")
    put_flow(server, a_step("a"))
    async with controllers(server.url) as manager:
        await until(lambda: job(server, "a"))
        await enter(manager, "a", "Running")
        await until(lambda: phase(server) == "Running")
        before = (job(server, "a") or {})["metadata"]["uid"]
        delete_job(server, "f-a")

        await until(lambda: (job(server, "a") or {"metadata": {"uid": before}})["metadata"]["uid"] != before)


async def test_a_flow_says_that_a_template_is_missing_and_goes_on_when_it_appears(server: ApiServer) -> None:
    put_flow(server, a_step("a"))
    async with controllers(server.url):
        await until(lambda: "JobTemplateNotFound" in event_reasons(server, "JobFlow", "f"))
        put_templates(server, "a")

        await until(lambda: job(server, "a"))


async def test_jobs_are_deleted_after_success_if_the_policy_says_so(server: ApiServer) -> None:
    put_templates(server, "a")
    put_flow(server, a_step("a"), policy="delete")
    async with controllers(server.url) as manager:
        await run(server, manager, "a")

        await until(lambda: phase(server) == "Succeed" and job(server, "a") is None)
        await stays(lambda: job(server, "a") is None and status(server)["completedJobs"] == ["f-a"])


async def test_a_job_of_somebody_else_is_left_alone_and_named(server: ApiServer) -> None:
    put_templates(server, "a")
    put(server, VCJOBS, "f-a", SPEC)
    put_flow(server, a_step("a"))
    async with controllers(server.url):
        await until(lambda: "JobExists" in event_reasons(server, "JobFlow", "f"))

        found = job(server, "a")
        assert found is not None
        assert "ownerReferences" not in found["metadata"]


async def test_a_copy_of_a_job_in_another_namespace_neither_steers_the_flow_nor_ends_the_manager(
    server: ApiServer,
) -> None:
    put_templates(server, "a", "b")
    server.create(manifest(a_namespace("other")))
    async with controllers(server.url, controllers=frozenset({"jobflow-controller"})) as manager:
        put_flow(server, a_step("a"), a_step("b", "a"))
        await until(lambda: job(server, "a"))
        mine = job(server, "a") or {}
        meta = {"namespace": "other", "ownerReferences": mine["metadata"]["ownerReferences"]}
        put(server, VCJOBS, "f-a", mine["spec"], **meta, finalizers=["example.com/keep"])
        body = {"status": {"state": {"phase": "Completed", "lastTransitionTime": "2024-01-01T00:00:00Z"}}}
        await manager.client.patch(VCJOBS, "f-a", body, dict, namespace="other", subresource="status")
        await stays(lambda: job(server, "b") is None)

        let_go = {"metadata": {"finalizers": None}}  # garbage collection has deleted it already
        await manager.client.patch(VCJOBS, "f-a", let_go, dict, namespace="other")
        await until(lambda: server.get(JOBS, "f-a", "other") is None)
        await run(server, manager, "a")

        await until(lambda: job(server, "b"))


async def test_a_job_that_is_free_again_is_created(server: ApiServer) -> None:
    put_templates(server, "a")
    put(server, VCJOBS, "f-a", SPEC)
    put_flow(server, a_step("a"))
    async with controllers(server.url):
        await until(lambda: "JobExists" in event_reasons(server, "JobFlow", "f"))
        delete_job(server, "f-a")

        await until(lambda: (job(server, "a") or {"metadata": {}})["metadata"].get("ownerReferences"))


async def test_a_job_that_the_server_refuses_is_an_event_at_once_and_is_tried_again(server: ApiServer) -> None:
    put_templates(server, "a")
    server.faults.add(Fault("reply", verb="create", resource=JOBS, times=2, code=403))
    put_flow(server, a_step("a"))
    async with controllers(server.url):
        await until(lambda: job(server, "a"))

        await until(lambda: {"FailedCreate", "Created"} <= event_reasons(server, "JobFlow", "f"))


async def test_a_lost_answer_and_conflicts_create_no_second_job(server: ApiServer) -> None:
    put_templates(server, "a", "b")
    server.faults.add(Fault("reply", verb="create", resource=JOBS, times=2, code=500))
    server.faults.add(Fault("reply", verb="patch", resource=f"{FLOWS}/status", times=2, code=409))
    put_flow(server, a_step("a"), a_step("b"))
    async with controllers(server.url) as manager:
        for step in ("a", "b"):
            await run(server, manager, step)

        await until(lambda: phase(server) == "Succeed")
    assert server.requests.writes()[("create", JOBS)] <= 4


async def test_nothing_is_written_when_nothing_changes(server: ApiServer) -> None:
    put_templates(server, "a")
    put_flow(server, a_step("a"))
    only = {"controllers": frozenset({"jobflow-controller"})}
    backlog = ("volcano_py_controller_backlog", {"controller": "jobflow-controller"})
    async with controllers(server.url, **only) as manager:
        await until(lambda: job(server, "a"))
        await enter(manager, "a", "Running")
        await until(lambda: phase(server) == "Running")
        await until(lambda: manager.registry.get_sample_value(*backlog) == 0)
    before = sum(server.requests.writes().values())
    async with controllers(server.url, **only) as manager:
        await until(lambda: manager.registry.get_sample_value(*backlog) == 0)

    assert sum(server.requests.writes().values()) == before


async def test_ends_of_flows_are_counted_once_by_namespace_until_the_last_flow_is_deleted(server: ApiServer) -> None:
    def counted(manager: ControllerManager, end: str) -> float | None:
        labels = {"jobflow_namespace": "default"}
        return manager.registry.get_sample_value(f"volcano_jobflow_{end}_phase_count", labels)

    put_templates(server, "a")
    async with controllers(server.url) as manager:
        put_flow(server, a_step("a"))
        await run(server, manager, "a")
        await until(lambda: counted(manager, "succeed") == 1)
        assert counted(manager, "failed") is None
    async with controllers(server.url) as manager:  # it has ended before
        await until(lambda: phase(server) == "Succeed")
        await stays(lambda: counted(manager, "succeed") is None)
        server.registry.delete(server.resources.named(FLOWS), "default", "f")
        put(server, JOB_FLOWS, "g", {"flows": [a_step("a")], "jobRetainPolicy": "retain"})
        await until(lambda: server.get(JOBS, "g-a", "default"))
        body = {"status": {"state": {"phase": "Failed", "lastTransitionTime": "2024-01-01T00:00:00Z"}}}
        await manager.client.patch(VCJOBS, "g-a", body, dict, namespace="default", subresource="status")
        await until(lambda: counted(manager, "failed") == 1)
        server.registry.delete(server.resources.named(FLOWS), "default", "g")
        await until(lambda: counted(manager, "failed") is None)
