import pytest

from tests.framework.sessions import a_session, job_row
from tests.reference.world import Task, World, a_job, a_node, a_shape, tasks_of
from volcano_py.framework.contract.extension_points import Vote
from volcano_py.framework.session import Session
from volcano_py.model.objects import GroupCondition
from volcano_py.model.statuses import TaskStatus
from volcano_py.plugins.gang import Gang

SOME, NONE = a_shape(cpu=1), a_shape()
RUNNING, PENDING, RELEASING = TaskStatus.RUNNING, TaskStatus.PENDING, TaskStatus.RELEASING
PIPELINED, FAILED, SUCCEEDED, BINDING = (
    TaskStatus.PIPELINED,
    TaskStatus.FAILED,
    TaskStatus.SUCCEEDED,
    TaskStatus.BINDING,
)


def members(statuses: list[TaskStatus], role: str = "", shape: object = SOME) -> tuple[Task, ...]:
    return tuple(
        task
        for index, status in enumerate(statuses)
        for task in tasks_of(
            "j",
            1,
            shape,
            role=role,
            first=index,
            status=status,
            node="" if status is PENDING else "n1",  # type: ignore[arg-type]
        )
    )


def session(tasks: tuple[Task, ...], **record: object) -> tuple[Session, Gang]:
    plugin = Gang()
    world = World(nodes=(a_node("n1", cpu=64),), jobs=(a_job("j", **record),), tasks=tasks)
    return a_session(world, plugin), plugin


@pytest.mark.parametrize(
    ("statuses", "minimum", "text"),
    [
        pytest.param([PENDING] * 3, 3, None, id="enough"),
        pytest.param([], 0, None, id="nothing-asked-for"),
        pytest.param(
            [PENDING] * 2, 3, "Not enough valid tasks for gang-scheduling, valid: 2, min: 3", id="pods-are-missing"
        ),
        pytest.param(
            [PENDING, PENDING, FAILED, RELEASING],
            3,
            "Not enough valid tasks for gang-scheduling, valid: 2, min: 3",
            id="what-failed-or-leaves-cannot-count",
        ),
        pytest.param([PENDING, RUNNING, SUCCEEDED], 3, None, id="what-runs-or-has-succeeded-counts"),
    ],
)
def test_a_job_is_valid_if_enough_tasks_exist(statuses: list[TaskStatus], minimum: int, text: str | None) -> None:
    ssn, plugin = session(members(statuses), min_available=minimum)
    reason = plugin.job_valid(ssn.state.job(job_row(ssn, "j")))

    assert (reason.text if reason else None) == text
    if reason is not None:
        assert (reason.plugin, reason.code) == ("gang", "NotEnoughTasks")


def test_a_role_that_has_too_few_tasks_makes_a_job_invalid() -> None:
    tasks = (*members([PENDING] * 3, "worker"), *members([FAILED], "ps"))
    ssn, plugin = session(tasks, min_available=3, task_min_available={"ps": 1, "worker": 2})
    reason = plugin.job_valid(ssn.state.job(job_row(ssn, "j")))

    assert reason is not None
    assert reason.code == "NotEnoughPodsOfTask"
    assert reason.text == "Not enough valid pods of each task (ps: valid 0, min 1)"


@pytest.mark.parametrize(
    ("tasks", "record", "missing", "vote"),
    [
        pytest.param(members([PENDING] * 4), {"min_available": 3}, 3, Vote.REJECT, id="nothing-yet"),
        pytest.param(members([BINDING, RUNNING, PENDING]), {"min_available": 3}, 1, Vote.REJECT, id="one-lacks"),
        pytest.param(members([BINDING, RUNNING, PIPELINED]), {"min_available": 3}, 1, Vote.PERMIT, id="promised"),
        pytest.param(members([RUNNING] * 4), {"min_available": 3}, 0, Vote.PERMIT, id="more-than-enough"),
        pytest.param(members([PENDING] * 3, shape=NONE), {"min_available": 3}, 0, Vote.PERMIT, id="best-effort-counts"),
        pytest.param(
            (*members([RUNNING] * 2, "w"), *members([PENDING], "ps")),
            {"min_available": 2, "task_min_available": {"ps": 1, "w": 1}},
            1,
            Vote.REJECT,
            id="a-role-lacks-though-the-number-is-right",
        ),
        pytest.param(
            (*members([RUNNING] * 2, "w"), *members([PIPELINED], "ps")),
            {"min_available": 2, "task_min_available": {"ps": 1, "w": 1}},
            1,
            Vote.PERMIT,
            id="the-role-is-promised",
        ),
        pytest.param(
            (*members([RUNNING], "w"), *members([PENDING] * 3, "ps")),
            {"min_available": 4, "task_min_available": {"ps": 3, "w": 1}},
            3,
            Vote.REJECT,
            id="the-larger-number-counts",
        ),
    ],
)
def test_how_many_tasks_a_job_lacks_and_whether_it_stays_pipelined(
    tasks: tuple[Task, ...], record: dict[str, object], missing: int, vote: Vote
) -> None:
    ssn, plugin = session(tasks, **record)
    job = ssn.state.job(job_row(ssn, "j"))

    assert plugin.missing(job) == missing
    assert plugin.job_pipelined(job) is vote


