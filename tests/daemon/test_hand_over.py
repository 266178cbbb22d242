"""The way from the thread of the cycles to the event loop."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from volcano_py.daemon.hand_over import HandOver, pieces
from volcano_py.model.decisions import Bind, Decision, Evict, Nominate, SetPodCondition
from volcano_py.model.objects import JobKey, TaskRef

JOB, OTHER = JobKey("ns", "gang"), JobKey("ns", "other")


def task(number: int) -> TaskRef:
    return TaskRef("ns", f"p{number}", f"uid-{number}")


def told(number: int) -> SetPodCondition:
    return SetPodCondition(task(number), "Unschedulable", "no room")


def bind(number: int, job: JobKey = JOB) -> Bind:
    return Bind(task(number), "n1", job)


def evict(number: int) -> Evict:
    return Evict(task(number), "n1", None, "preempt", "for others", JOB)


def test_a_plan_is_one_piece_whatever_its_size():
    plan = (*map(bind, range(5)), evict(8), Nominate(task(9), "n1"))

    found = pieces((told(0), *plan, told(1), told(2)), size=2)

    assert found == [plan, (told(0), told(1)), (told(2),)]


def test_decisions_arrive_in_their_order_and_in_small_pieces():
    taken: list[tuple[Decision, ...]] = []
    conditions = tuple(map(told, range(1000)))

    async def run() -> None:
        loop, take = asyncio.get_running_loop(), taken.append
        hand_over = HandOver(capacity=100, piece=30)
        with ThreadPoolExecutor(1) as thread:
            await loop.run_in_executor(thread, hand_over.put, loop, conditions, take)
        await hand_over.taken()
        assert tuple(one for piece in taken for one in piece) == conditions

    asyncio.run(run())
    assert max(map(len, taken)) == 30


def test_a_cycle_ends_when_everything_is_taken():
    """Pieces that are never taken together, as of a job whose pods are placed one by one."""
    taken: list[tuple[Decision, ...]] = []

    async def run() -> None:
        loop, take, hand_over = asyncio.get_running_loop(), taken.append, HandOver(piece=1)
        with ThreadPoolExecutor(1) as thread:
            put = loop.run_in_executor(thread, lambda: [hand_over.put(loop, (bind(n),), take) for n in range(200)])
            await put
        await hand_over.taken()
        assert [one for piece in taken for one in piece] == [bind(n) for n in range(200)]
        assert not hand_over.under_way

    asyncio.run(run())


def test_what_waits_is_taken_although_taking_another_piece_has_failed():
    taken: list[tuple[Decision, ...]] = []

    def fails(_: tuple[Decision, ...]) -> None:
        raise RuntimeError("expected here")

    async def run() -> None:
        loop, hand_over = asyncio.get_running_loop(), HandOver(piece=1)
        loop.set_exception_handler(lambda *_: None)
        hand_over.put(loop, (told(0),), fails)
        hand_over.put(loop, (told(1),), taken.append)
        await hand_over.taken()

    asyncio.run(run())
    assert taken == [(told(1),)]


def test_the_cycle_waits_while_the_loop_has_enough_decisions():
    most: list[int] = []

    async def run() -> None:
        loop = asyncio.get_running_loop()
        hand_over = HandOver(capacity=100, piece=30)
        with ThreadPoolExecutor(1) as thread:
            await loop.run_in_executor(
                thread, hand_over.put, loop, tuple(map(told, range(1000))), lambda _: most.append(hand_over.under_way)
            )

    asyncio.run(run())
    assert max(most) < 100 + 30


def test_what_a_loop_that_hangs_does_not_take_is_returned():
    loop = asyncio.new_event_loop()  # it never runs
    conditions = tuple(map(told, range(100)))
    try:
        assert HandOver(capacity=40, piece=30, patience_s=0.01).put(loop, conditions, print) == conditions[60:]
    finally:
        loop.close()


def test_a_cycle_that_waits_ends_its_wait_when_the_process_ends():
    loop = asyncio.new_event_loop()  # it never runs
    hand_over = HandOver(capacity=1, piece=1)
    left: list[tuple[Decision, ...]] = []
    thread = threading.Thread(target=lambda: left.append(hand_over.put(loop, (told(0), told(1)), print)))
    try:
        thread.start()
        hand_over.close()
        thread.join(5)
        assert not thread.is_alive()
        assert left[0][-1] == told(1)
    finally:
        loop.close()


@pytest.mark.parametrize("size", [1, 7, 100])
def test_nothing_is_left_out(size: int):
    batch = tuple(told(number) if number % 3 else bind(number) for number in range(50))

    assert sorted(map(str, (one for piece in pieces(batch, size) for one in piece))) == sorted(map(str, batch))


def test_a_cycle_that_runs_on_the_loop_itself_does_not_wait():
    """As in a simulation; it would wait for ever."""
    taken: list[tuple[Decision, ...]] = []

    async def run() -> None:
        left = HandOver(capacity=1, piece=1).put(asyncio.get_running_loop(), tuple(map(told, range(10))), taken.append)
        assert not left
        await asyncio.sleep(0.01)

    asyncio.run(run())
    assert len(taken) == 10


@pytest.mark.parametrize(
    ("batches", "taken"),
    [
        ([(bind(0),), (bind(1, OTHER),), (told(2),)], [3]),
        ([(bind(0),), (bind(1),)], [1, 1]),  # of one job, decided one after another: refused one by one
        ([(told(0),), (bind(1), evict(2)), (told(3),)], [1, 2, 1]),
        ([(told(0), told(1)), (told(2), told(3))], [2, 2]),  # together they would be too large
    ],
)
def test_small_pieces_of_different_jobs_are_taken_together(batches: list[tuple[Decision, ...]], taken: list[int]):
    found: list[tuple[Decision, ...]] = []

    async def run() -> None:
        hand_over, take = HandOver(piece=3), found.append
        for batch in batches:
            hand_over.put(asyncio.get_running_loop(), batch, take)
        await asyncio.sleep(0.01)

    asyncio.run(run())
    assert list(map(len, found)) == taken
    assert [one for piece in found for one in piece] == [one for batch in batches for one in batch]


def test_pieces_of_two_cycles_are_not_taken_together():
    first, second = [], []

    async def run() -> None:
        hand_over, loop = HandOver(), asyncio.get_running_loop()
        for taken in (first, second):
            hand_over.put(loop, (told(0),), taken.append)
        await asyncio.sleep(0.01)

    asyncio.run(run())
    assert first == second == [(told(0),)]
