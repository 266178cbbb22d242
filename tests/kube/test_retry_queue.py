"""Whose turn it is: each key once, none before its back-off has passed."""

import asyncio
import itertools
import random
from collections.abc import Callable

import pytest

from tests.kube.working import advance, settle
from volcano_py.kube import retry_queue
from volcano_py.kube.retry_queue import RetryQueue
from volcano_py.runtime.clock import FakeClock

FIRST_S, CAP_S, LONGEST_S = 0.2, 10.0, 60.0


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def queue(clock: FakeClock) -> RetryQueue[str]:
    return a_retry_queue(clock)


def a_retry_queue(clock: FakeClock, attempts: int = 5) -> RetryQueue[str]:
    return RetryQueue(attempts=attempts, clock=clock, rng=random.Random(1))


async def taken(queue: RetryQueue[str]) -> list[str]:
    """Begin a turn of every key that is due, and return them in their order."""
    keys: list[str] = []

    async def take() -> None:
        while True:
            keys.append(await queue.next())

    task = asyncio.create_task(take())
    await settle()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return keys


async def fail(
    queue: RetryQueue[str],
    key: str,
    retry_after_s: float | None = None,
    *,
    again: bool = True,
    excusable: bool = False,
) -> None:
    assert await taken(queue) == [key]
    queue.failed(key, retry_after_s, again=again, excusable=excusable)
    queue.release(key)


async def test_turns_come_in_the_order_in_which_they_are_due(queue, clock) -> None:
    for key, delay_s in {"c": 0.3, "a": 0.0, "b": 0.0, "late": 9.0, "overdue": -1.0}.items():
        queue.plan(key, delay_s)

    await advance(clock, 1.0)

    assert await taken(queue) == ["overdue", "a", "b", "c"]


async def test_a_key_has_one_turn_for_all_its_plans_at_the_earliest_of_their_times(queue, clock) -> None:
    for delay_s in (3.0, 1.0, 2.0):
        queue.plan("a", delay_s)

    await advance(clock, 0.9)
    assert await taken(queue) == []
    await advance(clock, 0.2)
    assert await taken(queue) == ["a"]
    queue.release("a")
    await advance(clock, 5.0)
    assert await taken(queue) == []


async def test_a_key_that_has_its_turn_has_the_next_one_after_it(queue) -> None:
    queue.plan("a")
    assert await taken(queue) == ["a"]

    queue.plan("a")
    assert await taken(queue) == []
    assert queue.backlog == 1
    queue.succeeded("a")
    queue.release("a")

    assert await taken(queue) == ["a"]


async def test_an_earlier_turn_wakes_a_waiting_worker(queue, clock) -> None:
    queue.plan("late", 60.0)
    turn = asyncio.create_task(queue.next())
    await settle()

    queue.plan("now")
    await settle()

    assert turn.done()
    assert await turn == "now"


async def test_a_turn_may_be_put_off_and_others_that_become_due_first_go_first(queue, clock) -> None:
    late: list[float] = []

    def pause_s(late_s: float) -> float:
        late.append(late_s)
        return 1.0 if len(late) < 3 else 0.0

    queue.plan("a")
    turn = asyncio.create_task(queue.next(pause_s))
    await settle()
    queue.plan("urgent", -5.0)
    await advance(clock, 3.0)

    assert await turn == "urgent"
    assert late == [0, pytest.approx(6), pytest.approx(7)]


async def test_a_failure_means_another_turn_after_the_back_off_that_the_server_asks_for(queue, clock) -> None:
    queue.plan("a")
    await fail(queue, "a", 20.0)

    await advance(clock, 19.9)
    assert await taken(queue) == []
    await advance(clock, 0.2)
    assert await taken(queue) == ["a"]


async def test_a_server_cannot_ask_for_more_than_the_longest_back_off(queue, clock) -> None:
    queue.plan("a")
    await fail(queue, "a", 86400.0)

    await advance(clock, LONGEST_S + 0.1)

    assert await taken(queue) == ["a"]


SHORTENING: dict[str, Callable[[RetryQueue[str]], object]] = {
    "a plan": lambda queue: queue.plan("a"),
    "an overdue plan": lambda queue: queue.plan("a", -100.0),
    "a discard and a plan": lambda queue: (queue.discard("a"), queue.plan("a")),
    "hurry": lambda queue: queue.hurry(),
    "a plan in a hurry": lambda queue: (queue.hurry(), queue.plan("a", 5.0)),
}


