"""What the mutations fill in, and what they leave alone."""

from typing import Any, Final

from tests.admission.asking import task
from tests.admission.changes import GONE
from tests.admission.table.case import Default

_TASK: Final = "spec/tasks/0"
_PLACE, _WEIGHTS = "volcano.sh/hierarchy", "volcano.sh/hierarchy-weights"
_AT_PLACE, _AT_WEIGHTS = (f"metadata/annotations/{key.replace('/', '~1')}" for key in (_PLACE, _WEIGHTS))
_GATE: Final = "scheduling.volcano.sh/queue-allocation-gate"
_OURS: Final = "scheduling.volcano.sh/queue-name"

RESOURCE_GROUPS: Final = """
resourceGroups:
- resourceGroup: quick
  object: {key: annotation, value: ["pace: quick"]}
  schedulerName: volcano
  labels: {disk: ssd}
  tolerations: [{effect: NoSchedule, key: quick, operator: Exists}]
  affinity: '{"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms":
    [{"matchExpressions": [{"key": "pace", "operator": "Exists"}]}]}}}'
- resourceGroup: slow
  labels: {disk: rust}
"""
"""The configuration of pods with which the table is judged."""


def _job(without: dict[str, Any], gets: dict[str, Any]) -> Default:
    return Default(path="/jobs/mutate", without=without, gets=gets)


def _queue(without: dict[str, Any], gets: dict[str, Any]) -> Default:
    return Default(path="/queues/mutate", without=without, gets=gets)


def _group(without: dict[str, Any], gets: str, theirs: str = "") -> Default:
    found = {_OURS: theirs} if theirs else {}
    return Default(path="/podgroups/mutate", without=without, gets={"spec/queue": gets}, namespace=found)


def _pod(annotations: dict[str, str], gets: dict[str, Any], **spec: Any) -> Default:
    fields = {f"spec/{name}": value for name, value in spec.items()}
    return Default(path="/pods/mutate", without={"metadata/annotations": annotations, **fields}, gets=gets)


_TERMS: Final = "spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0"
_PARTS: Final = {"totalPartitions": 2, "partitionSize": 2}
DEFAULTS: Final = {
    # Jobs
    "queue": _job({"spec/queue": GONE}, {"spec/queue": "default"}),
    "scheduler": _job({}, {"spec/schedulerName": "volcano"}),
    "another scheduler": _job({"spec/schedulerName": "other"}, {"spec/schedulerName": "other"}),
    "retries": _job({"spec/maxRetry": 0, f"{_TASK}/maxRetry": 0}, {"spec/maxRetry": 3, f"{_TASK}/maxRetry": 3}),
    "own retries": _job({"spec/maxRetry": 7, f"{_TASK}/maxRetry": 5}, {"spec/maxRetry": 7, f"{_TASK}/maxRetry": 5}),
    "names of tasks": _job(
        {f"{_TASK}/name": GONE, "spec/tasks/1": task("own")},
        {f"{_TASK}/name": "default0", "spec/tasks/1/name": "own"},
    ),
    "minimum": _job({"spec/tasks/1": task("b", 3)}, {f"{_TASK}/minAvailable": 4, "spec/minAvailable": 7}),
    "minimum of partitions": _job(
        {f"{_TASK}/partitionPolicy": {**_PARTS, "minPartitions": 1}},
        {f"{_TASK}/minAvailable": 2, "spec/minAvailable": 2},
    ),
    "minimum of all partitions": _job({f"{_TASK}/partitionPolicy": _PARTS}, {f"{_TASK}/minAvailable": 4}),
    "own minimum": _job(
        {f"{_TASK}/minAvailable": 0, "spec/minAvailable": 1}, {f"{_TASK}/minAvailable": 0, "spec/minAvailable": 1}
    ),
    "a minimum of 0": _job({"spec/minAvailable": 0}, {"spec/minAvailable": 4}),
    "network of the host": _job(
        {f"{_TASK}/template/spec/hostNetwork": True}, {f"{_TASK}/template/spec/dnsPolicy": "ClusterFirstWithHostNet"}
    ),
    "own DNS": _job(
        {f"{_TASK}/template/spec/hostNetwork": True, f"{_TASK}/template/spec/dnsPolicy": "Default"},
        {f"{_TASK}/template/spec/dnsPolicy": "Default"},
    ),
    "no network of the host": _job({}, {f"{_TASK}/template/spec/dnsPolicy": None}),
    "plugins of mpi": _job(
        {"spec/plugins": {"mpi": ["--master=main"]}},
        {"spec/plugins": {"mpi": ["--master=main"], "svc": [], "ssh": []}},
    ),
    **{
        f"plugins of {name}": _job({"spec/plugins": {name: []}}, {"spec/plugins": {name: [], "svc": []}})
        for name in ("tensorflow", "pytorch", "ray")
    },
    "own plugins": _job(
        {"spec/plugins": {"ray": [], "svc": ["--publish-not-ready-addresses=true"]}},
        {"spec/plugins": {"ray": [], "svc": ["--publish-not-ready-addresses=true"]}},
    ),
    # Queues
    "reclaimable": _queue({}, {"spec/reclaimable": True}),
    "not reclaimable": _queue({"spec/reclaimable": False}, {"spec/reclaimable": False}),
    "weight": _queue({"spec/weight": 0}, {"spec/weight": 1}),
    "own weight": _queue({"spec/weight": 9}, {"spec/weight": 9}),
    "no spec": _queue({"spec": GONE}, {"spec/reclaimable": True, "spec/weight": 1}),
    "a null spec": _queue({"spec": None}, {"spec/reclaimable": True, "spec/weight": 1}),
    "place": _queue(
        {"metadata/annotations": {_PLACE: "eng/dev", _WEIGHTS: "2/8"}},
        {_AT_PLACE: "root/eng/dev", _AT_WEIGHTS: "1/2/8"},
    ),
    "place below root": _queue(
        {"metadata/annotations": {_PLACE: "root/eng", _WEIGHTS: "1/2"}}, {_AT_PLACE: "root/eng", _AT_WEIGHTS: "1/2"}
    ),
    # PodGroups
    "queue of the namespace": _group({}, "t", theirs="t"),
    "no queue of the namespace": _group({}, "default"),
    "own queue": _group({"spec/queue": "root"}, "root", theirs="t"),
    # Pods
    "gate": _pod({_GATE: "true"}, {"spec/schedulingGates": [{"name": _GATE}]}),
    "no gate": _pod({_GATE: "false"}, {"spec/schedulingGates": None}),
    "gate of another scheduler": _pod({_GATE: "true"}, {"spec/schedulingGates": None}, schedulerName="other"),
    "a group by annotation": _pod(
        {"pace": "quick"},
        {
            "spec/nodeSelector": {"disk": "ssd", "zone": "a"},
            "spec/tolerations/0/operator": "Exists",
            "spec/tolerations/1/key": "quick",
            "spec/schedulerName": "volcano",
            f"{_TERMS}/matchExpressions/0/key": "pace",
        },
        schedulerName="other",
        nodeSelector={"zone": "a"},
        tolerations=[{"operator": "Exists"}],
    ),
    "own affinity": _pod(
        {"pace": "quick"},
        {"spec/affinity/nodeAffinity": None},
        affinity={"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
    ),
    "a group by name": _pod({"volcano.sh/resource-group": "slow"}, {"spec/nodeSelector": {"disk": "rust"}}),
    "no group": _pod({"volcano.sh/resource-group": "other"}, {"spec/nodeSelector/disk": None}),
}
