"""Taking back what a queue has lent: which queue may, and from whom."""

from random import Random
from typing import Any

import numpy as np
import pytest

from tests.framework.sessions import a_session, info
from tests.plugins.test_capacity import ONE, RUNNING, a_world, capacity, counted
from tests.plugins.test_undo import place_something
from tests.reference import entitlements, taking_back
from tests.reference.queue_trees import specs, tree_world
from tests.reference.world import World, a_job, a_node, a_queue, a_shape, tasks_of
from volcano_py.framework.contract.extension_points import Preemptor, Purpose
from volcano_py.framework.contract.victim_candidates import VictimCandidates
from volcano_py.framework.session import Session
from volcano_py.model.objects import QueueRecord
from volcano_py.plugins.capacity import Capacity


def preemptor(
    ssn: Session, queue: str, *, purpose: Purpose = Purpose.RECLAIM, gang: bool = False, shape: Any = ONE
) -> Preemptor:
    row = next(row for row in ssn.state.jobs.present().tolist() if ssn.state.jobs.record(row).queue == queue)
    task = info(ssn, shape)
    return Preemptor(purpose, ssn.state.job(row), ssn.state.queues[queue], None if gang else task, gains=task.request)


def of_others(ssn: Session, queue: str) -> VictimCandidates:
    everybody = ssn.eviction.all
    return everybody.only(everybody.queues != ssn.state.queues[queue].row)


def names(ssn: Session, candidates: VictimCandidates, allowed: Any) -> list[str]:
    return sorted(ssn.state.tasks.record(row).name for row in candidates.rows[allowed].tolist())


def goes(plugin: Capacity, ssn: Session, queue: str, **options: Any) -> list[str]:
    candidates = of_others(ssn, queue)
    return names(ssn, candidates, plugin.reclaimable(preemptor(ssn, queue, **options), candidates))


# Which queue may take from others


@pytest.mark.parametrize(
    ("held", "queue", "may"),
    [
        pytest.param(1, a_queue("a", deserved={"cpu": 2}), True, id="deserves-it"),
        pytest.param(2, a_queue("a", deserved={"cpu": 2}), False, id="has-what-it-deserves"),
        pytest.param(0, a_queue("a"), False, id="deserves-nothing"),
        pytest.param(0, a_queue("a", guarantee={"cpu": 1}), True, id="is-guaranteed-it"),
        pytest.param(1, a_queue("a", deserved={"cpu": 2}, state="Closed"), False, id="is-closed"),
        pytest.param(1, a_queue("a", deserved={"cpu": 2}, capability={"cpu": 1}), False, id="may-not-hold-it"),
        pytest.param(0, a_queue("a", deserved={"pods": 9}), False, id="pods-do-not-count"),
    ],
)
def test_a_queue_takes_from_others_what_it_deserves(held: int, queue: QueueRecord, may: bool) -> None:
    plugin = capacity()
    ssn = a_session(a_world(queue, a_queue("b"), a=held), plugin)

    assert plugin.preemptive(ssn.state.queues["a"], [(info(ssn, ONE), 1)]) is may


def test_several_tasks_count_together() -> None:
    plugin = capacity()
    ssn = a_session(a_world(a_queue("a", deserved={"cpu": 3}), a=1), plugin)

    assert plugin.preemptive(ssn.state.queues["a"], [(info(ssn, ONE), 2)])
    assert not plugin.preemptive(ssn.state.queues["a"], [(info(ssn, ONE), 3)])


@pytest.mark.parametrize(("level", "may"), [(0, False), (1, True)])
def test_what_a_queue_above_deserves_counts_where_the_argument_says_so(level: int, may: bool) -> None:
    plugin = capacity(ancestor_reclaim_level=level)
    queues = (a_queue("root"), a_queue("up", deserved={"cpu": 4}), a_queue("a", "up"), a_queue("b", "up"))
    ssn = a_session(a_world(*queues, a=1), plugin)

    assert plugin.preemptive(ssn.state.queues["a"], [(info(ssn, ONE), 1)]) is may


def test_a_queue_without_a_place_takes_from_nobody_and_nobody_from_it() -> None:
    plugin = capacity()
    queues = (a_queue("a", deserved={"cpu": 4}), a_queue("lost", "nowhere", deserved={"cpu": 1}), a_queue("b"))
    ssn = a_session(a_world(*queues, lost=3, b=1), plugin)

    assert not plugin.preemptive(ssn.state.queues["lost"], [(info(ssn, ONE), 1)])
    assert goes(plugin, ssn, "a") == ["j-b-0"]
    assert goes(plugin, ssn, "lost") == []


# From whom


def test_reclaim_takes_only_what_a_queue_holds_beyond_its_deserved_share() -> None:
    plugin = capacity(hierarchy=False)
    queues = (a_queue("a", deserved={"cpu": 4}), a_queue("b", deserved={"cpu": 2}), a_queue("c", deserved={"cpu": 3}))
    ssn = a_session(a_world(*queues, b=5, c=3), plugin)

    assert goes(plugin, ssn, "a") == ["j-b-2", "j-b-3", "j-b-4"]


