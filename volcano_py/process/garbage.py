"""Python's garbage collector in a process that holds a full cluster."""

import gc
from typing import Final

_THRESHOLDS: Final = (20_000, 10, 10)
"""Few objects here form reference cycles. By default Python looks for them after every 700 new objects. That takes a
quarter of the time of reading a full cluster and a twentieth of the time of a bind, and finds nothing."""


def collect_rarely() -> None:
    """Look for reference cycles less often, in the whole Python process."""
    gc.set_threshold(*_THRESHOLDS)


def keep_what_is_there() -> None:
    """Collect once, and leave everything that is alive now out of later collections."""
    gc.collect()
    gc.freeze()
