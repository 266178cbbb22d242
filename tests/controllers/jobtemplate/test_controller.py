"""The jobs of job templates, on an embedded API server."""

from typing import Any

from tests.controllers.jobflow.test_controller import SPEC, TEMPLATES, delete_job, put, put_templates
from tests.controllers.managing import controllers
from tests.effects.waiting import until
from volcano_py.apiserver import ApiServer
from volcano_py.kube.resource import VCJOBS

MARK = "volcano.sh/createdByJobTemplate"


def put_job(server: ApiServer, name: str, template: str) -> None:
    put(server, VCJOBS, name, SPEC, labels={MARK: template}, annotations={MARK: template})


def dependents(server: ApiServer, template: str) -> Any:
    found = server.get(TEMPLATES, template, "default")
    return None if found is None else found.get("status", {}).get("jobDependsOnList", [])


async def test_a_template_lists_its_jobs_and_forgets_those_that_are_gone(server: ApiServer) -> None:
    put_templates(server, "a", "b.c")
    put_job(server, "two", "default.a")
    put_job(server, "dots", "default.b.c")
    put_job(server, "far", "other.a")
    async with controllers(server.url):
        put_job(server, "one", "default.a")
        await until(lambda: dependents(server, "a") == ["one", "two"])
        await until(lambda: dependents(server, "b.c") == ["dots"])
        delete_job(server, "two")

        await until(lambda: dependents(server, "a") == ["one"])


async def test_a_template_that_comes_after_its_jobs_lists_them(server: ApiServer) -> None:
    put_job(server, "one", "default.a")
    async with controllers(server.url):
        put_templates(server, "a")

        await until(lambda: dependents(server, "a") == ["one"])
