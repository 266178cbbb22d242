from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.framework.sessions import a_session, info, job_row
from tests.reference.world import Task, World, a_job, a_node, a_queue, a_shape, a_task, amounts, tasks_of
from tests.scheduler.running import cycle
from volcano_py.framework.contract.extension_points import Vote
from volcano_py.framework.session import Session
from volcano_py.model.objects import JobRecord
from volcano_py.model.queue_limits import capability, room_for, share
from volcano_py.model.rejections import Reason
from volcano_py.model.statuses import TaskStatus
from volcano_py.plugins.proportion import Proportion

RUNNING = TaskStatus.RUNNING
ONE = a_shape(cpu=1)
CONF = """\
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: priority
  - name: gang
- plugins:
  - name: predicates
  - name: proportion
"""


def plugin_of(ssn: Session) -> Proportion:
    plugin = ssn.hooks.plugins()[0]
    assert isinstance(plugin, Proportion)
    return plugin


def running(job: str, count: int, node: str = "n1") -> tuple[Task, ...]:
    return tasks_of(job, count, ONE, status=RUNNING, node=node)


def two_queues(*, held: int = 0, wanted: int = 12, **first: Any) -> World:
    """Twelve cores; queue a holds and wants so many of them, queue b wants all."""
    return World(
        nodes=(a_node("n1", cpu=12, memory="64Gi"),),
        queues=(a_queue("a", **first), a_queue("b")),
        jobs=(a_job("ja", queue="a", phase="Running"), a_job("jb", queue="b", phase="Inqueue")),
        tasks=(*running("ja", held), *tasks_of("ja", wanted - held, ONE, first=held), *tasks_of("jb", 12, ONE)),
    )


@pytest.mark.parametrize(
    ("taken", "deserved", "expected"),
    [
        pytest.param([1, 1], [4, 2], 0.5, id="the-greatest-part"),
        pytest.param([1, 1], [4, 0], 0.25, id="what-is-not-deserved-does-not-count"),
        pytest.param([1, 1], [0, 0], 0, id="nothing-deserved"),
        pytest.param([8, 0], [4, 0], 2, id="more-than-deserved"),
    ],
)
def test_the_share_of_a_queue(taken: list[float], deserved: list[float], expected: float) -> None:
    assert share(taken, deserved) == expected


@pytest.mark.parametrize(
    ("taken", "amount", "limit", "room"),
    [
        pytest.param(0, 1000, 3000, 3, id="a-sum-equal-to-the-limit-is-allowed"),
        pytest.param(0, 1000, 2999.9999, 2, id="one-that-passes-it-is-not"),
        pytest.param(0, 1000, 99_999, 9, id="no-more-than-wanted"),
        pytest.param(3500, 1000, 3000, 0, id="already-over"),
        pytest.param(0, 0.1, 0.7, 6, id="by-comparison-not-by-division"),
    ],
)
def test_room_for_more_tasks(taken: float, amount: float, limit: float, room: int) -> None:
    assert room_for([taken], [(0, amount)], [limit], 9) == room


@settings(max_examples=120, derandomize=True)
@given(
    taken=st.lists(st.integers(0, 50), min_size=3, max_size=3),
    each=st.lists(st.integers(0, 9), min_size=3, max_size=3),
    limit=st.lists(st.one_of(st.integers(0, 99), st.floats(0, 99)), min_size=3, max_size=3),
    wanted=st.integers(0, 30),
)
def test_room_equals_asking_one_by_one(taken: list[int], each: list[int], limit: list[float], wanted: int) -> None:
    held, count = list(taken), 0
    asked = [(row, float(amount)) for row, amount in enumerate(each) if amount]
    while count < wanted and not any(held[row] + amount > limit[row] for row, amount in asked):
        held = [have + amount for have, amount in zip(held, each, strict=True)]
        count += 1

    assert room_for([float(have) for have in taken], asked, limit, wanted) == count


