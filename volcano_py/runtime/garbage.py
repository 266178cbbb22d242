"""Python's garbage collector in a process that holds a full cluster.

Nearly everything here is freed when its last user lets go of it. Only reference cycles need the collector, and few
objects form them. By default it looks for them after every 700 new objects, again and again at all that is there. At
a million objects this takes half a second, in which nothing else runs.

Here it looks at every object three times, in small steps, and then leaves it out: what survives a full collection is
frozen. While a process starts, it looks once. A cycle among frozen objects, and what it holds, stays until a thorough
collection, which follows once the process has three times as many blocks of memory as after the last one. Such cycles
are rare: what survives here was in use. (At 1.4 million, to count the frozen objects themselves takes 26 ms, and to
count blocks 0.4 ms.)
"""

import gc
import sys
from typing import Any, Final

_THRESHOLDS: Final = (1_000, 3, 1)
"""New objects before a collection, collections before a larger one, larger ones before a full one. A full collection
looks at some 8,000 objects, which takes about 0.5 us each, and at what their lists and dictionaries hold."""
_FULL: Final = 2  # generation
_EARLY: Final = 4_000
"""Collections, of 1,000 new objects each, that freeze at once while a process starts: nearly all that it reads stays,
and to look at all of it three times is a tenth of its work."""
_COUNT_EACH: Final = 32
"""Full collections between two counts of the blocks."""
_GROWTH: Final = 3.0
_SMALL: Final = 600_000  # blocks of memory that are never worth a thorough collection


class _Keeper:
    """Freezes what survives a full collection."""

    def __init__(self) -> None:
        self._collections = 0  # since the last count
        self._early = 0  # collections that freeze what they have not freed, though they are not full
        self._thorough = False  # whether the next full collection looks at everything
        self._kept = 0  # blocks of memory after the last thorough collection; 0 while the process starts

    def __call__(self, phase: str, info: dict[str, Any]) -> None:
        """Take the end of a collection."""
        if phase != "stop":
            return
        if info["generation"] != _FULL:
            if self._early:
                self._early -= 1
                gc.freeze()
            return
        self._collections += 1
        if self._thorough:
            gc.freeze()
            self._thorough, self._kept = False, sys.getallocatedblocks()
        elif self._collections < _COUNT_EACH:
            gc.freeze()
        else:
            self._collections = 0
            gc.freeze()
            if self._kept and sys.getallocatedblocks() > max(_SMALL, self._kept * _GROWTH):
                gc.unfreeze()
                self._thorough = True

    def start(self) -> None:
        """Freeze early from now on, until `keep` or for a while."""
        self._early = _EARLY

    def keep(self) -> None:
        """Take what is there as the state to grow from."""
        self._thorough, self._early = False, 0
        gc.freeze()
        # A full collection waits until a quarter of what the last one has left is new. Now that is nothing.
        gc.collect()
        self._kept = sys.getallocatedblocks()


_keeper: Final = _Keeper()


def collect_in_small_steps(*, starting: bool = False) -> None:
    """Collect garbage in steps of some milliseconds from now on, in the whole Python process.

    A process that is ``starting`` calls `keep_what_is_there` once it has read what it will hold.
    """
    gc.collect()
    if _keeper not in gc.callbacks:
        gc.callbacks.append(_keeper)
    gc.freeze()
    gc.collect()  # nothing: so the first full collection does not wait until much is new
    gc.set_threshold(*_THRESHOLDS)
    if starting:
        _keeper.start()


def keep_what_is_there() -> None:
    """Leave everything that is alive now out of later collections."""
    gc.collect(1)
    _keeper.keep()
