"""Area unschedule_messages: the texts for why a task does not fit."""

from collections.abc import Mapping
from typing import Any, Final

from tests.conformance.operations import Operation, Outcome, same, same_set
from tests.conformance.row_files import Case
from volcano_py.model.node_refusals import NodeAnswer, NodeRefusal, NodeRefusals
from volcano_py.model.rejections import Remedy


def _fit_error(case: Case) -> Outcome:
    task, node = case.input["task"], case.input["node"]
    if "status" in case.input:  # the same reasons, each with its code
        answers = _answers(case.input["status"])
        assert [answer.text for answer in answers] == case.input["reason"]
    else:
        answers = tuple(NodeAnswer(text) for text in case.input["reason"])
    refusal = NodeRefusal(task["namespace"], task["name"], node["name"], answers)
    result = {
        "taskNamespace": refusal.namespace,
        "taskName": refusal.task,
        "nodeName": refusal.node,
        "status": [{"code": answer.remedy.value, "reason": answer.text} for answer in refusal.answers],
    }
    return {"message": refusal.message, "result": result}


def _fit_errors(case: Case) -> Outcome:
    given = case.input
    refusals: dict[str, NodeRefusal] = {}  # the last refusal of a node counts
    if "error" in given:
        refusals[given["node"]] = NodeRefusal("", "", given["node"], (NodeAnswer(given["error"]),))
    if "fitError" in given:
        told = given["fitError"]
        answers = _answers(told["status"])
        name = told["nodeName"]
        refusals[name] = NodeRefusal(told["taskNamespace"], told["taskName"], name, answers)
    found = NodeRefusals(tuple(refusals.values()), given.get("text", ""), given.get("hyperNode", ""))
    return {"message": found.message, "unresolvableNodes": found.unresolvable_nodes}


def _answers(status: list[Mapping[str, Any]]) -> tuple[NodeAnswer, ...]:
    return tuple(NodeAnswer(entry["reason"], Remedy(entry["code"])) for entry in status)


OPERATIONS: Final = {
    "fitError": Operation(
        _fit_error, {"message": same, "result": same}, frozenset({"task", "node", "reason", "status"})
    ),
    "fitErrors": Operation(
        _fit_errors,
        {"message": same, "unresolvableNodes": same_set},
        frozenset({"text", "hyperNode", "node", "error", "fitError"}),
    ),
}
