"""A write queue on a clock that is moved by hand."""

import asyncio

import pytest

from volcano_py.kube import errors
from volcano_py.runtime.clock import FakeClock
from volcano_py.writing.write_queue import WriteQueue, WriteQueueOptions

FAST = WriteQueueOptions(rate_per_s=1000, burst=1000, workers=2)


class Sink:
    def __init__(self):
        self.written: list[tuple[str, object]] = []
        self.problems: list[Exception] = []
        self.open = asyncio.Event()
        self.open.set()
        self.under_way: list[str] = []
        self.attempts = 0

    async def write(self, key, value):
        self.attempts += 1
        self.under_way.append(key)
        await self.open.wait()
        self.under_way.remove(key)
        if self.problems:
            raise self.problems.pop(0)
        self.written.append((key, value))
        return "written"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def sink() -> Sink:
    return Sink()


@pytest.fixture
def a_write_queue(clock, sink, supervisor, write_queue_metrics, rng):
    def make(options: WriteQueueOptions = FAST, **more) -> WriteQueue:
        write_queue: WriteQueue = WriteQueue(
            "test", sink.write, options, write_queue_metrics, clock=clock, rng=rng, **more
        )
        write_queue.start(supervisor)
        return write_queue

    return make


async def settle() -> None:
    for _ in range(30):
        await asyncio.sleep(0)


async def advance(clock: FakeClock, seconds: float, step: float = 0.01) -> None:
    for _ in range(round(seconds / step)):
        clock.advance(step)
        await settle()


async def test_values_are_written_in_order(a_write_queue, sink):
    write_queue = a_write_queue()

    for key in "abc":
        write_queue.put(key, key.upper())
    await settle()

    assert sink.written == [("a", "A"), ("b", "B"), ("c", "C")]


async def test_only_the_newest_value_of_a_key_is_written(a_write_queue, sink, clock):
    write_queue = a_write_queue(WriteQueueOptions(rate_per_s=1000, burst=1000, delay_s=0.5))

    write_queue.put("a", 1)
    write_queue.put("a", 2)
    await advance(clock, 0.6)

    assert sink.written == [("a", 2)]


async def test_nothing_is_written_before_the_delay_is_over(a_write_queue, sink, clock):
    write_queue = a_write_queue(WriteQueueOptions(rate_per_s=1000, burst=1000, delay_s=0.5))

    write_queue.put("a", 1)
    await advance(clock, 0.4)
    assert sink.written == []

    await advance(clock, 0.2)
    assert sink.written == [("a", 1)]


async def test_repeated_changes_do_not_postpone_the_write(a_write_queue, sink, clock):
    write_queue = a_write_queue(WriteQueueOptions(rate_per_s=1000, burst=1000, delay_s=0.5))

    for number in range(10):
        write_queue.put("a", number)
        await advance(clock, 0.1)

    assert sink.written


async def test_a_value_with_a_delay_of_its_own_is_written_after_it(a_write_queue, sink, clock):
    write_queue = a_write_queue(WriteQueueOptions(rate_per_s=1000, burst=1000, delay_s=0.5))

    write_queue.put("a", 1, 2.0)
    write_queue.put("b", 2, 0.0)
    await advance(clock, 1.0)
    assert sink.written == [("b", 2)]

    await advance(clock, 1.2)
    assert sink.written == [("b", 2), ("a", 1)]


@pytest.mark.parametrize(("first_s", "second_s"), [(2.0, 0.1), (0.1, 2.0)])
async def test_a_key_with_two_delays_is_written_once_at_the_earlier_with_the_newest_value(
    a_write_queue, sink, clock, first_s, second_s
):
    write_queue = a_write_queue()

    write_queue.put("a", 1, first_s)
    write_queue.put("a", 2, second_s)
    await advance(clock, 0.2)
    assert sink.written == [("a", 2)]

    await advance(clock, 2.5)
    assert sink.written == [("a", 2)]


