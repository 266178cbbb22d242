import numpy as np

from tests.reference.world import World, a_node
from volcano_py.model.loads import NodeLoad
from volcano_py.snapshot.store import ClusterStore


def a_store(*names: str) -> ClusterStore:
    return World(nodes=tuple(a_node(name) for name in names)).store()


def test_without_measurements_there_are_no_loads() -> None:
    assert a_store("n1").snapshot().loads is None


def test_loads_are_in_the_order_of_the_nodes() -> None:
    store = a_store("n2", "n1")
    store.loads.set({"n1": NodeLoad(10, 20, 5), "elsewhere": NodeLoad(1, 2, 3)}, 60.0)

    loads = store.snapshot().loads

    assert loads is not None
    assert loads.percent.tolist() == [[10, 0], [20, 0]]
    assert loads.measured.tolist() == [5, -np.inf]
    assert loads.interval_s == 60.0


def test_a_node_that_is_not_measured_again_keeps_its_load() -> None:
    store = a_store("n1", "n2")
    store.loads.set({"n1": NodeLoad(10, 20, 5), "n2": NodeLoad(30, 40, 5)}, 30.0)
    before = store.snapshot().loads
    store.loads.set({"n2": NodeLoad(50, 60, 35)}, 30.0)

    after = store.snapshot().loads

    assert before is not None
    assert after is not None
    assert before.measured.tolist() == [5, 5]
    assert after.measured.tolist() == [5, 35]


def test_a_node_that_comes_back_has_to_be_measured_anew() -> None:
    store = a_store("n1", "n2")
    store.loads.set({"n1": NodeLoad(10, 20, 5), "n2": NodeLoad(30, 40, 5)}, 30.0)
    store.remove_node("n1")
    assert store.snapshot().loads is not None
    store.set_node(a_node("n1"))

    loads = store.snapshot().loads

    assert loads is not None
    assert loads.measured.tolist() == [-np.inf, 5]


def test_columns_are_made_once_per_change() -> None:
    store = a_store("n1")
    store.loads.set({"n1": NodeLoad(10, 20, 5)}, 30.0)

    assert store.snapshot().loads is store.snapshot().loads
