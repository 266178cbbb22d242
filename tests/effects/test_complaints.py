from structlog.testing import capture_logs

from volcano_py.effects.complaints import Complaints
from volcano_py.runtime.clock import FakeClock


def test_the_first_is_printed_and_those_right_after_it_are_counted():
    clock = FakeClock()
    complaints = Complaints("binds failed", clock)
    with capture_logs() as lines:
        for number in range(5):
            complaints.tell(job=str(number))
        clock.advance(1.0)
        complaints.tell(job="later")

    assert [(line["job"], line["not_printed"]) for line in lines] == [("0", 0), ("later", 4)]
