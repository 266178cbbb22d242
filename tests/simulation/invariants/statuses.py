"""At rest, the numbers that users read are so: of jobs, of PodGroups and of queues."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from tests.simulation import objects
from tests.simulation.invariants.invariant import Invariant
from tests.simulation.invariants.jobs import completed
from tests.simulation.truth import quantity
from volcano_py.api import keys

_PHASES: Final = ("Pending", "Running", "Succeeded", "Failed")
_GROUP_PHASES: Final = ("Pending", "Inqueue", "Running", "Unknown", "Completed")
_HOLD: Final = frozenset({"Pending", "Running"})
_FINISHED: Final = frozenset({"Completed", "Failed", "Terminated"})
_TERMINATING: Final = "Terminating"


def _phase(pod: Mapping[str, Any]) -> str:
    return _TERMINATING if "deletionTimestamp" in pod["metadata"] else str(pod["status"].get("phase", "Pending"))


def _key(obj: Mapping[str, Any]) -> str:
    return f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"


def _group(pod: Mapping[str, Any]) -> str:
    """Return the PodGroup that a pod names, with its namespace."""
    return f"{pod['metadata']['namespace']}/{pod['metadata'].get('annotations', {}).get(objects.GROUP_NAME, '')}"


class StatusesAreTrue(Invariant):
    """At rest, jobs count their pods, PodGroups theirs, and queues their PodGroups and what their pods hold.

    Rests on the objects in the API server alone.
    """

    name = "statuses are true"

    def at_rest(self) -> None:
        """Count again."""
        pods = self.world.servers.objects(objects.PODS)
        self._jobs(pods)
        self._groups(pods)
        self._queues(pods)

    def _compare(self, what: str, said: Mapping[str, int], true: Mapping[str, int]) -> None:
        for name in sorted(true):
            if said.get(name, 0) != true[name]:
                self.violated(f"{what} says {name} {said.get(name, 0)}, and there are {true[name]}")

    def _jobs(self, pods: list[dict[str, Any]]) -> None:
        counts: dict[str, Counter[str]] = {}
        for pod in pods:
            for owner in pod["metadata"].get("ownerReferences", []):
                counts.setdefault(owner["uid"], Counter())[_phase(pod).lower()] += 1
        for job in self.world.servers.objects(objects.JOBS):
            found, status = counts.get(job["metadata"]["uid"], Counter()), job.get("status", {})
            found["succeeded"] += len(completed(status))
            if status.get("state", {}).get("phase") in _FINISHED:
                found |= Counter({name: status.get(name, 0) for name in ("succeeded", "failed")})  # pods may be gone
            names = (*(phase.lower() for phase in _PHASES), _TERMINATING.lower())
            self._compare(f"job {objects.short_key(job['metadata'])}", status, {name: found[name] for name in names})

    def _groups(self, pods: list[dict[str, Any]]) -> None:
        counts: dict[str, Counter[str]] = {}
        for pod in pods:
            counts.setdefault(_group(pod), Counter())[_phase(pod).lower()] += 1
        for group in self.world.servers.objects(objects.GROUPS):
            name = _key(group)
            found = counts.get(name, Counter())
            true = {phase: found[phase] for phase in ("running", "succeeded", "failed")}
            self._compare(f"PodGroup {objects.short_key(group['metadata'])}", group.get("status", {}), true)

    def _queues(self, pods: list[dict[str, Any]]) -> None:
        phases: dict[str, Counter[str]] = {}
        queue_of: dict[str, str] = {}
        for group in self.world.servers.objects(objects.GROUPS):
            queue = group["spec"].get("queue") or keys.DEFAULT_QUEUE
            queue_of[_key(group)] = queue
            phases.setdefault(queue, Counter())[(group.get("status", {}).get("phase") or "Pending").lower()] += 1
        held: Counter[str] = Counter()
        for pod in pods:
            if pod["spec"].get("nodeName") and pod["spec"]["schedulerName"] == "volcano" and _phase(pod) in _HOLD:
                queue = queue_of.get(_group(pod), "")
                for container in pod["spec"]["containers"]:
                    held[queue] += quantity(container["resources"]["requests"]["cpu"])
        parents = {
            queue["metadata"]["name"]: queue["spec"].get("parent", "")
            for queue in self.world.servers.objects(objects.QUEUES)
        }
        for name, cpus in tuple(held.items()):
            above = parents.get(name, "")
            while above:
                held[above] += cpus
                above = parents.get(above, "")
        for queue in self.world.servers.objects(objects.QUEUES):
            name, status = queue["metadata"]["name"], queue.get("status", {})
            found = phases.get(name, Counter())
            self._compare(f"queue {name}", status, {phase.lower(): found[phase.lower()] for phase in _GROUP_PHASES})
            if name != keys.ROOT_QUEUE:
                said = quantity(status.get("allocated", {}).get("cpu", 0))
                self._compare(
                    f"queue {name}",
                    {"allocated thousandths of a CPU": said},
                    {"allocated thousandths of a CPU": held[name]},
                )
