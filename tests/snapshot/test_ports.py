import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reference.accounts import account, ports_free
from tests.reference.world import World, a_node, a_shape, a_task
from volcano_py.model.shape import HostPort, Shape
from volcano_py.model.statuses import OCCUPYING_STATUSES, TaskStatus
from volcano_py.snapshot.columns import Snapshot
from volcano_py.snapshot.ports import NodePorts, conflict
from volcano_py.snapshot.store import ClusterStore

RUNNING = TaskStatus.RUNNING


def tcp(port: int, ip: str = "0.0.0.0") -> HostPort:
    return HostPort(ip, "TCP", port)


def taking(*ports: HostPort) -> Shape:
    return a_shape(cpu="100m", host_ports=ports)


def taken(snapshot: Snapshot) -> dict[str, tuple[HostPort, ...]]:
    return {name: snapshot.nodes.ports.of(row) for row, name in enumerate(snapshot.nodes.names)}


@pytest.mark.parametrize(
    ("wanted", "used", "expected"),
    [
        pytest.param(tcp(80), tcp(80), True, id="the-same"),
        pytest.param(tcp(80), tcp(81), False, id="another-port"),
        pytest.param(tcp(80), HostPort("0.0.0.0", "UDP", 80), False, id="another-protocol"),
        pytest.param(tcp(80), tcp(80, "127.0.0.1"), True, id="all-addresses-want-one"),
        pytest.param(tcp(80, "127.0.0.1"), tcp(80), True, id="one-wants-all-addresses"),
        pytest.param(tcp(80, "127.0.0.1"), tcp(80, "127.0.0.2"), False, id="two-addresses"),
        pytest.param(tcp(80, "::"), tcp(80, "127.0.0.1"), False, id="the-ipv6-wildcard-is-an-ordinary-address"),
        pytest.param(tcp(80, "::"), tcp(80), True, id="but-not-for-all-addresses"),
    ],
)
def test_ports_conflict_on_overlapping_addresses(wanted: HostPort, used: HostPort, expected: bool) -> None:
    assert conflict((wanted,), (used,)) is expected
    assert conflict((tcp(1), wanted), (tcp(2), used)) is expected
    assert not conflict((wanted,), ())


@pytest.mark.parametrize("status", TaskStatus, ids=lambda status: status.label)
def test_a_task_takes_its_ports_as_long_as_it_takes_room_or_is_promised_some(status: TaskStatus) -> None:
    tasks = (a_task("p", taking(tcp(80)), status=status, node="n2"),)
    snapshot = World(nodes=(a_node("n1"), a_node("n2")), tasks=tasks).store().snapshot()

    standing = status in (*OCCUPYING_STATUSES, TaskStatus.PIPELINED)
    assert taken(snapshot) == {"n1": (), "n2": (tcp(80),) if standing else ()}


def test_ports_follow_tasks_that_come_move_change_and_go() -> None:
    first, second = a_task("p", taking(tcp(80))), a_task("q", taking(tcp(80), tcp(9)))
    store = World(nodes=(a_node("n1"), a_node("n2"))).store()
    found = []
    store.set_task(first.record, first.shape, RUNNING, "n1")
    store.set_task(second.record, second.shape, RUNNING, "n1")
    found.append(taken(store.snapshot())["n1"])
    store.move_task(first.record.uid, RUNNING, "n2")
    found.append(taken(store.snapshot())["n1"])
    store.set_task(second.record, taking(tcp(7)), RUNNING, "n1")
    found.append(taken(store.snapshot())["n1"])
    store.remove_task(second.record.uid)
    found.append(taken(store.snapshot())["n1"])

    assert found == [(tcp(9), tcp(80), tcp(80)), (tcp(9), tcp(80)), (tcp(7),), ()]
    assert taken(store.snapshot())["n2"] == (tcp(80),)


def test_ports_wait_for_a_node_that_comes_later_and_outlive_one_that_goes() -> None:
    task = a_task("p", taking(tcp(80)), status=RUNNING, node="n1")
    store = ClusterStore()
    store.set_task(task.record, task.shape, task.status, task.node)
    store.set_node(a_node("n1"))
    assert taken(store.snapshot()) == {"n1": (tcp(80),)}

    store.remove_node("n1")
    store.set_node(a_node("n0"))
    store.set_node(a_node("n1"))
    assert taken(store.snapshot()) == {"n0": (), "n1": (tcp(80),)}

    store.remove_task(task.record.uid)
    assert taken(store.snapshot()) == {"n0": (), "n1": ()}


def test_a_snapshot_keeps_its_own_ports() -> None:
    store = World(nodes=(a_node("n1"),), tasks=(a_task("p", taking(tcp(80)), status=RUNNING, node="n1"),)).store()
    before = store.snapshot()
    other = store.snapshot()
    other.nodes.ports.codes[0] = other.nodes.ports.with_more(0, (tcp(1),))

    assert taken(other)["n1"] == (tcp(1), tcp(80))
    assert taken(before)["n1"] == taken(store.snapshot())["n1"] == (tcp(80),)


def test_releasing_a_port_keeps_the_others() -> None:
    ports = NodePorts(np.array([1], dtype=np.int32), [(), (tcp(80), tcp(80), tcp(81))])

    ports.codes[0] = ports.with_less(0, (tcp(80),))
    assert ports.of(0) == (tcp(80), tcp(81))
    ports.codes[0] = ports.with_less(0, (tcp(80), tcp(81)))
    assert ports.of(0) == ()


addresses = st.sampled_from(("0.0.0.0", "127.0.0.1", "::"))
host_ports = st.builds(HostPort, addresses, st.sampled_from(("TCP", "UDP")), st.integers(80, 81))
sets = st.lists(host_ports, max_size=3).map(lambda ports: tuple(sorted(ports)))


@settings(max_examples=150, derandomize=True)
@given(wanted=sets, on_nodes=st.lists(sets, min_size=1, max_size=4))
def test_conflicts_equal_a_plain_loop(wanted: tuple[HostPort, ...], on_nodes: list[tuple[HostPort, ...]]) -> None:
    ports = NodePorts(np.zeros(len(on_nodes), dtype=np.int32), [()])
    expected = []
    for row, used in enumerate(on_nodes):
        ports.codes[row] = ports.with_more(row, used)
        node = account(a_node("n"))
        node.ports = list(used)
        expected.append(not ports_free(taking(*wanted), node))
        assert ports.conflicts(wanted)[ports.codes[: row + 1]].tolist() == expected
