"""Tasks of one shape that a plugin marks differently are told apart, and nothing else changes."""

from collections.abc import Callable

import numpy as np
import pytest

from tests.framework.sessions import a_session, job_row, task_row
from tests.reference.world import World, a_job, a_node, a_shape, tasks_of
from volcano_py.framework.contract.extension_points import NodeOrder, PlacementWatch
from volcano_py.framework.contract.plugin import DependsOn, Plugin
from volcano_py.framework.session import Session
from volcano_py.framework.state.info import TaskInfo
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Floats, Ints, Rows
from volcano_py.snapshot.columns import NodeColumns

SHAPE = a_shape(cpu=1)
WORLD = World(
    nodes=(a_node("n1"), a_node("n2")),
    jobs=(a_job("one"), a_job("two")),
    tasks=(*tasks_of("one", 2, SHAPE), *tasks_of("two", 2, SHAPE)),
)


class ByJob(Plugin, NodeOrder):
    """Sends the tasks of every second job to the last node."""

    name = "by-job"
    depends_on = DependsOn.OTHER_NODES

    def equivalence_keys(self, ssn: State) -> Ints:
        return np.where(ssn.tasks.job == job_row(ssn, "two"), 7, 0)

    def depends(self, task: TaskInfo) -> DependsOn:
        return DependsOn.OTHER_NODES if task.equivalence_key(self.name) else DependsOn.NODE_ALONE

    def node_order(self, task: TaskInfo, nodes: NodeColumns) -> Floats:
        return np.arange(len(nodes), dtype=float) * task.equivalence_key(self.name)


class Watching(Plugin, PlacementWatch):
    """Counts placed tasks by node, in the journal."""

    name = "watching"

    def on_session_open(self, ssn: State) -> None:
        self._journal = ssn.journal
        self.count = np.zeros((1, len(ssn.nodes)))

    def placed(self, job_row: int, task: TaskInfo, tasks: Rows, nodes: Rows) -> None:
        rows, counts = np.unique(nodes, return_counts=True)
        self._journal.add(self.count, rows, counts[None].astype(float))

    def freed(self, job_row: int, task: TaskInfo, tasks: Rows, nodes: Rows) -> None:
        raise AssertionError("nothing is evicted here")


def test_keyed_tasks_have_an_equivalence_class_of_their_own_and_others_keep_their_shape() -> None:
    ssn = a_session(WORLD, ByJob())

    one, two = (ssn.state.tasks.shape[task_row(ssn, name)] for name in ("one-0", "two-0"))
    assert one != two
    assert ssn.state.classes.shape_of(one) is ssn.state.classes.shape_of(two)
    assert ssn.state.task_of(one).equivalence_key("by-job") == 0
    assert ssn.state.task_of(two).equivalence_key("by-job") == 7
    assert np.array_equal(ssn.state.task_of(one).request, ssn.state.task_of(two).request)


class Odd(Plugin):
    """Marks as a plugin of somebody else might: below 0, and far apart."""

    name = "odd"

    def equivalence_keys(self, ssn: State) -> Ints:
        return np.array([[-5, 2**40, 0, 3][row % 4] for row in range(len(ssn.tasks.records))])


def test_equal_keys_of_different_plugins_make_different_classes() -> None:
    ssn = a_session(WORLD, Odd(), ByJob())

    equivalence_keys = []
    for row in range(4):
        info = ssn.state.task_of(int(ssn.state.tasks.shape[row]))
        in_two = ssn.state.tasks.job[row] == job_row(ssn, "two")
        assert (info.equivalence_key("odd"), info.equivalence_key("by-job")) == (
            [-5, 2**40, 0, 3][row],
            7 if in_two else 0,
        )
        assert info.shape is ssn.state.classes.shape_of(0)
        equivalence_keys.append(info.shape_id)
    assert len(set(equivalence_keys)) == 4


def test_without_keys_every_class_is_a_shape() -> None:
    assert len(a_session(WORLD).state.classes.shapes) == 1


def test_each_equivalence_class_has_a_node_ranking_of_its_own() -> None:
    ssn = a_session(WORLD, ByJob())

    for name in ("one", "two"):
        row = job_row(ssn, name)
        tasks = ssn.hooks.pending.of(row)
        assert ssn.placement.place(ssn.statement(), row, int(ssn.state.tasks.shape[tasks[0]]), tasks) == 2

    nodes = {
        name: ssn.state.nodes.names[ssn.state.tasks.node[task_row(ssn, name)]]
        for name in ("one-0", "one-1", "two-0", "two-1")
    }
    assert nodes == {"one-0": "n1", "one-1": "n1", "two-0": "n2", "two-1": "n2"}


def test_a_plugin_that_needs_other_nodes_for_some_tasks_leaves_the_heap_to_the_rest() -> None:
    ssn = a_session(WORLD, ByJob())

    assert ssn.hooks.nodes.node_local(int(ssn.state.tasks.shape[task_row(ssn, "one-0")]))
    assert not ssn.hooks.nodes.node_local(int(ssn.state.tasks.shape[task_row(ssn, "two-0")]))


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(lambda ssn: np.zeros(1, dtype=int), id="of-the-wrong-length"),
        pytest.param(lambda ssn: "equivalence_keys", id="no-array"),
        pytest.param(lambda ssn: 1 / 0, id="an-exception"),
    ],
)
def test_a_plugin_that_fails_to_give_keys_is_reported_and_the_session_goes_on(
    answer: Callable[[Session], Ints],
) -> None:
    class Failing(ByJob):
        def equivalence_keys(self, ssn: State) -> Ints:
            return answer(ssn)

    ssn = a_session(WORLD, Failing())

    assert len(ssn.state.report.failures) == 1
    assert "by-job failed in equivalence_keys" in ssn.state.report.failures[0]
    assert not ssn.hooks.nodes.node_orders


def test_a_plugin_is_notified_of_placements_and_the_journal_undoes_its_counts() -> None:
    plugin = Watching()
    ssn = a_session(WORLD, plugin)
    row = job_row(ssn, "one")
    statement = ssn.statement()

    statement.allocate(row, 0, ssn.hooks.pending.of(row), np.array([1, 1]))
    assert plugin.count.tolist() == [[0, 2]]

    statement.discard()
    assert plugin.count.tolist() == [[0, 0]]
