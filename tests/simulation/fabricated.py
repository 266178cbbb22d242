"""A world in which nothing runs: a test says what happens in it, and asks the invariants."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any

from tests.simulation import objects, programs
from tests.simulation.clocks import MachineClock, SimulatedOrigin
from tests.simulation.draws import Draws, generator
from tests.simulation.insight import Shown
from tests.simulation.loop import Process, SimulationLoop
from tests.simulation.network import End
from tests.simulation.plan import Plan, Size
from tests.simulation.servers import ASKED, Asked, Lagging
from tests.simulation.world import World
from volcano_py.apiserver.origin import ORIGIN
from volcano_py.model.decisions import Bind, Decision, Evict
from volcano_py.model.objects import JobKey, TaskRef

TINY = Size("tiny", 6.0, 1, (0, 0), (2, 2), 60.0)
EMPTY = Plan(1, TINY, "helm-default", (4, 4), (), (), ())


class Fabricated:
    """The world, and what may happen in it."""

    def __init__(self) -> None:
        self.loop = SimulationLoop(lambda *_: 0.01)
        clock = MachineClock(self.loop)
        ORIGIN.set(SimulatedOrigin(clock, generator(1, "objects")))
        self.world = World(EMPTY, self.loop, clock, {})
        self.servers = self.world.servers
        programs.serve_definitions(self.servers)
        self.one, self.other = Process("scheduler-0", "10.0.2.0"), Process("scheduler-1", "10.0.2.1")
        self.controllers = Process("controllers-0", "10.0.3.0")

    def at(self, seconds: float) -> None:
        """Let it be that late."""
        self.loop.now = seconds

    def stale_lists(self) -> None:
        """Let a server show lists of an older state for a moment."""
        lagging = Lagging(self.servers.store, self.world.loop, Draws(0, "lag"), copy_context())
        self.servers.lagging["old"] = lagging
        lagging.stale_lists = True
        lagging.stale_lists = False

    def found(self) -> set[str]:
        """Return the names of the invariants that are violated; forget them."""
        names = {violation.invariant for violation in self.world.violations}
        self.world.violations.clear()
        return names

    def text(self) -> str:
        """Return all texts of violations."""
        return "\n".join(violation.text for violation in self.world.violations)

    def now(self) -> None:
        """Let a second pass for the invariants."""
        for invariant in self.world.invariants:
            invariant.now()

    def rest(self, *names: str) -> set[str]:
        """Ask these invariants what they say at rest."""
        for invariant in self.world.invariants:
            if invariant.name in names:
                invariant.at_rest()
        return self.found()

    # Objects

    def node(self, name: str, cpu: int = 4) -> None:
        """Create a node."""
        self.servers.create(objects.node(name, cpu))

    def pod(self, name: str, cpu: str = "1", group: str = "g", **spec: Any) -> dict[str, Any]:
        """Create a pod, of another scheduler if ``spec`` says so."""
        return self.servers.create(objects.pod(name, cpu, group, **spec))

    @contextmanager
    def asks(
        self, process: Process, verb: str, resource: str, sent_at: float | None = None, key: str = ""
    ) -> Iterator[Asked]:
        """Let what is done in this block be done by a request."""
        sent = self.loop.now if sent_at is None else sent_at
        method = {"create": "POST", "patch": "PATCH", "update": "PUT", "delete": "DELETE"}.get(verb, "GET")
        asked = Asked(process, sent, method, f"/{resource}/{key}", verb, resource, key)
        token = ASKED.set(asked)
        try:
            yield asked
        finally:
            ASKED.reset(token)

    def put(self, resource: str, obj: Mapping[str, Any], **change: Any) -> None:
        """Store an object with other parts than before."""
        collection = self.servers.store.collection(resource)
        meta = obj["metadata"]
        key = f"{meta['namespace']}/{meta['name']}" if "namespace" in meta else meta["name"]
        before = collection.get(key)
        old = dict(obj) if before is None else before.obj
        collection.put(key, {**old, "metadata": dict(old["metadata"]), **change})

    def remove(self, resource: str, key: str) -> None:
        """Delete an object."""
        self.servers.store.collection(resource).remove(key)

    def current(self, resource: str, name: str) -> dict[str, Any]:
        """Return an object."""
        found = self.servers.get(resource, name, objects.NAMESPACE) or self.servers.get(resource, name)
        assert found is not None
        return found

    # Schedulers

    def shown(self) -> Shown:
        """Return what a watch has shown that is up to date."""
        pods, nodes = self.servers.objects(objects.PODS), self.servers.objects(objects.NODES)
        return Shown(self.loop.now, dict(map(_version, pods)), dict(map(_version, nodes)))

    def decide(self, process: Process, pod: Mapping[str, Any], node: str, shown: Shown | None = None) -> None:
        """Let a scheduler decide to bind a pod."""
        self._decided(process, Bind(ref(pod), node, JobKey(objects.NAMESPACE, "g")), shown)

    def evict(
        self, process: Process, pod: Mapping[str, Any], node: str, beneficiary: str, shown: Shown | None = None
    ) -> None:
        """Let a scheduler decide to evict a pod."""
        job = JobKey(objects.NAMESPACE, beneficiary)
        self._decided(process, Evict(ref(pod), node, None, "preempt", "", job), shown)

    def _decided(self, process: Process, decision: Decision, shown: Shown | None) -> None:
        seen = shown or self.shown()
        self.world.cycle(process, seen)
        self.world.decided(process, seen, (decision,))

    def bind(self, process: Process, pod: Mapping[str, Any], node: str, sent_at: float | None = None) -> None:
        """Let a Binding of a scheduler take effect."""
        meta = pod["metadata"]
        with self.asks(process, "create", "pods/binding", sent_at, f"{meta['namespace']}/{meta['name']}"):
            self.put(objects.PODS, pod, spec={**pod["spec"], "nodeName": node})

    def connection(self, process: Process) -> End:
        """Return an open connection of a process."""
        return End(self.world.network, process, process.name, Draws(1, process.name))

    def lead(self, process: Process, lease: str = "volcano", holder: str | None = None) -> None:
        """Let a process acquire, renew or (``holder`` is empty) release a lease."""
        meta = {"name": lease, "namespace": objects.SYSTEM}
        with self.asks(process, "update", objects.LEASES):
            key = f"{objects.SYSTEM}/{lease}"
            collection = self.servers.store.collection(objects.LEASES)
            spec = {"holderIdentity": process.name if holder is None else holder, "renewTime": str(self.loop.now)}
            collection.put(
                key, {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": spec}
            )


def ref(pod: Mapping[str, Any]) -> TaskRef:
    """Return how decisions name a pod."""
    meta = pod["metadata"]
    return TaskRef(meta["namespace"], meta["name"], meta["uid"])


def _version(obj: Mapping[str, Any]) -> tuple[str, tuple[str, str]]:
    meta = obj["metadata"]
    key = f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else meta["name"]
    return key, (meta["uid"], meta["resourceVersion"])
