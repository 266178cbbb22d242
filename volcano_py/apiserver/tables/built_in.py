"""The explicit table of built-in kinds and their columns; a kind without a row shows NAME and AGE."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from volcano_py.apiserver.objects import Obj, dig
from volcano_py.apiserver.tables.ages import UNKNOWN, age, duration, seconds_of
from volcano_py.apiserver.tables.layout import NONE, Layout, born, column, layout
from volcano_py.apiserver.tables.pods import POD
from volcano_py.apiserver.tables.storage import STORAGE

_ROLE = "node-role.kubernetes.io/"


def _node(node: Obj) -> list[Any]:
    status, meta = node.get("status") or {}, node["metadata"]
    ready = [item.get("status") for item in status.get("conditions") or [] if item.get("type") == "Ready"]
    words = ["Ready" if ready[0] == "True" else "NotReady"] if ready else ["Unknown"]
    if dig(node, "spec", "unschedulable"):
        words.append("SchedulingDisabled")
    labels = meta.get("labels") or {}
    roles = sorted(key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE) and key != _ROLE)
    addresses = {item.get("type"): item.get("address") for item in status.get("addresses") or []}
    info = status.get("nodeInfo") or {}
    return [
        ",".join(words),
        ",".join(roles) or NONE,
        born(node),
        info.get("kubeletVersion", ""),
        addresses.get("InternalIP") or NONE,
        addresses.get("ExternalIP") or NONE,
        info.get("osImage") or UNKNOWN,
        info.get("kernelVersion") or UNKNOWN,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _event(event: Obj) -> list[Any]:
    about, source = event.get("involvedObject") or {}, event.get("source") or {}
    first = event.get("firstTimestamp") or event.get("eventTime")
    series = event.get("series") or {}
    last = series.get("lastObservedTime") or event.get("lastTimestamp") or first
    kind = str(about.get("kind", "")).lower()
    parts = (source.get("component") or event.get("reportingComponent"), source.get("host"))
    return [
        age(last),
        event.get("type", ""),
        event.get("reason", ""),
        f"{kind}/{about['name']}" if about.get("name") else kind,
        about.get("fieldPath", ""),
        ", ".join(part for part in parts if part),
        str(event.get("message", "")).strip(),
        age(first),
        series.get("count") or event.get("count") or 1,
        event["metadata"]["name"],
    ]


_EVENT_NAMES = (
    "Last Seen, Type, Reason, Object, +Subobject, +Source, Message, +First Seen, +Count, +Name"  # no name in front
)
_EVENT_COLUMNS = tuple(
    column(name.removeprefix("+"), wide=name.startswith("+"), form="name" if name == "+Name" else "")
    for name in _EVENT_NAMES.split(", ")
)


def _containers(obj: Obj) -> list[str]:
    containers = dig(obj, "spec", "template", "spec", "containers") or []
    return [
        ",".join(str(item.get("name", "")) for item in containers),
        ",".join(str(item.get("image", "")) for item in containers),
    ]


def selector_text(selector: Any) -> str:
    """A label selector as kubectl writes it on the command line."""
    if not isinstance(selector, dict) or not selector:
        return NONE
    if "matchLabels" not in selector and "matchExpressions" not in selector:
        return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    terms = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for item in selector.get("matchExpressions") or []:
        key, operator, values = item.get("key"), item.get("operator"), ",".join(item.get("values") or [])
        simple = {"Exists": f"{key}", "DoesNotExist": f"!{key}"}
        terms.append(simple.get(str(operator)) or f"{key} {str(operator).lower()} ({values})")
    return ",".join(terms) or NONE


def _status_count(obj: Obj, *names: str) -> list[int]:
    status = obj.get("status") or {}
    return [status.get(name) or 0 for name in names]


def _wanted(obj: Obj) -> int:
    replicas = dig(obj, "spec", "replicas")
    return 1 if replicas is None else int(replicas)


def _deployment(obj: Obj) -> list[Any]:
    ready, updated, available = _status_count(obj, "readyReplicas", "updatedReplicas", "availableReplicas")
    selector = selector_text(dig(obj, "spec", "selector"))
    return [f"{ready}/{_wanted(obj)}", updated, available, born(obj), *_containers(obj), selector]


def _replica_set(obj: Obj) -> list[Any]:
    current, ready = _status_count(obj, "replicas", "readyReplicas")
    return [_wanted(obj), current, ready, born(obj), *_containers(obj), selector_text(dig(obj, "spec", "selector"))]


def _stateful_set(obj: Obj) -> list[Any]:
    return [f"{_status_count(obj, 'readyReplicas')[0]}/{_wanted(obj)}", born(obj), *_containers(obj)]


def _daemon_set(obj: Obj) -> list[Any]:
    names = (
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    )
    where = selector_text(dig(obj, "spec", "template", "spec", "nodeSelector"))
    selector = selector_text(dig(obj, "spec", "selector"))
    return [*_status_count(obj, *names), where, born(obj), *_containers(obj), selector]


def _job(obj: Obj) -> list[Any]:
    status, spec = obj.get("status") or {}, obj.get("spec") or {}
    done, completions, parallelism = status.get("succeeded") or 0, spec.get("completions"), spec.get("parallelism") or 0
    count = f"{done}/{completions}" if completions is not None else f"{done}/1"
    if completions is None and parallelism > 1:
        count = f"{done}/1 of {parallelism}"
    true = [item.get("type") for item in status.get("conditions") or [] if item.get("status") == "True"]
    words = [word for word in ("Complete", "Failed", "Suspended") if word in true]
    start, end = seconds_of(status.get("startTime")), seconds_of(status.get("completionTime"))
    took = "" if start is None else duration(end - start) if end is not None else age(status.get("startTime"))
    word = words[0] if words else "Terminating" if "deletionTimestamp" in obj["metadata"] else "Running"
    return [word, count, took, born(obj), *_containers(obj), selector_text(spec.get("selector"))]


def _service(obj: Obj) -> list[Any]:
    spec = obj.get("spec") or {}
    ports = ",".join(f"{item.get('port')}/{item.get('protocol', 'TCP')}" for item in spec.get("ports") or [])
    external = ",".join(spec.get("externalIPs") or []) or NONE
    kind, address = spec.get("type", "ClusterIP"), spec.get("clusterIP") or NONE
    return [kind, address, external, ports or NONE, born(obj), selector_text(spec.get("selector"))]


def _priority_class(obj: Obj) -> list[Any]:
    default = "true" if obj.get("globalDefault") else "false"
    return [obj.get("value", 0), default, born(obj), obj.get("preemptionPolicy", "")]


def _budget(obj: Obj) -> list[Any]:
    spec = obj.get("spec") or {}
    low, high = spec.get("minAvailable"), spec.get("maxUnavailable")
    allowed = _status_count(obj, "disruptionsAllowed")[0]
    return ["N/A" if low is None else str(low), "N/A" if high is None else str(high), allowed, born(obj)]


def _data(obj: Obj) -> int:
    return len(obj.get("data") or {}) + len(obj.get("binaryData") or {})


def _binding(obj: Obj) -> list[Any]:
    role = obj.get("roleRef") or {}
    subjects = obj.get("subjects") or []
    by_kind = {
        kind: ", ".join(
            "/".join(filter(None, (item.get("namespace"), item.get("name"))))
            for item in subjects
            if item.get("kind") == kind
        )
        for kind in ("User", "Group", "ServiceAccount")
    }
    return [f"{role.get('kind', '')}/{role.get('name', '')}", born(obj), *by_kind.values()]


_BINDING = layout("Role, Age, +Users, +Groups, +ServiceAccounts", _binding)
_CREATED = layout("Created At", lambda obj: [obj["metadata"].get("creationTimestamp", UNKNOWN)])
_HOOKS = layout("Webhooks, Age", lambda obj: [len(obj.get("webhooks") or []), born(obj)])
_RBAC, _ADMISSION = "rbac.authorization.k8s.io", "admissionregistration.k8s.io"

LAYOUTS: Mapping[str, Layout] = {
    **STORAGE,
    "pods": POD,
    "nodes": layout(
        "Status, Roles, Age, Version, +Internal-IP, +External-IP, +OS-Image, +Kernel-Version, +Container-Runtime", _node
    ),
    "namespaces": layout("Status, Age", lambda obj: [dig(obj, "status", "phase") or "", born(obj)]),
    "events": Layout(_EVENT_COLUMNS, _event),
    "configmaps": layout("Data, Age", lambda obj: [_data(obj), born(obj)]),
    "secrets": layout("Type, Data, Age", lambda obj: [obj.get("type", "Opaque"), _data(obj), born(obj)]),
    "services": layout("Type, Cluster-IP, External-IP, Port(s), Age, +Selector", _service),
    "deployments.apps": layout("Ready, Up-to-date, Available, Age, +Containers, +Images, +Selector", _deployment),
    "replicationcontrollers": layout("Desired, Current, Ready, Age, +Containers, +Images, +Selector", _replica_set),
    "replicasets.apps": layout("Desired, Current, Ready, Age, +Containers, +Images, +Selector", _replica_set),
    "statefulsets.apps": layout("Ready, Age, +Containers, +Images", _stateful_set),
    "daemonsets.apps": layout(
        "Desired, Current, Ready, Up-to-date, Available, Node Selector, Age, +Containers, +Images, +Selector",
        _daemon_set,
    ),
    "jobs.batch": layout("Status, Completions, Duration, Age, +Containers, +Images, +Selector", _job),
    "leases.coordination.k8s.io": layout(
        "Holder, Age", lambda obj: [dig(obj, "spec", "holderIdentity") or "", born(obj)]
    ),
    "priorityclasses.scheduling.k8s.io": layout("Value, Global-Default, Age, PreemptionPolicy", _priority_class),
    "poddisruptionbudgets.policy": layout("Min Available, Max Unavailable, Allowed Disruptions, Age", _budget),
    "csistoragecapacities.storage.k8s.io": _CREATED,
    "customresourcedefinitions.apiextensions.k8s.io": _CREATED,
    f"roles.{_RBAC}": _CREATED,
    f"clusterroles.{_RBAC}": _CREATED,
    f"rolebindings.{_RBAC}": _BINDING,
    f"clusterrolebindings.{_RBAC}": _BINDING,
    f"mutatingwebhookconfigurations.{_ADMISSION}": _HOOKS,
    f"validatingwebhookconfigurations.{_ADMISSION}": _HOOKS,
}

__all__ = ["LAYOUTS", "selector_text"]
