"""Filters and scores that depend on other pods: the reference's number tables, and random clusters."""

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import msgspec
import numpy as np
import pytest

from tests.framework.sessions import a_session, job_row, task_row
from tests.reference.inter_pod_terms import (
    PlacedPod,
    PlacedPods,
    affinity_reason,
    affinity_scores,
    placed_pods,
    spread_reason,
    spread_scores,
)
from tests.reference.social import social_world
from tests.reference.world import Task, World
from volcano_py.framework.session import Session
from volcano_py.model.objects import TaskRecord
from volcano_py.model.statuses import TaskStatus
from volcano_py.plugins.nodeorder import NodeOrderArgs, NodeOrdering
from volcano_py.plugins.predicates import Predicates
from volcano_py.plugins.predicates.inter_pod import INTER_POD

CODES = [reason.code for reason in Predicates.reasons]
AFFINITY, NO_LABEL = CODES.index("pod-affinity"), CODES.index("topology-spread-label")
END = AFFINITY + INTER_POD


def filters_of(ssn: Session, plugin: Predicates, task: str) -> list[set[str]]:
    """Return what the filters between pods have against each node."""
    info = ssn.state.task_of(int(ssn.state.tasks.shape[task_row(ssn, task)]))
    refused = plugin.refusals(info, ssn.state.nodes)
    answers = plugin.inter_pod_filter(info)
    if answers is not None:
        assert answers.allowed().tolist() == (~refused[AFFINITY:].any(axis=0)).tolist()
        assert answers.unresolvable().tolist() == (refused[AFFINITY] | refused[NO_LABEL]).tolist()
    some = np.arange(len(ssn.state.nodes))[::-2]
    assert plugin.refusals(info, ssn.state.nodes.rows_view(some)).tolist() == refused[:, some].tolist()
    return [{CODES[code] for code in np.flatnonzero(column).tolist()} for column in refused.T]


def expected_filters(task: Task, cluster: PlacedPods) -> Iterator[set[str]]:
    for node in cluster.nodes.values():
        affinity = affinity_reason(task, node, cluster)
        spread = spread_reason(task, node, cluster) if affinity != "pod-affinity" else ""
        yield {affinity, spread} - {""}


def scores_of(ssn: Session, plugin: NodeOrdering, task: str, group: list[int]) -> list[float]:
    info = ssn.state.task_of(int(ssn.state.tasks.shape[task_row(ssn, task)]))
    found = plugin.inter_pod_scores(info) if info.shape.has_inter_pod_terms else None
    mask = np.zeros(len(ssn.state.nodes), dtype=bool)
    mask[group] = True
    return [0.0] * len(group) if found is None else found.scores(mask)[group].tolist()


def waiting(world: World) -> list[Task]:
    return [task for task in world.tasks if task.status is TaskStatus.PENDING]


def check(world: World, ssn: Session, cluster: PlacedPods, random: Random) -> set[str]:
    """Compare every answer about every pending task; return the kinds of answers that were seen."""
    predicates, affinity, spread = ssn.hooks.plugins()
    assert isinstance(predicates, Predicates)
    assert isinstance(affinity, NodeOrdering)
    assert isinstance(spread, NodeOrdering)
    nodes, seen = list(cluster.nodes.values()), set[str]()
    for task in waiting(world):
        found = filters_of(ssn, predicates, task.record.name)
        assert found == list(expected_filters(task, cluster)), task
        group = sorted(random.sample(range(len(nodes)), random.randint(1, len(nodes))))
        records = [nodes[row] for row in group]
        wishes = scores_of(ssn, affinity, task.record.name, group)
        assert wishes == [3.0 * score for score in affinity_scores(task, records, cluster)], task
        even = scores_of(ssn, spread, task.record.name, group)
        assert even == [1.0 * score for score in spread_scores(task, records, cluster)], task
        seen |= set().union(*found)
        seen |= {"wishes"} if len(set(wishes)) > 2 else set()
        seen |= {"even"} if len(set(even)) > 2 else set()
    return seen


def open_session(world: World) -> Session:
    return a_session(
        world,
        Predicates(),
        NodeOrdering(NodeOrderArgs.only(pod_affinity=3)),
        NodeOrdering(NodeOrderArgs.only(pod_topology_spread=1)),
    )


