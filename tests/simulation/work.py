"""Those who use the cluster: they submit work, keep it as they want it, and delete it."""

import asyncio
import copy
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from tests.simulation import objects
from tests.simulation.draws import Draws
from tests.simulation.loop import Process
from tests.simulation.objects import Obj
from tests.simulation.plan import Order, Queue, Work
from tests.simulation.servers import ASKED, URL
from volcano_py.apiserver.deletion import DeleteOptions
from volcano_py.apiserver.status import StatusError
from volcano_py.apiserver.store import Collection, Event
from volcano_py.kube import errors
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.resource import Resource

if TYPE_CHECKING:
    from tests.simulation.world import World

_TIMEOUT_S: Final = 15.0
_AGAIN_S: Final = (0.5, 3.0)
"""After which an operator creates a lost pod again, and a user tries again what was refused."""
_APPLIED_S: Final = (2.0, 8.0)
"""After which somebody applies a lost job or group again."""
_HELD_AGAIN_S: Final = 5.0
"""After which somebody tries again to take away a finalizer."""
_ENDED: Final = ("Succeeded", "Failed")
_SHUT: Final = ("Closed", "Closing")


class Worker:
    """Submits the work of a plan, creates what is lost of it again, as operators do, and deletes some of it.

    With webhooks, users are clients of the API servers, so that webhooks see what they write. Without, they write past
    the network, which is cheaper.
    """

    def __init__(self, world: "World") -> None:
        self._world = world
        self.process = Process("users-0", "10.0.5.0")
        self._client: ApiClient | None = None
        self._tried: dict[str, Draws] = {}
        self._replacements = 0
        self._unwanted: set[str] = set()
        self._holding: set[str] = set()  # uids of objects whose finalizer is about to be taken away
        self._holders: dict[str, str] = {}
        self.submitted: dict[str, Work] = {}
        """By namespace and name."""
        self.counts: dict[str, int] = {}
        """What came of it: binds, evictions, restarts of jobs, changes of leaders."""
        world.servers.store.listeners.append(self._changed)

    # What users want

    def submit(self, work: Work) -> None:
        """Create the objects of a piece of work, and delete them later if its owner does so."""
        self._world.history.note("submit", _called(work))
        self.submitted[work.key] = work
        self._do(self._submit(work))
        for number, (after_s, action) in enumerate(work.commands):
            self._world.later(after_s, self._order, work, number, action)
        for after_s, pods, minimum in work.scales:
            self._world.later(after_s, self._scale, work, pods, minimum)
        if work.deleted_after_s:
            self._world.later(work.deleted_after_s, self._give_up, work)

    def put_queues(self) -> None:
        """Create those queues of the plan that do not exist."""
        for queue in self._world.plan.queues:
            if self._world.servers.get(objects.QUEUES, queue.name) is None:
                self._world.servers.create(queue_object(queue))

    def bound(self) -> int:
        """Return how many binds were successful."""
        return self.counts.get("bind", 0)

    def _do(self, what: Any) -> None:
        with self.process.entered():
            self._world.loop.create_task(what)

    async def _submit(self, work: Work) -> None:
        for obj in _objects(work):
            await self._create(work, obj)
        if work.kind == "deployment":
            for _ in range(work.pods):
                await self._replica(work)

    async def _create(self, work: Work, obj: Obj) -> None:
        """Create an object, however often that is refused, until its owner no longer wants it."""
        await self._apply(obj, lambda: work.key not in self._unwanted)

    async def _apply(self, obj: Obj, wanted: Callable[[], bool]) -> None:
        name = obj["metadata"]["name"]
        draws = self._draws_of(obj["metadata"])
        while wanted():
            problem = "" if self._is_kept_out(obj) else await self._attempt(obj)
            if problem is None:
                return
            if problem:
                self._world.history.note("refused", name, problem[:200])
            await asyncio.sleep(draws.between(*_AGAIN_S))

    def _draws_of(self, meta: Obj) -> Draws:
        name = objects.short_key(meta)
        return self._tried.setdefault(name, Draws(self._world.seed, f"user of {name}"))

    def _is_kept_out(self, obj: Obj) -> bool:
        """Say whether a webhook would refuse an object because its queue is closed: its user waits for the queue."""
        name = obj["spec"].get("queue") if self._world.plan.webhooks and "spec" in obj else None
        queue = None if name is None else self._world.servers.get(objects.QUEUES, name)
        return queue is not None and queue.get("status", {}).get("state") in _SHUT

    async def _attempt(self, obj: Obj) -> str | None:
        """Create an object; return why that failed, None if it is there."""
        world = self._world
        if not world.plan.webhooks:
            try:
                world.servers.create(copy.deepcopy(obj))
            except (StatusError, LookupError) as error:
                exists = isinstance(error, StatusError) and error.reason == "AlreadyExists"
                return None if exists else f"{type(error).__name__}: {error}"
            return None
        resource = world.servers.registry.resources.of_kind(obj["apiVersion"], obj["kind"])
        if resource is None:
            return f"{obj['kind']} is not served"
        group, _, version = obj["apiVersion"].rpartition("/")
        wanted = Resource(group, version, resource.plural, obj["kind"])
        try:
            client = await self._opened()
            space = obj["metadata"]["namespace"]
            await client.create(wanted, obj, dict[str, Any], namespace=space, timeout_s=_TIMEOUT_S)
        except errors.AlreadyExists:
            return None
        except errors.ApiError as error:
            return str(error)
        return None

    async def _opened(self) -> ApiClient:
        if self._client is None:
            self._client = ApiClient(Credentials(URL), user_agent="kubectl")
            await self._client.__aenter__()
        return self._client

    async def _replica(self, work: Work) -> None:
        """Create a pod of a ReplicaSet that exists, as its controller does."""
        owner = self._world.servers.get(objects.REPLICA_SETS, work.name, work.space)
        if owner is None or "deletionTimestamp" in owner["metadata"]:
            return
        self._replacements += 1
        name = f"{work.name}-{self._replacements}"
        pod = objects.pod(name, work.cpu, "", work.priority, namespace=work.space, restartPolicy="Always")
        meta = pod["metadata"]
        meta["labels"]["app"] = work.name
        reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": work.name, "uid": owner["metadata"]["uid"]}
        meta["ownerReferences"] = [{**reference, "controller": True}]
        await self._create(work, pod)

    def _order(self, work: Work, number: int, action: str) -> None:
        """Ask for something with a job, as `vcctl job suspend` does."""
        job = self._world.servers.get(objects.JOBS, work.name, work.space)
        if job is not None:
            self._world.history.note("command", action, _called(work))
            self._do(self._create(work, objects.command(f"{work.name}-{number}", action, job)))

    def order(self, order: Order) -> None:
        """Ask for something with a queue, as `vcctl queue operate` does."""
        queue = self._world.servers.get(objects.QUEUES, order.queue)
        if queue is not None:
            self._world.history.note("command", order.action, order.queue)
            name = f"order-{order.number}"
            self._do(self._apply(objects.order(name, order.action, queue), lambda: True))

    def _scale(self, work: Work, pods: int, minimum: int) -> None:
        """Change how many pods a job has and needs, as `kubectl edit` does."""

        def change(job: Obj) -> Obj:
            tasks = [{**task} for task in job["spec"]["tasks"]]
            tasks[-1] |= {"replicas": pods - len(tasks) + 1, "minAvailable": max(0, minimum - len(tasks) + 1)}
            return {**job, "spec": {**job["spec"], "minAvailable": minimum, "tasks": tasks}}

        if self._world.servers.get(objects.JOBS, work.name, work.space) is not None and work.key not in self._unwanted:
            self._world.history.note("scale", _called(work), f"to {pods} pods, at least {minimum}")
            self._edit(objects.JOBS, work.space, work.name, change)

    def _edit(self, resource: str, namespace: str, name: str, change: Callable[[Obj], Obj]) -> None:
        registry = self._world.servers.registry
        self._world.last_fault_at = self._world.loop.time()  # others may be placed now
        with suppress(StatusError):  # it is gone, or its definition is
            registry.patch(registry.resources.named(resource), namespace, name, change)

    def _give_up(self, work: Work) -> None:
        """Delete what was submitted."""
        self._world.history.note("delete", _called(work))
        self._unwanted.add(work.key)
        registry = self._world.servers.registry
        found = [(objects.PODS, f"{work.name}-{index}") for index in range(work.pods)]
        if work.kind == "vcjob":
            found = [(objects.JOBS, work.name)]
        elif work.kind == "deployment":
            found = [(objects.REPLICA_SETS, work.name)]
        elif work.kind == "gang":
            found.append((objects.GROUPS, work.name))
        for resource, name in found:
            if self._world.servers.get(resource, name, work.space) is not None:
                registry.delete(registry.resources.named(resource), work.space, name, DeleteOptions())

    # What happens to it

    def _changed(self, collection: Collection, event: Event) -> None:
        resource, obj = collection.name, event.stored.obj
        if resource == objects.PODS:
            self._count_pod(event)
        elif resource == objects.JOBS:
            before = {} if event.prev is None else event.prev.obj
            if event.type == "MODIFIED" and _phase(obj) == "Restarting" != _phase(before):
                self._count("restart")
        elif resource == objects.LEASES:
            self._count_holder(obj)
        if event.type == "DELETED":
            self._lost(resource, obj)
        elif objects.HOLD in obj["metadata"].get("finalizers", ()):
            self._held(resource, event)

    def _held(self, resource: str, event: Event) -> None:
        """Take away the finalizer of an object that begins to be deleted, after a while."""
        meta = event.stored.obj["metadata"]
        work = next((one for one in self.submitted.values() if _belongs(meta, one)), None)
        if "deletionTimestamp" in meta and meta["uid"] not in self._holding:
            self._holding.add(meta["uid"])
            self._world.later(work.held_s if work else 0.0, self._release, resource, meta)

    def _release(self, resource: str, meta: Obj) -> None:
        def change(obj: Obj) -> Obj:
            left = [one for one in obj["metadata"].get("finalizers", ()) if one != objects.HOLD]
            return {**obj, "metadata": {**obj["metadata"], "finalizers": left}}

        found = self._world.servers.get(resource, meta["name"], meta["namespace"])
        if found is not None and found["metadata"]["uid"] == meta["uid"]:
            self._world.history.note("release", objects.short_key(meta))
            self._edit(resource, meta["namespace"], meta["name"], change)
            left = self._world.servers.get(resource, meta["name"], meta["namespace"])
            if left is not None and objects.HOLD in left["metadata"].get(
                "finalizers", ()
            ):  # spoiled: nobody can edit it
                self._world.later(_HELD_AGAIN_S, self._release, resource, meta)

    def _lost(self, resource: str, obj: Obj) -> None:
        """Create something that was lost again, unless it has done its work or nobody wants it."""
        name, space = obj["metadata"]["name"], obj["metadata"].get("namespace", "")
        if resource == objects.PODS:
            work = self.submitted.get(f"{space}/{obj['metadata'].get('labels', {}).get('app', '')}")
            if work is None or work.kind not in ("gang", "deployment") or _phase(obj) in _ENDED:
                return
        else:
            kinds = {objects.JOBS: "vcjob", objects.GROUPS: "gang"}
            work = self.submitted.get(f"{space}/{name}")
            if work is None or work.kind != kinds.get(resource):
                return
        if work.key not in self._unwanted:
            draws = self._draws_of(obj["metadata"])
            delay = draws.between(*(_AGAIN_S if resource == objects.PODS else _APPLIED_S))
            self._world.later(delay, self._again, work, name)

    def _again(self, work: Work, name: str) -> None:
        if work.kind == "deployment":
            self._do(self._replica(work))
        else:
            (obj,) = (each for each in _objects(work) if each["metadata"]["name"] == name)
            self._do(self._create(work, obj))

    # Counting

    def _count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    def _count_pod(self, event: Event) -> None:
        asked = ASKED.get()
        if asked is None or not asked.client.name.startswith("scheduler"):
            return
        if asked.resource == "pods/binding":
            self._count("bind")
        elif event.type == "DELETED" or (
            "deletionTimestamp" in event.stored.obj["metadata"]
            and (event.prev is None or "deletionTimestamp" not in event.prev.obj["metadata"])
        ):
            self._count("eviction")

    def _count_holder(self, lease: Obj) -> None:
        name, holder = lease["metadata"]["name"], lease["spec"].get("holderIdentity") or ""
        if holder:
            if self._holders.get(name, holder) != holder:
                self._count("leader")
            self._holders[name] = holder


