"""What other programs do to pods and PodGroups while the scheduler runs (docs/other-programs.md)."""

from typing import Any

from tests.daemon.cluster import condition, group, placed, put_group, put_job, put_node, put_pod, scheduler, set_phase
from tests.effects.waiting import until
from volcano_py.apiserver import ApiServer
from volcano_py.kube.client import PatchType
from volcano_py.kube.resource import PODGROUPS, PODS
from volcano_py.testing import a_node, manifest

GATE = "kueue.x-k8s.io/admission"


def status(server: ApiServer, name: str) -> dict[str, Any]:
    found: dict[str, Any] = group(server, name).get("status", {})
    return found


async def test_a_group_that_is_replaced_without_its_status_gets_it_back(server: ApiServer) -> None:
    """As with ``kubectl replace`` and Argo CD's ``Replace=true``: PodGroups have no subresource for their status."""
    put_node(server, "n1", cpu=2)
    async with scheduler(server.url) as running:
        put_job(server, "runs", 2)
        await until(lambda: len(placed(server)) == 2)
        await set_phase(running, ["runs-0", "runs-1"], "Running")
        put_job(server, "waits", 2)
        await until(lambda: status(server, "runs").get("running") == 2 and status(server, "waits").get("conditions"))
        before = {name: status(server, name) for name in ("runs", "waits")}

        for name in before:
            whole = {key: value for key, value in group(server, name).items() if key != "status"}
            await running.daemon.client.replace(PODGROUPS, name, whole, dict, namespace="default")

        await until(
            lambda: [status(server, name).get("phase") for name in before] == ["Running", before["waits"]["phase"]]
        )
        assert status(server, "runs")["running"] == 2
        assert set(placed(server)) == {"runs-0", "runs-1"}


async def test_pods_that_come_after_those_before_them_have_ended_are_placed(server: ApiServer) -> None:
    """The pods of all steps of an Argo workflow share a PodGroup."""
    put_node(server, "n1", cpu=2)
    async with scheduler(server.url) as running:
        put_group(server, "workflow")
        put_pod(server, "first", "workflow")
        await until(lambda: placed(server, "first"))
        await set_phase(running, ["first"], "Succeeded")
        await until(lambda: status(server, "workflow").get("phase") == "Completed")

        put_pod(server, "second", "workflow")

        await until(lambda: placed(server, "second"))


async def test_a_pod_goes_where_it_is_sent_when_its_gate_is_removed(server: ApiServer) -> None:
    """Kueue removes its gate and adds the node selectors of a flavor in one write."""
    put_node(server, "n1")
    server.create(manifest(a_node("spot", labels={"flavor": "spot"}, cpu=4)))
    async with scheduler(server.url) as running:
        put_group(server, "gated", min_resources={"cpu": "1"})
        put_pod(server, "pod", "gated", schedulingGates=[{"name": GATE}])
        await until(lambda: condition(server, "pod").get("reason") == "SchedulingGated")

        spec = {"schedulingGates": None, "nodeSelector": {"flavor": "spot"}}
        await running.daemon.client.patch(PODS, "pod", {"spec": spec}, dict, kind=PatchType.MERGE, namespace="default")

        await until(lambda: placed(server) == {"pod": "spot"})
