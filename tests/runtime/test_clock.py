"""The fake clock: time that moves when the test says so."""

import asyncio

from volcano_py.runtime.clock import FakeClock, RealClock


async def test_sleepers_wake_in_the_order_of_their_deadlines_and_see_their_time() -> None:
    clock = FakeClock()
    woken: list[tuple[str, float]] = []

    async def sleeper(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append((name, clock.monotonic()))

    tasks = [asyncio.create_task(sleeper(name, seconds)) for name, seconds in [("b", 2), ("a", 1), ("c", 5)]]
    await asyncio.sleep(0)
    clock.advance(3)
    await asyncio.sleep(0)

    assert [name for name, _ in woken] == ["a", "b"]
    assert clock.sleepers == 1
    clock.advance(2)
    await asyncio.gather(*tasks)
    assert woken[-1] == ("c", 5.0)


async def test_wall_time_moves_with_the_monotonic_time() -> None:
    clock = FakeClock()
    before = clock.now()

    clock.advance(90)

    assert (clock.now() - before).total_seconds() == 90


async def test_a_cancelled_sleeper_is_not_counted() -> None:
    clock = FakeClock()
    task = asyncio.create_task(clock.sleep(1))
    await asyncio.sleep(0)

    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert clock.sleepers == 0
    clock.advance(2)


async def test_sleeping_for_nothing_only_yields() -> None:
    await asyncio.wait_for(FakeClock().sleep(0), 1)


async def test_the_real_clock_moves_by_itself() -> None:
    clock = RealClock()
    before, wall = clock.monotonic(), clock.now()

    await clock.sleep(0.001)

    assert clock.monotonic() > before
    assert clock.now() >= wall
    assert clock.now().utcoffset() is not None
