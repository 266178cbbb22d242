"""The loop of a simulation: order, timers, processes that are paused and killed, work in threads."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.simulation.loop import Endless, Process, SimulationLoop

THREAD_S = 0.25


@pytest.fixture
def loop() -> Iterator[SimulationLoop]:
    made = SimulationLoop(lambda _, __: THREAD_S)
    yield made
    made.abandon()


def test_ready_callbacks_run_first_in_first_out(loop: SimulationLoop) -> None:
    """What a callback adds runs in the next round, after all others."""
    ran: list[str] = []

    def first() -> None:
        ran.append("first")
        loop.call_soon(ran.append, "added")

    loop.call_soon(first)
    loop.call_soon(ran.append, "second")
    loop.call_soon(loop.call_soon, loop.stop)
    loop.run_forever()
    assert ran == ["first", "second", "added"]


def test_timers_run_in_order_and_move_the_clock(loop: SimulationLoop) -> None:
    """Timers of one moment run as they were asked for; a cancelled one does not."""
    ran: list[tuple[str, float]] = []

    def note(name: str) -> None:
        ran.append((name, round(loop.time(), 3)))

    loop.call_at(5.0, note, "five")
    loop.call_later(2.0, note, "two")
    loop.call_at(5.0, note, "five, too")
    loop.call_later(1.0, note, "cancelled").cancel()
    loop.call_at(6.0, loop.stop)
    loop.run_forever()
    assert ran == [("two", 2.0), ("five", 5.0), ("five, too", 5.0)]
    assert loop.time() == pytest.approx(6.0, abs=1e-3)


def test_waiting_for_nothing_ends_the_run(loop: SimulationLoop) -> None:
    """When everything waits for ever, somebody hears of it."""
    with pytest.raises(Endless):
        loop.run_until_complete(loop.create_future())


def test_a_paused_process_runs_later(loop: SimulationLoop) -> None:
    """Its callbacks wait, also those of timers, and keep their order; others go on."""
    process, ran = Process("paused", "10.0.0.2"), []
    with process.entered():
        loop.call_later(1.0, ran.append, "timer")
        loop.call_later(2.0, ran.append, "second timer")
    loop.call_later(3.0, ran.append, "another process")
    process.pause()
    loop.call_later(4.0, loop.go_on, process)
    loop.call_later(5.0, loop.stop)
    loop.run_forever()
    assert ran == ["another process", "timer", "second timer"]


def test_a_killed_process_runs_no_finally(loop: SimulationLoop) -> None:
    """Nothing of it is called again; not while the others go on."""
    process, ran = Process("killed", "10.0.0.2"), []

    async def program() -> None:
        try:
            await asyncio.sleep(10.0)
        finally:
            ran.append("finally")

    with process.entered():
        loop.create_task(program())
    loop.call_later(1.0, process.die)
    loop.call_later(20.0, loop.stop)
    loop.run_forever()
    assert ran == []


def test_tasks_belong_to_the_process_that_starts_them(loop: SimulationLoop) -> None:
    """A task that a task starts is killed with it."""
    process, ran = Process("killed", "10.0.0.2"), []

    async def child() -> None:
        await asyncio.sleep(5.0)
        ran.append("child")

    async def parent() -> None:
        children.append(asyncio.create_task(child()))
        await asyncio.sleep(5.0)

    children: list[asyncio.Task[None]] = []
    with process.entered():
        loop.create_task(parent())
    loop.call_later(1.0, process.die)
    loop.call_later(20.0, loop.stop)
    loop.run_forever()
    assert children
    assert ran == []


def test_work_in_a_thread_takes_virtual_time(loop: SimulationLoop) -> None:
    """What it hands over arrives while it runs, and its answer afterwards."""
    seen: list[tuple[str, float]] = []

    def note(what: str) -> None:
        seen.append((what, round(loop.time(), 2)))

    def work() -> str:
        loop.call_soon_threadsafe(note, "batch")
        loop.call_soon_threadsafe(note, "another batch")
        return "done"

    async def run() -> None:
        with ThreadPoolExecutor(1) as pool:
            note(await loop.run_in_executor(pool, work))

    loop.run_until_complete(run())
    assert seen == [("batch", THREAD_S), ("another batch", 2 * THREAD_S), ("done", 3 * THREAD_S)]


def test_an_exception_of_a_callback_is_kept_with_its_process(loop: SimulationLoop) -> None:
    """It ends nothing; an invariant looks at it."""
    process = Process("faulty", "10.0.0.2")

    def fail() -> None:
        raise ValueError("broken")

    with process.entered():
        loop.call_soon(fail)
    loop.call_later(1.0, loop.stop)
    loop.run_forever()
    assert [str(context["exception"]) for context in process.errors] == ["broken"]


def test_an_abandoned_loop_is_empty(loop: SimulationLoop) -> None:
    """Tasks that still wait are ended, also those that wait in their `finally` blocks."""

    async def stubborn() -> None:
        try:
            await asyncio.sleep(1000.0)
        finally:
            await asyncio.sleep(1.0)

    task = loop.create_task(stubborn())
    loop.call_later(1.0, loop.stop)
    loop.run_forever()
    loop.abandon()
    assert loop.is_closed()
    assert task.get_coro().cr_frame is None  # type: ignore[union-attr]
