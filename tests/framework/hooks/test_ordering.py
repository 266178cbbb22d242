from collections.abc import Sequence
from dataclasses import replace
from functools import cmp_to_key

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.framework.sessions import a_session, job_row
from tests.reference.allocation import number
from tests.reference.world import Task, World, a_job, a_shape, a_task
from volcano_py.framework.contract.extension_points import JobOrder, QueueOrder, TaskOrder
from volcano_py.framework.contract.plugin import Plugin
from volcano_py.framework.hooks.ordering import QueueLine
from volcano_py.framework.session import Session
from volcano_py.framework.state.info import QueueInfo
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Floats
from volcano_py.model.objects import QueueRecord
from volcano_py.model.statuses import TaskStatus
from volcano_py.plugins.priority import Priority
from volcano_py.snapshot.columns import JobColumns, TaskColumns


class OldestLast(Plugin, TaskOrder):
    """Order tasks by creation time, the newest first."""

    name = "oldest-last"

    def task_order(self, tasks: TaskColumns) -> Floats:
        return -tasks.creation


class BigFirst(Plugin, JobOrder):
    """Order jobs by their minimum, the biggest first."""

    name = "big-first"

    def job_order(self, jobs: JobColumns) -> Floats:
        return -jobs.min_available.astype(float)


def order_of(tasks: list[Task], *plugins: Plugin, shuffle: int | None = None) -> list[str]:
    world = World(jobs=(a_job("j"),), tasks=tuple(tasks))
    ssn = a_session(world.store(shuffle), *plugins)
    return [ssn.state.tasks.record(row).name for row in ssn.hooks.pending.of(job_row(ssn, "j")).tolist()]


def task(name: str, **record: object) -> Task:
    return a_task(name, job="j", **record)


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [
        pytest.param([task("j-w-10"), task("j-w-9"), task("j-w-2")], "j-w-2 j-w-9 j-w-10", id="by-number-not-by-text"),
        pytest.param(
            [task("j-w-1", creation=5.0), task("j-w-2", creation=1.0)], "j-w-1 j-w-2", id="number-before-creation-time"
        ),
        pytest.param(
            [task("j-w-0", creation=5.0), task("j-ps-0", creation=1.0)], "j-ps-0 j-w-0", id="equal-numbers-by-creation"
        ),
        pytest.param([task("b", creation=1.0), task("a", creation=2.0)], "b a", id="names-without-numbers-by-creation"),
        pytest.param([task("j-2", creation=1.0), task("j-1", creation=2.0)], "j-2 j-1", id="two-parts-are-no-number"),
        pytest.param([task("x", uid="2"), task("y", uid="1")], "y x", id="uid-in-the-end"),
        pytest.param([task("j-a-1", uid="2"), task("j-b-1", uid="1")], "j-b-1 j-a-1", id="equal-numbers-by-uid"),
        pytest.param(
            [task("j-w-2", creation=3.0), task("x", creation=2.0), task("j-w-1", creation=1.0)],
            "j-w-1 x j-w-2",
            id="mixed-names-where-number-and-creation-agree",
        ),
        pytest.param(
            [task("j-w-2", creation=1.0), task("driver", creation=9.0), task("j-w-10", creation=1.0)],
            "j-w-2 j-w-10 driver",
            id="a-name-without-number-goes-by-creation",
        ),
    ],
)
def test_without_a_task_order_plugin_tasks_go_by_number_creation_time_and_uid(tasks: list[Task], expected: str) -> None:
    for shuffle in (None, 1, 2):
        assert order_of(tasks, shuffle=shuffle) == expected.split()


def test_priority_goes_before_the_number() -> None:
    tasks = [task("j-w-0"), task("j-w-1", priority=5), task("j-w-2", priority=-3), task("j-w-3", priority=5)]

    assert order_of(tasks, Priority()) == ["j-w-1", "j-w-3", "j-w-0", "j-w-2"]


