"""Jobs that get no turn in enqueue are those that a turn would refuse, and their reasons are those of its end."""

from random import Random
from typing import Any

import numpy as np
import pytest

from tests.framework.sessions import a_session
from tests.reference.world import World, a_job, a_node, a_queue, a_shape, a_task
from volcano_py.actions.enqueue import enqueue
from volcano_py.framework.contract import combine
from volcano_py.framework.contract.extension_points import JobEnqueueable, Vote, Votes
from volcano_py.framework.contract.plugin import Plugin
from volcano_py.framework.session import Session
from volcano_py.framework.state.info import JobInfo
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Rows
from volcano_py.model.facts import QuotaRecord
from volcano_py.model.objects import QueueRecord
from volcano_py.model.rejections import Reason
from volcano_py.model.resource_lists import NOTHING, ResourceList
from volcano_py.model.statuses import TaskStatus
from volcano_py.plugins.capacity import Capacity
from volcano_py.plugins.overcommit import Overcommit
from volcano_py.plugins.priority import Priority
from volcano_py.plugins.proportion import Proportion
from volcano_py.plugins.resourcequota import ResourceQuotas
from volcano_py.plugins.sla import Sla, SlaArgs
from volcano_py.snapshot.store import ClusterStore

NAMES = [f"j{number:03d}" for number in range(260)]
QUEUES = ("root", "a", "a-1", "a-2", "b", "shut", "in-order")


class Tree(Capacity):
    """Capacity with a hierarchy of queues."""

    name = "tree"
    hierarchy = True


class Odd(Plugin, JobEnqueueable):
    """It must be asked about each job, and rejects one in three."""

    name = "odd"

    def job_enqueueable(self, job: JobInfo) -> Vote:
        return Vote.REJECT if int(job.key.name[1:]) % 3 == 0 else Vote.ABSTAIN


TIERS = {
    "overcommit": ((Priority, Overcommit),),
    "both": ((Priority, Overcommit, Proportion),),
    "first permits": ((Priority, Proportion), (Overcommit,)),
    "sla before": ((Sla,), (Overcommit, Proportion)),
    "sla beside": ((Priority, Sla, Overcommit), (Proportion,)),
    "capacity": ((Overcommit, Capacity),),
    "tree": ((Tree,),),
    "overcommit and tree": ((Overcommit, Tree),),
    "quotas": ((ResourceQuotas, Overcommit),),
    "foreign first": ((Odd, Overcommit), (Proportion,)),
    "foreign last": ((Overcommit, Proportion, Odd),),
    "none": ((Priority,),),
}


def a_cluster(rng: Random) -> ClusterStore:
    def limit(most: int) -> dict[str, float]:
        return {name: 1000.0 * rng.randrange(1, most) for name in ("cpu", "memory") if rng.random() < 0.6}

    parents = {"a": "root", "a-1": "a", "a-2": "a", "b": "root", "shut": "root", "in-order": "root"}
    queues = [
        QueueRecord(
            name,
            weight=rng.randrange(1, 4),
            parent=parents.get(name, ""),
            capability=ResourceList.of(limit(60)) if name != "root" else NOTHING,
            state="Closed" if name == "shut" else "Open",
            fifo=name == "in-order",
        )
        for name in QUEUES
    ]
    jobs, tasks = [], []
    for name in NAMES[: rng.choice((5, 40, 260))]:
        least = {"cpu": 1000.0 * rng.choice((0, 1, 2, 8)), "memory": 1000.0 * rng.choice((1, 2, 40)), "pods": 9.0}
        running = rng.random() < 0.1
        jobs.append(
            a_job(
                name,
                namespace=rng.choice(("ns", "other")),
                queue=rng.choice((*QUEUES[2:], "missing")),
                min_available=1,
                min_resources=None if rng.random() < 0.1 else least,
                priority=rng.randrange(3),
                creation=-float(rng.randrange(10)),
                waiting_time=rng.choice((None, None, 5.0)),
                phase="Running" if running else rng.choice(("Pending", "Pending", "Pending", "Inqueue")),
            )
        )
        if running:
            key = jobs[-1].key
            shape = a_shape(cpu=1, memory=1000)
            tasks.append(
                a_task(f"{name}-0", shape, job=name, namespace=key.namespace, status=TaskStatus.RUNNING, node="n1")
            )
    store = World((a_node(cpu=64, memory=60_000),), tuple(queues), tuple(jobs), tuple(tasks)).store()
    if rng.random() < 0.7:
        hard = {"cpu": 1000.0 * rng.randrange(1, 20)}
        store.facts.set_quota(QuotaRecord("ns", "quota", hard, {"cpu": 0.0}))
    return store


def run(store: ClusterStore, tiers: str) -> Session:
    plugins = [[Sla(SlaArgs(5.0)) if one is Sla else one() for one in tier] for tier in TIERS[tiers]]
    ssn = a_session(store, tiers=plugins, actions=frozenset({"enqueue"}))
    enqueue(ssn)
    return ssn


def names(ssn: Session) -> list[str]:
    return sorted(key.name for key in ssn.state.outcome.enqueued)


