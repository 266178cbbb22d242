"""Python's garbage collector in a process that holds a full cluster."""

import gc
from typing import Final

_THRESHOLDS: Final = (20_000, 10, 10)
"""Few objects here form reference cycles. By default Python looks for them after every 700 new objects. That takes a
quarter of the time of reading a full cluster and a twentieth of the time of a bind, and finds nothing.

The sessions of cycles do form them. Therefore full collections must not be much rarer than this: with 200 in place of
the last 10, 20,000 jobs in 2,000 queues took 1.4 GiB after 40 s, in place of 0.8.
"""


def collect_rarely() -> None:
    """Look for reference cycles less often, in the whole Python process."""
    gc.collect()
    gc.set_threshold(*_THRESHOLDS)


def keep_what_is_there() -> None:
    """Leave everything that is alive now out of later collections."""
    gc.collect(1)
    gc.freeze()
