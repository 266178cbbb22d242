"""Area controllers/job_state_machine: one step of the state machine."""

from typing import Any, Final

import msgspec

from tests.conformance.handlers.controllers.job_world import UID, world_of
from tests.conformance.operations import Operation, Outcome, same
from tests.conformance.row_files import Case
from tests.controllers.job.world import World
from volcano_py.api import keys
from volcano_py.api.batch import Command
from volcano_py.controllers.job import policies
from volcano_py.kube.resource import VCJOBS

_OF_A_PART: Final = frozenset({policies.RESTART_TASK, policies.RESTART_POD, policies.RESTART_PARTITION})


def _step(case: Case) -> Outcome:
    """Ask for the action; if that leaves the phase as it is, look on until everything is killed, and once more."""
    action, job = case.input["action"], dict(case.input["job"])
    if action in _OF_A_PART:
        answers = {"event": policies.POD_FAILED, "action": action}
        job["spec"] = {**job.get("spec", {}), "policies": [answers]}
    world = world_of(job, case.input.get("pods", {}), case.input["phase"])
    world.record.triggers.clear()
    if action in _OF_A_PART:
        _fail_a_pod(world)
    else:
        world.asks(_command(action, world))
    before = world.phase
    world.look()
    while world.phase == before:
        plan = world.look()
        if not plan.kill and not plan.writes:
            break
    return {"phase": world.phase, "retryCountAtLeast": world.job.status.retry_count, "error": False}


def _command(action: str, world: World) -> Command:
    meta = world.job.metadata
    target = {"apiVersion": VCJOBS.api_version, "kind": VCJOBS.kind, "name": meta.name, "uid": meta.uid}
    named = {"name": "command", "namespace": meta.namespace, "uid": "uid-of-the-command"}
    return msgspec.convert({"metadata": named, "action": action, "target": target}, Command)


def _fail_a_pod(world: World) -> None:
    """Let the first pod fail, or one that is not known."""
    name = next(iter(world.pods), "")
    if name:
        world.pod_is(name, "Failed", exit_code=1)
        return
    task = world.job.spec.tasks[0].name if world.job.spec.tasks else "task"
    annotations = {keys.TASK_SPEC: task, keys.JOB_VERSION: str(world.job.status.version)}
    meta: dict[str, Any] = {"name": "lost", "uid": "uid-of-the-pod", "annotations": annotations}
    world.pods["lost"] = {
        "metadata": {**meta, "labels": {keys.TASK_INDEX: "0"}, "ownerReferences": [{"uid": UID, "controller": True}]}
    }
    world.pod_is("lost", "Failed", exit_code=1)


def _at_least(expected: int, actual: int, _: Any) -> None:
    assert actual >= expected


OPERATIONS: Final = {
    "step": Operation(
        _step,
        {"phase": same, "retryCountAtLeast": _at_least, "error": same},
        frozenset({"phase", "action", "job", "pods"}),
    ),
}
