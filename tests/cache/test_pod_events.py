from typing import Any

import pytest

from volcano_py.api.core import Pod
from volcano_py.cache.binds import Assumed
from volcano_py.cache.changes import HELPFUL, Change
from volcano_py.cache.cluster import ClusterCache
from volcano_py.model.decisions import Bind
from volcano_py.model.objects import JobKey, TaskRef
from volcano_py.model.statuses import TaskStatus
from volcano_py.testing import a_cluster, a_group, a_node, a_pod, added, deleted, modified, quarantined


def stands(cache: ClusterCache, name: str = "p1") -> tuple[TaskStatus, str] | None:
    place = cache.store.task(f"uid-default-{name}")
    return None if place is None else (place.status, place.node)


def used_cpu(cache: ClusterCache, node: str = "n1") -> float:
    columns = cache.snapshot().nodes
    return float(columns.used[0, columns.statics.row_of[node]])


def assume(cache: ClusterCache, name: str = "p1", node: str = "n1", group: str = "g1") -> None:
    bind = Bind(TaskRef("default", name, f"uid-default-{name}"), node, JobKey("default", group))
    (answer,) = cache.binds.assume((bind,), cache.token)
    assert isinstance(answer, Assumed), answer


def test_a_pod_is_counted_on_its_node_from_its_start_to_its_end(make_cluster: Any) -> None:
    cache = make_cluster(a_node("n1"), a_group("g1"), a_pod(group="g1", cpu=1))
    seen = [(stands(cache), used_cpu(cache))]

    for state in (
        a_pod(group="g1", cpu=1, node="n1", phase="Pending"),
        a_pod(group="g1", cpu=1, node="n1"),
        a_pod(group="g1", cpu=1, node="n1", terminating=True),
        a_pod(group="g1", cpu=1, node="n1", phase="Succeeded", terminating=True),
    ):
        modified(cache, state)
        seen.append((stands(cache), used_cpu(cache)))

    assert seen == [
        ((TaskStatus.PENDING, ""), 0),
        ((TaskStatus.BOUND, "n1"), 1000),
        ((TaskStatus.RUNNING, "n1"), 1000),
        ((TaskStatus.RELEASING, "n1"), 1000),
        ((TaskStatus.SUCCEEDED, ""), 0),
    ]


def test_an_ended_pod_still_counts_in_its_job(make_cluster: Any) -> None:
    cache = make_cluster(a_group("g1"), a_pod(group="g1", node="n1", phase="Succeeded"))

    jobs = cache.snapshot().jobs

    assert jobs.counts[TaskStatus.SUCCEEDED].tolist() == [1]


def test_a_deleted_pod_frees_its_node(make_cluster: Any) -> None:
    pod = a_pod(cpu=1, node="n1")
    cache = make_cluster(a_node("n1"), pod)

    deleted(cache, pod)

    assert stands(cache) is None
    assert used_cpu(cache) == 0


def test_a_pod_recreated_under_its_name_is_another_task(make_cluster: Any) -> None:
    old, new = a_pod(uid="old", node="n1"), a_pod(uid="new")
    cache = make_cluster(old, new)

    deleted(cache, old)

    assert cache.store.task("old") is None
    assert cache.store.task("new") is not None


def test_a_pod_of_another_scheduler_counts_only_on_its_node(make_cluster: Any) -> None:
    cache = make_cluster(
        a_node("n1"),
        a_pod("waiting", scheduler="other", cpu=1),
        a_pod("standing", scheduler="other", cpu=2, node="n1"),
        a_pod("ended", scheduler="other", cpu=1, node="n1", phase="Failed"),
    )

    assert stands(cache, "waiting") is None
    assert stands(cache, "ended") is None
    assert used_cpu(cache) == 2000
    place = cache.store.task("uid-default-standing")
    assert place is not None
    assert place.record.foreign


def test_a_foreign_pod_enters_when_it_is_bound_and_leaves_when_it_ends(make_cluster: Any) -> None:
    cache = make_cluster(a_node("n1"), a_pod(scheduler="other", cpu=1))
    seen = []

    for state in (
        a_pod(scheduler="other", cpu=1, node="n1"),
        a_pod(scheduler="other", cpu=1, node="n1", phase="Succeeded"),
    ):
        modified(cache, state)
        seen.append(used_cpu(cache))

    assert seen == [1000, 0]


