"""`vcctl queue` and `vqueues`."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from volcano_py.cli.vcctl.call import Call
from volcano_py.cli.vcctl.lists import Listing, print_list, print_object
from volcano_py.cli.vcctl.printing import Table
from volcano_py.client.commanding import send_command
from volcano_py.client.problem import Problem
from volcano_py.client.queues import Counts, Groups
from volcano_py.kube.resource import PODGROUPS, QUEUES

if TYPE_CHECKING:
    from volcano_py.client.following import Change

_FIRST, _OTHER = 25, 8
_MOST: Final = 65535
_ACTIONS: Final = {"open": "OpenQueue", "close": "CloseQueue"}
_LIST: Final = "vcctl queue list"
_SPARE: Final = ("Unknown", "Completed", "Parent", "Weight", "Inqueue")
"""Columns that a narrow terminal does not show, the least important first."""


class _Counting:
    """The PodGroups behind the numbers of the table; they are read when the table is made."""

    kind = PODGROUPS

    def __init__(self, call: Call) -> None:
        self.version = ""
        self._call = call
        self._groups = Groups()

    def counts(self) -> Mapping[str, Counts]:
        """Return the numbers of each queue."""
        if not self.version:
            with self._call.about(PODGROUPS):
                self._groups.replace(self._call.api.list(PODGROUPS))
            self.version = self._call.api.version or "0"
        return self._groups.counts()

    def take(self, change: "Change") -> None:
        """Count what has changed."""
        from volcano_py.client.following import LISTED

        if change.what == LISTED:
            self._groups.replace(change.objects)
        else:
            for group in change.objects:
                (self._groups.remove if change.what == "DELETED" else self._groups.put)(group)


def create_queue(call: Call) -> int:
    """Create a queue."""
    name, weight = call.flags.text("name"), call.flags.number("weight")
    if not 1 <= weight <= _MOST:
        raise Problem(f"weight {weight} of queue {name} is not allowed: write a number from 1 to {_MOST}")
    queue = {
        "apiVersion": QUEUES.api_version,
        "kind": QUEUES.kind,
        "metadata": {"name": name},
        "spec": {"weight": weight},
        "status": {"state": call.flags.text("state")},
    }
    with call.about(QUEUES, name, _LIST):
        call.api.create(QUEUES, queue)
    return 0


def delete_queue(call: Call) -> int:
    """Delete a queue."""
    name = _required(call)
    with call.about(QUEUES, name, _LIST):
        call.api.delete(QUEUES, name)
    return 0


def get_queue(call: Call) -> int:
    """Show one queue."""
    name = _required(call)
    with call.about(QUEUES, name, _LIST):
        queue = call.api.get(QUEUES, name)
    counting = _Counting(call)
    print_object(call, QUEUES, queue, lambda found: _table(call, found, counting.counts()))
    return 0


def list_queues(call: Call) -> int:
    """List queues."""
    labels, counting = call.flags.text("selector"), _Counting(call)
    return print_list(
        call, Listing(QUEUES, lambda found: _table(call, found, counting.counts()), labels=labels, joined=counting)
    )


def operate_queue(call: Call) -> int:
    """Open or close a queue, or change its weight."""
    name, action, weight = call.flags.text("name"), call.flags.text("action"), call.flags.number("weight")
    if not name:
        raise Problem("queue name must be specified")
    if not action:
        raise Problem("action can not be null")
    if action not in (*_ACTIONS, "update"):
        raise Problem(f"action {action} invalid, valid actions are open, close and update")
    if action == "update" and weight <= 0:
        raise Problem(f"when update queue {name}, weight must be specified, the value must be greater than 0")
    with call.about(QUEUES, name, _LIST):
        if action == "update":
            call.api.patch(QUEUES, name, {"spec": {"weight": weight}})
        else:
            send_command(call.api, QUEUES, call.api.get(QUEUES, name), _ACTIONS[action])
    return 0


def queues_or_queue(call: Call) -> int:
    """List queues, or show the named one, in the columns of `vqueues`."""
    name, counting = call.flags.text("name"), _Counting(call)
    if not name:
        return print_list(call, Listing(QUEUES, lambda found: _short_table(found, counting.counts()), joined=counting))
    with call.about(QUEUES, name, "vqueues"):
        queue = call.api.get(QUEUES, name)
    print_object(call, QUEUES, queue, lambda found: _short_table(found, counting.counts()))
    return 0


def queue_table(queues: Sequence[Mapping[str, Any]], counted: Mapping[str, Counts], *, wide: bool = False) -> Table:
    """Return the table of `vcctl queue list`."""
    headers = ["Name", "Weight", "State", "Parent", "Inqueue", "Pending", "Running", "Unknown", "Completed"]
    widths = [_FIRST, *[_OTHER] * 8]
    rows = [_row(queue, counted) for queue in queues]
    if wide:
        widths[-1] = len("Completed") + 1
        headers, widths = [*headers, "Capability", "Allocated"], [*widths, 30, 30]
        rows = [[*row, *_more(queue)] for queue, row in zip(queues, rows, strict=True)]
    return Table(headers, widths, rows, _SPARE)


def _required(call: Call) -> str:
    name = call.flags.text("name")
    if not name:
        raise Problem("queue name must be specified")
    return name


def _table(call: Call, queues: Sequence[Mapping[str, Any]], counted: Mapping[str, Counts]) -> Table:
    return queue_table(queues, counted, wide=call.flags.text("output") == "wide")


def _row(queue: Mapping[str, Any], counted: Mapping[str, Counts]) -> list[str]:
    spec, status = queue.get("spec") or {}, queue.get("status") or {}
    own = counted.get(queue["metadata"]["name"], Counts())
    return [
        queue["metadata"]["name"],
        str(spec.get("weight") or 0),
        str(status.get("state") or ""),
        str(spec.get("parent") or ""),
        *map(str, own),
    ]


def _short_table(queues: Sequence[Mapping[str, Any]], counted: Mapping[str, Counts]) -> Table:
    headers = ["Name", "Weight", "State", "Inqueue", "Pending", "Running", "Unknown"]
    rows = [[*row[:3], *row[4:8]] for row in (_row(queue, counted) for queue in queues)]
    return Table(headers, [_FIRST, *[_OTHER] * 6], rows, _SPARE)


def _more(queue: Mapping[str, Any]) -> list[str]:
    capability, allocated = (queue.get("spec") or {}).get("capability"), (queue.get("status") or {}).get("allocated")
    return [_amounts(capability, "unlimited"), _amounts(allocated, "none")]


def _amounts(amounts: Mapping[str, Any] | None, nothing: str) -> str:
    return ",".join(f"{name}={amount}" for name, amount in sorted((amounts or {}).items())) or nothing
