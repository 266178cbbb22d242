from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

from tests.framework.sessions import a_session, info, job_row
from tests.plugins.test_undo import answers, evict_something, place_something
from tests.reference import entitlements
from tests.reference.queue_trees import specs, tree_world
from tests.reference.world import Task, World, a_job, a_node, a_queue, a_shape, amounts, tasks_of
from volcano_py.framework.contract.extension_points import Vote
from volcano_py.framework.session import Session
from volcano_py.model.objects import QueueRecord
from volcano_py.model.rejections import Reason
from volcano_py.model.statuses import ALLOCATED_STATUSES, TaskStatus
from volcano_py.plugins.capacity import Capacity
from volcano_py.plugins.capacity.plugin import CapacityArgs

RUNNING = TaskStatus.RUNNING
ONE = a_shape(cpu=1)


def capacity(*, hierarchy: bool = True, **arguments: Any) -> Capacity:
    plugin = Capacity(CapacityArgs(**arguments))
    plugin.hierarchy = hierarchy
    return plugin


def running(job: str, count: int, first: int = 0) -> tuple[Task, ...]:
    return tasks_of(job, count, ONE, status=RUNNING, node="n1", first=first)


def a_world(*queues: QueueRecord, cpu: int = 10, **held: int) -> World:
    """Return a cluster of one node; ``held`` says how many tasks of one core run in a queue, one more waits in each."""
    jobs = tuple(a_job(f"j-{queue.name}", queue=queue.name, phase="Running") for queue in queues)
    tasks = tuple(
        task
        for queue in queues
        for task in (
            *running(f"j-{queue.name}", held.get(queue.name, 0)),
            *tasks_of(f"j-{queue.name}", 1, ONE, first=held.get(queue.name, 0)),
        )
    )
    return World(nodes=(a_node("n1", cpu=cpu),), queues=queues, jobs=jobs, tasks=tasks)


def room(ssn: Session, plugin: Capacity, queue: str, wanted: int = 99) -> int:
    return plugin.allocatable(ssn.state.queues[queue], info(ssn, ONE), wanted)


# What queues may take


def test_a_queue_may_take_what_others_do_not_use_up_to_its_capability() -> None:
    plugin = capacity(hierarchy=False)
    ssn = a_session(a_world(a_queue("a", capability={"cpu": 7}, deserved={"cpu": 2}), a_queue("b"), a=3), plugin)

    assert room(ssn, plugin, "a") == 4


def test_guarantees_of_other_queues_are_not_lent() -> None:
    plugin = capacity(hierarchy=False)
    ssn = a_session(a_world(a_queue("a"), a_queue("b", guarantee={"cpu": 3}), a=1), plugin)

    assert room(ssn, plugin, "a") == 6
    assert room(ssn, plugin, "b") == 10


def test_in_a_tree_every_ancestor_limits_a_queue() -> None:
    plugin = capacity()
    queues = (a_queue("root"), a_queue("up", capability={"cpu": 5}), a_queue("a", "up"), a_queue("b", "up"))
    ssn = a_session(a_world(*queues, a=2, b=1), plugin)

    assert room(ssn, plugin, "a") == 2


def test_without_the_switch_parents_do_not_count() -> None:
    plugin = capacity(hierarchy=False)
    queues = (a_queue("root"), a_queue("up", capability={"cpu": 5}), a_queue("a", "up"), a_queue("b", "up"))
    ssn = a_session(a_world(*queues, a=2, b=1), plugin)

    assert room(ssn, plugin, "a") == 8


def test_only_what_the_task_asks_for_is_looked_at() -> None:
    plugin = capacity()
    ssn = a_session(a_world(a_queue("a", capability={"cpu": 5, "memory": 1, "pods": 1}), a=2), plugin)

    assert room(ssn, plugin, "a") == 3


def test_a_queue_that_is_closed_takes_nothing() -> None:
    plugin = capacity()
    ssn = a_session(a_world(a_queue("a", state="Closed")), plugin)

    assert room(ssn, plugin, "a") == 0


def test_a_root_whose_capability_names_only_memory_does_not_limit_cpu() -> None:
    plugin = capacity()
    ssn = a_session(a_world(a_queue("root", capability={"memory": "8Gi"}), a_queue("a", "root")), plugin)

    assert room(ssn, plugin, "a", wanted=20) == 20  # there is no limit; nodes decide


# Queues without a place


UNSOUND = (
    a_queue("root"),
    a_queue("good", "root"),
    a_queue("lost", "nowhere"),
    a_queue("below", "lost"),
    a_queue("x", "y"),
    a_queue("y", "x"),
    a_queue("inner", "root"),
    a_queue("leaf", "inner"),
)


@pytest.mark.parametrize("queue", ["root", "lost", "below", "x", "y", "inner"])
def test_a_queue_without_a_place_takes_nothing_and_says_why(queue: str) -> None:
    plugin = capacity()
    ssn = a_session(a_world(*UNSOUND), plugin)
    answer = plugin.job_enqueueable(ssn.state.job(job_row(ssn, f"j-{queue}")))

    assert room(ssn, plugin, queue) == 0
    assert isinstance(answer, Reason)
    assert answer.text.startswith(f'queue "{queue}" takes no jobs: it')
    assert ssn.state.report.queue_problems[queue] in answer.text


