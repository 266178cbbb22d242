from structlog.testing import capture_logs

from volcano_py.model.objects import TaskRef
from volcano_py.runtime.clock import FakeClock
from volcano_py.writing.throttled_log import ThrottledLog, cause_of


def test_the_first_message_is_printed_and_repeats_are_counted():
    clock = FakeClock()
    throttled_log = ThrottledLog("binds failed", clock)
    with capture_logs() as lines:
        for number in range(5):
            throttled_log.log(job=str(number))
        clock.advance(1.0)
        throttled_log.log(job="later")

    assert [(line["job"], line["not_printed"]) for line in lines] == [("0", 0), ("later", 4)]


def test_every_cause_is_printed_separately_with_a_count_of_suppressed_messages():
    clock = FakeClock()
    throttled_log = ThrottledLog("binds failed", clock, every_s=10.0)
    with capture_logs() as lines:
        for cause in ("refused", "gone", "refused", "refused"):
            throttled_log.log(cause, 3, problem=cause)
        clock.advance(10.0)
        throttled_log.log("refused", 3, problem="refused")

    assert [(line["problem"], line["not_printed"]) for line in lines] == [("refused", 0), ("gone", 0), ("refused", 6)]


def test_causes_are_remembered_up_to_a_bound():
    throttled_log = ThrottledLog("binds failed", FakeClock())
    with capture_logs() as lines:
        for number in range(1000):
            throttled_log.log(str(number))
        throttled_log.log("999")
        throttled_log.log("0")

    assert len(lines) == 1001


def test_failures_of_many_pods_have_one_cause():
    why = 'create pods/binding ns/{0}: pods "{0}" is forbidden'

    first, second = (cause_of(why.format(name), TaskRef("ns", name, "uid")) for name in ("a-1", "a-2"))

    assert first == second
