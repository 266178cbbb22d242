"""The explicit table of built-in kinds. To serve another kind, add a row."""

from __future__ import annotations

from collections.abc import Mapping

from volcano_py.apiserver.kinds.data import DataStrategy, SecretStrategy
from volcano_py.apiserver.kinds.definitions import DefinitionStrategy
from volcano_py.apiserver.kinds.generic import Strategy
from volcano_py.apiserver.kinds.nodes import NodeStrategy
from volcano_py.apiserver.kinds.pods import PodStrategy
from volcano_py.apiserver.kinds.shapes import BUDGET, LEASE, PLAIN, QUOTA
from volcano_py.apiserver.kinds.simple import (
    EventStrategy,
    LimitRangeStrategy,
    NamespaceStrategy,
    PriorityClassStrategy,
    WorkloadStrategy,
)
from volcano_py.apiserver.kinds.storage import (
    AttachmentStrategy,
    CapacityStrategy,
    ClaimStrategy,
    CsiDriverStrategy,
    CsiNodeStrategy,
    StorageClassStrategy,
    VolumeStrategy,
)
from volcano_py.apiserver.kinds.webhooks import WebhookStrategy
from volcano_py.apiserver.metadata import path_segment_rule, service_rule
from volcano_py.apiserver.resources import Resource, built_in
from volcano_py.apiserver.selectors import FieldGetter, flag_getter, path_getter

_POD_FIELDS: Mapping[str, FieldGetter] = {
    **{
        name: path_getter(name)
        for name in (
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        )
    },
    "spec.hostNetwork": flag_getter("spec.hostNetwork"),
}
_EVENT_FIELDS: Mapping[str, FieldGetter] = {
    **{
        name: path_getter(name)
        for name in (
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "type",
        )
    },
    "source": path_getter("source.component"),
}


def built_ins(taint_new_nodes: bool = False) -> tuple[Resource, ...]:
    """All resources of Kubernetes itself that are served."""
    return (*_core(taint_new_nodes), *_storage(), *_workloads(), *_policies(), *_rbac(), *_admission())


def _core(taint_new_nodes: bool) -> tuple[Resource, ...]:
    returned = Strategy(returns_deleted=True)
    return (
        built_in(
            "v1",
            "pods",
            "Pod",
            PodStrategy(),
            short_names=("po",),
            subresources=("status", "binding", "eviction"),
            fields=_POD_FIELDS,
            categories=("all",),
        ),
        built_in(
            "v1",
            "nodes",
            "Node",
            NodeStrategy(taint_new=taint_new_nodes),
            namespaced=False,
            short_names=("no",),
            subresources=("status",),
            fields={"spec.unschedulable": flag_getter("spec.unschedulable")},
        ),
        built_in(
            "v1",
            "namespaces",
            "Namespace",
            NamespaceStrategy(),
            namespaced=False,
            short_names=("ns",),
            subresources=("status", "finalize"),
            fields={"status.phase": path_getter("status.phase"), "name": path_getter("metadata.name")},
        ),
        built_in("v1", "events", "Event", EventStrategy(), short_names=("ev",), fields=_EVENT_FIELDS),
        built_in("v1", "configmaps", "ConfigMap", DataStrategy(), short_names=("cm",)),
        built_in("v1", "secrets", "Secret", SecretStrategy(), fields={"type": path_getter("type")}),
        built_in("v1", "serviceaccounts", "ServiceAccount", returned, short_names=("sa",)),
        built_in(
            "v1",
            "services",
            "Service",
            Strategy(shape=PLAIN, name_rule=service_rule, has_status=True, returns_deleted=True),
            short_names=("svc",),
            subresources=("status",),
            categories=("all",),
        ),
        built_in(
            "v1",
            "resourcequotas",
            "ResourceQuota",
            Strategy(shape=QUOTA, has_status=True, returns_deleted=True),
            short_names=("quota",),
            subresources=("status",),
        ),
        built_in("v1", "limitranges", "LimitRange", LimitRangeStrategy(), short_names=("limits",)),
        built_in(
            "v1",
            "persistentvolumeclaims",
            "PersistentVolumeClaim",
            ClaimStrategy(),
            short_names=("pvc",),
            subresources=("status",),
        ),
        built_in(
            "v1",
            "persistentvolumes",
            "PersistentVolume",
            VolumeStrategy(),
            namespaced=False,
            short_names=("pv",),
            subresources=("status",),
        ),
        built_in(
            "coordination.k8s.io/v1",
            "leases",
            "Lease",
            Strategy(shape=LEASE, unconditional_update=False, create_on_update=True),
        ),
        built_in(
            "apiextensions.k8s.io/v1",
            "customresourcedefinitions",
            "CustomResourceDefinition",
            DefinitionStrategy(),
            namespaced=False,
            short_names=("crd", "crds"),
            subresources=("status",),
        ),
    )