@pytest.mark.parametrize("queue", ["good", "leaf"])
def test_other_queues_are_not_affected(queue: str) -> None:
    plugin = capacity()
    ssn = a_session(a_world(*UNSOUND), plugin)

    assert room(ssn, plugin, queue) == 99
    assert plugin.job_enqueueable(ssn.state.job(job_row(ssn, f"j-{queue}"))) is Vote.PERMIT
    assert queue not in ssn.state.report.queue_problems


def test_a_queue_above_others_without_jobs_of_its_own_is_no_problem() -> None:
    world = a_world(a_queue("root"), a_queue("a", "root"))
    ssn = a_session(replace(world, jobs=world.jobs[1:], tasks=world.tasks[1:]), capacity())

    assert ssn.state.report.queue_problems == {}


@pytest.mark.parametrize("hierarchy", [False, True])
def test_a_guarantee_above_the_capability_counts_up_to_it_and_is_reported(hierarchy: bool) -> None:
    plugin = capacity(hierarchy=hierarchy)
    greedy = a_queue("a", "up", guarantee={"cpu": 9}, capability={"cpu": 4})
    ssn = a_session(a_world(a_queue("root"), a_queue("up", capability={"cpu": 10}), greedy, a_queue("b", "up")), plugin)

    assert room(ssn, plugin, "a") == 4
    assert room(ssn, plugin, "b") == 6
    assert ssn.state.report.queue_problems["a"] == (
        "spec.guarantee is above spec.capability in cpu: it counts up to the capability"
    )


# Letting jobs in


def a_pending(queue: str, name: str = "new", **minimum: Any) -> Any:
    return a_job(name, queue=queue, phase="Pending", min_resources=amounts(**minimum) if minimum else None)


def test_a_job_is_enqueued_if_its_queue_and_all_ancestors_have_room() -> None:
    queues = (a_queue("root"), a_queue("up", capability={"cpu": 5}), a_queue("a", "up"), a_queue("b", "up"))
    world = a_world(*queues, b=1)
    jobs = (*world.jobs, a_pending("a", "first", cpu=3), a_pending("b", "second", cpu=3), a_pending("b", "none"))
    plugin = capacity()
    ssn = a_session(replace(world, jobs=jobs), plugin)
    first, second, none = (ssn.state.job(job_row(ssn, name)) for name in ("first", "second", "none"))

    assert plugin.job_enqueueable(first) is Vote.PERMIT
    plugin.job_enqueued(first)
    answer = plugin.job_enqueueable(second)
    assert isinstance(answer, Reason)
    assert answer.text == 'queue resource quota insufficient: insufficient cpu in queue "up" above'
    assert plugin.job_enqueueable(none) is Vote.PERMIT


def test_elastic_resources_do_not_keep_other_jobs_from_being_enqueued() -> None:
    queues = (a_queue("a", capability={"cpu": 4}),)
    world = a_world(*queues, a=4)  # no minResources: all four are elastic
    plugin = capacity()
    ssn = a_session(replace(world, jobs=(*world.jobs, a_pending("a", cpu=4))), plugin)

    assert plugin.job_enqueueable(ssn.state.job(job_row(ssn, "new"))) is Vote.PERMIT


# Whose turn it is


def order(ssn: Session, plugin: Capacity, left: str, right: str) -> float:
    difference = plugin.queue_order(ssn.state.queues[left], ssn.state.queues[right])
    assert plugin.queue_order(ssn.state.queues[right], ssn.state.queues[left]) == -difference
    return difference


def test_the_queue_furthest_below_what_it_deserves_goes_first() -> None:
    plugin = capacity(hierarchy=False)
    queues = (a_queue("a", deserved={"cpu": 6}), a_queue("b", deserved={"cpu": 2}), a_queue("c"))
    ssn = a_session(a_world(*queues, a=3, b=1), plugin)

    assert order(ssn, plugin, "a", "b") == 0
    assert order(ssn, plugin, "a", "c") == -0.5  # a queue that deserves nothing has had its share


def test_of_equal_shares_the_queue_that_deserves_something_goes_first() -> None:
    plugin = capacity(hierarchy=False)
    ssn = a_session(a_world(a_queue("a", deserved={"cpu": 2}), a_queue("b"), a=2), plugin)

    assert order(ssn, plugin, "a", "b") < 0


def test_priority_comes_before_shares() -> None:
    plugin = capacity()
    ssn = a_session(a_world(a_queue("a", deserved={"cpu": 6}), a_queue("b", priority=1), b=5), plugin)

    assert order(ssn, plugin, "b", "a") < 0


