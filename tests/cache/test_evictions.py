"""Evictions from the plan to their end, as the cache counts them."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tests.cache.nominators import written_by
from volcano_py.api.core import Pod
from volcano_py.cache.changes import Change
from volcano_py.cache.cluster import ClusterCache
from volcano_py.cache.evictions import Plan
from volcano_py.ledger.ledger import Patience
from volcano_py.ledger.states import AssumedState
from volcano_py.model.decisions import Evict, Nominate
from volcano_py.model.objects import JobKey, TaskRef
from volcano_py.model.statuses import TaskStatus
from volcano_py.runtime.clock import FakeClock
from volcano_py.testing import a_group, a_job, a_node, a_pod, added, deleted, modified

RUNNING, RELEASING = TaskStatus.RUNNING, TaskStatus.RELEASING


def a_ref(name: str) -> TaskRef:
    return TaskRef("default", name, f"uid-default-{name}")


def an_eviction(name: str, job: str | None = "low", beneficiary: str | None = "high", node: str = "n1") -> Evict:
    own = None if job is None else JobKey("default", job)
    return Evict(
        a_ref(name), node, own, "preempt", "for high", None if beneficiary is None else JobKey("default", beneficiary)
    )


PLAN = Plan(
    (an_eviction("low-0"), an_eviction("low-1")), (Nominate(a_ref("high-0"), "n1"), Nominate(a_ref("high-1"), "n1"))
)
LOW = a_job("low", tasks=3, min_available=1, cpu=1, node="n1")
HIGH = a_job("high", tasks=2, cpu=1)


def status(cache: ClusterCache, name: str) -> TaskStatus | None:
    place = cache.store.task(a_ref(name).uid)
    return None if place is None else place.status


def releasing(cache: ClusterCache) -> float:
    """Return the cpu that is on its way back, in cores."""
    return float(cache.snapshot().nodes.releasing[0, 0]) / 1000


@pytest.fixture
def cluster(make_cluster: Any) -> ClusterCache:
    made: ClusterCache = make_cluster(a_node("n1", cpu=3), LOW, HIGH, patience=Patience(100, 10))
    return made


@pytest.fixture
def assumed(cluster: ClusterCache) -> ClusterCache:
    assert cluster.evictions.objection(PLAN, cluster.token) == ""
    cluster.evictions.assume(PLAN.evictions)
    return cluster


def terminating(name: str) -> Pod:
    return a_pod(name, group="low", cpu=1, node="n1", terminating=True)


def test_victims_count_as_terminating_at_once(assumed: ClusterCache) -> None:
    assert [status(assumed, name) for name in ("low-0", "low-1", "low-2")] == [RELEASING, RELEASING, RUNNING]
    assert releasing(assumed) == 2
    assert assumed.snapshot().nodes.idle[0].tolist() == [0]
    assert [entry.state for entry in assumed.evictions.ledger] == [AssumedState.ASSUMED] * 2


Step = Callable[[ClusterCache], object]


@pytest.mark.parametrize(
    ("step", "objection"),
    [
        pytest.param(lambda c: deleted(c, LOW.pods[1]), "pod default/low-1 is gone", id="victim-gone"),
        pytest.param(
            lambda c: modified(c, terminating("low-1")),
            "pod default/low-1 cannot be evicted any more: it is Releasing",
            id="victim-terminating",
        ),
        pytest.param(
            lambda c: modified(c, a_pod("low-1", group="low", cpu=1, node="n1", phase="Succeeded")),
            "pod default/low-1 cannot be evicted any more: it is Succeeded",
            id="victim-ended",
        ),
        pytest.param(
            lambda c: modified(c, a_pod("low-1", group="other", cpu=1, node="n1")),
            "pod default/low-1 has left PodGroup default/low",
            id="victim-in-another-group",
        ),
        pytest.param(
            lambda c: modified(c, a_group("low", min_available=3)),
            "PodGroup default/low was changed after the decision",
            id="group-of-victims-asks-for-more",
        ),
        pytest.param(
            lambda c: deleted(c, LOW.pods[2]),
            "PodGroup default/low has lost another pod after the decision",
            id="another-member-gone",
        ),
        pytest.param(
            lambda c: modified(c, a_pod("low-2", group="low", cpu=1, node="n1", phase="Failed")),
            "PodGroup default/low has lost another pod after the decision",
            id="another-member-failed",
        ),
        pytest.param(
            lambda c: deleted(c, HIGH.group),
            "beneficiary of the plan: PodGroup default/high is gone",
            id="beneficiary-gone",
        ),
        pytest.param(
            lambda c: modified(c, a_group("high", min_available=1)),
            "beneficiary of the plan: PodGroup default/high was changed after the decision",
            id="beneficiary-asks-for-something-else",
        ),
        pytest.param(
            lambda c: deleted(c, HIGH.pods[0]),
            "beneficiary of the plan: pod default/high-0 no longer waits",
            id="nominated-pod-gone",
        ),
        pytest.param(
            lambda c: c.evictions.assume(PLAN.evictions[1:]),
            "pod default/low-1 cannot be evicted any more: it is Releasing",
            id="victim-of-an-earlier-plan",
        ),
    ],
)
def test_a_plan_is_refused_if_a_change_invalidated_it(cluster: ClusterCache, step: Step, objection: str) -> None:
    token = cluster.token

    step(cluster)

    assert cluster.evictions.objection(PLAN, token) == objection


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(lambda c: added(c, a_pod("low-3", group="low", cpu=1)), id="group-of-victims-grew"),
        pytest.param(lambda c: modified(c, a_group("low", phase="Running")), id="status-of-their-group"),
        pytest.param(
            lambda c: modified(c, a_pod("low-2", group="low", cpu=1, node="n1", phase="Succeeded")), id="done"
        ),
        pytest.param(lambda c: modified(c, a_node("n1", cpu=3, labels={"a": "b"})), id="node-labelled"),
        pytest.param(lambda c: deleted(c, a_pod("low-1", uid="other", group="low")), id="another-of-its-name-gone"),
    ],
)
def test_a_plan_is_accepted_after_unrelated_changes(cluster: ClusterCache, step: Step) -> None:
    token = cluster.token

    step(cluster)

    assert cluster.evictions.objection(PLAN, token) == ""


def test_a_plan_that_names_a_victim_twice_is_refused(cluster: ClusterCache) -> None:
    twice = Plan((PLAN.evictions[0], PLAN.evictions[0]))

    assert cluster.evictions.objection(twice, cluster.token) == "the plan evicts pod default/low-0 twice"


def test_a_pending_pod_cannot_be_evicted(cluster: ClusterCache) -> None:
    objection = cluster.evictions.objection(Plan((an_eviction("high-0", "high"),)), cluster.token)

    assert objection == "pod default/high-0 cannot be evicted any more: it is Pending"


def test_a_pod_without_a_group_can_be_evicted_without_a_preemptor(make_cluster: Any) -> None:
    cache = make_cluster(a_node("n1"), a_pod("alone", node="n1"))

    assert cache.evictions.objection(Plan((an_eviction("alone", None, None),)), cache.token) == ""


def test_the_watch_confirms_an_eviction_by_showing_the_pod_terminating(assumed: ClusterCache) -> None:
    modified(assumed, terminating("low-0"))

    assert status(assumed, "low-0") is RELEASING
    assert [entry.task.name for entry in assumed.evictions.ledger] == ["low-1"]
    assert assumed.evictions.ledger.counts.confirmed == 1


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_victim_that_ends_by_itself_confirms_its_eviction(assumed: ClusterCache, phase: str) -> None:
    modified(assumed, a_pod("low-0", group="low", cpu=1, node="n1", phase=phase))

    assert len(assumed.evictions.ledger) == 1
    assert assumed.snapshot().nodes.idle[0].tolist() == [1000]


@pytest.mark.parametrize(("phase", "objection"), [("Failed", "pod default/low-0 has ended by itself"), ("Running", "")])
def test_a_victim_that_has_ended_by_itself_need_not_be_deleted(
    assumed: ClusterCache, phase: str, objection: str
) -> None:
    modified(assumed, a_pod("low-0", group="low", cpu=1, node="n1", phase=phase))
    assert assumed.evictions.objection_to_sending(PLAN.evictions[0]) == objection


def test_an_eviction_for_pods_that_are_gone_need_not_be_sent(assumed: ClusterCache) -> None:
    for name in ("high-0", "high-1"):
        assert assumed.evictions.objection_to_sending(PLAN.evictions[0]) == ""
        deleted(assumed, a_pod(name, group="high", cpu=1))
    objection = "no pod of PodGroup default/high waits any more"
    assert assumed.evictions.objection_to_sending(PLAN.evictions[0]) == objection


def test_the_deletion_of_a_pod_ends_its_eviction(assumed: ClusterCache, changes_of: Any) -> None:
    told = changes_of(assumed)

    deleted(assumed, LOW.pods[0])

    assert len(assumed.evictions.ledger) == 1
    assert told == [{Change.POD_GONE}]


def test_other_events_of_a_victim_do_not_undo_its_eviction(assumed: ClusterCache) -> None:
    modified(assumed, a_pod("low-0", group="low", cpu=1, node="n1", labels={"a": "b"}))

    assert status(assumed, "low-0") is RELEASING
    assert releasing(assumed) == 2


def test_after_a_failed_eviction_the_pod_is_as_the_watch_shows_it(assumed: ClusterCache, changes_of: Any) -> None:
    told = changes_of(assumed)

    assumed.evictions.failed(a_ref("low-0"), "forbidden")

    assert status(assumed, "low-0") is RUNNING
    assert releasing(assumed) == 1
    assert told == [{Change.EVICTION_FAILED}]


def test_a_change_of_the_pod_during_a_failed_eviction_is_kept(make_cluster: Any) -> None:
    cache = make_cluster(a_node("n1", cpu=3), a_job("low", tasks=1, cpu=1, node="n1", phase="Pending"), HIGH)
    cache.evictions.assume([an_eviction("low-0")])
    modified(cache, a_pod("low-0", group="low", cpu=1, node="n1"))

    cache.evictions.failed(a_ref("low-0"), "forbidden")

    assert status(cache, "low-0") is RUNNING


def test_a_failure_that_comes_after_the_confirmation_changes_nothing(assumed: ClusterCache) -> None:
    modified(assumed, terminating("low-0"))

    assumed.evictions.failed(a_ref("low-0"), "no answer")

    assert status(assumed, "low-0") is RELEASING


def test_an_eviction_that_the_watch_does_not_confirm_in_time_is_reported(make_cluster: Any) -> None:
    clock = FakeClock()
    cache = make_cluster(a_node("n1"), LOW, HIGH, clock=clock, patience=Patience(100, 10))
    cache.evictions.assume(PLAN.evictions)
    for evict in PLAN.evictions:
        cache.evictions.sent(evict.task)
        cache.evictions.acknowledged(evict.task)

    clock.advance(9)
    assert cache.evictions.expired() == []
    clock.advance(1)

    assert [entry.task.name for entry in cache.evictions.expired()] == ["low-0", "low-1"]
    assert status(cache, "low-0") is RELEASING


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(a_pod("low-0", group="low", cpu=1, node="n1"), RUNNING, id="it-did-not-happen"),
        pytest.param(terminating("low-0"), RELEASING, id="it-did"),
        pytest.param(None, None, id="gone"),
        pytest.param(a_pod("low-0", uid="new", group="low"), None, id="replaced"),
    ],
)
def test_a_fresh_read_of_the_pod_settles_its_eviction(
    assumed: ClusterCache, found: Pod | None, expected: TaskStatus | None
) -> None:
    assumed.evictions.resolve(a_ref("low-0"), found)

    assert status(assumed, "low-0") is expected
    assert [entry.task.name for entry in assumed.evictions.ledger] == ["low-1"]


# Nominations


def nominated(cache: ClusterCache, name: str) -> str:
    place = cache.store.task(a_ref(name).uid)
    assert place is not None
    return place.record.nominated


def on_wire(name: str, nominated_to: str, **pod: Any) -> Pod:
    made = a_pod(name, **{"group": "high", "cpu": 1, **pod})
    return msgspec.structs.replace(made, status=msgspec.structs.replace(made.status, nominated_node_name=nominated_to))


def test_a_nomination_counts_at_once_and_a_repeat_is_not_new(cluster: ClusterCache) -> None:
    assert cluster.nominations.assume(PLAN.nominations[0])
    assert nominated(cluster, "high-0") == "n1"
    assert not cluster.nominations.assume(PLAN.nominations[0])


def test_events_of_a_pod_do_not_remove_its_unwritten_nomination(cluster: ClusterCache) -> None:
    cluster.nominations.assume(PLAN.nominations[0])

    modified(cluster, a_pod("high-0", group="high", cpu=1, why_pending="no room"))

    assert nominated(cluster, "high-0") == "n1"


def test_once_the_watch_shows_a_nomination_the_watch_decides(cluster: ClusterCache) -> None:
    cluster.nominations.assume(PLAN.nominations[0])
    modified(cluster, on_wire("high-0", "n1"))

    modified(cluster, on_wire("high-0", ""))

    assert nominated(cluster, "high-0") == ""


def test_a_nomination_can_be_taken_back(cluster: ClusterCache) -> None:
    modified(cluster, on_wire("high-0", "n1"))

    assert cluster.nominations.assume(Nominate(a_ref("high-0"), ""))
    assert nominated(cluster, "high-0") == ""


def test_a_nomination_of_another_program_is_not_taken_back(cluster: ClusterCache) -> None:
    modified(cluster, written_by(on_wire("high-0", "n1"), "karpenter"))

    assert not cluster.nominations.assume(Nominate(a_ref("high-0"), ""))
    assert nominated(cluster, "high-0") == "n1"


def test_what_we_have_just_decided_is_ours_to_take_back(cluster: ClusterCache) -> None:
    modified(cluster, written_by(on_wire("high-0", "n0"), "karpenter"))
    cluster.nominations.assume(PLAN.nominations[0])
    modified(cluster, written_by(on_wire("high-0", "n0"), "karpenter"))

    assert cluster.nominations.assume(Nominate(a_ref("high-0"), ""))
    assert nominated(cluster, "high-0") == ""


def test_a_nomination_of_another_program_is_its_own_again_if_ours_cannot_be_written(cluster: ClusterCache) -> None:
    modified(cluster, written_by(on_wire("high-0", "n0"), "karpenter"))
    cluster.nominations.assume(PLAN.nominations[0])

    cluster.nominations.failed(a_ref("high-0"))

    assert not cluster.nominations.assume(Nominate(a_ref("high-0"), ""))
    assert nominated(cluster, "high-0") == "n0"


def test_a_withdrawal_ends_when_another_program_nominates_the_pod(cluster: ClusterCache) -> None:
    modified(cluster, on_wire("high-0", "n1"))
    cluster.nominations.assume(Nominate(a_ref("high-0"), ""))
    assert cluster.nominations.still_counts(a_ref("high-0"), "")
    modified(cluster, written_by(on_wire("high-0", "n1"), "volcano-py"))
    assert cluster.nominations.still_counts(a_ref("high-0"), "")

    modified(cluster, written_by(on_wire("high-0", "n0"), "karpenter"))

    assert not cluster.nominations.still_counts(a_ref("high-0"), "")
    assert nominated(cluster, "high-0") == "n0"


def test_a_nomination_that_cannot_be_written_does_not_count(cluster: ClusterCache) -> None:
    modified(cluster, on_wire("high-0", "n0"))
    cluster.nominations.assume(PLAN.nominations[0])

    cluster.nominations.failed(a_ref("high-0"))

    assert nominated(cluster, "high-0") == "n0"


@pytest.mark.parametrize("written_after_s", [0, 200])
def test_a_nomination_that_is_written_and_never_shown_ends(make_cluster: Any, written_after_s: int) -> None:
    clock = FakeClock()
    cache = make_cluster(a_node("n1"), HIGH, clock=clock)
    cache.nominations.assume(PLAN.nominations[0])
    clock.advance(written_after_s)
    cache.nominations.written(a_ref("high-0"))

    for seconds, node in ((59, "n1"), (1, "")):
        clock.advance(seconds)
        cache.nominations.end_expired(lambda _: False)
        assert nominated(cache, "high-0") == node


def test_a_nomination_that_has_yet_to_be_written_does_not_end(make_cluster: Any) -> None:
    """Ten thousand nominations take longer to write than one of them lasts unseen."""
    clock = FakeClock()
    cache = make_cluster(a_node("n1"), HIGH, clock=clock)
    cache.nominations.assume(PLAN.nominations[0])
    clock.advance(3600)

    cache.nominations.end_expired(lambda task: task == a_ref("high-0"))
    assert nominated(cache, "high-0") == "n1"
    cache.nominations.end_expired(lambda _: False)

    assert nominated(cache, "high-0") == ""


def test_a_nomination_that_found_no_place_is_written_again(make_cluster: Any) -> None:
    cache = make_cluster(a_node("n1"), HIGH, clock=FakeClock())
    cache.nominations.assume(PLAN.nominations[0])

    assert cache.nominations.to_write_again(lambda _: True) == []
    assert cache.nominations.to_write_again(lambda _: False) == [PLAN.nominations[0]]
    cache.nominations.written(a_ref("high-0"))

    assert cache.nominations.to_write_again(lambda _: False) == []


def test_a_pod_on_a_node_is_not_nominated(cluster: ClusterCache) -> None:
    cluster.nominations.assume(PLAN.nominations[0])

    modified(cluster, on_wire("high-0", "n1", node="n1"))

    assert nominated(cluster, "high-0") == ""
    assert not cluster.nominations.assume(Nominate(a_ref("high-0"), "n2"))


def test_a_nomination_does_not_report_its_pod_as_newly_pending(cluster: ClusterCache, changes_of: Any) -> None:
    told = changes_of(cluster)

    cluster.nominations.assume(PLAN.nominations[0])
    modified(cluster, on_wire("high-0", "n1"))

    assert set().union(*told) <= {Change.POD}


def test_pods_of_other_schedulers_are_known_while_they_are_nominated(make_cluster: Any, changes_of: Any) -> None:
    cache = make_cluster(a_node("n1"))
    told = changes_of(cache)

    added(cache, on_wire("theirs", "n1", scheduler="other"))
    place = cache.store.task(a_ref("theirs").uid)
    modified(cache, on_wire("theirs", "", scheduler="other"))

    assert place is not None
    assert (place.status, place.record.foreign, place.record.nominated) == (TaskStatus.PENDING, True, "n1")
    assert cache.store.task(a_ref("theirs").uid) is None
    assert told == [{Change.POD}, {Change.POD_GONE}]


# Refused evictions


def refuse(cache: ClusterCache, *names: str) -> None:
    """Let the API server refuse the evictions of the plan."""
    cache.evictions.assume(PLAN.evictions)
    for name in names:
        cache.evictions.sent(a_ref(name))
        cache.evictions.failed(a_ref(name), "forbidden")


def test_a_pod_whose_eviction_was_refused_is_tried_again_less_and_less_often(make_cluster: Any) -> None:
    clock = FakeClock()
    cluster = make_cluster(a_node("n1", cpu=3), LOW, HIGH, clock=clock, patience=Patience(100, 10))
    waited = []
    for _ in range(8):
        refuse(cluster, "low-0", "low-1")
        began = clock.monotonic()
        assert "too early to try again" in cluster.evictions.objection(PLAN, cluster.token)
        while cluster.evictions.objection(PLAN, cluster.token):
            clock.advance(0.25)
        waited.append(clock.monotonic() - began)

    assert waited[0] <= 2
    assert 30 <= waited[-1] <= 60.25
    assert sum(waited[:4]) > 7


def test_an_eviction_that_was_never_sent_delays_no_other(cluster: ClusterCache) -> None:
    cluster.evictions.assume(PLAN.evictions)
    for name in ("low-0", "low-1"):
        cluster.evictions.failed(a_ref(name), "nobody waits any more")

    assert cluster.evictions.objection(PLAN, cluster.token) == ""


def test_another_pod_of_the_name_is_evicted_at_once(cluster: ClusterCache) -> None:
    refuse(cluster, "low-0", "low-1")
    again = [an_eviction("low-2")]

    assert cluster.evictions.objection(Plan(again), cluster.token) == ""