def _storage() -> tuple[Resource, ...]:
    group = "storage.k8s.io/v1"
    return (
        built_in(
            group, "storageclasses", "StorageClass", StorageClassStrategy(), namespaced=False, short_names=("sc",)
        ),
        built_in(group, "csinodes", "CSINode", CsiNodeStrategy(), namespaced=False),
        built_in(group, "csidrivers", "CSIDriver", CsiDriverStrategy(), namespaced=False),
        built_in(group, "csistoragecapacities", "CSIStorageCapacity", CapacityStrategy()),
        built_in(
            group,
            "volumeattachments",
            "VolumeAttachment",
            AttachmentStrategy(),
            namespaced=False,
            subresources=("status",),
        ),
    )


def _workloads() -> tuple[Resource, ...]:
    owner = WorkloadStrategy()
    apps, status, everything = "apps/v1", ("status",), ("all",)
    scaled = ("scale", "status")
    return (
        built_in(
            "v1",
            "replicationcontrollers",
            "ReplicationController",
            owner,
            short_names=("rc",),
            subresources=scaled,
            categories=everything,
        ),
        built_in(
            apps, "replicasets", "ReplicaSet", owner, short_names=("rs",), subresources=scaled, categories=everything
        ),
        built_in(
            apps,
            "deployments",
            "Deployment",
            owner,
            short_names=("deploy",),
            subresources=scaled,
            categories=everything,
        ),
        built_in(
            apps, "statefulsets", "StatefulSet", owner, short_names=("sts",), subresources=scaled, categories=everything
        ),
        built_in(
            apps, "daemonsets", "DaemonSet", owner, short_names=("ds",), subresources=status, categories=everything
        ),
        built_in(
            "batch/v1",
            "jobs",
            "Job",
            WorkloadStrategy(needs_selector=False),
            subresources=status,
            categories=everything,
        ),
    )


def _policies() -> tuple[Resource, ...]:
    return (
        built_in(
            "scheduling.k8s.io/v1",
            "priorityclasses",
            "PriorityClass",
            PriorityClassStrategy(),
            namespaced=False,
            short_names=("pc",),
        ),
        built_in(
            "policy/v1",
            "poddisruptionbudgets",
            "PodDisruptionBudget",
            Strategy(shape=BUDGET, has_generation=True, has_status=True),
            short_names=("pdb",),
            subresources=("status",),
        ),
        built_in(
            "networking.k8s.io/v1",
            "networkpolicies",
            "NetworkPolicy",
            Strategy(shape=PLAIN, has_generation=True),
            short_names=("netpol",),
        ),
    )


def _rbac() -> tuple[Resource, ...]:
    group = "rbac.authorization.k8s.io/v1"
    rule = Strategy(name_rule=path_segment_rule, create_on_update=True)
    return (
        built_in(group, "roles", "Role", rule),
        built_in(group, "rolebindings", "RoleBinding", rule),
        built_in(group, "clusterroles", "ClusterRole", rule, namespaced=False),
        built_in(group, "clusterrolebindings", "ClusterRoleBinding", rule, namespaced=False),
    )


def _admission() -> tuple[Resource, ...]:
    group = "admissionregistration.k8s.io/v1"
    mutating, validating = WebhookStrategy(mutating=True), WebhookStrategy()
    return (
        built_in(group, "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", mutating, namespaced=False),
        built_in(
            group, "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", validating, namespaced=False
        ),
    )
