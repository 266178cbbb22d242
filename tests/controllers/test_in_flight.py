"""Requests under way: a limited number at once, earlier turns first."""

import asyncio

from volcano_py.controllers.in_flight import InFlight


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def send(gate: InFlight, turn: int, name: str, sent: list[str], end: asyncio.Event) -> None:
    async with gate.one(turn):
        sent.append(name)
        await end.wait()


async def test_a_limited_number_is_under_way() -> None:
    gate, sent, end = InFlight(2), list[str](), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for name in "abc":
            group.create_task(send(gate, 0, name, sent, end))
        await settle()
        assert sent == ["a", "b"]
        end.set()
    assert sent == ["a", "b", "c"]


async def test_of_those_that_wait_the_earliest_turn_goes_first_and_no_turn_before_all() -> None:
    gate, sent, end = InFlight(1), list[str](), asyncio.Event()
    first, second = gate.new_turn(), gate.new_turn()
    async with asyncio.TaskGroup() as group:
        group.create_task(send(gate, 0, "busy", sent, end))
        await settle()
        for turn, name in ((second, "c"), (first, "b"), (second, "d"), (0, "a")):
            group.create_task(send(gate, turn, name, sent, end))
        await settle()
        end.set()
    assert sent == ["busy", "a", "b", "c", "d"]


async def test_a_request_that_is_cancelled_while_it_waits_takes_no_place() -> None:
    gate, sent, end = InFlight(1), list[str](), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(send(gate, 0, "busy", sent, end))
        await settle()
        waiting = group.create_task(send(gate, 0, "cancelled", sent, end))
        group.create_task(send(gate, 0, "next", sent, end))
        await settle()
        waiting.cancel()
        await settle()
        end.set()
    assert sent == ["busy", "next"]


async def test_a_request_that_is_cancelled_as_it_is_admitted_gives_its_place_back() -> None:
    gate, sent, end = InFlight(1), list[str](), asyncio.Event()
    end.set()
    async with gate.one():
        waiting = asyncio.create_task(send(gate, 0, "cancelled", sent, end))
        await settle()
    waiting.cancel()  # it has been admitted, and has not run since
    await asyncio.gather(waiting, return_exceptions=True)
    async with asyncio.timeout(10):
        await send(gate, 0, "next", sent, end)
    assert sent == ["next"]