def test_the_first_plugin_with_an_opinion_decides() -> None:
    tasks = [task("j-w-0", priority=5, creation=1.0), task("j-w-1", creation=2.0), task("j-w-2", creation=2.0)]

    assert order_of(tasks, Priority(), OldestLast()) == ["j-w-0", "j-w-1", "j-w-2"]
    assert order_of(tasks, OldestLast(), Priority()) == ["j-w-1", "j-w-2", "j-w-0"]


def test_where_volcanos_comparison_is_no_order_the_answer_is_still_always_the_same() -> None:
    """2 before x by creation, x before 1 by creation, 1 before 2 by number."""
    tasks = [task("j-w-2", creation=1.0), task("x", creation=2.0), task("j-w-1", creation=3.0)]
    found = {tuple(order_of(tasks, shuffle=shuffle)) for shuffle in range(12)}

    assert len(found) == 1
    assert sorted(found.pop()) == ["j-w-1", "j-w-2", "x"]


names = st.lists(st.tuples(st.sampled_from(("j-a-", "j-b-")), st.integers(0, 12)), unique=True, max_size=8)


@settings(max_examples=80, derandomize=True)
@given(names, st.booleans(), st.data())
def test_tasks_are_in_the_order_of_a_plain_comparison(
    found: list[tuple[str, int]], numbered: bool, data: st.DataObject
) -> None:
    tasks = [
        task(
            f"{stem}{index}" if numbered else f"{stem}{index}x",
            priority=data.draw(st.integers(0, 1)),
            creation=float(data.draw(st.integers(0, 1))),
        )
        for stem, index in found
    ]

    def compare(left: Task, right: Task) -> int:
        one, other = left.record, right.record
        keys = [(-record.priority, number(record.name) or 0, record.creation, record.uid) for record in (one, other)]
        return -1 if keys[0] < keys[1] else 1

    expected = [one.record.name for one in sorted(tasks, key=cmp_to_key(compare))]
    assert order_of(tasks, Priority(), shuffle=data.draw(st.integers(0, 99))) == expected


def test_only_pending_tasks_of_the_job_are_listed() -> None:
    world = World(
        jobs=(a_job("j"), a_job("k"), a_job("none")),
        tasks=(
            task("p"),
            replace(task("q"), status=TaskStatus.RUNNING, node="n1"),
            a_task("r", job="k"),
            a_task("loose"),
        ),
    )
    ssn = a_session(world)

    assert [len(ssn.hooks.pending.of(job_row(ssn, name))) for name in ("j", "k", "none")] == [1, 1, 0]
    assert ssn.hooks.pending.counts().tolist() == [1, 1, 0]


def test_pending_tasks_of_some_shapes_and_jobs() -> None:
    big, small = a_shape(cpu=2), a_shape(cpu=1)
    world = World(
        jobs=(a_job("j"), a_job("k"), a_job("l")),
        tasks=(
            a_task("j-w-1", big, job="j"),
            a_task("j-w-0", small, job="j"),
            a_task("j-w-2", big, job="j"),
            a_task("k-w-0", small, job="k"),
            a_task("l-w-0", big, job="l"),
        ),
    )
    ssn = a_session(world)
    mask = np.array([shape == big for shape in ssn.state.classes.shapes])
    rows = np.array([job_row(ssn, "j"), job_row(ssn, "k")])

    found = {
        ssn.state.jobs.record(row).key.name: [ssn.state.tasks.record(one).name for one in tasks]
        for row, tasks in ssn.hooks.pending.only(mask, rows).items()
    }

    assert found == {"j": ["j-w-1", "j-w-2"]}


