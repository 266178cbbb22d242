"""Rules about queues: their own numbers, their place, their relatives, and who may be deleted."""

from typing import Any, Final

from tests.admission.asking import queue
from tests.admission.table.case import ABSENT, NEVER_ASKED, STATUS, Case, Obj
from volcano_py.admission.contract import DELETE, UPDATE

_PATH: Final = "/queues/validate"
_PLACE, _WEIGHTS = "volcano.sh/hierarchy", "volcano.sh/hierarchy-weights"
_BODY: Final = "requestBody.spec"


def _creation(bad: dict[str, Any], good: dict[str, Any], says: str, at: str, *queues: Obj, **more: Any) -> Case:
    return Case(path=_PATH, bad=bad, good=good, says=says, at=at, queues=queues, **more)


def _spec(**fields: Any) -> dict[str, Any]:
    guarantee = fields.pop("guarantee", None)
    found = {f"spec/{name}": value for name, value in fields.items()}
    return {**found, **({"spec/guarantee": {"resource": guarantee}} if guarantee else {})}


def _placed(path: str, weights: str) -> dict[str, Any]:
    return {"metadata/annotations": {_PLACE: path, _WEIGHTS: weights}}


def _elsewhere(path: str, weights: str) -> dict[str, Any]:
    return queue("t", annotations={_PLACE: path, _WEIGHTS: weights})


_AT_PLACE: Final = f"metadata.annotations[{_PLACE}]"
_CHAIN: Final = (
    queue("t1"),
    queue("t2", parent="t1"),
    queue("t3", parent="t2"),
    queue("t4", parent="t3"),
    queue("t5", parent="t4"),
)
_RICH: Final = queue(
    "t",
    capability={"cpu": "10", "memory": "8Gi", "nvidia.com/gpu": "4"},
    deserved={"cpu": "8", "memory": "4Gi"},
    guarantee={"cpu": "4"},
)

