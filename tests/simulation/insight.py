"""What invariants look at inside the programs; beside `programs`, the only module that knows how they are built."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from tests.simulation import objects
from tests.simulation.loop import PROCESS, Process
from volcano_py.cache.binds import Assumed
from volcano_py.cache.cluster import ClusterCache
from volcano_py.controllers.view import View
from volcano_py.daemon.daemon import SchedulerDaemon
from volcano_py.kube.reflector import Reflector
from volcano_py.kube.retry_queue import RetryQueue
from volcano_py.model.decisions import Bind, Decision
from volcano_py.model.objects import TaskTrait
from volcano_py.model.statuses import READY_STATUSES, TaskStatus

if TYPE_CHECKING:
    from tests.simulation.machines import Machine
    from volcano_py.snapshot.task_place import TaskPlace

Versions = Mapping[str, tuple[str, str]]
"""Uid and resourceVersion of objects, by ``namespace/name``."""


class Basis(NamedTuple):
    """What a cycle starts from, by its snapshot."""

    free: Mapping[str, tuple[float, ...]]
    """What is idle on each node or being released, for the resources of `Amounts`."""
    nominated: Mapping[str, str]
    """The nodes of pods that wait for room on them, by uid."""
    missing: Mapping[str, int]
    """How many more pods of a PodGroup need nodes for its minimum."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What the watches of a process had shown at one moment."""

    at: float
    pods: Versions
    nodes: Versions
    basis: Callable[[], Basis] | None = None
    """Reads the snapshot of the cycle, if this is what a cycle was shown."""

    def pod(self, key: str, uid: str) -> int:
        """Return the version of a pod that was shown, 0 if it was not."""
        found = self.pods.get(key)
        return int(found[1]) if found is not None and found[0] == uid else 0

    def node(self, name: str) -> int:
        """Return the version of a node that was shown, 0 if it was not."""
        found = self.nodes.get(name)
        return 0 if found is None else int(found[1])


class Observer(Protocol):
    """Is told what schedulers decide."""

    def cycle(self, process: Process, shown: Shown) -> None:
        """A cycle begins; ``shown`` is what its process knows."""

    def decided(self, process: Process, shown: Shown, batch: Sequence[Decision]) -> None:
        """That cycle has decided something."""

    def assumed(self, process: Process, shown: Shown, binds: Sequence[Bind]) -> None:
        """Some of it was accepted, and will be sent; ``shown`` is what the process knows by then."""


def observed(daemon: SchedulerDaemon, cycle: Callable[..., Any], observer: Observer) -> Callable[..., Any]:
    """Return a cycle that tells what it decides; it is called at the moment of its snapshot."""

    def run(snapshot: Any, policy: Any, clock: Any, seed: int, memory: Any, emit: Any) -> Any:
        process, shown = PROCESS.get(), replace(shown_to(daemon), basis=_basis(snapshot))
        observer.cycle(process, shown)

        def tell(batch: Sequence[Decision]) -> None:
            observer.decided(process, shown, batch)
            emit(batch)

        return cycle(snapshot, policy, clock, seed, memory, tell)

    return run


def _basis(snapshot: Any) -> Callable[[], Basis]:
    """Copy from a snapshot what its cycle changes, and return what reads the copy."""
    nodes, tasks, jobs = snapshot.nodes, snapshot.tasks, snapshot.jobs
    rows = [snapshot.resources.names.index(name) for name in ("cpu", "memory", "pods")]
    free = (nodes.idle + nodes.releasing - nodes.pipelined)[rows]
    missing = jobs.min_available - jobs.counts[list(READY_STATUSES)].sum(axis=0)
    pairs = list(zip(*snapshot.nominated[:2], strict=True))
    names = nodes.names

    def read() -> Basis:
        lacks = zip(jobs.records, missing.tolist(), strict=True)
        return Basis(
            {name: tuple(amounts) for name, amounts in zip(names, free.T.tolist(), strict=True)},
            {tasks.record(task).uid: names[node] for task, node in pairs},
            {str(job.key): int(count) for job, count in lacks if job is not None},
        )

    return read


def observe_assumptions(daemon: SchedulerDaemon, observer: Observer) -> None:
    """Let an observer hear which binds a scheduler accepts for sending."""
    binds = daemon.cache.binds
    assume = binds.assume

    def tell(batch: tuple[Bind, ...], decided_at: Any) -> Any:
        answers = assume(batch, decided_at)
        accepted = [answer.bind for answer in answers if isinstance(answer, Assumed)]
        if accepted:
            observer.assumed(PROCESS.get(), shown_to(daemon), accepted)
        return answers

    binds.assume = tell  # type: ignore[method-assign]


