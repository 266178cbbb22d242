"""Invariants that look inside programs: a bug is planted in the system, and a run of a few seconds finds it."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.simulation import objects
from tests.simulation.fabricated import EMPTY
from tests.simulation.invariants.caches import CacheIsShown
from tests.simulation.plan import Plan, Strike, Work
from tests.simulation.world import World, simulate
from volcano_py.daemon.cycle_loop import CycleLoop
from volcano_py.effects.backpressure import BindBackpressure
from volcano_py.kube.delivery import Delivery
from volcano_py.kube.reflector import Reflector
from volcano_py.snapshot.store import ClusterStore

WORK = Work(0, 0.5, "gang", 2, 2, "1", "default")
VANISHES = Strike(0, 4.0, "pod vanishes")
PLAN = replace(EMPTY, work=(WORK,), strikes=(VANISHES,))
LOST = replace(PLAN, work=(replace(WORK, kind="single"),))
"""The pod that vanishes is not created again."""
READ_AS_GONE = replace(
    EMPTY,
    size=replace(EMPTY.size, length_s=40.0),
    work=(replace(WORK, deleted_after_s=3.0),),
    strikes=(Strike(0, 0.3, "gone as it is read", lasts_s=40.0),),
)
"""The pods are deleted while the watch stalls; the scheduler reads them when their binds are overdue."""

Plant = Callable[[pytest.MonkeyPatch], None]


def found(plan: Plan) -> set[str]:
    """Return the invariants that a run violates."""
    return {violation.invariant for violation in simulate(plan).violations}


def phantom(patch: pytest.MonkeyPatch) -> None:
    """A pod that is deleted stays in the store."""
    patch.setattr(ClusterStore, "remove_task", lambda self, uid: None)


def stale(patch: pytest.MonkeyPatch) -> None:
    """Changes of a PodGroup that is known are not taken over."""
    set_job = ClusterStore.set_job

    def set_once(self: ClusterStore, record: Any) -> None:
        if self.job(record.key) is None:
            set_job(self, record)

    patch.setattr(ClusterStore, "set_job", set_once)


def deaf(patch: pytest.MonkeyPatch) -> None:
    """Deletions of pods are not delivered."""
    delete = Delivery.delete

    def heard(self: Delivery[Any], obj: Any, received_at: float) -> None:
        if self._resource != objects.PODS:
            delete(self, obj, received_at)

    patch.setattr(Delivery, "delete", heard)


def unanswered(patch: pytest.MonkeyPatch) -> None:
    """Binds that have ended still count as under way."""
    patch.setattr(BindBackpressure, "leave", lambda self, binds=1: None)


def asleep(patch: pytest.MonkeyPatch) -> None:
    """No change wakes the cycle."""
    patch.setattr(CycleLoop, "_on_change", lambda self, changes: None)


def leak(patch: pytest.MonkeyPatch) -> None:
    """Every attempt to watch leaves a task behind."""
    attempt = Reflector._try

    async def leaking(self: Reflector[Any]) -> float | None:
        asyncio.create_task(asyncio.sleep(1e6), name="left over")  # noqa: RUF006 - the loop keeps it
        return await attempt(self)

    patch.setattr(Reflector, "_try", leaking)


def restless(patch: pytest.MonkeyPatch) -> None:
    """Something is written every ten seconds, for ever."""
    heal = World._heal

    def write(world: World, number: int) -> None:
        world.servers.create(objects.priority_class(f"class-{number}", number))
        world.loop.call_later(10.0, write, world, number + 1)

    def healed(world: World) -> None:
        heal(world)
        write(world, 1)

    patch.setattr(World, "_heal", healed)


def forgetful(patch: pytest.MonkeyPatch) -> None:
    """The end of each list makes a watch forget one object."""
    end = Delivery.end_list

    def ended(self: Delivery[Any], received_at: float) -> None:
        again = self.events > 0
        end(self, received_at)
        if self._resource == objects.NODES and again:
            self._drop(next(iter(self._versions)), None, received_at, listed=True)
            self.flush()

    patch.setattr(Delivery, "end_list", ended)


def test_a_run_without_a_bug_violates_nothing() -> None:
    assert not found(PLAN)


@pytest.mark.parametrize(
    ("plant", "invariant"),
    [
        (phantom, "the cache is what was shown"),
        (stale, "cache is true"),
        (unanswered, "nothing is under way"),
        (asleep, "nothing left to decide"),
        (leak, "tasks are bounded"),
        (restless, "rest"),
    ],
)
def test_a_planted_bug_is_found(monkeypatch: pytest.MonkeyPatch, plant: Plant, invariant: str) -> None:
    plant(monkeypatch)
    assert invariant in found(PLAN)


def test_a_deletion_that_is_not_delivered_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not found(LOST)
    deaf(monkeypatch)
    assert "watches are up to date" in found(LOST)


def test_a_watch_that_forgets_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    forgetful(monkeypatch)
    cut = Strike(1, 3.0, "watch expired", target=objects.NODES, amount=1.0)
    again = Strike(2, 4.5, "watch expired", target=objects.NODES, amount=1.0)
    assert "nothing is forgotten" in found(replace(PLAN, strikes=(cut, again)))


def test_a_pod_that_was_read_as_gone_may_leave_the_cache_before_its_watch_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert not found(READ_AS_GONE)
    monkeypatch.setattr(CacheIsShown, "answered", lambda *_: None)
    assert "the cache is what was shown" in found(READ_AS_GONE)
