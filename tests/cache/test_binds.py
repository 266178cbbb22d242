from collections.abc import Callable
from typing import Any

import pytest

from volcano_py.cache.binds import Assumed, Refused
from volcano_py.cache.changes import Change
from volcano_py.cache.cluster import ClusterCache
from volcano_py.ledger.ledger import Patience
from volcano_py.ledger.states import AssumedState
from volcano_py.model.decisions import Bind
from volcano_py.model.objects import JobKey, TaskRef
from volcano_py.model.statuses import TaskStatus
from volcano_py.runtime.clock import FakeClock
from volcano_py.testing import a_group, a_job, a_node, a_pod, added, deleted, modified


def a_ref(name: str) -> TaskRef:
    return TaskRef("default", name, f"uid-default-{name}")


def a_bind(name: str, node: str = "n1", job: str = "j1") -> Bind:
    return Bind(a_ref(name), node, JobKey("default", job))


def statuses(cache: ClusterCache) -> dict[str, tuple[TaskStatus, str]]:
    records = [record for record in cache.snapshot().tasks.records if record]
    places = {record.name: cache.store.task(record.uid) for record in records}
    return {name: (place.status, place.node) for name, place in sorted(places.items()) if place}


def reasons(answers: list[Assumed | Refused]) -> list[str]:
    return [answer.reason if isinstance(answer, Refused) else "" for answer in answers]


PAIR = (a_bind("j1-0"), a_bind("j1-1"))


def test_accepted_binds_count_on_their_nodes_at_once(make_cluster: Any) -> None:
    cache = make_cluster(a_node("n1", cpu=4), a_job("j1", tasks=2, cpu=1))

    answers = cache.binds.assume(PAIR, cache.token)

    assert answers == [Assumed(PAIR[0]), Assumed(PAIR[1])]
    assert statuses(cache) == {"j1-0": (TaskStatus.BINDING, "n1"), "j1-1": (TaskStatus.BINDING, "n1")}
    assert cache.snapshot().nodes.idle[0].tolist() == [2000]
    assert [entry.state for entry in cache.binds.ledger] == [AssumedState.ASSUMED, AssumedState.ASSUMED]
    assert {entry.generation for entry in cache.binds.ledger} == {cache.generation(JobKey("default", "j1"))}


def test_binds_of_several_jobs_are_assumed_together(make_cluster: Any) -> None:
    cache = make_cluster(a_node("n1", cpu=4), a_job("j1", tasks=2, cpu=1), a_job("j2", tasks=1, cpu=1))
    batch = (PAIR[0], a_bind("j2-0", job="j2"), PAIR[1])

    assert cache.binds.assume(batch, cache.token) == [*map(Assumed, batch)]

    assert cache.snapshot().nodes.idle[0].tolist() == [1000]
    for entry in cache.binds.ledger:
        assert entry.generation == cache.generation(entry.job)
    cache.binds.validate()


@pytest.mark.parametrize("cpus", [2, 1, 0])
def test_of_several_jobs_only_those_are_refused_that_cannot_be_bound(make_cluster: Any, cpus: int) -> None:
    """As one batch for each job: the first ones get the room that there is."""
    cache = make_cluster(
        *(a_node("n1", cpu=max(cpus, 0.1)), a_node("n2"), a_job("j1", tasks=2, cpu=1)),
        *(a_job("j2", tasks=1, cpu=1), a_job("j3", tasks=1, cpu=1)),
    )
    batch = (*PAIR, a_bind("j2-0", job="j2"), a_bind("j3-0", "n2", job="j3"))

    refused = reasons(cache.binds.assume(batch, cache.token))

    assert list(map(bool, refused)) == [cpus < 2, cpus < 2, cpus != 1, False]
    assert len(cache.binds.ledger) == refused.count("")
    cache.binds.validate()


def test_assuming_a_bind_reports_no_change(make_cluster: Any, changes_of: Any) -> None:
    cache = make_cluster(a_node("n1"), a_job("j1", tasks=2))
    told = changes_of(cache)

    cache.binds.assume(PAIR, cache.token)

    assert told == []