@pytest.mark.parametrize(
    ("held", "room"),
    [
        pytest.param(0, 6, id="half-of-the-cluster"),
        pytest.param(4, 2, id="what-it-holds-counts"),
        pytest.param(6, 0, id="nothing-more"),
        pytest.param(8, 0, id="over-already"),
    ],
)
def test_a_queue_may_hold_what_it_deserves(held: int, room: int) -> None:
    ssn = a_session(two_queues(held=held), Proportion())

    assert ssn.hooks.allocatable(ssn.state.queues["a"], info(ssn, ONE), 99) == room


@pytest.mark.parametrize(("state", "room"), [("Open", 6), ("", 6), ("Closed", 0), ("Closing", 0), ("Unknown", 0)])
def test_a_queue_that_is_not_open_may_hold_nothing_more(state: str, room: int) -> None:
    ssn = a_session(two_queues(state=state), Proportion())

    assert ssn.hooks.allocatable(ssn.state.queues["a"], info(ssn, ONE), 99) == room


def test_only_what_a_task_asks_for_counts() -> None:
    """Queue a holds all the memory that it deserves and half of its cpu."""
    memory_only, cpu_only = a_shape(memory="1Gi"), a_shape(cpu=1)
    world = World(
        nodes=(a_node("n1", cpu=4, memory="4Gi"),),
        queues=(a_queue("a"), a_queue("b")),
        jobs=(a_job("ja", queue="a"), a_job("jb", queue="b")),
        tasks=(
            a_task("held", a_shape(cpu=1, memory="2Gi"), job="ja", status=RUNNING, node="n1"),
            *tasks_of("ja", 9, memory_only),
            *tasks_of("ja", 9, cpu_only, first=9),
            *tasks_of("jb", 9, a_shape(cpu=1, memory="1Gi")),
        ),
    )
    ssn = a_session(world, Proportion())

    assert ssn.hooks.allocatable(ssn.state.queues["a"], info(ssn, memory_only), 5) == 0
    assert ssn.hooks.allocatable(ssn.state.queues["a"], info(ssn, cpu_only), 5) == 1
    assert not ssn.hooks.overused(ssn.state.queues["a"])


@pytest.mark.parametrize(
    ("held", "wanted", "overused"),
    [
        pytest.param(5, 6, False, id="below"),
        pytest.param(6, 6, True, id="all-of-it"),
        pytest.param(6, 12, False, id="all-but-pods-of-which-there-are-plenty"),
    ],
)
def test_a_queue_is_overused_once_it_holds_all_that_it_deserves(held: int, wanted: int, overused: bool) -> None:
    ssn = a_session(two_queues(held=held, wanted=wanted), Proportion())

    assert ssn.hooks.overused(ssn.state.queues["a"]) is overused


def test_a_queue_that_deserves_nothing_is_overused_but_its_jobs_may_be_enqueued() -> None:
    job = a_job("j", queue="a", min_available=1, phase="Pending", min_resources=amounts(cpu=1))
    world = World(nodes=(a_node("n1"),), queues=(a_queue("a"),), jobs=(job,))

    ssn = a_session(world, Proportion())

    assert ssn.hooks.overused(ssn.state.queues["a"])
    assert cycle(world, CONF).groups["j"].phase == "Inqueue"


@pytest.mark.parametrize(
    ("left", "right", "first"),
    [
        pytest.param({"priority": 5}, {"held": 0}, "a", id="priority-before-share"),
        pytest.param({"held": 3}, {}, "b", id="the-lower-share"),
        pytest.param({"held": 3, "weight": 9}, {"held": 3}, "a", id="the-same-is-less-of-a-greater-share"),
        pytest.param({}, {}, "a", id="then-by-name"),
    ],
)
def test_the_order_of_queues(left: dict[str, Any], right: dict[str, Any], first: str) -> None:
    held = {"a": left.pop("held", 0), "b": right.pop("held", 0)}
    world = World(
        nodes=(a_node("n1", cpu=12),),
        queues=(a_queue("b", **right), a_queue("a", **left)),
        jobs=(a_job("ja", queue="a"), a_job("jb", queue="b")),
        tasks=(
            *(running("ja", held["a"]) + running("jb", held["b"])),
            *tasks_of("ja", 12, ONE, first=20),
            *tasks_of("jb", 12, ONE, first=20),
        ),
    )

    assert cycle(world, CONF).binds[0][0][:2] == f"j{first}"


