import sys

import pytest

from tests.reference.world import World, a_job, a_node, a_shape, a_task, tasks_of
from volcano_py.model.objects import JobKey, QueueRecord
from volcano_py.model.statuses import TaskStatus
from volcano_py.snapshot.columns import Snapshot
from volcano_py.snapshot.names import name_suffix
from volcano_py.snapshot.nodes import _SPARE_VALUES
from volcano_py.snapshot.store import ClusterStore

RUNNING = TaskStatus.RUNNING


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("job-worker-12", 12),
        ("job-worker-007", 7),
        ("a-b-c-3", 3),
        ("worker-12", -1),
        ("12", -1),
        ("job-worker-x", -1),
        ("job-worker-", -1),
        ("job-worker-1x", -1),
        ("job-worker-\u0663", -1),
        ("job-worker-" + "9" * 30, -1),
    ],
)
def test_the_number_in_a_name_counts_in_names_of_three_parts(name: str, number: int) -> None:
    assert name_suffix(name) == number


def node(snapshot: Snapshot, name: str) -> dict[str, list[float]]:
    row = snapshot.nodes.statics.row_of[name]
    return {part: getattr(snapshot.nodes, part)[:, row].tolist() for part in ("idle", "used", "allocatable")}


def test_a_pod_that_arrives_before_its_node_counts_when_the_node_comes() -> None:
    store = World(tasks=(a_task("p", a_shape(cpu=1), status=RUNNING, node="n1"),)).store()
    assert len(store.snapshot().nodes) == 0

    store.set_node(a_node("n1", cpu=4, memory=None))

    assert node(store.snapshot(), "n1") == {"idle": [3000, 0, 109], "used": [1000, 0, 1], "allocatable": [4000, 0, 110]}
    assert store.snapshot().tasks.node.tolist() == [0]


def test_a_node_that_comes_back_still_holds_its_pods() -> None:
    store = World((a_node("n1", cpu=4),), tasks=(a_task("p", a_shape(cpu=1), status=RUNNING, node="n1"),)).store()
    before = node(store.snapshot(), "n1")

    store.remove_node("n1")
    assert len(store.snapshot().nodes) == 0
    store.set_node(a_node("n1", cpu=4))

    assert node(store.snapshot(), "n1") == before


def test_a_node_that_shrinks_has_less_idle_and_as_much_used() -> None:
    store = World((a_node("n1", cpu=4),), tasks=(a_task("p", a_shape(cpu=3), status=RUNNING, node="n1"),)).store()

    store.set_node(a_node("n1", cpu=2))

    assert node(store.snapshot(), "n1")["idle"][0] == -1000
    assert node(store.snapshot(), "n1")["used"][0] == 3000


def test_a_task_that_moves_leaves_nothing_behind() -> None:
    store = World((a_node("n1"), a_node("n2")), tasks=(a_task("p", a_shape(cpu=1), job="j"),)).store()

    store.move_task("uid-ns-p", TaskStatus.BINDING, "n1")
    store.move_task("uid-ns-p", TaskStatus.RUNNING, "n2")

    snapshot = store.snapshot()
    assert node(snapshot, "n1")["used"] == [0, 0, 0]
    assert node(snapshot, "n2")["used"] == [1000, 0, 1]
    assert snapshot.jobs.counts[RUNNING].tolist() == [1]
    assert store.task("uid-ns-p").node == "n2"  # type: ignore[union-attr]


def test_moving_an_unknown_task_is_an_error_that_names_it() -> None:
    with pytest.raises(LookupError, match="no task has uid nobody"):
        ClusterStore().move_task("nobody", RUNNING, "n1")


def test_removing_an_unknown_object_changes_nothing() -> None:
    store = ClusterStore()
    store.remove_task("nobody")
    store.remove_node("nowhere")
    store.remove_job(JobKey("ns", "none"))
    store.remove_queue("none")

    assert len(store.snapshot().tasks.records) == 0


def test_a_task_whose_shape_changes_is_counted_with_the_new_one() -> None:
    store = World((a_node("n1"),), tasks=(a_task("p", a_shape(cpu=1), status=RUNNING, node="n1"),)).store()
    changed = a_task("p", a_shape(cpu=2, gpu=1), status=RUNNING, node="n1")

    store.set_task(changed.record, changed.shape, changed.status, changed.node)

    assert node(store.snapshot(), "n1")["used"] == [2000, 0, 1, 1000]
    assert len(store.shapes) == 1


def test_a_task_may_change_its_job() -> None:
    store = World(jobs=(a_job("a"), a_job("b")), tasks=(a_task("p", job="a"),)).store()
    moved = a_task("p", job="b")

    store.set_task(moved.record, moved.shape, moved.status)

    assert store.tasks_of(JobKey("ns", "a")) == ()
    assert store.tasks_of(JobKey("ns", "b")) == ("uid-ns-p",)


