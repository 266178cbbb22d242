"""One turn per name, again after errors, bounded, nothing lost."""

import asyncio
import itertools
import random

import pytest

from tests.kube.working import BUSY, NO_CLASS, REFUSED, a_workqueue, settle
from volcano_py.kube.workqueue import WorkQueue
from volcano_py.runtime.clock import FakeClock


async def test_a_name_added_many_times_has_one_turn() -> None:
    turns: list[str] = []

    async def reconcile(key: str) -> None:
        turns.append(key)

    async with a_workqueue(reconcile) as queue:
        for _ in range(5):
            queue.add("a")
        await settle()

    assert turns == ["a"]


async def test_a_name_added_during_its_turn_has_another_one_after_it() -> None:
    begun, go_on = 0, asyncio.Event()

    async def reconcile(key: str) -> None:
        nonlocal begun
        begun += 1
        await go_on.wait()

    async with a_workqueue(reconcile) as queue:
        queue.add("a")
        await settle()
        queue.add("a")
        queue.add("a")
        await settle()
        during = begun
        go_on.set()
        await settle()

    assert (during, begun) == (1, 2)


async def test_different_names_are_worked_on_together() -> None:
    working: set[str] = set()

    async def reconcile(key: str) -> None:
        working.add(key)
        await asyncio.Event().wait()

    async with a_workqueue(reconcile) as queue:
        queue.add("a")
        queue.add("b")
        await settle()

    assert working == {"a", "b"}


async def test_an_error_means_another_turn_after_a_pause_that_grows() -> None:
    clock, turns = FakeClock(), []

    async def reconcile(key: str) -> None:
        turns.append(clock.monotonic())
        if len(turns) < 4:
            raise REFUSED

    async with a_workqueue(reconcile, clock, first_retry_s=1.0) as queue:
        queue.add("a")
        for _ in range(200):
            await settle()
            clock.advance(0.1)
        backlog = queue.backlog

    pauses = [after - before for before, after in itertools.pairwise(turns)]
    assert len(turns) == 4
    assert backlog == 0
    for pause, base in zip(pauses, [1, 2, 4], strict=True):
        assert 0.5 * base <= pause <= 1.5 * base + 0.2


async def test_a_change_does_not_shorten_the_pause_and_costs_no_turn_of_its_own() -> None:
    clock, turns = FakeClock(), []

    async def reconcile(key: str) -> None:
        turns.append(clock.monotonic())
        if len(turns) == 1:
            raise BUSY

    async with a_workqueue(reconcile, clock) as queue:
        queue.add("a")
        for _ in range(320):
            await settle()
            clock.advance(0.1)
            if clock.monotonic() < 30:
                queue.add("a")
                queue.add_later("a", 0.5)
        backlog = queue.backlog

    assert turns[0] == 0
    assert len(turns) == 2
    assert 30 <= turns[1] < 30.2
    assert backlog == 0


async def test_a_change_during_a_turn_that_fails_waits_for_the_end_of_the_pause() -> None:
    clock, begun, go_on = FakeClock(), [], asyncio.Event()

    async def reconcile(key: str) -> None:
        begun.append(clock.monotonic())
        await go_on.wait()
        if len(begun) == 1:
            raise BUSY

    async with a_workqueue(reconcile, clock) as queue:
        queue.add("a")
        await settle()
        queue.add("a")
        go_on.set()
        for _ in range(320):
            await settle()
            clock.advance(0.1)

    assert len(begun) == 2
    assert begun[1] >= 30


async def test_a_change_waits_no_longer_than_the_common_cap_however_often_the_name_failed() -> None:
    clock, turns = FakeClock(), []

    async def reconcile(key: str) -> None:
        turns.append(clock.monotonic())
        raise REFUSED

    async with a_workqueue(reconcile, clock, attempts=1000) as queue:
        queue.add("a")
        for _ in range(3000):
            await settle()
            clock.advance(0.1)

    assert max(after - before for before, after in itertools.pairwise(turns)) <= 1.5 * 10 + 0.2


async def test_a_name_that_was_given_up_and_is_added_waits_for_the_end_of_its_pause_and_has_all_attempts_again() -> (
    None
):
    clock, turns, told = FakeClock(), [], []

    async def reconcile(key: str) -> None:
        turns.append(clock.monotonic())
        raise BUSY

    more = {"on_given_up": lambda key, error: told.append(clock.monotonic())}
    async with a_workqueue(reconcile, clock, more=more, attempts=2) as queue:
        queue.add("a")
        for _ in range(1300):
            await settle()
            clock.advance(0.1)
            if told:
                queue.add("a")

    assert len(turns) == 5
    assert all(after - before >= 30 for before, after in itertools.pairwise(turns))
    assert told == turns[1::2]


