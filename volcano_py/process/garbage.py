"""Python's garbage collector in a process that holds a full cluster."""

import gc
from typing import Final

_THRESHOLDS: Final = (5_000, 3, 200)
"""Few objects here form reference cycles. By default Python looks for them after every 700 new objects. That takes a
quarter of the time of reading a full cluster and a twentieth of the time of a bind, and finds nothing.

No thread runs during a collection. A collection of young objects looks at 20,000 at most, which takes 5 ms. One of all
objects takes a fifth of a second; it comes when four million more than before are alive.
"""


def collect_rarely() -> None:
    """Look for reference cycles less often, in the whole Python process."""
    gc.collect()
    gc.set_threshold(*_THRESHOLDS)


def keep_what_is_there() -> None:
    """Leave everything that is alive now out of later collections."""
    gc.collect(1)
    gc.freeze()
