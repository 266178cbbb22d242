import numpy as np
import pytest

from tests.reference.world import World, a_job, a_node, a_shape, a_task, tasks_of
from volcano_py.model.objects import TaintRecord
from volcano_py.model.statuses import TaskStatus
from volcano_py.snapshot import layout
from volcano_py.snapshot.columns import Snapshot

TAINT = TaintRecord("k", "v", "NoSchedule")


@pytest.fixture
def snapshot() -> Snapshot:
    """Three nodes whose rows in the store are not in order of their names."""
    return (
        World(
            nodes=(
                a_node("n3", cpu=3, labels={"zone": "b"}, unschedulable=True),
                a_node("n1", cpu=1, labels={"zone": "a"}, taints=[TAINT]),
                a_node("n2", cpu=2, closed="unreadable"),
            ),
            jobs=(a_job("b", min_available=2, priority=7, phase="Inqueue"), a_job("a")),
            tasks=(
                *tasks_of("b", 2, a_shape(cpu="500m"), status=TaskStatus.RUNNING, node="n2"),
                *tasks_of("b", 1, a_shape(cpu="500m", memory="1Mi"), first=2),
                *tasks_of("a", 1, a_shape(cpu="100m"), status=TaskStatus.RELEASING, node="n3"),
                *tasks_of("a", 1, a_shape(), first=1),
            ),
        )
        .store()
        .snapshot()
    )


def test_nodes_are_in_order_of_their_names(snapshot: Snapshot) -> None:
    assert list(snapshot.nodes.names) == ["n1", "n2", "n3"]
    assert snapshot.nodes.allocatable[0].tolist() == [1000, 2000, 3000]
    assert snapshot.nodes.statics.row_of == {"n1": 0, "n2": 1, "n3": 2}


def test_node_columns_follow_the_tasks_on_them(snapshot: Snapshot) -> None:
    nodes = snapshot.nodes

    assert nodes.used[0].tolist() == [0, 1000, 100]
    assert nodes.idle[0].tolist() == [1000, 1000, 2900]
    assert nodes.releasing[0].tolist() == [0, 0, 100]
    assert nodes.future_idle[0].tolist() == [1000, 1000, 3000]
    assert nodes.pod_count.tolist() == [0, 2, 1]
    assert nodes.nonzero[1].tolist() == [0, 2 * 200 * 1024**2, 200 * 1024**2]


def test_static_columns_follow_the_records(snapshot: Snapshot) -> None:
    nodes = snapshot.nodes
    zone = nodes.label("zone")

    assert zone is not None
    assert [zone.values[code] for code in zone.codes] == ["a", "", "b"]
    assert nodes.label("rack") is None
    assert [nodes.statics.taint_sets[index] for index in nodes.taint_ids] == [(TAINT,), (), ()]
    assert nodes.unschedulable.tolist() == [False, False, True]
    assert nodes.closed.tolist() == [False, True, False]


@pytest.mark.parametrize("rows", [[2], [2, 0], [1, 1, 0], []], ids=str)
def test_a_view_equals_the_whole_on_its_rows(snapshot: Snapshot, rows: list[int]) -> None:
    nodes, index = snapshot.nodes, np.array(rows, dtype=np.intp)
    view = nodes.rows_view(index)

    assert len(view) == len(rows)
    assert list(view.names) == [nodes.names[row] for row in rows]
    for name in (
        *("idle", "used", "releasing", "pipelined", "future_idle", "requested", "allocatable", "nonzero", "pod_count"),
        *("taint_ids", "unschedulable", "closed"),
    ):
        assert np.array_equal(getattr(view, name), getattr(nodes, name)[..., index]), name
    whole, part = nodes.label("zone"), view.label("zone")
    assert whole is not None
    assert part is not None
    assert np.array_equal(part.codes, whole.codes[index])


def test_a_view_of_a_view_refers_to_the_same_nodes(snapshot: Snapshot) -> None:
    view = snapshot.nodes.rows_view(np.array([2, 1])).rows_view(np.array([1]))

    assert list(view.names) == ["n2"]
    assert view.closed.tolist() == [True]
    assert view.used[0].tolist() == [1000]


def test_each_row_of_a_block_lies_together_in_memory(snapshot: Snapshot) -> None:
    rows = np.array([2, 0])
    blocks = (snapshot.nodes.block, snapshot.nodes.rows_view(rows).block, snapshot.jobs.rows_view(rows[1:]).block)
    assert all(block.flags.c_contiguous for block in blocks)