@pytest.mark.parametrize("attempts", [15, 5], ids=["it-pauses", "it-was-given-up"])
async def test_a_refused_name_has_its_turn_at_once_when_what_it_names_has_appeared(attempts: int) -> None:
    clock, turns, there = FakeClock(), [], False

    async def reconcile(key: str) -> None:
        turns.append(clock.monotonic())
        if not there:
            raise NO_CLASS

    async with a_workqueue(reconcile, clock, first_retry_s=1.0, retry_cap_s=60.0, attempts=attempts) as queue:
        queue.add("a")
        while len(turns) < 5:
            await settle()
            clock.advance(0.1)
        clock.advance(2.0)
        there, before = True, len(turns)
        queue.excuse()
        await settle()

        assert len(turns) == before + 1
        assert queue.backlog == 0


async def test_an_excuse_is_none_for_a_server_that_fails() -> None:
    clock, turns = FakeClock(), 0

    async def reconcile(key: str) -> None:
        nonlocal turns
        turns += 1
        raise REFUSED

    async with a_workqueue(reconcile, clock, first_retry_s=10.0) as queue:
        queue.add("a")
        await settle()
        clock.advance(4.0)
        queue.excuse()
        await settle()

    assert turns == 1


async def test_excused_names_that_do_not_fit_come_back_through_the_refill() -> None:
    clock, going, turns, there = FakeClock(), asyncio.Event(), [], False

    async def reconcile(key: str) -> None:
        if key == "refused" and not there:
            raise NO_CLASS
        await going.wait()
        turns.append(key)

    more = {"refill": lambda: ["refused"]}
    async with a_workqueue(reconcile, clock, capacity=2, workers=1, attempts=1, more=more) as queue:
        queue.add("refused")
        await settle()
        for name in ("a", "b", "c"):
            queue.add(name)
            await settle()
        there = True
        clock.advance(1.0)
        queue.excuse()
        fitted = len(queue._queue)
        going.set()
        await settle()

    assert fitted == 2
    assert "refused" in turns


async def test_after_so_many_errors_a_name_is_given_up_and_said_so() -> None:
    clock, turns, told = FakeClock(), 0, []

    async def reconcile(key: str) -> None:
        nonlocal turns
        turns += 1
        raise REFUSED

    more = {"on_given_up": lambda key, error: told.append((key, error))}
    async with a_workqueue(reconcile, clock, more=more, attempts=3, first_retry_s=1.0) as queue:
        queue.add("a")
        for _ in range(100):
            await settle()
            clock.advance(0.5)
        backlog = queue.backlog

    assert (turns, backlog) == (3, 0)
    assert told == [("a", REFUSED)]


async def test_names_that_did_not_fit_are_requested_once_there_is_room() -> None:
    needed = {f"k{number}" for number in range(10)}
    go_on = asyncio.Event()

    async def reconcile(key: str) -> None:
        await go_on.wait()
        needed.discard(key)

    async with a_workqueue(reconcile, capacity=4, more={"refill": lambda: sorted(needed)}) as queue:
        fitted = [queue.add(key) for key in sorted(needed)]
        go_on.set()
        for _ in range(5):
            await settle()

    assert fitted.count(False) == 6
    assert needed == set()


async def test_each_of_more_names_than_fit_gets_its_turn_although_all_are_asked_for_each_time() -> None:
    names = [f"k{number:02}" for number in range(50)]
    turns: list[str] = []

    async def reconcile(key: str) -> None:
        turns.append(key)

    async with a_workqueue(reconcile, capacity=4, more={"refill": lambda: names}) as queue:
        for key in names:
            queue.add(key)
        for _ in range(20):
            await settle()

    assert set(turns) == set(names)
    assert len(turns) <= 2 * len(names)


async def test_a_change_that_did_not_fit_during_a_refill_gets_its_turn() -> None:
    names = [f"k{number:02}" for number in range(20)]
    turns: list[str] = []

    async def reconcile(key: str) -> None:
        turns.append(key)
        if key == "k10" and turns.count("k10") == 1:
            for name in names[:8]:
                queue.add(name)

    async with a_workqueue(reconcile, capacity=4, workers=1, more={"refill": lambda: names}) as queue:
        for key in names:
            queue.add(key)
        for _ in range(20):
            await settle()

    after = turns[turns.index("k10") :]
    assert set(names[:8]) <= set(after)