Step = Callable[[ClusterCache], None]


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        pytest.param(lambda c: deleted(c, a_pod("j1-1")), "pod default/j1-1 is gone", id="pod-gone"),
        pytest.param(
            lambda c: (deleted(c, a_pod("j1-1")), added(c, a_pod("j1-1", uid="other", group="j1"))),
            "pod default/j1-1 is gone",
            id="pod-recreated",
        ),
        pytest.param(
            lambda c: modified(c, a_pod("j1-1", group="j1", node="n2")),
            "pod default/j1-1 no longer waits: it is Running on node n2",
            id="pod-has-a-node",
        ),
        pytest.param(
            lambda c: modified(c, a_pod("j1-1", group="j1", terminating=True)),
            "pod default/j1-1 no longer waits: it is Releasing",
            id="pod-terminating",
        ),
        pytest.param(
            lambda c: modified(c, a_pod("j1-1", group="j2")),
            "pod default/j1-1 has left PodGroup default/j1",
            id="pod-left",
        ),
        pytest.param(lambda c: modified(c, a_pod("j1-1", cpu="?")), "pod default/j1-1 is gone", id="pod-unreadable"),
    ],
)
def test_a_gang_is_refused_as_a_whole_when_one_of_it_cannot_be_bound(
    make_cluster: Any, step: Step, reason: str
) -> None:
    cache = make_cluster(a_node("n1"), a_node("n2"), a_job("j1", tasks=2))
    token = cache.token
    step(cache)

    answers = cache.binds.assume(PAIR, token)

    assert reasons(answers) == [f"refused together with its gang because of pod default/j1-1: {reason}", reason]
    assert len(cache.binds.ledger) == 0


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        pytest.param(lambda c: deleted(c, a_node("n1")), "node n1 is gone", id="gone"),
        pytest.param(
            lambda c: (deleted(c, a_node("n1")), added(c, a_node("n1"))),
            "node n1 was changed after the decision",
            id="replaced",
        ),
        pytest.param(
            lambda c: modified(c, a_node("n1", unschedulable=True)),
            "node n1 was changed after the decision",
            id="cordoned",
        ),
        pytest.param(
            lambda c: modified(c, a_node("n1", taints=["a:NoSchedule"])),
            "node n1 was changed after the decision",
            id="tainted",
        ),
        pytest.param(
            lambda c: added(c, a_pod("broken", cpu="?", node="n1")),
            "node n1 is closed: pod default/broken on it cannot be read",
            id="closed",
        ),
        pytest.param(
            lambda c: added(c, a_pod("foreign", scheduler="other", cpu=3, node="n1")),
            "node n1 has too little room now: Insufficient cpu",
            id="full",
        ),
        pytest.param(
            lambda c: modified(c, a_node("n1", cpu=1)), "node n1 has too little room now: Insufficient cpu", id="shrunk"
        ),
        pytest.param(lambda c: deleted(c, a_group("j1")), "PodGroup default/j1 is gone", id="group-gone"),
        pytest.param(
            lambda c: modified(c, a_group("j1", min_available=5)),
            "PodGroup default/j1 was changed after the decision",
            id="group-changed",
        ),
        pytest.param(
            lambda c: modified(c, a_group("j1", annotations={"volcano.sh/scheduler-name": "other"})),
            "PodGroup default/j1 is gone",
            id="group-not-ours-any-more",
        ),
    ],
)
def test_a_bind_is_refused_if_a_change_invalidated_it(
    make_cluster: Any, changes_of: Any, step: Step, reason: str
) -> None:
    cache = make_cluster(a_node("n1", cpu=4), a_job("j1", tasks=2, cpu=1))
    token = cache.token
    step(cache)
    told = changes_of(cache)

    answers = cache.binds.assume(PAIR, token)

    assert any(text.endswith(reason) for text in reasons(answers))
    assert all(isinstance(answer, Refused) for answer in answers)
    assert set(statuses(cache).values()) - {(TaskStatus.RUNNING, "n1")} == {(TaskStatus.PENDING, "")}
    assert told == [{Change.BIND_FAILED}]
    assert len(cache.binds.ledger) == 0


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(lambda c: modified(c, a_node("n1", cpu=9)), id="node-grown"),
        pytest.param(lambda c: added(c, a_pod("j1-2", group="j1")), id="pod-added-to-the-gang"),
        pytest.param(lambda c: modified(c, a_group("j1", min_available=2, phase="Inqueue")), id="group-status"),
        pytest.param(lambda c: modified(c, a_pod("j1-0", group="j1", cpu=1, why_pending="x")), id="pod-condition"),
    ],
)
def test_harmless_changes_refuse_no_bind(make_cluster: Any, step: Step) -> None:
    cache = make_cluster(a_node("n1", cpu=4), a_job("j1", tasks=2, cpu=1))
    token = cache.token
    step(cache)

    assert reasons(cache.binds.assume(PAIR, token)) == ["", ""]


def test_a_cordoned_node_accepts_binds_decided_with_the_cordon_known(make_cluster: Any) -> None:
    cache = make_cluster(a_node("n1", unschedulable=True), a_job("j1", tasks=2))

    assert reasons(cache.binds.assume(PAIR, cache.token)) == ["", ""]


def test_a_gang_whose_last_pod_does_not_fit_takes_no_room(make_cluster: Any) -> None:
    cache = make_cluster(a_node("n1", cpu=2), a_job("j1", tasks=3, cpu=1))

    answers = cache.binds.assume((*PAIR, a_bind("j1-2")), cache.token)

    assert reasons(answers)[2] == "node n1 has too little room now: Insufficient cpu"
    assert set(statuses(cache).values()) == {(TaskStatus.PENDING, "")}
    assert cache.snapshot().nodes.idle[0].tolist() == [2000]


def test_one_job_of_a_batch_does_not_refuse_another(make_cluster: Any) -> None:
    cache = make_cluster(a_node("n1"), a_job("j1", tasks=1), a_job("j2", tasks=1))
    token = cache.token
    deleted(cache, a_group("j1"))

    answers = cache.binds.assume((a_bind("j1-0"), a_bind("j2-0", job="j2")), token)

    assert [type(answer) for answer in answers] == [Refused, Assumed]


