import pytest

from tests.framework.sessions import a_session, job_row
from tests.reference.world import Task, World, a_job, a_node, a_shape, a_task
from volcano_py.framework.session import Session
from volcano_py.framework.state.info import JobInfo
from volcano_py.model.statuses import READY_STATUSES, VALID_STATUSES, PodGroupPhase, TaskStatus

SOME, NONE = a_shape(cpu=1), a_shape()
STATUS = {
    "P": TaskStatus.PENDING,
    "A": TaskStatus.ALLOCATED,
    "L": TaskStatus.PIPELINED,
    "B": TaskStatus.BINDING,
    "D": TaskStatus.BOUND,
    "R": TaskStatus.RUNNING,
    "X": TaskStatus.RELEASING,
    "S": TaskStatus.SUCCEEDED,
    "F": TaskStatus.FAILED,
    "U": TaskStatus.UNKNOWN,
}


def session(tasks: str, min_available: int = 0, **roles: int) -> Session:
    """Return a session with a job.

    ``a:PPb R`` is two pending tasks of role a, a best-effort one of it, and a running one of none.
    """
    members: list[Task] = []
    for part in tasks.split():
        role, _, letters = part.rpartition(":")
        members += [
            a_task(
                f"t{len(members) + index}",
                NONE if letter == "b" else SOME,
                job="j",
                role=role,
                status=STATUS["P" if letter == "b" else letter],
            )
            for index, letter in enumerate(letters)
        ]
    record = a_job("j", min_available=min_available, task_min_available=roles)
    return a_session(World((a_node("n1"),), jobs=(record,), tasks=tuple(members)))


def job(tasks: str, min_available: int = 0, **roles: int) -> JobInfo:
    ssn = session(tasks, min_available, **roles)
    return ssn.state.job(job_row(ssn, "j"))


@pytest.mark.parametrize(
    ("tasks", "ready", "valid", "scheduled", "missing_of_10"),
    [
        ("", 0, 0, 0, 10),
        ("PALBDRXSFU", 5, 7, 4, 5),
        ("Pbb", 0, 3, 0, 8),
        ("LL", 0, 2, 0, 10),
        ("RRRRRRRRRRR", 11, 11, 11, 0),
    ],
)
def test_counts_of_a_job(tasks: str, ready: int, valid: int, scheduled: int, missing_of_10: int) -> None:
    found = job(tasks, 10)

    assert (found.ready_count, found.valid_count, found.scheduled_count) == (ready, valid, scheduled)
    assert found.missing() == missing_of_10
    assert found.is_ready() is (missing_of_10 == 0)
    assert found.n_tasks == len(tasks)


@pytest.mark.parametrize(
    ("tasks", "minimum", "pipelined"), [("RLL", 3, True), ("RLL", 4, False), ("RLb", 3, True), ("", 0, True)]
)
def test_a_job_is_pipelined_if_pipelined_tasks_complete_it(tasks: str, minimum: int, pipelined: bool) -> None:
    assert job(tasks, minimum).is_pipelined() is pipelined


@pytest.mark.parametrize(
    ("tasks", "minimum", "roles", "short"),
    [
        pytest.param("a:R b:R", 2, {}, [], id="no-rule"),
        pytest.param("a:RR b:R", 3, {"a": 2, "b": 1}, [], id="met"),
        pytest.param("a:RP b:RP", 4, {"a": 2, "b": 2}, [("a", 1, 2), ("b", 1, 2)], id="both-short"),
        pytest.param("b:RR", 2, {"a": 1, "b": 1}, [("a", 0, 1)], id="a-role-without-tasks"),
        pytest.param("a:P b:P", 2, {"a": 2, "b": 2}, [], id="a-minimum-below-the-sum-is-no-rule-at-all"),
        pytest.param("a:RPb", 2, {"a": 2}, [], id="a-waiting-best-effort-task-counts"),
        pytest.param("a:AFXU", 2, {"a": 2}, [("a", 1, 2)], id="failed-and-leaving-ones-do-not"),
        pytest.param("a:RS", 2, {"a": 2}, [], id="a-succeeded-one-counts"),
        pytest.param("R", 1, {"a": 0}, [], id="a-minimum-of-zero-is-met"),
    ],
)
def test_roles_below_their_minimum(
    tasks: str, minimum: int, roles: dict[str, int], short: list[tuple[str, int, int]]
) -> None:
    assert job(tasks, minimum, **roles).roles_short(READY_STATUSES, best_effort=True) == short


