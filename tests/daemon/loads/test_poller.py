"""Loads are asked for again and again, and what cannot be known leaves the last good ones."""

import asyncio
from collections.abc import Collection, Mapping

from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from tests.daemon.loads.servers import answering, prometheus
from tests.effects.waiting import until
from volcano_py.conf.node_metrics import NodeMetricsConf
from volcano_py.daemon.loads.keeper import LoadKeeper
from volcano_py.daemon.loads.poller import LoadPoller
from volcano_py.daemon.loads.source import LoadSource, Measured, Unmeasured
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import Credentials
from volcano_py.metrics.loads import LoadMetrics
from volcano_py.model.loads import NodeLoad
from volcano_py.runtime.clock import FakeClock, RealClock


class Scripted:
    """A source that answers what it is told to, or hangs."""

    def __init__(self, *answers: Mapping[str, Measured] | Exception | None) -> None:
        self.answers = list(answers)

    async def loads(self, nodes: Collection[str]) -> dict[str, Measured]:
        answer = self.answers.pop(0)
        if answer is None:
            await asyncio.sleep(60)
        if isinstance(answer, Exception):
            raise answer
        return dict(answer or {})


class Bench:
    """A poller, what it has handed on and what it has measured of itself."""

    def __init__(self, *answers: Mapping[str, Measured] | Exception | None) -> None:
        self.taken: list[tuple[dict[str, NodeLoad], float]] = []
        self.registry, self.clock = CollectorRegistry(), FakeClock()
        self.poller = LoadPoller(
            Scripted(*answers),
            lambda: ["n1", "n2"],
            lambda loads, interval: self.taken.append((dict(loads), interval)),
            LoadMetrics(self.registry),
            clock=self.clock,
            interval_s=7.0,
            round_s=0.05,
        )

    def rounds(self, result: str) -> float:
        return self.registry.get_sample_value("volcano_py_node_load_rounds_total", {"result": result}) or 0.0


async def test_answers_are_passed_on_with_their_time() -> None:
    bench = Bench({"n1": Measured(1, 2), "n2": Measured(3, 4, 99.0)})
    now = bench.clock.now().timestamp()

    await bench.poller.ask()

    assert bench.taken == [({"n1": NodeLoad(1, 2, now), "n2": NodeLoad(3, 4, 99.0)}, 7.0)]
    assert bench.rounds("answered") == 1
    assert bench.registry.get_sample_value("volcano_py_node_load_nodes") == 2


async def test_a_failure_is_logged_once_and_so_is_its_end() -> None:
    known = {"n1": Measured(1, 2), "n2": Measured(3, 4)}
    bench = Bench(Unmeasured("no right"), Unmeasured("no right"), None, known)

    with capture_logs() as logs:
        for _ in range(4):
            await bench.poller.ask()

    assert [entry.get("why", entry["event"]) for entry in logs] == [
        "no right",
        "no answer within 0.05 s",
        "loads of nodes are measured again",
    ]
    assert (len(bench.taken), bench.rounds("failed")) == (1, 3)


async def test_unknown_nodes_are_named_when_they_change() -> None:
    bench = Bench({"n1": Measured(1, 2)}, {"n1": Measured(1, 2)}, {})

    with capture_logs() as logs:
        for _ in range(3):
            await bench.poller.ask()

    assert [entry["some"] for entry in logs] == [["n2"], ["n1", "n2"]]


async def test_the_configuration_determines_which_source_is_polled() -> None:
    taken: list[str] = []
    conf: list[NodeMetricsConf | None] = [None]

    def poller(source: LoadSource, interval_s: float) -> LoadPoller:
        def take(loads: Mapping[str, NodeLoad], interval: float) -> None:
            taken.extend(f"{name}: {load.cpu:g}" for name, load in loads.items())

        metrics = LoadMetrics(CollectorRegistry())
        return LoadPoller(source, lambda: ["n"], take, metrics, clock=RealClock(), interval_s=interval_s)

    async with (
        answering(prometheus({"n": 1}, {"n": 1})) as first,
        answering(prometheus({"n": 2}, {"n": 2})) as second,
        ApiClient(Credentials(first)) as client,
    ):
        keeper = LoadKeeper(lambda: conf[0], client, poller, clock=RealClock())
        task = asyncio.create_task(keeper.run(), name="keeper")
        try:
            for url, says in ((first, "n: 1"), (second, "n: 2")):
                conf[0] = NodeMetricsConf("prometheus", url, 3600.0)  # a change does not wait for the next query
                keeper.wake()
                await until(lambda says=says: says in taken)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
