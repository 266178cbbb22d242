from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from tests.scheduler.running import DEFAULT, a_policy, cycle
from volcano_py.api.scheduling import PodGroup, QueueSpec
from volcano_py.cache.changes import Change
from volcano_py.model.objects import JobKey
from volcano_py.testing import (
    a_cluster,
    a_group,
    a_node,
    a_pod,
    a_priority_class,
    a_queue,
    added,
    deleted,
    modified,
    quarantined,
)

KEY = JobKey("default", "g1")


def test_a_pod_group_without_pods_is_ours(make_cluster: Any) -> None:
    assert make_cluster(a_group("g1")).store.job(KEY) is not None


def test_a_pod_group_without_pods_is_left_alone_while_its_annotation_names_another_scheduler(make_cluster: Any) -> None:
    theirs = a_group("g1", annotations={"volcano.sh/scheduler-name": "other"})
    cache = make_cluster(theirs)
    seen = [cache.store.job(KEY) is not None]

    modified(cache, a_group("g1", annotations={"volcano.sh/scheduler-name": "volcano"}))
    seen.append(cache.store.job(KEY) is not None)
    modified(cache, theirs)
    seen.append(cache.store.job(KEY) is not None)
    modified(cache, a_group("g1"))
    seen.append(cache.store.job(KEY) is not None)

    assert seen == [False, True, False, True]


def test_a_pod_group_that_comes_again_without_the_annotation_is_ours(make_cluster: Any) -> None:
    theirs = a_group("g1", annotations={"volcano.sh/scheduler-name": "other"})
    cache = make_cluster(theirs)
    deleted(cache, theirs)

    added(cache, a_group("g1"))

    assert cache.store.job(KEY) is not None


@pytest.mark.parametrize("node", ["", "n1"], ids=["waiting", "standing"])
def test_a_pod_group_is_ours_while_a_pod_of_it_is(make_cluster: Any, node: str) -> None:
    theirs, ours = a_pod("theirs", group="g1", scheduler="other", node=node), a_pod("ours", group="g1")
    cache = make_cluster(a_node("n1"), a_group("g1"), theirs)
    seen = [cache.store.job(KEY) is not None]

    added(cache, ours)
    seen.append(cache.store.job(KEY) is not None)
    deleted(cache, ours)
    seen.append(cache.store.job(KEY) is not None)

    assert seen == [False, True, False]


@pytest.mark.parametrize(
    ("more", "minimum", "of_drivers"),
    [
        pytest.param({}, 3, 1, id="waits"),
        pytest.param({"node": "n1"}, 2, 0, id="has-a-node"),
        pytest.param({"node": "n1", "phase": "Succeeded"}, 2, 0, id="has-succeeded"),
        pytest.param({"node": "n1", "phase": "Failed"}, 3, 1, id="has-failed"),
        pytest.param({"node": "n1", "terminating": True}, 3, 1, id="leaves-its-node"),
    ],
)
def test_a_pod_that_another_scheduler_has_placed_fills_its_part_of_the_minimum(
    make_cluster: Any, more: dict[str, Any], minimum: int, of_drivers: int
) -> None:
    group = a_group("g1", min_available=3, min_task_member={"driver": 1, "worker": 2})
    driver = {"group": "g1", "scheduler": "default-scheduler", "role": "driver"}
    cache = make_cluster(a_node("n1"), group, a_pod("driver", **driver), a_pod("worker", group="g1"))

    modified(cache, a_pod("driver", **driver, **more))

    job = cache.store.job(KEY)
    assert (job.min_available, dict(job.task_min_available)) == (minimum, {"driver": of_drivers, "worker": 2})
    deleted(cache, a_pod("driver", **driver))
    assert cache.store.job(KEY).min_available == 3


