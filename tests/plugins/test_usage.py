from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

from tests.framework.sessions import a_session, job_row, node_row, task_row
from tests.reference import usage
from tests.reference.furnished import measured, with_usage
from tests.reference.world import MIB, Task, World, a_job, a_node, a_shape, a_task, tasks_of
from volcano_py.framework.session import Session
from volcano_py.model.loads import NodeLoad
from volcano_py.model.statuses import TaskStatus
from volcano_py.plugins.usage import Usage
from volcano_py.plugins.usage.arguments import UsageArgs, read
from volcano_py.plugins.usage.estimates import Estimator

GI = 2.0**30


def cluster(*tasks: Task, cpu: int = 10, nodes: int = 2) -> World:
    """Return nodes of ten cores and 10 GiB, and a job of three pods of one core and 1 GiB."""
    records = (a_node(f"n{row}", cpu=cpu, memory="10Gi") for row in range(nodes))
    return World(
        nodes=tuple(replace(record, capacity=(cpu * 1000.0, 10 * GI)) for record in records),
        jobs=(a_job("j"),),
        tasks=(*tasks_of("j", 3, a_shape(cpu=1, memory="1Gi")), *tasks),
    )


def opened(world: World, loads: dict[str, tuple[float, float, float]], **arguments: Any) -> tuple[Session, Usage]:
    plugin = Usage(read(arguments, lambda text: None))
    store = measured(world, {name: NodeLoad(*load) for name, load in loads.items()})
    return a_session(store, plugin), plugin


def answers(ssn: Session, plugin: Usage) -> tuple[list[float], list[str | None]]:
    """Return scores and refusals of the nodes to the first task of the job."""
    task = ssn.state.task_of(int(ssn.state.tasks.shape[task_row(ssn, "j-0")]))
    codes = [plugin.reasons[code - 1].code if code else None for code in plugin.predicate(task, ssn.state.nodes)]
    return plugin.node_order(task, ssn.state.nodes).tolist(), codes


def test_the_less_busy_node_is_the_better_one() -> None:
    ssn, plugin = opened(cluster(), {"n0": (20, 40, 0), "n1": (60, 20, 0)})

    assert answers(ssn, plugin)[0] == pytest.approx([350, 300])


@pytest.mark.parametrize(
    ("load", "refusal"),
    [
        ((80, 80, 0), None),
        ((80.1, 90, 0), "cpu-load"),
        ((10, 80.1, -300), "memory-load"),
        ((90, 90, -301), None),
    ],
)
def test_a_node_above_a_threshold_takes_nothing_while_the_measurement_is_fresh(
    load: tuple[float, float, float], refusal: str | None
) -> None:
    ssn, plugin = opened(cluster(nodes=1), {"n0": load})

    assert answers(ssn, plugin)[1] == [refusal]


def test_a_node_that_is_not_measured_scores_nothing_and_refuses_nobody() -> None:
    ssn, plugin = opened(cluster(), {"n0": (20, 40, -301)})

    assert answers(ssn, plugin) == ([0, 0], [None, None])


def test_without_any_measurement_the_plugin_has_no_opinion() -> None:
    plugin = Usage()
    ssn = a_session(cluster(), plugin)

    assert answers(ssn, plugin) == ([0, 0], [None, None])


@pytest.mark.parametrize(
    ("status", "started", "counted"),
    [
        (TaskStatus.RUNNING, -10.0, True),
        (TaskStatus.RUNNING, -30.0, False),
        (TaskStatus.RUNNING, 0.0, True),
        (TaskStatus.BOUND, 0.0, True),
        (TaskStatus.RELEASING, -10.0, False),
    ],
)
def test_a_pod_newer_than_the_measurement_is_estimated(status: TaskStatus, started: float, counted: bool) -> None:
    standing = a_task("s", a_shape(cpu=1), status=status, node="n0", started=started)
    ssn, plugin = opened(cluster(standing), {"n0": (0, 0, 0), "n1": (0, 0, 0)})

    first, second = answers(ssn, plugin)[0]
    assert second - first == pytest.approx(0.07 / 2 * 500 if counted else 0)


def test_placements_count_at_once_with_a_margin_above_the_threshold_until_they_are_undone() -> None:
    arguments = {"estimator": {"risk_threshold": 0.1, "risk_factor": 2, "request_ratio": 0.5}}
    ssn, plugin = opened(cluster(nodes=1), {"n0": (0, 0, 0)}, **arguments)
    row, tasks = job_row(ssn, "j"), ssn.hooks.pending.of(job_row(ssn, "j"))
    before = answers(ssn, plugin)
    statement = ssn.statement()

    statement.allocate(row, int(ssn.state.tasks.shape[tasks[0]]), tasks, np.array([0, 0, 0]))
    # 5 %, 10 %, and from then on twice of it.
    assert answers(ssn, plugin)[0] == pytest.approx([(1 - 0.2) * 500])

    statement.discard()
    assert answers(ssn, plugin) == before


