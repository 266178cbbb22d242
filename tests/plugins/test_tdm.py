"""Tdm: nodes that are lent for a part of the day."""

from typing import Any

import pytest

from tests.framework.opened import opened
from volcano_py.framework.contract.extension_points import Preemptor, Purpose, Vote
from volcano_py.framework.session import Session
from volcano_py.framework.state.memory import Memory
from volcano_py.plugins.tdm import Tdm, parse_window
from volcano_py.testing import a_group, a_job, a_node, a_pod, a_policy, run_scenario

ZONE = "volcano.sh/revocable-zone"
HOUR = 3600
LENT = {"labels": {ZONE: "night"}}
MAY = {"annotations": {ZONE: "*"}}
SENT_AWAY = {"annotations": {"volcano.sh/preemptable": "true"}}
NIGHT = {"name": "tdm", "arguments": {"tdm.revocable-zone.night": "22:00-06:00"}}


@pytest.mark.parametrize(
    ("text", "hour", "open_"),
    [
        pytest.param("9:00-17:00", 9, True, id="begins"),
        pytest.param("9:00-17:00", 17, True, id="ends-included"),
        pytest.param("9:00-17:00", 17.01, False, id="over"),
        pytest.param("9:00-17:00", 8.99, False, id="not-yet"),
        pytest.param("22:00-06:00", 23, True, id="before-midnight"),
        pytest.param("22:00-06:00", 5, True, id="after-midnight"),
        pytest.param("22:00-06:00", 12, False, id="noon"),
        pytest.param("0:00-0:00", 13, True, id="whole-day"),
    ],
)
def test_a_window_is_open_during_its_hours(text: str, hour: float, open_: bool):
    assert parse_window(text).open(hour * HOUR) is open_


@pytest.mark.parametrize(
    "text", ["", "9:00", "9-17", "24:00-1:00", "9:60-10:00", "9:0-10:00", "09:00 - 10:00", "a:00-b:00"]
)
def test_an_invalid_window_is_an_error(text: str):
    with pytest.raises(ValueError, match="is not a window"):
        parse_window(text)


def test_unreadable_arguments_are_reported_and_ignored():
    said: list[str] = []

    args = Tdm.parse(
        {"tdm.revocable-zone.a": "noon", "tdm.revocable-zone.b": "1:00-2:00", "tdm.evict.period": "x"}, said.append
    )

    assert (list(args.windows), args.period) == (["b"], 60.0)
    assert [text.partition(":")[0] for text in said] == ["argument tdm.revocable-zone.a", "argument tdm.evict.period"]


def session(*objects: Any, hour: float, **options: Any) -> Session:
    return opened(*objects, plugins=[NIGHT], now=hour * HOUR, **options)


def verdicts(hour: float, **pod: Any) -> list[str]:
    """Return why a pod may not go to an ordinary node, a lent one and one of an unknown zone."""
    nodes = [a_node("a"), a_node("b", **LENT), a_node("c", labels={ZONE: "day"})]
    ssn = session(*nodes, a_job("j", tasks=1, cpu=1, **pod), hour=hour)
    task = ssn.state.task_of(int(ssn.state.tasks.shape[0]))
    tdm = ssn.hooks.plugins()[0]
    return ["" if code == 0 else tdm.reasons[code - 1].code for code in tdm.predicate(task, ssn.state.nodes).tolist()]


def test_a_revocable_node_takes_revocable_tasks_while_its_window_is_open():
    assert verdicts(23, **MAY) == ["", "", "revocable-zone-unknown"]
    assert verdicts(23, **SENT_AWAY) == ["", "", "revocable-zone-unknown"]
    assert verdicts(23) == ["", "not-revocable", "revocable-zone-unknown"]
    assert verdicts(12, **MAY) == ["", "revocable-zone-closed", "revocable-zone-unknown"]


def test_revocable_nodes_are_preferred_while_their_window_is_open():
    nodes = [a_node("a"), a_node("b", **LENT), a_node("c")]
    whole_day = {"name": "tdm", "arguments": {"tdm.revocable-zone.night": "0:00-0:00"}}

    found = run_scenario(
        nodes=nodes, jobs=[a_job("j", tasks=1, cpu=1, **MAY)], plugins=["gang", "predicates", whole_day]
    )

    assert found.placements == {"j-0": "b"}


def running(n: int, *, node: str = "lent", budget: dict[str, str] | None = None, **pod: Any) -> list[Any]:
    group = a_group(phase="Running", min_available=0, annotations=budget or {})
    pods = [a_pod(f"p{i}", group="g1", cpu=1, node=node, **pod) for i in range(n)]
    return [a_node("lent", cpu=16, **LENT), a_node("own", cpu=16), group, *pods]


