"""Area controllers/apply_policies: which action a job takes on an event."""

from typing import Final

import msgspec

from tests.conformance.operations import Operation, Outcome, same
from tests.conformance.row_files import Case
from volcano_py.api.batch import Job
from volcano_py.controllers.job.policies import Request, resolve

_FIELDS: Final = {
    "event": "event",
    "action": "action",
    "jobUid": "job_uid",
    "taskName": "task",
    "podName": "pod",
    "podUid": "pod_uid",
    "partitionId": "partition",
    "exitCode": "exit_code",
    "jobVersion": "version",
}


def _apply(case: Case) -> Outcome:
    request = Request(**{_FIELDS[key]: value for key, value in case.input["request"].items()})
    resolved = resolve(msgspec.convert(case.input["job"], Job), request)
    return {"action": resolved.action, "delaySeconds": resolved.delay_s}


OPERATIONS: Final = {
    "applyPolicies": Operation(_apply, {"action": same, "delaySeconds": same}, frozenset({"job", "request"})),
}