def test_an_assumed_bind_survives_updates_of_its_pod_without_a_node(make_cluster: Any) -> None:
    cache = make_cluster(a_node("n1"), a_group("g1"), a_pod(group="g1", cpu=1))
    assume(cache)

    modified(cache, a_pod(group="g1", cpu=1, why_pending="0/1 nodes are available", labels={"touched": "yes"}))

    assert stands(cache) == (TaskStatus.BINDING, "n1")
    assert used_cpu(cache) == 1000


def test_the_watch_confirms_an_assumed_bind(make_cluster: Any) -> None:
    cache = make_cluster(a_node("n1"), a_group("g1"), a_pod(group="g1", cpu=1))
    assume(cache)
    generation = cache.generation(JobKey("default", "g1"))

    modified(cache, a_pod(group="g1", cpu=1, node="n1", phase="Pending"))

    assert stands(cache) == (TaskStatus.BOUND, "n1")
    assert len(cache.binds.ledger) == 0
    assert cache.binds.ledger.counts.confirmed == 1
    assert cache.generation(JobKey("default", "g1")) == generation


def test_the_watch_decides_if_a_pod_is_on_another_node_than_assumed(make_cluster: Any) -> None:
    cache = make_cluster(a_node("n1"), a_node("n2"), a_group("g1"), a_pod(group="g1", cpu=1))
    assume(cache, node="n1")

    modified(cache, a_pod(group="g1", cpu=1, node="n2", phase="Pending"))

    assert stands(cache) == (TaskStatus.BOUND, "n2")
    assert (used_cpu(cache, "n1"), used_cpu(cache, "n2")) == (0, 1000)
    assert cache.binds.ledger.counts.forgotten == 1


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        pytest.param(a_pod(group="g1", terminating=True), (TaskStatus.RELEASING, ""), id="terminating"),
        pytest.param(a_pod(group="g1", phase="Failed"), (TaskStatus.FAILED, ""), id="failed"),
    ],
)
def test_a_pod_that_cannot_be_bound_any_more_gives_its_assumed_room_back(
    make_cluster: Any, state: Pod, expected: tuple[TaskStatus, str]
) -> None:
    cache = make_cluster(a_node("n1"), a_group("g1"), a_pod(group="g1", cpu=1))
    assume(cache)

    modified(cache, state)

    assert stands(cache) == expected
    assert used_cpu(cache) == 0
    assert len(cache.binds.ledger) == 0


def test_deleting_a_pod_ends_its_assumed_bind(make_cluster: Any) -> None:
    pod = a_pod(group="g1", cpu=1)
    cache = make_cluster(a_node("n1"), a_group("g1"), pod)
    assume(cache)

    deleted(cache, pod)

    assert len(cache.binds.ledger) == 0
    assert used_cpu(cache) == 0


@pytest.mark.parametrize(
    ("known", "older"),
    [
        pytest.param(a_pod(node="n1"), a_pod(), id="a-pod-never-loses-its-node"),
        pytest.param(a_pod(node="n1", phase="Failed"), a_pod(node="n1"), id="a-pod-never-comes-back-to-life"),
    ],
)
def test_an_outdated_event_is_ignored(make_cluster: Any, known: Pod, older: Pod) -> None:
    cache = make_cluster(known)
    before = stands(cache)

    modified(cache, older)

    assert stands(cache) == before


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(None, a_pod(), {Change.POD_PENDING}, id="new-pending"),
        pytest.param(None, a_pod(node="n1"), {Change.POD}, id="new-running"),
        pytest.param(a_pod(), a_pod(), None, id="nothing-new"),
        pytest.param(a_pod(), a_pod(annotations={"a": "b"}), None, id="nothing-that-matters"),
        pytest.param(a_pod(), a_pod(labels={"a": "b"}), {Change.POD_PENDING}, id="other-labels"),
        pytest.param(a_pod(), a_pod(why_pending="no room"), {Change.POD}, id="its-condition"),
        pytest.param(a_pod(), a_pod(cpu=1), {Change.POD_PENDING}, id="asks-for-something-else"),
        pytest.param(a_pod(), a_pod(group="g1"), {Change.POD_PENDING}, id="joins-a-group"),
        pytest.param(
            a_pod(spec={"schedulingGates": [{"name": "g"}]}), a_pod(), {Change.POD_PENDING}, id="gate-removed"
        ),
        pytest.param(a_pod(node="n1", phase="Pending"), a_pod(node="n1"), {Change.POD}, id="started"),
        pytest.param(a_pod(node="n1"), a_pod(node="n1", terminating=True), {Change.POD}, id="terminating"),
        pytest.param(a_pod(node="n1"), a_pod(node="n1", phase="Succeeded"), {Change.POD_GONE}, id="ended"),
    ],
)
def test_what_each_pod_event_reports(
    changes_of: Any, before: Pod | None, after: Pod, expected: set[Change] | None
) -> None:
    cache = a_cluster() if before is None else a_cluster(before)
    told = changes_of(cache)

    modified(cache, after)

    assert told == ([] if expected is None else [expected])


