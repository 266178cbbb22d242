"""What the dispatcher says about a batch: how much of it is carried out, and whether another cycle is needed."""

from unittest.mock import MagicMock

import pytest
from prometheus_client import CollectorRegistry

from volcano_py.daemon.dispatch import Delivered, Dispatcher
from volcano_py.daemon.metrics import DaemonMetrics
from volcano_py.model.decisions import Bind, Decision, Evict, SetPodGroupStatus
from volcano_py.model.objects import JobKey, TaskRef
from volcano_py.runtime.clock import FakeClock
from volcano_py.testing import a_group, a_node, a_pod
from volcano_py.testing.cluster import a_cluster

STATUS = SetPodGroupStatus(JobKey("default", "g1"), "uid-g1", "Inqueue", 0, 0, 0, ())


def bind(pod: str, group: str, node: str = "n1") -> Bind:
    return Bind(TaskRef("default", pod, f"uid-{pod}"), node, JobKey("default", group))


def evict(pod: str, beneficiary: JobKey | None = None) -> Evict:
    return Evict(TaskRef("default", pod, f"uid-{pod}"), "n1", JobKey("default", "g3"), "preempt", "", beneficiary)


def deliver(*batch: Decision, room: int = 100) -> Delivered:
    clock = FakeClock()
    cache = a_cluster(
        a_node("n1", cpu=8),
        *(a_group(name) for name in ("g1", "g2", "g3")),
        *(a_pod(f"p{n}", uid=f"uid-p{n}", group=group, cpu=1) for n, group in enumerate(("g1", "g1", "g2"))),
        *(
            a_pod(name, uid=f"uid-{name}", group="g3", cpu=1, node="n1", phase="Running")
            for name in ("victim", "other")
        ),
        clock=clock,
    )
    writers = MagicMock()
    writers.evictor.room = room
    token = cache.token
    return Dispatcher(cache, writers, DaemonMetrics.of(CollectorRegistry()), clock=clock).deliver(batch, token)


GONE = "no-such-node"


@pytest.mark.parametrize(
    ("batch", "delivered"),
    [
        pytest.param([bind("p0", "g1"), bind("p2", "g2")], Delivered(2, outdated=False), id="all"),
        pytest.param([bind("p0", "g1", GONE), bind("p1", "g1")], Delivered(0, outdated=True), id="a gang as a whole"),
        pytest.param([bind("p0", "g1", GONE), bind("p2", "g2")], Delivered(1, outdated=True), id="one of two jobs"),
        pytest.param([STATUS], Delivered(0, outdated=False), id="a status does not count"),
        pytest.param([bind("p0", "g1", GONE), STATUS], Delivered(0, outdated=True), id="a status beside a bind"),
        pytest.param([evict("victim"), evict("other")], Delivered(2, outdated=False), id="evictions"),
        pytest.param([evict("victim"), evict("nobody")], Delivered(1, outdated=True), id="one of two plans"),
        pytest.param(
            [evict("victim", JobKey("default", "g1")), bind("p0", "g1", GONE)],
            Delivered(0, outdated=True),
            id="a plan whose bind is refused",
        ),
    ],
)
def test_a_batch_says_how_much_of_it_is_carried_out(batch: list[Decision], delivered: Delivered) -> None:
    assert deliver(*batch) == delivered


def test_too_many_evictions_ask_for_no_other_cycle() -> None:
    assert deliver(evict("victim"), room=0) == Delivered(0, outdated=False)
