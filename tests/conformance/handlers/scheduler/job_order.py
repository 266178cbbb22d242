"""Operation jobOrder of sla: does left come before right, and may left be enqueued?"""

from datetime import UTC, datetime
from typing import Any, Final

import numpy as np

from tests.conformance.handlers.scheduler.world import open_session
from tests.conformance.operations import Operation, Outcome, same
from tests.conformance.row_files import Case

_YEAR_ONE: Final = datetime(1, 1, 1, tzinfo=UTC)  # Go's zero time, of objects without a creation time


def _run(case: Case) -> Outcome:
    groups = [_pod_group(job) for job in case.input["jobs"]]
    ssn = open_session(Case(case.operation, {"podGroups": groups}, {}, case.scheduler, case.actions))
    row_of = {ssn.state.jobs.record(row).key.name: row for row in ssn.state.jobs.present().tolist()}
    left, right = (row_of[job["name"]] for job in case.input["jobs"])
    left_key, right_key = ssn.hooks.orders.job_sort_keys(np.array([left, right]))
    return {"leftBeforeRight": left_key < right_key, "leftEnqueueable": ssn.hooks.job_enqueueable(ssn.state.job(left))}


def _pod_group(job: dict[str, Any]) -> dict[str, Any]:
    unknown = job.keys() - {"name", "waitingTimeSeconds", "creationTimestamp"}
    assert not unknown, f"a job has unknown keys: {sorted(unknown)}"
    annotations = {}
    if "waitingTimeSeconds" in job:
        annotations["sla-waiting-time"] = f"{job['waitingTimeSeconds']}s"
    meta = {"name": job["name"], "creationTimestamp": job.get("creationTimestamp", _YEAR_ONE)}
    return {"metadata": {**meta, "annotations": annotations}}


OPERATION: Final = Operation(
    _run, {"leftBeforeRight": same, "leftEnqueueable": same}, frozenset({"jobs"}), needs_session=True
)
