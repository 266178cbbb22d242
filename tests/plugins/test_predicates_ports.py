"""Ports that pods take of their nodes."""

from dataclasses import replace

import numpy as np
import pytest

from tests.framework.sessions import a_session, info, job_row, node_row, shape_id, task_row
from tests.reference.world import World, a_job, a_node, a_shape, a_task, tasks_of
from tests.scheduler.running import DEFAULT, cycle
from volcano_py.model.objects import TaintRecord
from volcano_py.model.shape import HostPort
from volcano_py.model.statuses import TaskStatus
from volcano_py.plugins.predicates import Predicates
from volcano_py.plugins.predicates.plugin import PredicatesArgs

RUNNING = TaskStatus.RUNNING
TAKEN = "node(s) didn't have free ports for the requested pod ports"


def port(ip: str = "0.0.0.0", protocol: str = "TCP", number: int = 8080) -> HostPort:
    return HostPort(ip, protocol, number)


def wanting(*ports: HostPort) -> object:
    return a_shape(cpu="100m", host_ports=ports)


NODES = (a_node("n1"), a_node("n2"), a_node("n3"))
STANDING = tuple(
    a_task(f"e{row}", wanting(one), status=RUNNING, node=f"n{row}")
    for row, one in enumerate((port("127.0.0.1"), port(), port("127.0.0.1", "UDP")), start=1)
)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        pytest.param(port(), "UU·", id="all-addresses"),
        pytest.param(port("127.0.0.1"), "UU·", id="one-address"),
        pytest.param(port("127.0.0.2"), "·U·", id="another-address"),
        pytest.param(port("0.0.0.0", "UDP"), "··U", id="another-protocol"),
        pytest.param(port("::"), "·U·", id="the-ipv6-wildcard-is-ordinary"),
        pytest.param(port(number=8081), "···", id="another-port"),
        pytest.param(None, "···", id="no-port"),
    ],
)
def test_ports_have_kube_schedulers_answers(wanted: HostPort | None, expected: str) -> None:
    shape = wanting(wanted) if wanted else a_shape(cpu="100m")
    world = World(nodes=NODES, tasks=(*STANDING, a_task("p", shape)))
    ssn = a_session(world, plugin := Predicates())

    verdicts = plugin.predicate(info(ssn, shape), ssn.state.nodes).tolist()

    assert "".join("·U"[verdict == 2] for verdict in verdicts) == expected
    ssn = a_session(world, off := Predicates(PredicatesArgs(node_ports=False)))
    assert off.predicate(info(ssn, shape), ssn.state.nodes).tolist() == [0, 0, 0]


def test_a_gang_that_takes_a_port_gets_one_node_for_each_task() -> None:
    shape = wanting(port())
    world = World(nodes=NODES, jobs=(a_job("j", min_available=3),), tasks=tasks_of("j", 4, shape))

    outcome = cycle(world, DEFAULT)

    assert sorted(node for _, node in outcome.binds) == ["n1", "n2", "n3"]
    assert outcome.messages["j-3"] == f"0/3 nodes are unavailable: 3 {TAKEN}."


def test_a_placed_task_takes_its_ports_at_once_and_an_undo_releases_them() -> None:
    shape = wanting(port(), port(number=9))
    world = World(nodes=NODES, jobs=(a_job("j"),), tasks=tasks_of("j", 3, shape))
    ssn = a_session(world, Predicates())
    before = ssn.state.nodes.ports.codes.tobytes()
    rows = np.array([task_row(ssn, f"j-{index}") for index in range(3)])
    job, own = job_row(ssn, "j"), shape_id(ssn, shape)
    state = ssn.placement.rank(info(ssn, shape))

    statement = ssn.statement()
    statement.allocate(job, own, rows[:2], np.array([node_row(ssn, "n1"), node_row(ssn, "n3")]))
    state.refresh()
    assert (state.ranked > -np.inf).tolist() == [False, True, False]
    statement.pipeline(job, own, rows[2:], np.array([node_row(ssn, "n2")]))
    state.refresh()
    assert (state.ranked > -np.inf).tolist() == [False, False, False]
    statement.discard()
    state.refresh()

    assert (state.ranked > -np.inf).tolist() == [True, True, True]
    assert ssn.state.nodes.ports.codes.tobytes() == before


def test_two_shapes_with_one_port_see_each_other() -> None:
    """A web server on every address, and one on the local one: they do not fit on one node."""
    world = World(
        nodes=NODES[:2],
        jobs=(a_job("a", creation=0.0), a_job("b", creation=1.0)),
        tasks=(*tasks_of("a", 1, wanting(port())), *tasks_of("b", 2, wanting(port("127.0.0.1")))),
    )

    outcome = cycle(world, DEFAULT)

    assert dict(outcome.binds) == {"a-0": "n1", "b-0": "n2"}


def test_the_port_of_a_terminating_pod_is_still_taken() -> None:
    gone = replace(STANDING[1], status=TaskStatus.RELEASING)
    world = World(nodes=NODES[1:2], jobs=(a_job("j"),), tasks=(gone, *tasks_of("j", 1, wanting(port()))))

    assert cycle(world, DEFAULT).messages["j-0"] == f"0/1 nodes are unavailable: 1 {TAKEN}."


def refusal(world: World, shape: object) -> str:
    ssn = a_session(replace(world, tasks=(*world.tasks, a_task("p", shape))), Predicates())
    return ssn.placement.rank(info(ssn, shape)).rejection().message


def test_a_node_reports_every_reason_that_an_eviction_could_change() -> None:
    """Too many pods and the port taken, both on n1."""
    pods = (a_task("a", wanting(port()), status=RUNNING, node="n1"), a_task("b", status=RUNNING, node="n1"))
    world = World(nodes=(a_node("n1", pods=2), a_node("n2")), tasks=(*pods, a_task("p", wanting(port()))))
    ssn = a_session(world, plugin := Predicates())

    found = plugin.refusals(info(ssn, wanting(port())), ssn.state.nodes)

    assert found[:2].tolist() == [[True, False], [True, False]]


def test_the_pod_limit_is_reported_beside_a_taint_but_ports_are_not() -> None:
    """Node n1 takes no pods at all, which the request does not ask for; on n2 the port is taken."""
    taint = [TaintRecord("k", "", "NoSchedule")]
    nodes = (a_node("n1", pods=None, taints=taint), a_node("n2", taints=taint))
    standing = a_task("a", wanting(port()), status=RUNNING, node="n2")

    message = refusal(World(nodes=nodes, tasks=(standing,)), replace(wanting(port()), request=(("cpu", 100.0),)))  # type: ignore[type-var]

    assert message == ("0/2 nodes are unavailable: 1 node(s) pod number exceeded, 2 node(s) had untolerated taint(s).")
