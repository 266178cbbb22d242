import asyncio
from concurrent.futures import ThreadPoolExecutor

from tests.effects.waiting import until
from volcano_py.effects.backpressure import BindBackpressure


def test_batches_enter_while_there_is_room():
    backpressure = BindBackpressure(capacity=10)

    assert backpressure.enter(9)
    assert backpressure.enter(5)  # a batch enters as a whole
    assert backpressure.count == 14


async def test_full_backpressure_blocks_the_cycle_until_binds_have_ended():
    backpressure = BindBackpressure(capacity=10)
    backpressure.enter(12)
    with ThreadPoolExecutor(1) as thread:
        waiting = asyncio.get_running_loop().run_in_executor(thread, backpressure.enter, 1)
        await asyncio.sleep(0.02)
        assert not waiting.done()

        backpressure.leave(3)

        assert await waiting
    assert backpressure.count == 10


async def test_closing_wakes_waiters_and_admits_nothing_more():
    backpressure = BindBackpressure(capacity=1)
    backpressure.enter(1)
    with ThreadPoolExecutor(1) as thread:
        waiting = asyncio.get_running_loop().run_in_executor(thread, backpressure.enter, 1)
        await asyncio.sleep(0.02)

        backpressure.close()

        await until(waiting.done)
        assert not await waiting
    backpressure.leave(1)
    assert not backpressure.enter(1)


def test_waiting_has_a_limit():
    backpressure = BindBackpressure(capacity=1, patience_s=0.01)
    backpressure.enter(1)

    assert not backpressure.enter(1)
    assert backpressure.count == 1


def test_binds_are_under_way_until_the_last_one_has_ended():
    backpressure = BindBackpressure()
    assert not backpressure.under_way()
    backpressure.enter(2)
    backpressure.leave()
    assert backpressure.under_way()

    backpressure.leave()

    assert not backpressure.under_way()


def test_what_is_set_aside_holds_nothing_up_and_comes_back():
    backpressure = BindBackpressure(capacity=10, capacity_aside=4)
    backpressure.enter(9)

    assert backpressure.set_aside(3)
    assert backpressure.count == 6
    assert not backpressure.set_aside(2), "too many would be aside, so these keep counting"
    assert backpressure.count == 6

    backpressure.take_up(3)
    assert backpressure.count == 9
    assert backpressure.set_aside(4)


async def test_setting_binds_aside_wakes_the_cycle():
    backpressure = BindBackpressure(capacity=10)
    backpressure.enter(12)
    with ThreadPoolExecutor(1) as thread:
        waiting = asyncio.get_running_loop().run_in_executor(thread, backpressure.enter, 1)
        await asyncio.sleep(0.02)
        assert not waiting.done()

        backpressure.set_aside(12)

        assert await waiting
