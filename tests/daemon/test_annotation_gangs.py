"""Gangs by annotations with a real scheduler, on an API server that knows neither PodGroups nor queues."""

from tests.daemon.cluster import comes_to_rest, condition, event_reasons, placed, put_node, scheduler
from tests.effects.waiting import until
from volcano_py.apiserver import ApiServer
from volcano_py.testing import a_pod, manifest


def put_member(server: ApiServer, name: str, number: str) -> None:
    notes = {"scheduling.k8s.io/group-pod-num": number}
    server.create(manifest(a_pod(name, group="qj", cpu=2, annotations=notes)))


async def test_a_waiting_annotation_gang_costs_no_writes_once_its_pods_have_conditions() -> None:
    async with ApiServer() as server:
        put_node(server, "n1", cpu=4)
        async with scheduler(server.url, period_s=0.05) as running:
            for number in range(3):
                put_member(server, f"g-{number}", "3")
            await until(lambda: all("FailedScheduling" in event_reasons(server, "Pod", f"g-{n}") for n in range(3)))
            await comes_to_rest(server.requests.writes, 0.2)
            before, cycles = server.requests.snapshot(), running.daemon.cycles.cycles

            await until(lambda: running.daemon.cycles.cycles > cycles + 10)

            assert server.requests.snapshot() == before
            assert event_reasons(server, "PodGroup", "qj") == set()


async def test_it_is_bound_whole_when_there_is_room() -> None:
    async with ApiServer() as server:
        put_node(server, "n1", cpu=4)
        async with scheduler(server.url):
            for number in range(3):
                put_member(server, f"g-{number}", "3")
            await until(lambda: condition(server, "g-0"))

            put_node(server, "n2", cpu=2)

            await until(lambda: len(placed(server)) == 3)
            assert server.requests.count(resource="podgroups.scheduling.volcano.sh", verb="patch") == 0
            assert server.requests.count(resource="podgroups.scheduling.volcano.sh", verb="get") == 0
