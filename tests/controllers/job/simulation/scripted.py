"""A run that a script tells: pods end as it says, and the controller ends at one chosen write.

The world reacts to the state alone. So runs with and without the end of the controller must come to the same state.
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.controllers.job.simulation import expected
from tests.controllers.job.simulation.auditor import Wrong
from tests.controllers.job.simulation.causes import index_of, task_of, version_of
from tests.controllers.job.simulation.client import Fate
from tests.controllers.job.simulation.rest import check_rest
from tests.controllers.job.simulation.run import Run
from tests.controllers.job.simulation.server import Obj
from tests.controllers.job.simulation.specs import a_template
from volcano_py.kube.resource import PODGROUPS, PODS, VCJOBS, Resource

EVICTED = -1
RESTARTED = -2
"""How a pod may end, besides exit codes: somebody deletes it, or a container of it starts again.

It is deleted once the status of the job counts it: no controller can know of a pod that vanishes before that while none
runs.
"""

Ending = Callable[[str, int, int], int | None]
"""Of task, index and start of the job: how this pod ends; None if it runs on."""

_MOST_ROUNDS = 120


def runs_on(task: str, index: int, start: int) -> int | None:
    """Let every pod run on."""
    return None


@dataclass(frozen=True)
class Script:
    """A job and what happens to it."""

    tasks: tuple[Mapping[str, Any], ...]
    spec: Mapping[str, Any] = field(default_factory=dict)
    ends: Ending = runs_on
    commands: tuple[str, ...] = ()
    """Issued one after the other, each when the job rests."""
    scales: tuple[Mapping[str, int], ...] = ()
    scales_when_ended: bool = False
    """Whether the next scaling comes while the controller is gone."""
    """New numbers of replicas by task, each when the job rests."""
    no_second: bool = False
    """Whether a pod that takes the place of an evicted one finds no node."""
    group_unknown: bool = False
    """Whether the first PodGroup becomes Unknown."""


class ScriptedRun(Run):
    """A run as a script tells it."""

    def __init__(self, script: Script, end_at: int | None = None, fate: Fate = Fate.CRASH_AFTER) -> None:
        super().__init__(seed=0)
        self._script = script
        self._end_at = end_at
        self._end_how = fate
        self.writes = 0
        """Writes that were sent so far."""
        self._scales = deque(script.scales)
        self._acted: set[str] = set()
        self._evicted: set[str] = set()
        self.calm = True
        self.stubborn = False

    def final(self) -> dict[str, Any]:
        """Run, and return the state in which the job and its pods rest."""
        try:
            self._perform()
        except AssertionError as wrong:
            story = "\n".join(self.story[-60:])
            raise Wrong(f"{wrong}\nended at write {self._end_at} ({self._end_how.name}):\n{story}") from wrong
        job = self.job
        assert job is not None
        status = job["status"]
        return {
            "phase": status["state"]["phase"],
            "retries": status.get("retryCount", 0),
            "version": status.get("version", 0),
            "counters": expected.count(self.server.all(PODS)),
            "pods": sorted(
                (pod["metadata"]["name"], pod["status"]["phase"], version_of(pod)) for pod in self.server.all(PODS)
            ),
        }

    def _perform(self) -> None:
        script = self._script
        self._make_queue()
        tasks = [{"template": a_template(), **task} for task in script.tasks]
        spec = {"queue": "default", "schedulerName": "volcano", "maxRetry": 3, "tasks": tasks, **script.spec}
        kind = {"apiVersion": VCJOBS.api_version, "kind": VCJOBS.kind}
        meta = {"name": "j", "namespace": "default"}
        self.server.create(VCJOBS, "default", {**kind, "metadata": meta, "spec": spec, "status": {}})
        self._watch_the_world()
        self._rest()
        for action in script.commands:
            self._issue(action)
            self._rest()
        while self._scales:
            self._scale()
            self._rest()
        check_rest(self)

    def _scale(self) -> None:
        assert self.job is not None
        self._scale_to(self.job, dict(self._scales.popleft()))

    def _crash(self) -> None:
        super()._crash()
        if self._script.scales_when_ended and self.job is not None and self._scales:
            self._scale()

    def _rest(self) -> None:
        quiet = 0
        for _ in range(_MOST_ROUNDS):
            version = self.server.version
            self._round()
            life = self.life
            if life is None or not life.synced or version != self.server.version:
                quiet = 0
                continue
            pause = life.turns.next_due_s()
            if pause is None:
                quiet += 1
                if quiet == 2:
                    return
            else:
                self.clock.advance(pause)
        raise Wrong("the job does not come to rest")

    def _fate(self, verb: str, resource: Resource) -> Fate:
        self.story.append(f"           {verb} {resource.label}")
        if verb == "get":
            return Fate.DONE
        self.writes += 1
        return self._end_how if self.writes == self._end_at else Fate.DONE

    def _move_world(self) -> None:
        super()._move_world()
        for pod in self._pods("Running"):
            uid, start = pod["metadata"]["uid"], int(pod["metadata"]["annotations"]["volcano.sh/job-retry-count"])
            how = self._script.ends(task_of(pod), index_of(pod), start)
            if how is None or uid in self._acted or (how == EVICTED and not self._is_remembered(pod)):
                continue
            self._acted.add(uid)
            if how == EVICTED:
                self._evicted.add(pod["metadata"]["name"])
                self.server.delete(PODS, "default", pod["metadata"]["name"], "")
            elif how == RESTARTED:
                self._restart_container_of(pod)
            else:
                self._end(pod, how)

    def _run(self, pod: Obj) -> None:
        if not (self._script.no_second and pod["metadata"]["name"] in self._evicted):
            super()._run(pod)

    def _group(self) -> None:
        super()._group()
        groups = self.server.all(PODGROUPS)
        first = bool(groups) and groups[0]["metadata"]["annotations"]["volcano.sh/job-version"] == "0"
        if self._script.group_unknown and first and self._all_run(groups[0]):
            self._group_unknown()

    def _all_run(self, group: Obj) -> bool:
        pods = self.server.all(PODS)
        return bool(pods) and group["status"]["phase"] == "Running" and len(self._pods("Running")) == len(pods)
