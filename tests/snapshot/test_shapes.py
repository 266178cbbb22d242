import numpy as np
import pytest

from tests.reference.world import GPU, a_shape
from volcano_py.model.resources import ResourceRegistry
from volcano_py.model.statuses import TaskStatus
from volcano_py.snapshot import layout
from volcano_py.snapshot.shapes import ShapeTable


@pytest.fixture
def registry() -> ResourceRegistry:
    return ResourceRegistry()


@pytest.fixture
def table(registry: ResourceRegistry) -> ShapeTable:
    return ShapeTable(registry)


def test_equal_shapes_share_an_id(table: ShapeTable) -> None:
    assert table.acquire(a_shape(cpu=1)) == table.acquire(a_shape(cpu=1))
    assert table.acquire(a_shape(cpu=2)) != table.acquire(a_shape(cpu=1))
    assert len(table) == 2


def test_an_id_lasts_as_long_as_a_task_has_the_shape(table: ShapeTable) -> None:
    shape = a_shape(cpu=1)
    first = table.acquire(shape)
    table.acquire(shape)
    table.release(first)
    assert table.shape(first) == shape

    table.release(first)

    assert len(table) == 0
    with pytest.raises(LookupError, match="shape 0 is free"):
        table.shape(first)
    with pytest.raises(LookupError, match="shape 0 is free"):
        table.deltas(first, TaskStatus.RUNNING)


def test_a_reused_id_keeps_nothing_of_its_old_shape(table: ShapeTable) -> None:
    old = table.acquire(a_shape(cpu=1, memory="1Gi", gpu=1))
    table.deltas(old, TaskStatus.RUNNING)
    table.release(old)

    new = table.acquire(a_shape(cpu="500m"))

    assert new == old
    _, requests, nonzero = table.freeze()
    assert requests[:, new].tolist() == [500, 0, 1, 0]
    assert nonzero[:, new].tolist() == [500, 200 * 1024**2]
    node_delta, _ = table.deltas(new, TaskStatus.RUNNING)
    assert layout.section(node_delta[:, None], layout.USED, 4)[:, 0].tolist() == [500, 0, 1, 0]


def test_a_new_resource_is_registered_and_reaches_shapes_that_do_not_ask_for_it(
    table: ShapeTable, registry: ResourceRegistry
) -> None:
    plain = table.acquire(a_shape(cpu=1))
    before, _ = table.deltas(plain, TaskStatus.RUNNING)
    table.acquire(a_shape(gpu=2))

    assert registry.names[-1] == GPU
    _, requests, _ = table.freeze()
    assert requests[:, plain].tolist() == [1000, 0, 1, 0]
    after, _ = table.deltas(plain, TaskStatus.RUNNING)
    assert (len(before), len(after)) == (layout.node_rows(3), layout.node_rows(4))


def test_a_frozen_copy_does_not_change_with_the_table(table: ShapeTable) -> None:
    table.acquire(a_shape(cpu=1))
    shapes, requests, nonzero = table.freeze()
    kept = requests.copy(), nonzero.copy()

    table.release(0)
    table.acquire(a_shape(cpu=3, memory="1Gi"))

    assert shapes == [a_shape(cpu=1)]
    assert np.array_equal(requests, kept[0])
    assert np.array_equal(nonzero, kept[1])
