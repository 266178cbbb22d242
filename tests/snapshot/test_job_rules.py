"""What PodGroups say about queues and minimum resources, as columns."""

from tests.reference.world import a_job
from volcano_py.model.objects import JobKey, NodeRecord, QueueRecord
from volcano_py.model.resource_lists import ResourceList
from volcano_py.snapshot.columns import Snapshot
from volcano_py.snapshot.store import ClusterStore


def minimum(snapshot: Snapshot, job: str) -> tuple[bool, dict[str, float]]:
    jobs = snapshot.jobs
    row = next(row for row, record in enumerate(jobs.records) if record is not None and record.key.name == job)
    amounts = zip(snapshot.resources.names, jobs.min_resources[:, row].tolist(), strict=True)
    return bool(jobs.has_min_resources[row]), {name: amount for name, amount in amounts if amount}


def test_minimum_resources_are_columns_and_an_unknown_resource_gets_a_row() -> None:
    store = ClusterStore()
    store.set_job(a_job("a", min_resources={"cpu": 1000.0, "example.com/fpga": 2000.0}))
    store.set_job(a_job("b"))
    store.set_job(a_job("c", min_resources={}))
    store.set_node(NodeRecord("n", {"nvidia.com/gpu": 1000.0}))

    snapshot = store.snapshot()

    assert minimum(snapshot, "a") == (True, {"cpu": 1000.0, "example.com/fpga": 2000.0})
    assert minimum(snapshot, "b") == (False, {})
    assert minimum(snapshot, "c") == (True, {})


def test_a_reused_row_keeps_nothing() -> None:
    store = ClusterStore()
    store.set_job(a_job("a", queue="q", min_resources={"cpu": 1000.0}))
    store.remove_job(JobKey("ns", "a"))
    store.set_job(a_job("b"))

    jobs = store.snapshot().jobs

    assert len(jobs) == 1
    assert minimum(store.snapshot(), "b") == (False, {})
    assert jobs.rules.queue_names[jobs.rules.queue[0]] == "default"


def test_the_queue_of_a_job_follows_its_podgroup_and_a_snapshot_keeps_its_own() -> None:
    store = ClusterStore()
    store.set_job(a_job("a", queue="one"))
    before = store.snapshot().jobs
    store.set_job(a_job("a", queue="two", min_resources={"memory": 5.0}))
    after = store.snapshot().jobs

    assert before.rules.queue_names[before.rules.queue[0]] == "one"
    assert after.rules.queue_names[after.rules.queue[0]] == "two"
    assert not before.min_resources.any()


def test_a_view_of_some_jobs_has_their_rules() -> None:
    store = ClusterStore()
    for index in range(4):
        store.set_job(a_job(f"j{index}", min_resources={"cpu": float(index)} if index else None))
    jobs = store.snapshot().jobs

    view = jobs.rows_view(jobs.present()[[3, 0]]).rows_view(jobs.present()[[1, 0]])

    assert view.min_resources[0].tolist() == [0.0, 3.0]
    assert view.has_min_resources.tolist() == [False, True]


def test_resources_that_only_a_queue_names_have_a_row() -> None:
    store = ClusterStore()
    store.set_queue(QueueRecord("q", capability=ResourceList.of({"example.com/fpga": 0.0})))

    assert store.snapshot().resources.find("example.com/fpga") is not None