def asks(name: str, cpu: str | int, **fields: Any) -> JobRecord:
    return a_job(name, **{"queue": "a", "phase": "Pending", "min_resources": amounts(cpu=cpu), **fields})


def enqueueing(*jobs: JobRecord, tasks: tuple[Task, ...] = (), **queue: Any) -> Session:
    world = World(nodes=(a_node("n1", cpu=10),), queues=(a_queue("a", **queue), a_queue("b")), jobs=jobs, tasks=tasks)
    return a_session(world, Proportion())


def answer(ssn: Session, name: str) -> str:
    found = plugin_of(ssn).job_enqueueable(ssn.state.job(job_row(ssn, name)))
    return found.text if isinstance(found, Reason) else found.name


NO_ROOM = "queue resource quota insufficient: insufficient cpu"


@pytest.mark.parametrize(
    ("jobs", "tasks", "queue", "expected"),
    [
        pytest.param([asks("j", 10)], (), {}, "PERMIT", id="all-there-is"),
        pytest.param([asks("j", "10001m")], (), {}, NO_ROOM, id="more-than-there-is"),
        pytest.param([asks("j", 5)], (), {"capability": {"cpu": 4}}, NO_ROOM, id="more-than-the-capability"),
        pytest.param([asks("j", 5)], (), {"capability": {"memory": "1Gi"}}, "PERMIT", id="no-limit-of-cpu"),
        pytest.param([asks("j", 5)], (), {"capability": {"cpu": 0}}, "PERMIT", id="none-of-cpu-is-no-limit"),
        pytest.param([a_job("j", queue="a")], (), {"capability": {"cpu": 1}}, "PERMIT", id="asks-for-nothing"),
        pytest.param([asks("j", 1)], (), {"state": "Closed"}, "REJECT", id="closed"),
        pytest.param([asks("j", 1)], (), {"state": ""}, "PERMIT", id="no-state-counts-as-open"),
        pytest.param([asks("j", 6), asks("in", 5, phase="Inqueue")], (), {}, NO_ROOM, id="beside-enqueued-jobs"),
        pytest.param([asks("j", 6), asks("in", 5, phase="Pending")], (), {}, "PERMIT", id="beside-what-is-not"),
        pytest.param(
            [asks("j", 6), asks("run", 3, phase="Running")],
            running("run", 4),
            {},
            "PERMIT",
            id="what-is-elastic-could-be-given-back",
        ),
        pytest.param(
            [asks("j", 6), asks("run", 5, phase="Running")], running("run", 4), {}, NO_ROOM, id="what-is-not-could-not"
        ),
    ],
)
def test_a_job_is_enqueued_if_its_queue_may_hold_it(
    jobs: list[JobRecord], tasks: tuple[Task, ...], queue: dict[str, Any], expected: str
) -> None:
    assert answer(enqueueing(*jobs, tasks=tasks, **queue), "j") == expected


def test_an_enqueued_job_counts_for_later_jobs() -> None:
    ssn = enqueueing(asks("first", 6), asks("second", 6))

    assert answer(ssn, "second") == Vote.PERMIT.name
    ssn.hooks.job_enqueued(ssn.state.job(job_row(ssn, "first")))

    assert answer(ssn, "second") == NO_ROOM


