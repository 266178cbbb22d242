"""Checks the pods of Volcano's Deployments: what somebody has set that the chart does not set."""

from collections.abc import Iterator
from typing import Any, Final

from volcano_py.migration.findings import Finding, Group, Ref, mapping, sequence, shortened, text
from volcano_py.migration.helm_defaults import PRIORITY_CLASS
from volcano_py.migration.programs import Workload

_FIELDS: Final = (
    *("nodeSelector", "affinity", "tolerations", "topologySpreadConstraints", "imagePullSecrets", "hostNetwork"),
    *("runtimeClassName", "hostAliases", "dnsConfig", "initContainers", "hostPID", "hostIPC", "nodeName", "overhead"),
    *("shareProcessNamespace", "hostUsers", "readinessGates", "schedulingGates"),
)
_CHOSEN: Final = (("dnsPolicy", "ClusterFirst"), ("schedulerName", "default-scheduler"))
_ACCOUNTS: Final = ("-scheduler", "-controllers", "-admission")
_VOLUMES: Final = frozenset({"scheduler-config", "klog-sock", "admission-certs", "admission-config"})
"""Names of the chart's volumes."""
_KINDS: Final = frozenset({"configMap", "secret", "emptyDir"})
"""Kinds of the chart's volumes."""
_SECURITY: Final[dict[str, tuple[Any, ...]]] = {
    "runAsNonRoot": (True,),
    "runAsUser": (1000,),
    "seccompProfile": ({"type": "RuntimeDefault"},),
    "seLinuxOptions": ({"level": "s0:c123,c456"},),
    "allowPrivilegeEscalation": (False,),
    "privileged": (False,),
    "readOnlyRootFilesystem": (True, False),
    "capabilities": ({"add": ["DAC_OVERRIDE"], "drop": ["ALL"]}, {"drop": ["ALL"]}),
}
"""The chart's security contexts of pods and containers."""
_OF_TOOLS: Final = ("kubectl.kubernetes.io/", "rollme/", "checksum/", "helm.sh/", "app.kubernetes.io/")
_PATCH: Final = "patch our Deployment in the same way"
_ADD: Final = "add it to our Deployment, if it is still needed"


def pod_settings(workload: Workload) -> Iterator[Finding]:
    """Yield what the pods of a workload have besides what Volcano's chart gives them."""
    pod, container, ref = workload.pod, workload.container, workload.ref
    for what in (*_pod(workload), *_security(pod, "the pods have"), *_security(container, "the container has")):
        yield Finding(Group.REPLACED, "pod-setting", ref, what, _PATCH)
    account = text(pod, "serviceAccountName")
    if account and not account.endswith(_ACCOUNTS):
        what = f"the pods have the ServiceAccount {account}; ours have their own, with the rights that they use"
        yield Finding(Group.REPLACED, "pod-setting", ref, what, "give our ServiceAccount what this one has besides")
    for volume in sequence(pod, "volumes"):
        kinds = sorted(set(volume) - {"name"}) if isinstance(volume, dict) else []
        if kinds and (text(volume, "name") not in _VOLUMES or not _KINDS.issuperset(kinds)):
            what = f"the pods have the volume {text(volume, 'name')} ({kinds[0]})"
            yield Finding(Group.REPLACED, "pod-setting", ref, what, _ADD)
    yield from _containers(ref, workload)


def _containers(ref: Ref, workload: Workload) -> Iterator[Finding]:
    for container in sequence(workload.pod, "containers"):
        if text(container, "name") != text(workload.container, "name"):
            what = f"the pods have a further container, {text(container, 'name')}"
            yield Finding(Group.REPLACED, "sidecar", ref, what, _ADD)
    for source in sequence(workload.container, "envFrom"):
        what = f"the container has variables from elsewhere: {shortened(written(source), 50)}"
        yield Finding(Group.REPLACED, "variable-set", ref, what, _ADD)
    resources = mapping(workload.container, "resources")
    if resources.get("limits") or resources.get("requests"):
        what = f"the container has resources of its own: {shortened(written(resources), 50)}"
        advice = "compare with ours; docs/performance.md says what a cluster of your size needs"
        yield Finding(Group.REPLACED, "resources", ref, what, advice)


def _pod(workload: Workload) -> Iterator[str]:
    pod = workload.pod
    for name in _FIELDS:
        if pod.get(name) or (name == "hostUsers" and pod.get(name) is False):
            yield f"the pods have {name}: {shortened(written(pod[name]), 50)}"
    for name, usual in _CHOSEN:
        if pod.get(name) not in (None, usual):
            yield f"the pods have {name}: {shortened(pod[name])}"
    priority = text(pod, "priorityClassName")
    if priority and priority != PRIORITY_CLASS:
        yield f"the pods have the priority class {priority}; ours have {PRIORITY_CLASS}"
    selector = mapping(workload.obj, "spec", "selector", "matchLabels")
    for kind in ("labels", "annotations"):
        given = mapping(workload.obj, "spec", "template", "metadata", kind)
        found = {key: value for key, value in given.items() if key not in {"app", *selector}}
        if own := {key: value for key, value in found.items() if not key.startswith(_OF_TOOLS)}:
            yield f"the pods have {kind} of their own: {shortened(written(own), 60)}"


def _security(obj: dict[str, Any], who: str) -> Iterator[str]:
    for key, value in mapping(obj, "securityContext").items():
        usual = _SECURITY.get(key, ())
        if value not in (None, {}, [], *usual):
            yield f"{who} the security setting {key}: {shortened(written(value), 50)}"


def written(value: Any) -> str:
    """Return a value as people write it."""
    if isinstance(value, dict):
        return ", ".join(f"{key}: {written(one)}" for key, one in value.items())
    if isinstance(value, list):
        return "; ".join(written(one) for one in value)
    return str(value)
