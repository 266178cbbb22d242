"""Where a kind of object lives on the API server: its group, version and plural, and the URL paths they make.

Every kind that the programs read or write stands at the end of this module, by API group.
"""

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from volcano_py.api import keys

_PLAIN: Final = re.compile(r"[A-Za-z0-9_.~-]+")  # what quoting leaves as it is, and all that most names are made of


@dataclass(frozen=True, slots=True)
class Resource:
    """A served resource, such as pods of the core group; it builds quoted URL paths."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """The ``apiVersion`` of its objects."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def label(self) -> str:
        """Its name in messages and metrics: the plural, with the group where there is one."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def root(self) -> str:
        """The path of its group and version, at which discovery lists the resources."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    def collection(self, namespace: str = "") -> str:
        """Return the path of all its objects, in one namespace or (empty) everywhere."""
        root = self.root
        if namespace and self.namespaced:
            return f"{root}/namespaces/{_quoted(namespace)}/{self.plural}"
        return f"{root}/{self.plural}"

    def item(self, name: str, namespace: str = "", subresource: str = "") -> str:
        """Return the path of one object, or of one of its subresources."""
        if not name:
            # An empty name would turn the deletion of one object into the deletion of all of them.
            raise ValueError(f"an object of {self.label} needs a name")
        if self.namespaced and not namespace:
            raise ValueError(f"{self.label} {name} needs a namespace")
        path = f"{self.collection(namespace)}/{_quoted(name)}"
        return f"{path}/{subresource}" if subresource else path


def _quoted(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else quote(name, safe="")


@dataclass(frozen=True, slots=True)
class Target:
    """What a URL path points at, as messages name it."""

    resource: str
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        """Return for instance ``pods/binding ns/name``."""
        where = f"{self.namespace}/{self.name}" if self.namespace and self.name else self.namespace or self.name
        return f"{self.resource} {where}" if where else self.resource


def target_of(path: str) -> Target:
    """Read a path of the API server back into what it points at; a foreign path is named as it is.

    Errors are rare and requests are many, so that the request carries only its path and the words are found here.
    """
    return Target(*_target(path))


def resource_of(path: str) -> str:
    """Return the resource of :func:`target_of` alone: it is wanted for every request."""
    return _target(path)[0]


def _target(path: str) -> tuple[str, str, str]:
    parts = path.partition("?")[0].strip("/").split("/")
    if parts[0] == "api" and len(parts) > 2:
        group, rest = "", parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, rest = parts[1], parts[3:]
    else:
        return path, "", ""
    namespace = ""
    # "namespaces/x" alone is the namespace itself, and "namespaces/x/status" or ".../finalize" its subresources.
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    resource = f"{rest[0]}.{group}" if group else rest[0]
    if len(rest) > 2:
        resource = f"{resource}/{rest[2]}"
    return resource, namespace, rest[1] if len(rest) > 1 else ""


# The core group

PODS: Final = Resource("", "v1", "pods", "Pod")
NODES: Final = Resource("", "v1", "nodes", "Node", namespaced=False)
NAMESPACES: Final = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
EVENTS: Final = Resource("", "v1", "events", "Event")
RESOURCE_QUOTAS: Final = Resource("", "v1", "resourcequotas", "ResourceQuota")
SERVICES: Final = Resource("", "v1", "services", "Service")
CONFIG_MAPS: Final = Resource("", "v1", "configmaps", "ConfigMap")
SECRETS: Final = Resource("", "v1", "secrets", "Secret")
PERSISTENT_VOLUME_CLAIMS: Final = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
PERSISTENT_VOLUMES: Final = Resource("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)
REPLICATION_CONTROLLERS: Final = Resource("", "v1", "replicationcontrollers", "ReplicationController")

# apps and batch

REPLICA_SETS: Final = Resource("apps", "v1", "replicasets", "ReplicaSet")
STATEFUL_SETS: Final = Resource("apps", "v1", "statefulsets", "StatefulSet")
DEPLOYMENTS: Final = Resource("apps", "v1", "deployments", "Deployment")
DAEMON_SETS: Final = Resource("apps", "v1", "daemonsets", "DaemonSet")
JOBS: Final = Resource("batch", "v1", "jobs", "Job")

# storage.k8s.io

STORAGE_CLASSES: Final = Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False)
CSI_NODES: Final = Resource("storage.k8s.io", "v1", "csinodes", "CSINode", namespaced=False)
CSI_DRIVERS: Final = Resource("storage.k8s.io", "v1", "csidrivers", "CSIDriver", namespaced=False)
CSI_STORAGE_CAPACITIES: Final = Resource("storage.k8s.io", "v1", "csistoragecapacities", "CSIStorageCapacity")
VOLUME_ATTACHMENTS: Final = Resource("storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment", namespaced=False)

# leaderworkerset.x-k8s.io

LEADER_WORKER_SETS: Final = Resource("leaderworkerset.x-k8s.io", "v1", "leaderworkersets", "LeaderWorkerSet")

# networking.k8s.io, policy, scheduling.k8s.io, coordination.k8s.io,
# admissionregistration.k8s.io and apiextensions.k8s.io

NETWORK_POLICIES: Final = Resource("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy")
POD_DISRUPTION_BUDGETS: Final = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
PRIORITY_CLASSES: Final = Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False)
LEASES: Final = Resource("coordination.k8s.io", "v1", "leases", "Lease")
MUTATING_WEBHOOKS: Final = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
    namespaced=False,
)
VALIDATING_WEBHOOKS: Final = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    namespaced=False,
)
CUSTOM_RESOURCE_DEFINITIONS: Final = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)