def test_guarantees_of_other_queues_are_out_of_reach() -> None:
    world = World(
        nodes=(a_node("n1", cpu=10),),
        queues=(a_queue("a"), a_queue("b", guarantee={"cpu": 4})),
        jobs=(asks("fits", 6), asks("over", 7)),
    )
    ssn = a_session(world, Proportion())

    assert [answer(ssn, "fits"), answer(ssn, "over")] == ["PERMIT", NO_ROOM]


def test_a_scalar_limited_to_nothing_is_not_one_without_limit() -> None:
    record = a_queue("q", capability={"gpu": 0, "cpu": 0})
    ssn = a_session(World(nodes=(a_node("n1", gpu=1),), queues=(record,)))

    limit = dict(zip(ssn.state.resources.names, capability(record, ssn.state.resources).tolist(), strict=True))

    assert limit == {"cpu": float("inf"), "memory": float("inf"), "pods": float("inf"), "nvidia.com/gpu": 0.0}


def test_two_backlogged_queues_end_within_one_pod_of_their_weights() -> None:
    world = World(
        nodes=tuple(a_node(f"n{index}", cpu=10) for index in range(4)),
        queues=(a_queue("a", weight=3), a_queue("b")),
        jobs=tuple(a_job(f"{queue}{index}", queue=queue) for queue in "ab" for index in range(40)),
        tasks=tuple(task for queue in "ab" for index in range(40) for task in tasks_of(f"{queue}{index}", 1)),
    )

    assert Counter(name[0] for name, _ in cycle(world, CONF).binds) == {"a": 30, "b": 10}


@pytest.mark.parametrize(
    ("pods", "text"),
    [
        pytest.param(
            110,
            'queue "a" may not hold more: 1 cpu asked, 6 held, 6 deserved',
            id="a-task-like-it-would-be-too-much",
        ),
        pytest.param(
            12,
            'queue "a" holds all that it deserves now (cpu 6 of 6): its other tasks wait until it deserves more',
            id="nothing-at-all-is-left",
        ),
    ],
)
def test_a_task_that_waits_for_its_queue_says_so(pods: int, text: str) -> None:
    world = World(
        nodes=(a_node("n1", cpu=12, pods=pods),),
        queues=(a_queue("a"), a_queue("b")),
        jobs=(a_job("ja", queue="a"), a_job("jb", queue="b"), a_job("late", queue="a", creation=5.0)),
        tasks=(*tasks_of("ja", 12, ONE), *tasks_of("jb", 12, ONE), *tasks_of("late", 1, ONE)),
    )

    messages = cycle(world, CONF).messages

    assert len(messages) == 13
    assert (messages["late-0"], messages["ja-9"]) == (text, text)


def test_a_resource_of_no_node_is_not_called_undeserved() -> None:
    world = World(
        nodes=(a_node("n1", cpu=12),),
        queues=(a_queue("a"),),
        jobs=(a_job("ja", queue="a"),),
        tasks=tasks_of("ja", 1, a_shape(cpu=1, gpu=1)),
    )

    assert "1 nvidia.com/gpu asked, 0 held, 0 in the cluster (no node has any)" in cycle(world, CONF).messages["ja-0"]


def test_what_queues_deserve_is_reported() -> None:
    report = cycle(two_queues(held=4, weight=3), CONF).report.queues

    assert (report["a"].deserved["cpu"], report["b"].deserved["cpu"]) == (9000.0, 3000.0)
    assert (report["a"].allocated["cpu"], report["a"].share, report["a"].overused) == (9000.0, 1.0, False)
    assert (report["a"].request["cpu"], report["a"].weight) == (12000.0, 3)


def test_an_idle_queue_is_reported_with_nothing_so_that_its_series_stay() -> None:
    world = replace(two_queues(), queues=(a_queue("a"), a_queue("b"), a_queue("idle", weight=5)))

    idle = cycle(world, CONF).report.queues["idle"]

    assert (idle.weight, idle.share, idle.overused) == (5, 0.0, False)
    assert {*idle.allocated.values(), *idle.request.values(), *idle.deserved.values()} == {0.0}