def place_at_random(world: World, ssn: Session, cluster: PlacedPods, random: Random) -> None:
    """Allocate or promise some tasks to any nodes."""
    nodes = list(cluster.nodes)
    for task in waiting(world):
        row = task_row(ssn, task.record.name)
        if ssn.state.tasks.status[row] != TaskStatus.PENDING or random.random() < 0.4:
            continue
        node = random.randrange(len(nodes))
        statement = ssn.statement()
        put = random.choice((statement.allocate, statement.pipeline))
        put(job_row(ssn, str(task.record.job)), int(ssn.state.tasks.shape[row]), np.array([row]), np.array([node]))
        cluster.pods.append(PlacedPod(task, nodes[node]))


def test_answers_equal_a_plain_loop_before_placements_after_them_and_after_their_undo() -> None:
    seen = set[str]()
    for number in range(90):
        world, random = social_world(number), Random(number)
        ssn, cluster = open_session(world), placed_pods(world)
        seen |= check(world, ssn, cluster, random)
        before, checkpoint = list(cluster.pods), ssn.state.journal.checkpoint()
        place_at_random(world, ssn, cluster, random)
        seen |= check(world, ssn, cluster, random)
        ssn.state.journal.rollback(checkpoint, ssn.state.nodes.block)
        cluster.pods = before
        seen |= check(world, ssn, cluster, random)
    assert seen == {*CODES[AFFINITY:END], "wishes", "even"}


def test_a_shape_that_is_first_asked_about_late_counts_earlier_placements_and_undos() -> None:
    for number in range(90):
        world, random = social_world(number), Random(number)
        ssn, cluster = open_session(world), placed_pods(world)
        place_at_random(world, ssn, cluster, random)
        before, checkpoint = list(cluster.pods), ssn.state.journal.checkpoint()
        place_at_random(world, ssn, cluster, random)
        if number % 2:
            check(world, ssn, cluster, random)
        ssn.state.journal.rollback(checkpoint, ssn.state.nodes.block)
        cluster.pods = before
        check(world, ssn, cluster, random)


def test_the_order_of_arrival_does_not_matter() -> None:
    for number in range(60):
        world = social_world(number)
        ssn = a_session(
            world.store(shuffle=number),
            Predicates(),
            NodeOrdering(NodeOrderArgs.only(pod_affinity=3)),
            NodeOrdering(NodeOrderArgs.only(pod_topology_spread=1)),
        )
        check(world, ssn, placed_pods(world), Random(number))


@pytest.mark.parametrize("switch", ["pod_affinity", "spread"])
def test_a_filter_that_is_switched_off_refuses_nothing(switch: str) -> None:
    codes = {"pod_affinity": set(CODES[AFFINITY:NO_LABEL]), "spread": set(CODES[NO_LABEL:END])}
    found: set[str] = set()
    for number in range(60):
        world = social_world(number)
        plugin = Predicates(replace(Predicates.parse({}, print), **{switch: False}))
        ssn = a_session(world, plugin)
        for task in waiting(world):
            found |= set().union(*filters_of(ssn, plugin, task.record.name))

    other = codes["spread" if switch == "pod_affinity" else "pod_affinity"]
    assert found & codes[switch] == set()
    assert found & other


def evict_at_random(ssn: Session, cluster: PlacedPods, random: Random) -> int:
    """Send away some pods that stand and belong to jobs, and let some of them stay; return how many go."""
    statement = ssn.statement()
    for pod in list(cluster.pods):
        if pod.task.record.job is None or pod.terminating or random.random() < 0.4:
            continue
        row = task_row(ssn, pod.task.record.name)
        statement.evict(np.array([row]))
        if random.random() < 0.3:
            statement.put_back(row)
        else:
            cluster.pods.remove(pod)
    return len(statement.evicted)


def test_a_victim_stops_counting_once_it_is_evicted() -> None:
    gone = 0
    for number in range(80):
        world, random = social_world(number), Random(number)
        standing = tuple(
            replace(task, record=replace_record(task, job=world.jobs[0].key.name))
            if task.status in (TaskStatus.RUNNING, TaskStatus.BOUND) and task.record.namespace == "ns"
            else task
            for task in world.tasks
        )
        world = replace(world, tasks=standing)
        ssn, cluster = open_session(world), placed_pods(world)
        if number % 2:
            check(world, ssn, cluster, random)
        before, checkpoint = list(cluster.pods), ssn.state.journal.checkpoint()
        gone += evict_at_random(ssn, cluster, random)
        check(world, ssn, cluster, random)
        ssn.state.journal.rollback(checkpoint, ssn.state.nodes.block)
        cluster.pods = before
        check(world, ssn, cluster, random)
    assert gone > 20


def replace_record(task: Task, **changes: object) -> TaskRecord:
    return msgspec.structs.replace(task.record, **changes)
