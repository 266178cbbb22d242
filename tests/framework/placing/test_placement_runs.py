"""Tasks of one shape that are placed in a row, whoever's they are: looked ahead, and still greedy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.framework.sessions import a_session, job_row, shape_id
from tests.reference.strategies import sized_nodes, sized_shapes
from tests.reference.world import World, a_job, a_node, a_shape, tasks_of
from volcano_py.framework.placing import placement
from volcano_py.framework.session import Session
from volcano_py.framework.state.info import TaskInfo
from volcano_py.model.arrays import Floats
from volcano_py.model.statuses import TaskStatus
from volcano_py.plugins.binpack import Binpack
from volcano_py.plugins.nodeorder import NodeOrdering
from volcano_py.plugins.predicates import Predicates
from volcano_py.snapshot.columns import NodeColumns

Turn = tuple[str, int, bool]  # job, how many of its tasks, whether they keep their nodes


@st.composite
def histories(draw: st.DrawFn) -> tuple[World, list[Turn]]:
    nodes = tuple(draw(sized_nodes(f"n{index}")) for index in range(draw(st.integers(1, 5))))
    shapes = {name: draw(sized_shapes()) for name in ("j", "k")}
    tasks = tuple(task for name, shape in shapes.items() for task in tasks_of(name, 40, shape))
    turn = st.tuples(st.sampled_from("jjjk"), st.sampled_from((1, 1, 1, 2, 3)), st.integers(0, 7).map(bool))
    world = World(nodes=nodes, jobs=(a_job("j"), a_job("k")), tasks=tasks)
    return world, draw(st.lists(turn, min_size=4, max_size=16))


def play(ssn: Session, history: list[Turn], *, anew: bool) -> list[list[tuple[int, int]]]:
    """Return task and node of all that each turn placed; if ``anew``, everything is looked at again for each task."""
    found = []
    for name, count, keep in history:
        statement, row = ssn.statement(), job_row(ssn, name)
        waiting = [
            task for task in ssn.hooks.pending.of(row).tolist() if ssn.state.tasks.status[task] == TaskStatus.PENDING
        ]
        tasks = np.array(waiting[:count], dtype=np.intp)
        shape = int(ssn.state.tasks.shape[ssn.hooks.pending.of(row)[0]])
        for part in np.split(tasks, len(tasks)) if anew and len(tasks) else [tasks]:
            if anew:
                ssn.placement.forget()
            ssn.placement.place(statement, row, shape, part)
        found.append(statement.placed)
        if keep:
            statement.commit()
        else:
            statement.discard()
    return found


@settings(max_examples=50, derandomize=True)
@given(histories(), st.sampled_from((0, 7)))
def test_looking_ahead_leaves_no_trace(drawn: tuple[World, list[Turn]], seed: int) -> None:
    world, history = drawn
    plugins = [(Predicates(), NodeOrdering(), Binpack()) for _ in range(2)]
    ahead, anew = (a_session(world, *some, seed=seed) for some in plugins)

    assert play(ahead, history, anew=False) == play(anew, history, anew=True)


def test_dropping_cached_shapes_changes_no_placement(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = tuple(a_node(f"n{index}", cpu=4 + index) for index in range(5))
    tasks = tuple(task for cpu, name in enumerate("jkl", 1) for task in tasks_of(name, 8, a_shape(cpu=cpu)))
    world = World(nodes=nodes, jobs=tuple(a_job(name) for name in "jkl"), tasks=tasks)
    history: list[Turn] = [(name, 1, True) for name in "jkljlkjkkljj"]
    found = []
    for most in (64, 1):
        monkeypatch.setattr(placement, "_SCORES_KEPT", 0)
        monkeypatch.setattr(placement, "_RANKINGS_AT_LEAST", most)
        found.append(play(a_session(world, Predicates(), NodeOrdering(), Binpack()), history, anew=False))

    assert found[0] == found[1]


class Asked(Binpack):
    """Counts how often it is asked."""

    times = 0

    def node_order(self, task: TaskInfo, nodes: NodeColumns) -> Floats:
        self.times += 1
        return super().node_order(task, nodes)


def test_a_long_run_of_single_tasks_is_scored_only_a_few_times() -> None:
    nodes = tuple(a_node(f"n{index}", cpu=8) for index in range(40))
    jobs = tuple(a_job(f"j{number}") for number in range(200))
    tasks = tuple(task for number in range(200) for task in tasks_of(f"j{number}", 1, a_shape(cpu=1)))
    plugin = Asked()
    ssn = a_session(World(nodes=nodes, jobs=jobs, tasks=tasks), plugin)
    for number in range(200):
        row, statement = job_row(ssn, f"j{number}"), ssn.statement()
        assert ssn.placement.place(statement, row, shape_id(ssn, a_shape(cpu=1)), ssn.hooks.pending.of(row)) == 1
        statement.commit()

    assert plugin.times <= 20
