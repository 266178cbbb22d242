"""What Volcano's Helm chart 1.15 sets without values: the measure for what somebody has changed."""

from collections.abc import Mapping
from typing import Final

from volcano_py.migration.programs import CONTROLLERS, SCHEDULER, WEBHOOKS

VERSION: Final = (1, 15)
"""The version of Volcano that docs/parity.md compares with."""

ANY: Final[frozenset[str]] = frozenset()
"""Every value is fine: the flag only says where something is."""

_PLACE: Final[Mapping[str, frozenset[str]]] = {
    "kubeconfig": ANY,
    "master": ANY,
    "enable-healthz": frozenset({"true"}),
    "enable-metrics": frozenset({"true"}),
    "leader-elect": ANY,
    "version": ANY,
    "leader-elect-lease-duration": frozenset({"15s"}),
    "leader-elect-renew-deadline": frozenset({"10s"}),
    "leader-elect-retry-period": frozenset({"2s"}),
    "leader-elect-resource-lock": frozenset({"leases"}),
    "lock-object-namespace": ANY,
    "healthz-address": frozenset({":11251", "0.0.0.0:11251"}),
    "ca-cert-file": frozenset({""}),
    "tls-cert-file": frozenset({""}),
    "tls-private-key-file": frozenset({""}),
    "log-flush-frequency": frozenset({"5s"}),
    "v": frozenset({"0", "1", "2", "3", "4"}),
    "logtostderr": frozenset({"true"}),
    "alsologtostderr": frozenset({"false", "true"}),
    "stderrthreshold": ANY,
    "enable-pprof": frozenset({"false"}),
    "scheduler-name": frozenset({"volcano"}),
    "default-queue": frozenset({"default"}),
    "resync-period": frozenset({"0", "0s"}),
}

FLAGS: Final[Mapping[str, Mapping[str, frozenset[str]]]] = {
    SCHEDULER: {
        **_PLACE,
        "scheduler-conf": ANY,
        "leader-elect-resource-name": frozenset({"volcano"}),
        "leader-elect-resource-namespace": frozenset({"volcano-system"}),
        "listen-address": frozenset({":8080", "0.0.0.0:8080"}),
        "kube-api-qps": frozenset({"2000"}),
        "kube-api-burst": frozenset({"2000"}),
        "schedule-period": frozenset({"1s"}),
        "node-worker-threads": frozenset({"20"}),
        "gate-removal-worker-num": frozenset({"5"}),
        "priority-class": frozenset({"true"}),
        "minimum-feasible-nodes": frozenset({"100"}),
        "minimum-percentage-nodes-to-find": frozenset({"5"}),
        "percentage-nodes-to-find": frozenset({"0", "100"}),
        "plugins-dir": frozenset({""}),
        "csi-storage": frozenset({"true"}),
        "node-selector": frozenset({""}),
        "cache-dumper": frozenset({"true", "false"}),
        "cache-dump-dir": frozenset({"/tmp"}),
        "ignored-provisioners": frozenset({""}),
        "resource-sync-timeout": frozenset({"60s"}),
        "disable-default-scheduler-config": frozenset({"false", "true"}),
        "scheduler-sharding-mode": frozenset({"none", ""}),
        "scheduler-sharding-name": frozenset({"volcano"}),
    },
    CONTROLLERS: {
        **_PLACE,
        "leader-elect-resource-name": frozenset({"vc-controller-manager"}),
        "leader-elect-resource-namespace": frozenset({"volcano-system"}),
        "listen-address": frozenset({":8081", "0.0.0.0:8081"}),
        "kube-api-qps": frozenset({"50"}),
        "kube-api-burst": frozenset({"100"}),
        "worker-threads": frozenset({"3"}),
        "worker-threads-for-cronjob": frozenset({"3"}),
        "worker-threads-for-podgroup": frozenset({"5"}),
        "worker-threads-for-gc": frozenset({"1", "5"}),
        "worker-threads-for-queue": frozenset({"5"}),
        "max-requeue-num": frozenset({"15"}),
        "inherit-owner-annotations": frozenset({"true"}),
        "sharding-configmap": ANY,
        "sharding-configmap-namespace": ANY,
        "scheduler-configs": ANY,
        "shard-sync-period": ANY,
        "enable-node-event-trigger": ANY,
    },
    WEBHOOKS: {
        **_PLACE,
        "tls-cert-file": ANY,
        "tls-private-key-file": ANY,
        "ca-cert-file": ANY,
        "webhook-namespace": ANY,
        "webhook-service-name": ANY,
        "admission-conf": ANY,
        "listen-address": frozenset({"", "0.0.0.0"}),
        "port": frozenset({"8443"}),
        "kube-api-qps": frozenset({"50"}),
        "kube-api-burst": frozenset({"100"}),
        "graceful-shutdown-time": frozenset({"30s"}),
        "enable-queue-allocated-pods-check": frozenset({"false"}),
        "max-queue-depth": frozenset({"5"}),
        "enable-root-queue-protection": frozenset({"true"}),
    },
}
"""Program -> flag -> its values in the chart and in the program without the flag."""