async def test_turns_that_wait_for_nothing_leave_time_for_others() -> None:
    turns = 0

    async def reconcile(key: str) -> None:
        nonlocal turns
        turns += 1

    async with a_workqueue(reconcile) as queue:
        for number in range(1000):
            queue.add(f"k{number}")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert turns < 10


async def test_names_that_need_work_are_asked_for_now_and_then() -> None:
    clock, turns = FakeClock(), []

    async def reconcile(key: str) -> None:
        turns.append(key)

    async with a_workqueue(reconcile, clock, more={"refill": lambda: ["forgotten"]}, refill_every_s=60):
        await settle()
        before = list(turns)
        clock.advance(61)
        await settle()

    assert (before, turns) == ([], ["forgotten"])


async def test_drained_says_whether_all_work_is_done_in_time() -> None:
    clock, go_on = FakeClock(), asyncio.Event()

    async def reconcile(key: str) -> None:
        await go_on.wait()

    async def advance() -> None:
        while True:
            await settle()
            clock.advance(0.05)

    async with a_workqueue(reconcile, clock) as queue:
        queue.add("a")
        time_passes = asyncio.create_task(advance())
        early = await queue.drained(1.0)
        go_on.set()
        late = await queue.drained(1.0)
        time_passes.cancel()

    assert (early, late) == (False, True)


async def test_a_turn_asked_for_later_comes_once_and_not_before() -> None:
    clock, turns = FakeClock(), []

    async def reconcile(key: str) -> None:
        turns.append(key)

    async with a_workqueue(reconcile, clock) as queue:
        for _ in range(3):
            queue.add_later("a", 1.0)
        await settle()
        before = list(turns)
        clock.advance(1.1)
        await settle()

    assert (before, turns) == ([], ["a"])


async def test_an_immediate_turn_does_not_wait_for_a_later_one() -> None:
    clock, turns = FakeClock(), []

    async def reconcile(key: str) -> None:
        turns.append(key)

    async with a_workqueue(reconcile, clock) as queue:
        queue.add_later("a", 1.0)
        queue.add("a")
        await settle()
        at_once = list(turns)
        clock.advance(2)
        await settle()

    assert (at_once, turns) == (["a"], ["a"])


async def test_a_name_added_while_another_pauses_has_its_turn_at_once() -> None:
    turns: list[str] = []

    async def reconcile(key: str) -> None:
        turns.append(key)
        if key == "busy":
            raise BUSY

    async with a_workqueue(reconcile, workers=1) as queue:
        queue.add("busy")
        await settle()
        queue.add("a")
        await settle()

    assert turns == ["busy", "a"]


async def test_adding_a_waiting_name_does_not_grow_the_heap() -> None:
    queue = WorkQueue("test", lambda _: asyncio.sleep(0), clock=FakeClock(), rng=random.Random(1))

    for number in range(10_000):
        queue.add_later("a", 10_000 - number)
        queue.add("b")

    assert queue.backlog == 2


async def test_what_is_for_later_is_not_overdue_before_its_time() -> None:
    """A thousand cron jobs that wait for their next start are no sign of a controller that does not keep up."""
    clock, going = FakeClock(), asyncio.Event()

    async def reconcile(key: str) -> None:
        if key == "refused":
            raise REFUSED
        await going.wait()

    async with a_workqueue(reconcile, clock, first_retry_s=1000.0) as queue:
        queue.add_later("later", 60.0)
        overdue = [queue.overdue]
        queue.add("refused")
        overdue.append(queue.overdue)
        await settle()
        overdue.append(queue.overdue)  # it backs off
        clock.advance(60.0)
        overdue.append(queue.overdue)
        await settle()
        overdue.append(queue.overdue)  # has its turn
        queue.add_later("later", 60.0)
        overdue.append(queue.overdue)
        going.set()

    assert overdue == [0, 1, 1, 2, 2, 2]
    assert len(queue._queue.due) <= 2 * 2 + 64


async def test_a_turn_that_takes_too_long_is_ended_and_tried_again() -> None:
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    told: list[str] = []

    async def reconcile(key: str) -> None:
        await asyncio.Event().wait()

    def observe(_: str, result: str) -> None:
        told.append(result)
        ended.set_result(None)

    async with a_workqueue(reconcile, turn_timeout_s=0.01, more={"observe": observe}) as queue:
        queue.add("a")
        async with asyncio.timeout(5):
            await ended
        backlog = queue.backlog

    assert (told, backlog) == (["retried"], 1)
