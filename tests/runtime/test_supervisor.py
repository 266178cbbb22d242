"""Supervised tasks: none lost, none failing in silence, all ended in order."""

import asyncio

import pytest

from volcano_py.runtime.supervisor import Supervisor, TaskFailed, TasksDidNotStop


async def forever() -> None:
    await asyncio.Event().wait()


async def fail(message: str) -> None:
    raise ValueError(message)


async def test_leaving_the_context_ends_every_task() -> None:
    async with Supervisor() as supervisor:
        tasks = [supervisor.start(name, forever()) for name in ("a", "b")]
        await asyncio.sleep(0)

    assert all(task.cancelled() for task in tasks)
    assert supervisor.running == []


async def test_a_failing_task_interrupts_the_body_stops_the_others_and_is_named() -> None:
    others: list[asyncio.Task[None]] = []

    async def body() -> None:
        async with Supervisor() as supervisor:
            others.append(supervisor.start("other", forever()))
            supervisor.start("watch pods", fail("boom"))
            await asyncio.wait_for(forever(), 5)

    with pytest.raises(TaskFailed, match="task 'watch pods' failed: ValueError: boom") as caught:
        await body()

    assert isinstance(caught.value.__cause__, ValueError)
    assert others[0].cancelled()
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0  # the interruption of the body leaves nothing behind


async def test_a_task_that_is_cancelled_by_somebody_else_has_failed() -> None:
    async def body() -> None:
        async with Supervisor() as supervisor:
            task = supervisor.start("watch pods", forever())
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait_for(forever(), 5)

    with pytest.raises(TaskFailed, match=r"task 'watch pods' failed: .*cancelled, but not by its supervisor"):
        await body()


async def test_a_task_that_awaits_something_cancelled_has_failed() -> None:
    async def wait_in_vain() -> None:
        awaited: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        awaited.cancel()
        await awaited

    async def body() -> None:
        async with Supervisor() as supervisor:
            supervisor.start("watch pods", wait_in_vain())
            await asyncio.wait_for(forever(), 5)

    with pytest.raises(TaskFailed, match="task 'watch pods' failed"):
        await body()


async def test_failures_after_the_first_are_noted_on_it() -> None:
    async def body() -> None:
        async with Supervisor() as supervisor:
            supervisor.start("first", fail("one"))
            supervisor.start("second", fail("two"))
            await asyncio.wait_for(forever(), 5)

    with pytest.raises(TaskFailed, match="'first'") as caught:
        await body()

    assert caught.value.__notes__ == ["task 'second' failed too: ValueError: two"]


async def test_a_failure_while_the_body_is_about_to_end_is_not_lost() -> None:
    async def body() -> None:
        async with Supervisor() as supervisor:
            supervisor.start("fails", fail("boom"))
            await asyncio.sleep(0)

    with pytest.raises(TaskFailed):
        await body()


async def test_a_task_that_ends_is_forgotten_and_its_name_is_free() -> None:
    async with Supervisor() as supervisor:
        for _ in range(2):
            await supervisor.start("once", asyncio.sleep(0))
            await asyncio.sleep(0)
            assert supervisor.running == []


async def test_two_running_tasks_cannot_share_a_name() -> None:
    async with Supervisor() as supervisor:
        supervisor.start("a", forever())

        with pytest.raises(RuntimeError, match="a task of that name is running"):
            supervisor.start("a", forever())


async def test_tasks_end_youngest_first_each_before_the_next() -> None:
    ended: list[str] = []

    async def slow_to_end(name: str) -> None:
        try:
            await forever()
        finally:
            await asyncio.sleep(0.005)
            ended.append(name)

    async with Supervisor() as supervisor:
        for name in ("a", "b", "c"):
            supervisor.start(name, slow_to_end(name))
        await asyncio.sleep(0)
        await supervisor.stop(5)

        assert ended == ["c", "b", "a"]
        with pytest.raises(RuntimeError, match="is stopping"):
            supervisor.start("late", forever())


async def test_a_task_that_ignores_cancellation_is_named_within_the_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("volcano_py.runtime.supervisor._LAST_CALL_S", 0.02)
    release = asyncio.Event()

    async def stubborn() -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    supervisor = Supervisor()
    task = supervisor.start("stubborn", stubborn())
    obedient = supervisor.start("obedient", forever())
    await asyncio.sleep(0)

    with pytest.raises(TasksDidNotStop, match="stubborn"):
        await supervisor.stop(0.02)

    assert obedient.cancelled()
    release.set()
    await task


async def test_an_exception_of_the_body_goes_on_after_the_tasks_ended() -> None:
    tasks: list[asyncio.Task[None]] = []

    async def body() -> None:
        async with Supervisor() as supervisor:
            tasks.append(supervisor.start("a", forever()))
            raise KeyError("body")

    with pytest.raises(KeyError):
        await body()
    assert tasks[0].cancelled()


async def test_a_cancellation_from_outside_goes_on_after_the_tasks_ended() -> None:
    inner: list[asyncio.Task[None]] = []

    async def body() -> None:
        async with Supervisor() as supervisor:
            inner.append(supervisor.start("a", forever()))
            await forever()

    task = asyncio.create_task(body())
    await asyncio.sleep(0.001)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert inner[0].cancelled()


async def test_a_second_cancellation_ends_everything_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("volcano_py.runtime.supervisor._LAST_CALL_S", 0.02)
    older_ended = asyncio.Event()

    async def slow_to_end() -> None:
        try:
            await forever()
        finally:
            await asyncio.sleep(30)

    async def older() -> None:
        try:
            await forever()
        finally:
            older_ended.set()

    async def body() -> None:
        async with Supervisor() as supervisor:
            supervisor.start("older", older())
            supervisor.start("slow", slow_to_end())
            await forever()

    task = asyncio.create_task(body())
    await asyncio.sleep(0.001)
    task.cancel()
    await asyncio.sleep(0.001)
    assert not older_ended.is_set()  # it waits for its turn
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert older_ended.is_set()
