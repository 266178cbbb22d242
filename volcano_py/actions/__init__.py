"""The actions, which are the phases of a cycle, and their table."""

from collections.abc import Callable
from typing import Final

from volcano_py.actions.allocate import allocate
from volcano_py.actions.backfill import backfill
from volcano_py.actions.enqueue import enqueue
from volcano_py.actions.gangpreempt import GangPreempt
from volcano_py.actions.gangreclaim import GangReclaim
from volcano_py.actions.preempt import Preempt
from volcano_py.actions.reclaim import Reclaim
from volcano_py.actions.shuffle import shuffle
from volcano_py.framework.action import Action
from volcano_py.framework.session import Session

Phase = Callable[[Session], None] | type[Action]
"""A phase of the cycle: a function of the session, or a class that makes one of its arguments."""

ACTIONS: Final[dict[str, Phase]] = {
    "enqueue": enqueue,
    "allocate": allocate,
    "backfill": backfill,
    "preempt": Preempt,
    "reclaim": Reclaim,
    "gangpreempt": GangPreempt,
    "gangreclaim": GangReclaim,
    "shuffle": shuffle,
}
"""Action by its name in the conf."""