def test_what_a_foreign_pod_requests_is_no_longer_asked_for_when_it_is_placed(make_cluster: Any) -> None:
    group = a_group("g1", min_available=3, min_resources={"cpu": "3", "memory": "1Gi"})
    driver = {"group": "g1", "scheduler": "default-scheduler", "cpu": "1"}
    cache = make_cluster(a_node("n1"), group, a_pod("driver", **driver), a_pod("worker", group="g1"))
    seen = [cache.store.job(KEY).min_resources["cpu"]]

    for change in ({"node": "n1"}, {"node": "n1", "phase": "Succeeded"}, {"node": "n1", "phase": "Failed"}):
        modified(cache, a_pod("driver", **driver, **change))
        seen.append(cache.store.job(KEY).min_resources["cpu"])

    assert seen == [3000, 2000, 2000, 3000]
    assert cache.store.job(KEY).min_resources["memory"] == 2**30


def test_a_gang_is_enqueued_on_the_room_that_a_placed_foreign_pod_leaves(make_cluster: Any) -> None:
    """Its node counts that pod as used; minResources must not ask for it once more."""
    group = a_group("g1", min_available=3, min_resources={"cpu": "3"})
    driver = a_pod("driver", group="g1", scheduler="default-scheduler", node="n1", cpu="1")
    workers = [a_pod(f"worker-{number}", group="g1", cpu="1") for number in range(2)]
    cache = make_cluster(a_node("n1", cpu=3), a_queue("default"), group, driver, *workers)

    found = cycle(cache.store, a_policy(DEFAULT + "  - name: overcommit\n"))

    assert found.binds == [("worker-0", "n1"), ("worker-1", "n1")]


def test_the_minimums_of_roles_hold_although_many_pods_of_another_role_are_foreign(make_cluster: Any) -> None:
    group = a_group("g1", min_available=5, min_task_member={"driver": 1, "worker": 4})
    drivers = [a_pod(f"d{n}", group="g1", scheduler="other", role="driver", node="n1") for n in range(3)]
    cache = make_cluster(a_node("n1"), group, *drivers, a_pod("worker", group="g1", role="worker"))

    job = cache.store.job(KEY)

    assert (job.min_available, dict(job.role_rule)) == (4, {"driver": 0, "worker": 4})


def test_a_foreign_pod_whose_request_cannot_be_read_still_counts(make_cluster: Any) -> None:
    odd = a_pod("odd", group="g1", scheduler="other", node="n1", cpu="many")
    cache = make_cluster(a_node("n1"), a_group("g1", min_available=2), odd, a_pod("ours", group="g1"))

    assert cache.store.job(KEY).min_available == 1


def test_a_change_of_one_of_many_pods_costs_little(make_cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = [a_pod(f"theirs-{number}", group="g1", scheduler="other", node="n1") for number in range(20)]
    ours = [a_pod(f"ours-{number}", group="g1") for number in range(20)]
    cache = make_cluster(a_node("n1"), a_group("g1", min_available=25), *theirs, *ours)
    monkeypatch.setattr(cache.store, "tasks_of", lambda key: pytest.fail("it sorted the pods of the gang"))

    modified(cache, a_pod("ours-3", group="g1", node="n1"))

    assert cache.store.job(KEY).min_available == 5


def test_the_order_of_pod_group_and_foreign_pod_does_not_matter(make_cluster: Any) -> None:
    cache = make_cluster(a_pod(group="g1", scheduler="other"), a_group("g1"))

    assert cache.store.job(KEY) is None
    modified(cache, a_group("g1", min_available=7))
    assert cache.store.job(KEY) is None


def test_a_foreign_pod_that_leaves_a_group_makes_the_group_ours(make_cluster: Any) -> None:
    cache = make_cluster(a_group("g1"), a_group("g2"), a_pod(group="g1", scheduler="other"))

    modified(cache, a_pod(group="g2", scheduler="other"))

    assert cache.store.job(KEY) is not None
    assert cache.store.job(JobKey("default", "g2")) is None


def test_our_last_pod_that_leaves_a_group_with_foreign_pods_leaves_the_group_to_them(make_cluster: Any) -> None:
    cache = make_cluster(a_group("g1"), a_group("g2"), a_pod("theirs", group="g1", scheduler="other"))
    added(cache, a_pod("ours", group="g1"))
    assert cache.store.job(KEY) is not None

    modified(cache, a_pod("ours", group="g2"))

    assert cache.store.job(KEY) is None


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(None, a_group(), {Change.GROUP}, id="new"),
        pytest.param(a_group(), a_group(), None, id="the-same"),
        pytest.param(a_group(), a_group(min_available=2), {Change.GROUP}, id="another-minimum"),
        pytest.param(a_group(), a_group(min_task_member={"ps": 1}), {Change.GROUP}, id="a-minimum-of-a-role"),
        pytest.param(a_group(), a_group(min_resources={"cpu": 1}), {Change.GROUP}, id="another-need"),
        pytest.param(a_group(), a_group(queue="other"), {Change.GROUP}, id="another-queue"),
        pytest.param(a_group(), a_group(priority_class="high"), {Change.GROUP}, id="another-priority"),
        pytest.param(a_group(), a_group(phase="Inqueue"), {Change.GROUP_STATUS}, id="only-its-status"),
    ],
)
def test_what_each_pod_group_event_reports(
    changes_of: Any, before: PodGroup | None, after: PodGroup, expected: set[Change] | None
) -> None:
    cache = a_cluster(a_priority_class("high", 5), *([] if before is None else [before]))
    told = changes_of(cache)

    modified(cache, after)

    assert told == ([] if expected is None else [expected])


