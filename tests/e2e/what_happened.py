"""What happened while a hundred jobs ran, as the versions of the objects tell it, until all jobs were at rest."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import datetime
from itertools import groupby
from typing import NamedTuple

from tests.e2e.hundred_jobs import GPU, Run, key_of
from tests.e2e.recorder import Obj, Seen
from volcano_py.api.quantity import parse_quantity

GROUP = "scheduling.k8s.io/group-name"
MIB = 2**20
ENDED = ("Succeeded", "Failed")


class Amounts(NamedTuple):
    """Resources in the units of Volcano's metrics."""

    milli_cpu: float = 0.0
    memory_bytes: float = 0.0
    gpus: float = 0.0  # thousandths
    pods: float = 0.0

    def plus(self, other: Amounts) -> Amounts:
        """Return the sum."""
        return Amounts(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


class Pod(NamedTuple):
    """The life of one pod."""

    last: Obj
    created: float
    bound: float | None
    """When the API server took the bind, in whole Unix seconds."""
    deleted: bool
    evicted: bool

    @property
    def group(self) -> str:
        """Namespace and name of its PodGroup."""
        return f"{self.last['metadata']['namespace']}/{self.last['metadata']['annotations'][GROUP]}"

    @property
    def holds(self) -> bool:
        """Whether it holds resources of a node."""
        return self.bound is not None and not self.deleted and self.last["status"]["phase"] not in ENDED

    @property
    def waits(self) -> bool:
        """Whether it waits for a node."""
        return self.bound is None and not self.deleted

    @property
    def asks(self) -> Amounts:
        """What it requests."""
        found = Amounts(pods=1)
        for container in self.last["spec"]["containers"]:
            found = found.plus(amounts(container.get("resources", {}).get("requests", {})))
        return found


class Happened:
    """Numbers to compare metrics with."""

    def __init__(self, run: Run) -> None:
        histories = {
            name: [
                cut
                for history in record.everything()
                if (cut := [seen for seen in history if seen.at <= run.rested_at])
            ]
            for name, record in run.records.items()
        }
        namespaces = {job.split("/")[0] for job in run.jobs}
        self.pods = [_pod(each) for each in histories["pods"] if _namespace(each) in namespaces]
        self.jobs = [each for each in histories["jobs"] if _namespace(each) in namespaces]
        self.groups = [each for each in histories["podgroups"] if _namespace(each) in namespaces]
        self.flows = [each for each in histories["flows"] if _namespace(each) in namespaces]
        self.alive_groups = {key_of(obj): obj for obj in _alive(histories["podgroups"])}
        self.queues = {obj["metadata"]["name"]: obj for obj in _alive(histories["queues"])}
        self.capacity = Amounts()
        for node in run.nodes.values():
            self.capacity = self.capacity.plus(amounts(node["status"]["allocatable"]))

    @property
    def bound(self) -> list[Pod]:
        """The pods that were bound, evicted ones and deleted ones too."""
        return [pod for pod in self.pods if pod.bound is not None]

    def entered(self, histories: list[list[Seen]], phase: str) -> Counter[str]:
        """Return how often each object entered a phase, by namespace and name."""
        found: Counter[str] = Counter()
        for history in histories:
            phases = [entered for entered, _ in groupby(_phase(seen.obj) for seen in history)]
            if times := phases.count(phase):
                found[key_of(history[-1].obj)] += times
        return found

    def queue_of_job(self, key: str) -> str:
        """Return the queue of a job."""
        return next(str(each[-1].obj["spec"]["queue"]) for each in self.jobs if key_of(each[-1].obj) == key)

    def job_created(self, pod: Pod) -> float:
        """Return when the job of a pod was created."""
        (owner,) = pod.last["metadata"]["ownerReferences"]
        return next(_created(each[-1].obj) for each in self.jobs if each[-1].obj["metadata"]["uid"] == owner["uid"])

    def group_created(self, pod: Pod) -> float:
        """Return when the PodGroup of a pod was created."""
        return next(_created(each[-1].obj) for each in self.groups if key_of(each[-1].obj) == pod.group)

    def below_minimum(self) -> dict[str, int]:
        """Return how many pods PodGroups need for their minimum, by name, of those that lack any."""
        holding = Counter(pod.group for pod in self.pods if pod.holds)
        found = {key: obj["spec"]["minMember"] - holding[key] for key, obj in self.alive_groups.items()}
        return {key.split("/")[1]: lacking for key, lacking in found.items() if lacking > 0}

    def group_phases(self) -> dict[str, Counter[str]]:
        """Return how many PodGroups each queue has in each phase."""
        found: dict[str, Counter[str]] = {name: Counter() for name in self.queues}
        for obj in self.alive_groups.values():
            found[obj["spec"]["queue"]][_phase(obj)] += 1
        return found

    def held_by_queue(self) -> dict[str, Amounts]:
        """Return what the pods of each queue hold."""
        return self._by_queue([pod for pod in self.pods if pod.holds])

    def requested_by_queue(self) -> dict[str, Amounts]:
        """Return what the pods of each queue hold or ask for."""
        return self._by_queue([pod for pod in self.pods if pod.holds or pod.waits])

    def held_by_job(self) -> dict[str, Amounts]:
        """Return what the pods of each PodGroup hold."""
        found: defaultdict[str, Amounts] = defaultdict(Amounts)
        for pod in self.pods:
            if pod.holds:
                found[pod.group] = found[pod.group].plus(pod.asks)
        return found

    def _by_queue(self, pods: list[Pod]) -> dict[str, Amounts]:
        found = dict.fromkeys(self.queues, Amounts())
        for pod in pods:
            queue = self.alive_groups[pod.group]["spec"]["queue"]
            found[queue] = found[queue].plus(pod.asks)
        return found


def amounts(found: Obj) -> Amounts:
    """Return resources in the units of Volcano's metrics."""
    return Amounts(
        float(parse_quantity(found.get("cpu", "0")) * 1000),
        float(parse_quantity(found.get("memory", "0"))),
        float(parse_quantity(found.get(GPU, "0")) * 1000),
        float(parse_quantity(found.get("pods", "0"))),
    )


def _pod(history: list[Seen]) -> Pod:
    last = history[-1].obj
    bound = [
        _seconds(condition["lastTransitionTime"])
        for seen in history
        for condition in seen.obj["status"].get("conditions", ())
        if condition["type"] == "PodScheduled" and condition["status"] == "True"
    ]
    evicted = any(
        condition["type"] == "DisruptionTarget"
        for seen in history
        for condition in seen.obj["status"].get("conditions", ())
    )
    return Pod(last, _created(last), min(bound, default=None), history[-1].kind == "DELETED", evicted)


def _alive(histories: list[list[Seen]]) -> list[Obj]:
    return [history[-1].obj for history in histories if history[-1].kind != "DELETED"]


def _namespace(history: list[Seen]) -> str:
    return str(history[-1].obj["metadata"]["namespace"])


def _created(obj: Obj) -> float:
    return _seconds(obj["metadata"]["creationTimestamp"])


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _phase(obj: Obj) -> str:
    status = obj.get("status", {})
    return str(status.get("phase") or status.get("state", {}).get("phase") or "Pending")