def shown_to(daemon: SchedulerDaemon) -> Shown:
    """Return what the watches of a scheduler have shown by now."""
    now = daemon._context.clock.monotonic()
    return Shown(now, dict(known(daemon, objects.PODS)), dict(known(daemon, objects.NODES)))


def known(daemon: SchedulerDaemon, resource: str) -> Versions:
    """Return which objects the watch of a resource has shown last."""
    for kind, reflector in daemon._watches._reflectors.items():
        if kind.label == resource:
            return reflector.delivery.known
    raise LookupError(resource)


def unreadable(daemon: SchedulerDaemon, resource: str) -> frozenset[str]:
    """Return the keys of the objects that the watch of a resource has shown last in a state that cannot be read."""
    reflectors = daemon._watches._reflectors.items()
    return frozenset(key for kind, each in reflectors if kind.label == resource for key in each.delivery.quarantined)


def places(daemon: SchedulerDaemon) -> Iterator["TaskPlace"]:
    """Return the pods in the cache of a scheduler."""
    return (place for place in daemon.cache.store._places if place is not None)


def daemon_of(machine: "Machine") -> SchedulerDaemon | None:
    """Return the scheduler that runs on a machine, None if there is none."""
    return machine.running if machine.alive and isinstance(machine.running, SchedulerDaemon) else None


def works(machine: "Machine") -> bool:
    """Say whether the program of a machine works: it holds its lease, or needs none."""
    if not machine.alive or machine.running is None:
        return False
    leading = getattr(machine.running, "leading", None)
    return leading is None or leading.is_set()


_PARTS: Final = ("daemon", "effects", "writing", "controllers", "kube.retry_queue", "kube.workqueue", "admission")
_LEFT_OUT: Final = ("metrics", "daemon.watches", "daemon.reporting", "daemon.metrics", "controllers.metrics")
_MOST_ITEMS: Final = 50


def retry_queues(program: object) -> list[tuple[str, RetryQueue[Any]]]:
    """Return every retry queue of a program, with the path of attributes that leads to it."""
    found: list[tuple[str, RetryQueue[Any]]] = []
    seen: set[int] = set()
    waiting: deque[tuple[str, object]] = deque([("", program)])
    while waiting:
        path, one = waiting.popleft()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, RetryQueue):
            found.append((path, one))
        else:
            waiting.extend((f"{path}.{name}".lstrip("."), value) for name, value in _parts(one) if _is_part(value))
    return found


def _is_part(one: object) -> bool:
    """Say whether an object may have a retry queue somewhere inside."""
    if isinstance(one, list | tuple | dict):
        return 0 < len(one) <= _MOST_ITEMS
    package, _, rest = type(one).__module__.partition(".")
    return package == "volcano_py" and rest.startswith(_PARTS) and not rest.startswith(_LEFT_OUT)


def _parts(one: object) -> Iterator[tuple[str, object]]:
    if isinstance(one, dict):
        yield from ((str(key), value) for key, value in one.items())
    elif isinstance(one, list | tuple):
        yield from ((str(index), value) for index, value in enumerate(one))
    else:
        yield from getattr(one, "__dict__", {}).items()
        names = (name for kind in type(one).__mro__ for name in getattr(kind, "__slots__", ()))
        yield from ((name, getattr(one, name)) for name in names if hasattr(one, name))


def reflectors(program: Any) -> "list[Reflector[Any]]":
    """Return the reflectors of a program."""
    informers = program._lifecycle._informers if hasattr(program, "_lifecycle") else None
    return [] if informers is None else list(informers._reflectors.values())


def views(program: Any) -> list[tuple[str, Versions, Any]]:
    """Return the views of a controller manager: the resource, what its watch has shown, and the view itself."""
    found = []
    for reflector in reflectors(program):
        handler = reflector.delivery._handler
        if isinstance(handler, View):
            found.append((reflector._resource.label, reflector.delivery.known, handler))
    return found


def under_way(daemon: SchedulerDaemon) -> dict[str, int]:
    """Return how many binds and evictions a scheduler has decided and not brought to an end."""
    return daemon._writers.under_way()


def why_lost(program: Any) -> str:
    """Return why a program has lost its lease, "" if it has not."""
    return str(program._context.leadership.why_lost)