@pytest.mark.parametrize("again", [True, False])
@pytest.mark.parametrize("shorten", SHORTENING.values(), ids=SHORTENING)
async def test_nothing_shortens_a_back_off(queue, clock, shorten, again) -> None:
    queue.plan("a")
    await fail(queue, "a", 20.0, again=again)

    for _ in range(19):
        shorten(queue)
        await advance(clock, 1.0)
        assert await taken(queue) == []
    queue.plan("a")
    await advance(clock, 1.1)

    assert await taken(queue) == ["a"]


async def test_an_excuse_ends_the_back_off_of_keys_with_an_excusable_failure(queue, clock) -> None:
    for key, excusable in {"refused": True, "broken": False, "new": True}.items():
        queue.plan(key)
        await fail(queue, key, again=key != "new", excusable=excusable)
        for _ in range(4):
            if key != "new":
                await advance(clock, 15.0)
                await fail(queue, key, excusable=excusable)
    await advance(clock, 0.5)

    excused = queue.excuse()
    for key in excused:
        queue.plan(key)

    assert excused == ["refused", "new"]
    assert await taken(queue) == ["refused", "new"]
    assert queue.excuse() == []


async def test_an_excuse_does_not_shorten_what_the_server_asks_for(queue, clock) -> None:
    queue.plan("a")
    await fail(queue, "a", 20.0, excusable=True)

    for _ in range(19):
        queue.excuse()
        queue.plan("a")
        await advance(clock, 1.0)
        assert await taken(queue) == []
    await advance(clock, 1.1)

    assert await taken(queue) == ["a"]


async def test_an_excuse_during_a_turn_counts_for_its_failure(queue, clock) -> None:
    queue.plan("a")
    for _ in range(5):
        await fail(queue, "a", excusable=True)
        await advance(clock, 15.0)
        queue.plan("a")
    assert await taken(queue) == ["a"]

    queue.excuse()
    pause_s = queue.failed("a", excusable=True)
    queue.release("a")
    await advance(clock, FIRST_S + 0.1)

    assert pause_s == pytest.approx(FIRST_S)
    assert await taken(queue) == ["a"]


async def test_after_an_excuse_in_vain_the_back_off_begins_anew(queue, clock) -> None:
    """Whoever refuses may see later than we do what has appeared."""
    queue.plan("a")
    for _ in range(4):
        await fail(queue, "a", excusable=True)
        await advance(clock, 15.0)
    await fail(queue, "a", excusable=True)
    await advance(clock, 1.0)
    for key in queue.excuse():
        queue.plan(key)

    assert await taken(queue) == ["a"]

    assert queue.failed("a", excusable=True) <= 1.5 * FIRST_S * 2


async def test_an_excuse_gives_back_attempts_with_the_back_off(queue, clock) -> None:
    """With a back-off that begins anew, the attempts that are left would be used up much sooner (seed 22001283)."""
    queue.plan("a")
    for _ in range(4):
        await fail(queue, "a", excusable=True)
        await advance(clock, 15.0)
    for key in queue.excuse():
        queue.plan(key)
    for _ in range(3):  # the first of five is used up, because the excuse may come too early
        await fail(queue, "a", excusable=True)
        await advance(clock, 15.0)
    assert await taken(queue) == ["a"]

    assert queue.failed("a", excusable=True) is None


async def test_a_flood_of_excuses_brings_no_more_turns_than_the_back_off_of_a_new_failure(clock) -> None:
    queue, turns = a_retry_queue(clock, attempts=1000), []
    queue.plan("a")

    for _ in range(1200):
        for key in await taken(queue):
            turns.append(clock.monotonic())
            queue.failed(key, excusable=True)
            queue.release(key)
        for key in queue.excuse():
            queue.plan(key)
        clock.advance(0.1)

    pauses = [after - before for before, after in itertools.pairwise(turns)]
    for number, pause in enumerate(pauses):
        assert pause >= 0.5 * min(FIRST_S * 2**number, CAP_S)
    assert len(turns) <= 25


async def test_an_excuse_that_comes_long_after_others_in_vain_is_as_good_as_the_first(queue, clock) -> None:
    queue.plan("a")
    for _ in range(8):
        await fail(queue, "a", excusable=True, again=False)
        for key in queue.excuse():
            queue.plan(key)
        await advance(clock, 11.0)
    await fail(queue, "a", excusable=True, again=False)
    for _ in range(7):
        await advance(clock, 16.0)
        queue.plan("a")
        await fail(queue, "a", excusable=True, again=False)
    await advance(clock, 2 * FIRST_S)

    for key in queue.excuse():
        queue.plan(key)

    assert await taken(queue) == ["a"]


