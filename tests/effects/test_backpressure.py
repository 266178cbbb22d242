import asyncio
from concurrent.futures import ThreadPoolExecutor

from tests.effects.waiting import until
from volcano_py.effects.backpressure import BindBackpressure


def test_batches_enter_while_there_is_room():
    gate = BindBackpressure(capacity=10)

    assert gate.enter(9)
    assert gate.enter(5)  # a batch enters whole
    assert gate.count == 14


async def test_full_backpressure_blocks_the_cycle_until_binds_have_ended():
    gate = BindBackpressure(capacity=10)
    gate.enter(12)
    with ThreadPoolExecutor(1) as thread:
        waiting = asyncio.get_running_loop().run_in_executor(thread, gate.enter, 1)
        await asyncio.sleep(0.02)
        assert not waiting.done()

        gate.leave(3)

        assert await waiting
    assert gate.count == 10


async def test_closing_wakes_waiters_and_admits_nothing_more():
    gate = BindBackpressure(capacity=1)
    gate.enter(1)
    with ThreadPoolExecutor(1) as thread:
        waiting = asyncio.get_running_loop().run_in_executor(thread, gate.enter, 1)
        await asyncio.sleep(0.02)

        gate.close()

        await until(waiting.done)
        assert not await waiting
    gate.leave(1)
    assert not gate.enter(1)


def test_waiting_has_a_limit():
    gate = BindBackpressure(capacity=1, patience_s=0.01)
    gate.enter(1)

    assert not gate.enter(1)
    assert gate.count == 1
