"""What is kept from cycle to cycle to spare work makes no difference: any cycle may begin without it."""

from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from tests.scheduler.histories import CONFIGURATIONS, History
from volcano_py.framework.state.static_filter_cache import StaticFilterCache
from volcano_py.model.objects import JobKey
from volcano_py.scheduler.telling import Telling
from volcano_py.snapshot.domains import DomainStore

CYCLES = 15


def drop_caches(history: History) -> None:
    """Forget all that a scheduler keeps to spare work, and what its store keeps from snapshot to snapshot."""
    history.memory = history.memory.without_caches()
    history.policy = replace(history.policy, static_filters=StaticFilterCache())
    store: Any = history.cluster.cache.store
    store.nodes._statics = store.nodes._port_sets = None
    store.facts._frozen = store.facts._tree = None
    store.loads._made = store._roles._frozen = None
    store._domains = DomainStore()


@pytest.mark.parametrize(
    ("seed", "configuration"),
    [
        *((seed, configuration) for configuration in CONFIGURATIONS for seed in range(2)),
        # Queues that were full at the end of allocate and no longer after evictions.
        (314, "capacity: allocate, preempt"),
        (411, "capacity: enqueue, allocate, backfill, preempt, reclaim"),
    ],
)
def test_a_cycle_without_caches_decides_and_remembers_the_same(seed: int, configuration: str) -> None:
    assert first_difference(seed, configuration) is None


def test_a_cache_that_hides_what_differs_makes_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Telling, "_find_changed", lambda self: np.zeros(self._n, dtype=bool))

    assert first_difference(0, CONFIGURATIONS[0]) is not None


def first_difference(seed: int, configuration: str) -> str | None:
    """Run a history with everything kept, and one that drops it in random cycles; return how they first differ."""
    kept, dropping, rng = History(seed, configuration), History(seed, configuration), Random(seed)
    for number in range(CYCLES):
        for history in (kept, dropping):
            history.step()
        if rng.random() < 0.5:
            drop_caches(dropping)
        decided, anew = kept.cycle(), dropping.cycle()
        if decided != anew:
            return f"cycle {number} decides {decided}, and without caches {anew}"
        if kept.memory != dropping.memory:
            return f"cycle {number} remembers {kept.memory}, and without caches {dropping.memory}"
    return None


@pytest.mark.parametrize("configuration", CONFIGURATIONS[1::3])
def test_nothing_that_is_kept_differs_when_it_is_found_anew_and_that_changes_no_decision(configuration: str) -> None:
    plain, verified = History(7, configuration), History(7, configuration, verify_every=1)
    jobs = 0
    for number in range(CYCLES):
        for history in (plain, verified):
            history.step()
        assert plain.cycle() == verified.cycle(), number
        assert plain.memory == verified.memory, number
        assert plain.report.repeats_until == verified.report.repeats_until, number
        assert verified.report.differences == [], number
        assert plain.report.jobs_verified == 0
        jobs += verified.report.jobs_verified
    assert jobs


def test_a_cycle_that_overlooks_what_differs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    history = History(3, CONFIGURATIONS[0], verify_every=1)
    history.cycle()
    monkeypatch.setattr(Telling, "_find_changed", lambda self: np.zeros(self._n, dtype=bool))

    about = found(history)

    assert {"status", "report"} <= about
    assert any(one.startswith("condition of pod") for one in about)


def test_kept_answers_about_nodes_that_are_wrong_are_found() -> None:
    history, _ = many_wait(verify_every=1)

    answer_that_no_node_will_do(history)
    history.cycle()

    assert {one.about for one in history.report.differences} >= {"turn"}
    assert history.report.tasks_placed == 0  # decisions stay as they would be


def test_each_job_has_its_turn_to_be_verified() -> None:
    history, jobs = many_wait(verify_every=10)
    history.now += 60.0  # their pods do not count as still arriving any more
    n = len(history.memory.texts.keys)
    about: list[set[tuple[JobKey, str]]] = []
    for _ in range(n + 2):
        told = history.memory.told
        assert told is not None
        reports = {key: structs.replace(report, message="something else") for key, report in told.reports.items()}
        history.memory = replace(history.memory, told=replace(told, reports=reports))
        answer_that_no_node_will_do(history)
        history.cycle()
        about.append({(one.job, one.about) for one in history.report.differences})
        assert history.report.jobs_verified <= 9

    about = about[2:]  # the first cycles tell about all
    assert {job for job, what in set().union(*about[: n // 8 + 1]) if what == "report"} >= jobs
    assert {job for job, what in set().union(*about) if what == "turn"} >= jobs


def many_wait(*, verify_every: int) -> tuple[History, set[JobKey]]:
    """Return a history and jobs that wait though nodes are free, as soon as kept answers about nodes are wrong."""
    history = History(1, CONFIGURATIONS[0], verify_every=verify_every)
    keys = {history.add_job(cpu="500m") for _ in range(90)}
    history.cycle()
    history.let_all_end()
    jobs = keys & set(history.report.jobs)
    assert len(jobs) > 40
    return history, jobs


def answer_that_no_node_will_do(history: History) -> None:
    """Make the kept answers about nodes wrong."""
    for kept in history.policy.static_filters._kept.values():
        kept.answers = np.ones_like(kept.answers)


def found(history: History) -> set[str]:
    """Return what differences are about, over some cycles."""
    about = set()
    for _ in range(CYCLES):
        history.step()
        history.cycle()
        about |= {one.about for one in history.report.differences}
    return about