@pytest.mark.parametrize("level", [0, 1])
def test_a_batch_over_many_nodes_counts_each_queue_across_the_whole_batch(level: int) -> None:
    plugin = capacity(ancestor_reclaim_level=level)
    tops = (a_queue("root"), a_queue("top", deserved={"cpu": 4}))
    due = (
        a_queue("a", deserved={"cpu": 4}),
        a_queue("b", "top", deserved={"cpu": 2}),
        a_queue("c", deserved={"cpu": 3}),
    )
    ssn = a_session(a_world(*tops, *due, b=5, c=5), plugin)
    rows = {ssn.state.tasks.record(row).name: row for row in ssn.eviction.all.rows.tolist()}
    order = [f"j-{queue}-{number}" for number in (4, 3, 2, 1, 0) for queue in ("b", "c")]
    batch = VictimCandidates(ssn.state, np.array([rows[name] for name in order]), np.zeros(len(order), dtype=np.intp))

    allowed = plugin.reclaimable(preemptor(ssn, "a"), batch)

    from_b = ["j-b-2", "j-b-3", "j-b-4"] if not level else ["j-b-4"]  # the queue above deserves four
    assert names(ssn, batch, allowed) == [*from_b, "j-c-3", "j-c-4"]


def test_a_queue_that_deserves_nothing_gives_back_all_but_its_guarantee() -> None:
    plugin = capacity(hierarchy=False)
    queues = (a_queue("a", deserved={"cpu": 4}), a_queue("b"), a_queue("c", guarantee={"memory": "1Gi"}))
    world = a_world(*queues, b=2)
    big = a_shape(cpu=1, memory="512Mi")
    more = tasks_of("j-c", 3, big, status=RUNNING, node="n1", first=1)
    ssn = a_session(World(world.nodes, world.queues, world.jobs, (*world.tasks, *more)), plugin)

    assert goes(plugin, ssn, "a") == ["j-b-0", "j-b-1", "j-c-3"]


def test_candidates_without_a_resource_that_the_preemptor_requests_are_protected() -> None:
    plugin = capacity(hierarchy=False)
    world = a_world(a_queue("a", deserved={"cpu": 4}), a_queue("b"))
    memory = tasks_of("j-b", 1, a_shape(memory="1Gi"), status=RUNNING, node="n1", first=1)
    ssn = a_session(World(world.nodes, world.queues, world.jobs, (*world.tasks, *memory)), plugin)

    assert goes(plugin, ssn, "a") == []
    assert names(ssn, *_for_gang(plugin, ssn, "a", Purpose.RECLAIM)) == ["j-b-1"]


def test_a_gang_may_take_everything_within_its_own_queue() -> None:
    plugin = capacity(hierarchy=False)
    ssn = a_session(a_world(a_queue("a"), a_queue("b", deserved={"cpu": 9}), b=2), plugin)

    assert names(ssn, *_for_gang(plugin, ssn, "a", Purpose.PREEMPT)) == ["j-b-0", "j-b-1"]


def test_a_gang_leaves_each_queue_its_guarantee_in_any_order_of_bundles() -> None:
    plugin = capacity(hierarchy=False)
    queues = (a_queue("a", deserved={"cpu": 4}), a_queue("b", guarantee={"cpu": 1}), a_queue("c"))
    ssn = a_session(a_world(*queues, b=2, c=2), plugin)
    everybody = of_others(ssn, "a").together()
    mixed = VictimCandidates(ssn.state, everybody.rows[[0, 2, 1, 3]], everybody.groups)

    for answer in (plugin.unified_evictable, lambda *asked: ~plugin.protected(*asked)):
        allowed = answer(preemptor(ssn, "a", gang=True), mixed)
        assert names(ssn, mixed, allowed) == ["j-b-1", "j-c-0", "j-c-1"]


def _for_gang(plugin: Capacity, ssn: Session, queue: str, purpose: Purpose) -> tuple[VictimCandidates, Any]:
    candidates = of_others(ssn, queue)
    return candidates, plugin.unified_evictable(preemptor(ssn, queue, purpose=purpose, gang=True), candidates)


def test_every_node_is_counted_independently() -> None:
    plugin = capacity(hierarchy=False)
    queues = (a_queue("a", deserved={"cpu": 4}), a_queue("b", deserved={"cpu": 3}))
    jobs = (a_job("ja", queue="a"), a_job("jb", queue="b", phase="Running"))
    tasks = (
        *tasks_of("ja", 1, ONE),
        *tasks_of("jb", 2, ONE, status=RUNNING, node="n1"),
        *tasks_of("jb", 2, ONE, status=RUNNING, node="n2", first=2),
    )
    ssn = a_session(World((a_node("n1"), a_node("n2")), queues, jobs, tasks), plugin)

    assert goes(plugin, ssn, "a") == ["jb-1", "jb-3"]


