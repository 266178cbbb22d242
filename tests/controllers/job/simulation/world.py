"""What happens around the controller in a random run, by the users, the scheduler and the kubelets."""

import random
from typing import Any, Final

from tests.controllers.job.simulation import expected, specs
from tests.controllers.job.simulation.auditor import Auditor
from tests.controllers.job.simulation.causes import Cause, Causes, index_of, partition_of, task_of, version_of
from tests.controllers.job.simulation.incarnation import Incarnation
from tests.controllers.job.simulation.server import Obj, Server, is_completed, is_killed
from tests.controllers.job.simulation.specs import NAME
from volcano_py.kube.resource import COMMANDS, PODGROUPS, PODS, QUEUES, VCJOBS
from volcano_py.runtime.clock import FakeClock

_PASSIVE: Final = ("", "Pending")


class World:
    """The cluster around the controller: pods, their nodes and PodGroups, users who scale and command."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = rng = random.Random(seed)
        self.clock = FakeClock()
        self.server = Server(self.clock)
        self.causes = Causes()
        self.life: Incarnation | None = None
        """The controller while it runs."""
        self.lives = 0
        """How often the controller has started."""
        self.audit = Auditor(self.server, self.clock, self.causes, lambda: self.life, self.tell)
        self.story: list[str] = []
        self.calm = False
        """Whether nothing fails any more."""
        self.stubborn = rng.random() < 0.2
        """Whether some pods find no node."""
        self.shrunk: set[tuple[str, int]] = set()
        """Tasks and indices that were not needed at some time."""
        self._numbers = 0
        self._fewest: dict[str, int] = {}  # the fewest replicas that a task ever had

    @property
    def job(self) -> Obj | None:
        return self.server.find(VCJOBS, NAME)

    def tell(self, *words: object) -> None:
        self.story.append(f"{self.clock.monotonic():8.2f} " + " ".join(str(word) for word in words))

    def shuffled(self, items: list[Any]) -> list[Any]:
        self.rng.shuffle(items)
        return items

    def _make_queue(self) -> None:
        kind = {"apiVersion": QUEUES.api_version, "kind": QUEUES.kind}
        self.server.create(QUEUES, "", {**kind, "metadata": {"name": "default"}, "spec": {}})

    def _pods(self, *phases: str, leaving: bool = False) -> list[Obj]:
        return [
            pod
            for pod in self.server.all(PODS)
            if (not phases or pod["status"]["phase"] in phases) and ("deletionTimestamp" in pod["metadata"]) == leaving
        ]

    def _one(self, pods: list[Obj]) -> Obj | None:
        return self.rng.choice(pods) if pods else None

    def _may_run(self) -> bool:
        return any(
            (one.get("status") or {}).get("phase") not in (None, *_PASSIVE) for one in self.server.all(PODGROUPS)
        )

    def _bind(self) -> None:
        for pod in self._pods("Pending"):
            if self._may_run() and self.rng.random() < 0.6:
                self._run(pod)

    def _run(self, pod: Obj) -> None:
        key = (PODS.label, "default", pod["metadata"]["name"])
        node = f"n{self.rng.randint(1, 3)}"
        ready = self.calm or self.rng.random() < 0.7
        self.tell("runs", pod["metadata"]["name"])
        containers = [{"name": "c", "ready": ready, "restartCount": 0}]
        status = {**pod["status"], "phase": "Running", "containerStatuses": containers}
        self.server.put(key, {**pod, "spec": {**pod["spec"], "nodeName": node}, "status": status})

    def _fail(self) -> None:
        pod = self._one(self._pods("Running"))
        if pod is not None:
            self._end(pod, self.rng.choice(specs.EXIT_CODES))

    def _succeed(self) -> None:
        pod = self._one(self._pods("Running"))
        if pod is not None:
            self._end(pod, 0)

    def _end(self, pod: Obj, code: int) -> None:
        name = pod["metadata"]["name"]
        self.tell("ends", name, pod["metadata"]["uid"], code)
        was = pod["status"]["containerStatuses"][0]
        ended = {**was, "ready": False, "state": {"terminated": {"exitCode": code, "finishedAt": self.server.stamp()}}}
        status = {"phase": "Failed" if code else "Succeeded", "containerStatuses": [ended]}
        if code:
            self.causes.add(self._cause("PodFailed", pod, code, remembered=True))
            self.causes.count("TaskFailed", task_of(pod))
        else:
            task = task_of(pod)
            done = sum(task_of(one) == task for one in self._pods("Succeeded"))
            done += sum(name == task for name, _ in self.causes.completed)
            if done + 1 >= self._fewest.get(task, 0):
                self.causes.count("TaskCompleted", task)
        self.server.set_status(PODS, name, status)

    def _cause(self, event: str, pod: Obj, code: int = 0, *, remembered: bool) -> Cause:
        return Cause(
            event=event,
            pod=pod["metadata"]["name"],
            uid=pod["metadata"]["uid"],
            task=task_of(pod),
            index=index_of(pod),
            partition=partition_of(pod),
            version=version_of(pod),
            exit_code=code,
            at=self.clock.monotonic(),
            phases=len(self.audit.phases),
            lives=self.lives if self.life is not None and self.life.synced else -1,
            present=frozenset(one["metadata"]["uid"] for one in self.server.all(PODS)),
            remembered=remembered,
        )

    def _restart_container(self) -> None:
        pod = self._one(self._pods("Running"))
        if pod is not None:
            self._restart_container_of(pod)

    def _restart_container_of(self, pod: Obj) -> None:
        was = pod["status"]["containerStatuses"][0]
        again = {**was, "restartCount": was["restartCount"] + 1}
        self.tell("restarts a container", pod["metadata"]["name"])
        self.causes.count("TaskFailed", task_of(pod))
        self.server.set_status(PODS, pod["metadata"]["name"], {"containerStatuses": [again]})

    def _be_lost(self) -> None:
        pod = self._one(self._pods("Running"))
        if pod is not None and not self.calm:
            self.tell("is lost", pod["metadata"]["name"])
            self.server.set_status(PODS, pod["metadata"]["name"], {"phase": "Unknown"})

    def _vanish(self) -> None:
        pod = self._one(self._pods())
        if pod is not None:
            self._take_away(pod)

    def _take_away(self, pod: Obj) -> None:
        """Remove a pod at once; it counts as evicted unless the controller deleted it."""
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        self.tell("is gone", name, uid)
        if is_completed(pod) and uid not in self.audit.dropped:
            self.causes.completed.add((task_of(pod), index_of(pod)))
            self.causes.count("PodEvicted", name)  # a controller that has not seen its end may think so
            self.causes.count("PodEvicted", f"task {task_of(pod)}")
        elif not is_killed(pod) and uid not in self.audit.dropped:
            self.causes.add(self._cause("PodEvicted", pod, remembered=self._is_remembered(pod)))
        else:
            # A pod that vanishes while the controller kills it may count as evicted, too.
            self.causes.count("PodEvicted", name)
            self.causes.count("PodEvicted", f"task {task_of(pod)}")
        self.server.remove((PODS.label, "default", name))

    def _is_remembered(self, pod: Obj) -> bool:
        """Say whether the status of the job shows a pod that is about to vanish."""
        status = (self.job or {}).get("status") or {}
        name, task = pod["metadata"]["name"], task_of(pod)
        if (status.get("controlledResources") or {}).get(f"evicting-{name}") == pod["metadata"]["uid"]:
            return True
        counted = ((status.get("taskStatusCount") or {}).get(task) or {}).get("phase") or {}
        return sum(counted.values()) >= sum(task_of(one) == task for one in self.server.all(PODS))

    def _evict(self) -> None:
        pod = self._one(self._pods())
        if pod is not None:
            self.tell("is evicted", pod["metadata"]["name"], pod["metadata"]["uid"])
            if pod["spec"].get("nodeName") and pod["status"]["phase"] not in expected.ENDED:
                self.server.delete(PODS, "default", pod["metadata"]["name"], "")
            else:
                self._take_away(pod)

    def _finish_terminating(self) -> None:
        pod = self._one(self._pods(leaving=True))
        if pod is not None:
            self._take_away(pod)

    def _lose_node(self) -> None:
        node = f"n{self.rng.randint(1, 3)}"
        self.tell("node", node, "goes")
        for pod in [*self._pods(), *self._pods(leaving=True)]:
            if pod["spec"].get("nodeName") == node:
                self._take_away(pod)

    def _command(self) -> None:
        job = self.job
        if job is None:
            return
        action = self.rng.choice(("AbortJob", "AbortJob", "RestartJob", "TerminateJob", "CompleteJob", "ResumeJob"))
        if (job["status"].get("state") or {}).get("phase", "") in ("Aborting", "Aborted") and self.rng.random() < 0.8:
            action = "ResumeJob"
        self._issue(action)

    def _issue(self, action: str) -> None:
        job = self.job
        assert job is not None
        self._numbers += 1
        target = {"apiVersion": VCJOBS.api_version, "kind": VCJOBS.kind, "name": NAME, "uid": job["metadata"]["uid"]}
        name = f"c{self._numbers}"
        self.tell("Command", name, action)
        kind = {"apiVersion": COMMANDS.api_version, "kind": COMMANDS.kind}
        body = {**kind, "metadata": {"name": name, "namespace": "default"}, "action": action, "target": target}
        self.audit.commands[name] = self.server.create(COMMANDS, "default", body)

    def _scale(self) -> None:
        job = self.job
        free = [] if job is None else [one for one in job["spec"]["tasks"] if "partitionPolicy" not in one]
        if job is None or not free:
            return
        name = self.rng.choice(free)["name"]
        self._scale_to(job, {name: self.rng.randint(0, 5)})

    def _scale_to_zero(self) -> None:
        job = self.job
        if job is not None:
            self._scale_to(job, {one["name"]: 0 for one in job["spec"]["tasks"] if "partitionPolicy" not in one})

    def _scale_to(self, job: Obj, wanted: dict[str, int]) -> None:
        """Change replicas, and minAvailable as far as it would be above them."""
        tasks = []
        for task in job["spec"]["tasks"]:
            replicas = wanted.get(task["name"], task["replicas"])
            self.shrunk |= {(task["name"], index) for index in range(replicas, task["replicas"])}
            changed = {**task, "replicas": replicas}
            if "minAvailable" in task:
                changed["minAvailable"] = min(task["minAvailable"], replicas)
            tasks.append(changed)
        spec = {**job["spec"], "tasks": tasks}
        if "minAvailable" in spec:
            spec["minAvailable"] = min(spec["minAvailable"], sum(task["replicas"] for task in tasks))
        self.tell("scaled", wanted)
        self.server.put((VCJOBS.label, "default", NAME), {**job, "spec": spec})
        for before, now in zip(job["spec"]["tasks"], tasks, strict=True):
            done = sum(task_of(one) == now["name"] for one in self._pods("Succeeded"))
            done += sum(name == now["name"] for name, _ in self.causes.completed)
            if done >= now["replicas"] < before["replicas"]:
                self.causes.count("TaskCompleted", now["name"])

    def _group(self) -> None:
        for group in self.server.all(PODGROUPS):
            phase = (group.get("status") or {}).get("phase", "")
            following = {"": "Pending", "Pending": "Inqueue", "Inqueue": "Running", "Unknown": "Running"}.get(phase)
            if following is not None:
                self._group_enters(group, following)

    def _group_unknown(self) -> None:
        for group in self.server.all(PODGROUPS):
            if (group.get("status") or {}).get("phase") in ("Inqueue", "Running"):
                self.causes.count("Unknown", "Unknown")
                self._group_enters(group, "Unknown")

    def _group_back(self) -> None:
        for group in self.server.all(PODGROUPS):
            self._group_enters(group, "Pending")

    def _group_enters(self, group: Obj, phase: str) -> None:
        self.tell("PodGroup", group["metadata"]["uid"], phase)
        self.server.set_status(PODGROUPS, group["metadata"]["name"], {"phase": phase})

    def _watch_the_world(self) -> None:
        """Note how many pods of each task are ready, and collect what a deleted job owned."""
        for task in (self.job or {"spec": {"tasks": ()}})["spec"]["tasks"]:
            name, least = task["name"], expected.least(task)
            self.audit.least[name] = min(self.audit.least.get(name, least), least)
            self._fewest[name] = min(self._fewest.get(name, task["replicas"]), task["replicas"])
        ready: dict[str, int] = {}
        for pod in self.server.all(PODS):
            if expected.is_ready(pod):
                ready[task_of(pod)] = ready.get(task_of(pod), 0) + 1
        for name, _ in self.causes.completed:  # they are gone, and count until a restart runs them again
            ready[name] = ready.get(name, 0) + 1
        for name, number in ready.items():
            self.audit.most_ready[name] = max(self.audit.most_ready[name], number)
