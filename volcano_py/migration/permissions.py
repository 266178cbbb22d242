"""Checks roles, bindings, Services and quotas: what our manifests overwrite, and what stops our pods."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from volcano_py.migration.findings import Finding, Group, Obj, Ref, mapping, ref_of, sequence, shortened, text
from volcano_py.migration.helm_defaults import PRIORITY_CLASS, RIGHTS, VERBS
from volcano_py.migration.programs import Workload, releases_of

_OUR_ROLES: Final = ("volcano-scheduler", "volcano-controllers", "volcano-admission")
_USER_ROLES: Final = ("vcjob-editor-role", "vcjob-viewer-role")
_OWN_ROLE: Final = "put them into a role of your own, with a binding of its own"
_PORTS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "scheduler": {"8080": ("8080", "metrics")},
    "controllers": {"8081": ("8081", "metrics")},
    "admission": {"443": ("8443",), "8082": ("8082", "metrics")},
}
_SELECTED: Final = {
    "scheduler": "volcano-scheduler",
    "controllers": "volcano-controller",
    "admission": "volcano-admission",
}
_SAME_WAY: Final = "patch our Service in the same way"
_OUR_PRIORITIES: Final = {"volcano-batch-high": 1000, "volcano-batch-normal": 0, "volcano-batch-low": -10}
_NOT_STATED: Final = ("limits.cpu", "limits.ephemeral-storage", "requests.ephemeral-storage", "ephemeral-storage")
"""What our pods do not state: a quota for it refuses them."""


def judge_roles(roles: list[Obj], workloads: Sequence[Workload]) -> Iterator[tuple[Ref, list[Finding]]]:
    """Yield Volcano's ClusterRoles with the rules that somebody has added; ours of the same name has not got them."""
    releases = releases_of(workloads)
    for role in roles:
        ref = ref_of(role, "ClusterRole")
        release, _, component = ref.name.rpartition("-")
        component = component if component in RIGHTS and release in releases else ""
        if not component:
            continue
        found = []
        if extra := sorted(_further(role, component)):
            what = f"it has rules for {shortened(', '.join(extra), 80)}, which Volcano's chart has not"
            found.append(Finding(Group.REPLACED, "role-changed", ref, what, _OWN_ROLE))
        yield ref, found


def _further(role: Obj, component: str) -> set[str]:
    """Return what a role allows beyond the role of the chart."""
    found = set()
    for rule in sequence(role, "rules"):
        found |= {f"the path {path}" for path in sequence(rule, "nonResourceURLs")}
        verbs = {str(verb) for verb in sequence(rule, "verbs")}
        for group in sequence(rule, "apiGroups"):
            for resource in sequence(rule, "resources"):
                name = f"{resource}.{group}" if group else str(resource)
                usual = VERBS[component].get(str(resource), verbs)
                if (str(group), str(resource)) not in RIGHTS[component]:
                    found.add(name)
                elif further := sorted(verbs - usual):
                    found.add(f"{name} ({', '.join(further)})")
    return found


def judge_user_roles(roles: list[Obj]) -> Iterator[tuple[Ref, list[Finding]]]:
    """Yield the roles for users with rules that somebody has added beyond objects of Volcano."""
    for role in roles:
        ref = ref_of(role, "ClusterRole")
        if ref.name not in _USER_ROLES:
            continue
        pairs = {
            f"{resource}.{group}" if group else str(resource)
            for rule in sequence(role, "rules")
            for group in sequence(rule, "apiGroups")
            for resource in sequence(rule, "resources")
            if not str(group).endswith(".volcano.sh")
        }
        found = []
        if pairs:
            what = f"it has rules for {shortened(', '.join(sorted(pairs)), 80)}, which ours has not"
            found.append(Finding(Group.REPLACED, "role-changed", ref, what, _OWN_ROLE))
        yield ref, found


def judge_bindings(bindings: list[Obj], workloads: Sequence[Workload]) -> Iterator[tuple[Ref, list[Finding]]]:
    """Yield bindings by which others have the rights of Volcano's roles, and those that ours cannot replace."""
    own = {(one.ref.namespace, text(one.pod, "serviceAccountName")) for one in workloads}
    own_namespaces = {one.ref.namespace for one in workloads} or {"volcano-system"}
    roles = {f"{release}-{component}" for release in releases_of(workloads) for component in RIGHTS}
    for binding in bindings:
        ref, role = ref_of(binding), text(binding, "roleRef", "name")
        if role not in roles and ref.name not in _OUR_ROLES:
            continue
        found = []
        others = [one for one in sequence(binding, "subjects") if not _is_own(one, own, own_namespaces)]
        if role in roles and others:
            who = ", ".join(f"{text(one, 'kind')} {text(one, 'name')}" for one in others)
            what = f"it gives {shortened(who, 60)} the rights of {role}; ours has only the rights that our program uses"
            found.append(Finding(Group.REPLACED, "binding", ref, what, "bind them to a role of your own"))
        if ref.name in _OUR_ROLES and ref.kind == "ClusterRoleBinding" and role != ref.name:
            what = f"it refers to the role {role}; ours of the same name refers to {ref.name}, which cannot be changed"
            found.append(Finding(Group.BLOCKS, "binding-role", ref, what, "delete it before you apply ours"))
        yield ref, found


def _is_own(subject: Obj, own: set[tuple[str, str]], namespaces: set[str]) -> bool:
    if text(subject, "kind") != "ServiceAccount":
        return False
    namespace, name = text(subject, "namespace"), text(subject, "name")
    chart = name.endswith(
        ("-scheduler", "-controllers", "-admission", "-admission-init", "-hypernode-controller", "-agent")
    )
    return (namespace, name) in own or (namespace in namespaces and chart)