def backing_off(cache: ClusterCache) -> set[str]:
    """Return the uids of the pods whose binds have failed and are not tried again for a while."""
    return set(cache._bind_backoff._job_of)


def columns(cache: ClusterCache) -> dict[str, dict[str, object]]:
    """Return all that cycles see of a cluster, by kind and name, in a form that does not depend on what was before.

    Rows, codes and orders of arrival differ between a cache with a history and one that was filled just now.
    """
    snapshot = cache.snapshot()
    resources = snapshot.resources.names
    return {
        "nodes": dict(_nodes(snapshot, resources)),
        "pods": dict(_tasks(snapshot)),
        "jobs": dict(_jobs(snapshot, resources)),
        "queues": dict(snapshot.queues),
        "withheld groups": dict(snapshot.withheld),
        "nominations": {
            str(snapshot.tasks.record(task).ref): snapshot.nodes.names[node]
            for task, node in zip(*snapshot.nominated[:2], strict=True)
        },
        "nominations to no node": {
            # An old commit, in which the simulation runs too, has none.
            str(snapshot.tasks.record(task).ref): True
            for task in getattr(snapshot.nominated, "lost", ())
        },
    }


def _amounts(names: Sequence[str], column: Any) -> dict[str, float]:
    """Return the amounts of one node or job without zeros."""
    return {name: amount for name, amount in zip(names, column.tolist(), strict=True) if amount}


def _nodes(snapshot: Any, names: Sequence[str]) -> Iterator[tuple[str, object]]:
    nodes = snapshot.nodes
    sections = ("idle", "used", "releasing", "pipelined", "requested", "allocatable")
    for row, name in enumerate(nodes.names):
        amounts = {section: _amounts(names, getattr(nodes, section)[:, row]) for section in sections}
        taints = nodes.statics.taint_sets[nodes.taint_ids[row]]
        closed = bool(nodes.closed[row]), bool(nodes.unschedulable[row])
        labels = {
            key: column.values[column.codes[row]] for key, column in nodes.statics.labels.items() if column.codes[row]
        }
        yield name, (amounts, nodes.nonzero[:, row].tolist(), taints, closed, labels, nodes.statics.records[row])


def _tasks(snapshot: Any) -> Iterator[tuple[str, object]]:
    tasks = snapshot.tasks
    for row, record in enumerate(tasks.records):
        if record is not None:
            node = snapshot.nodes.names[tasks.node[row]] if tasks.node[row] >= 0 else ""
            job = snapshot.jobs.records[tasks.job[row]] if tasks.job[row] >= 0 else None
            numbers = int(tasks.priority[row]), float(tasks.creation[row]), int(tasks.suffix[row])
            traits = int(tasks.traits[row]) & ~TaskTrait.BACKING_OFF
            shape = tasks.shape[row]
            asks = snapshot.shapes[shape], _amounts(snapshot.resources.names, snapshot.requests[:, shape])
            status = TaskStatus(int(tasks.status[row])).name
            yield str(record.ref), (status, node, job and job.key, numbers, traits, asks, record)


def _jobs(snapshot: Any, names: Sequence[str]) -> Iterator[tuple[str, object]]:
    jobs = snapshot.jobs
    for row, record in enumerate(jobs.records):
        if record is not None:
            sections = ("allocated", "pending", "total", "promised", "min_resources")
            amounts = {section: _amounts(names, getattr(jobs, section)[:, row]) for section in sections}
            counts = jobs.counts[:, row].tolist(), float(jobs.held[row]), float(jobs.valid[row])
            numbers = int(jobs.min_available[row]), int(jobs.priority[row]), int(jobs.phase[row])
            queue = jobs.rules.queue_names[jobs.rules.queue[row]]
            yield str(record.key), (amounts, counts, numbers, queue, bool(jobs.rules.present[row]), record)


def revision(daemon: SchedulerDaemon) -> int:
    """Return a number that grows with every change of a scheduler's cache that matters to decisions."""
    return int(daemon.cache.token)


def delivered(daemon: SchedulerDaemon) -> int:
    """Return how many events of pods and nodes a scheduler was given."""
    reflectors = daemon._watches._reflectors.items()
    return sum(each.delivery.events for kind, each in reflectors if kind.label in (objects.PODS, objects.NODES))


def node_names(daemon: SchedulerDaemon) -> Iterator[str]:
    """Return the nodes in the cache of a scheduler."""
    return iter(daemon.cache.store.nodes.names())
