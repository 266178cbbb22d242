"""Writes are carried out once, at a bounded rate."""

import asyncio
import time

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.controllers.managing import GROUPS, put_group
from volcano_py.apiserver import ApiServer
from volcano_py.controllers.writes import Create, Delete, Patch, Writer
from volcano_py.kube import errors
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.resource import NAMESPACES, PODGROUPS
from volcano_py.runtime.clock import RealClock
from volcano_py.testing import a_group, a_namespace, manifest


def a_create(name: str = "g", namespace: str = "default") -> Create:
    return Create(PODGROUPS, namespace, manifest(a_group(name, namespace="")))


def a_writer(client: ApiClient, rate_per_s: float = 1000.0, burst: int = 100) -> Writer:
    return Writer(client, rate_per_s=rate_per_s, burst=burst, clock=RealClock())


async def test_creating_an_existing_object_is_no_error(server: ApiServer) -> None:
    async with ApiClient(Credentials(server.url)) as client:
        writer = a_writer(client)

        assert [await writer.write(a_create()), await writer.write(a_create())] == [True, False]


async def test_changing_or_deleting_a_missing_object_is_no_error(server: ApiServer) -> None:
    async with ApiClient(Credentials(server.url)) as client:
        writer = a_writer(client)

        assert not await writer.write(Patch(PODGROUPS, "default", "gone", {}))
        assert not await writer.write(Delete(PODGROUPS, "default", "gone", "uid"))


async def test_another_object_of_the_same_name_is_not_deleted(server: ApiServer) -> None:
    put_group(server, "g")
    async with ApiClient(Credentials(server.url)) as client:
        with pytest.raises(errors.Conflict):
            await a_writer(client).write(Delete(PODGROUPS, "default", "g", "an earlier one"))

    assert server.get(GROUPS, "g", "default")


async def test_an_object_that_has_changed_is_not_deleted_in_its_old_version(server: ApiServer) -> None:
    put_group(server, "g")
    meta = (server.get(GROUPS, "g", "default") or {})["metadata"]
    deletion = Delete(PODGROUPS, "default", "g", meta["uid"], resource_version=meta["resourceVersion"])
    async with ApiClient(Credentials(server.url)) as client:
        await client.patch(PODGROUPS, "g", {"metadata": {"labels": {"a": "b"}}}, dict, namespace="default")
        with pytest.raises(errors.Conflict):
            await a_writer(client).write(deletion)

    assert server.get(GROUPS, "g", "default")


async def test_whoever_must_know_why_a_write_is_not_needed_is_told(server: ApiServer) -> None:
    put_group(server, "g")
    async with ApiClient(Credentials(server.url)) as client:
        with pytest.raises(errors.AlreadyExists):
            await a_writer(client).sent(a_create())
        with pytest.raises(errors.NotFound):
            await a_writer(client).sent(Delete(PODGROUPS, "default", "gone", "uid"))


async def test_an_answer_about_another_object_says_nothing_about_the_one_that_is_written() -> None:
    """A webhook that looks something up may pass on what it was told."""

    async def answer(request: web.Request) -> web.Response:
        code, reason = (409, "AlreadyExists") if request.method == "POST" else (404, "NotFound")
        details = {"group": "example.com", "kind": "teams", "name": "blue"}
        status = {"kind": "Status", "code": code, "reason": reason, "message": "teams blue", "details": details}
        return web.json_response(status, status=code)

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", answer)
    async with TestServer(application) as server, ApiClient(Credentials(str(server.make_url("")))) as client:
        with pytest.raises(errors.Conflict):
            await a_writer(client).write(a_create())
        with pytest.raises(errors.NotServed):
            await a_writer(client).write(Delete(PODGROUPS, "default", "g", "uid"))


async def test_a_write_in_a_terminating_namespace_is_no_error(server: ApiServer) -> None:
    server.create(manifest(a_namespace("going"), metadata={"finalizers": ["a.b/slow"]}))
    async with ApiClient(Credentials(server.url)) as client:
        await client.delete(NAMESPACES, "going")

        assert not await a_writer(client).write(a_create(namespace="going"))


async def test_an_object_whose_namespace_is_missing_cannot_be_created(server: ApiServer) -> None:
    async with ApiClient(Credentials(server.url)) as client:
        with pytest.raises(errors.NotFound):
            await a_writer(client).write(a_create(namespace="nowhere"))


async def test_the_rate_holds_for_all_writers_together(server: ApiServer) -> None:
    async with ApiClient(Credentials(server.url)) as client:
        writer = a_writer(client, rate_per_s=20, burst=2)
        started = time.monotonic()

        await asyncio.gather(*(writer.write(a_create(f"g{number}")) for number in range(6)))

    assert time.monotonic() - started >= 0.18