def test_the_confirmation_of_our_own_bind_is_not_a_helpful_change(changes_of: Any) -> None:
    cache = a_cluster(a_node("n1"), a_group("g1"), a_pod(group="g1"))
    assume(cache)
    told = changes_of(cache)

    modified(cache, a_pod(group="g1", node="n1", phase="Pending"))

    assert told == [{Change.POD}]
    assert not HELPFUL & told[0]


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(a_pod(), {Change.POD_GONE}, id="pending"),
        pytest.param(a_pod(node="n1"), {Change.POD_GONE}, id="standing"),
        pytest.param(a_pod(node="n1", phase="Succeeded"), {Change.POD}, id="ended-before"),
    ],
)
def test_what_each_deletion_reports(changes_of: Any, pod: Pod, expected: set[Change]) -> None:
    cache = a_cluster(pod)
    told = changes_of(cache)

    deleted(cache, pod)

    assert told == [expected]


def test_deleting_an_unknown_pod_reports_no_change(changes_of: Any) -> None:
    cache = a_cluster()
    told = changes_of(cache)

    deleted(cache, a_pod(scheduler="other"))

    assert told == []


def test_only_pods_that_the_api_server_has_bound_count_as_bound(make_cluster: Any) -> None:
    cache = make_cluster(
        a_node("n1"),
        a_group("g1"),
        a_pod("waiting", group="g1"),
        a_pod("assumed", group="g1"),
        a_pod("running", node="n1"),
        a_pod("elsewhere", node="unknown"),
        a_pod("foreign", node="n1", scheduler="other"),
        a_pod("ended", node="n1", phase="Succeeded"),
        a_pod("unreadable", node="n2", cpu="?"),
    )
    assume(cache, "assumed")

    assert cache.bound_pods() == 4


def test_an_unbound_pod_that_cannot_be_read_is_not_scheduled_and_says_why(make_cluster: Any) -> None:
    cache = make_cluster(a_pod(cpu=1))
    heard = []
    cache.on_unreadable(heard.append)

    for _ in range(2):
        modified(cache, a_pod(cpu="one"))

    assert stands(cache) is None
    assert cache.unreadable() == tuple(heard)
    (entry,) = heard
    assert (entry.kind, entry.namespace, entry.name, entry.node) == ("Pod", "default", "p1", "")
    assert entry.message.startswith(
        "pod default/p1 cannot be read: spec.containers[main].resources.requests[cpu]: 'one' is not a quantity: write"
    )


def test_a_pod_that_is_corrected_is_scheduled_again(make_cluster: Any) -> None:
    cache = make_cluster(a_pod(cpu="one"))

    modified(cache, a_pod(cpu=1))

    assert stands(cache) == (TaskStatus.PENDING, "")
    assert cache.unreadable() == ()


def test_a_bound_pod_that_cannot_be_read_closes_its_node_until_it_is_gone(make_cluster: Any, changes_of: Any) -> None:
    broken = a_pod(cpu="?", node="n1")
    cache = make_cluster(a_node("n1"), a_node("n2"), broken)
    closed = cache.snapshot().nodes.closed.tolist()
    told = changes_of(cache)

    deleted(cache, broken)

    assert closed == [True, False]
    assert cache.snapshot().nodes.closed.tolist() == [False, False]
    assert told == [{Change.NODE}]
    assert cache.unreadable() == ()


def test_the_closed_node_names_the_pod(make_cluster: Any) -> None:
    cache = make_cluster(a_pod("b", cpu="?", node="n1"), a_pod("a", cpu="?", node="n1"), a_node("n1"))

    record = cache.store.nodes.record("n1")

    assert record.closed == "pod default/a on it cannot be read"