async def test_a_value_discarded_in_time_is_not_written(a_write_queue, sink, clock):
    write_queue = a_write_queue(WriteQueueOptions(rate_per_s=1000, burst=1000, delay_s=0.5))

    write_queue.put("a", 1)
    write_queue.discard("a")
    await advance(clock, 1.0)

    assert sink.written == []
    assert write_queue.backlog == 0


async def test_a_key_is_written_once_at_a_time(a_write_queue, sink):
    write_queue = a_write_queue()
    sink.open.clear()

    write_queue.put("a", 1)
    await settle()
    write_queue.put("a", 2)
    write_queue.put("b", 3)
    await settle()

    assert sorted(sink.under_way) == ["a", "b"]
    sink.open.set()
    await settle()
    assert sorted(sink.written) == [("a", 1), ("a", 2), ("b", 3)]


async def test_the_rate_is_kept(a_write_queue, sink, clock):
    write_queue = a_write_queue(WriteQueueOptions(rate_per_s=10, burst=2))

    for number in range(20):
        write_queue.put(number, number)
    await settle()
    assert len(sink.written) == 2

    await advance(clock, 1.0)
    assert 10 <= len(sink.written) <= 13


async def test_more_important_work_delays_writes_but_not_for_ever(a_write_queue, sink, clock):
    write_queue = a_write_queue(WriteQueueOptions(rate_per_s=1000, burst=1000, patience_s=2.0), hold=lambda: True)

    write_queue.put("a", 1)
    await advance(clock, 1.0, step=0.05)
    assert sink.written == []

    await advance(clock, 1.5, step=0.05)
    assert sink.written == [("a", 1)]


async def test_held_values_are_written_after_their_longest_delay_and_overdue_ones_at_once(a_write_queue, sink, clock):
    write_queue = a_write_queue(WriteQueueOptions(rate_per_s=1000, burst=1000, each_s=2.0), hold=lambda: True)

    write_queue.put("a", 1)
    write_queue.put("b", 1)
    write_queue.put("urgent", 1, -2.0)
    await advance(clock, 1.9, step=0.05)
    assert [key for key, _ in sink.written] == ["urgent"]
    await advance(clock, 0.3, step=0.05)

    assert sorted(key for key, _ in sink.written) == ["a", "b", "urgent"]


async def test_a_full_write_queue_drops_new_keys_and_still_merges_old_ones(
    a_write_queue, write_queue_metrics, registry, clock
):
    write_queue = a_write_queue(WriteQueueOptions(rate_per_s=1000, burst=1000, capacity=1, delay_s=1.0))

    assert write_queue.put("a", 1)
    assert write_queue.put("a", 2)
    assert not write_queue.put("b", 1)

    labels = {"lane": "test", "result": "dropped"}
    assert registry.get_sample_value("volcano_py_lane_writes_total", labels) == 1


async def test_what_was_dropped_is_asked_for_once_when_the_queue_is_nearly_empty(a_write_queue, sink, clock):
    write_queue = a_write_queue(WriteQueueOptions(rate_per_s=10, burst=1, workers=1, capacity=20))
    lost: list[str | None] = []
    write_queue.on_lost(lost.append)

    for number in range(50):
        write_queue.put(f"pod-{number}", number)
    await advance(clock, 1.0, step=0.05)
    assert lost == []
    await advance(clock, 1.0, step=0.05)

    assert lost == [None]
    assert len(sink.written) < 50
    await advance(clock, 3.0, step=0.05)
    assert lost == [None]


async def test_what_was_dropped_is_asked_for_if_the_others_need_no_write_any_more(a_write_queue):
    write_queue = a_write_queue(WriteQueueOptions(rate_per_s=10, burst=1, capacity=2, delay_s=60.0))
    lost: list[str | None] = []
    write_queue.on_lost(lost.append)

    for key in "abc":
        write_queue.put(key, 1)
    for key in "ab":
        write_queue.discard(key)

    assert lost == [None]


