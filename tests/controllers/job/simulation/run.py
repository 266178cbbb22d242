"""One random run: a job, a world in which much goes wrong, and a controller that must bring the job to rest."""

import logging
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import structlog

from tests.controllers.job.simulation import expected, specs
from tests.controllers.job.simulation.auditor import Auditor, Wrong, need, recount
from tests.controllers.job.simulation.causes import (
    Cause,
    Causes,
    answered,
    index_of,
    partition_of,
    task_of,
    version_of,
)
from tests.controllers.job.simulation.client import Client, Fate
from tests.controllers.job.simulation.incarnation import Incarnation
from tests.controllers.job.simulation.server import Obj, Server, is_killed
from tests.controllers.job.simulation.specs import NAME
from tests.controllers.job.simulation.stepping import StepLoop
from volcano_py.kube.resource import (
    COMMANDS,
    CONFIG_MAPS,
    NETWORK_POLICIES,
    PERSISTENT_VOLUME_CLAIMS,
    PODGROUPS,
    PODS,
    QUEUES,
    SERVICES,
    VCJOBS,
    Resource,
)
from volcano_py.runtime.clock import FakeClock

_PASSIVE: Final = ("", "Pending")
_FAULTS: Final = (Fate.CONFLICT, Fate.FAILED, Fate.LOST, Fate.LATE, Fate.SLOW, Fate.CRASH_BEFORE, Fate.CRASH_AFTER)
_OWNED: Final = (PODS, PODGROUPS, CONFIG_MAPS, SERVICES, NETWORK_POLICIES, PERSISTENT_VOLUME_CLAIMS)
_MOST_ROUNDS: Final = 150
_MOST_LOOKS: Final = 400


