"""Pdb: victims are taken as long as every budget that covers them allows it."""

from typing import Any

import numpy as np
import pytest

from tests.framework.opened import opened
from volcano_py.framework.contract.extension_points import Preemptor, Purpose
from volcano_py.framework.contract.victim_candidates import VictimCandidates
from volcano_py.framework.session import Session
from volcano_py.testing import Scenario, a_budget, a_group, a_job, a_node, a_pod, a_queue

WEB = {"app": "web"}
DB = {"app": "db"}


def session(*budgets: Any, **options: Any) -> Session:
    """Four web pods on two nodes, and one of a database."""
    pods = [a_pod(f"web-{i}", group="g1", cpu=1, node=f"n{i % 2}", labels=WEB, **options) for i in range(4)]
    pods.append(a_pod("db", group="g1", cpu=1, node="n1", labels=DB))
    nodes = [a_node(f"n{i}", cpu=8) for i in range(2)]
    return opened(*nodes, a_group(phase="Running", min_available=0), *pods, *budgets, plugins=["pdb"])


def let_go(ssn: Session, candidates: VictimCandidates, purpose: Purpose = Purpose.PREEMPT) -> list[str]:
    """Return who may go where no other plugin votes."""
    job = ssn.state.job(int(ssn.state.jobs.present()[0]))
    preemptor = Preemptor(purpose, job, ssn.state.queues["default"], ssn.state.task_of(0))
    return [
        ssn.state.tasks.record(row).name
        for row in candidates.rows[ssn.eviction.allowed(preemptor, candidates)].tolist()
    ]


@pytest.mark.parametrize("purpose", Purpose)
def test_without_budgets_every_candidate_is_permitted(purpose: Purpose):
    ssn = session()

    assert len(let_go(ssn, ssn.eviction.all, purpose)) == 5


@pytest.mark.parametrize("action", ["preempt", "reclaim"])
def test_in_a_later_tier_it_permits_no_candidate_that_earlier_tiers_protect(action: str):
    queues = ["red", "red"] if action == "preempt" else ["red", "blue"]
    scenario = Scenario(
        a_node("n1", cpu=2),
        a_job("first", tasks=2, min_available=2, cpu=1, node="n1", queue=queues[0], phase="Running"),
        a_job("second", cpu=1, queue=queues[1]),
        queues=[a_queue("red"), a_queue("blue")],
        actions=f"enqueue, allocate, {action}",
        plugins=[["priority", "gang"], ["predicates", "pdb"]],
    )

    assert scenario.run().evictions == []


def test_a_budget_counts_the_pods_it_covers_in_the_order_given():
    ssn = session(a_budget(labels=WEB, allowed=1))
    everybody = ssn.eviction.all.together()

    kept = let_go(ssn, everybody)

    assert "db" in kept
    first = next(name for name in (ssn.state.tasks.record(row).name for row in everybody.rows.tolist()) if name != "db")
    assert [name for name in kept if name != "db"] == [first]


def test_budgets_are_counted_anew_for_every_group():
    ssn = session(a_budget(labels=WEB, allowed=1))

    kept = let_go(ssn, ssn.eviction.all)  # one group a node

    assert len([name for name in kept if name != "db"]) == 2


def test_a_pod_of_two_budgets_needs_both():
    ssn = session(a_budget("one", labels=WEB, allowed=4), a_budget("two", labels=WEB, allowed=0))

    assert let_go(ssn, ssn.eviction.all) == ["db"]


def test_what_is_evicted_in_this_session_counts_for_other_nodes_too():
    ssn = session(a_budget(labels=WEB, allowed=1))
    rows = ssn.eviction.all.rows
    web = [row for row in rows.tolist() if ssn.state.tasks.record(row).name != "db"]
    statement = ssn.statement()
    statement.evict(np.array(web[:1]))

    rest = VictimCandidates(ssn.state, np.array(web[1:]), np.zeros(3, dtype=np.intp))
    assert let_go(ssn, rest) == []

    statement.discard()
    assert len(let_go(ssn, rest)) == 1


def test_terminating_pods_use_up_the_budget():
    ssn = session(a_budget(labels=WEB, allowed=1), a_pod("late", group="g1", node="n1", labels=WEB, terminating=True))

    assert let_go(ssn, ssn.eviction.all) == ["db"]


def test_a_budget_of_another_namespace_covers_nothing():
    ssn = session(a_budget(namespace="elsewhere", labels=WEB, allowed=0))

    assert len(let_go(ssn, ssn.eviction.all)) == 5


def test_a_pod_without_labels_is_covered_by_a_budget_for_all():
    ssn = opened(a_node("n1"), a_group(phase="Running"), a_pod("p", group="g1", node="n1"), a_budget(), plugins=["pdb"])

    assert let_go(ssn, ssn.eviction.all) == []


@pytest.mark.parametrize("seed", range(20))
def test_permitted_victims_equal_a_walk_one_by_one(seed: int):
    rng = np.random.default_rng(seed)
    budgets = [
        a_budget(
            f"b{i}",
            labels={"team": str(rng.integers(3))} | ({"app": "x"} if i % 2 else {}),
            allowed=int(rng.integers(4)),
        )
        for i in range(5)
    ]
    pods = [
        a_pod(
            f"p{i}",
            group="g1",
            cpu=1,
            node=f"n{rng.integers(3)}",
            labels={"team": str(rng.integers(3)), "app": "xy"[rng.integers(2)]},
        )
        for i in range(20)
    ]
    ssn = opened(
        *(a_node(f"n{i}", cpu=50) for i in range(3)), a_group(phase="Running"), *pods, *budgets, plugins=["pdb"]
    )
    candidates = ssn.eviction.all

    assert let_go(ssn, candidates) == _one_by_one(ssn, candidates)


def _one_by_one(ssn: Session, candidates: VictimCandidates) -> list[str]:
    found = []
    for group in np.unique(candidates.groups).tolist():
        left = {budget.name: budget.allowed for budgets in ssn.state.facts.budgets.values() for budget in budgets}
        for row in candidates.rows[candidates.groups == group].tolist():
            record = ssn.state.tasks.record(row)
            labels = dict(zip(record.labels[::2], record.labels[1::2], strict=True))
            mine = [one.name for one in ssn.state.facts.budgets[record.namespace] if one.covers(record.name, labels)]
            if all(left[name] > 0 for name in mine):
                found.append(record.name)
            for name in mine:
                left[name] -= 1
    return found