def test_a_bound_pod_that_becomes_unreadable_keeps_its_room(make_cluster: Any) -> None:
    cache = make_cluster(a_node("n1"), a_pod(cpu=1, node="n1"))

    modified(cache, a_pod(cpu="?", node="n1"))

    assert used_cpu(cache) == 1000
    assert cache.snapshot().nodes.closed.all()
    assert cache.bound_pods() == 1


def test_an_unreadable_pod_that_has_ended_closes_nothing(make_cluster: Any) -> None:
    cache = make_cluster(a_node("n1"), a_pod(cpu="?", node="n1"))

    modified(cache, a_pod(cpu="?", node="n1", phase="Failed"))

    assert not cache.snapshot().nodes.closed.any()


def test_an_assumed_pod_that_becomes_unreadable_keeps_its_room_until_its_bind_is_decided(make_cluster: Any) -> None:
    cache = make_cluster(a_node("n1"), a_group("g1"), a_pod(group="g1", cpu=1))
    assume(cache)

    modified(cache, a_pod(group="g1", cpu="?"))
    kept = used_cpu(cache)
    cache.binds.failed(TaskRef("default", "p1", "uid-default-p1"), "refused")

    assert kept == 1000
    assert stands(cache) is None
    assert used_cpu(cache) == 0


def test_an_assumed_pod_that_is_bound_and_unreadable_confirms_its_bind(make_cluster: Any) -> None:
    cache = make_cluster(a_node("n1"), a_group("g1"), a_pod(group="g1", cpu=1))
    assume(cache)

    modified(cache, a_pod(group="g1", cpu="?", node="n1"))

    assert stands(cache) == (TaskStatus.BOUND, "n1")
    assert cache.binds.ledger.counts.confirmed == 1


def test_a_bound_pod_that_does_not_fit_its_type_closes_its_node(make_cluster: Any) -> None:
    cache = make_cluster(a_node("n1"))
    entry = quarantined(a_pod(node="n1"), "Expected `array`, got `int`", spec={"containers": 7})

    cache.pods.on_quarantine(entry)
    closed = cache.snapshot().nodes.closed.tolist()
    cache.pods.on_release(entry)

    assert closed == [True]
    assert cache.snapshot().nodes.closed.tolist() == [False]
    assert cache.unreadable() == ()


@pytest.mark.parametrize(
    ("pod", "broken", "kept"),
    [
        pytest.param(a_pod(), {"containers": 7}, True, id="ours"),
        pytest.param(a_pod(scheduler="other"), {"containers": 7}, False, id="none-of-our-business"),
        pytest.param(a_pod(scheduler="other"), {"schedulerName": 7}, True, id="nobody-can-tell"),
    ],
)
def test_an_unbound_pod_that_does_not_fit_its_type_is_noted_if_it_may_be_ours(
    make_cluster: Any, pod: Pod, broken: dict[str, Any], kept: bool
) -> None:
    cache = make_cluster(a_node("n1"))

    cache.pods.on_quarantine(quarantined(pod, "wrong", spec=broken))

    assert bool(cache.unreadable()) is kept
    assert not cache.snapshot().nodes.closed.any()


def test_a_broken_status_does_not_hide_where_a_pod_stands(make_cluster: Any) -> None:
    cache = make_cluster(a_node("n1"))

    cache.pods.on_quarantine(quarantined(a_pod(node="n1"), "wrong", status={"phase": 7}))

    assert cache.snapshot().nodes.closed.all()


@pytest.mark.parametrize("scheduler", ["volcano", "other"])
def test_a_pod_whose_node_field_becomes_unreadable_stays_on_its_node(make_cluster: Any, scheduler: str) -> None:
    pod = a_pod(cpu=1, node="n1", scheduler=scheduler)
    cache = make_cluster(a_node("n1"), pod)

    cache.pods.on_quarantine(quarantined(pod, "wrong", spec={"nodeName": 7}))

    assert used_cpu(cache) == 1000
    assert cache.snapshot().nodes.closed.all()
    assert [entry.node for entry in cache.unreadable()] == ["n1"]


def test_a_priority_that_no_column_can_hold_leaves_the_pod_out(make_cluster: Any) -> None:
    cache = make_cluster(a_pod(priority=2**70))

    (entry,) = cache.unreadable()

    assert "spec.priority" in entry.message
    added(cache, a_pod("p2"))
    assert stands(cache, "p2") == (TaskStatus.PENDING, "")
