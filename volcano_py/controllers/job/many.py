"""Does the same for many objects of a job: a limited number at once, and one job after the other."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Final, TypeVar

from volcano_py.controllers.job.plugins.contract import PluginProblem
from volcano_py.controllers.writes import IN_FLIGHT, Writer
from volcano_py.kube import errors

PODS_PER_TURN: Final = 100
"""Pods that a job creates or deletes before other jobs have their turn."""

T = TypeVar("T")


async def each_in_turn(
    writer: Writer, items: Iterable[T], work: Callable[[T, int], Awaitable[None]], *, first_alone: bool = True
) -> None:
    """Do the work for all items as `each` does, one job after the other; the work passes its turn on to the writer.

    So each gang is complete, or gone, as soon as possible. After `PODS_PER_TURN` pods, jobs that wait go first.
    """
    turn = writer.new_turn()

    async def take_turn(numbered: tuple[int, T]) -> None:
        nonlocal turn
        number, item = numbered
        if number and number % PODS_PER_TURN == 0:
            turn = writer.new_turn()
        await work(item, turn)

    await each(enumerate(items), take_turn, first_alone=first_alone)


async def each(items: Iterable[T], work: Callable[[T], Awaitable[None]], *, first_alone: bool = True) -> None:
    """Do the work for all items, a limited number at once; after a failure, begin no more and raise it.

    With ``first_alone`` the others wait for the first, so that what fails for all is tried once.
    """
    left = iter(items)
    failures: list[BaseException] = []

    async def worker(source: Iterator[T]) -> None:
        for item in source:
            if failures:
                return
            try:
                await work(item)
            except (errors.ApiError, PluginProblem) as error:
                failures.append(error)

    if first_alone:
        first = next(left, None)
        if first is None:
            return
        await work(first)
    async with asyncio.TaskGroup() as group:
        for _ in range(IN_FLIGHT):
            group.create_task(worker(left))
    if failures:
        raise failures[0]