def test_tasks_may_come_before_their_podgroup_and_outlive_it() -> None:
    store = World(tasks=tasks_of("j", 2)).store()
    assert store.job(JobKey("ns", "j")) is None
    assert store.snapshot().jobs.present().tolist() == []

    store.set_job(a_job("j", min_available=2))
    assert store.snapshot().jobs.counts[TaskStatus.PENDING].tolist() == [2]

    store.remove_job(JobKey("ns", "j"))
    assert store.snapshot().jobs.counts[TaskStatus.PENDING].tolist() == [2]
    assert store.tasks_of(JobKey("ns", "j")) == ("uid-ns-j-0", "uid-ns-j-1")


def test_a_reused_row_keeps_nothing_of_its_old_job() -> None:
    store = World(jobs=(a_job("old", min_available=9, priority=9, phase="Running"),), tasks=tasks_of("old", 3)).store()
    for uid in store.tasks_of(JobKey("ns", "old")):
        store.remove_task(uid)
    store.remove_job(JobKey("ns", "old"))

    new = a_task("p", job="new")
    store.set_task(new.record, new.shape, new.status)

    jobs = store.snapshot().jobs
    assert len(jobs) == 1
    assert (jobs.min_available[0], jobs.priority[0], jobs.phase[0]) == (0, 0, 0)
    assert jobs.counts.sum() == 1


def test_a_snapshot_does_not_change_with_the_store() -> None:
    store = World((a_node("n1", labels={"a": "1"}),), jobs=(a_job("j"),), tasks=tasks_of("j", 2)).store()
    snapshot = store.snapshot()
    kept = [array.tobytes() for array in _arrays(snapshot)]

    store.move_task("uid-ns-j-0", RUNNING, "n1")
    store.set_node(a_node("n2", labels={"a": "2"}, **{"example.com/x": 1}))
    store.remove_task("uid-ns-j-1")
    store.remove_queue("default")

    assert [array.tobytes() for array in _arrays(snapshot)] == kept
    assert list(snapshot.nodes.names) == ["n1"]
    assert snapshot.resources.names == ("cpu", "memory", "pods")
    assert set(snapshot.queues) == {"default"}


def _arrays(snapshot: Snapshot) -> tuple:  # type: ignore[type-arg]
    tasks, jobs = snapshot.tasks, snapshot.jobs
    return (
        *(snapshot.nodes.block, snapshot.nodes.statics.versions, snapshot.requests, snapshot.nonzero),
        *(tasks.status, tasks.node, tasks.job, tasks.shape, tasks.priority, tasks.creation, tasks.suffix),
        *(jobs.block, jobs.min_available, jobs.priority, jobs.creation, jobs.phase),
    )


def test_queues_are_in_order_of_their_names_in_any_order_of_arrival() -> None:
    store = World().store()
    for name in ("z", "a"):
        store.set_queue(QueueRecord(name))

    assert list(store.snapshot().queues) == ["a", "default", "z"]


def test_setting_a_node_to_an_equal_record_keeps_its_version() -> None:
    store = World((a_node("n1"), a_node("n2"))).store()
    before = store.snapshot().nodes.statics

    store.set_node(a_node("n1"))
    assert store.snapshot().nodes.statics is before

    store.set_node(a_node("n1", unschedulable=True))
    after = store.snapshot().nodes.statics
    assert (after.versions != before.versions).tolist() == [True, False]
    assert after.layout == before.layout


def test_a_node_that_comes_or_goes_changes_the_layout() -> None:
    store = World((a_node("n1"),)).store()
    layouts = [store.snapshot().nodes.statics.layout]

    store.set_node(a_node("n0"))
    layouts.append(store.snapshot().nodes.statics.layout)
    store.remove_node("n0")
    layouts.append(store.snapshot().nodes.statics.layout)

    assert len(set(layouts)) == 3


def test_values_of_labels_are_forgotten_when_most_of_their_nodes_are_gone() -> None:
    store = World((a_node("stays", labels={"kubernetes.io/hostname": "stays"}),)).store()
    seen = set()
    for number in range(2 * _SPARE_VALUES):
        name = f"n{number}"
        store.set_node(a_node(name, labels={"kubernetes.io/hostname": name}))
        statics = store.snapshot().nodes.statics
        column = statics.labels["kubernetes.io/hostname"]
        assert [column.values[code] for code in column.codes.tolist()] == list(statics.names)
        seen.add(statics.layout[0])
        store.remove_node(name)

    assert len(column.values) <= _SPARE_VALUES + 10
    assert len(seen) == 2  # caches know by it that a code means something else


def test_a_job_that_is_gone_leaves_no_memory_in_its_row() -> None:
    """Otherwise each row would have room for the largest gang that ever had it: that is slow, but it is growth."""
    store = World(jobs=(a_job("j"),), tasks=tasks_of("j", 300)).store()
    large = sys.getsizeof(store._job_tasks[0])

    for uid in store.tasks_of(JobKey("ns", "j")):
        store.remove_task(uid)
    store.remove_job(JobKey("ns", "j"))

    assert sys.getsizeof(store._job_tasks[0]) == sys.getsizeof(set()) < large
