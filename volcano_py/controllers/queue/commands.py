"""Commands for queues: which there are, in which order they are carried out, and which are refused.

A command is carried out first and deleted then. If the process ends in between, the next one carries it out again;
opening an open queue and closing a closed one write the same state again. Volcano deletes first, and may lose the
command. What is being deleted, and stays because of a finalizer, was carried out or withdrawn.
"""

from typing import Any, Final

from volcano_py.api import keys
from volcano_py.api.batch import Command
from volcano_py.api.scheduling import Queue
from volcano_py.controllers.queue import states
from volcano_py.kube.resource import QUEUES

OPEN: Final = "OpenQueue"
CLOSE: Final = "CloseQueue"
SYNC: Final = "SyncQueue"
UNKNOWN: Final = "UnknownCommand"
"""The reason of the event about a command that no queue knows."""
UNDELETABLE: Final = "UndeletableCommand"
"""The reason of the event about a command that was answered and stays."""
LATE: Final = "CommandWithoutTarget"
"""The reason of the event about a command whose queue does not exist."""


def is_for_queues(command: Command) -> bool:
    """Say whether the target of a command is a queue, and the command is not being deleted."""
    group = command.target.api_version.partition("/")[0]
    if command.metadata.deletion_timestamp is not None:
        return False
    return command.target.kind == QUEUES.kind and group == QUEUES.group


def place(command: Command) -> tuple[Any, ...]:
    """Return a sort key: commands of a queue are carried out by time of creation, then by name."""
    meta = command.metadata
    created = meta.creation_timestamp
    return created is not None, created, meta.namespace, meta.name


def refusal(queue: Queue, action: str, parent: Queue | None) -> str:
    """Return why a command is not carried out, and what to do; "" if it is."""
    name = queue.metadata.name
    if action not in (OPEN, CLOSE, SYNC):
        return f"{action or 'a command without action'} is no command for a queue: use {OPEN} or {CLOSE}"
    if action == CLOSE and name == keys.ROOT_QUEUE:
        return f"queue {name} cannot be closed: close the queues below it"
    if action == OPEN and parent is not None and parent.status.state in states.SHUT:
        above = parent.metadata.name
        return f"queue {name} cannot be opened while its parent {above} is {parent.status.state}: open {above} first"
    return ""