def test_roles_may_be_counted_in_other_statuses() -> None:
    found = job("a:PLb b:RF", 3, a=3)

    assert found.role_counts(VALID_STATUSES) == {"a": 3, "b": 1}
    assert found.role_counts((TaskStatus.FAILED,)) == {"b": 1}
    assert found.roles_short(VALID_STATUSES, best_effort=False) == []


@pytest.mark.parametrize(
    ("tasks", "minimum", "roles", "failed", "go_on"),
    [
        pytest.param("PPP", 3, {}, [""], False, id="every-task-is-needed"),
        pytest.param("PPPP", 3, {}, [""], True, id="some-can-be-missed"),
        pytest.param("a:P b:PP", 2, {"a": 1, "b": 1}, ["a"], False, id="a-role-below-its-minimum-has-failed"),
        pytest.param("a:AP b:PP", 2, {"a": 1, "b": 1}, ["a"], True, id="a-role-that-has-its-minimum-may-fail"),
        pytest.param("a:bP b:PP", 2, {"a": 1, "b": 1}, ["a"], True, id="its-best-effort-task-counts"),
        pytest.param("a:SP b:PP", 2, {"a": 1, "b": 1}, ["a"], True, id="so-does-one-that-has-succeeded"),
        pytest.param("a:P b:P c:P", 2, {"a": 1, "b": 1}, ["c"], True, id="a-role-without-minimum-may-fail"),
        pytest.param("a:PP b:PP", 1, {"a": 1, "b": 1}, ["a"], True, id="others-can-make-up-a-small-minimum"),
        pytest.param("a:PP b:P", 2, {"a": 2, "b": 2}, ["a"], False, id="too-few-others-for-a-small-minimum"),
        pytest.param("a:PPR b:P", 2, {"a": 2, "b": 2}, ["a"], True, id="what-runs-helps-a-small-minimum"),
    ],
)
def test_whether_other_tasks_are_worth_trying(
    tasks: str, minimum: int, roles: dict[str, int], failed: list[str], go_on: bool
) -> None:
    assert job(tasks, minimum, **roles).worth_continuing(frozenset(failed)) is go_on


def test_a_job_reads_its_phase_from_the_session() -> None:
    ssn = a_session(World(jobs=(a_job("j"),)))
    found = ssn.state.job(job_row(ssn, "j"))
    assert found.is_pending

    ssn.enqueue(found.row)

    assert found.phase is PodGroupPhase.INQUEUE
    assert not found.is_pending


def test_role_counts_follow_what_is_placed_and_taken_back() -> None:
    ssn = session("a:PPb b:P", 2)
    found = ssn.state.job(job_row(ssn, "j"))
    before = found.role_counts((TaskStatus.PENDING,))
    statement = ssn.statement()
    rows = ssn.state.rows_of_job(found.row)[:2]
    statement.pipeline(found.row, int(ssn.state.tasks.shape[rows[0]]), rows, rows * 0)

    assert before == {"a": 3, "b": 1}
    assert found.role_counts((TaskStatus.PENDING,)) == {"a": 1, "b": 1}
    assert found.role_counts((TaskStatus.PIPELINED,)) == {"a": 2}
    assert found.role_counts((), best_effort=True) == {"a": 1}
    statement.discard()
    assert found.role_counts((TaskStatus.PENDING,)) == before


def test_the_tasks_of_every_job_are_listed_whatever_their_status() -> None:
    world = World(
        jobs=(a_job("j"), a_job("k"), a_job("none")),
        tasks=(
            a_task("a", job="k"),
            a_task("b", job="j", status=TaskStatus.FAILED),
            a_task("c"),
            a_task("d", job="k", status=TaskStatus.RUNNING),
            a_task("e", job="orphan"),
        ),
    )
    ssn = a_session(world)

    found = {
        name: [ssn.state.tasks.record(row).name for row in ssn.state.rows_of_job(job_row(ssn, name)).tolist()]
        for name in ("j", "k", "none")
    }
    assert found == {"j": ["b"], "k": ["a", "d"], "none": []}