VALIDATING_POLICIES: Final = Resource(
    "admissionregistration.k8s.io", "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", namespaced=False
)
MUTATING_POLICIES: Final = Resource(
    "admissionregistration.k8s.io", "v1beta1", "mutatingadmissionpolicies", "MutatingAdmissionPolicy", namespaced=False
)

# rbac.authorization.k8s.io

CLUSTER_ROLES: Final = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False)
CLUSTER_ROLE_BINDINGS: Final = Resource(
    "rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False
)
ROLE_BINDINGS: Final = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")

# batch.volcano.sh, bus.volcano.sh, flow.volcano.sh, scheduling.volcano.sh and shard.volcano.sh

VCJOBS: Final = Resource(keys.BATCH_GROUP, keys.BATCH_VERSION, "jobs", "Job")
CRON_JOBS: Final = Resource(keys.BATCH_GROUP, keys.BATCH_VERSION, "cronjobs", "CronJob")
COMMANDS: Final = Resource(keys.BUS_GROUP, keys.BUS_VERSION, "commands", "Command")
JOB_FLOWS: Final = Resource(keys.FLOW_GROUP, keys.FLOW_VERSION, "jobflows", "JobFlow")
JOB_TEMPLATES: Final = Resource(keys.FLOW_GROUP, keys.FLOW_VERSION, "jobtemplates", "JobTemplate")

PODGROUPS: Final = Resource(keys.SCHEDULING_GROUP, keys.SCHEDULING_VERSION, "podgroups", "PodGroup")
QUEUES: Final = Resource(keys.SCHEDULING_GROUP, keys.SCHEDULING_VERSION, "queues", "Queue", namespaced=False)
NODE_SHARDS: Final = Resource(keys.SHARD_GROUP, keys.SHARD_VERSION, "nodeshards", "NodeShard", namespaced=False)
HYPER_NODES: Final = Resource(keys.TOPOLOGY_GROUP, keys.TOPOLOGY_VERSION, "hypernodes", "HyperNode", namespaced=False)

# Kinds of Volcano that nothing here acts on; `volcano-py migrate check` looks whether there are any.

NUMATOPOLOGIES: Final = Resource("nodeinfo.volcano.sh", "v1alpha1", "numatopologies", "Numatopology", namespaced=False)
COLOCATION_CONFIGURATIONS: Final = Resource(
    "config.volcano.sh", "v1alpha1", "colocationconfigurations", "ColocationConfiguration"
)