def test_a_deleted_pod_group_leaves_its_pods(make_cluster: Any, changes_of: Any) -> None:
    cache = make_cluster(a_group("g1"), a_pod(group="g1"))
    told = changes_of(cache)

    deleted(cache, a_group("g1"))

    assert cache.store.job(KEY) is None
    assert cache.store.tasks_of(KEY) == ("uid-default-p1",)
    assert told == [{Change.GROUP}]


def test_the_generation_of_a_job_grows_with_its_demand_and_its_members(make_cluster: Any) -> None:
    pod = a_pod(group="g1")
    cache = make_cluster()
    seen = [cache.generation(KEY)]
    for step in (
        lambda: added(cache, a_group("g1")),
        lambda: added(cache, pod),
        lambda: modified(cache, a_pod(group="g1", cpu=1)),
        lambda: modified(cache, a_group("g1", min_available=2)),
        lambda: deleted(cache, pod),
    ):
        step()
        seen.append(cache.generation(KEY))

    assert seen == sorted(set(seen))


def test_neither_a_condition_nor_a_status_gives_a_job_a_new_generation(make_cluster: Any) -> None:
    cache = make_cluster(a_group("g1"), a_pod(group="g1"))
    before = cache.generation(KEY)

    modified(cache, a_pod(group="g1", why_pending="no room"), a_group("g1", phase="Inqueue"))

    assert cache.generation(KEY) == before


def test_nothing_is_kept_of_a_job_without_pod_group_and_pods(make_cluster: Any) -> None:
    group, pod = a_group("g1"), a_pod(group="g1")
    cache = make_cluster(group, pod)

    deleted(cache, group, pod)

    assert cache.generation(KEY) == 0


def test_a_pod_group_that_cannot_be_read_is_left_out(make_cluster: Any) -> None:
    cache = make_cluster(a_group("g1"))

    modified(cache, a_group("g1", min_resources={"cpu": "much"}))

    assert cache.store.job(KEY) is None
    (entry,) = cache.unreadable()
    assert "PodGroup default/g1 cannot be read: spec.minResources[cpu]: 'much' is not a quantity" in entry.message
    modified(cache, a_group("g1", min_resources={"cpu": 1}))
    assert cache.store.job(KEY) is not None
    assert cache.unreadable() == ()


def test_objects_that_do_not_fit_their_type_are_left_out(make_cluster: Any) -> None:
    cache = make_cluster(a_group("g1", priority_class="high"), a_priority_class("high", 5), queues=[a_queue("q")])

    cache.groups.on_quarantine(quarantined(a_group("g2"), "wrong"))
    cache.queues.on_quarantine(quarantined(a_queue("q"), "wrong"))
    cache.priority_classes.on_quarantine(quarantined(a_priority_class("high", 5), "wrong"))

    assert [entry.kind for entry in cache.unreadable()] == ["PodGroup", "PriorityClass", "Queue"]
    assert cache.store.queues == {}
    assert cache.store.job(KEY).priority == 0


