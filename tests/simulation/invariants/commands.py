"""Commands: what a controller deletes has taken effect, and none stays."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tests.simulation import objects
from tests.simulation.invariants.invariant import Invariant
from volcano_py.apiserver.store import Event

if TYPE_CHECKING:
    from tests.simulation.servers import Asked
    from tests.simulation.world import World

_ROOT: Final = "root"
_OPEN: Final = frozenset({"Open"})
_SHUT: Final = frozenset({"Closed", "Closing"})
_STATES: Final = {"OpenQueue": _OPEN, "CloseQueue": _SHUT}
"""What each command makes of a queue."""
_IGNORES: Final = {
    "AbortJob": frozenset({"Pending", "Running"}),
    "RestartJob": frozenset({"Pending", "Running"}),
    "TerminateJob": frozenset({"Pending", "Running"}),
    "CompleteJob": frozenset({"Pending", "Running"}),
    "ResumeJob": frozenset({"Aborted"}),
}
"""The phases that a job leaves because of each command."""


@dataclass(slots=True)
class _Target:
    """A job or queue, and the states that it has been in since the commands that wait were created."""

    name: str
    state: str = ""
    parent: str = ""
    waiting: dict[str, set[str]] = field(default_factory=dict)
    """By uid of the command."""
    last: str = ""
    """The action of the command that was carried out last, "" if it is not known whether it was refused."""
    last_at: float = 0.0


class CommandsTakeEffect(Invariant):
    """A command that a controller deletes has taken effect by then, and no command stays.

    Between the creation of a command and its deletion, a queue is in the state that the command asks for, and a job
    leaves the phases that the command ends. A queue below one that is closed meanwhile may stay closed. At rest, a
    queue is as the last command asked, and closed if its parent is; none is Unknown, since nobody else writes states.
    Rests on what the API server has accepted.
    """

    name = "commands take effect"

    def __init__(self, world: "World") -> None:
        super().__init__(world)
        self._targets: dict[str, _Target] = {}  # by uid

    def changed(self, resource: str, event: Event, asked: "Asked | None") -> None:
        """Follow jobs, queues and commands."""
        if resource == objects.COMMANDS:
            self._command_changed(event, asked)
        elif resource == objects.QUEUES or resource == objects.JOBS:
            self._target_changed(resource, event)

    def _target_changed(self, resource: str, event: Event) -> None:
        obj = event.stored.obj
        meta, state = obj["metadata"], (obj.get("status") or {}).get("state")
        if event.type == "DELETED":
            self._targets.pop(meta["uid"], None)
            return
        target = self._targets.setdefault(meta["uid"], _Target(objects.short_key(meta)))
        target.state = (state or "") if resource == objects.QUEUES else (state or {}).get("phase", "")
        target.parent = obj["spec"].get("parent", "") if resource == objects.QUEUES else ""
        for seen in target.waiting.values():
            seen.add(target.state)
        if resource == objects.QUEUES and target.state in _SHUT:  # commands that wait for a child may be refused
            for child in self._targets.values():
                if child.parent == target.name:
                    for seen in child.waiting.values():
                        seen.add(_PARENT_IS_SHUT)

    def _command_changed(self, event: Event, asked: "Asked | None") -> None:
        command = event.stored.obj
        uid, target = command["metadata"]["uid"], self._targets.get(command["target"]["uid"])
        if target is None:
            return
        if event.type == "ADDED":
            target.waiting[uid] = {target.state}
            if self._is_shut(target.parent):
                target.waiting[uid].add(_PARENT_IS_SHUT)
        elif event.type == "DELETED":
            seen = target.waiting.pop(uid, set())
            if asked is not None and asked.client.name.startswith("controllers"):
                self._look(command, target, seen)

    def _look(self, command: dict[str, Any], target: _Target, seen: set[str]) -> None:
        action = command["action"]
        if action in _STATES:
            may_be_refused = action == "OpenQueue" and _PARENT_IS_SHUT in seen
            target.last, target.last_at = "" if may_be_refused else action, self.world.loop.time()
            if not may_be_refused and not seen & _STATES[action] and target.name != _ROOT:
                self.violated(f"{action} of queue {target.name} is deleted, and the queue was never {_text(action)}")
        elif seen <= _IGNORES.get(action, frozenset()) and seen:
            self.violated(f"{action} of job {target.name} is deleted, and the job was only {_list(seen)}")

    def _is_shut(self, queue: str) -> bool:
        return any(one.name == queue and one.state in _SHUT for one in self._targets.values())

    def at_rest(self) -> None:
        """Look for commands that are left, and compare queues with the last commands."""
        for command in self.world.servers.objects(objects.COMMANDS):
            target = command["target"]
            self.violated(f"{command['action']} of {target['kind'].lower()} {target['name']} is still there")
        queues = {queue["metadata"]["name"]: queue for queue in self.world.servers.objects(objects.QUEUES)}
        for name, queue in queues.items():
            target = self._targets[queue["metadata"]["uid"]]
            above = queues.get(target.parent)
            parent = None if above is None else self._targets[above["metadata"]["uid"]]
            if target.state not in _OPEN | _SHUT:
                self.violated(f"queue {name} stays {target.state or 'without a state'}")
            elif parent is not None and parent.state in _SHUT:
                if target.state not in _SHUT:
                    self.violated(f"queue {name} is {target.state} below {parent.name}, which is {parent.state}")
            elif target.last and (parent is None or parent.last_at < target.last_at):
                if target.state not in _STATES[target.last]:
                    self.violated(f"queue {name} is {target.state}, and the last command was {target.last}")
            elif not target.last_at and (parent is None or not parent.last_at) and target.state not in _OPEN:
                self.violated(f"queue {name} is {target.state}, and nobody has closed it")


_PARENT_IS_SHUT: Final = "below a closed queue"


def _text(action: str) -> str:
    return _list(_STATES[action])


def _list(states: set[str] | frozenset[str]) -> str:
    return " or ".join(sorted(states))
