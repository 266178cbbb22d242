"""How Python shares its one lock between the event loop and the thread that computes."""

import sys
from typing import Final

_SWITCH_S: Final = 0.0005
"""How long a thread that computes goes on when another one wants to run.

The event loop gives the lock away whenever it waits for the network, hundreds of times a second. By default it waits
5 ms each time until it gets the lock back from a cycle.
"""


def give_way_soon() -> None:
    """Let the event loop go on soon when it has something to do, in the whole Python process."""
    sys.setswitchinterval(_SWITCH_S)
