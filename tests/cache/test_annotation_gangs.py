"""Gangs that pods form by annotations, without a PodGroup."""

import itertools
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.cache.effort import calls
from volcano_py.api.core import Pod
from volcano_py.cache.binds import Assumed, Refused
from volcano_py.cache.changes import Change
from volcano_py.cache.cluster import ClusterCache
from volcano_py.model.decisions import Bind, RecordEvent, SetPodCondition, SetPodGroupStatus
from volcano_py.model.objects import GroupCondition, JobKey, JobRecord, TaskRef
from volcano_py.testing import a_cluster, a_group, a_node, a_pod, a_queue, added, deleted, modified, quarantined

KEY = JobKey("default", "qj")
NUMBER = "scheduling.k8s.io/group-pod-num"


def member(name: str, number: str | None = "3", **pod: Any) -> Pod:
    notes = {} if number is None else {NUMBER: number}
    return a_pod(name, group="qj", annotations=notes, cpu=1, **pod)


def gang(cache: ClusterCache) -> JobRecord | None:
    return cache.store.job(KEY)


def minimum(cache: ClusterCache) -> int | None:
    job = gang(cache)
    return None if job is None else job.min_available


def why(cache: ClusterCache) -> str:
    """Return why the pods of the gang wait whatever room there is."""
    return cache.snapshot().withheld.get(KEY, "")


def status(uid: str, **fields: Any) -> SetPodGroupStatus:
    chosen = {"phase": "Inqueue", "running": 0, "succeeded": 0, "failed": 0, "conditions": (), **fields}
    return SetPodGroupStatus(KEY, uid, **chosen)


def test_pods_that_name_a_gang_and_its_number_are_a_job_of_the_default_queue(make_cluster: Any) -> None:
    cache = make_cluster(member("p1", created=7), member("p2", created=5))

    job = gang(cache)

    assert job is not None
    assert (job.min_available, job.queue, job.phase, job.creation % 100) == (3, "default", "", 5)
    assert len(cache.store.tasks_of(KEY)) == 2


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        pytest.param(["2", "3", "2"], 3, id="the-largest-counts"),
        pytest.param(["1", "1", "1"], 1, id="more-pods-than-the-number"),
        pytest.param(["03"], 3, id="leading-zero"),
    ],
)
def test_the_minimum_is_the_largest_number(make_cluster: Any, numbers: list[str], expected: int) -> None:
    cache = make_cluster(*(member(f"p{index}", number) for index, number in enumerate(numbers)))

    assert minimum(cache) == expected


@pytest.mark.parametrize(
    ("number", "said"),
    [
        pytest.param(None, "pod p2 has none", id="missing"),
        pytest.param("three", 'pod p2 has "three", which is not a number', id="no-number"),
        pytest.param("0", 'pod p2 has "0", which is not a number from 1', id="zero"),
        pytest.param("-1", 'has "-1"', id="negative"),
        pytest.param("2.5", 'has "2.5"', id="no-integer"),
        pytest.param("", 'has ""', id="empty"),
        pytest.param("3000000000", 'has "3000000000"', id="too-large"),
    ],
)
def test_a_gang_with_a_pod_without_a_number_waits_and_says_why(
    make_cluster: Any, number: str | None, said: str
) -> None:
    cache = make_cluster(member("p1"), member("p2", number))

    assert gang(cache) is None
    assert said in why(cache)
    assert NUMBER in why(cache)


def test_a_gang_with_corrected_numbers_no_longer_waits(make_cluster: Any) -> None:
    cache = make_cluster(member("p1"), member("p2", "x"))

    modified(cache, member("p2", "3"))

    assert (minimum(cache), why(cache)) == (3, "")


