"""What a cycle writes about jobs and pods that it could not or need not place."""

from collections import Counter
from dataclasses import replace

import pytest

from tests.reference.world import Task, World, a_job, a_node, a_shape, a_task, tasks_of
from tests.scheduler.running import DEFAULT, cycle
from volcano_py.framework.state.memory import Memory
from volcano_py.model.decisions import SetPodGroupStatus
from volcano_py.model.objects import GroupCondition, JobKey
from volcano_py.model.statuses import TaskStatus

ONE = a_shape(cpu=1)
LETTERS = {
    "P": TaskStatus.PENDING,
    "D": TaskStatus.BOUND,
    "R": TaskStatus.RUNNING,
    "X": TaskStatus.RELEASING,
    "S": TaskStatus.SUCCEEDED,
    "F": TaskStatus.FAILED,
}
NO_ACTIONS = DEFAULT.replace("enqueue, allocate", "enqueue")
WITHOUT_GANG_PLUGIN = NO_ACTIONS.replace("  - name: gang\n", "")


def members(letters: str) -> tuple[Task, ...]:
    return tuple(
        task
        for index, letter in enumerate(letters)
        for task in tasks_of("j", 1, ONE, first=index, status=LETTERS[letter], node="n1" if letter in "DRX" else "")
    )


def world(letters: str, **record: object) -> World:
    return World((a_node("n1", cpu=64),), jobs=(a_job("j", **record),), tasks=members(letters))


@pytest.mark.parametrize(
    ("letters", "minimum", "before", "after"),
    [
        pytest.param("", 2, "Inqueue", "Inqueue", id="enqueued-and-without-pods"),
        pytest.param("PP", 2, "Inqueue", "Inqueue", id="enqueued-and-waiting"),
        pytest.param("PP", 2, "Running", "Pending", id="what-ran-and-waits-again-is-pending"),
        pytest.param("RP", 2, "Running", "Unknown", id="an-incomplete-gang-of-which-some-run"),
        pytest.param("DD", 2, "Inqueue", "Running", id="all-bound"),
        pytest.param("RRP", 2, "Running", "Running", id="more-may-wait"),
        pytest.param("RS", 2, "Running", "Running", id="one-has-ended"),
        pytest.param("SS", 2, "Running", "Completed", id="all-have-ended"),
        pytest.param("SF", 2, "Running", "Completed", id="some-have-failed"),
        pytest.param("SSP", 2, "Running", "Completed", id="the-minimum-has-ended"),
        pytest.param("F", 2, "Running", "Pending", id="too-few-are-left"),
        pytest.param("RX", 2, "Running", "Running", id="terminating-on-a-node-counts"),
        pytest.param("XX", 2, "Running", "Running", id="all-terminate-and-nothing-replaces-them-yet"),
        pytest.param("XXPP", 2, "Inqueue", "Inqueue", id="enqueued-while-pods-of-before-terminate"),
        pytest.param("XX", 2, "Inqueue", "Inqueue", id="enqueued-and-only-pods-of-before-terminate"),
        pytest.param("XXPP", 2, "Pending", "Inqueue", id="enqueued-now-while-pods-of-before-terminate"),
        pytest.param("XDP", 2, "Inqueue", "Inqueue", id="enqueued-and-one-of-two-is-bound"),
        pytest.param("XXDD", 2, "Inqueue", "Running", id="all-bound-while-pods-of-before-terminate"),
        pytest.param("XSS", 2, "Inqueue", "Completed", id="all-have-ended-while-a-pod-of-before-terminates"),
        pytest.param("", 0, "Inqueue", "Completed", id="nothing-asked-and-nothing-there"),
        pytest.param("P", 0, "Inqueue", "Inqueue", id="nothing-asked-but-somebody-waits"),
        pytest.param("PP", 2, "Dreaming", "Pending", id="a-phase-nobody-knows"),
    ],
)
def test_the_phase_of_a_podgroup(letters: str, minimum: int, before: str, after: str) -> None:
    found = cycle(world(letters, min_available=minimum, phase=before), NO_ACTIONS)
    written = found.groups.get("j")

    assert (written.phase if written else before) == after


@pytest.mark.parametrize(("follows_pods", "after"), [(True, "Completed"), (False, "Inqueue")])
def test_a_completed_workload_whose_pods_are_removed_stays_completed(follows_pods: bool, after: str) -> None:
    """A PodGroup of users may be enqueued before the pods of its next round are made."""
    state = world("", min_available=2, phase="Completed", follows_pods=follows_pods)
    first = cycle(state, NO_ACTIONS)
    store = state.store()
    if "j" in first.groups:
        store = written_back(state, first.groups["j"]).store()
    second = cycle(store, NO_ACTIONS)
    written = second.groups.get("j", first.groups.get("j"))

    assert (written.phase if written else "Completed") == after


