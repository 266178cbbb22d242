"""Jobs: they take the ways of their table, a lost pod restarts its job, and at rest a job has what it should have."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tests.simulation import insight, objects, programs
from tests.simulation.invariants.invariant import Invariant
from volcano_py.api import keys
from volcano_py.apiserver.store import Event

if TYPE_CHECKING:
    from tests.simulation.servers import Asked
    from tests.simulation.world import World

_CONTROLLERS: Final = "controllers"
_EVICTED: Final = "PodEvicted"
_RESTART: Final = "RestartJob"
_ENDED: Final = frozenset({"Succeeded", "Failed"})
_KILLED: Final = frozenset({"Restarting", "Aborting", "Terminating", "Completing"})
_FOLLOWS: Final[Mapping[str, frozenset[str]]] = {
    "": frozenset({"Pending"}),
    "Pending": frozenset({"Running"}) | _KILLED,
    "Running": frozenset({"Pending", "Completed", "Failed"}) | _KILLED,
    "Restarting": frozenset({"Pending", "Failed", "Aborting", "Terminating", "Completing"}),
    "Aborting": frozenset({"Aborted", "Restarting"}),
    "Aborted": frozenset({"Restarting"}),
    "Terminating": frozenset({"Terminated"}),
    "Completing": frozenset({"Completed"}),
    "Completed": frozenset(),
    "Failed": frozenset(),
    "Terminated": frozenset(),
}
"""Volcano's state machine, stated anew. Volcano does not honour an end that is asked for during a restart; we do."""
_ACTIVE: Final = frozenset({"Pending", "Running"})
_KNOWN_AFTER_S: Final = 60.0
"""After this time, a loss is surely written into the status of the job."""
_AT_REST: Final = frozenset({"Completed", "Failed", "Terminated", "Aborted"})


@dataclass(slots=True)
class _Pod:
    """A pod of a job, as the API server had it last."""

    key: str
    job: str
    version: int
    by_others: bool | None = None
    """Whether somebody else than the controllers has deleted it; None: nobody has."""
    killed: bool = False
    """Whether the controllers have marked it."""
    lost_at: float = 0.0
    seen_by: tuple[str, int] | None = None
    """The controller manager that led when others deleted it, and the number of its process; None: it is not known."""
    task: str = ""
    index: str = ""
    gone_at: float | None = None
    completed: bool = False
    """Whether it had succeeded before anybody deleted it."""
    counted: bool = False
    """Whether the status of its job counted it when others deleted it."""
    unneeded: bool = False
    """Whether its task had fewer replicas when it was gone, or soon after."""


@dataclass(slots=True)
class _Job:
    """A job, as the API server had it last, and what became of its pods."""

    phase: str = ""
    version: int = 0
    retries: int = 0
    lost: dict[str, int] = field(default_factory=dict)
    """Pods that others have deleted, by key, with the version of the job for which they were made."""
    counts: dict[str, int] = field(default_factory=dict)
    """How many pods of each task its status counts."""
    replicas: dict[str, int] = field(default_factory=dict)
    """How many pods each task should have."""

    def needs(self, pod: _Pod) -> bool:
        """Say whether a pod with this index should be there; a pod without a number as its index always."""
        return not pod.index.isdigit() or int(pod.index) < self.replicas.get(pod.task, 0)