@pytest.mark.parametrize("number", [None, "many", "2000", "1999"])
def test_a_pod_of_a_large_gang_costs_as_little_as_one_of_a_small_gang(make_cluster: Any, number: str | None) -> None:
    last = member("p-last", number)

    def effort(size: int) -> int:
        cache = make_cluster(*(member(f"p{n}", number) for n in range(size)), member("other", "2000"))
        return calls(lambda: (added(cache, last), deleted(cache, last)))

    assert effort(500) < 1.5 * effort(5)


def test_a_deleted_pod_without_a_number_does_not_block_its_gang(make_cluster: Any) -> None:
    wrong = member("p2", None)
    cache = make_cluster(member("p1"), wrong)

    deleted(cache, wrong)

    assert (minimum(cache), why(cache)) == (3, "")


def test_numbers_of_ended_pods_do_not_count(make_cluster: Any) -> None:
    cache = make_cluster(member("p1", "2"), member("p2", None, node="n1", phase="Succeeded"))

    assert minimum(cache) == 2


def test_a_gang_is_gone_with_its_last_pod(make_cluster: Any) -> None:
    pods = [member("p1"), member("p2")]
    cache = make_cluster(*pods)

    deleted(cache, *pods)

    assert gang(cache) is None
    assert cache.generation(KEY) == 0


def test_pods_of_another_scheduler_are_no_part_of_a_gang(make_cluster: Any) -> None:
    cache = make_cluster(member("p1", "2"), member("p2", "9", scheduler="default-scheduler"))

    assert minimum(cache) == 2


def test_gangs_of_one_name_in_two_namespaces_are_two(make_cluster: Any) -> None:
    cache = make_cluster(member("p1", "2"), member("p2", "4", namespace="other"))

    assert (minimum(cache), cache.store.job(JobKey("other", "qj")).min_available) == (2, 4)


def test_a_pod_group_of_the_same_name_takes_precedence(make_cluster: Any) -> None:
    cache = make_cluster(member("p1"), member("p2", "wrong"), a_group("qj", min_available=2))

    assert (minimum(cache), gang(cache).uid, why(cache)) == (2, "uid-default-qj", "")


def test_an_unreadable_pod_group_takes_precedence_too(make_cluster: Any) -> None:
    group = a_group("qj")
    cache = make_cluster(member("p1", "1"))

    cache.groups.on_quarantine(quarantined(group, "Expected `int`"))
    during = gang(cache)
    cache.groups.on_release(quarantined(group, "Expected `int`"))

    assert during is None
    assert minimum(cache) == 1


def test_when_the_pod_group_is_deleted_the_annotations_count_again(make_cluster: Any) -> None:
    group = a_group("qj", min_available=2)
    cache = make_cluster(group, member("p1"), member("p2"))

    deleted(cache, group)

    assert minimum(cache) == 3


def test_pods_without_numbers_are_no_gang_once_their_pod_group_is_gone(make_cluster: Any) -> None:
    group = a_group("qj")
    pods = (member("p1", None), member("p2", None, node="n1", phase="Running"))
    cache = make_cluster(group, *pods)

    deleted(cache, group)

    assert gang(cache) is None
    assert why(cache) == why(make_cluster(*pods)) != ""  # as a scheduler says that starts now
    for pod in pods:
        deleted(cache, pod)
    assert why(cache) == ""


def test_a_new_gang_is_a_helpful_change(make_cluster: Any, changes_of: Any) -> None:
    cache = make_cluster()
    told = changes_of(cache)

    added(cache, member("p1"))

    assert Change.GROUP in told[0]


def test_a_status_of_such_a_gang_is_kept_and_not_written(make_cluster: Any) -> None:
    cache = make_cluster(member("p1"))
    condition = GroupCondition("Unschedulable", True, "NotEnoughResources", "no room")

    written = cache.to_write(status(gang(cache).uid, phase="Inqueue", running=1, conditions=(condition,)))

    assert written is None
    assert (gang(cache).phase, gang(cache).running, gang(cache).conditions) == ("Inqueue", 1, (condition,))