async def test_a_passing_failure_is_tried_again(a_write_queue, sink, clock):
    write_queue = a_write_queue()
    sink.problems = [errors.ServerError("patch", "/api/v1/pods", "down", status=503)] * 2

    write_queue.put("a", 1)
    await advance(clock, 2.0)

    assert sink.written == [("a", 1)]


async def test_a_lasting_failure_is_given_up(a_write_queue, sink, clock):
    write_queue = a_write_queue(WriteQueueOptions(rate_per_s=1000, burst=1000, attempts=3))
    sink.problems = [errors.ServerError("patch", "/api/v1/pods", "down", status=503)] * 9

    write_queue.put("a", 1)
    await advance(clock, 60, step=0.1)

    assert sink.written == []
    assert len(sink.problems) == 6
    assert write_queue.backlog == 0


async def test_a_refusal_is_not_tried_again(a_write_queue, sink, clock):
    write_queue = a_write_queue()
    sink.problems = [errors.Forbidden("patch", "/api/v1/pods", "no", status=403)]
    lost: list[str | None] = []
    write_queue.on_lost(lost.append)

    write_queue.put("a", 1)
    await advance(clock, 5)

    assert sink.written == []
    assert sink.problems == []
    assert lost == ["a"]


async def test_a_write_in_a_terminating_namespace_is_obsolete_and_no_failure(a_write_queue, sink, registry, clock):
    write_queue = a_write_queue()
    sink.problems = [errors.NamespaceTerminating("create", "/api/v1/events", "going", status=403)]

    write_queue.put("a", 1)
    await advance(clock, 5)

    results = {
        result: registry.get_sample_value("volcano_py_lane_writes_total", {"lane": "test", "result": result})
        for result in ("obsolete", "failed")
    }
    assert results == {"obsolete": 1, "failed": None}
    assert (sink.written, sink.problems) == ([], [])


async def test_a_distant_retry_does_not_delay_due_writes(a_write_queue, sink, clock):
    write_queue = a_write_queue(WriteQueueOptions(rate_per_s=1000, burst=1000, workers=1))
    sink.problems = [errors.TooManyRequests("patch", "/api/v1/pods", "slow down", status=429, retry_after_s=30)]

    write_queue.put("a", 1)
    await advance(clock, 0.1)
    write_queue.put("b", 2)
    await advance(clock, 0.2)

    assert sink.written == [("b", 2)]


BUSY = errors.TooManyRequests("patch", "/api/v1/pods", "slow down", status=429, retry_after_s=30)


async def test_a_value_put_during_a_back_off_waits_for_its_end_and_the_newest_is_written(a_write_queue, sink, clock):
    write_queue = a_write_queue()
    sink.problems = [BUSY]

    write_queue.put("a", 1)
    for number in range(2, 30):
        await advance(clock, 1.0, step=0.1)
        write_queue.put("a", number, 0.0)
    assert (sink.attempts, sink.written) == (1, [])

    await advance(clock, 3.0, step=0.1)
    assert (sink.attempts, sink.written) == (2, [("a", 29)])


async def test_a_value_put_during_a_failing_write_waits_for_the_end_of_the_back_off(a_write_queue, sink, clock):
    write_queue = a_write_queue()
    sink.problems = [BUSY]
    sink.open.clear()

    write_queue.put("a", 1)
    await settle()
    write_queue.put("a", 2)
    sink.open.set()
    await advance(clock, 29.0, step=0.1)
    assert (sink.attempts, sink.written) == (1, [])

    await advance(clock, 2.0, step=0.1)
    assert (sink.attempts, sink.written) == (2, [("a", 2)])


async def test_a_failed_value_is_merged_with_values_put_during_its_write(a_write_queue, sink, clock):
    write_queue = a_write_queue(merge=int.__add__)
    sink.problems = [errors.ServerError("patch", "/api/v1/pods", "down", status=503)]
    sink.open.clear()

    write_queue.put("a", 3)
    await settle()
    write_queue.put("a", 1)
    sink.open.set()
    await advance(clock, 1.0)

    assert sink.written == [("a", 4)]