def sent_away(hour: float, *objects: Any, memory: Memory | None = None) -> list[str]:
    ssn = opened(*objects, plugins=[NIGHT], actions="shuffle", now=hour * HOUR, memory=memory)
    return [ssn.state.tasks.record(row).name for row in ssn.eviction.unconditional().tolist()]


@pytest.mark.parametrize(
    ("budget", "count"),
    [
        pytest.param({}, 1, id="one-without-a-budget"),
        pytest.param({"volcano.sh/jdb-max-unavailable": "3"}, 3, id="number"),
        pytest.param({"volcano.sh/jdb-max-unavailable": "25%"}, 3, id="percentage-rounded-up"),
        pytest.param({"volcano.sh/jdb-min-available": "8"}, 2, id="minimum"),
        pytest.param({"volcano.sh/jdb-min-available": "100%"}, 0, id="all-of-it"),
        pytest.param({"volcano.sh/jdb-max-unavailable": "many"}, 1, id="unreadable"),
    ],
)
def test_when_a_window_closes_a_job_loses_as_many_as_its_budget_allows(budget: dict[str, str], count: int):
    assert len(sent_away(12, *running(10, budget=budget))) == count


def test_no_task_is_evicted_while_the_window_is_open_or_from_ordinary_nodes():
    assert sent_away(23, *running(4)) == []
    assert sent_away(12, *running(4, node="own")) == []


def test_tasks_that_do_not_run_count_against_the_budget():
    waiting = [a_pod(f"w{i}", group="g1", cpu=1) for i in range(2)]

    assert len(sent_away(12, *running(8, budget={"volcano.sh/jdb-max-unavailable": "3"}), *waiting)) == 1


def test_evictions_happen_once_per_period():
    assert len(sent_away(12, *running(4))) == 1
    assert sent_away(12, *running(4), memory=Memory(times={"tdm": 12 * HOUR - 59})) == []
    assert len(sent_away(12, *running(4), memory=Memory(times={"tdm": 12 * HOUR - 60}))) == 1


def preempted(hour: float = 12, **preemptor: Any) -> list[str]:
    objects = [*running(2, node="own"), *running(2)[3:]]
    objects[-2:] = [a_pod(f"l{i}", group="g1", cpu=1, node="lent") for i in range(2)]
    ssn = session(*objects, a_job("new", tasks=1, cpu=1, **preemptor), hour=hour)
    row = next(i for i, record in enumerate(ssn.state.tasks.records) if record is not None and record.name == "new-0")
    job = ssn.state.job(int(ssn.state.tasks.job[row]))
    preemptor = Preemptor(
        Purpose.PREEMPT, job, ssn.state.queues["default"], ssn.state.task_of(int(ssn.state.tasks.shape[row]))
    )
    candidates = ssn.eviction.all
    return [
        ssn.state.tasks.record(r).name for r in candidates.rows[ssn.eviction.allowed(preemptor, candidates)].tolist()
    ]


def test_a_task_that_is_not_preemptable_preempts_on_ordinary_nodes_within_budgets():
    assert len(preempted(annotations={"volcano.sh/preemptable": "false"})) == 1
    assert preempted(annotations={"volcano.sh/preemptable": "false"})[0].startswith("p")


def test_a_preemptable_task_takes_no_victims():
    assert preempted() == []
    assert preempted(**MAY) == []


def test_jobs_that_are_not_preemptable_go_first_and_starve_while_they_wait():
    soft = a_job("soft", tasks=1, cpu=1)
    group = a_group("soft", annotations={"volcano.sh/preemptable": "true"})
    ssn = session(a_node(), group, *soft.pods, a_job("hard", tasks=1, cpu=1, created=9), hour=1)
    tdm = ssn.hooks.plugins()[0]
    jobs = {ssn.state.jobs.record(row).key.name: ssn.state.job(row) for row in ssn.state.jobs.present().tolist()}

    keys = tdm.job_order(ssn.state.jobs)
    assert keys[jobs["hard"].row] < keys[jobs["soft"].row]
    assert (tdm.job_starving(jobs["hard"]), tdm.job_starving(jobs["soft"])) == (True, False)
    assert tdm.job_pipelined(jobs["hard"]) == Vote.REJECT


def test_the_configuration_knows_its_arguments():
    assert a_policy("allocate", [NIGHT]).warnings == ()