class JobsKeepTheirTable(Invariant):
    """A job takes only the ways of its table, counts every restart, and restarts for a lost pod only if it lost one.

    At rest, a job that is not finished has a later version than each pod that it lost to others, if it is to restart
    for that. Excused are pods that had succeeded; pods that were gone, or not yet known to be gone, when their task had
    so few replicas that it no longer needed them; and pods that the status did not count, if they were lost while no
    controller manager led, or less than a minute before the one that led ended: the next one cannot know of them, as in
    Volcano. A list of an older state may leave out a pod that is there.

    If a job notes that a pod has succeeded and is gone, that is true. Rests on what the API server has accepted, and on
    who asked for it.
    """

    name = "jobs keep their table"

    def __init__(self, world: "World") -> None:
        super().__init__(world)
        self._jobs: dict[str, _Job] = {}
        self._pods: dict[str, _Pod] = {}

    def changed(self, resource: str, event: Event, asked: "Asked | None") -> None:
        """Follow jobs and their pods."""
        if resource == objects.JOBS:
            self._job_changed(event)
        elif resource == objects.PODS:
            self._pod_changed(event, asked)

    def _job_changed(self, event: Event) -> None:
        obj = event.stored.obj
        status = obj.get("status", {})
        job = self._jobs.setdefault(obj["metadata"]["uid"], _Job())
        before = _Job(job.phase, job.version, job.retries)
        job.phase = status.get("state", {}).get("phase", "")
        job.version, job.retries = status.get("version", 0), status.get("retryCount", 0)
        counts = status.get("taskStatusCount") or {}
        uid = obj["metadata"]["uid"]
        done = {(pod.task, pod.index) for pod in self._pods.values() if pod.job == uid and pod.completed}
        if lies := completed(status) - done:
            self.violated(f"job {event.stored.key} says of pods that they have succeeded: {sorted(lies)}")
        job.replicas = {task["name"]: task["replicas"] for task in obj["spec"]["tasks"]}
        for pod in self._pods.values():
            if pod.job == uid and pod.gone_at is not None and self.world.loop.time() - pod.gone_at < _KNOWN_AFTER_S:
                pod.unneeded |= not job.needs(pod)
        job.counts = {task: sum((state.get("phase") or {}).values()) for task, state in counts.items()}
        if job.version < before.version or job.retries < before.retries:
            self.violated(f"job {event.stored.key} forgets restarts: {before} became {job}")
        if job.phase == before.phase:
            return
        if job.phase not in _FOLLOWS[before.phase]:
            self.violated(f"job {event.stored.key} went from {before.phase or 'its beginning'} to {job.phase}")
        if job.phase == "Restarting":
            reason = status["state"].get("reason", "")
            drained = reason == _EVICTED and job.version == before.version and before.retries > 0
            counts = {before.retries + 1, before.retries} if drained else {before.retries + 1}
            if before.phase in _ACTIVE | {""} and job.retries not in counts:
                self.violated(f"job {event.stored.key} restarts, and its retryCount stays {job.retries}")
            known = not self.world.servers.stale_lists_in_force()
            if reason == _EVICTED and max(job.lost.values(), default=-1) < before.version and known:
                self.violated(f"job {event.stored.key} restarts because of a pod that nobody has taken from it")

    def _pod_changed(self, event: Event, asked: "Asked | None") -> None:
        meta = event.stored.obj["metadata"]
        pod = self._pods.get(meta["uid"])
        if pod is None:
            if not (owner := _owner(meta)):
                return
            version = int(meta.get("annotations", {}).get(keys.JOB_VERSION, 0))
            task = meta.get("annotations", {}).get(keys.TASK_SPEC, "")
            index = meta.get("labels", {}).get(keys.TASK_INDEX, "")
            pod = self._pods[meta["uid"]] = _Pod(event.stored.key, owner, version, task=task, index=index)
        pod.killed |= keys.OUT_OF_SYNC in meta.get("annotations", {})
        if event.type != "DELETED" and event.stored.obj.get("status", {}).get("phase") == "Succeeded":
            pod.completed |= pod.by_others is None and "deletionTimestamp" not in meta
        gone = event.type == "DELETED"
        if pod.by_others is None and (gone or "deletionTimestamp" in meta):
            pod.by_others = asked is None or not asked.client.name.startswith(_CONTROLLERS)
            pod.lost_at, pod.seen_by = self.world.loop.time(), self._leader()
            alike = (each for each in self._pods.values() if (each.job, each.task) == (pod.job, pod.task))
            there = sum(each.gone_at is None for each in alike)
            pod.counted = self._jobs.setdefault(pod.job, _Job()).counts.get(pod.task, 0) >= there
        if gone:
            pod.gone_at = self.world.loop.time()
            pod.unneeded = not self._jobs.setdefault(pod.job, _Job()).needs(pod)
        if pod.by_others and not pod.killed:
            job = self._jobs.setdefault(pod.job, _Job())
            job.lost[pod.key] = max(pod.version, job.lost.get(pod.key, 0))

    def _leader(self) -> tuple[str, int] | None:
        machines = (self.world.machines[name] for name in programs.CONTROLLERS)
        return next(((machine.name, machine.starts) for machine in machines if insight.works(machine)), None)

    def now(self) -> None:
        """Note which losses the next controller manager cannot know of."""
        for pod in self._pods.values():
            if pod.seen_by is not None and self.world.loop.time() - pod.lost_at < _KNOWN_AFTER_S:
                machine = self.world.machines[pod.seen_by[0]]
                if machine.starts != pod.seen_by[1] or not insight.works(machine):
                    pod.seen_by = None

    def at_rest(self) -> None:
        """Compare the versions of jobs with those of the pods that they have lost."""
        there = {pod["metadata"]["uid"] for pod in self.world.servers.objects(objects.PODS)}
        for obj in self.world.servers.objects(objects.JOBS):
            job = self._jobs[obj["metadata"]["uid"]]
            if job.phase not in _ACTIVE or not _restarts(obj):
                continue
            for uid, pod in self._pods.items():
                if pod.job != obj["metadata"]["uid"] or uid in there or not pod.by_others or pod.killed:
                    continue
                if pod.completed or pod.unneeded or (pod.seen_by is None and not pod.counted):
                    continue
                if pod.version >= job.version:
                    name = objects.short_key(obj["metadata"])
                    self.violated(f"job {name} has lost {pod.key} in version {pod.version} and did not restart")