def test_a_later_condition_takes_the_place_of_an_earlier_one_of_its_type(make_cluster: Any) -> None:
    cache = make_cluster(member("p1"))
    for truth in (True, False):
        cache.to_write(status(gang(cache).uid, conditions=(GroupCondition("Unschedulable", truth, "", ""),)))

    assert [one.status for one in gang(cache).conditions] == [False]


def test_a_kept_status_does_not_refuse_binds_that_were_decided_before_it(make_cluster: Any) -> None:
    cache = make_cluster(a_node("n1"), member("p1", "1"))
    token = cache.token
    cache.to_write(status(gang(cache).uid, phase="Running"))

    (answer,) = cache.binds.assume((Bind(TaskRef("default", "p1", "uid-default-p1"), "n1", KEY),), token)

    assert isinstance(answer, Assumed)
    cache.binds.failed(answer.bind.task, "end of test")


def test_a_gang_one_of_whose_pods_was_deleted_after_the_decision_is_refused_whole(make_cluster: Any) -> None:
    pods = [member("p1", "2"), member("p2", "2")]
    cache = make_cluster(a_node("n1"), *pods)
    token = cache.token
    deleted(cache, pods[1])

    binds = tuple(Bind(TaskRef("default", name, f"uid-default-{name}"), "n1", KEY) for name in ("p1", "p2"))
    answers = cache.binds.assume(binds, token)

    assert [type(answer) for answer in answers] == [Refused, Refused]


def test_events_about_a_group_that_does_not_exist_are_not_written(make_cluster: Any) -> None:
    cache = make_cluster(member("p1"))

    assert cache.to_write(RecordEvent("PodGroup", *KEY, gang(cache).uid, "Warning", "Unschedulable", "no")) is None


@pytest.mark.parametrize(
    "decision",
    [
        status("uid-of-an-object"),
        RecordEvent("PodGroup", *KEY, "uid-of-an-object", "Warning", "Unschedulable", "no"),
        SetPodCondition(TaskRef("default", "p1", "uid-default-p1"), "Unschedulable", "no room"),
        Bind(TaskRef("default", "p1", "uid-default-p1"), "n1", KEY),
    ],
    ids=["status", "event", "condition", "bind"],
)
def test_every_other_decision_is_written_as_it_is(make_cluster: Any, decision: Any) -> None:
    cache = make_cluster(member("p1"))

    assert cache.to_write(decision) == decision


def test_a_gang_whose_numbers_differ_waits_for_the_largest_and_says_so(make_cluster: Any) -> None:
    cache = make_cluster(member("p1", "2"), member("p2", "3"))
    said = why(cache)

    added(cache, member("p3", "3"))

    assert said.startswith("gang default/qj waits for more pods: it has 2; the pods of the gang differ")
    assert (minimum(cache), why(cache)) == (3, "")


def test_a_number_of_thousands_of_digits_is_wrong_and_closes_no_node(make_cluster: Any) -> None:
    """Python reads no such number. Users put pods on nodes by name, and a pod that raises closes its node to all."""
    cache = make_cluster(a_node("n1"))

    added(cache, member("p1", "0" * 5000 + "1", node="n1"), member("p2"))

    assert cache.snapshot().nodes.closed.tolist() == [False]
    assert f'pod p1 has "{"0" * 32}", which is not a number' in why(cache)


def test_a_text_names_only_some_of_the_numbers_of_a_gang(make_cluster: Any) -> None:
    cache = make_cluster(*(member(f"p{number}", str(number)) for number in range(10, 40)))

    assert "(10, 11, 12, 13, 14 and 25 more): the largest number counts" in why(cache)


def test_a_gang_whose_numbers_differ_waits_again_when_a_pod_is_deleted(make_cluster: Any) -> None:
    pods = [member("p1", "2"), member("p2", "3"), member("p3", "3")]
    cache = make_cluster(*pods)

    deleted(cache, pods[2])

    assert gang(cache) is None
    assert "it has 2" in why(cache)