def queue_object(queue: Queue) -> Obj:
    """Return a queue of the plan."""
    limits = {"capability": queue.capability, "deserved": queue.deserved}
    spec: Obj = {name: {"cpu": cpus} for name, cpus in limits.items() if cpus}
    if queue.guarantee:
        spec["guarantee"] = {"resource": {"cpu": queue.guarantee}}
    if queue.parent:
        spec["parent"] = queue.parent
    return objects.queue(queue.name, weight=queue.weight, reclaimable=queue.reclaimable, **spec)


def _objects(work: Work) -> Iterator[Obj]:
    """Return what is created for a piece of work, in order; pods of ReplicaSets are left to their controller."""
    notes = {"kubelet.volcano-py/duration": str(work.ends_after_s)} if work.ends_after_s else {}
    ending: dict[str, Any] = {"command": ["sh", "-c", "exit 1"]} if work.fails else {}
    if work.kind == "vcjob":
        spec = objects.pod_spec(work.cpu, restartPolicy="OnFailure")
        spec["containers"][0].update(ending)
        template = {"metadata": {"annotations": notes}, "spec": spec}
        job = objects.vcjob(work.name, _tasks(work, template), work.minimum, work.queue, work.priority, work.policy)
        yield _more(work, job)
    elif work.kind == "deployment":
        spec = objects.pod_spec(work.cpu, restartPolicy="Always")
        yield objects.replica_set(work.name, work.pods, {"spec": spec}, work.space)
    else:
        gang = work.name if work.kind == "gang" else ""
        if gang:
            yield objects.group(gang, work.minimum, work.queue, work.cpu, work.priority, namespace=work.space)
        for index in range(work.pods):
            pod = objects.pod(f"{work.name}-{index}", work.cpu, gang, work.priority, namespace=work.space)
            pod["metadata"]["annotations"].update(notes)
            pod["spec"]["containers"][0].update(ending)
            yield pod