@pytest.mark.parametrize("before", ["Running", "Unknown", "Inqueue"])
@pytest.mark.parametrize("leaves", [True, False])
def test_a_gang_that_is_promised_room_need_not_be_enqueued_again(leaves: bool, before: str) -> None:
    """Its pods have all failed and are made again; others leave, for it or for somebody else."""
    others = tasks_of("other", 2, ONE, status=TaskStatus.RELEASING if leaves else TaskStatus.RUNNING, node="n1")
    jobs = (a_job("other", phase="Running"), a_job("j", min_available=2, phase=before))
    found = cycle(World((a_node("n1", cpu=2),), jobs=jobs, tasks=(*others, *tasks_of("j", 2, ONE))), DEFAULT)

    written = found.groups.get("j")
    assert (written.phase if written else before) == ("Inqueue" if leaves or before == "Inqueue" else "Pending")


def test_without_gang_no_condition_says_that_a_job_is_incomplete() -> None:
    found = cycle(world("RP", min_available=2, phase="Running"), WITHOUT_GANG_PLUGIN)

    assert found.groups["j"].phase == "Pending"
    assert found.groups["j"].conditions == ()
    assert found.events == []


def test_counts_are_written_with_the_phase() -> None:
    found = cycle(world("RRSF", min_available=2, phase="Running"), NO_ACTIONS)

    status = found.groups["j"]
    assert (status.job, status.uid) == (JobKey("ns", "j"), "uid-ns-j")
    assert (status.running, status.succeeded, status.failed) == (2, 1, 1)


def written_back(before: World, status: SetPodGroupStatus) -> World:
    record = before.jobs[0]
    conditions = {one.type: one for one in record.conditions} | {one.type: one for one in status.conditions}
    record = replace(
        record,
        phase=status.phase,
        running=status.running,
        succeeded=status.succeeded,
        failed=status.failed,
        conditions=tuple(conditions.values()),
    )
    return replace(before, jobs=(record,))


@pytest.mark.parametrize("letters", ["", "PP", "RR", "RP", "SS", "RX", "SSP"])
def test_a_written_status_is_not_repeated(letters: str) -> None:
    first = cycle(world(letters, min_available=2, phase="Inqueue"), NO_ACTIONS)
    state = (
        written_back(world(letters, min_available=2, phase="Inqueue"), first.groups["j"])
        if first.groups
        else world(letters, min_available=2, phase="Inqueue")
    )
    again = cycle(state, NO_ACTIONS, memory=Memory(7))

    assert again.groups == {}
    assert again.events == []


def test_the_id_of_a_session_alone_is_no_change() -> None:
    state = world("RR", min_available=2, phase="Running")
    ready = GroupCondition("Scheduled", True, "tasks in gang are ready to be scheduled", "", "41")
    record = replace(state.jobs[0], running=2, conditions=(ready,))

    assert cycle(replace(state, jobs=(record,)), NO_ACTIONS, memory=Memory(99)).decisions == []


def test_a_gang_that_becomes_complete_has_an_event_and_one_that_does_not_a_warning() -> None:
    complete = cycle(world("RR", min_available=2, phase="Inqueue"), NO_ACTIONS)
    waiting = cycle(world("PP", min_available=2, phase="Inqueue"), NO_ACTIONS)

    assert complete.events == [("j", "Normal", "Scheduled", "pod group is ready")]
    ((name, type_, reason, message),) = waiting.events
    assert (name, type_, reason) == ("j", "Warning", "Unschedulable")
    assert message.startswith("2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable")


@pytest.mark.parametrize("letters", ["PP", "RR"])
def test_an_event_is_emitted_once_while_its_status_is_being_written(letters: str) -> None:
    state = world(letters, min_available=2, phase="Inqueue")
    first = cycle(state, NO_ACTIONS)
    second = cycle(state, NO_ACTIONS, memory=first.memory)
    between = cycle(written_back(state, first.groups["j"]), NO_ACTIONS, memory=second.memory)
    anew = cycle(state, NO_ACTIONS, memory=between.memory)

    assert second.groups["j"].conditions[0].message == first.groups["j"].conditions[0].message
    assert [len(one.events) for one in (first, second, between, anew)] == [1, 0, 0, 1]


def test_statuses_are_written_one_batch_per_job_in_order_of_names() -> None:
    jobs = tuple(a_job(name, namespace=space) for space, name in (("b", "x"), ("a", "z"), ("a", "y")))
    found = cycle(World(jobs=jobs))

    assert [[one.job for one in batch if isinstance(one, SetPodGroupStatus)] for batch in found.batches] == [
        [("a", "y")],
        [("a", "z")],
        [("b", "x")],
    ]