def test_objects_that_fit_again_are_forgotten_as_unreadable(make_cluster: Any) -> None:
    cache = make_cluster()
    broken = [
        (cache.groups, quarantined(a_group("g2"), "wrong")),
        (cache.queues, quarantined(a_queue("q"), "wrong")),
        (cache.priority_classes, quarantined(a_priority_class("high", 5), "wrong")),
    ]
    for handler, entry in broken:
        handler.on_quarantine(entry)
        handler.on_release(entry)

    assert cache.unreadable() == ()


def test_jobs_follow_their_priority_class(make_cluster: Any, changes_of: Any) -> None:
    cache = make_cluster(a_group("g1", priority_class="high"), a_group("g2"))
    told = changes_of(cache)
    seen = []

    for step in (
        lambda: added(cache, a_priority_class("high", 5), a_priority_class("base", 1, global_default=True)),
        lambda: modified(cache, a_priority_class("high", 9)),
        lambda: deleted(cache, a_priority_class("high", 9)),
    ):
        step()
        jobs = (cache.store.job(JobKey("default", name)) for name in ("g1", "g2"))
        seen.append([job.priority for job in jobs])

    assert seen == [[5, 1], [9, 1], [1, 1]]
    assert told == [{Change.PRIORITY, Change.GROUP}] * 4


def test_a_priority_that_does_not_fit_counts_as_none(make_cluster: Any) -> None:
    cache = make_cluster(a_group("g1", priority_class="high"), a_priority_class("high", 2**31))

    assert cache.store.job(KEY).priority == 0
    assert "PriorityClass high cannot be read: value: 2147483648 does not fit" in cache.unreadable()[0].message


def test_queues_come_change_and_go(make_cluster: Any, changes_of: Any) -> None:
    cache = make_cluster(queues=[])
    told = changes_of(cache)

    added(cache, a_queue("q"))
    modified(cache, a_queue("q"))
    modified(cache, a_queue("q", weight=2))
    weight = cache.snapshot().queues["q"].weight
    deleted(cache, a_queue("q"))

    assert weight == 2
    assert cache.snapshot().queues == {}
    assert told == [{Change.QUEUE}] * 3


def test_a_queue_with_a_quantity_that_cannot_be_read_is_left_out_until_it_can(make_cluster: Any) -> None:
    broken = msgspec.structs.replace(a_queue("q"), spec=QueueSpec(deserved={"cpu": "-1"}))
    cache = make_cluster(queues=[a_queue("q")])

    modified(cache, broken)
    left_out, message = list(cache.store.queues), cache.unreadable()[0].message
    assert cache.snapshot().facts.unreadable_queues == {"q": message}
    modified(cache, a_queue("q"))

    assert left_out == []
    assert "Queue q cannot be read: spec.deserved[cpu]: '-1' is negative" in message
    assert cache.snapshot().facts.unreadable_queues == {}
    assert (list(cache.store.queues), cache.unreadable()) == (["q"], ())


def test_a_snapshot_says_why_a_group_that_exists_is_left_out_until_it_is_not(make_cluster: Any) -> None:
    theirs = a_pod("theirs", group="g1", scheduler="other")
    cache = make_cluster(a_group("g1"), theirs)
    assert "left to the scheduler" in cache.snapshot().withheld[KEY]

    deleted(cache, theirs)
    assert cache.snapshot().withheld == {}


def test_a_snapshot_says_what_is_wrong_with_a_group_that_cannot_be_read(make_cluster: Any) -> None:
    cache = make_cluster(a_group("g1", min_resources={"cpu": "much"}))
    assert "much" in cache.snapshot().withheld[KEY]

    modified(cache, a_group("g1"))
    assert cache.snapshot().withheld == {}


@pytest.mark.parametrize("amount", ["-1", "150%", "many"])
def test_a_budget_that_cannot_be_read_is_warned_about_once(make_cluster: Any, amount: str) -> None:
    cache = make_cluster()
    group = a_group("g1", annotations={"volcano.sh/jdb-min-available": amount})

    with capture_logs() as logs:
        added(cache, group)
        modified(cache, group)

    (line,) = logs
    assert f"annotation volcano.sh/jdb-min-available is '{amount}': write a number" in line["problem"]
    assert cache.store.job(KEY).budget is None