VARIABLES: Final = frozenset(
    {"DEBUG_SOCKET_DIR", "GOMEMLIMIT", "KUBE_POD_NAMESPACE", "HELM_RELEASE_NAME", "SCHEDULER_POD_NAME", "SCHEDULER_NUM"}
)
"""Those of the chart, and those that belong to another one, which has its finding."""

ADMISSION_PATHS: Final = (
    *("/jobs/mutate", "/jobs/validate", "/podgroups/validate", "/queues/mutate", "/queues/validate"),
    *("/hypernodes/validate", "/cronjobs/validate"),
)
"""Those of the chart."""

CONTROLLERS_OFF: Final = "sharding-controller"
"""Of all controllers, the only one that does not run by default."""

FEATURES: Final[Mapping[str, bool]] = {
    "WorkLoadSupport": True,
    "VolcanoJobSupport": True,
    "PodDisruptionBudgetsSupport": True,
    "QueueCommandSync": True,
    "PriorityClass": True,
    "CSIStorage": False,
    "ResourceTopology": True,
    "CronVolcanoJobSupport": True,
    "SchedulingGatesQueueAdmission": False,
}

SCHEDULER_CONF: Final = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
"""

PRIORITY_CLASS: Final = "system-cluster-critical"

_SCHEDULING: Final = ("scheduling.incubator.k8s.io", "scheduling.volcano.sh")


def _table(*rows: tuple[tuple[str, ...], tuple[str, ...]]) -> frozenset[tuple[str, str]]:
    return frozenset((group, resource) for groups, resources in rows for group in groups for resource in resources)


_COMMON: Final = (
    (("apiextensions.k8s.io",), ("customresourcedefinitions",)),
    (("batch.volcano.sh",), ("jobs", "jobs/status", "jobs/finalizers")),
    (_SCHEDULING, ("podgroups", "podgroups/status", "podgroups/finalizers", "queues", "queues/status")),
    (("topology.volcano.sh",), ("hypernodes", "hypernodes/status")),
    (("shard.volcano.sh",), ("nodeshards", "nodeshards/status")),
    (("",), ("events", "pods", "pods/status", "persistentvolumeclaims", "persistentvolumes", "services")),
    (("",), ("configmaps", "nodes", "resourcequotas", "namespaces", "replicationcontrollers")),
    (("events.k8s.io",), ("events",)),
    (("scheduling.k8s.io",), ("priorityclasses",)),
    (("apps",), ("daemonsets", "replicasets", "statefulsets")),
    (("coordination.k8s.io",), ("leases",)),
)
RIGHTS: Final[Mapping[str, frozenset[tuple[str, str]]]] = {
    "scheduler": _table(
        *_COMMON,
        (("nodeinfo.volcano.sh",), ("numatopologies",)),
        (("",), ("pods/binding", "bindings", "pods/resize")),
        (
            ("storage.k8s.io",),
            ("storageclasses", "csinodes", "csidrivers", "csistoragecapacities", "volumeattachments"),
        ),
        (("policy",), ("poddisruptionbudgets",)),
        (
            ("resource.k8s.io",),
            (
                *("resourceclaims", "resourceclaims/status", "resourceclaims/binding"),
                *("deviceclasses", "resourceslices", "devicetaintrules"),
            ),
        ),
    ),
    "controllers": _table(
        *_COMMON,
        (("batch.volcano.sh",), ("cronjobs", "cronjobs/status", "cronjobs/finalizers")),
        (("bus.volcano.sh",), ("commands", "commands/status", "commands/finalizers")),
        (
            ("flow.volcano.sh",),
            (
                *("jobflows", "jobflows/status", "jobflows/finalizers", "jobs/finalizers"),
                *("jobtemplates", "jobtemplates/status", "jobtemplates/finalizers"),
            ),
        ),
        (("config.volcano.sh",), ("colocationconfigurations", "colocationconfigurations/status")),
        (("",), ("pods/finalizers", "secrets")),
        (("batch",), ("jobs",)),
        (("networking.k8s.io",), ("networkpolicies",)),
        (("leaderworkerset.x-k8s.io",), ("leaderworkersets",)),
    ),
    "admission": _table(
        *_COMMON,
        (("",), ("secrets",)),
        (("admissionregistration.k8s.io",), ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")),
        (
            ("certificates.k8s.io",),
            ("certificatesigningrequests", "certificatesigningrequests/approval"),
        ),
    ),
}
"""What the chart's ClusterRoles ``<release>-<component>`` name: pairs of API group and resource."""

