"""Area controllers/pod_group_min_resources: what the least number of pods of a job uses."""

from typing import Any, Final

import msgspec

from tests.conformance.operations import Operation, Outcome, same
from tests.conformance.row_files import Case
from volcano_py.api.batch import Job, Task
from volcano_py.controllers.job.min_resources import Ranked, filled, min_resources

_INPUT: Final = frozenset({"jobMinAvailable", "tasks"})


def _min_resources(case: Case) -> Outcome:
    tasks = [_task(task) for task in case.input["tasks"]]
    priorities = {f"class-{index}": task.get("priority", 0) for index, task in enumerate(case.input["tasks"])}
    for index, task in enumerate(tasks):
        task["template"] = {"spec": {**task["template"]["spec"], "priorityClassName": f"class-{index}"}}
    spec = {"minAvailable": case.input["jobMinAvailable"], "tasks": tasks}
    job = msgspec.convert({"metadata": {"name": "job"}, "spec": spec}, Job)
    return {"minResources": min_resources(job, priorities)}


def _fill_min_available(case: Case) -> Outcome:
    tasks = [Ranked(msgspec.convert(_task(task), Task), task.get("priority", 0)) for task in case.input["tasks"]]
    return {"minResources": filled(tasks, case.input["jobMinAvailable"])}


def _task(written: dict[str, Any]) -> dict[str, Any]:
    unknown = written.keys() - {"name", "replicas", "template", "priority", "minAvailable"}
    assert not unknown, f"a task has unknown keys: {sorted(unknown)}"
    return {key: value for key, value in written.items() if key != "priority"}


OPERATIONS: Final = {
    "minResources": Operation(_min_resources, {"minResources": same}, _INPUT),
    "fillMinAvailable": Operation(_fill_min_available, {"minResources": same}, _INPUT),
}
