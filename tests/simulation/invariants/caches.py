"""What schedulers know: no more and no less than they were shown, and at rest the truth."""

from typing import TYPE_CHECKING, Any, Final

from tests.simulation import insight, objects, programs
from tests.simulation.invariants.invariant import Invariant
from tests.simulation.loop import Process, State
from tests.simulation.truth import PodTruth
from volcano_py.model.statuses import TaskStatus

if TYPE_CHECKING:
    from tests.simulation.machines import Machine
    from tests.simulation.servers import Asked
    from tests.simulation.world import World
    from volcano_py.snapshot.task_place import TaskPlace

_ENDED: Final = (TaskStatus.SUCCEEDED, TaskStatus.FAILED)


class CacheIsShown(Invariant):
    """At every moment, the cache of a scheduler has exactly the pods and nodes that its watches have shown last.

    A pod that was shown as deleted is gone, whatever other requests have answered. A pod that is deleted may be gone
    earlier if the scheduler has read that. A pod is on the node with which it was shown; before that it may be there
    only because the ledger has its bind, or because the pod was read. This rests on the versions that the reflectors
    have delivered; a rebuild is not needed.
    """

    name = "the cache is what was shown"

    def __init__(self, world: "World") -> None:
        super().__init__(world)
        self._looked_at: dict[str, tuple[object, ...]] = {}
        self._read_as_gone: dict[Process, set[str]] = {}  # uids

    def answered(self, asked: "Asked", status: int) -> None:
        """Keep which deleted pods a process has read: it may know more than its watch."""
        if asked.verb == "get" and asked.resource == objects.PODS and status in (200, 404):
            gone = {pod.uid for pod in self.world.truth.pods.values() if pod.key == asked.key and not pod.there}
            self._read_as_gone.setdefault(asked.client, set()).update(gone)

    def now(self) -> None:
        """Compare every scheduler with what it was shown, if anything has changed there."""
        for machine in self.world.schedulers():
            daemon = insight.daemon_of(machine)
            if daemon is None or machine.process.state is not State.RUNS:
                continue
            state = (daemon, insight.revision(daemon), insight.delivered(daemon))
            if self._looked_at.get(machine.name) != state:
                self._looked_at[machine.name] = state
                self._compare(machine, daemon)

    def _compare(self, machine: "Machine", daemon: Any) -> None:
        # A cache keeps or drops the last readable state of an object that cannot be read, as is safer.
        unreadable = insight.unreadable(daemon, objects.PODS)
        shown = insight.known(daemon, objects.PODS)
        versions = {uid: int(version) for key, (uid, version) in shown.items() if key not in unreadable}
        places = ((f"{one.record.namespace}/{one.record.name}", one) for one in insight.places(daemon))
        there = {place.record.uid: place for key, place in places if key not in unreadable}
        for uid, place in there.items():
            if uid not in versions:
                self.violated(
                    f"{machine.name} has pod {place.record.ref}, which its watch has not shown or shown as gone"
                )
        for uid, version in versions.items():
            found, pod = there.get(uid), self.world.truth.pods[uid]
            if found is None:
                if uid in self._read_as_gone.get(machine.process, ()):
                    continue
                if pod.scheduler != "volcano" and (pod.ended or not pod.there or not pod.node):
                    continue  # it holds nothing, and is nobody's to place here
                self.violated(f"{machine.name} does not have pod {pod.key}, which its watch has shown")
                continue
            self._compare_place(machine.name, found, pod, bool(pod.node) and version >= pod.bound_version)
        ours, nodes = set(insight.node_names(daemon)), set(insight.known(daemon, objects.NODES))
        for name in sorted((ours ^ nodes) - insight.unreadable(daemon, objects.NODES)):
            has = "has" if name in ours else "does not have"
            self.violated(
                f"{machine.name} {has} node {name}, {'unlike' if name in ours else 'although'} its watch shows"
            )

    def _compare_place(self, who: str, found: "TaskPlace", pod: PodTruth, bound: bool) -> None:
        if found.status in _ENDED:
            if not pod.ended:
                self.violated(f"{who} has pod {pod.key} as {found.status.label}, which it is not")
        elif bound and found.node != pod.node:
            self.violated(f"{who} has pod {pod.key} on {found.node or 'no node'}; its watch has shown it on {pod.node}")
        elif not bound and found.node not in ("", pod.node) and found.status is not TaskStatus.BINDING:
            self.violated(f"{who} has pod {pod.key} on {found.node}, where nobody has bound it")