@pytest.mark.parametrize("tiers", TIERS)
@pytest.mark.parametrize("seed", range(12))
def test_the_same_jobs_are_enqueued_as_if_each_had_a_turn(
    seed: int, tiers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = a_cluster(Random(f"{seed} {tiers}"))
    found = run(store, tiers)
    with monkeypatch.context() as patch:
        patch.setattr(combine, "rejections", lambda _, jobs, *others: (np.full(len(jobs), -1), []))
        turned = run(store, tiers)

    assert names(found) == names(turned)
    assert found.state.outcome.blocked.keys() == turned.state.outcome.blocked.keys()
    assert found.state.outcome.refusals.keys() == turned.state.outcome.refusals.keys()
    assert found.state.report.jobs_refused == turned.state.report.jobs_refused

    jobs, waiting = found.state.jobs, found.state.outcome.blocked
    rows = np.array([row for row in waiting if jobs.has_min_resources[row]], dtype=np.intp)
    places, reasons = found.hooks.enqueue_refusals(rows)
    queues = list(found.state.queues.values())
    for row, place in zip(rows.tolist(), places.tolist(), strict=True):
        queue = queues[found.state.queue_of_job[row]].record
        if place >= 0 and queue.open and not queue.fifo:
            assert reasons[place] == found.hooks.enqueue_refusal(found.state.job(row))
            assert found.state.outcome.refusals[jobs.record(row).key] == waiting[row].text


def test_jobs_without_a_turn_are_told_what_holds_when_all_others_are_enqueued() -> None:
    """At first only the CPUs of the cluster are too few for ``big``; ``wide`` then takes its memory."""
    big, wide = ({"cpu": cpu, "memory": memory} for cpu, memory in ((90_000.0, 30_000.0), (1000.0, 60_000.0)))
    jobs = (a_job("big", min_resources=big, phase="Pending"), a_job("wide", min_resources=wide, phase="Pending"))
    found = run(World((a_node(cpu=64, memory=60_000),), jobs=jobs).store(), "overcommit")

    assert names(found) == ["wide"]
    assert list(found.state.outcome.refusals.values()) == [
        "resource in cluster is overused: overused cpu, overused memory"
    ]


def test_a_queue_whose_jobs_are_all_refused_keeps_its_place_among_the_others() -> None:
    """Branches a and b hold the same share, and the full queue a1 was created first: so branch a has the next turn."""
    branch, leaf = {"deserved": {"cpu": 8}}, {"deserved": {"cpu": 4}}
    queues = (
        a_queue("root"),
        a_queue("a", "root", **branch),
        a_queue("b", "root", **branch),
        a_queue("a1", "a", capability={"cpu": 1}, creation=1.0, **leaf),
        a_queue("b1", "b", creation=2.0, **branch),
        a_queue("a2", "a", creation=3.0, **leaf),
    )
    asked = {"ja1": ("a1", 1000.0), "jb1": ("b1", 6000.0), "ja2": ("a2", 6000.0)}
    jobs = tuple(
        a_job(name, queue=queue, phase="Pending", min_resources={"cpu": cpu}) for name, (queue, cpu) in asked.items()
    )
    running = {"ra": "a1", "rb": "b1"}
    jobs += tuple(
        a_job(name, queue=queue, phase="Running", min_resources={"cpu": 1000.0}) for name, queue in running.items()
    )
    tasks = tuple(
        a_task(f"{name}-0", a_shape(cpu=1), job=name, status=TaskStatus.RUNNING, node="n1") for name in running
    )
    store = World((a_node(cpu=10, memory="64Gi"),), queues, jobs, tasks).store()

    assert names(run(store, "overcommit and tree")) == ["ja2"]


def test_a_plugin_that_failed_to_open_is_not_asked_about_many_jobs() -> None:
    class Late(Overcommit):
        name = "late"

        def on_session_open(self, ssn: State) -> None:
            super().on_session_open(ssn)
            raise RuntimeError("quota server down")

    job = a_job("j", min_resources={"cpu": 99_000.0}, phase="Pending")
    ssn = a_session(World((a_node(),), jobs=(job,)), Late(), actions=frozenset({"enqueue"}))
    enqueue(ssn)
    assert [reason.code for reason in ssn.state.outcome.skipped.values()] == ["plugin-failed"]
    assert not ssn.state.outcome.refusals


def test_a_plugin_that_takes_back_a_certain_refusal_costs_no_job_its_turn() -> None:
    class Fickle(Plugin, JobEnqueueable):
        name = "fickle"
        asked = 0

        def job_enqueueable(self, job: JobInfo) -> Vote:
            return Vote.PERMIT

        def enqueueable_jobs(self, jobs: Rows) -> Votes:
            self.asked += 1
            answer = Reason("fickle", "no", "no") if self.asked == 1 else Vote.ABSTAIN
            return Votes(np.zeros(len(jobs), dtype=np.int64), [answer])

    store = World((a_node(),), jobs=(a_job("j", min_resources={"cpu": 1.0}, phase="Pending"),)).store()
    ssn = a_session(store, Fickle(), actions=frozenset({"enqueue"}))
    enqueue(ssn)
    assert names(ssn) == ["j"]


WRONG_PLACES: list[Any] = [[0], *map(np.array, ([0, 0], [0.0], [False], [-2], [1]))]
"""Of one job, whose plugin has one answer."""


@pytest.mark.parametrize("answer", [None, "nonsense", *(Votes(places, [Vote.REJECT]) for places in WRONG_PLACES)])
def test_a_job_is_put_to_the_vote_if_a_plugin_has_no_good_answer_for_many(answer: Any) -> None:
    class Wrong(Plugin, JobEnqueueable):
        name = "wrong"

        def job_enqueueable(self, job: JobInfo) -> Vote:
            return Vote.ABSTAIN

        def enqueueable_jobs(self, jobs: Rows) -> Any:
            return answer

    store = World((a_node(),), jobs=(a_job("j", min_resources={"cpu": 1.0}, phase="Pending"),)).store()
    ssn = a_session(store, Wrong(), actions=frozenset({"enqueue"}))
    enqueue(ssn)
    assert names(ssn) == ["j"]
    assert bool(ssn.state.report.failures) == (answer is not None)
