"""Finished jobs on an embedded API server: they go when their time to live is over."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.controllers.managing import controllers
from tests.controllers.vcjobs import JOBS, end_job, names, put_job
from tests.daemon.cluster import comes_to_rest, stays
from tests.effects.waiting import until
from volcano_py.apiserver import ApiServer, Fault
from volcano_py.controllers.garbage_collector.controller import GarbageCollector
from volcano_py.controllers.manager import ControllerManager
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.resource import VCJOBS

OWNED = {"apiVersion": VCJOBS.api_version, "kind": VCJOBS.kind, "controller": True, "blockOwnerDeletion": True}


@asynccontextmanager
async def collecting(server: ApiServer) -> AsyncIterator[tuple[ControllerManager, ApiClient]]:
    """Start only this controller."""
    async with controllers(server.url, controllers=frozenset({"gc-controller"})) as manager:
        yield manager, manager.client


def deletions(server: ApiServer) -> int:
    return sum(count for (verb, what), count in server.requests.writes().items() if (verb, what) == ("delete", JOBS))


def backlog(manager: ControllerManager) -> float | None:
    return manager.registry.get_sample_value("volcano_py_controller_backlog", {"controller": "gc-controller"})


def waiting(manager: ControllerManager) -> int:
    """Return how many jobs have a place in the queue."""
    (collector,) = (one for one in manager._controllers if isinstance(one, GarbageCollector))
    return collector._shell._queue.backlog


async def test_a_job_goes_when_its_time_to_live_is_over(server: ApiServer) -> None:
    put_job(server, "done", ttlSecondsAfterFinished=30)
    put_job(server, "kept")
    async with collecting(server) as (_, user):
        await end_job(user, "kept", seconds_ago=10_000)
        await end_job(user, "done", "Failed", seconds_ago=29)

        await until(lambda: names(server) == ["kept"])
        assert deletions(server) == 1


async def test_jobs_that_finished_while_nobody_looked_go_at_the_start(server: ApiServer) -> None:
    put_job(server, "done", ttlSecondsAfterFinished=5)
    async with ApiClient(Credentials(server.url)) as user:
        await end_job(user, "done", "Terminated", seconds_ago=6)
    async with collecting(server):
        await until(lambda: names(server) == [])


async def test_a_job_without_an_end_costs_nothing(server: ApiServer) -> None:
    put_job(server, "runs", ttlSecondsAfterFinished=0)
    put_job(server, "aborted", ttlSecondsAfterFinished=0)
    async with collecting(server) as (manager, user):
        await end_job(user, "runs", "Running", seconds_ago=100)
        await end_job(user, "aborted", "Aborted", seconds_ago=100)
        await stays(lambda: backlog(manager) == 0, 0.2)

    assert names(server) == ["aborted", "runs"]


async def test_a_job_that_lives_long_leaves_its_place_in_the_queue_to_others(server: ApiServer) -> None:
    put_job(server, "week", ttlSecondsAfterFinished=7 * 24 * 3600)
    put_job(server, "minute", ttlSecondsAfterFinished=60)
    async with collecting(server) as (manager, user):
        await end_job(user, "week")
        await end_job(user, "minute")

        await until(lambda: waiting(manager) == 1)
        await stays(lambda: waiting(manager) == 1, 0.2)
        assert backlog(manager) == 0  # nothing is due


async def test_a_time_to_live_that_is_set_later_counts(server: ApiServer) -> None:
    put_job(server, "done")
    async with collecting(server) as (_, user):
        await end_job(user, "done", seconds_ago=100)
        body = {"spec": {"ttlSecondsAfterFinished": 10}}
        await user.patch(VCJOBS, "done", body, dict, namespace="default")

        await until(lambda: names(server) == [])


async def test_a_time_to_live_that_is_raised_in_the_last_moment_keeps_the_job(server: ApiServer) -> None:
    put_job(server, "done", ttlSecondsAfterFinished=30)
    async with collecting(server) as (_, user):
        fault = server.faults.add(Fault("reply", verb="delete", resource=JOBS, code=503))
        await end_job(user, "done", seconds_ago=31)
        await until(lambda: fault.hits)
        server.faults.disconnect_watches(JOBS)
        body = {"spec": {"ttlSecondsAfterFinished": 3000}}
        await user.patch(VCJOBS, "done", body, dict, namespace="default")
        server.faults.remove(fault)

        await comes_to_rest(lambda: deletions(server), 0.5)
        assert names(server) == ["done"]


async def test_a_job_is_seen_until_what_it_owns_is_gone(server: ApiServer) -> None:
    job = put_job(server, "done", ttlSecondsAfterFinished=0)
    owner = {**OWNED, "name": "done", "uid": job["metadata"]["uid"]}
    meta = {"name": "settings", "namespace": "default", "ownerReferences": [owner], "finalizers": ["test/waits"]}
    server.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})
    async with collecting(server) as (_, user):
        await end_job(user, "done")
        await until(lambda: (server.get(JOBS, "done", "default") or {})["metadata"].get("deletionTimestamp"))
        await stays(lambda: names(server) == ["done"], 0.2)
        assert deletions(server) == 1