@pytest.mark.parametrize("problem", [BUSY, errors.Forbidden("patch", "/", "no", status=403, retry_after_s=30)])
async def test_the_next_value_inherits_the_back_off_of_one_given_up(a_write_queue, sink, clock, problem):
    write_queue = a_write_queue(WriteQueueOptions(rate_per_s=1000, burst=1000, attempts=1))
    sink.problems = [problem]

    write_queue.put("a", 1)
    await advance(clock, 1.0)
    assert write_queue.backlog == 0
    write_queue.put("a", 2)
    await advance(clock, 28.0, step=0.1)
    assert (sink.attempts, sink.written) == (1, [])

    await advance(clock, 2.0, step=0.1)
    assert sink.written == [("a", 2)]


async def test_the_next_value_inherits_the_back_off_of_a_discarded_one(a_write_queue, sink, clock):
    write_queue = a_write_queue()
    sink.problems = [BUSY]

    write_queue.put("a", 1)
    await advance(clock, 1.0)
    write_queue.discard("a")
    write_queue.put("a", 2)
    await advance(clock, 28.0, step=0.1)

    assert sink.attempts == 1


async def test_a_success_ends_the_back_off(a_write_queue, sink, clock):
    write_queue = a_write_queue()
    sink.problems = [errors.ServerError("patch", "/api/v1/pods", "down", status=503)] * 3

    write_queue.put("a", 1)
    await advance(clock, 5.0)
    write_queue.put("a", 2)
    await settle()

    assert sink.written == [("a", 1), ("a", 2)]


async def test_putting_a_waiting_key_does_not_grow_the_heap(a_write_queue, sink, clock):
    write_queue = a_write_queue(hold=lambda: True)

    for number in range(3000):
        for key in range(10):
            write_queue.put(key, number, 0.25)
            write_queue.put(key, number, -number)  # each earlier than the one before

    assert len(write_queue._waiting) == 10
    assert len(write_queue._due) <= 2 * 10 + 64


async def test_discarding_does_not_grow_the_heap(a_write_queue, sink, clock):
    write_queue = a_write_queue(hold=lambda: True)

    for number in range(3000):
        write_queue.put(number, 1, 60.0)
        write_queue.discard(number)

    assert len(write_queue._due) <= 64


async def test_draining_does_not_wait_for_delays(a_write_queue, sink, clock):
    write_queue = a_write_queue(WriteQueueOptions(rate_per_s=1000, burst=1000, delay_s=60))
    write_queue.put("a", 1)

    drained = asyncio.create_task(write_queue.drained(1.0))
    await advance(clock, 0.2)

    assert await drained
    assert sink.written == [("a", 1)]


async def test_draining_does_not_shorten_a_back_off(a_write_queue, sink, clock):
    write_queue = a_write_queue()
    sink.problems = [BUSY]
    write_queue.put("a", 1)
    write_queue.put("late", 1, 60.0)
    await advance(clock, 1.0)

    drained = asyncio.create_task(write_queue.drained(5.0))
    await advance(clock, 6.0, step=0.05)

    assert not await drained
    assert (sink.attempts, sink.written) == (2, [("late", 1)])


async def test_values_put_while_draining_are_written_without_their_delay(a_write_queue, sink, clock):
    write_queue = a_write_queue(WriteQueueOptions(rate_per_s=1000, burst=1000, delay_s=60))
    write_queue.put("a", 1)

    drained = asyncio.create_task(write_queue.drained(1.0))
    await settle()
    write_queue.put("b", 1)
    await advance(clock, 0.2)

    assert await drained
    assert sink.written == [("a", 1), ("b", 1)]


async def test_draining_ends_when_its_time_is_over(a_write_queue, sink, clock):
    write_queue = a_write_queue()
    sink.open.clear()
    write_queue.put("a", 1)

    drained = asyncio.create_task(write_queue.drained(1.0))
    await advance(clock, 1.2, step=0.05)

    assert not await drained
