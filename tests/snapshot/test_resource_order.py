import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reference.strategies import worlds
from tests.reference.world import GPU, World, a_job, a_node, a_shape, a_task
from volcano_py.model.statuses import TaskStatus
from volcano_py.snapshot.columns import Snapshot

FPGA, RDMA = "example.com/fpga", "rdma/hca"


def cluster(*first_seen: str) -> World:
    """A cluster of three extended resources that were first seen in this order."""
    return World(
        nodes=(
            a_node("n0", **dict.fromkeys(first_seen, 1)),
            a_node("n1", **{FPGA: 4, GPU: 8, RDMA: 2}),
        ),
        jobs=(a_job("j", min_resources={"cpu": 500.0, RDMA: 1000.0}),),
        tasks=(
            a_task(
                "p", a_shape(cpu=1, memory="1Gi", **{FPGA: 1, GPU: 3}), job="j", status=TaskStatus.RUNNING, node="n1"
            ),
            a_task("q", a_shape(cpu=2, **{RDMA: 2}), job="j"),
        ),
    )


@pytest.mark.parametrize("first_seen", [(FPGA, GPU, RDMA), (RDMA, FPGA, GPU), (GPU, RDMA, FPGA)], ids="-".join)
def test_resources_are_cpu_memory_pods_and_then_by_name_in_any_order_of_arrival(first_seen: tuple[str, ...]) -> None:
    snapshot = cluster(*first_seen).store().snapshot()

    assert snapshot.resources.names == ("cpu", "memory", "pods", FPGA, GPU, RDMA)
    assert snapshot.nodes.allocatable[3:, 1].tolist() == [4000, 8000, 2000]
    assert snapshot.nodes.used[:, 1].tolist() == [1000, 1024**3, 1, 1000, 3000, 0]
    assert snapshot.nodes.idle[3:, 1].tolist() == [3000, 5000, 2000]
    assert snapshot.nodes.nonzero[:, 1].tolist() == [1000, 1024**3]
    assert snapshot.jobs.allocated[:, 0].tolist() == [1000, 1024**3, 1, 1000, 3000, 0]
    assert snapshot.jobs.pending[:, 0].tolist() == [2000, 0, 1, 0, 0, 2000]
    assert snapshot.jobs.rules.min_resources[:, 0].tolist() == [500, 0, 0, 0, 0, 1000]
    assert snapshot.jobs.counts[TaskStatus.PENDING].tolist() == [1]
    assert snapshot.requests[:, snapshot.tasks.shape[1]].tolist() == [2000, 0, 1, 0, 0, 2000]


def test_the_store_goes_on_with_its_own_rows_after_a_snapshot() -> None:
    store = cluster(RDMA, GPU, FPGA).store()
    store.snapshot()
    store.set_node(a_node("n2", **{"another.example/x": 1}))

    snapshot = store.snapshot()

    assert snapshot.resources.names[3] == "another.example/x"
    assert snapshot.nodes.allocatable[3].tolist() == [0, 0, 1000]
    assert snapshot.nodes.used[4].tolist() == [0, 1000, 0]


@settings(max_examples=40, derandomize=True)
@given(worlds(), st.integers(0, 10**6))
def test_a_store_filled_in_another_order_gives_the_same_nodes(world: World, shuffle: int) -> None:
    one, other = world.store().snapshot(), world.store(shuffle).snapshot()

    for first, second in zip(_nodes(one), _nodes(other), strict=True):
        assert np.array_equal(first, second)
    assert one.resources.names == other.resources.names
    assert list(one.nodes.names) == list(other.nodes.names)


def _nodes(snapshot: Snapshot) -> tuple[np.ndarray, ...]:
    nodes = snapshot.nodes
    return nodes.block, nodes.unschedulable, nodes.closed