def test_a_guarantee_holds_whatever_tier_decides() -> None:
    plugin = capacity(hierarchy=False)
    ssn = a_session(a_world(a_queue("a", deserved={"cpu": 4}), a_queue("b", guarantee={"cpu": 2}), b=3), plugin)
    candidates = of_others(ssn, "a")

    protected = plugin.protected(preemptor(ssn, "a"), candidates)

    assert names(ssn, candidates, protected) == ["j-b-0", "j-b-1"]
    assert not plugin.protected(preemptor(ssn, "a", purpose=Purpose.PREEMPT), candidates).any()
    assert not plugin.protected(None, candidates).any()


TREE = (
    a_queue("root"),
    a_queue("up", deserved={"cpu": 4}),
    a_queue("a", "up", deserved={"cpu": 2}),
    a_queue("b", "up"),
    a_queue("side", deserved={"cpu": 1}),
    a_queue("c", "side"),
)


def test_queues_nearest_in_the_tree_lose_first() -> None:
    plugin = capacity()
    ssn = a_session(a_world(*TREE), plugin)
    a, b, c = (ssn.state.queues[name] for name in "abc")

    assert plugin.victim_queue_order(b, c, a) < 0
    assert plugin.victim_queue_order(c, b, a) > 0
    assert plugin.victim_queue_order(b, b, a) == 0


@pytest.mark.parametrize(
    ("level", "held", "expected"),
    [
        pytest.param(0, {"c": 1}, ["j-c-0"], id="queues-above-do-not-count"),
        pytest.param(1, {"c": 1}, [], id="the-queue-above-has-no-more-than-it-deserves"),
        pytest.param(1, {"c": 3}, ["j-c-1", "j-c-2"], id="it-has-more"),
        pytest.param(1, {"b": 2}, ["j-b-0", "j-b-1"], id="the-same-queue-above"),
    ],
)
def test_ancestors_of_the_victims_must_hold_more_than_they_deserve(
    level: int, held: dict[str, int], expected: list[str]
) -> None:
    plugin = capacity(ancestor_reclaim_level=level)
    ssn = a_session(a_world(*TREE, **held), plugin)

    assert goes(plugin, ssn, "a") == expected


@pytest.mark.parametrize(("level", "expected"), [(0, ["j-b-0", "j-b-1"]), (1, [])])
def test_sibling_queues_that_deserve_nothing_do_not_take_from_each_other(level: int, expected: list[str]) -> None:
    plugin = capacity(ancestor_reclaim_level=level)
    queues = (a_queue("root"), a_queue("up", deserved={"cpu": 1}), a_queue("a", "up"), a_queue("b", "up"))
    ssn = a_session(a_world(*queues, b=2), plugin)

    assert goes(plugin, ssn, "a") == expected


@pytest.mark.parametrize("level", [0, 1, 2, 3])
@pytest.mark.parametrize("hierarchy", [False, True], ids=["flat", "tree"])
def test_votes_equal_a_walk_from_candidate_to_candidate(hierarchy: bool, level: int) -> None:
    decided = [0, 0]
    for number in range(30):
        random = Random(number)
        world = tree_world(number)
        plugin = capacity(hierarchy=hierarchy, ancestor_reclaim_level=level)
        ssn = a_session(world, plugin)
        queues = specs(world)
        ways = {name: (entitlements.path(queues, name) or []) if hierarchy else [name] for name in queues}
        total = dict(zip(ssn.state.resources.names, ssn.state.total.tolist(), strict=True))
        due = (entitlements.in_a_tree if hierarchy else entitlements.side_by_side)(total, queues)
        place_something(ssn, random)
        held = counted(ssn, world, ways)
        everybody = ssn.eviction.all if random.random() < 0.7 else ssn.eviction.all.together()
        for name in queues:
            candidates = everybody.only((everybody.queues != ssn.state.queues[name].row) & (everybody.queues >= 0))
            waiting = [row for row in ssn.state.jobs.present().tolist() if ssn.state.jobs.record(row).queue == name]
            if not len(candidates) or not waiting:
                continue
            shape = random.choice([shape for shape in ssn.state.classes.shapes if shape is not None])
            asking = Preemptor(Purpose.RECLAIM, ssn.state.job(waiting[0]), ssn.state.queues[name], info(ssn, shape))
            if (
                name in ssn.state.report.queue_problems
                and hierarchy
                and not plugin._tree.leaf[ssn.state.queues[name].row]
            ):
                continue  # a queue that is no leaf takes from nobody; the walk does not know
            found = plugin.reclaimable(asking, candidates)
            records = [ssn.state.tasks.record(row) for row in candidates.rows.tolist()]
            queue_of = [list(ssn.state.queues)[row] for row in candidates.queues.tolist()]
            requests = [
                dict(ssn.state.classes.shape_of(int(ssn.state.tasks.shape[row])).request)
                for row in candidates.rows.tolist()
            ]
            for group in np.unique(candidates.groups).tolist():
                members = np.flatnonzero(candidates.groups == group).tolist()
                expected = taking_back.may_go(
                    [(queue_of[row], requests[row]) for row in members],
                    held,
                    queues,
                    due,
                    ways,
                    name,
                    dict(shape.request),
                    level if hierarchy else 0,
                )
                assert found[members].tolist() == expected, (number, name, [records[row].name for row in members])
                decided[0] += sum(expected)
                decided[1] += len(expected)
    assert 0 < decided[0] < decided[1]
