"""A cluster, its work and the scheduler's cycles on one virtual clock.

Kubelets, job controllers and the API server are reduced to delays. A bound pod starts, runs and ends. An evicted pod
terminates, disappears and comes back pending under another uid. Cycles run as in the daemon: soon after a change, and
at least once per period while something waits.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import repeat
from typing import Final

import msgspec

from volcano_py.api.core import Pod
from volcano_py.cache.cluster import ClusterCache
from volcano_py.cache.feeding import Known
from volcano_py.cache.state import SnapshotToken
from volcano_py.framework.state.clock import CycleClock
from volcano_py.framework.state.memory import Memory
from volcano_py.framework.state.report import CycleReport
from volcano_py.model.decisions import Bind, Decision, Evict
from volcano_py.model.objects import TaskRef
from volcano_py.runtime.clock import FakeClock
from volcano_py.scheduler import Policy, run_cycle
from volcano_py.simulator.agenda import Agenda
from volcano_py.simulator.cluster import SimulatedCluster
from volcano_py.simulator.timeline import Entry, Timeline
from volcano_py.simulator.work import Work

BEGINNING: Final = datetime(2026, 1, 1, tzinfo=UTC)
"""The time of the virtual clock at 0 s."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Delays in seconds."""

    start_s: float = 0.0  # from the bind to the start of the pod
    grace_s: float = 0.0  # from an eviction until the pod is gone
    recreate_s: float = 0.0  # from then until its successor exists
    debounce_s: float = 0.02  # from a change to the cycle
    period_s: float = 1.0  # between cycles while something waits


@dataclass(slots=True)
class _State:
    """The state of some work."""

    work: Work
    pods: dict[TaskRef, str] = field(default_factory=dict)  # existing pods -> waiting, bound, running or leaving
    since: int = 0  # number of starts of the work; an end planned for an earlier start is void
    working: bool = False
    over: bool = False

    def count(self, what: str) -> int:
        return sum(state == what for state in self.pods.values())