def judge_services(services: list[Obj], workloads: Sequence[Workload]) -> Iterator[tuple[Ref, list[Finding]]]:
    """Yield Services of Volcano that somebody has changed."""
    namespaces = {one.ref.namespace for one in workloads}
    expected = {f"{release}-{part}-service": part for release in releases_of(workloads) for part in _PORTS}
    for service in services:
        ref = ref_of(service, "Service")
        if ref.name not in expected or ref.namespace not in namespaces:
            continue
        found = [
            Finding(Group.REPLACED, "service", ref, what, _SAME_WAY)
            for what in _of_service(service, expected[ref.name])
        ]
        yield ref, found


def _of_service(service: Obj, part: str) -> Iterator[str]:
    kind = text(service, "spec", "type") or "ClusterIP"
    if kind != "ClusterIP":
        yield f"its type is {kind}; ours is ClusterIP"
    ports = {str(one.get("port")): one for one in sequence(service, "spec", "ports") if isinstance(one, dict)}
    if further := sorted(set(ports) - set(_PORTS[part])):
        yield f"it has the port {', '.join(further)}, which ours has not"
    for port, targets in _PORTS[part].items():
        target = str(ports.get(port, {}).get("targetPort", targets[0]))
        if target not in targets:
            yield f"its port {port} leads to port {target} of the pods; ours leads to {targets[0]}"
    selector = mapping(service, "spec", "selector")
    if selector and selector != {"app": _SELECTED[part]}:
        shown = ", ".join(f"{key}={value}" for key, value in selector.items())
        yield f"it selects pods by {shortened(shown)}; ours by app={_SELECTED[part]}"
    if sequence(service, "spec", "externalIPs"):
        yield "it has external addresses, ours has none"
    if text(service, "spec", "ipFamilyPolicy") not in ("", "SingleStack"):
        yield f"its ipFamilyPolicy is {text(service, 'spec', 'ipFamilyPolicy')}; ours has the cluster's default"


def judge_quotas(quotas: list[Obj], workloads: Sequence[Workload]) -> Iterator[tuple[Ref, list[Finding]]]:
    """Yield quotas in the namespaces of Volcano that would refuse our pods."""
    namespaces = {one.ref.namespace for one in workloads} or {"volcano-system"}
    for quota in quotas:
        ref = ref_of(quota, "ResourceQuota")
        if ref.namespace not in namespaces or not _counts_critical_pods(quota):
            continue
        wanted = sorted(set(mapping(quota, "spec", "hard")) & set(_NOT_STATED))
        found = []
        if wanted:
            what = f"it limits {', '.join(wanted)}, so pods must state it; ours do not, and would be refused"
            found.append(
                Finding(Group.BLOCKS, "quota", ref, what, "add a LimitRange with a default, or patch our Deployments")
            )
        yield ref, found


def _counts_critical_pods(quota: Obj) -> bool:
    """Say whether a quota counts pods like ours: all pods, or those of their priority."""
    wanted = sequence(quota, "spec", "scopeSelector", "matchExpressions")
    if sequence(quota, "spec", "scopes"):
        return False
    return all(
        text(one, "scopeName") == "PriorityClass" and PRIORITY_CLASS in sequence(one, "values") for one in wanted
    )


def judge_budgets(budgets: list[Obj], workloads: Sequence[Workload]) -> Iterator[tuple[Ref, list[Finding]]]:
    """Yield disruption budgets of Volcano's own pods; Volcano's chart has none."""
    pods = [(one.ref.namespace, mapping(one.obj, "spec", "template", "metadata", "labels")) for one in workloads]
    for budget in budgets:
        ref = ref_of(budget, "PodDisruptionBudget")
        labels = mapping(budget, "spec", "selector", "matchLabels")
        if not labels or not any(ref.namespace == where and labels.items() <= own.items() for where, own in pods):
            continue
        amounts = [
            f"{key} {budget['spec'][key]}" for key in ("minAvailable", "maxUnavailable") if key in budget["spec"]
        ]
        what = f"it protects Volcano's pods ({', '.join(amounts)}); it protects ours, too, if their labels stay"
        advice = "compare it with the budgets of our manifests: two budgets for one pod stop evictions of it"
        yield ref, [Finding(Group.REPLACED, "budget", ref, what, advice)]


def judge_priority_classes(classes: list[Obj]) -> Iterator[tuple[Ref, list[Finding]]]:
    """Yield PriorityClasses with a name of ours and another value, which cannot be changed."""
    for one in classes:
        ref = ref_of(one, "PriorityClass")
        if ref.name in _OUR_PRIORITIES and one.get("value", 0) != _OUR_PRIORITIES[ref.name]:
            what = f"its value is {one.get('value', 0)}; ours of the same name has {_OUR_PRIORITIES[ref.name]}"
            advice = "leave manifests/users out, or delete the class: a value cannot be changed"
            yield ref, [Finding(Group.BLOCKS, "priority-class", ref, what, advice)]


def judge_network_policies(policies: list[Obj], workloads: Sequence[Workload]) -> Iterator[tuple[Ref, list[Finding]]]:
    """Yield network policies in the namespace of our manifests that have names of ours; Volcano's chart has none."""
    for policy in policies:
        ref = ref_of(policy, "NetworkPolicy")
        if ref.name in _OUR_ROLES and ref.namespace in {one.ref.namespace for one in workloads}:
            what = "our manifests have a network policy of this name with other rules"
            yield ref, [Finding(Group.REPLACED, "network-policy", ref, what, "give yours another name")]
