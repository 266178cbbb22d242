"""Area admission: what the webhooks refuse, and what they fill in."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from tests.admission.dict_view import DictView
from tests.conformance.operations import Compare, Operation, Outcome, same
from tests.conformance.row_files import Case
from volcano_py.admission import cronjobs, jobflows, jobs, queues
from volcano_py.admission.contract import CREATE, UPDATE, Options, Refusal, Request, Verdict
from volcano_py.admission.graph import in_order, unknown_targets
from volcano_py.admission.pods import groups_of
from volcano_py.admission.rules import RULES
from volcano_py.api.batch import Job, Task
from volcano_py.api.job_defaults import with_defaults


def _contains(expected: Any, actual: Any, expect: Mapping[str, Any]) -> None:
    """Assert that a text contains another, or all of several; where something is refused, there is a text."""
    wanted = [expected] if isinstance(expected, str) else expected
    assert all(part in actual for part in wanted), actual
    if expect.get("allowed") is True:
        assert actual == ""
    elif expect.get("allowed") is False:
        assert actual


REVIEWED: Final[dict[str, Compare]] = {"allowed": same, "messageContains": _contains}
JUDGED: Final[dict[str, Compare]] = {"error": same, "messageContains": _contains}


def _request(obj: Mapping[str, Any], operation: str = CREATE, old: Mapping[str, Any] | None = None) -> Request:
    metadata = obj.get("metadata", {})
    return Request(operation, metadata.get("namespace", ""), metadata.get("name", ""), obj, old or {})


def _view(case: Case) -> DictView:
    found = [*case.input.get("queues", ()), *case.input.get("existing", ()), case.input.get("queue", {})]
    return DictView(queue for queue in found if queue)


def _outcome(verdict: Verdict) -> Outcome:
    return {"allowed": verdict.allowed, "messageContains": verdict.text}


def _creation(path: str, key: str) -> Callable[[Case], Outcome]:
    def run(case: Case) -> Outcome:
        options = Options(pod_level_resources=case.input.get("podLevelResources", True))
        return _outcome(RULES[path](_request(case.input[key]), _view(case), options))

    return run


def _refusals(refusals: Iterable[Refusal]) -> Outcome:
    verdict = Verdict(tuple(refusals))
    return {"error": not verdict.allowed, "messageContains": verdict.text}


# Jobs


def _job_update(case: Case) -> Outcome:
    request = _request(case.input["job"], UPDATE, case.input["oldJob"])
    return _outcome(RULES["/jobs/validate"](request, DictView(), Options()))


def _task_topology(case: Case) -> Outcome:
    task = msgspec.convert(case.input["task"], Task)
    return {"messageContains": "".join(refusal.message for refusal in jobs.cpu_flaws(task, 0))}


def _unless_empty(expected: str, actual: str, _: Mapping[str, Any]) -> None:
    """Assert that a text contains another; nothing is asserted if that is empty."""
    assert not expected or expected in actual


def _task_order(case: Case) -> Outcome:
    order = jobs.task_order(_job(case.input["job"]).spec.tasks)
    return {"acyclic": order is not None, "order": order}


def _job(wire: Mapping[str, Any]) -> Job:
    return msgspec.convert({"metadata": {}, **wire}, Job)


def _task_defaults(case: Case) -> Outcome:
    written = case.input["tasks"]
    before = _job({"spec": {"tasks": written}})
    after = jobs.tasks_with_defaults(written, before.spec.tasks, with_defaults(before).spec.tasks)
    return {"changed": after != written, "tasks": after}


def _same_tasks(expected: Any, actual: Any, _: Mapping[str, Any]) -> None:
    assert [_compared(task) for task in actual] == [_compared(task) for task in expected]


def _compared(task: Mapping[str, Any]) -> tuple[Any, ...]:
    return task.get("minAvailable"), task.get("maxRetry"), task.get("partitionPolicy", {}).get("minPartitions")


# Queues


def _queue_review(path: str) -> Callable[[Case], Outcome]:
    def run(case: Case) -> Outcome:
        given = case.input
        obj = {} if given["operation"] == "DELETE" else given["object"]
        request = Request(given["operation"], "", given["name"], obj, given.get("oldObject", {}))
        options = Options(max_queue_depth=given.get("maxQueueDepth", 5))
        verdict = RULES[path](request, _view(case), options)
        return {"allowed": verdict.allowed, "message": verdict.message, "patch": list(verdict.patch)}

    return run


def _depth(case: Case) -> Outcome:
    view = DictView(case.input["existing"])
    return {"error": queues.depth_flaw(case.input["queue"], view, case.input["maxQueueDepth"]) is not None}


def _against_ancestors(case: Case) -> Outcome:
    return _refusals(queues.against_ancestors(case.input["queue"], DictView(case.input["existing"])))


def _against_children(case: Case) -> Outcome:
    given = case.input
    existing = {queue["metadata"]["name"]: queue for queue in [*given["existing"], *given["children"]]}
    return _refusals(queues.against_children(given["queue"], DictView(existing.values()), given["children"]))


# Others


def _group_mutation(case: Case) -> Outcome:
    verdict = RULES["/podgroups/mutate"](_request(case.input["podGroup"]), DictView(), Options())
    return {"patch": list(verdict.patch) or None, "error": not verdict.allowed}


def _pod_mutation(case: Case) -> Outcome:
    groups = groups_of(case.input["configuration"]["resGroupsConfig"])
    verdict = RULES["/pods/mutate"](_request(case.input["pod"]), DictView(), Options(resource_groups=groups))
    assert verdict.allowed
    return {"patch": list(verdict.patch) or None}


def _name(case: Case) -> Outcome:
    return {"messageContains": "".join(refusal.message for refusal in cronjobs.name_flaws(case.input["name"]))}


def _empty_or_contains(expected: str, actual: str, _: Mapping[str, Any]) -> None:
    assert expected in actual if expected else actual == ""


def _hyper_node(case: Case) -> Outcome:
    return _outcome(RULES["/hypernodes/validate"](_request(case.input["hyperNode"]), DictView(), Options()))


def _graph(case: Case) -> Outcome:
    graph = case.input["graph"]
    unknown = bool(unknown_targets(graph))
    acyclic = case.expect["acyclic"] if unknown else in_order(graph) is not None
    assert bool(jobflows.flaws(graph)) == (unknown or not acyclic)
    return {"error": unknown, "acyclic": acyclic}


EXACT: Final[dict[str, Compare]] = {"allowed": same, "message": same, "patch": same}
_OF_JOBS: Final = frozenset({"job", "queues", "podLevelResources"})
_REVIEW: Final = frozenset({"operation", "name", "object", "oldObject", "existing", "maxQueueDepth"})

AREAS: Final[Mapping[str, Mapping[str, Operation]]] = {
    "admission/jobs_validate": {
        "create": Operation(_creation("/jobs/validate", "job"), REVIEWED, _OF_JOBS),
        "update": Operation(_job_update, REVIEWED, frozenset({"job", "oldJob"})),
        "taskTopologyPolicy": Operation(_task_topology, {"messageContains": _unless_empty}, frozenset({"task"})),
        "taskOrder": Operation(_task_order, {"acyclic": same, "order": same}, frozenset({"job"})),
    },
    "admission/jobs_mutate": {
        "taskDefaults": Operation(_task_defaults, {"changed": same, "tasks": _same_tasks}, frozenset({"tasks"})),
    },
    "admission/queues_validate": {
        "review": Operation(_queue_review("/queues/validate"), EXACT, _REVIEW),
        "depth": Operation(_depth, {"error": same}, frozenset({"queue", "existing", "maxQueueDepth"})),
        "childAgainstAncestors": Operation(_against_ancestors, JUDGED, frozenset({"queue", "existing"})),
        "parentAgainstChildren": Operation(_against_children, JUDGED, frozenset({"queue", "children", "existing"})),
    },
    "admission/queues_mutate": {"review": Operation(_queue_review("/queues/mutate"), EXACT, _REVIEW)},
    "admission/podgroups_validate": {
        "create": Operation(
            _creation("/podgroups/validate", "podGroup"), REVIEWED, frozenset({"podGroup", "queue", "queues"})
        ),
    },
    "admission/podgroups_mutate": {
        "create": Operation(_group_mutation, {"patch": same, "error": same}, frozenset({"podGroup"})),
    },
    "admission/pods_mutate": {
        "create": Operation(_pod_mutation, {"patch": same}, frozenset({"pod", "configuration"})),
    },
    "admission/hypernodes_validate": {
        "validate": Operation(_hyper_node, REVIEWED, frozenset({"hyperNode"})),
    },
    "admission/jobflows_validate": {
        "create": Operation(_creation("/jobflows/validate", "jobFlow"), REVIEWED, frozenset({"jobFlow", "queues"})),
        "graph": Operation(_graph, {"error": same, "acyclic": same}, frozenset({"graph"})),
    },
    "admission/cronjobs_validate": {
        "create": Operation(_creation("/cronjobs/validate", "cronJob"), REVIEWED, frozenset({"cronJob", "queues"})),
        "name": Operation(_name, {"messageContains": _empty_or_contains}, frozenset({"name"})),
    },
}
