"""What nodes answer that take nobody, and how it is counted."""

from typing import ClassVar

import numpy as np
import pytest

from tests.framework.sessions import a_session, info
from tests.reference.world import World, a_job, a_node, a_shape, a_task, tasks_of
from volcano_py.framework.contract.extension_points import Allocatable, Overused, Predicate, StaticPredicate, Verdicts
from volcano_py.framework.contract.plugin import DependsOn, Plugin, PluginFailed
from volcano_py.framework.placing.refusals import explain
from volcano_py.framework.state.info import QueueInfo, TaskInfo
from volcano_py.model.arrays import Bools, Floats
from volcano_py.model.objects import QueueRecord, TaintRecord
from volcano_py.model.rejections import Reason, Remedy
from volcano_py.model.shape import Shape
from volcano_py.model.statuses import TaskStatus
from volcano_py.plugins.predicates import Predicates
from volcano_py.snapshot.columns import NodeColumns

SMALL = a_shape(cpu=1)


def labelled(nodes: NodeColumns, label: str) -> Bools:
    rows = range(len(nodes.statics.records)) if nodes.rows is None else nodes.rows
    return np.array([label in nodes.statics.records[row].labels for row in rows], dtype=bool)


class Fixed(Plugin, StaticPredicate):
    """Refuses nodes with the label fixed."""

    name = "fixed"
    static_reasons = (Reason("fixed", "fixed", "fixed"),)

    def static_predicate(self, shape: Shape, nodes: NodeColumns) -> Verdicts:
        return labelled(nodes, "fixed").astype(np.int16)


class Moving(Plugin, Predicate):
    """Refuses nodes with the labels first and second."""

    name = "moving"
    depends_on: ClassVar = DependsOn.NODE_ALONE
    reasons = (Reason("moving", "first", "first"), Reason("moving", "second", "second"))

    def predicate(self, task: TaskInfo, nodes: NodeColumns) -> Verdicts:
        second = np.where(labelled(nodes, "second"), 2, 0)
        return np.where(labelled(nodes, "first"), 1, second).astype(np.int16)


class Both(Moving, StaticPredicate):
    """All of that in one plugin; what is first stands before what is fixed."""

    name = "both"
    early = 1
    static_reasons = (Reason("both", "fixed", "fixed"),)

    def static_predicate(self, shape: Shape, nodes: NodeColumns) -> Verdicts:
        return labelled(nodes, "fixed").astype(np.int16)

    def refusals(self, task: TaskInfo, nodes: NodeColumns) -> Bools:
        return np.stack((labelled(nodes, "first"), labelled(nodes, "second")))


class Early(Plugin, StaticPredicate):
    """Refuses the pod itself, or nodes with the label fixed."""

    name = "early"
    static_reasons = (Reason("early", "fixed", "fixed"), Reason("early", "of-the-pod", "of the pod", before_nodes=True))

    def __init__(self, refuses: bool) -> None:
        self._refuses = refuses

    def static_predicate(self, shape: Shape, nodes: NodeColumns) -> Verdicts:
        fixed = labelled(nodes, "fixed").astype(np.int16)
        return np.full(len(nodes), 2, dtype=np.int16) if self._refuses else fixed


def message(labels: list[str], *plugins: Plugin, promises: bool = True, **node: object) -> str:
    nodes = tuple(
        a_node(f"n{row}", labels=dict.fromkeys(text.split(), ""), **node)  # type: ignore[arg-type]
        for row, text in enumerate(labels)
    )
    ssn = a_session(World(nodes=nodes, tasks=(a_task("p", SMALL),)), *plugins)
    return (
        explain(ssn.state, ssn.hooks.nodes, ssn.placement.node_sets, info(ssn, SMALL), promises=promises)
        .message.removeprefix("0/")
        .removesuffix(".")
    )


@pytest.mark.parametrize(
    ("labels", "plugins", "expected"),
    [
        pytest.param(["first second"], [Moving()], "1 nodes are unavailable: 1 first", id="the-first-of-its-reasons"),
        pytest.param(
            ["first second"],
            [Both()],
            "1 nodes are unavailable: 1 first, 1 second",
            id="all-reasons-of-one-that-says-so",
        ),
        pytest.param(
            ["first second fixed", "second fixed"],
            [Both()],
            "2 nodes are unavailable: 1 first, 2 fixed",
            id="what-is-fixed-silences-what-comes-after-it",
        ),
        pytest.param(
            ["first fixed"], [Moving(), Fixed()], "1 nodes are unavailable: 1 first", id="plugins-in-their-order"
        ),
        pytest.param(
            ["first fixed"], [Fixed(), Moving()], "1 nodes are unavailable: 1 fixed", id="plugins-in-another-order"
        ),
        pytest.param(
            ["", "first"], [Moving()], "2 nodes are unavailable: 1 first", id="a-node-that-would-do-says-nothing"
        ),
    ],
)
def test_reasons_are_in_plugin_order_and_each_plugin_gives_all_of_its_reasons(
    labels: list[str], plugins: list[Plugin], expected: str
) -> None:
    assert message(labels, *plugins) == expected


