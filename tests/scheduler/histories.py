"""Random histories of a cluster, cycle by cycle: equal seeds and equal decisions lead to equal histories.

Jobs come, pods start, end, fail and are evicted, nodes and queues change, time passes. What cycles decide is carried
out. Statuses and conditions are sometimes written late, never, or over by somebody else.
"""

from datetime import UTC, datetime
from random import Random

import msgspec

from tests.scheduler.running import a_policy
from volcano_py.api import keys
from volcano_py.api.core import Node, Pod
from volcano_py.api.scheduling import PodGroup
from volcano_py.cache.cluster import ClusterCache
from volcano_py.framework.state.clock import CycleClock
from volcano_py.framework.state.memory import Memory
from volcano_py.framework.state.report import CycleReport
from volcano_py.model.decisions import Bind, Decision, Evict, SetPodCondition, SetPodGroupStatus
from volcano_py.model.objects import JobKey, TaskRef
from volcano_py.runtime.clock import FakeClock
from volcano_py.scheduler import Policy, run_cycle
from volcano_py.simulator.cluster import SimulatedCluster
from volcano_py.testing import a_hyper_node, a_job, a_node, a_priority_class, a_queue
from volcano_py.testing.leaving import made_again

PLUGINS = {
    "plain": "priority gang | predicates nodeorder",
    "alone": "priority | predicates nodeorder binpack",
    "shares": "priority gang conformance | overcommit drf predicates proportion nodeorder binpack",
    "capacity": "priority gang | overcommit drf predicates capacity nodeorder",
    "times": "priority gang sla | tdm predicates proportion nodeorder",
    "topology": "priority gang | predicates nodeorder network-topology-aware",
}
CONFIGURATIONS = [
    f"{plugins}: {actions}"
    for plugins in PLUGINS
    for actions in ("enqueue, allocate, backfill", "enqueue, allocate, backfill, preempt, reclaim", "allocate, preempt")
]
QUEUES = ("default", "q1", "q2")


def a_configuration(name: str) -> str:
    """Return the text of one of the `CONFIGURATIONS`."""
    plugins, _, actions = name.partition(": ")
    tiers = (
        "- plugins:\n" + "".join(f"  - name: {plugin}\n" for plugin in tier.split())
        for tier in PLUGINS[plugins].split("|")
    )
    return f'actions: "{actions}"\ntiers:\n{"".join(tiers)}'