async def test_an_excuse_reaches_keys_that_were_given_up_long_ago(queue, clock) -> None:
    for key in ("a", "b"):
        queue.plan(key)
        await fail(queue, key, excusable=key == "a", again=False)
    await advance(clock, 200.0)
    queue.plan("c")
    await fail(queue, "c", again=False)
    assert queue.remembered == 1

    assert queue.excuse() == ["a"]
    assert queue.excuse() == []


async def test_a_failure_of_another_kind_does_not_end_the_wait_for_an_excuse(queue, clock) -> None:
    queue.plan("a")
    await fail(queue, "a", excusable=True)
    await advance(clock, 2 * FIRST_S)
    await fail(queue, "a", again=False)  # no answer, for instance

    assert queue.excuse() == ["a"]


async def test_after_a_success_nothing_waits_for_an_excuse(queue, clock) -> None:
    queue.plan("a")
    await fail(queue, "a", excusable=True)
    await advance(clock, 2 * FIRST_S)
    assert await taken(queue) == ["a"]
    queue.succeeded("a")
    queue.release("a")
    queue.plan("a")
    await fail(queue, "a")

    assert queue.excuse() == []


async def test_of_keys_that_wait_for_an_excuse_a_bounded_number_is_kept(queue, clock, monkeypatch) -> None:
    monkeypatch.setattr(retry_queue, "_EXCUSABLE", 3)
    for key in "abcde":
        queue.plan(key)
        await fail(queue, key, excusable=True, again=False)
    await advance(clock, 200.0)
    queue.plan("f")
    await fail(queue, "f", again=False)

    assert queue.excuse() == ["c", "d", "e"]


async def test_giving_up_ends_the_attempts_but_keeps_the_back_off_and_the_failure_count(clock) -> None:
    queue = a_retry_queue(clock, attempts=3)
    pauses: list[float | None] = []

    for _ in range(2):
        queue.plan("a")
        for _ in range(3):
            await advance(clock, 15.0)
            assert await taken(queue) == ["a"]
            pauses.append(queue.failed("a"))
            queue.release("a")
        assert len(queue) == 0

    assert [pause is None for pause in pauses] == [False, False, True] * 2
    assert pauses[3] >= 0.5 * FIRST_S * 2**3


async def test_a_success_resets_the_back_off(queue, clock) -> None:
    queue.plan("a")
    for _ in range(4):
        await fail(queue, "a")
        await advance(clock, 15.0)
    assert await taken(queue) == ["a"]
    queue.succeeded("a")
    queue.release("a")
    assert queue.remembered == 0

    queue.plan("a")
    assert await taken(queue) == ["a"]

    assert queue.failed("a") <= 1.5 * FIRST_S


async def test_failures_of_keys_that_are_no_longer_planned_are_forgotten(queue, clock) -> None:
    for number in range(100):
        queue.plan(f"k{number}")
        await fail(queue, f"k{number}", again=False)
    queue.plan("waits", 1000.0)
    assert queue.remembered == 100

    await advance(clock, 200.0)
    queue.plan("a")
    await fail(queue, "a")

    assert queue.remembered == 1


async def test_failures_of_a_key_that_waits_are_remembered(clock) -> None:
    queue = a_retry_queue(clock, attempts=9)
    queue.plan("a")
    for _ in range(4):
        await fail(queue, "a")
        await advance(clock, 15.0)
    await advance(clock, 500.0)  # nobody had time for it
    assert await taken(queue) == ["a"]

    assert queue.failed("a") >= 0.5 * FIRST_S * 2**4


async def test_draining_waits_for_turns_that_may_still_come_in_time(queue, clock) -> None:
    queue.plan("a", 2.0)

    drained = asyncio.create_task(queue.drained(5.0))
    await advance(clock, 1.0)
    assert not drained.done()
    await advance(clock, 1.5)
    await taken(queue)
    queue.release("a")
    await advance(clock, 0.1)

    assert await drained


async def test_draining_does_not_wait_for_turns_that_cannot_come_in_time(queue, clock) -> None:
    queue.plan("a")
    await fail(queue, "a", 20.0)

    drained = asyncio.create_task(queue.drained(5.0))
    await settle()

    assert drained.done()
    assert not await drained


async def test_a_worker_that_is_cancelled_while_it_waits_leaves_the_others_their_turns(queue, clock) -> None:
    first, second = asyncio.create_task(queue.next()), asyncio.create_task(queue.next())
    queue.plan("a", 1.0)
    await settle()
    first.cancel()
    await advance(clock, 1.1)

    assert await second == "a"
