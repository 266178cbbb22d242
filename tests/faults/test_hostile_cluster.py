"""Scheduler and controllers on an API server that holds hostile objects of every kind: good jobs beside them run.

Faults of ours are not survived here (`tests.conftest`), so they would end the programs.
"""

import re
from typing import Any, Final

import pytest

from tests.controllers.managing import controllers, group_of, put_workload
from tests.controllers.managing import put_pod as put_pod_of_workload
from tests.controllers.vcjobs import put_job as put_vcjob
from tests.daemon.cluster import placed, put_job, put_node, put_pod, scheduler
from tests.effects.waiting import until
from tests.faults.hostile import Maker
from tests.faults.test_objects import AT_ONCE
from tests.snapshot.test_left_out import made_up
from volcano_py.api.batch import Command, CronJob, Job
from volcano_py.api.core import Node, Pod
from volcano_py.api.flow import JobFlow, JobTemplate
from volcano_py.api.scheduling import PodGroup, Queue
from volcano_py.api.topology import HyperNode
from volcano_py.apiserver import ApiServer
from volcano_py.kube.resource import (
    COMMANDS,
    CRON_JOBS,
    HYPER_NODES,
    JOB_FLOWS,
    JOB_TEMPLATES,
    NODES,
    PODGROUPS,
    PODS,
    QUEUES,
    VCJOBS,
    Resource,
)
from volcano_py.testing import a_pod, manifest

OF_EACH: Final = 12
KINDS: Final[dict[Resource, type]] = {
    QUEUES: Queue,
    PODGROUPS: PodGroup,
    VCJOBS: Job,
    CRON_JOBS: CronJob,
    COMMANDS: Command,
    JOB_FLOWS: JobFlow,
    JOB_TEMPLATES: JobTemplate,
    HYPER_NODES: HyperNode,
    NODES: Node,
    PODS: Pod,
}


def put_hostile(server: ApiServer, seed: int) -> dict[str, int]:
    """Store hostile objects of every kind; return how many of each."""
    maker = Maker(seed)
    for resource, wire in KINDS.items():
        for _ in range(OF_EACH):
            body: dict[str, Any] = maker.of(wire, namespaced=resource.namespaced).body
            meta = body["metadata"]
            meta = {key: meta[key] for key in meta if key not in ("uid", "resourceVersion", "deletionTimestamp")}
            meta.pop("ownerReferences", None)  # otherwise the server collects it as garbage
            if not resource.namespaced:
                del meta["namespace"]
            server.faults.inject({**body, "apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta})
    return {resource.label: len(server.list(resource.label)) for resource in KINDS}


@pytest.mark.parametrize("seed", range(3))
async def test_good_jobs_run_beside_hostile_objects(server: ApiServer, seed: int) -> None:
    counts = put_hostile(server, seed)
    assert set(counts.values()) == {OF_EACH}
    put_node(server, "clean", cpu=64)
    async with scheduler(server.url, pod_conditions=AT_ONCE) as running, controllers(server.url) as manager:
        put_job(server, "good", 3)
        await until(lambda: len(placed(server, "good")) == 3)
        template = {"spec": manifest(a_pod(cpu="1"))["spec"]}
        task = {"name": "t", "replicas": 2, "template": template}
        put_vcjob(server, "better", queue="default", schedulerName="volcano", tasks=[task], minAvailable=2)
        await until(lambda: len(placed(server, "better")) == 2)
        workload = put_workload(server, "ReplicaSet", "web")
        put_pod_of_workload(server, "web-1", workload)
        await until(lambda: group_of(server, "web-1"))
        assert manager.not_ready() == []
        assert running.daemon.not_ready() == []
    reasons = {event["reason"] for event in server.list("events", "default")}
    assert "Unreadable" in reasons


async def test_a_pod_with_20_000_made_up_resources_holds_up_nobody(server: ApiServer) -> None:
    for number in range(20):
        put_node(server, f"n{number}")
    server.create(manifest(a_pod("bad", group="bad", cpu="1", **made_up(20_000))))
    put_job(server, "bad", 0)
    async with scheduler(server.url, pod_conditions=AT_ONCE) as running:
        put_job(server, "good", 3)
        await until(lambda: len(placed(server, "good")) == 3)
        waits = re.compile(r"no node offers example.com/made-up-00000 and 19999 more resources: correct the request")
        await until(lambda: any(waits.search(event["message"]) for event in server.list("events", "default")))
        assert len(running.daemon.cache.store.resources) == 4
        put_pod(server, "good-again", "good")
        await until(lambda: "good-again" in placed(server))
