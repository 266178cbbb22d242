"""A plain pod template, and the changes of which templates of tests are made."""

from collections.abc import Mapping
from typing import Any, Final

from tests.admission.changes import GONE, Changes, changed

PLAIN: Final[Mapping[str, Any]] = {
    "metadata": {"labels": {"app": "a"}},
    "spec": {
        "containers": [
            {"name": "main", "image": "busybox:1", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
        ],
        "restartPolicy": "Never",
    },
}


def template_of(changes: Changes) -> dict[str, Any]:
    """Return the plain template with changes."""
    return changed(PLAIN, changes)


C: Final = "spec/containers/0"
RES: Final = f"{C}/resources"
LONG: Final = "a" * 63
INIT: Final = {"name": "init", "image": "busybox:1"}
PROBE: Final = {"httpGet": {"path": "/", "port": 80}}
EMPTY: Final = {"name": "v", "emptyDir": {}}
CLAIM: Final = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
_REQ: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREF: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def volume(kind: str, **source: Any) -> Changes:
    """Return a pod with one volume that is mounted."""
    return {"spec/volumes": [{"name": "v", kind: source}], f"{C}/volumeMounts": [{"name": "v", "mountPath": "/v"}]}


def mounted(**mount: Any) -> Changes:
    """Return a pod with an empty folder, and a mount of it."""
    return {"spec/volumes": [EMPTY], f"{C}/volumeMounts": [{"name": "v", "mountPath": "/v", **mount}]}


def device(**fields: Any) -> Changes:
    """Return a pod with a claim, and a block device of it."""
    claim = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
    return {"spec/volumes": [claim], f"{C}/volumeDevices": [{"name": "v", "devicePath": "/dev/v", **fields}]}


def port(**fields: Any) -> Changes:
    """Return a pod with one port."""
    return {f"{C}/ports": [{"containerPort": 80, **fields}]}


def variable(**fields: Any) -> Changes:
    """Return a pod with one variable."""
    return {f"{C}/env": [{"name": "V", **fields}]}


def field_of(path: str, **more: Any) -> Changes:
    """Return a pod with a variable that is a field of the pod."""
    return variable(valueFrom={"fieldRef": {"fieldPath": path, **more}})


def amount_of(resource: str, **more: Any) -> Changes:
    """Return a pod with a variable that is a request or limit."""
    return variable(valueFrom={"resourceFieldRef": {"resource": resource, **more}})


def toleration(**fields: Any) -> Changes:
    """Return a pod with one toleration."""
    return {"spec/tolerations": [fields]}


def node_terms(*expressions: Any, fields: Any = ()) -> Changes:
    """Return a pod with required node affinity."""
    term: dict[str, Any] = {"matchExpressions": list(expressions)}
    if fields:
        term["matchFields"] = list(fields)
    return {"spec/affinity/nodeAffinity": {_REQ: {"nodeSelectorTerms": [term]}}}


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    """Return a requirement of a selector."""
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def near(**fields: Any) -> Changes:
    """Return a pod with required pod affinity."""
    term = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "kubernetes.io/hostname", **fields}
    return {"spec/affinity/podAffinity": {_REQ: [term]}}


def spread(**fields: Any) -> Changes:
    """Return a pod with one constraint of spreading."""
    plain = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    return {"spec/topologySpreadConstraints": [{**plain, **fields}]}


def projected(*sources: Any) -> Changes:
    """Return a pod with a volume of several sources."""
    return volume("projected", sources=list(sources))


def ephemeral(**spec: Any) -> Changes:
    """Return a pod with a claim of its own."""
    found = {key: value for key, value in {**CLAIM, **spec}.items() if value is not GONE}
    return volume("ephemeral", volumeClaimTemplate={"spec": found})


def requests(**fields: Any) -> Changes:
    """Return a pod with other requests and limits."""
    return {RES: fields}


def of_pod(**fields: Any) -> Changes:
    """Return a pod with resources of its own."""
    return {"spec/resources": fields}