def test_an_eviction_removes_the_estimate_and_an_undo_restores_it() -> None:
    new = a_task("new", a_shape(cpu=1), job="j", status=TaskStatus.RUNNING, node="n0", started=-1.0)
    old = a_task("old", a_shape(cpu=1), job="j", status=TaskStatus.RUNNING, node="n0", started=-900.0)
    ssn, plugin = opened(cluster(new, old), {"n0": (50, 0, 0), "n1": (50, 0, 0)})
    before = answers(ssn, plugin)[0]
    rows = np.array([task_row(ssn, "new"), task_row(ssn, "old")])
    statement = ssn.statement()

    statement.evict(rows)
    gone = answers(ssn, plugin)[0]
    assert gone[0] == pytest.approx(before[1])
    for row in rows.tolist():
        statement.put_back(row)
    assert answers(ssn, plugin)[0] == before


def test_limits_and_best_effort_pods_are_estimated_by_their_own_rules() -> None:
    limited = replace(a_shape(cpu=1), limits=(2000.0, 0.0))
    tasks = (
        a_task("a", limited, status=TaskStatus.BOUND, node="n0"),
        a_task("b", a_shape(), status=TaskStatus.BOUND, node="n1"),
    )
    estimator = {"request_ratio": 1, "burst_ratio": 0.5, "be_cpu": 400, "be_mem": "1Gi"}
    ssn, plugin = opened(cluster(*tasks), {"n0": (0, 0, 0), "n1": (0, 0, 0)}, estimator=estimator)

    assert answers(ssn, plugin)[0] == pytest.approx([500 - 0.15 * 250, 500 - (0.04 + 0.1) * 250])


@pytest.mark.parametrize(
    ("arguments", "expected", "told"),
    [
        pytest.param({}, UsageArgs(), 0, id="defaults"),
        pytest.param(
            {"usage.weight": 2, "cpu.weight": 0, "memory.weight": 3, "thresholds": {"cpu": 0, "mem": 100}},
            UsageArgs(2, (0, 3), (0.0, 100.0)),
            0,
            id="weights-and-thresholds",
        ),
        pytest.param({"usage.weight": -1, "cpu.weight": -1}, UsageArgs(), 2, id="negative-weights"),
        pytest.param({"thresholds": {"cpu": 101, "mem": 70.5, "gpu": 1}}, UsageArgs(), 3, id="odd-thresholds"),
        pytest.param({"thresholds": 80, "estimator": []}, UsageArgs(), 2, id="no-mappings"),
        pytest.param(
            {"estimator": {"be_cpu": "1.5", "be_mem": 3, "risk_factor": 1, "burst_ratio": 1}},
            UsageArgs(estimator=Estimator(burst_ratio=1.0, risk_factor=1.0, best_effort=(1500.0, 3 * MIB))),
            0,
            id="amounts",
        ),
        pytest.param(
            {"estimator": {"be_cpu": "much", "be_mem": -1, "risk_factor": 0.5, "burst_ratio": 2, "odd": 1}},
            UsageArgs(),
            5,
            id="odd-estimates",
        ),
    ],
)
def test_arguments(arguments: dict[str, Any], expected: UsageArgs, told: int) -> None:
    warnings: list[str] = []

    assert read(arguments, warnings.append) == expected
    assert len(warnings) == told, warnings


def test_answers_equal_the_reference_also_after_placements() -> None:
    for number in range(40):
        (world, loads), random = with_usage(number), Random(number)
        threshold = random.choice((0.3, 0.5, 0.6))
        plugin = Usage(UsageArgs(estimator=Estimator(risk_threshold=threshold)))
        ssn = a_session(measured(world, loads), plugin)
        nodes = usage.busy_nodes(world, loads, threshold)
        _compare(ssn, plugin, nodes, f"with_usage({number})")
        for task in world.tasks:
            if task.status is TaskStatus.PENDING and random.random() < 0.5:
                node, row = random.choice(world.nodes).name, task_row(ssn, task.record.name)
                put = random.choice((ssn.statement().allocate, ssn.statement().pipeline))
                put(
                    int(ssn.state.tasks.job[row]),
                    int(ssn.state.tasks.shape[row]),
                    np.array([row]),
                    np.array([node_row(ssn, node)]),
                )
                nodes[node].add(task.shape)
        _compare(ssn, plugin, nodes, f"with_usage({number}), later")


def _compare(ssn: Session, plugin: Usage, nodes: dict[str, usage.Busy], at: str) -> None:
    task = ssn.state.task_of(0)
    scores, verdicts = plugin.node_order(task, ssn.state.nodes), plugin.predicate(task, ssn.state.nodes)
    for name, score, verdict in zip(ssn.state.nodes.names, scores, verdicts, strict=True):
        assert score == pytest.approx(nodes[name].score()), f"{at}, {name}"
        assert (plugin.reasons[verdict - 1].code if verdict else None) == nodes[name].refusal(), f"{at}, {name}"
