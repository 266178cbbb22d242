"""Area controllers/podgroup: the PodGroup of pods that name none."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from tests.conformance.operations import Operation, Outcome, same
from tests.conformance.row_files import Case
from volcano_py.api import keys
from volcano_py.api.core import Pod
from volcano_py.controllers.podgroup import decision
from volcano_py.controllers.podgroup.decision import ReplicaSet
from volcano_py.controllers.writes import Create
from volcano_py.testing import a_pod, as_json


def _normal_pod(case: Case) -> Outcome:
    """Show the pods to the decision one after the other, each with the PodGroup that the ones before it led to."""
    workload = None
    if "replicaSet" in case.input:
        workload = msgspec.convert(case.input["replicaSet"], ReplicaSet)
    annotations = {} if workload is None else workload.metadata.annotations
    made: dict[str, Any] = {}
    named = []
    for wire in case.input["pods"]:
        pod = _pod(wire)
        key = decision.group_key(pod)
        group = msgspec.convert(made, decision.PodGroup) if made else None
        plan = decision.plan(key, group, [pod], workload, annotations)
        if isinstance(plan.group, Create):
            assert isinstance(plan.group.body, dict)
            made = plan.group.body
        named += [patch.body["metadata"]["annotations"][keys.GROUP_NAME] for patch in plan.pods]
    assert named == [made["metadata"]["name"]] * len(case.input["pods"])
    return {"podGroup": made}


def _network_topology(case: Case) -> Outcome:
    return {"networkTopology": decision.network_topology(_pod(case.input["pod"]).metadata.annotations)}


def _pod(wire: Mapping[str, Any]) -> Pod:
    """Return the pod of a row as a pod of our scheduler."""
    assert wire.keys() <= as_json(a_pod()).keys()
    return msgspec.convert(wire, Pod)


def _contains(expected: Any, actual: Any, _: Mapping[str, Any]) -> None:
    """Assert that what a row states is there; of ``minResources``, only the resources that it names."""
    if not isinstance(expected, Mapping):
        assert actual == expected
        return
    for key, value in expected.items():
        if value:
            _contains(value, actual[key], expected)


OPERATIONS: Final = {
    "normalPod": Operation(_normal_pod, {"podGroup": _contains}, frozenset({"pods", "replicaSet"})),
    "networkTopology": Operation(_network_topology, {"networkTopology": same}, frozenset({"pod"})),
}