@pytest.mark.parametrize(
    ("promises", "expected"),
    [
        pytest.param(True, "2 nodes are unavailable: 2 Insufficient cpu", id="resources-first"),
        pytest.param(False, "2 nodes are unavailable: 1 Insufficient cpu, 1 first", id="plugins-first"),
    ],
)
def test_a_node_that_lacks_a_resource_says_only_that_unless_plugins_come_first(promises: bool, expected: str) -> None:
    assert message(["first", ""], Moving(), promises=promises, cpu="500m") == expected


@pytest.mark.parametrize("promises", [True, False])
def test_what_refuses_the_pod_before_any_node_is_looked_at_is_the_reason_of_every_node(promises: bool) -> None:
    labels = ["fixed first", "first", ""]
    every, some = "3 nodes are unavailable: 3 of the pod", "3 nodes are unavailable: 1 first, 1 fixed"

    assert message(labels, Fixed(), Moving(), Early(True), promises=promises) == every
    assert message(labels, Early(True), promises=promises, cpu="500m") == every
    assert message(labels, Moving(), Early(True), promises=promises, cpu="500m") == every
    assert message(labels, Early(False), Moving(), promises=promises) == some


def test_a_closed_node_keeps_its_own_reason_beside_one_that_refuses_the_pod() -> None:
    nodes = (a_node("n1", cpu="1m"), a_node("n2", closed="being deleted"))
    ssn = a_session(World(nodes=nodes, tasks=(a_task("p", SMALL),)), Early(True))

    found = explain(ssn.state, ssn.hooks.nodes, ssn.placement.node_sets, info(ssn, SMALL), promises=True)

    assert found.message == "0/2 nodes are unavailable: 1 node(s) closed: being deleted, 1 of the pod."


def test_an_error_before_any_node_is_looked_at_is_no_word_on_evictions() -> None:
    assert Reason("p", "c", "t", before_nodes=True).remedy is Remedy.UNKNOWN


def test_releasing_resources_count_as_lacking_only_if_nothing_can_be_pipelined() -> None:
    going = a_task("go", a_shape(cpu=4), status=TaskStatus.RELEASING, node="n1")
    ssn = a_session(World(nodes=(a_node("n1"),), tasks=(going, a_task("p", SMALL))))

    assert explain(ssn.state, ssn.hooks.nodes, ssn.placement.node_sets, info(ssn, SMALL), promises=True).refusals == ()
    assert (
        explain(ssn.state, ssn.hooks.nodes, ssn.placement.node_sets, info(ssn, SMALL), promises=False).message
        == "0/1 nodes are unavailable: 1 Insufficient cpu."
    )


def test_a_closed_node_says_why_and_nothing_else() -> None:
    node = a_node("n1", closed="being deleted", cpu="1m", taints=[TaintRecord("k", "", "NoSchedule")])
    ssn = a_session(World(nodes=(node,), tasks=(a_task("p", SMALL),)), Predicates())

    assert explain(ssn.state, ssn.hooks.nodes, ssn.placement.node_sets, info(ssn, SMALL), promises=True).message == (
        "0/1 nodes are unavailable: 1 node(s) closed: being deleted."
    )


def test_refusals_of_the_wrong_shape_are_a_failure_of_the_plugin() -> None:
    class Odd(Moving):
        name = "odd"

        def refusals(self, task: TaskInfo, nodes: NodeColumns) -> Bools:
            return np.zeros((1, len(nodes)), dtype=bool)

    with pytest.raises(
        PluginFailed, match=r"plugin odd failed in refusals: expected an array of bool of shape \(2, 1\)"
    ):
        message(["first"], Odd())


class Miser(Plugin, Allocatable, Overused):
    """Gives no queue anything, and does not say why."""

    name = "miser"

    def allocatable(self, queue: QueueInfo, task: TaskInfo, wanted: int) -> int:
        return 0

    def overused(self, queue: QueueInfo) -> bool:
        return True


class Stammering(Miser):
    """The same, and its texts fail."""

    name = "miser"

    def why_not_allocatable(self, queue: QueueInfo, task: TaskInfo, asked: Floats, given: Floats) -> Reason | None:
        raise ValueError("no words")

    def why_overused(self, queue: QueueInfo) -> Reason | None:
        raise ValueError("no words")


@pytest.mark.parametrize("plugin", [Miser(), Stammering()], ids=["silent", "failing"])
def test_a_queue_refusal_without_a_text_names_the_plugin(plugin: Miser) -> None:
    world = World(
        nodes=(a_node("n"),), queues=(QueueRecord("q"),), jobs=(a_job("j", queue="q"),), tasks=tasks_of("j", 1, SMALL)
    )
    ssn = a_session(world, plugin)
    nothing = np.zeros(len(ssn.state.resources.names))

    limit = ssn.hooks.over_limit(ssn.state.queues["q"], info(ssn, SMALL), nothing, nothing)
    overused = ssn.hooks.why_overused(ssn.state.queues["q"])

    assert limit == Reason("miser", "queue-limit", 'queue "q" may not hold more: plugin miser refuses')
    assert overused.text == 'queue "q" already holds all that it may have: its other tasks wait until it may have more'
    assert len(ssn.state.report.failures) == (2 if isinstance(plugin, Stammering) else 0)
