"""Nothing grows without bound: queues, heaps, watch buffers, connections, tasks."""

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from tests.simulation import insight
from tests.simulation.invariants.invariant import Invariant
from tests.simulation.invariants.rest import Rest
from tests.simulation.loop import Process, State

if TYPE_CHECKING:
    from tests.simulation.world import World
    from volcano_py.kube.retry_queue import RetryQueue

_VOID_ITEMS: Final = 64
"""What the heap of a retry queue may hold beyond twice the number of its keys (`kube.retry_queue`)."""
_MOST_KEYS: Final = 2000
"""No queue has that many keys in clusters of some hundred objects; the capacities of the code are larger."""
_MOST_CONNECTIONS: Final = 512
_WATCH_EVENTS: Final = 4096
_WATCHES_EVERY: Final = 5
"""Seconds from one look at the buffers of all watches to the next: there are hundreds of them."""
_SETTLED_S: Final = 5.0
"""After the last write, programs have nothing more to do than to watch."""


class QueuesAreBounded(Invariant):
    """At every second, heaps are at most twice as long as their queues and some; at rest, the queues are empty.

    Looks at every retry queue of every program (write queues, work queues, retries of binds), at the ledgers, the
    connections of every process, and, every five seconds, the buffers of all watches at the servers.
    """

    name = "queues are bounded"

    def __init__(self, world: "World") -> None:
        super().__init__(world)
        self._queues: dict[str, tuple[object, list[tuple[str, RetryQueue[Any]]]]] = {}
        self._seconds = 0

    def now(self) -> None:
        """Look at their lengths."""
        for machine in self.world.machines.values():
            for path, queue in self._of(machine.name, machine.running if insight.works(machine) else None):
                if len(queue.due) > 2 * len(queue) + _VOID_ITEMS + 1:
                    self.violated(
                        f"the heap of {path} in {machine.name} has {len(queue.due)} items for {len(queue)} keys"
                    )
                if max(len(queue), queue.remembered) > _MOST_KEYS:
                    self.violated(f"{path} in {machine.name} has {len(queue)} keys and {queue.remembered} failures")
            if machine.alive and len(self.world.network.ends(machine.process)) > _MOST_CONNECTIONS:
                self.violated(f"{machine.name} has {len(self.world.network.ends(machine.process))} connections")
        self._seconds += 1
        if self._seconds % _WATCHES_EVERY:
            return
        for store in (self.world.servers.store, *(each.store for each in self.world.servers.lagging.values())):
            for collection in store.collections.values():
                for watcher in collection.watchers:
                    if len(watcher._queue) > _WATCH_EVENTS:  # type: ignore[attr-defined]
                        self.violated(f"a watch of {collection.name} has {len(watcher._queue)} events")  # type: ignore[attr-defined]

    def at_rest(self) -> None:
        """Look whether anything is left to do."""
        for machine in self.world.machines.values():
            for path, queue in self._of(machine.name, machine.running if machine.alive else None):
                if queue.overdue:
                    self.violated(f"{path} in {machine.name} still has {queue.overdue} keys to work on")

    def _of(self, name: str, program: object) -> "list[tuple[str, RetryQueue[Any]]]":
        known = self._queues.get(name)
        if known is None or known[0] is not program:
            known = self._queues[name] = (program, insight.retry_queues(program))
        return known[1]


class TasksAreBounded(Invariant):
    """While nothing happens, the number of tasks of a process stays the same, and no task is left over.

    Compared are the moment at which the system came to rest and the end of the rest, for processes that lived through.
    A scheduler that has got its lists late begins its work after that.
    """

    name = "tasks are bounded"

    def __init__(self, world: "World") -> None:
        super().__init__(world)
        self._before: dict[Process, Counter[str]] = {}
        self._at = -1.0

    def now(self) -> None:
        """Count the tasks when the system comes to rest."""
        rest = next(each for each in self.world.invariants if isinstance(each, Rest))
        last = max(rest.last_write_at, rest.last_change_at)
        if self.world.quiet and self._at <= last and self.world.loop.time() > last + _SETTLED_S:
            self._at = self.world.loop.time()
            self._before = self._counts()

    def at_rest(self) -> None:
        """Compare."""
        for process, now in self._counts().items():
            before = self._before.get(process)
            if before is not None and (more := {name: count for name, count in (now - before).items() if _lasts(name)}):
                self.violated(
                    f"{process.name} has more tasks than {self.world.loop.time() - self._at:.0f} s ago: {dict(more)}"
                )

    def _counts(self) -> dict[Process, Counter[str]]:
        found = {}
        for machine in self.world.machines.values():
            if machine.alive and machine.process.state is State.RUNS and machine.running is not None:
                found[machine.process] = self.world.loop.tasks_of(machine.process)
        return found


def _lasts(name: str) -> bool:
    """Say whether a task is more than a wait of another one."""
    return not name.startswith("alarm")