class OnePodPerIndex(Invariant):
    """A job never has two pods of one task and index at a time.

    Rests on the owner and the labels of the pods, not on their names.
    """

    name = "one pod per index"

    def __init__(self, world: "World") -> None:
        super().__init__(world)
        self._there: dict[tuple[str, str, str], str] = {}  # owner, task, index -> uid of the pod

    def changed(self, resource: str, event: Event, asked: "Asked | None") -> None:
        """Look at pods that come and go."""
        if resource != objects.PODS or event.type == "MODIFIED":
            return
        meta = event.stored.obj["metadata"]
        owner = _owner(meta)
        if not owner:
            return
        index = (owner, *_index(meta))
        if event.type == "DELETED":
            if self._there.get(index) == meta["uid"]:
                del self._there[index]
        elif index in self._there:
            self.violated(f"pod {event.stored.key} is the second one of its job with task {index[1]}, index {index[2]}")
        else:
            self._there[index] = meta["uid"]


class TasksWaitForOthers(Invariant):
    """A pod of a task that depends on others is made only after enough of their pods ran or succeeded once.

    Rests on what the API server has accepted.
    """

    name = "tasks wait for others"

    def __init__(self, world: "World") -> None:
        super().__init__(world)
        self._tasks: dict[str, list[dict[str, Any]]] = {}  # by uid of a job in which a task depends on others
        self._ready: dict[tuple[str, str], set[str]] = {}  # by uid of the job and task -> uids of pods

    def changed(self, resource: str, event: Event, asked: "Asked | None") -> None:
        """Follow jobs, and look at their pods."""
        obj = event.stored.obj
        if resource == objects.JOBS:
            tasks = obj["spec"]["tasks"]
            if any("dependsOn" in task for task in tasks):
                self._tasks[obj["metadata"]["uid"]] = tasks
        elif resource == objects.PODS and self._tasks and (tasks := self._tasks.get(_owner(obj["metadata"]), [])):
            job, task = _owner(obj["metadata"]), _index(obj["metadata"])[0]
            if obj.get("status", {}).get("phase") in ("Running", "Succeeded"):
                self._ready.setdefault((job, task), set()).add(obj["metadata"]["uid"])
            if event.type == "ADDED":
                self._look(event.stored.key, job, task, tasks)

    def _look(self, pod: str, job: str, task: str, tasks: list[dict[str, Any]]) -> None:
        needed = {one["name"]: one.get("minAvailable") or 0 for one in tasks}
        others = [name for one in tasks if one["name"] == task for name in one.get("dependsOn", {}).get("name", ())]
        for other in others:
            ready = len(self._ready.get((job, other), ()))
            if ready < needed.get(other, 0):
                self.violated(f"pod {pod} is made, and {ready} pods of task {other} were ready, not {needed[other]}")


