"""The controller ends at each write of a recorded run, for jobs of every kind: in the end all is as without that."""

from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.controllers.job.simulation.client import Fate
from tests.controllers.job.simulation.run import quiet
from tests.controllers.job.simulation.scripted import EVICTED, RESTARTED, Ending, Script, ScriptedRun


@pytest.fixture(autouse=True)
def no_logs() -> Iterator[None]:
    with quiet():
        yield


def task(name: str = "w", replicas: int = 3, **more: Any) -> dict[str, Any]:
    return {"name": name, "replicas": replicas, **more}


def on(event: str, action: str, **more: Any) -> dict[str, Any]:
    return {"event": event, "action": action, **more}


def first(code: int, starts: int = 1, index: int = 0, name: str = "w") -> Ending:
    """Let one pod end in the first starts of the job, and then never again."""
    return lambda task, number, start: code if (task, number) == (name, index) and start < starts else None


def all_end(*codes: int) -> Ending:
    """Let the pod of each index end with its code."""
    return lambda task, index, start: codes[index % len(codes)]


PARTITIONS = {"totalPartitions": 2, "partitionSize": 2, "minPartitions": 2}
SCRIPTS: Final = {
    "runs on": Script((task(),)),
    "completes": Script((task(),), ends=all_end(0)),
    "fails": Script((task(),), ends=all_end(0, 1)),
    "has plugins": Script((task(), task("ps", 2)), {"plugins": {"svc": [], "env": []}}, all_end(0)),
    "has a volume": Script((task(),), {"volumes": [{"mountPath": "/d", "volumeClaim": {"accessModes": ["RWO"]}}]}),
    "restarts": Script((task(),), {"policies": [on("PodFailed", "RestartJob")]}, first(1)),
    "restarts twice": Script((task(),), {"policies": [on("PodFailed", "RestartJob")]}, first(1, starts=2)),
    "restarts too often": Script((task(),), {"policies": [on("PodFailed", "RestartJob")]}, first(1, starts=9)),
    "restarts on an exit code": Script((task(),), {"policies": [{"exitCode": 3, "action": "RestartJob"}]}, first(3)),
    "restarts a task": Script((task(policies=[on("PodFailed", "RestartTask")]), task("ps", 2)), ends=first(1)),
    "restarts a pod": Script((task(),), {"policies": [on("PodFailed", "RestartPod")]}, first(1)),
    "restarts a partition": Script(
        (task(replicas=4, partitionPolicy=PARTITIONS, policies=[on("PodFailed", "RestartPartition")]),), ends=first(1)
    ),
    "restarts after a delay": Script((task(),), {"policies": [on("PodFailed", "RestartJob", timeout="3s")]}, first(1)),
    "restarts after an eviction": Script((task(),), {"policies": [on("PodEvicted", "RestartJob")]}, first(EVICTED)),
    "restarts a task after an eviction": Script(
        (task(policies=[on("PodEvicted", "RestartTask")]), task("ps", 1)), ends=first(EVICTED)
    ),
    "ends after an eviction and a delay": Script(
        (task(),), {"policies": [on("PodEvicted", "TerminateJob", timeout="3s")]}, first(EVICTED), no_second=True
    ),
    "is aborted": Script((task(),), {"policies": [on("PodFailed", "AbortJob")]}, first(1)),
    "is terminated": Script((task(),), {"policies": [on("PodFailed", "TerminateJob")]}, first(1)),
    "completes with a task": Script(
        (task(replicas=2, policies=[on("TaskCompleted", "CompleteJob")]), task("ps", 2)),
        ends=lambda task, index, start: 0 if task == "w" else None,
    ),
    "restarts when a task fails": Script(
        (task(maxRetry=1, policies=[on("TaskFailed", "RestartJob")]),), ends=first(RESTARTED)
    ),
    "restarts when its group is unknown": Script(
        (task(),), {"policies": [on("Unknown", "RestartJob")]}, group_unknown=True
    ),
    "succeeds early": Script((task(),), {"minSuccess": 1}, first(0)),
    "has dependencies": Script((task(replicas=2), task("ps", 2, dependsOn={"name": ["w"], "iteration": "all"}))),
    "is suspended and resumed": Script((task(),), commands=("AbortJob", "ResumeJob")),
    "is restarted by hand": Script((task(),), commands=("RestartJob", "RestartJob")),
    "is terminated by hand": Script((task(),), {"plugins": {"svc": []}}, commands=("TerminateJob",)),
    "grows and shrinks": Script(
        (task(minAvailable=1),), {"plugins": {"svc": []}, "minAvailable": 1}, scales=({"w": 5}, {"w": 2})
    ),
    "shrinks, and grows again meanwhile": Script(
        (task(replicas=4, minAvailable=1),),
        {"minAvailable": 1, "policies": [on("PodEvicted", "RestartJob")]},
        scales=({"w": 2}, {"w": 6}),
        scales_when_ended=True,
    ),
    "shrinks to nothing": Script((task(),), {"policies": [on("PodEvicted", "RestartJob")]}, scales=({"w": 0},)),
}


@pytest.mark.parametrize("fate", [Fate.CRASH_BEFORE, Fate.CRASH_AFTER], ids=["before", "after"])
@pytest.mark.parametrize("kind", SCRIPTS)
def test_a_job_ends_as_if_the_controller_had_never_ended(kind: str, fate: Fate) -> None:
    script = SCRIPTS[kind]
    recorded = ScriptedRun(script)
    wanted = recorded.final()
    for number in range(1, recorded.writes + 1):
        run = ScriptedRun(script, number, fate)
        assert run.final() == wanted, f"ended {fate.name} write {number} of {recorded.writes}"