QUEUE_CREATIONS: Final = {
    "the operation": Case(
        path=_PATH,
        operation="CONNECT",
        says="invalid operation `CONNECT`, expect operation to be `CREATE`, `UPDATE` or `DELETE`",
        unreachable=NEVER_ASKED,
    ),
    "defaults of another operation": Case(
        path="/queues/mutate",
        operation="CONNECT",
        says="invalid operation `CONNECT`, expect operation to be `CREATE`",
        unreachable=NEVER_ASKED,
    ),
    # Amounts
    "no quantity": _creation(
        _spec(capability={"cpu": "1e1.5"}),
        _spec(capability={"cpu": "1e1"}),
        f'{_BODY}.capability.cpu: Invalid value: "1e1.5": must be a quantity',
        "spec.capability.cpu",
    ),
    "less than nothing": _creation(
        _spec(deserved={"memory": "-1Gi"}),
        _spec(deserved={"memory": "0"}),
        f'{_BODY}.deserved.memory: Invalid value: "-1Gi": must be greater than or equal to 0',
        "spec.deserved.memory",
    ),
    "half a device": _creation(
        _spec(capability={"nvidia.com/gpu": "500m"}),
        _spec(capability={"nvidia.com/gpu": "2", "cpu": "500m"}),
        f'{_BODY}.capability.nvidia.com/gpu: Invalid value: "500m": must be an integer',
        "spec.capability.nvidia.com/gpu",
    ),
    "half a pod": _creation(
        _spec(capability={"pods": "1.5"}),
        _spec(capability={"pods": "2"}),
        f'{_BODY}.capability.pods: Invalid value: "1.5": must be an integer',
        "spec.capability.pods",
    ),
    "a guarantee that is not deserved": _creation(
        _spec(guarantee={"cpu": "2"}),
        _spec(guarantee={"cpu": "2"}, deserved={"cpu": "2"}),
        f'{_BODY}.deserved.cpu: Invalid value: "<nil>": deserved[cpu] must be >= guarantee[cpu]=2',
        "spec.deserved.cpu",
    ),
    "more guaranteed than deserved": _creation(
        _spec(guarantee={"cpu": "2"}, deserved={"cpu": "1"}),
        _spec(guarantee={"cpu": "2000m"}, deserved={"cpu": "2"}),
        f'{_BODY}.deserved.cpu: Invalid value: "1": deserved[cpu]=1 must be >= guarantee[cpu]=2',
        "spec.deserved.cpu",
    ),
    "more deserved than possible": _creation(
        _spec(deserved={"cpu": "3"}, capability={"cpu": "2500m"}),
        _spec(deserved={"cpu": "2500m"}, capability={"cpu": "2.5"}),
        f'{_BODY}.deserved.cpu: Invalid value: "3": deserved[cpu]=3 must be <= capability[cpu]=2500m',
        "spec.deserved.cpu",
    ),
    "a state": _creation(
        {"status/state": "Ajar"},
        {"status/state": "Closed"},
        'requestBody.spec.state: Invalid value: "Ajar": queue state must be in [Open Closed]',
        "status.state",
        unreachable=STATUS,
    ),
    # Places by annotation
    "weights of another length": _creation(
        _placed("root/a", "1/2/3"),
        _placed("root/a", "1/2"),
        f"{_PLACE} must have the same length with {_WEIGHTS}",
        _AT_PLACE,
    ),
    "a weight that is no number": _creation(
        _placed("root/a", "1/x"),
        _placed("root/a", "1/2.5"),
        'x in the 1/x is invalid number: strconv.ParseFloat: parsing "x": invalid syntax',
        f"metadata.annotations[{_WEIGHTS}]",
    ),
    "a weight of nothing": _creation(
        _placed("root/a", "1/0"),
        _placed("root/a", "1/1e3"),
        "0 in the 1/0 must be larger than 0",
        f"metadata.annotations[{_WEIGHTS}]",
    ),
    "a place above another queue": _creation(
        _placed("root/eng", "1/2"),
        _placed("root/eng/dev/x", "1/2/3/4"),
        "root/eng is not allowed to be in the sub path of root/eng/dev of queue t",
        _AT_PLACE,
        _elsewhere("root/eng/dev", "1/2/3"),
    ),
    # Parents
    "itself as parent": _creation(
        _spec(parent="q"), _spec(parent="root"), "queue q cannot use itself as parent", "spec.parent"
    ),
    "too deep": _creation(
        _spec(parent="t5"),
        _spec(parent="t4"),
        "queue q exceeds the maximum allowed depth of 5",
        "spec.parent",
        *_CHAIN,
    ),
    "no such parent": _creation(
        _spec(parent="gone"),
        _spec(parent="t"),
        'failed to get parent queue gone of queue q: queue.scheduling.volcano.sh "gone" not found',
        "spec.parent",
        queue("t"),
    ),
    "a parent with pods": _creation(
        _spec(parent="t"),
        _spec(parent="t"),
        "queue t cannot be the parent queue of queue q because it has allocated Pods: 3",
        "spec.parent",
        queue("t", pods=3),
        good_queues=(queue("t", pods=3), queue("t-a", parent="t")),
    ),
    # Relatives
    "more than the parent may have": _creation(
        _spec(parent="t", capability={"cpu": "11"}),
        _spec(parent="t", capability={"cpu": "10", "pods": "99"}),
        "queue q capability[cpu]=11 exceeds its ancestor's capability=10",
        "spec.capability.cpu",
        _RICH,
    ),
    "more than the parent's parent may have": _creation(
        _spec(parent="t-a", capability={"memory": "9Gi"}),
        _spec(parent="t-a", capability={"memory": "8Gi"}),
        "queue q capability[memory]=9Gi exceeds its ancestor's capability=8Gi",
        "spec.capability.memory",
        _RICH,
        queue("t-a", parent="t"),
    ),
    "more deserved than the parent": _creation(
        _spec(parent="t", deserved={"cpu": "3"}),
        _spec(parent="t", deserved={"cpu": "2"}),
        "parent queue t validation failed: sum of children's deserved (cpu 9000.00, memory 0.00) exceeds parent's "
        "deserved limit (cpu 8000.00, memory 4294967296.00)",
        "spec.deserved",
        _RICH,
        queue("t-a", parent="t", deserved={"cpu": "6"}),
    ),
    "deserved of what the parent lacks": _creation(
        _spec(parent="t", deserved={"nvidia.com/gpu": "1"}),
        _spec(parent="t", capability={"nvidia.com/gpu": "1"}),
        "sum of children's deserved",
        "spec.deserved",
        _RICH,
    ),
    "more guaranteed than the parent": _creation(
        _spec(parent="t", deserved={"cpu": "5"}, guarantee={"cpu": "5"}),
        _spec(parent="t", deserved={"cpu": "5"}, guarantee={"cpu": "4"}),
        "parent queue t validation failed: sum of children's guarantee (cpu 5000.00, memory 0.00) exceeds parent's "
        "guarantee limit (cpu 4000.00, memory 0.00)",
        "spec.guarantee",
        _RICH,
    ),
}


def _change(
    bad: dict[str, Any], good: dict[str, Any], says: str, at: str, *queues: Obj, before: Any = None, **more: Any
) -> Case:
    return Case(
        path=_PATH, operation=UPDATE, before=before or {}, bad=bad, good=good, says=says, at=at, queues=queues, **more
    )


