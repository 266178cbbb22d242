"""What plugins say of victims on crowded clusters, against a walk over the candidates of each node."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from tests.framework.sessions import a_session
from tests.reference import victim_votes
from tests.reference.busy import STANDING, busy_world
from tests.reference.victim_votes import Candidate
from tests.reference.world import World
from volcano_py.framework.contract.extension_points import Preemptor, Purpose
from volcano_py.framework.contract.victim_candidates import VictimCandidates
from volcano_py.framework.session import Session
from volcano_py.model.statuses import READY_STATUSES
from volcano_py.plugins.drf import Drf
from volcano_py.plugins.gang import Gang
from volcano_py.plugins.priority import Priority
from volcano_py.plugins.proportion import Proportion

WORLDS = range(60)


def amounts(ssn: Session, vector: np.ndarray) -> dict[str, float]:
    return dict(zip(ssn.state.resources.names, vector.tolist(), strict=True))


def preemptors(ssn: Session) -> list[Preemptor]:
    """Return a claim for one waiting task of every job that has any."""
    found = []
    for row in ssn.state.jobs.present().tolist():
        tasks, queue = ssn.hooks.pending.of(row), ssn.state.queues.get(ssn.state.jobs.record(row).queue)
        if len(tasks) and queue is not None:
            task = int(tasks[0])
            info = ssn.state.task_of(int(ssn.state.tasks.shape[task]))
            found.append(
                Preemptor(Purpose.PREEMPT, ssn.state.job(row), queue, info, int(ssn.state.tasks.priority[task]))
            )
    return found


def everybody(ssn: Session) -> VictimCandidates:
    return ssn.eviction.all.only(ssn.eviction.all.queues >= 0)


def by_node(ssn: Session, candidates: VictimCandidates) -> list[list[Candidate]]:
    lists: dict[int, list[Candidate]] = {}
    for row, node in zip(candidates.rows.tolist(), candidates.groups.tolist(), strict=True):
        job = ssn.state.jobs.record(int(ssn.state.tasks.job[row]))
        request = amounts(ssn, ssn.state.classes.requests[:, ssn.state.tasks.shape[row]])
        role = ssn.state.tasks.record(row).role
        one = Candidate(str(job.key), job.queue, int(ssn.state.tasks.priority[row]), request, role)
        lists.setdefault(node, []).append(one)
    return list(lists.values())


def expected(ssn: Session, candidates: VictimCandidates, rule: Callable[[list[Candidate]], list[bool]]) -> list[bool]:
    return [answer for one in by_node(ssn, candidates) for answer in rule(one)]


def of_jobs(ssn: Session, value: Callable[[int], Any]) -> Mapping[str, Any]:
    return {str(ssn.state.jobs.record(row).key): value(row) for row in ssn.state.jobs.present().tolist()}


def with_roles(number: int) -> World:
    """Return a crowded cluster of small minimums, in which jobs have roles of which some have a minimum, too."""
    random, world = Random(number), busy_world(number)
    jobs = [
        replace(
            job,
            min_available=min(job.min_available, 3),
            task_min_available=random.choice(({}, {"a": 1}, {"a": 2, "b": 1})),
        )
        for job in world.jobs
    ]
    tasks = [
        replace(
            task,
            record=structs.replace(task.record, role=random.choice("abc")),
            status=random.choice(STANDING),
            node=random.choice(world.nodes).name,
        )
        for task in world.tasks
    ]
    return replace(world, jobs=tuple(jobs), tasks=tuple(tasks))


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("world", [busy_world, with_roles])
@pytest.mark.parametrize("number", WORLDS)
def test_gang_permits_tasks_beyond_the_minimum(number: int, world: Callable[[int], World], together: bool) -> None:
    ssn = a_session(world(number), plugin := Gang())
    candidates = everybody(ssn).together() if together else everybody(ssn)
    ready = of_jobs(ssn, lambda row: ssn.state.job(row).ready_count)
    minimum = of_jobs(ssn, lambda row: ssn.state.job(row).min_available)
    of_roles = of_jobs(ssn, lambda row: ssn.state.job(row).role_counts(READY_STATUSES, best_effort=True))
    minimums = of_jobs(ssn, lambda row: ssn.state.jobs.record(row).role_rule)
    rule = expected(ssn, candidates, lambda one: victim_votes.gang(one, ready, minimum, of_roles, minimums))

    for preemptor in preemptors(ssn):
        assert plugin.preemptable(preemptor, candidates).tolist() == rule
        assert plugin.reclaimable(preemptor, candidates).tolist() == rule


@pytest.mark.parametrize("number", WORLDS)
def test_priority_permits_tasks_of_lower_priority(number: int) -> None:
    ssn = a_session(busy_world(number), plugin := Priority())
    candidates = everybody(ssn)
    jobs = of_jobs(ssn, lambda row: ssn.state.jobs.record(row).priority)

    for preemptor in preemptors(ssn):
        key, own = str(preemptor.job.key), preemptor.priority
        rule = expected(ssn, candidates, lambda one, key=key, own=own: victim_votes.priority(one, jobs, key, own))  # type: ignore[misc]
        assert plugin.preemptable(preemptor, candidates).tolist() == rule


@pytest.mark.parametrize("number", WORLDS)
def test_drf_permits_tasks_whose_job_keeps_a_greater_share(number: int) -> None:
    ssn = a_session(busy_world(number), plugin := Drf())
    candidates = everybody(ssn)
    taken = of_jobs(ssn, lambda row: amounts(ssn, ssn.state.jobs.taken[:, row]))
    total = amounts(ssn, ssn.state.total)

    for preemptor in preemptors(ssn):
        assert preemptor.task is not None
        key, asked = str(preemptor.job.key), amounts(ssn, preemptor.task.request)
        rule = expected(
            ssn,
            candidates,
            lambda one, key=key, asked=asked: victim_votes.drf(one, taken, total, key, asked),  # type: ignore[misc]
        )
        answer = plugin.preemptable(preemptor, candidates)
        assert answer is not None
        assert answer.tolist() == rule


@pytest.mark.parametrize("number", WORLDS)
def test_proportion_permits_tasks_of_queues_above_their_deserved_share(number: int) -> None:
    ssn = a_session(busy_world(number), plugin := Proportion())
    candidates = everybody(ssn)
    assert ssn.state.accounts.queues is not None
    rows = {name: queue.row for name, queue in ssn.state.queues.items()}
    taken = {name: amounts(ssn, ssn.state.accounts.queues.taken[:, row]) for name, row in rows.items()}
    deserved = {name: amounts(ssn, plugin._deserved[:, row]) for name, row in rows.items()}
    rule = expected(ssn, candidates, lambda one: victim_votes.proportion(one, taken, deserved))

    for preemptor in preemptors(ssn):
        assert plugin.reclaimable(preemptor, candidates).tolist() == rule


def test_the_random_clusters_exercise_every_answer() -> None:
    answers: set[tuple[str, bool]] = set()
    for number in WORLDS:
        plugins = {"gang": Gang(), "priority": Priority(), "drf": Drf()}
        ssn = a_session(busy_world(number), *plugins.values())
        for preemptor in preemptors(ssn):
            for name, plugin in plugins.items():
                said = plugin.preemptable(preemptor, everybody(ssn))
                answers |= {(name, bool(answer)) for answer in said.tolist()}  # type: ignore[union-attr]

    assert answers == {(name, answer) for name in ("gang", "priority", "drf") for answer in (True, False)}