class CacheIsTrue(Invariant):
    """At rest, ledger, cache and columns of every scheduler equal a rebuild from the server.

    Those of a scheduler that stands by, too: it may lead in a moment. The ledgers are empty, because every bind and
    every eviction has been confirmed or has failed. Compared is all that a cycle sees: amounts, statuses, nodes with
    labels and taints, PodGroups, queues, priorities, nominations.
    """

    name = "cache is true"

    def at_rest(self) -> None:
        """Compare them."""
        fresh = insight.columns(programs.rebuilt(self.world.servers))
        for machine in self.world.schedulers():
            daemon = insight.daemon_of(machine)
            if daemon is None:
                self.violated(f"{machine.name} does not run")
                continue
            cache = daemon.cache
            try:
                cache.validate()
            except AssertionError as error:
                self.violated(f"{machine.name}: {error}")
            for what, ledger in (("binds", cache.binds.ledger), ("evictions", cache.evictions.ledger)):
                if len(ledger):
                    self.violated(f"{machine.name} still assumes {what} of {[str(entry.task) for entry in ledger]}")
            left = insight.backing_off(cache) - {place.record.uid for place in insight.places(daemon)}
            if left:
                self.violated(f"{machine.name} remembers failed binds of pods that are gone: {sorted(left)}")
            for what, mine in insight.columns(cache).items():
                self._compare(f"{machine.name}, {what}", mine, fresh[what])

    def _compare(self, what: str, mine: dict[str, object], true: dict[str, object]) -> None:
        for name in sorted(mine.keys() | true.keys()):
            if mine.get(name) != true.get(name):
                ours, theirs = _differences(mine.get(name), true.get(name))
                self.violated(f"{what}: {name} is {ours} in the cache and {theirs} in truth")


def _differences(one: object, other: object) -> tuple[object, object]:
    """Return the parts of two descriptions that differ."""
    if isinstance(one, tuple) and type(one) is type(other) is tuple:
        pairs = [(mine, true) for mine, true in zip(one, other, strict=True) if mine != true]
        return [mine for mine, _ in pairs], [true for _, true in pairs]
    return ("there" if other is None else one), ("there" if one is None else other)


class WatchesAreUpToDate(Invariant):
    """At rest, every watch of every program has shown every object as it is, and the views of controllers have them.

    Rests on the versions that the reflectors have delivered. Watches with selectors are left out.
    """

    name = "watches are up to date"

    def at_rest(self) -> None:
        """Compare versions."""
        true: dict[str, dict[str, str]] = {}
        for machine in self.world.machines.values():
            if not machine.alive or machine.running is None:
                continue
            for reflector in insight.reflectors(machine.running):
                resource = reflector._resource.label
                if resource not in true:
                    true[resource] = {_key(obj): _version(obj) for obj in self.world.servers.objects(resource)}
                if not reflector._selectors:
                    shown = {key: version for key, (_, version) in reflector.delivery.known.items()}
                    self._compare(f"the watch of {resource} in {machine.name}", shown, true[resource])
            for resource, known, view in insight.views(machine.running):
                shown = {key: known[key][1] if key in known else "" for key in view.objects}
                mine = {key: obj.metadata.resource_version for key, obj in view.objects.items()}
                self._compare(f"the view of {resource} in {machine.name}", mine, shown)

    def _compare(self, what: str, shown: dict[str, str], true: dict[str, str]) -> None:
        for key in sorted(shown.keys() | true.keys()):
            if shown.get(key) != true.get(key):
                self.violated(f"{what} has {key} in version {shown.get(key)}, not {true.get(key)}")


def _key(obj: dict[str, Any]) -> str:
    meta = obj["metadata"]
    return f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else str(meta["name"])


def _version(obj: dict[str, Any]) -> str:
    return str(obj["metadata"]["resourceVersion"])