def test_in_a_tree_branches_are_compared_by_their_current_shares() -> None:
    queues = (
        a_queue("root"),
        a_queue("up", deserved={"cpu": 4}),
        a_queue("a", "up", deserved={"cpu": 4}),
        a_queue("b", "up", deserved={"cpu": 4}),
        a_queue("c", deserved={"cpu": 4}),
    )
    plugin = capacity()
    ssn = a_session(a_world(*queues, a=3, c=2), plugin)
    assert order(ssn, plugin, "b", "c") == 0.25  # its sibling has taken more of their branch than c has of its own
    assert order(ssn, plugin, "b", "a") < 0

    statement = ssn.statement()
    row = job_row(ssn, "j-c")
    shape = ssn.state.classes.shapes.index(ONE)
    statement.allocate(row, shape, ssn.hooks.pending.of(row), np.zeros(1, dtype=np.intp))
    assert order(ssn, plugin, "b", "c") == 0
    statement.discard()
    assert order(ssn, plugin, "b", "c") == 0.25


# Against the plain reference


def counted(ssn: Session, world: World, way: dict[str, list[str]]) -> dict[str, dict[str, float]]:
    """Count what queues and all below them hold, task by task."""
    held: dict[str, dict[str, float]] = {
        name: dict.fromkeys(ssn.state.resources.names, 0.0) for name in ssn.state.queues
    }
    queue_of = {record.key.name: record.queue for record in world.jobs}
    for row, record in enumerate(ssn.state.tasks.records):
        status = TaskStatus(ssn.state.tasks.status[row])
        if record is None or record.job is None or status not in (*ALLOCATED_STATUSES, TaskStatus.PIPELINED):
            continue
        for name in way.get(queue_of.get(record.job, ""), ()):
            for resource, amount in dict(ssn.state.classes.shape_of(int(ssn.state.tasks.shape[row])).request).items():
                held[name][resource] += amount
    return held


@pytest.mark.parametrize("hierarchy", [False, True], ids=["flat", "tree"])
def test_entitlements_equal_the_plain_reference(hierarchy: bool) -> None:
    seen = 0
    for number in range(80):
        world = tree_world(number)
        plugin = capacity(hierarchy=hierarchy)
        ssn = a_session(world, plugin)
        total = dict(zip(ssn.state.resources.names, ssn.state.total.tolist(), strict=True))
        find = entitlements.in_a_tree if hierarchy else entitlements.side_by_side
        expected = find(total, specs(world))
        for name, due in expected.items():
            row, found = ssn.state.queues[name].row, plugin._due
            for resource, (ceiling, deserved) in enumerate(
                zip(found.ceiling[:, row].tolist(), found.deserved[:, row].tolist(), strict=True)
            ):
                known = ssn.state.resources.names[resource]
                assert (ceiling, deserved) == (due.ceiling[known], due.deserved[known]), (number, name, known)
        seen += len(expected)
    assert seen > 200


def test_what_queues_hold_may_take_and_share_equals_the_plain_reference_after_random_placements() -> None:
    for number in range(40):
        world = tree_world(number)
        plugin = capacity()
        ssn = a_session(world, plugin)
        evict_something(ssn, Random(number))
        place_something(ssn, Random(number))
        queues = specs(world)
        way = {name: entitlements.path(queues, name) or [] for name in queues}
        total = dict(zip(ssn.state.resources.names, ssn.state.total.tolist(), strict=True))
        due = entitlements.in_a_tree(total, queues)
        held = counted(ssn, world, way)
        parents = {above for path in way.values() for above in path[1:]}
        for name, path in way.items():
            if not path:
                assert room(ssn, plugin, name, 1) == 0 if ONE in ssn.state.classes.shapes else True
                continue
            assert plugin._share(ssn.state.queues[name].row) == entitlements.share(held[name], due[name].deserved)
            for shape_id, shape in enumerate(ssn.state.classes.shapes):
                if shape is None:
                    continue
                asked = {resource: amount for resource, amount in shape.request if resource != "pods"}
                fits = all(
                    held[above][resource] + amount <= due[above].ceiling[resource]
                    for above in path
                    for resource, amount in asked.items()
                )
                expected = fits and ssn.state.queues[name].record.open and name not in parents
                assert plugin.allocatable(ssn.state.queues[name], ssn.state.task_of(shape_id), 1) == expected, (
                    number,
                    name,
                )


def test_what_leaves_hold_adds_up_to_what_the_root_holds() -> None:
    for number in range(40):
        plugin = capacity()
        ssn = a_session(tree_world(number, sound=True), plugin)
        place_something(ssn, Random(number))
        if "root" in ssn.state.queues:
            leaves = plugin._tree.leaf
            root = ssn.state.queues["root"].row
            assert plugin._held[:, leaves].sum(axis=1).tolist() == plugin._held[:, root].tolist()


def test_after_random_placements_in_a_tree_and_their_undo_the_plugin_answers_as_before() -> None:
    moved = 0
    for number in range(25):
        plugin = capacity()
        ssn = a_session(tree_world(number, sound=True), plugin)
        before, checkpoint = answers(plugin, ssn), ssn.state.journal.checkpoint()

        if evict_something(ssn, Random(number)) + place_something(ssn, Random(number)):
            moved += answers(plugin, ssn) != before
        ssn.state.journal.rollback(checkpoint, ssn.state.nodes.block)

        assert answers(plugin, ssn) == before, f"tree_world({number})"
    assert moved