class History:
    """A cluster under one configuration, and the scheduler that runs on it."""

    def __init__(self, seed: int, configuration: str, *, verify_every: int = 0) -> None:
        self._verify_every = verify_every
        self.policy: Policy = a_policy(a_configuration(configuration))
        self.memory = Memory(seen=0)
        self.report = CycleReport()
        self.cluster = SimulatedCluster(ClusterCache(clock=FakeClock()))
        self.now = 1000.0
        self._random = Random(f"{seed} {configuration}")
        self._pods: dict[str, Pod] = {}  # as they were made, by name
        self._groups: dict[str, PodGroup] = {}
        self._nodes: dict[str, Node] = {}
        self._queues = dict.fromkeys(QUEUES, a_queue())
        self._late: list[Decision] = []
        self._made = 0
        self.cluster.put(a_priority_class("high", 1000), *(a_queue(name) for name in QUEUES))
        for _ in range(4):
            self._new_node()
        if configuration.startswith("topology"):
            self.cluster.put(*(a_hyper_node(f"rack-{rack}", 1, pattern=f"n.*{rack}") for rack in (0, 1)))
            self.cluster.put(a_hyper_node("top", 2, children=["rack-0", "rack-1"]))
        for _ in range(self._random.choice((4, 8, 90))):  # allocate looks at many jobs at once
            self._new_job()

    def step(self) -> None:
        """Let something happen between two cycles."""
        self.now += self._random.choice((0.0, 0.1, 1.0, 3.0, 3.0, 3.0, 5.0, 5.0, 5.0, 61.0))
        happenings = (
            *(self._new_job, self._new_job, self._a_pod_ends, self._a_pod_ends, self._a_job_ends, self._a_pod_goes),
            *(self._a_pod_starts, self._new_node, self._a_node_goes, self._a_node_changes, self._a_node_changes),
            *(self._a_queue_changes, self._a_node_goes),
            *(self._somebody_writes, self._somebody_writes, self._writes_are_lost, self._a_group_is_made_again),
        )
        for _ in range(self._random.choice((0, 1, 1, 2, 4))):
            self._random.choice(happenings)()

    def cycle(self) -> list[tuple[Decision, ...]]:
        """Run a cycle, and let its decisions take effect; return them in batches."""
        batches: list[tuple[Decision, ...]] = []
        cache = self.cluster.cache
        token, snapshot = cache.token, cache.snapshot()
        clock = CycleClock(self.now)
        self.memory, self.report = run_cycle(
            snapshot, self.policy, clock, 0, self.memory, batches.append, verify_every=self._verify_every
        )
        for batch in batches:
            binds = tuple(one for one in batch if isinstance(one, Bind))
            for bind in self.cluster.bind(binds, token) if binds else ():
                if self._random.random() < 0.8:
                    self.cluster.set_status(bind.task, phase="Running")
            for evict in (one for one in batch if isinstance(one, Evict)):
                self.cluster.terminate(evict.task, datetime(2026, 1, 1, tzinfo=UTC))
            self._late += batch
        if self._random.random() < 0.7:
            self._write()
        return batches

    def _write(self) -> None:
        for decision in self._late:
            if isinstance(decision, SetPodCondition) and self.cluster.pod(decision.task) is None:
                continue
            self.cluster.write(decision)
        self._late.clear()

    def add_job(self, cpu: str) -> JobKey:
        """Let one more job come, of one pod that can run anywhere, and return it."""
        self._made += 1
        job = a_job(f"job-{self._made:03}", cpu=cpu, phase=keys.PHASE_INQUEUE)
        self._groups[job.group.metadata.name] = job.group
        self.cluster.put(job.group)
        self._make(job.pods[0])
        return JobKey(job.group.metadata.namespace, job.group.metadata.name)

    def let_all_end(self) -> None:
        """Let all pods end that have a node."""
        for made in list(self._pods.values()):
            pod = self._present(made)
            if pod is not None and pod.spec.node_name:
                self._set_phase(pod, "Succeeded")

    # What happens

    def _new_job(self) -> None:
        self._made += 1
        rng, name = self._random, f"job-{self._made:03}"
        tasks = rng.choice((1, 2, 3, 4, {"a": 1, "b": 2}))
        count = tasks if isinstance(tasks, int) else 3
        spec: dict[str, object] = {}
        if rng.random() < 0.2:
            term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "x"}}}
            kind = rng.choice(("podAffinity", "podAntiAffinity"))
            spec["affinity"] = {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        if rng.random() < 0.2:
            spec["nodeSelector"] = {"zone": rng.choice("ab")}
        job = a_job(
            name,
            tasks=tasks,
            min_available=rng.randint(1, count),
            queue=rng.choice((*QUEUES, *QUEUES, "missing")),
            priority_class=rng.choice(("", "", "high")),
            priority=rng.choice((None, 1000)),
            cpu=rng.choice(("500m", 1, 1, 2, 3, 9, None)),
            created=float(self._made),
            labels={"app": rng.choice("xy")},
            min_resources=rng.choice((None, {"cpu": count})),
            group_annotations=rng.choice(({}, {"sla-waiting-time": "30s"})),
            group_spec=rng.choice(({}, {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}})),
            annotations=rng.choice(({}, {keys.PREEMPTABLE: "true"})),
            spec=spec,
        )
        self._groups[name] = job.group
        self.cluster.put(job.group)
        for pod in job.pods[: rng.choice((1, len(job.pods), len(job.pods)))]:
            self._make(pod)

    def _make(self, pod: Pod) -> None:
        self._pods[pod.metadata.name] = pod
        self.cluster.put(pod)

    def _a_pod(self, *, waits: bool | None = None) -> Pod | None:
        found = [
            pod
            for made in self._pods.values()
            if (pod := self._present(made)) is not None and (waits is None or waits is not bool(pod.spec.node_name))
        ]
        return self._random.choice(found) if found else None

    def _present(self, pod: Pod) -> Pod | None:
        return self.cluster.pod(TaskRef(pod.metadata.namespace, pod.metadata.name, pod.metadata.uid))

    def _set_phase(self, pod: Pod | None, *phases: str) -> None:
        if pod is not None:
            task = TaskRef(pod.metadata.namespace, pod.metadata.name, pod.metadata.uid)
            self.cluster.set_status(task, phase=self._random.choice(phases))

    def _a_pod_ends(self) -> None:
        self._set_phase(self._a_pod(waits=False), "Succeeded", "Failed")

    def _a_pod_starts(self) -> None:
        self._set_phase(self._a_pod(waits=False), "Running")

    def _a_pod_goes(self) -> None:
        """Remove a pod, and often make it again; those that were evicted go first."""
        leaving = [
            pod
            for made in self._pods.values()
            if (pod := self._present(made)) is not None and pod.metadata.deletion_timestamp is not None
        ]
        for pod in leaving or filter(None, [self._a_pod()]):
            self.cluster.remove(pod)
            del self._pods[pod.metadata.name]
            if self._random.random() < 0.7:
                self._made += 1
                self._make(made_again(pod, self._made))

    def _a_job_ends(self) -> None:
        if not self._groups:
            return
        name = self._random.choice(list(self._groups))
        for made in [pod for pod in self._pods.values() if pod.metadata.annotations.get(keys.GROUP_NAME) == name]:
            pod = self._present(made)
            assert pod is not None
            self.cluster.remove(pod)
            del self._pods[made.metadata.name]
        self._remove_group(name)

    def _remove_group(self, name: str) -> None:
        self.cluster.remove(self._groups.pop(name))

    def _a_group_is_made_again(self) -> None:
        """Let a PodGroup go while its pods stay, and often another one of its name come."""
        if not self._groups:
            return
        name = self._random.choice(list(self._groups))
        group = self._groups[name]
        self._remove_group(name)
        if self._random.random() < 0.7:
            self._made += 1
            metadata = msgspec.structs.replace(group.metadata, uid=f"{group.metadata.uid}+{self._made}")
            self._groups[name] = msgspec.structs.replace(group, metadata=metadata)
            self.cluster.put(self._groups[name])

    def _new_node(self) -> None:
        self._made += 1
        name = f"n{self._made}"
        self._nodes[name] = a_node(
            name,
            cpu=self._random.choice((2, 4, 4, 8)),
            labels={"zone": self._random.choice("ab"), "kubernetes.io/hostname": name},
        )
        self.cluster.put(self._nodes[name])

    def _a_node_goes(self) -> None:
        if self._nodes:
            name = self._random.choice(list(self._nodes))
            self.cluster.remove(self._nodes.pop(name))

    def _a_node_changes(self) -> None:
        if not self._nodes:
            return
        name = self._random.choice(list(self._nodes))
        self._nodes[name] = a_node(
            name,
            cpu=self._random.choice((1, 4, 16)),
            labels={"zone": self._random.choice("ab"), "kubernetes.io/hostname": name},
            unschedulable=self._random.random() < 0.5,
        )
        self.cluster.put(self._nodes[name])

    def _a_queue_changes(self) -> None:
        amounts = self._random.choice((None, {"cpu": 2}, {"cpu": 4}))
        name = self._random.choice(QUEUES)
        self.cluster.put(
            a_queue(
                name,
                weight=self._random.choice((1, 3)),
                capability=amounts,
                deserved=self._random.choice((None, {"cpu": 2})),
                state=self._random.choice((keys.QUEUE_OPEN, keys.QUEUE_OPEN, keys.QUEUE_CLOSED)),
            )
        )

    def _somebody_writes(self) -> None:
        """Let somebody else write over what is shown: the condition of a pod, or the status of a PodGroup."""
        pod = self._a_pod(waits=True)
        if self._random.random() < 0.5 and pod is not None:
            task = TaskRef(pod.metadata.namespace, pod.metadata.name, pod.metadata.uid)
            self.cluster.set_status(task, conditions=[])
            return
        groups = list(self.cluster.groups())
        if groups:
            group = self._random.choice(groups)
            status = msgspec.structs.replace(group.status, running=self._random.choice((0, 7)), conditions=[])
            self.cluster.put(msgspec.structs.replace(group, status=status))

    def _writes_are_lost(self) -> None:
        if self._late:
            kept = self._random.sample(self._late, len(self._late) // 2)
            lost = [one for one in self._late if one not in kept]
            self._late = [one for one in self._late if one in kept]
            if self._random.random() < 0.3:
                self.cluster.cache.write_lost()
                return
            for decision in lost:
                match decision:
                    case SetPodCondition(task=task):
                        self.cluster.cache.write_lost(task)
                    case SetPodGroupStatus(job=job):
                        self.cluster.cache.write_lost(job)