_ROOT: Final = {"metadata/name": "root"}
_KEPT: Final = "root queue's resource attributes (capability, deserved, guarantee) cannot be modified"
_PARENT: Final = _spec(capability={"cpu": "10"}, deserved={"cpu": "8"}, guarantee={"cpu": "4"})
_CHILD: Final = queue("t", parent="q", capability={"cpu": "9"}, deserved={"cpu": "6"}, guarantee={"cpu": "3"})
QUEUE_CHANGES: Final = {
    "amounts": _change(
        _spec(deserved={"cpu": "3"}, capability={"cpu": "2"}),
        _spec(deserved={"cpu": "2"}, capability={"cpu": "2"}),
        "deserved[cpu]=3 must be <= capability[cpu]=2",
        "spec.deserved.cpu",
    ),
    "a state": _change(
        {"status/state": "Closing"},
        {"status/state": "Closed"},
        'requestBody.spec.state: Invalid value: "Closing": queue state must be in [Open Closed]',
        "status.state",
        unreachable=STATUS,
    ),
    "weights of another length": _change(
        _placed("root/a", "1"),
        _placed("root/a", "1/1"),
        f"{_PLACE} must have the same length with {_WEIGHTS}",
        _AT_PLACE,
    ),
    "amounts of the root": _change(_spec(capability={"cpu": "1"}), _spec(weight=5), _KEPT, "spec", before=_ROOT),
    "shares of the root": _change(_spec(deserved={"cpu": "1"}), _spec(priority=5), _KEPT, "spec", before=_ROOT),
    "guarantees of the root": _change(
        _spec(deserved={"cpu": "1"}, guarantee={"cpu": "1"}), _spec(reclaimable=False), _KEPT, "spec", before=_ROOT
    ),
    "itself as parent": _change(
        _spec(parent="q"), _spec(parent="root"), "queue q cannot use itself as parent", "spec.parent"
    ),
    "a descendant as parent": _change(
        _spec(parent="t-a"),
        _spec(parent="t-b"),
        "queue q cannot use its own descendant t-a as parent",
        "spec.parent",
        queue("t", parent="q"),
        queue("t-a", parent="t"),
        queue("t-b"),
    ),
    "too deep": _change(
        _spec(parent="t5"),
        _spec(parent="t4"),
        "queue q exceeds the maximum allowed depth of 5",
        "spec.parent",
        *_CHAIN,
    ),
    "no such parent": _change(
        _spec(parent="gone"), _spec(weight=7), "failed to get parent queue gone of queue q", "spec.parent"
    ),
    "a parent with pods": _change(
        _spec(parent="t"),
        _spec(parent="t-a"),
        "queue t cannot be the parent queue of queue q because it has allocated Pods: 1",
        "spec.parent",
        queue("t", pods=1),
        queue("t-a"),
    ),
    "more than an ancestor": _change(
        _spec(capability={"cpu": "11"}),
        _spec(capability={"cpu": "9"}),
        "queue q capability[cpu]=11 exceeds its ancestor's capability=10",
        "spec.capability.cpu",
        _RICH,
        before=_spec(parent="t", capability={"cpu": "5"}),
    ),
    "more deserved than the parent": _change(
        _spec(deserved={"cpu": "9"}),
        _spec(deserved={"cpu": "8"}),
        "parent queue t validation failed: sum of children's deserved",
        "spec.deserved",
        _RICH,
        before=_spec(parent="t", deserved={"cpu": "1"}),
    ),
    "less than a descendant has": _change(
        _spec(capability={"cpu": "8"}),
        _spec(capability={"cpu": "9"}),
        "queue q capability[cpu]=8 is smaller than its descendants' max capability=9",
        "spec.capability.cpu",
        _CHILD,
        before=_PARENT,
    ),
    "less deserved than the children": _change(
        _spec(deserved={"cpu": "5"}),
        _spec(deserved={"cpu": "6"}),
        "queue q validation failed: sum of children's deserved (cpu 6000.00, memory 0.00) exceeds parent's deserved "
        "limit (cpu 5000.00, memory 0.00)",
        "spec.deserved",
        _CHILD,
        before=_PARENT,
    ),
    "less guaranteed than the children": _change(
        _spec(guarantee={"cpu": "2"}),
        _spec(guarantee={"cpu": "3"}),
        "queue q validation failed: sum of children's guarantee",
        "spec.guarantee",
        _CHILD,
        before=_PARENT,
    ),
}


def _deletion(bad: str, good: str, says: str, *queues: Obj, at: str = "metadata.name", unreachable: str = "") -> Case:
    return Case(
        path=_PATH,
        operation=DELETE,
        bad={"metadata/name": bad},
        good={"metadata/name": good},
        says=says,
        at=at,
        queues=queues,
        unreachable=unreachable,
    )


QUEUE_DELETIONS: Final = {
    "the default queue": _deletion("default", "t", "`default` queue can not be deleted", queue("t")),
    "the root": _deletion("root", "t", "`root` queue can not be deleted", queue("t")),
    "a queue that does not exist": _deletion(
        "gone", "t", 'queue.scheduling.volcano.sh "gone" not found', queue("t"), unreachable=ABSENT
    ),
    "a queue with pods": _deletion(
        "t", "t-a", "queue t cannot be deleted because it has allocated Pods: 2", queue("t", pods=2), queue("t-a")
    ),
    "a queue with children": _deletion(
        "t",
        "t-a",
        "queue t can not be deleted because it has 2 child queues: t-a, t-b",
        queue("t"),
        queue("t-a", parent="t"),
        queue("t-b", parent="t"),
    ),
}