class JobsHaveTheirPods(Invariant):
    """At rest, a job that is under way has its PodGroup and, once that is admitted, one pod for every task and index.

    A job that has ended has no PodGroup and no pod that has not ended. No pod that has not ended is of a former
    version, and none is left of a job that is gone. A job that cannot create pods says so.

    A list of an older state may leave pods out. If the job is restarted for them, they are there when it has ended.
    """

    name = "jobs have their pods"

    def __init__(self, world: "World") -> None:
        super().__init__(world)
        self._versions: dict[str, int] = {}  # by uid of the job: its version, and its last one of a misled controller
        self._misled: dict[str, int] = {}

    def changed(self, resource: str, event: Event, asked: "Asked | None") -> None:
        """Follow the versions of jobs."""
        if resource == objects.JOBS:
            uid, version = event.stored.obj["metadata"]["uid"], event.stored.obj.get("status", {}).get("version", 0)
            if self._versions.get(uid, 0) < version and self.world.servers.stale_lists_in_force():
                self._misled[uid] = version
            self._versions[uid] = version

    def at_rest(self) -> None:
        """Compare jobs with PodGroups and pods."""
        groups: dict[str, dict[str, Any]] = {}
        for group in self.world.servers.objects(objects.GROUPS):
            groups[_owner(group["metadata"])] = group
        pods: dict[str, list[dict[str, Any]]] = {}
        for pod in self.world.servers.objects(objects.PODS):
            pods.setdefault(_owner(pod["metadata"]), []).append(pod)
        for job in self.world.servers.objects(objects.JOBS):
            uid = job["metadata"]["uid"]
            self._look(job, groups.get(uid), pods.pop(uid, []))
        pods.pop("", None)
        for orphans in pods.values():
            self.violated(f"the job of {sorted(pod['metadata']['name'] for pod in orphans)} is gone")

    def _look(self, job: dict[str, Any], group: dict[str, Any] | None, pods: list[dict[str, Any]]) -> None:
        name, status = objects.short_key(job["metadata"]), job.get("status", {})
        phase = status.get("state", {}).get("phase", "")
        alive = [pod for pod in pods if pod["status"].get("phase") not in _ENDED]
        if phase in _AT_REST:
            if alive or group is not None:
                self.violated(f"job {name} is {phase} and still has pods or a PodGroup")
            return
        if phase not in _ACTIVE:
            self.violated(f"job {name} stays in phase {phase or 'none'}")
            return
        if group is None:
            self.violated(f"job {name} is {phase} and has no PodGroup")
            return
        version = status.get("version", 0)
        for pod in alive:
            made_for = int(pod["metadata"]["annotations"].get(keys.JOB_VERSION, 0))
            if made_for < version and made_for >= self._misled.get(job["metadata"]["uid"], 0):
                self.violated(f"pod {pod['metadata']['name']} is of version {made_for}, its job of version {version}")
        admitted = group.get("status", {}).get("phase", "") not in ("", keys.PHASE_PENDING)
        asked = {(task["name"], str(index)) for task in job["spec"]["tasks"] for index in range(task["replicas"])}
        found = {_index(pod["metadata"]) for pod in pods} | completed(status)
        waits = {task["name"] for task in job["spec"]["tasks"] if _waits(task, job["spec"]["tasks"], pods, status)}
        due = {index for index in asked if index[0] not in waits}
        missing = due - found if admitted and status["state"].get("reason") != "FailedCreate" else set()
        if missing or found - asked:
            more = sorted(found - asked)
            self.violated(f"job {name} is {phase}; pods that are missing: {sorted(missing)}, that are too many: {more}")


def _waits(
    task: dict[str, Any], tasks: list[dict[str, Any]], pods: list[dict[str, Any]], status: dict[str, Any]
) -> bool:
    """Say whether a task depends on one that has too few pods which run or have succeeded."""
    ready = Counter(task for task, _ in completed(status))
    for pod in pods:
        ready[_index(pod["metadata"])[0]] += pod["status"].get("phase") in ("Running", "Succeeded")
    needed = {one["name"]: one.get("minAvailable") or 0 for one in tasks}
    return any(ready[name] < needed[name] for name in task.get("dependsOn", {}).get("name", ()))


def completed(status: dict[str, Any]) -> set[tuple[str, str]]:
    """Return task and index of the pods that are gone and count as succeeded."""
    found: set[tuple[str, str]] = set()
    for key, text in (status.get("controlledResources") or {}).items():
        for part in text.split(",") if key.startswith("completed-") else ():
            first, last = (part.split("-") * 2)[:2]
            found |= {(key.removeprefix("completed-"), str(index)) for index in range(int(first), int(last) + 1)}
    return found


def _index(meta: dict[str, Any]) -> tuple[str, str]:
    """Return the task and the index of a job's pod."""
    labels = meta.get("labels", {})
    return labels.get(keys.TASK_SPEC, ""), labels.get(keys.TASK_INDEX, "")


def _owner(meta: dict[str, Any]) -> str:
    """Return the uid of the job that controls an object, "" if none does."""
    for owner in meta.get("ownerReferences", []):
        if owner.get("controller") and owner["kind"] == "Job" and owner["apiVersion"].startswith("batch.volcano.sh/"):
            return str(owner["uid"])
    return ""


def _restarts(job: dict[str, Any]) -> bool:
    """Say whether a job is to restart when it loses a pod."""
    policies = job["spec"].get("policies", [])
    return any(policy.get("event") == _EVICTED and policy.get("action") == _RESTART for policy in policies)
