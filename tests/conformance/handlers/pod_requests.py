"""Area pod_requests: the resources that a pod requests."""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from tests.conformance.handlers.vectors import same_vector
from tests.conformance.operations import Operation, Outcome
from tests.conformance.row_files import Case
from volcano_py.api.core import Pod
from volcano_py.model.pod_request import in_force, pod_request, request_without_init
from volcano_py.model.resource_lists import ResourceList


def _operation(amounts: Callable[[Pod], dict[str, float]]) -> Operation:
    def handle(case: Case) -> Outcome:
        written = case.input["pod"]
        if not case.input.get("podLevelResources"):  # the API server drops the field in this case
            spec = {key: value for key, value in written.get("spec", {}).items() if key != "resources"}
            written = {**written, "spec": spec}
        return {"request": ResourceList.of(amounts(_pod(written)))}

    return Operation(handle, {"request": same_vector}, frozenset({"pod", "podLevelResources"}))


def _pod(written: dict[str, Any]) -> Pod:
    return msgspec.convert({"metadata": {}, **written}, Pod)


OPERATIONS: Final = {
    "request": _operation(lambda pod: pod_request(in_force(pod)).raw),
    "requestWithoutInit": _operation(lambda pod: request_without_init(pod.spec)),
    "requestWithResize": _operation(lambda pod: request_without_init(in_force(pod))),
}
