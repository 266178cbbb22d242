"""Area pod_requests: what a pod asks for."""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from tests.conformance.handlers.vectors import same_vector
from tests.conformance.operations import NotSupportedError, Operation, Outcome
from tests.conformance.row_files import Case
from volcano_py.api.types import Pod
from volcano_py.cache.requests import in_force, pod_request, request_without_init
from volcano_py.model.resource_lists import ResourceList


def _operation(amounts: Callable[[Pod], dict[str, float]]) -> Operation:
    def handle(case: Case) -> Outcome:
        pod = _pod(case.input["pod"])
        if pod.spec.resources is not None and not case.input["podLevelResources"]:
            raise NotSupportedError("pod-level resources are always on, as they are in Kubernetes 1.36")
        return {"request": ResourceList.of(amounts(pod))}

    return Operation(handle, {"request": same_vector}, frozenset({"pod", "podLevelResources"}))


def _pod(written: dict[str, Any]) -> Pod:
    return msgspec.convert({"metadata": {}, **written}, Pod)


OPERATIONS: Final = {
    "request": _operation(lambda pod: pod_request(in_force(pod)).raw),
    "requestWithoutInit": _operation(lambda pod: request_without_init(pod.spec)),
    "requestWithResize": _operation(lambda pod: request_without_init(in_force(pod))),
}