def test_pods_whose_gang_differs_in_its_numbers_say_so(make_cluster: Any) -> None:
    cache = make_cluster(member("p1", "1"), member("p2", "2"))

    written = cache.to_write(SetPodCondition(TaskRef("default", "p1", "uid-default-p1"), "Unschedulable", "no room"))

    assert isinstance(written, SetPodCondition)
    assert written.message.startswith("no room; the pods of the gang differ")
    assert "(1, 2): the largest number counts" in written.message


def test_what_a_pod_says_already_is_not_written_again(make_cluster: Any) -> None:
    cache = make_cluster(member("p1", "1"), member("p2", "2"))
    decision = SetPodCondition(TaskRef("default", "p1", "uid-default-p1"), "Unschedulable", "no room")
    written = cache.to_write(decision)

    modified(cache, member("p1", "1", why_pending=written.message))

    assert cache.to_write(decision) is None


def test_without_any_queue_the_default_one_is_assumed_for_gangs(make_cluster: Any) -> None:
    cache = make_cluster(member("p1"), queues=[])

    assert list(cache.store.queues) == ["default"]


def test_a_real_queue_ends_the_assumption(make_cluster: Any) -> None:
    cache = make_cluster(member("p1"), queues=[])

    added(cache, a_queue("root"))

    assert list(cache.store.queues) == ["root"]


def test_when_the_last_queue_goes_the_default_one_is_assumed_again(make_cluster: Any) -> None:
    queue = a_queue("default", weight=5)
    cache = make_cluster(member("p1"), queues=[queue])

    deleted(cache, queue)

    assert cache.store.queues["default"].weight == 1


def test_a_queue_is_not_assumed_for_pod_groups(make_cluster: Any) -> None:
    cache = make_cluster(a_group("g1"), queues=[])

    assert cache.store.queues == {}


def test_a_gang_has_the_highest_priority_of_its_pods(make_cluster: Any) -> None:
    cache = make_cluster(member("p1", priority=5), member("p2", priority=9), member("p3"))

    assert gang(cache).priority == 9


def test_an_ended_pod_counts_for_its_gang_until_it_is_deleted(make_cluster: Any) -> None:
    ended = member("p2", None, phase="Succeeded", node="n1")
    cache = make_cluster(member("p1", "1"), ended, member("p3", "3"))
    before = cache.store.job(KEY)
    deleted(cache, ended)

    assert before is not None
    assert cache.store.job(KEY) is None


POD_STATES = st.tuples(
    st.sampled_from(["p1", "p2", "p3"]),
    st.sampled_from(["gone", "pending", "ended"]),
    st.sampled_from([None, "1", "2", "3", "x"]),
    st.integers(0, 2),
)


@given(st.lists(POD_STATES, max_size=25))
@example([("p1", "pending", None, 0), ("p2", "pending", "3", 0), ("p3", "pending", "1", 0), ("p1", "ended", None, 0)])
def test_a_gang_depends_only_on_its_current_pods(
    history: list[tuple[str, str, str | None, int]],
) -> None:
    lived, now, uids = a_cluster(), {}, itertools.count()
    for name, kind, number, priority in history:
        before = now.pop(name, None)
        if kind == "gone":
            if before is not None:
                deleted(lived, before)
            continue
        # A pod that has ended never comes back: another of its name has another uid.
        if before is not None and before.status.phase == "Succeeded":
            deleted(lived, before)
            before = None
        uid = before.metadata.uid if before is not None else f"{name}-{next(uids)}"
        phase = "Succeeded" if kind == "ended" else "Pending"
        node = "n1" if kind == "ended" else ""
        now[name] = member(name, number, uid=uid, priority=priority, created=priority, phase=phase, node=node)
        (modified if before is not None else added)(lived, now[name])

    fresh = a_cluster(*now.values())

    assert lived.store.job(KEY) == fresh.store.job(KEY)
    assert why(lived).partition(": pod ")[0] == why(fresh).partition(": pod ")[0]
    lived.validate()