@contextmanager
def quiet() -> Iterator[None]:
    """Silence the log of the controller while runs go on: it would take most of their time."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    try:
        yield
    finally:
        structlog.reset_defaults()


class Run:
    """One random run; the same seed gives the same run."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._rng = rng = random.Random(seed)
        self._clock = FakeClock()
        self._server = Server(self._clock)
        self._loop = StepLoop()
        self._causes = Causes()
        self._life: Incarnation | None = None
        self._lives = 0
        self._audit = Auditor(self._server, self._clock, self._causes, lambda: self._life, self._tell)
        self._story: list[str] = []
        self._calm = False
        self._fault_rate = rng.choice((0.0, 0.0, 0.05, 0.15, 0.4))
        self._faults = rng.sample(_FAULTS, rng.randint(1, len(_FAULTS)))
        self._ends_between = rng.choice((0.0, 0.0, 0.2, 0.5))
        """How probably the controller ends just after the job has entered a phase."""
        self._entered = 0
        self._stubborn = rng.random() < 0.2
        """Whether some pods find no node."""
        self._grow = rng.random() < 0.4
        self._lateness = rng.choice((1, 3, 10))
        self._numbers = 0
        self._fewest: dict[str, int] = {}
        """The fewest replicas that a task ever had."""
        self._down = 0
        """For how many steps the controller is away."""
        self._shrunk: set[tuple[str, int]] = set()
        self._steps: list[Callable[[], None]] = []

    @property
    def _job(self) -> Obj | None:
        return self._server.find(VCJOBS, NAME)

    @property
    def phases(self) -> frozenset[str]:
        """The phases that the job entered."""
        return frozenset(self._audit.phases)

    @property
    def actions(self) -> frozenset[str]:
        """The actions that were carried out."""
        return frozenset(self._audit.actions)

    def run(self) -> list[str]:
        """Run and return the story; raise Wrong with its end if the controller broke a rule."""
        try:
            self._play()
        except (AssertionError, ExceptionGroup) as found:
            wrong: BaseException = found
            while isinstance(wrong, BaseExceptionGroup):
                wrong = wrong.exceptions[0]
            if not isinstance(wrong, AssertionError):
                raise
            story = "\n".join(self._story[-80:])
            raise Wrong(f"{wrong}\nseed {self.seed}, and before that:\n{story}") from wrong
        return self._story

    def _play(self) -> None:
        rng = self._rng
        if rng.random() < 0.9:
            self._make_queue()
        job = self._server.create(VCJOBS, "default", specs.a_random_job(rng))
        self._tell("job", job["spec"])
        self._watch_the_world()
        self._begin_life()
        self._choose_steps()
        for _ in range(rng.choice((30, 60, 120))):
            rng.choice(self._steps)()
            self._watch_the_world()
        self._settle()
        self._check_rest()
        self._check_second_run()
        if rng.random() < 0.5:
            for pod in self._pods("Running"):
                self._end(pod, rng.choice((0, 0, 0, 1)))
            self._settle()
            self._check_rest()
        if rng.random() < 0.3:
            self._suspend_and_resume()
        if rng.random() < 0.2:
            self._delete_job()

    def _choose_steps(self) -> None:
        """Choose what may happen in this run, so that runs differ in kind."""
        rng = self._rng
        often: list[tuple[int, Callable[[], None]]] = [
            (6, self._fail), (4, self._succeed), (3, self._restart_container), (4, self._vanish), (4, self._evict),
            (1, self._lose_node), (2, self._scale), (1, self._group_unknown), (1, self._group_back),
            (1, self._relist), (1, self._crash), (1, self._be_lost),
        ]  # fmt: skip
        seldom: list[tuple[int, Callable[[], None]]] = [(2, self._command), (1, self._scale_to_zero)]
        always: list[tuple[int, Callable[[], None]]] = [
            (8, self._look), (8, self._show), (10, self._progress), (4, self._release), (3, self._pass_time),
            (4, self._group), (8, self._bind), (4, self._finish_terminating),
        ]  # fmt: skip
        chosen = [one for one in often if rng.random() < 0.5] + [one for one in seldom if rng.random() < 0.15]
        self._steps = [step for weight, step in (*always, *chosen) for _ in range(weight)]

    def _tell(self, *words: object) -> None:
        self._story.append(f"{self._clock.monotonic():8.2f} " + " ".join(str(word) for word in words))

    # The controller

    def _begin_life(self) -> None:
        client = Client(self._server, self._loop, self._fate, self._audit)
        self._life = Incarnation(self._server, self._loop, self._clock, client, self._audit.record)
        self._lives += 1
        self._tell("the controller starts")

    def _come_back(self) -> None:
        self._down -= 1
        if self._down < 0:
            self._begin_life()

    def _fate(self, verb: str, resource: Resource) -> Fate:
        fate = Fate.DONE
        entered, self._entered = self._entered, len(self._audit.phases)
        if not self._calm and entered != self._entered and self._rng.random() < self._ends_between:
            fate = Fate.CRASH_BEFORE  # the phase is entered, and what follows from it is not done
        elif not self._calm and self._rng.random() < self._fault_rate:
            fate = self._rng.choice(self._faults)
        self._story.append(f"           {verb} {resource.label} {fate.name if fate is not Fate.DONE else ''}")
        return fate

    def _look(self) -> None:
        life = self._life
        if life is None:
            self._come_back()
            return
        if not life.synced:
            feed = self._rng.choice([feed for feed in life.feeds.values() if not feed.listed])
            feed.list()
            return
        if life.task is not None:
            return
        due = life.turns.due()
        if due:
            life.begin(self._rng.choice(due))
            self._after_look()

    def _after_look(self) -> None:
        life = self._life
        assert life is not None
        if life.client.crashed:
            self._crash()
            return
        job = self._job
        self._note_wanted()
        if job is not None and (record := life.record(job["metadata"]["uid"])) is not None:
            recount(record.members)
            known = record.job
            if known is not None and known.metadata.resource_version == job["metadata"]["resourceVersion"]:
                life.client.unsure = False

    def _progress(self) -> None:
        """Let the controller see and do all that it can."""
        if self._life is None:
            self._come_back()
        if self._life is None:
            return
        for feed in self._shuffled(list(self._life.feeds.values())):
            if feed.listed:
                feed.show(feed.behind)
            else:
                feed.list()
            self._note_wanted()
        for _ in range(5):
            self._look()

    def _note_wanted(self) -> None:
        if self._life is not None and (job := self._job) is not None:
            self._life.note_wanted(job["metadata"]["uid"])

    def _show(self) -> None:
        life = self._life
        if life is None:
            return
        behind = [feed for feed in life.feeds.values() if feed.behind]
        if behind:
            self._rng.choice(behind).show(self._rng.randint(1, self._lateness))
            self._after_look()

    def _relist(self) -> None:
        life = self._life
        if life is not None:
            label = self._rng.choice(sorted(life.feeds))
            self._tell("relist", label)
            life.feeds[label].list()
            self._note_wanted()

    def _release(self) -> None:
        life = self._life
        if life is not None and life.client.held:
            life.client.release(self._rng.randrange(len(life.client.held)))
            life.go_on()
            self._after_look()

    def _crash(self) -> None:
        if self._life is not None:
            self._tell("the controller ends")
            self._down = self._rng.choice((0, 0, 3, 8))
            life, self._life = self._life, None
            life.end(lambda: self._rng.random() < 0.5)

    def _pass_time(self) -> None:
        self._clock.advance(self._rng.choice((0.05, 0.3, 1.0, 4.0, 15.0)))

    # The world

    def _make_queue(self) -> None:
        kind = {"apiVersion": QUEUES.api_version, "kind": QUEUES.kind}
        self._server.create(QUEUES, "", {**kind, "metadata": {"name": "default"}, "spec": {}})

    def _pods(self, *phases: str, leaving: bool = False) -> list[Obj]:
        return [
            pod
            for pod in self._server.all(PODS)
            if (not phases or pod["status"]["phase"] in phases) and ("deletionTimestamp" in pod["metadata"]) == leaving
        ]

    def _one(self, pods: list[Obj]) -> Obj | None:
        return self._rng.choice(pods) if pods else None

    def _may_run(self) -> bool:
        return any(
            (one.get("status") or {}).get("phase") not in (None, *_PASSIVE) for one in self._server.all(PODGROUPS)
        )

    def _bind(self) -> None:
        for pod in self._pods("Pending"):
            if self._may_run() and self._rng.random() < 0.6:
                self._run(pod)

    def _run(self, pod: Obj) -> None:
        key = (PODS.label, "default", pod["metadata"]["name"])
        node = f"n{self._rng.randint(1, 3)}"
        ready = self._calm or self._rng.random() < 0.7
        self._tell("runs", pod["metadata"]["name"])
        containers = [{"name": "c", "ready": ready, "restartCount": 0}]
        status = {**pod["status"], "phase": "Running", "containerStatuses": containers}
        self._server.put(key, {**pod, "spec": {**pod["spec"], "nodeName": node}, "status": status})

    def _fail(self) -> None:
        pod = self._one(self._pods("Running"))
        if pod is not None:
            self._end(pod, self._rng.choice(specs.EXIT_CODES))

    def _succeed(self) -> None:
        pod = self._one(self._pods("Running"))
        if pod is not None:
            self._end(pod, 0)

    def _end(self, pod: Obj, code: int) -> None:
        name = pod["metadata"]["name"]
        self._tell("ends", name, pod["metadata"]["uid"], code)
        was = pod["status"]["containerStatuses"][0]
        ended = {**was, "ready": False, "state": {"terminated": {"exitCode": code, "finishedAt": self._server.stamp()}}}
        status = {"phase": "Failed" if code else "Succeeded", "containerStatuses": [ended]}
        if code:
            self._causes.add(self._cause("PodFailed", pod, code, remembered=True))
            self._causes.count("TaskFailed", task_of(pod))
        else:
            task = task_of(pod)
            done = sum(task_of(one) == task for one in self._pods("Succeeded"))
            if done + 1 >= self._fewest.get(task, 0):
                self._causes.count("TaskCompleted", task)
        self._server.set_status(PODS, name, status)

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
            at=self._clock.monotonic(),
            phases=len(self._audit.phases),
            lives=self._lives if self._life is not None and self._life.synced else -1,
            present=frozenset(one["metadata"]["uid"] for one in self._server.all(PODS)),
            remembered=remembered,
        )

    def _restart_container(self) -> None:
        pod = self._one(self._pods("Running"))
        if pod is not None:
            self._restart_container_of(pod)

    def _restart_container_of(self, pod: Obj) -> None:
        was = pod["status"]["containerStatuses"][0]
        again = {**was, "restartCount": was["restartCount"] + 1}
        self._tell("restarts a container", pod["metadata"]["name"])
        self._causes.count("TaskFailed", task_of(pod))
        self._server.set_status(PODS, pod["metadata"]["name"], {"containerStatuses": [again]})

    def _be_lost(self) -> None:
        pod = self._one(self._pods("Running"))
        if pod is not None and not self._calm:
            self._tell("is lost", pod["metadata"]["name"])
            self._server.set_status(PODS, pod["metadata"]["name"], {"phase": "Unknown"})

    def _vanish(self) -> None:
        pod = self._one(self._pods())
        if pod is not None:
            self._take_away(pod)

    def _take_away(self, pod: Obj) -> None:
        """Remove a pod at once; it counts as evicted unless the controller deleted it."""
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        self._tell("is gone", name, uid)
        if not is_killed(pod) and uid not in self._audit.dropped:
            self._causes.add(self._cause("PodEvicted", pod, remembered=self._is_remembered(pod)))
        else:
            # A pod that vanishes while the controller kills it may count as evicted, too.
            self._causes.count("PodEvicted", name)
            self._causes.count("PodEvicted", f"task {task_of(pod)}")
        self._server.remove((PODS.label, "default", name))

    def _is_remembered(self, pod: Obj) -> bool:
        """Say whether the status of the job shows a pod that is about to vanish."""
        status = (self._job or {}).get("status") or {}
        name, task = pod["metadata"]["name"], task_of(pod)
        if (status.get("controlledResources") or {}).get(f"evicting-{name}") == pod["metadata"]["uid"]:
            return True
        counted = ((status.get("taskStatusCount") or {}).get(task) or {}).get("phase") or {}
        return sum(counted.values()) >= sum(task_of(one) == task for one in self._server.all(PODS))

    def _evict(self) -> None:
        pod = self._one(self._pods())
        if pod is not None:
            self._tell("is evicted", pod["metadata"]["name"], pod["metadata"]["uid"])
            if pod["spec"].get("nodeName") and pod["status"]["phase"] not in expected.ENDED:
                self._server.delete(PODS, "default", pod["metadata"]["name"], "")
            else:
                self._take_away(pod)

    def _finish_terminating(self) -> None:
        pod = self._one(self._pods(leaving=True))
        if pod is not None:
            self._take_away(pod)

    def _lose_node(self) -> None:
        node = f"n{self._rng.randint(1, 3)}"
        self._tell("node", node, "goes")
        for pod in [*self._pods(), *self._pods(leaving=True)]:
            if pod["spec"].get("nodeName") == node:
                self._take_away(pod)

    def _command(self) -> None:
        job = self._job
        if job is None:
            return
        action = self._rng.choice(("AbortJob", "AbortJob", "RestartJob", "TerminateJob", "CompleteJob", "ResumeJob"))
        if (job["status"].get("state") or {}).get("phase", "") in ("Aborting", "Aborted") and self._rng.random() < 0.8:
            action = "ResumeJob"
        self._issue(action)

    def _issue(self, action: str) -> None:
        job = self._job
        assert job is not None
        self._numbers += 1
        target = {"apiVersion": VCJOBS.api_version, "kind": VCJOBS.kind, "name": NAME, "uid": job["metadata"]["uid"]}
        name = f"c{self._numbers}"
        self._tell("Command", name, action)
        kind = {"apiVersion": COMMANDS.api_version, "kind": COMMANDS.kind}
        body = {**kind, "metadata": {"name": name, "namespace": "default"}, "action": action, "target": target}
        self._audit.commands[name] = self._server.create(COMMANDS, "default", body)

    def _scale(self) -> None:
        job = self._job
        free = [] if job is None else [one for one in job["spec"]["tasks"] if "partitionPolicy" not in one]
        if job is None or not free:
            return
        name = self._rng.choice(free)["name"]
        self._scale_to(job, {name: self._rng.randint(0, 5)})

    def _scale_to_zero(self) -> None:
        job = self._job
        if job is not None:
            self._scale_to(job, {one["name"]: 0 for one in job["spec"]["tasks"] if "partitionPolicy" not in one})

    def _scale_to(self, job: Obj, wanted: dict[str, int]) -> None:
        """Change replicas, and minAvailable as far as it would be above them."""
        tasks = []
        for task in job["spec"]["tasks"]:
            replicas = wanted.get(task["name"], task["replicas"])
            self._shrunk |= {(task["name"], index) for index in range(replicas, task["replicas"])}
            changed = {**task, "replicas": replicas}
            if "minAvailable" in task:
                changed["minAvailable"] = min(task["minAvailable"], replicas)
            tasks.append(changed)
        spec = {**job["spec"], "tasks": tasks}
        if "minAvailable" in spec:
            spec["minAvailable"] = min(spec["minAvailable"], sum(task["replicas"] for task in tasks))
        self._tell("scaled", wanted)
        self._server.put((VCJOBS.label, "default", NAME), {**job, "spec": spec})

    def _group(self) -> None:
        for group in self._server.all(PODGROUPS):
            phase = (group.get("status") or {}).get("phase", "")
            following = {"": "Pending", "Pending": "Inqueue", "Inqueue": "Running", "Unknown": "Running"}.get(phase)
            if following is not None:
                self._group_enters(group, following)

    def _group_unknown(self) -> None:
        for group in self._server.all(PODGROUPS):
            if (group.get("status") or {}).get("phase") in ("Inqueue", "Running"):
                self._causes.count("Unknown", "Unknown")
                self._group_enters(group, "Unknown")

    def _group_back(self) -> None:
        for group in self._server.all(PODGROUPS):
            self._group_enters(group, "Pending")

    def _group_enters(self, group: Obj, phase: str) -> None:
        self._tell("PodGroup", group["metadata"]["uid"], phase)
        self._server.set_status(PODGROUPS, group["metadata"]["name"], {"phase": phase})

    def _watch_the_world(self) -> None:
        """Note how many pods of each task are ready, and collect what a deleted job owned."""
        for task in (self._job or {"spec": {"tasks": ()}})["spec"]["tasks"]:
            name, least = task["name"], expected.least(task)
            self._audit.least[name] = min(self._audit.least.get(name, least), least)
            self._fewest[name] = min(self._fewest.get(name, task["replicas"]), task["replicas"])
        ready: dict[str, int] = {}
        for pod in self._server.all(PODS):
            if expected.is_ready(pod):
                ready[task_of(pod)] = ready.get(task_of(pod), 0) + 1
        for name, number in ready.items():
            self._audit.most_ready[name] = max(self._audit.most_ready[name], number)

    # Rest

    def _settle(self) -> None:
        """Let everything that is under way end, without faults, until nothing happens any more."""
        self._calm = True
        if self._server.find(QUEUES, "default") is None:
            self._make_queue()
        self._tell("from now on, all is calm")
        looks = 0
        for _ in range(_MOST_ROUNDS):
            version = self._server.version
            looks += self._round()
            life = self._life
            assert life is not None
            if life.synced and version == self._server.version and not any(one.behind for one in life.feeds.values()):
                pause = life.turns.next_due_s()
                if pause is None:
                    self._calm = False
                    return
                self._clock.advance(pause)
            need(looks < _MOST_LOOKS, f"the job takes {looks} looks and more to come to rest")
        raise Wrong(f"the job does not come to rest in {_MOST_ROUNDS} rounds")

    def _round(self) -> int:
        """Let everything happen once; return how many looks the controller took."""
        if self._life is None:
            self._begin_life()
        life = self._life
        assert life is not None
        while life.client.held:
            life.client.release(0)
            life.go_on()
        for feed in self._shuffled(list(life.feeds.values())):
            if not feed.listed:
                feed.list()
            else:
                feed.show(feed.behind)
            self._note_wanted()
        before = life.looks
        while (due := life.turns.due()) and life.task is None:
            life.begin(due[0])
            self._after_look()
            need(life.looks - before < _MOST_LOOKS, "the controller looks again and again at once")
            self._watch_the_world()
        self._clock.advance(0.1)
        self._move_world()
        return life.looks - before

    def _move_world(self) -> None:
        for pod in self._pods(leaving=True):
            self._take_away(pod)
        self._group()
        if self._may_run():
            for pod in self._pods("Pending", "Unknown"):
                if not (self._stubborn and index_of(pod) == 1):
                    self._run(pod)
        for pod in self._pods("Running"):
            if not pod["status"]["containerStatuses"][0]["ready"]:
                ready = {**pod["status"]["containerStatuses"][0], "ready": True}
                self._server.set_status(PODS, pod["metadata"]["name"], {"containerStatuses": [ready]})
        self._watch_the_world()

    def _shuffled(self, items: list[Any]) -> list[Any]:
        self._rng.shuffle(items)
        return items

    def _check_rest(self) -> None:
        job = self._job
        assert job is not None
        status = job["status"]
        phase = status["state"]["phase"]
        pods = self._server.all(PODS)
        self._tell("rests in", phase, {k: v for k, v in status.items() if k != "conditions"})
        totals, by_task = expected.count(pods)
        for name, number in totals.items():
            need(status.get(name, 0) == number, f"at rest, {name} is {status.get(name, 0)}; there are {number}")
        counted = {name: task["phase"] for name, task in (status.get("taskStatusCount") or {}).items()}
        need(counted == by_task, f"at rest, the tasks say {counted}; there are {by_task}")
        need(not self._server.all(COMMANDS), "at rest, a Command is left")
        need(
            expected.by_itself(job, status) is None,
            f"at rest, a job in {phase} should be {expected.by_itself(job, status)}",
        )
        need(phase in (*expected.FINAL, "Pending", "Running", "Restarting"), f"a job rests in {phase}")
        if phase in expected.FINAL:
            alive = [pod["metadata"]["name"] for pod in pods if pod["status"]["phase"] not in expected.ENDED]
            need(not alive, f"pods of a job in {phase} live: {alive}")
            for resource in (PODGROUPS, CONFIG_MAPS, SERVICES, NETWORK_POLICIES):
                need(not self._server.all(resource), f"a job in {phase} keeps {resource.label}")
        elif phase in ("Pending", "Running"):
            self._check_active(job, pods)

    def _check_active(self, job: Obj, pods: list[Obj]) -> None:
        status, phase = job["status"], job["status"]["state"]["phase"]
        version = status.get("version", 0)
        ready: dict[str, int] = {}
        for pod in pods:
            ready[task_of(pod)] = ready.get(task_of(pod), 0) + expected.is_ready(pod)
        for task in job["spec"]["tasks"]:
            there = sorted(index_of(pod) for pod in pods if task_of(pod) == task["name"])
            wanted = list(range(task["replicas"]))
            if expected.may_start(job, task, ready):
                need(there == wanted, f"in {phase}, task {task['name']} has pods {there} and should have {wanted}")
            else:
                need(set(there) <= set(wanted) and len(set(there)) == len(there), f"task {task['name']} has {there}")
        for pod in pods:
            old = version_of(pod) < version
            if old:
                need(
                    pod["status"]["phase"] in expected.ENDED and self._audit.retained,
                    f"{pod['metadata']['name']} of an earlier version is left in version {version}",
                )
        self._check_policies(job, pods)

    def _check_policies(self, job: Obj, pods: list[Obj]) -> None:
        """Check that whatever a policy should have answered was answered."""
        status = job["status"]
        version = status.get("version", 0)
        for cause in self._causes.all:
            if cause.version != version or (cause.task, cause.index) in self._shrunk:
                continue
            if not set(self._audit.phases[max(0, cause.phases - 1) :]) <= {"Pending", "Running", "Restarting"}:
                continue
            if not cause.remembered and cause.lives != self._lives:
                continue  # the controller ended before it saw a pod of which nothing says that it existed
            if cause.event == "PodFailed" and not any(pod["metadata"]["uid"] == cause.uid for pod in pods):
                continue  # somebody took it away, which is another cause
            problem = answered(job, cause, pods)
            need(not problem, problem)
        for task in job["spec"]["tasks"]:
            name = task["name"]
            mine = [pod for pod in pods if task_of(pod) == name and version_of(pod) == version]
            done = [pod for pod in mine if pod["status"]["phase"] == "Succeeded"]
            scaled = any(shrunk == name for shrunk, _ in self._shrunk)
            if task["replicas"] and len(done) == task["replicas"] and not scaled:
                action = expected.answer(job, "TaskCompleted", name).action
                need(
                    action not in (*expected.WHOLE, "RestartTask"),
                    f"{action} on TaskCompleted of {name} did not happen",
                )
            spent = sum(expected.restarts(pod) for pod in mine)
            budget = expected.task_max_retry(task)
            if 0 <= budget <= spent:
                action = expected.answer(job, "TaskFailed", name).action
                need(action not in (*expected.WHOLE, "RestartTask"), f"{action} on TaskFailed of {name} did not happen")
        for group in self._server.all(PODGROUPS):
            if group["status"]["phase"] == "Unknown":
                action = expected.answer(job, "Unknown", "").action
                need(action not in expected.WHOLE, f"{action} on Unknown did not happen")

    def _check_second_run(self) -> None:
        """Check that a second look writes nothing, and that a controller that starts anew changes nothing."""
        life = self._life
        assert life is not None
        self._calm = True
        writes = life.client.writes
        for key in life.controller._all():
            life.turns.add(key)
        self._look_at_all(life)
        need(life.client.writes == writes, "a second look over the same state writes")
        version = self._server.version
        self._crash()
        self._begin_life()
        life = self._life
        assert life is not None
        for feed in self._shuffled(list(life.feeds.values())):
            feed.list()
        self._look_at_all(life)
        need(self._server.version == version, "a controller that starts anew over the same state changes it")
        self._calm = False

    def _look_at_all(self, life: Incarnation) -> None:
        while due := life.turns.due():
            life.begin(due[0])
            self._after_look()

    def _suspend_and_resume(self) -> None:
        """Suspend a job whose pods may have ended, and go on with it under another controller."""
        for action in ("AbortJob", "ResumeJob"):
            self._issue(action)
            self._settle()
            self._check_rest()
            self._check_second_run()

    # The end of the job

    def _delete_job(self) -> None:
        """Delete the job while the controller lags behind; everything must go, and nothing may come after."""
        job = self._job
        assert job is not None
        foreground = self._rng.random() < 0.5
        self._tell("the job is deleted", "in foreground" if foreground else "in background")
        self._server.delete(VCJOBS, "default", NAME, "", "Foreground" if foreground else "Background")
        for _ in range(20):
            self._rng.choice((self._look, self._show, self._collect, self._vanish))()
        for _ in range(30):
            self._calm = True
            self._round()
            self._collect()
        left = [obj["metadata"]["name"] for resource in _OWNED for obj in self._server.all(resource)]
        need(not left, f"objects of a deleted job are left: {left}")
        life = self._life
        assert life is not None
        need(life.record(job["metadata"]["uid"]) is None, "the controller keeps the record of a deleted job")

    def _collect(self) -> None:
        """Collect garbage: first what a deleted job owned, then a job that waits for that."""
        job = self._job
        if job is not None and "deletionTimestamp" not in job["metadata"]:
            return
        owned = [(resource, obj) for resource in _OWNED for obj in self._server.all(resource)]
        for resource, obj in owned:
            if "deletionTimestamp" not in obj["metadata"]:
                self._server.delete(resource, "default", obj["metadata"]["name"], "")
        if job is not None and not owned:
            self._server.remove((VCJOBS.label, "default", NAME))