def test_a_view_is_a_copy(snapshot: Snapshot) -> None:
    view = snapshot.nodes.rows_view(np.array([0, 1]))
    view.block += 1

    assert snapshot.nodes.used[0].tolist() == [0, 1000, 100]


def test_nodes_after_some_placements_differ_by_as_many_deltas(snapshot: Snapshot) -> None:
    shape_id = int(snapshot.tasks.shape[0])
    request, nonzero = snapshot.requests[:, shape_id], snapshot.nonzero[:, shape_id]
    delta = layout.node_delta(TaskStatus.ALLOCATED, request, nonzero)

    view = snapshot.nodes.after(np.array([1, 1, 2]), np.array([1, 2, 0]), delta)

    assert view.used[0].tolist() == [1500, 2000, 100]
    assert view.idle[0].tolist() == [500, 0, 2900]
    assert view.pod_count.tolist() == [3, 4, 1]
    assert view.allocatable[0].tolist() == [2000, 2000, 3000]
    assert snapshot.nodes.used[0].tolist() == [0, 1000, 100]


def test_job_columns_count_tasks_by_status(snapshot: Snapshot) -> None:
    jobs = snapshot.jobs
    row = {jobs.record(row).key.name: row for row in jobs.present().tolist()}
    a, b = row["a"], row["b"]

    assert jobs.counts[TaskStatus.RUNNING, b] == 2
    assert jobs.counts[TaskStatus.PENDING].tolist() == [1, 1]
    assert jobs.held[b] == 2
    assert jobs.held[a] == 1, "a pending best-effort task counts towards the minimum"
    assert (jobs.valid[a], jobs.valid[b]) == (1, 3)
    assert jobs.allocated[0, b] == 1000
    assert jobs.allocated[0, a] == 0, "what is being released is not allocated"
    assert jobs.pending[:, b].tolist() == [500, 1024**2, 1]
    assert jobs.total[0].tolist() == ([1500, 100] if b < a else [100, 1500])
    assert (jobs.min_available[b], jobs.priority[b]) == (2, 7)


def test_a_view_of_jobs_equals_the_whole_on_its_rows(snapshot: Snapshot) -> None:
    jobs, rows = snapshot.jobs, np.array([1, 0, 1])
    view = jobs.rows_view(rows)

    assert len(view) == 3
    assert view.records == [jobs.records[row] for row in rows]
    for name in ("counts", "held", "valid", "allocated", "pending", "total", "min_available", "priority", "phase"):
        assert np.array_equal(getattr(view, name), getattr(jobs, name)[..., rows]), name


def test_a_task_without_a_job_or_on_an_unknown_node_has_no_row_there() -> None:
    snapshot = (
        World(nodes=(a_node("n1"),), tasks=(a_task("p", status=TaskStatus.RUNNING, node="gone"), a_task("q")))
        .store()
        .snapshot()
    )

    assert snapshot.tasks.node.tolist() == [-1, -1]
    assert snapshot.tasks.job.tolist() == [-1, -1]


def test_free_rows_have_no_record() -> None:
    store = World(tasks=(a_task("p", job="j"), a_task("q")), jobs=(a_job("j"),)).store()
    store.remove_task("uid-ns-p")
    store.remove_job(a_job("j").key)
    snapshot = store.snapshot()

    assert [record and record.name for record in snapshot.tasks.records] == [None, "q"]
    with pytest.raises(LookupError, match="task row 0 is free"):
        snapshot.tasks.record(0)
    with pytest.raises(LookupError, match="job row 0 has no PodGroup"):
        snapshot.jobs.record(0)
    assert snapshot.jobs.present().tolist() == []


def test_a_view_of_a_view_of_tasks_names_the_rows_of_all_tasks(snapshot: Snapshot) -> None:
    tasks = snapshot.tasks

    view = tasks.rows_view(np.array([3, 1, 4])).rows_view(np.array([2, 0]))

    assert tasks.rows is None
    assert view.rows is not None
    assert view.rows.tolist() == [4, 3]
    assert [view.record(place) for place in range(len(view))] == [tasks.record(4), tasks.record(3)]
    assert view.status.tolist() == tasks.status[[4, 3]].tolist()