def _more(work: Work, job: Obj) -> Obj:
    """Give a job what only wide plans have."""
    spec = job["spec"]
    job["metadata"]["namespace"] = work.space
    if work.plugins:
        spec["plugins"] = {plugin: [] for plugin in work.plugins}
    if work.ordered and len(spec["tasks"]) > 1:
        spec["tasks"][1]["dependsOn"] = {"name": [spec["tasks"][0]["name"]]}
    if work.claim:
        claim = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
        spec["volumes"] = [{"mountPath": "/data", "volumeClaim": claim}]
    if work.held_s:
        job["metadata"]["finalizers"] = [objects.HOLD]
        for task in spec["tasks"]:
            task["template"]["metadata"] = {**task["template"]["metadata"], "finalizers": [objects.HOLD]}
    return job


def _belongs(meta: Obj, work: Work) -> bool:
    """Say whether an object is a job of this work, or one of its pods."""
    return meta["namespace"] == work.space and (meta["name"] == work.name or meta["name"].startswith(f"{work.name}-"))


def _called(work: Work) -> str:
    return work.name if work.space == objects.NAMESPACE else work.key


def _tasks(work: Work, template: Obj) -> list[tuple[str, int, int, Obj]]:
    if work.tasks == 1:
        return [("main", work.pods, work.minimum, template)]
    first = {**template, "metadata": {}}  # runs until the job ends
    return [
        ("master", 1, 1, copy.deepcopy(first)),
        ("worker", work.pods - 1, max(work.minimum - 1, 0), copy.deepcopy(template)),
    ]


def _phase(obj: Obj) -> str:
    status = obj.get("status") or {}
    phase = status.get("phase") or (status.get("state") or {}).get("phase")
    return str(phase or "")