class Simulation:
    """Runs a policy on a simulated cluster and records events in `timeline`."""

    def __init__(self, policy: Policy, *objects: Known, seed: int = 0, timing: Timing | None = None) -> None:
        self.timeline = Timeline()
        self.cluster = SimulatedCluster(ClusterCache(clock=FakeClock()))
        self.report = CycleReport()
        """The report of the last cycle."""
        self._policy = policy
        self._seed = seed
        self._timing = timing or Timing()
        self._agenda = Agenda()
        self._memory = Memory()
        self._states: dict[str, _State] = {}
        self._owner: dict[TaskRef, _State] = {}
        self._made = 0
        self._cycle_at: float | None = None
        self.cluster.put(*objects)

    @property
    def now(self) -> float:
        """Seconds since the beginning."""
        return self._agenda.now

    def submit(self, *works: Work, at: float = 0.0) -> None:
        """Plan the arrival of work at a time."""
        for work in works:
            if work.name in self._states:
                raise ValueError(f"work named {work.name} already exists")
            state = self._states[work.name] = _State(work)
            self._agenda.at(at, partial(self._arrive, state))

    def at(self, time: float, do: Callable[[SimulatedCluster], None]) -> None:
        """Plan a change of the cluster at a time, such as another node or a queue's weight."""

        def change() -> None:
            do(self.cluster)
            self._wake()

        self._agenda.at(time, change)

    def run(self, until: float) -> Timeline:
        """Run the simulation until a time, in seconds since the beginning."""
        while self._agenda.step(until):
            pass
        return self.timeline

    def state_of(self, work: str) -> dict[str, int]:
        """Return how many pods of some work are waiting, bound, running or leaving."""
        state = self._states[work]
        return {what: state.count(what) for what in ("waiting", "bound", "running", "leaving")}

    # The scheduler

    def _wake(self, delay: float | None = None) -> None:
        due = self.now + (self._timing.debounce_s if delay is None else delay)
        if self._cycle_at is None or due < self._cycle_at:
            self._cycle_at = due
            self._agenda.at(due, partial(self._cycle, due))

    def _cycle(self, due: float) -> None:
        if self._cycle_at != due:
            return  # an earlier cycle was planned instead
        self._cycle_at = None
        batches: list[tuple[Decision, ...]] = []
        cache = self.cluster.cache
        token, snapshot = cache.token, cache.snapshot()
        clock = CycleClock((BEGINNING + timedelta(seconds=self.now)).timestamp())
        self._memory, self.report = run_cycle(snapshot, self._policy, clock, self._seed, self._memory, batches.append)
        if self.report.failures:
            raise RuntimeError(f"plugins failed: {'; '.join(self.report.failures)}")
        self.timeline.cycles += 1
        for batch in batches:
            self._carry_out(batch, token)
        if self.report.pending_tasks or self.report.jobs_refused or self._policy.shuffles:
            self._wake(self._timing.period_s)
        if self.report.evictions_left:
            self._wake()

    def _carry_out(self, batch: tuple[Decision, ...], token: SnapshotToken) -> None:
        binds = [decision for decision in batch if isinstance(decision, Bind)]
        for bind in self.cluster.bind(binds, token) if binds else ():
            self._bound(bind)
        for decision in batch:
            if isinstance(decision, Evict):
                self._evict(decision)
            else:
                self.cluster.write(decision)

    # Pods

    def _arrive(self, state: _State) -> None:
        if state.work.group is not None:
            self.cluster.put(state.work.group)
        for pod, delay in zip(state.work.pods, state.work.created_s or repeat(0.0), strict=False):
            self._agenda.after(delay, partial(self._make, state, pod))
        self._wake()

    def _make(self, state: _State, pod: Pod) -> None:
        if not state.over:
            self._appear(state, pod)
            self._wake()

    def _appear(self, state: _State, pod: Pod) -> None:
        task = TaskRef(pod.metadata.namespace, pod.metadata.name, pod.metadata.uid)
        state.pods[task] = "waiting"
        self._owner[task] = state
        self._log("submitted", state, task)
        self.cluster.put(pod)

    def _bound(self, bind: Bind) -> None:
        state = self._owner[bind.task]
        state.pods[bind.task] = "bound"
        self._log("bound", state, bind.task, bind.node)
        self._agenda.after(self._timing.start_s, partial(self._start, state, bind.task))

    def _start(self, state: _State, task: TaskRef) -> None:
        if state.pods.get(task) != "bound":
            return
        state.pods[task] = "running"
        self.cluster.set_status(task, phase="Running")
        self._log("started", state, task)
        self._wake()
        runtime = state.work.runtime_s
        if runtime is None:
            return
        if not state.work.together:
            self._agenda.after(runtime, partial(self._end, state, task))
        elif not state.working and state.count("running") >= state.work.minimum:
            state.working = True
            state.since += 1
            self._agenda.after(runtime, partial(self._finish, state, state.since))

    def _end(self, state: _State, task: TaskRef) -> None:
        if state.pods.get(task) != "running":
            return
        del state.pods[task]
        self.cluster.set_status(task, phase="Succeeded")
        self._log("ended", state, task)
        self._wake()

    def _finish(self, state: _State, since: int) -> None:
        """End work whose time is up: running pods have succeeded, waiting pods are deleted."""
        if not state.working or state.since != since:
            return
        state.over = True
        for task, what in list(state.pods.items()):
            if what == "running":
                self._end(state, task)
            elif what != "leaving":
                self._vanish(state, task, "cancelled")

    def _evict(self, decision: Evict) -> None:
        task = decision.task
        state = self._owner.get(task)
        if state is None or state.pods.get(task) not in ("bound", "running"):
            return
        what = "gone" if state.pods[task] == "running" else "cancelled"
        state.pods[task] = "leaving"
        self._log("evicted", state, task, decision.node, decision.action)
        if state.working and state.work.together and state.count("running") < state.work.minimum:
            state.working = False
        self.cluster.terminate(task, BEGINNING + timedelta(seconds=self.now))
        self._agenda.after(self._timing.grace_s, partial(self._gone, state, task, what))

    def _gone(self, state: _State, task: TaskRef, what: str) -> None:
        pod = self.cluster.pod(task)
        self._vanish(state, task, what)
        if pod is not None and not state.over:
            self._agenda.after(self._timing.recreate_s, partial(self._return, state, pod))

    def _return(self, state: _State, pod: Pod) -> None:
        self._made += 1
        first = next(one for one in state.work.pods if one.metadata.name == pod.metadata.name)
        uid = f"{first.metadata.uid}-{self._made}"
        self._make(state, msgspec.structs.replace(first, metadata=msgspec.structs.replace(first.metadata, uid=uid)))

    def _vanish(self, state: _State, task: TaskRef, what: str) -> None:
        pod = self.cluster.pod(task)
        if pod is not None:
            self.cluster.remove(pod)
        del state.pods[task]
        self._log(what, state, task)
        self._wake()

    def _log(self, what: str, state: _State, task: TaskRef, node: str = "", by: str = "") -> None:
        self.timeline.entries.append(Entry(self.now, what, state.work.name, str(task), node, by))