def test_a_pod_is_not_bound_twice(make_cluster: Any) -> None:
    cache = make_cluster(a_node("n1"), a_node("n2"), a_job("j1", tasks=1))

    twice = cache.binds.assume((a_bind("j1-0", "n1"), a_bind("j1-0", "n2")), cache.token)
    cache.binds.assume((a_bind("j1-0", "n1"),), cache.token)
    again = cache.binds.assume((a_bind("j1-0", "n2"),), cache.token)

    assert reasons(twice) == ["pod default/j1-0 is bound twice in one batch"] * 2
    assert reasons(again) == ["pod default/j1-0 no longer waits: it is Binding on node n1"]


def test_a_best_effort_pod_is_not_refused_for_resources_it_does_not_ask_for(make_cluster: Any) -> None:
    cache = make_cluster(a_node("n1", cpu=1), a_pod("fat", cpu=2, node="n1"), a_job("j1", tasks=1))

    assert reasons(cache.binds.assume((a_bind("j1-0"),), cache.token)) == [""]


def test_an_acknowledged_bind_waits_for_the_watch(make_cluster: Any) -> None:
    cache = make_cluster(a_node("n1"), a_job("j1", tasks=1))
    cache.binds.assume((a_bind("j1-0"),), cache.token)

    cache.binds.sent(a_ref("j1-0"))
    cache.binds.acknowledged(a_ref("j1-0"))

    assert statuses(cache) == {"j1-0": (TaskStatus.BINDING, "n1")}
    assert [entry.state for entry in cache.binds.ledger] == [AssumedState.ACKNOWLEDGED]


def test_the_pod_of_a_failed_bind_is_pending_again(make_cluster: Any, changes_of: Any) -> None:
    cache = make_cluster(a_node("n1", cpu=4), a_job("j1", tasks=1, cpu=1))
    cache.binds.assume((a_bind("j1-0"),), cache.token)
    told = changes_of(cache)

    cache.binds.failed(a_ref("j1-0"), "409 Conflict")

    assert statuses(cache) == {"j1-0": (TaskStatus.PENDING, "")}
    assert cache.snapshot().nodes.idle[0].tolist() == [4000]
    assert told == [{Change.BIND_FAILED}]


def test_a_failure_that_comes_after_the_watch_has_confirmed_is_no_failure(make_cluster: Any, changes_of: Any) -> None:
    cache = make_cluster(a_node("n1"), a_job("j1", tasks=1))
    cache.binds.assume((a_bind("j1-0"),), cache.token)
    modified(cache, a_pod("j1-0", group="j1", node="n1"))
    told = changes_of(cache)

    cache.binds.failed(a_ref("j1-0"), "connection lost")
    cache.binds.acknowledged(a_ref("j1-0"))

    assert statuses(cache) == {"j1-0": (TaskStatus.RUNNING, "n1")}
    assert told == []


def test_binds_that_the_watch_does_not_confirm_in_time_are_reported(make_cluster: Any) -> None:
    clock = FakeClock()
    cache = make_cluster(
        a_node("n1"), a_job("j1", tasks=1), clock=clock, patience=Patience(unsent_s=60, unconfirmed_s=10)
    )
    cache.binds.assume((a_bind("j1-0"),), cache.token)
    cache.binds.sent(a_ref("j1-0"))
    seen = []

    for _ in range(3):
        clock.advance(5)
        seen.append([entry.task.name for entry in cache.binds.expired()])

    assert seen == [[], ["j1-0"], []]


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(a_pod("j1-0", group="j1", node="n1"), {"j1-0": (TaskStatus.RUNNING, "n1")}, id="bound"),
        pytest.param(a_pod("j1-0", group="j1"), {"j1-0": (TaskStatus.PENDING, "")}, id="not-bound"),
        pytest.param(None, {}, id="gone"),
        pytest.param(a_pod("j1-0", uid="other", group="j1"), {}, id="replaced"),
    ],
)
def test_a_fresh_read_of_the_pod_settles_its_bind(make_cluster: Any, pod: Any, expected: dict[str, Any]) -> None:
    cache = make_cluster(a_node("n1"), a_job("j1", tasks=1))
    cache.binds.assume((a_bind("j1-0"),), cache.token)

    cache.binds.resolve(a_ref("j1-0"), pod)

    assert statuses(cache) == expected
    assert len(cache.binds.ledger) == 0


def test_an_event_older_than_a_fresh_read_does_not_unbind_the_pod(make_cluster: Any) -> None:
    cache = make_cluster(a_node("n1"), a_job("j1", tasks=1))
    cache.binds.assume((a_bind("j1-0"),), cache.token)
    cache.binds.resolve(a_ref("j1-0"), a_pod("j1-0", group="j1", node="n1"))

    modified(cache, a_pod("j1-0", group="j1", why_pending="an hour ago"))

    assert statuses(cache) == {"j1-0": (TaskStatus.RUNNING, "n1")}