_READ: Final = ("get", "list", "watch")
_WRITE: Final = ("create", "update", "patch", "delete")
VERBS: Final[Mapping[str, Mapping[str, frozenset[str]]]] = {
    "scheduler": {
        "customresourcedefinitions": frozenset({*_READ, "create", "delete"}),
        "nodes": frozenset({*_READ, "update", "patch"}),
        "pods": frozenset({*_READ, "patch", "delete", "update"}),
        "pods/binding": frozenset({"create"}),
        "persistentvolumeclaims": frozenset({*_READ, "update", "patch"}),
        "persistentvolumes": frozenset({*_READ, "update", "patch"}),
        "namespaces": frozenset(_READ),
        "services": frozenset(_READ),
        "replicationcontrollers": frozenset(_READ),
        "resourcequotas": frozenset(_READ),
        "poddisruptionbudgets": frozenset(_READ),
        "priorityclasses": frozenset(_READ),
        "daemonsets": frozenset(_READ),
        "replicasets": frozenset(_READ),
        "statefulsets": frozenset(_READ),
        "storageclasses": frozenset(_READ),
        "volumeattachments": frozenset(_READ),
    },
    "controllers": {
        "customresourcedefinitions": frozenset({*_READ, "create", "delete"}),
        "pods": frozenset({*_READ, *_WRITE, "bind"}),
        "nodes": frozenset(_READ),
        "secrets": frozenset({*_READ, *_WRITE}),
        "persistentvolumeclaims": frozenset({*_READ, "create"}),
        "services": frozenset({*_READ, "create", "delete"}),
        "networkpolicies": frozenset({*_READ, "create", "delete"}),
        "daemonsets": frozenset(_READ),
        "replicasets": frozenset(_READ),
        "statefulsets": frozenset(_READ),
    },
    "admission": {
        "configmaps": frozenset(_READ),
        "queues": frozenset(_READ),
        "podgroups": frozenset(_READ),
        "namespaces": frozenset(_READ),
        "services": frozenset(_READ),
        "secrets": frozenset({"get", "create", "patch", "update"}),
        "mutatingwebhookconfigurations": frozenset({*_READ, "create", "update", "patch"}),
        "validatingwebhookconfigurations": frozenset({*_READ, "create", "update", "patch"}),
    },
}
"""The verbs that the chart's ClusterRoles have for what matters to the safety of a cluster."""