@pytest.mark.parametrize(
    ("task", "text"),
    [
        pytest.param(
            a_task("p"),
            "the pod has no PodGroup yet: the controllers make one, and an event of the pod says if they cannot; "
            "without them, set the annotation scheduling.k8s.io/group-name",
            id="none",
        ),
        pytest.param(
            a_task("p", job="x"), 'PodGroup "x" does not exist in the namespace of the pod: create it', id="missing"
        ),
        pytest.param(
            a_task("p", a_shape(cpu=1, unsupported=("spec.volumes[d].ephemeral",)), job="j"),
            "spec.volumes[d].ephemeral: not supported by this scheduler yet, so the pod waits; "
            "remove it to have the pod placed",
            id="unsupported",
        ),
        pytest.param(
            a_task("p", a_shape(cpu=99), job="j"), "0/1 nodes are unavailable: 1 Insufficient cpu.", id="too-large"
        ),
    ],
)
def test_a_pod_that_waits_says_why(task: Task, text: str) -> None:
    found = cycle(World((a_node("n1"),), jobs=(a_job("j"),), tasks=(task,)))

    assert found.messages == {"p": text}
    assert found.reasons == {"p": "Unschedulable"}


def test_the_reason_of_a_pod_has_a_longest_length() -> None:
    """All pods of a gang have the reason, and it may name what a user has written."""
    group = "x" * 100_000

    found = cycle(World((a_node("n1"),), tasks=(a_task("p", job=group),)))

    assert len(found.messages["p"]) < 5000


@pytest.mark.parametrize(
    "task",
    [
        pytest.param(a_task("p", a_shape(cpu=1, gates=("g",)), job="j"), id="gated"),
        pytest.param(a_task("p", job="j", foreign=True), id="of-another-scheduler"),
        pytest.param(a_task("p", job="j", status=TaskStatus.RUNNING, node="n1"), id="running"),
        pytest.param(a_task("p", job="j", status=TaskStatus.RELEASING), id="terminating"),
        pytest.param(
            a_task("p", a_shape(cpu=99), job="j", condition="0/1 nodes are unavailable: 1 Insufficient cpu."),
            id="says-so-already",
        ),
    ],
)
def test_a_pod_that_does_not_wait_or_already_has_the_condition_is_left_alone(task: Task) -> None:
    assert cycle(World((a_node("n1"),), jobs=(a_job("j"),), tasks=(task,))).messages == {}


def test_conditions_of_pods_are_one_batch_by_job_and_name() -> None:
    big = a_shape(cpu=99)
    tasks = (a_task("z", big, job="b"), a_task("y", big, job="b"), a_task("x", big, job="c"), a_task("loose"))
    found = cycle(World((a_node("n1"),), jobs=(a_job("b"), a_job("c")), tasks=tasks))

    assert list(found.messages) == ["loose", "y", "z", "x"]
    assert len(found.batches[-1]) == 4


def test_a_best_effort_pod_says_that_it_waits_for_backfill() -> None:
    found = cycle(World((a_node("n1"),), jobs=(a_job("j"),), tasks=(a_task("p", a_shape(), job="j"),)))

    assert "backfill" in found.messages["p"]


def test_the_report_has_every_job_that_waits() -> None:
    state = World(
        (a_node("n1", cpu=4),),
        jobs=(a_job("a", min_available=1), a_job("b", min_available=3), a_job("done", min_available=1)),
        tasks=(
            *tasks_of("a", 5, ONE),
            *tasks_of("b", 3, a_shape(cpu=99)),
            *tasks_of("done", 1, ONE, status=TaskStatus.SUCCEEDED),
        ),
    )
    report = cycle(state).report

    assert set(report.jobs) == {JobKey("ns", "a"), JobKey("ns", "b")}
    a, b = report.jobs[JobKey("ns", "a")], report.jobs[JobKey("ns", "b")]
    assert (a.tasks, a.ready, a.min_available) == (5, 4, 1)
    assert (b.tasks, b.ready, b.min_available) == (3, 0, 3)
    assert [rejection.message for rejection in b.rejections] == ["0/1 nodes are unavailable: 1 Insufficient cpu."]
    assert b.message.startswith("pod group is not ready")
    assert (report.tasks_placed, report.jobs_committed, report.jobs_discarded, report.pending_tasks) == (4, 4, 0, 4)


def test_nothing_to_do_decides_nothing() -> None:
    assert cycle(World()).decisions == []
    assert Counter(type(one).__name__ for one in cycle(World((a_node("n1"),))).decisions) == {}
