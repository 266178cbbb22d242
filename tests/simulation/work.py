"""Those who use the cluster: they submit work, keep it as they want it, and delete it."""

import asyncio
import copy
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from tests.simulation import objects
from tests.simulation.draws import Draws
from tests.simulation.loop import Process
from tests.simulation.objects import Obj
from tests.simulation.plan import Queue, Work
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
_ENDED: Final = ("Succeeded", "Failed")


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
        self._holders: dict[str, str] = {}
        self.submitted: dict[str, Work] = {}
        """By name."""
        self.counts: dict[str, int] = {}
        """What came of it: binds, evictions, restarts of jobs, changes of leaders."""
        world.servers.store.listeners.append(self._changed)

    # What users want

    def submit(self, work: Work) -> None:
        """Create the objects of a piece of work, and delete them later if its owner does so."""
        self._world.history.note("submit", work.name)
        self.submitted[work.name] = work
        self._do(self._submit(work))
        for number, (after_s, action) in enumerate(work.commands):
            self._world.later(after_s, self._order, work, number, action)
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
        name = obj["metadata"]["name"]
        draws = self._tried.setdefault(name, Draws(self._world.seed, f"user of {name}"))
        while work.name not in self._unwanted:
            problem = await self._attempt(obj)
            if not problem:
                return
            self._world.history.note("refused", name, problem[:200])
            await asyncio.sleep(draws.between(*_AGAIN_S))

    async def _attempt(self, obj: Obj) -> str:
        """Create an object; return why that failed."""
        world = self._world
        if not world.plan.webhooks:
            try:
                world.servers.create(copy.deepcopy(obj))
            except (StatusError, LookupError) as error:
                exists = isinstance(error, StatusError) and error.reason == "AlreadyExists"
                return "" if exists else f"{type(error).__name__}: {error}"
            return ""
        resource = world.servers.registry.resources.of_kind(obj["apiVersion"], obj["kind"])
        if resource is None:
            return f"{obj['kind']} is not served"
        group, _, version = obj["apiVersion"].rpartition("/")
        wanted = Resource(group, version, resource.plural, obj["kind"])
        try:
            client = await self._opened()
            await client.create(wanted, obj, dict[str, Any], namespace=objects.NAMESPACE, timeout_s=_TIMEOUT_S)
        except errors.AlreadyExists:
            return ""
        except errors.ApiError as error:
            return str(error)
        return ""

    async def _opened(self) -> ApiClient:
        if self._client is None:
            self._client = ApiClient(Credentials(URL), user_agent="kubectl")
            await self._client.__aenter__()
        return self._client

    async def _replica(self, work: Work) -> None:
        """Create a pod of a ReplicaSet that exists, as its controller does."""
        owner = self._world.servers.get(objects.REPLICA_SETS, work.name, objects.NAMESPACE)
        if owner is None or "deletionTimestamp" in owner["metadata"]:
            return
        self._replacements += 1
        pod = objects.pod(f"{work.name}-{self._replacements}", work.cpu, "", work.priority, restartPolicy="Always")
        meta = pod["metadata"]
        meta["labels"]["app"] = work.name
        reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": work.name, "uid": owner["metadata"]["uid"]}
        meta["ownerReferences"] = [{**reference, "controller": True}]
        await self._create(work, pod)

    def _order(self, work: Work, number: int, action: str) -> None:
        """Ask for something with a job, as `vcctl job suspend` does."""
        job = self._world.servers.get(objects.JOBS, work.name, objects.NAMESPACE)
        if job is not None:
            self._world.history.note("command", action, work.name)
            self._do(self._create(work, objects.command(f"{work.name}-{number}", action, job)))

    def _give_up(self, work: Work) -> None:
        """Delete what was submitted."""
        self._world.history.note("delete", work.name)
        self._unwanted.add(work.name)
        registry = self._world.servers.registry
        found = [(objects.PODS, f"{work.name}-{index}") for index in range(work.pods)]
        if work.kind == "vcjob":
            found = [(objects.JOBS, work.name)]
        elif work.kind == "deployment":
            found = [(objects.REPLICA_SETS, work.name)]
        elif work.kind == "gang":
            found.append((objects.GROUPS, work.name))
        for resource, name in found:
            if self._world.servers.get(resource, name, objects.NAMESPACE) is not None:
                registry.delete(registry.resources.named(resource), objects.NAMESPACE, name, DeleteOptions())

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

    def _lost(self, resource: str, obj: Obj) -> None:
        """Create something that was lost again, unless it has done its work or nobody wants it."""
        name = obj["metadata"]["name"]
        if resource == objects.PODS:
            work = self.submitted.get(obj["metadata"].get("labels", {}).get("app", ""))
            if work is None or work.kind not in ("gang", "deployment") or _phase(obj) in _ENDED:
                return
        else:
            kinds = {objects.JOBS: "vcjob", objects.GROUPS: "gang"}
            work = self.submitted.get(name)
            if work is None or work.kind != kinds.get(resource):
                return
        if work.name not in self._unwanted:
            draws = self._tried.setdefault(name, Draws(self._world.seed, f"user of {name}"))
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
    return objects.queue(queue.name, weight=queue.weight, reclaimable=queue.reclaimable, **spec)


def _objects(work: Work) -> Iterator[Obj]:
    """Return what is created for a piece of work, in order; pods of ReplicaSets are left to their controller."""
    notes = {"kubelet.volcano-py/duration": str(work.ends_after_s)} if work.ends_after_s else {}
    ending: dict[str, Any] = {"command": ["sh", "-c", "exit 1"]} if work.fails else {}
    if work.kind == "vcjob":
        spec = objects.pod_spec(work.cpu, restartPolicy="OnFailure")
        spec["containers"][0].update(ending)
        template = {"metadata": {"annotations": notes}, "spec": spec}
        yield objects.vcjob(work.name, _tasks(work, template), work.minimum, work.queue, work.priority, work.policy)
    elif work.kind == "deployment":
        yield objects.replica_set(work.name, work.pods, {"spec": objects.pod_spec(work.cpu, restartPolicy="Always")})
    else:
        gang = work.name if work.kind == "gang" else ""
        if gang:
            yield objects.group(gang, work.minimum, work.queue, work.cpu, work.priority)
        for index in range(work.pods):
            pod = objects.pod(f"{work.name}-{index}", work.cpu, gang, work.priority)
            pod["metadata"]["annotations"].update(notes)
            pod["spec"]["containers"][0].update(ending)
            yield pod


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