def test_jobs_go_by_plugins_then_creation_time_then_name() -> None:
    world = World(
        jobs=(
            a_job("z", min_available=3, creation=9.0),
            a_job("b", creation=1.0),
            a_job("a", creation=1.0),
            a_job("a", namespace="aa", creation=1.0),
            a_job("old", creation=0.0),
        )
    )
    ssn = a_session(world, BigFirst())
    rows = ssn.state.jobs.present()
    keys = ssn.hooks.orders.job_sort_keys(rows)

    ordered = [str(ssn.state.jobs.record(row).key) for _, row in sorted(zip(keys, rows.tolist(), strict=True))]

    assert ordered == ["ns/z", "ns/old", "aa/a", "ns/a", "ns/b"]
    assert len(set(keys)) == len(keys)


class ByWeight(Plugin, QueueOrder):
    """The heavier queue first."""

    name = "by-weight"

    def queue_order(self, left: QueueInfo, right: QueueInfo) -> float:
        return right.record.weight - left.record.weight


@pytest.mark.parametrize(
    ("queues", "plugins", "first"),
    [
        pytest.param([QueueRecord("b"), QueueRecord("a")], (), "a", id="by-name"),
        pytest.param([QueueRecord("b"), QueueRecord("a", creation=1.0)], (), "b", id="by-creation-time"),
        pytest.param([QueueRecord("b", weight=2), QueueRecord("a")], (ByWeight(),), "b", id="by-opinion"),
        pytest.param([QueueRecord("b", weight=2), QueueRecord("a", weight=2)], (ByWeight(),), "a", id="no-opinion"),
    ],
)
def test_the_first_queue(queues: list[QueueRecord], plugins: tuple[Plugin, ...], first: str) -> None:
    ssn = a_session(World(queues=tuple(queues)), *plugins)

    assert QueueLine(ssn.hooks.orders, list(ssn.state.queues.values())).first().name == first
    assert QueueLine(ssn.hooks.orders, list(ssn.state.queues.values())[::-1]).first().name == first


class ByKeys(ByWeight):
    """The same by keys, as long as it has any."""

    name = "by-keys"

    def __init__(self, queues: Sequence[QueueRecord]) -> None:
        self.keys: list[Floats] | None = [-np.array([queue.weight for queue in queues], dtype=float)]
        self.asked = 0

    def queue_keys(self) -> Sequence[Floats] | None:
        self.asked += 1
        return self.keys


@settings(max_examples=50, derandomize=True)
@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 1)), min_size=8, max_size=14))
def test_ordering_many_queues_by_keys_equals_pairwise_comparison(drawn: list[tuple[int, int]]) -> None:
    records = [QueueRecord(f"q{row:02d}", weight=weight, creation=at) for row, (weight, at) in enumerate(drawn)]
    plugin = ByKeys(records)
    ssn = a_session(World(queues=tuple(records)), plugin)
    expected = [q.name for q in sorted(records, key=lambda q: (-q.weight, q.creation, q.name))]

    assert _in_line(ssn) == expected
    assert plugin.asked
    plugin.keys = None
    assert _in_line(ssn) == expected


def _in_line(ssn: Session) -> list[str]:
    line, order = QueueLine(ssn.hooks.orders, list(ssn.state.queues.values())), []
    while line:
        order.append(line.first().name)
        line.remove(ssn.state.queues[order[-1]])
    return order


def test_a_plugin_that_orders_tasks_reads_rows_and_records_as_in_views_of_jobs_and_nodes() -> None:
    class ByRecord(Plugin, TaskOrder):
        name = "by-record"

        def on_session_open(self, ssn: State) -> None:
            self._tasks = ssn.tasks

        def task_order(self, tasks: TaskColumns) -> Floats:
            assert tasks.rows is not None
            records = [tasks.record(place) for place in range(len(tasks))]
            assert records == list(tasks.records) == [self._tasks.record(row) for row in tasks.rows.tolist()]
            return np.array([-float(record.label_map["place"]) for record in records])

    shape = a_shape(cpu=1)
    tasks = [a_task(f"t-{n}", shape, job="j", labels=("place", str(n))) for n in range(3)]

    assert order_of(tasks, ByRecord(), shuffle=1) == ["t-2", "t-1", "t-0"]
