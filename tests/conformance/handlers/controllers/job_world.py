"""A job with the pods of a row, and the job controller without its I/O."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from tests.controllers.job.world import World
from volcano_py.api import keys
from volcano_py.api.batch import Job
from volcano_py.controllers.job import objects
from volcano_py.controllers.job.pod_group import create

UID: Final = "uid-of-the-job"


def world_of(job: Mapping[str, Any], pods: Mapping[str, Mapping[str, Any]], phase: str = "") -> World:
    """Return the world of a job in a phase, with its pods by task and its PodGroup; rows leave most of this out."""
    body = {**job, "metadata": {**job["metadata"], "uid": UID, "generation": 1}}
    state = {**body.get("status", {}).get("state", {})}
    body["status"] = {**body.get("status", {}), "state": {**state, "phase": phase or state.get("phase", "")}}
    world = World(msgspec.convert(body, Job))
    for task, members in pods.items():
        for index, pod in enumerate(members.values()):
            world.pods[pod["metadata"]["name"]] = _member(pod, task, index)
    known = world.record.job
    assert known is not None
    group = create(known, {}).body
    assert isinstance(group, dict)
    meta = {**group["metadata"], "uid": "uid-of-the-group", "resourceVersion": "1"}
    world.group = {**group, "metadata": meta, "status": {"phase": keys.PHASE_RUNNING}}
    world.restart()
    world.record.start()
    return world


def _member(pod: Mapping[str, Any], task: str, index: int) -> dict[str, Any]:
    meta = pod["metadata"]
    return {
        **pod,
        "metadata": {
            **meta,
            "resourceVersion": "1",
            "annotations": {**meta.get("annotations", {}), keys.TASK_SPEC: task},
            "labels": {**meta.get("labels", {}), keys.TASK_INDEX: str(index)},
            "ownerReferences": [objects.owner_reference("job", UID)],
        },
    }