def test_jobs_below_their_minimum_go_first() -> None:
    world = World(
        nodes=(a_node("n1"),),
        jobs=(a_job("short", min_available=2), a_job("whole", min_available=1), a_job("none")),
        tasks=(
            *tasks_of("short", 1, SOME, status=RUNNING, node="n1"),
            *tasks_of("whole", 1, SOME, status=RUNNING, node="n1"),
        ),
    )
    plugin = Gang()
    ssn = a_session(world, plugin)

    assert plugin.job_order(ssn.state.jobs).tolist() == [0, 1, 1]


def closing(ssn: Session, plugin: Gang) -> list[tuple[str, bool, str, str]]:
    plugin.on_session_close(ssn.state)
    return [
        (one.type, one.status, one.reason, one.message)
        for one in ssn.state.outcome.conditions.get(job_row(ssn, "j"), [])
    ]


def condition(type_: str, status: bool, reason: str = "r") -> GroupCondition:
    return GroupCondition(type_, status, reason, "m", "41")


READY = ("Scheduled", True, "tasks in gang are ready to be scheduled", "")


def test_a_gang_that_is_complete_says_so_once() -> None:
    ssn, plugin = session(members([RUNNING, BINDING]), min_available=2)
    assert closing(ssn, plugin) == [READY]
    assert ssn.state.outcome.conditions[job_row(ssn, "j")][0].transition_id == ssn.state.memory.session_id

    again, plugin = session(members([RUNNING, BINDING]), min_available=2, conditions=(condition("Scheduled", True),))
    assert closing(again, plugin) == []


def test_a_gang_that_is_not_complete_says_how_many_it_lacks() -> None:
    ssn, plugin = session(members([RUNNING, PENDING, PENDING]), min_available=3)

    ((type_, status, reason, message),) = closing(ssn, plugin)

    assert (type_, status, reason) == ("Unschedulable", True, "NotEnoughResources")
    assert message.startswith("2/3 tasks in gang unschedulable: pod group is not ready, 1 Running, 2 Pending, 3 min")


@pytest.mark.parametrize(
    ("status", "minimum", "complete"),
    [
        pytest.param(TaskStatus.ALLOCATED, 3, False, id="of-a-gang-with-a-rule-per-role"),
        pytest.param(
            TaskStatus.ALLOCATED, 2, True, id="which-does-not-count-if-the-gang-may-be-smaller-than-all-roles"
        ),
        pytest.param(RUNNING, 3, True, id="but-not-one-that-runs-as-its-podgroup-would-be-unknown"),
    ],
)
def test_a_role_that_is_not_complete_keeps_a_gang_unschedulable(
    status: TaskStatus, minimum: int, complete: bool
) -> None:
    tasks = (*members([status] * 3, "worker"), *members([PENDING], "ps"))
    ssn, plugin = session(tasks, min_available=minimum, task_min_available={"worker": 2, "ps": 1})

    found = closing(ssn, plugin)

    assert (found == [READY]) is complete
    assert (found[0][0] == "Unschedulable") is not complete


def test_the_opposite_condition_becomes_false() -> None:
    ssn, plugin = session(members([RUNNING, RUNNING]), min_available=2, conditions=(condition("Unschedulable", True),))
    assert closing(ssn, plugin) == [READY, ("Unschedulable", False, "r", "m")]

    ssn, plugin = session(members([RUNNING, PENDING]), min_available=2, conditions=(condition("Scheduled", True),))
    assert [entry[:2] for entry in closing(ssn, plugin)] == [("Unschedulable", True), ("Scheduled", False)]


def test_an_opposite_condition_that_is_already_false_is_left_alone() -> None:
    old = (condition("Unschedulable", False), condition("Scheduled", False))
    ssn, plugin = session(members([RUNNING, RUNNING]), min_available=2, conditions=old)

    assert closing(ssn, plugin) == [READY]


@pytest.mark.parametrize(
    ("statuses", "minimum", "quiet"),
    [
        pytest.param([RUNNING, RELEASING], 2, True, id="only-what-terminates-lacks"),
        pytest.param([RUNNING, RELEASING, PENDING], 2, False, id="somebody-waits-all-the-same"),
        pytest.param([RUNNING, RELEASING], 3, False, id="even-with-it-there-were-too-few"),
        pytest.param([RUNNING, FAILED], 3, False, id="nothing-terminates"),
    ],
)
def test_a_gang_that_only_loses_terminating_pods_gets_no_warning(
    statuses: list[TaskStatus], minimum: int, quiet: bool
) -> None:
    ssn, plugin = session(members(statuses), min_available=minimum)

    assert (closing(ssn, plugin) == []) is quiet


def test_a_job_without_tasks_gets_no_condition() -> None:
    ssn, plugin = session((), min_available=2)

    assert closing(ssn, plugin) == []


def test_tasks_without_a_podgroup_are_no_gang() -> None:
    plugin = Gang()
    ssn = a_session(World(tasks=tasks_of("j", 2)), plugin)
    plugin.on_session_close(ssn.state)

    assert ssn.state.outcome.conditions == {}
