"""The actions: the phases of a cycle, and the table of those there are."""

from collections.abc import Callable
from typing import Final

from volcano_py.actions.allocate import allocate
from volcano_py.actions.backfill import backfill
from volcano_py.actions.enqueue import enqueue
from volcano_py.framework.session import Session

ACTIONS: Final[dict[str, Callable[[Session], None]]] = {
    "enqueue": enqueue,
    "allocate": allocate,
    "backfill": backfill,
}
"""Action by its name in the conf."""
