"""The objects of a Volcano installation as its Helm chart leaves them without values, on a cluster that runs.

Written from the description of the chart, not from our manifests. What our code reads about Volcano must not come from
the same place as what it is tested with; only the definitions of custom resources are ours, with what Volcano's have
besides.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from volcano_py.local.manifests import definitions

Obj = dict[str, Any]

VERSION: Final = "v1.15.0"
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
_ADMISSION_CONF: Final = """\
#resourceGroups:
#- resourceGroup: management
#  object:
#    key: namespace
#    value:
#    - mng-ns-1
#  schedulerName: default-scheduler
#  labels:
#    volcano.sh/nodetype: management
"""
_PATHS: Final = (
    *("/jobs/mutate", "/jobs/validate", "/podgroups/validate", "/queues/mutate", "/queues/validate"),
    *("/hypernodes/validate", "/cronjobs/validate"),
)
_SCHEDULING: Final = ("scheduling.incubator.k8s.io", "scheduling.volcano.sh")
_WATCH: Final = ("get", "list", "watch")
_ALL: Final = (*_WATCH, "create", "delete", "update", "patch")


@dataclass(frozen=True)
class Release:
    """The name and place of a Helm release of Volcano."""

    name: str = "volcano"
    namespace: str = "volcano-system"

    def objects(self) -> list[Obj]:
        """Return all objects, in an order in which they can be created; they may be changed."""
        found: list[Obj] = json.loads(self._written())
        return found

    @cache  # noqa: B019 - there are two releases in a run
    def _written(self) -> str:
        found = [
            namespace(self.namespace),
            *volcanos_definitions(),
            *self._accounts(),
            *self._configurations(),
            *self._deployments(),
            *self._services(),
            *self._webhooks(),
            *self._user_roles(),
            *queues(),
        ]
        return json.dumps(found)

    # Programs

    def _deployments(self) -> Iterator[Obj]:
        yield self._deployment(
            "scheduler",
            "volcano-scheduler",
            "vc-scheduler",
            [
                "--logtostderr",
                "--scheduler-conf=/volcano.scheduler/volcano-scheduler.conf",
                "--enable-healthz=true",
                "--enable-metrics=true",
                "--leader-elect=false",
                "--kube-api-qps=2000",
                "--kube-api-burst=2000",
                "--schedule-period=1s",
                "--node-worker-threads=20",
                "-v=3",
                "2>&1",
            ],
            {"scheduler-config": ("configMap", f"{self.name}-scheduler-configmap", "/volcano.scheduler")},
            [{"name": "DEBUG_SOCKET_DIR", "value": "/tmp/klog-socks"}],
        )
        yield self._deployment(
            "controllers",
            "volcano-controller",
            "vc-controller-manager",
            [
                "--logtostderr",
                "--enable-healthz=true",
                "--enable-metrics=true",
                "--leader-elect=false",
                "--kube-api-qps=50",
                "--kube-api-burst=100",
                "--worker-threads=3",
                "--worker-threads-for-gc=5",
                "--worker-threads-for-podgroup=5",
                "--sharding-configmap=volcano-sharding-configmap",
                f"--sharding-configmap-namespace={self.namespace}",
                "-v=4",
                "2>&1",
            ],
            {},
            [
                {"name": "KUBE_POD_NAMESPACE", "value": self.namespace},
                {"name": "HELM_RELEASE_NAME", "value": self.name},
            ],
        )
        certificates = "/admission.local.config/certificates"
        yield self._deployment(
            "admission",
            "volcano-admission",
            "vc-webhook-manager",
            [
                f"--enabled-admission={','.join(_PATHS)}",
                f"--tls-cert-file={certificates}/tls.crt",
                f"--tls-private-key-file={certificates}/tls.key",
                f"--ca-cert-file={certificates}/ca.crt",
                "--admission-conf=/admission.local.config/configmap/volcano-admission.conf",
                f"--webhook-namespace={self.namespace}",
                f"--webhook-service-name={self.name}-admission-service",
                "--enable-healthz=true",
                "--logtostderr",
                "--port=8443",
                "-v=4",
                "2>&1",
            ],
            {
                "admission-certs": ("secret", "volcano-admission-secret", certificates),
                "admission-config": (
                    "configMap",
                    f"{self.name}-admission-configmap",
                    "/admission.local.config/configmap",
                ),
            },
            [],
        )

    def _deployment(
        self, part: str, app: str, image: str, args: list[str], volumes: dict[str, tuple[str, str, str]], env: list[Obj]
    ) -> Obj:
        name = f"{self.name}-{part}"
        field = {"configMap": "name", "secret": "secretName"}
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": self._metadata(name, {"app": app}),
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": {"app": app}},
                "template": {
                    "metadata": {"labels": {"app": app}},
                    "spec": {
                        "serviceAccountName": name,
                        "priorityClassName": "system-cluster-critical",
                        "securityContext": {
                            "runAsNonRoot": True,
                            "runAsUser": 1000,
                            "seccompProfile": {"type": "RuntimeDefault"},
                        },
                        "containers": [
                            {
                                "name": name,
                                "image": f"docker.io/volcanosh/{image}:{VERSION}",
                                "imagePullPolicy": "Always",
                                "args": args,
                                "env": env,
                                "volumeMounts": [
                                    {"name": key, "mountPath": path} for key, (_, _, path) in volumes.items()
                                ],
                                "securityContext": {
                                    "allowPrivilegeEscalation": False,
                                    "capabilities": {"drop": ["ALL"], "add": ["DAC_OVERRIDE"]},
                                },
                            }
                        ],
                        "volumes": [
                            {"name": key, kind: {field[kind]: source}} for key, (kind, source, _) in volumes.items()
                        ],
                    },
                },
            },
        }

    def _services(self) -> Iterator[Obj]:
        for part, app, name, port, target in (
            ("scheduler", "volcano-scheduler", "metrics", 8080, 8080),
            ("controllers", "volcano-controller", "metrics", 8081, 8081),
            ("admission", "volcano-admission", None, 443, 8443),
        ):
            one = {"port": port, "targetPort": target, "protocol": "TCP", **({"name": name} if name else {})}
            yield {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": self._metadata(f"{self.name}-{part}-service", {"app": app}),
                "spec": {"type": "ClusterIP", "selector": {"app": app}, "ports": [one], "sessionAffinity": "None"},
            }

    def _configurations(self) -> Iterator[Obj]:
        for name, key, content in (
            (f"{self.name}-scheduler-configmap", "volcano-scheduler.conf", SCHEDULER_CONF),
            (f"{self.name}-controller-configmap", "volcano-controller.conf", ""),
            (f"{self.name}-admission-configmap", "volcano-admission.conf", _ADMISSION_CONF),
            ("volcano-sharding-configmap", "sharding.yaml", ""),
        ):
            yield {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": self._metadata(name),
                "data": {key: content},
            }

    # Rights

    def _accounts(self) -> Iterator[Obj]:
        for part, rules in (
            ("scheduler", _scheduler_rules),
            ("controllers", _controller_rules),
            ("admission", _admission_rules),
        ):
            name = f"{self.name}-{part}"
            yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": self._metadata(name)}
            yield {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRole",
                "metadata": _labelled(name, self.name),
                "rules": list(rules()),
            }
            yield {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRoleBinding",
                "metadata": _labelled(f"{name}-role", self.name),
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
                "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": self.namespace}],
            }

    def _user_roles(self) -> Iterator[Obj]:
        for name, verbs in (
            ("vcjob-editor-role", ["create", *_WATCH[:2], "update", "delete"]),
            ("vcjob-viewer-role", _WATCH[:2]),
        ):
            yield {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRole",
                "metadata": _labelled(name, self.name),
                "rules": [_rule("batch.volcano.sh", ["jobs"], verbs)],
            }

    # Webhooks

    def _webhooks(self) -> Iterator[Obj]:
        volcano = (
            ("batch.volcano.sh", "v1alpha1"),
            ("scheduling.volcano.sh", "v1beta1"),
            ("topology.volcano.sh", "v1alpha1"),
        )
        batch, scheduling, topology = volcano
        change = ["CREATE", "UPDATE"]
        for path, name, group, resource, operations in (
            ("/jobs/mutate", "mutatejob.volcano.sh", batch, "jobs", ["CREATE"]),
            ("/jobs/validate", "validatejob.volcano.sh", batch, "jobs", change),
            ("/queues/mutate", "mutatequeue.volcano.sh", scheduling, "queues", ["CREATE"]),
            ("/queues/validate", "validatequeue.volcano.sh", scheduling, "queues", [*change, "DELETE"]),
            ("/podgroups/validate", "validatepodgroup.volcano.sh", scheduling, "podgroups", ["CREATE"]),
            ("/hypernodes/validate", "validatehypernodes.volcano.sh", topology, "hypernodes", change),
            ("/cronjobs/validate", "validatecronjob.volcano.sh", batch, "cronjobs", change),
        ):
            mutates = path.endswith("mutate")
            yield {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": f"{'Mutating' if mutates else 'Validating'}WebhookConfiguration",
                "metadata": _labelled(f"volcano-admission-service{path.replace('/', '-')}", self.name),
                "webhooks": [
                    {
                        "name": name,
                        "admissionReviewVersions": ["v1"],
                        "clientConfig": {
                            "service": {
                                "name": f"{self.name}-admission-service",
                                "namespace": self.namespace,
                                "path": path,
                                "port": 443,
                            },
                            "caBundle": "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==",
                        },
                        "rules": [
                            {
                                "apiGroups": [group[0]],
                                "apiVersions": [group[1]],
                                "operations": operations,
                                "resources": [resource],
                                "scope": "*",
                            }
                        ],
                        "failurePolicy": "Fail",
                        "matchPolicy": "Equivalent",
                        "sideEffects": "None" if resource == "hypernodes" else "NoneOnDryRun",
                        "timeoutSeconds": 10,
                        "objectSelector": {},
                        "namespaceSelector": {
                            "matchExpressions": [
                                {
                                    "key": "kubernetes.io/metadata.name",
                                    "operator": "NotIn",
                                    "values": [self.namespace, "kube-system"],
                                }
                            ]
                        },
                        **({"reinvocationPolicy": "Never"} if mutates else {}),
                    }
                ],
            }

    def _metadata(self, name: str, labels: Obj | None = None) -> Obj:
        return {**_labelled(name, self.name, labels), "namespace": self.namespace}


def _labelled(name: str, release: str, labels: Obj | None = None) -> Obj:
    return {
        "name": name,
        "labels": {"app.kubernetes.io/managed-by": "Helm", **(labels or {})},
        "annotations": {"meta.helm.sh/release-name": release},
    }


def namespace(name: str) -> Obj:
    """Return a namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def volcanos_definitions() -> Iterator[Obj]:
    """Yield the definitions as Volcano's chart has them: ours, with its annotations and descriptions."""
    for one in definitions():
        definition = copy.deepcopy(one)
        annotations = definition["metadata"].setdefault("annotations", {})
        annotations["helm.sh/resource-policy"] = "keep"
        annotations["controller-gen.kubebuilder.io/version"] = "v0.17.0"
        for version in definition["spec"]["versions"]:
            _describe(version["schema"]["openAPIV3Schema"])
        yield definition


def _describe(schema: Obj) -> None:
    schema.setdefault("description", "What the types of Volcano say about this field.")
    for name, field in schema.get("properties", {}).items():
        if name != "metadata":  # the API server has its own description of it
            _describe(field)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            _describe(schema[key])


def queues() -> Iterator[Obj]:
    """Yield the queues that Volcano's scheduler creates at its start, as its controllers leave them."""
    for name, reclaimable, parent in (("root", False, None), ("default", True, "root")):
        yield {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": {"name": name},
            "spec": {"weight": 1, "reclaimable": reclaimable, **({"parent": parent} if parent else {})},
            "status": {"state": "Open", "allocated": {"cpu": "0", "memory": "0"}, "reservation": {}},
        }


def _rule(group: str | tuple[str, ...], resources: list[str], verbs: Any) -> Obj:
    groups = [group] if isinstance(group, str) else list(group)
    return {"apiGroups": groups, "resources": resources, "verbs": list(verbs)}


def _scheduler_rules() -> Iterator[Obj]:
    yield _rule("apiextensions.k8s.io", ["customresourcedefinitions"], ("create", *_WATCH, "delete"))
    yield _rule("batch.volcano.sh", ["jobs"], (*_WATCH, "update", "delete"))
    yield _rule("batch.volcano.sh", ["jobs/status"], ("update", "patch"))
    yield _rule(_SCHEDULING, ["podgroups"], ("list", "watch", "update"))
    yield _rule(_SCHEDULING, ["queues"], (*_WATCH, "create", "delete", "update"))
    yield _rule(_SCHEDULING, ["queues/status"], ("update",))
    yield _rule("topology.volcano.sh", ["hypernodes", "hypernodes/status"], _WATCH)
    yield _rule("nodeinfo.volcano.sh", ["numatopologies"], (*_WATCH, "delete"))
    yield _rule("shard.volcano.sh", ["nodeshards"], ("list", "watch", "get"))
    yield _rule("shard.volcano.sh", ["nodeshards/status"], ("update",))
    yield _rule("", ["events"], ("create", "list", "watch", "update", "patch"))
    yield _rule("", ["pods"], (*_WATCH, "patch", "delete"))
    yield _rule("", ["pods/status"], ("update",))
    yield _rule("", ["pods/binding"], ("create",))
    yield _rule("", ["persistentvolumeclaims", "persistentvolumes"], ("list", "watch", "update"))
    yield _rule("", ["namespaces", "services", "replicationcontrollers"], ("list", "watch", "get"))
    yield _rule("", ["configmaps"], (*_WATCH, "create", "delete", "update"))
    yield _rule("", ["nodes"], (*_WATCH, "update", "patch"))
    yield _rule("", ["resourcequotas"], ("list", "watch"))
    yield _rule(
        "storage.k8s.io", ["storageclasses", "csinodes", "csidrivers", "csistoragecapacities"], ("list", "watch")
    )
    yield _rule("storage.k8s.io", ["volumeattachments"], ("list", "watch"))
    yield _rule("policy", ["poddisruptionbudgets"], ("list", "watch"))
    yield _rule("scheduling.k8s.io", ["priorityclasses"], _WATCH)
    yield _rule("apps", ["daemonsets", "replicasets", "statefulsets"], ("list", "watch", "get"))
    yield _rule("coordination.k8s.io", ["leases"], ("get", "create", "update", "watch"))
    yield _rule("resource.k8s.io", ["resourceclaims"], (*_WATCH, "create", "update", "patch"))
    yield _rule("resource.k8s.io", ["resourceclaims/status"], ("update",))
    yield _rule("resource.k8s.io", ["deviceclasses", "resourceslices"], (*_WATCH, "create"))


def _controller_rules() -> Iterator[Obj]:
    yield _rule("apiextensions.k8s.io", ["customresourcedefinitions"], ("create", *_WATCH, "delete"))
    yield _rule("batch.volcano.sh", ["jobs", "cronjobs"], ("create", *_WATCH, "update", "delete"))
    yield _rule("batch.volcano.sh", ["jobs/status", "jobs/finalizers"], ("update", "patch"))
    yield _rule("batch.volcano.sh", ["cronjobs/status", "cronjobs/finalizers"], ("update", "patch"))
    yield _rule("bus.volcano.sh", ["commands"], (*_WATCH, "delete"))
    yield _rule(_SCHEDULING, ["podgroups", "queues", "queues/status"], _ALL)
    yield _rule("flow.volcano.sh", ["jobflows", "jobtemplates"], (*_WATCH, "create", "delete", "update"))
    yield _rule(
        "flow.volcano.sh",
        ["jobflows/status", "jobs/finalizers", "jobtemplates/status", "jobtemplates/finalizers"],
        ("update", "patch"),
    )
    yield _rule("topology.volcano.sh", ["hypernodes", "hypernodes/status"], _ALL)
    yield _rule("shard.volcano.sh", ["nodeshards", "nodeshards/status"], _ALL)
    yield _rule("config.volcano.sh", ["colocationconfigurations"], _WATCH)
    yield _rule("", ["events"], ("create", "list", "watch", "update", "patch"))
    yield _rule("", ["pods"], _ALL)
    yield _rule("", ["pods/finalizers"], ("update", "patch"))
    yield _rule("", ["persistentvolumeclaims"], (*_WATCH, "create"))
    yield _rule("", ["services"], (*_WATCH, "create", "delete"))
    yield _rule("", ["configmaps"], (*_WATCH, "create", "delete", "update"))
    yield _rule("", ["secrets"], ("get", "create", "delete", "update"))
    yield _rule("", ["nodes"], ("list", "watch"))
    yield _rule("scheduling.k8s.io", ["priorityclasses"], (*_WATCH, "create", "delete"))
    yield _rule("apps", ["daemonsets", "replicasets", "statefulsets"], _WATCH)
    yield _rule("batch", ["jobs"], ("get",))
    yield _rule("networking.k8s.io", ["networkpolicies"], ("get", "create", "delete"))
    yield _rule("coordination.k8s.io", ["leases"], ("get", "create", "update", "watch"))


def _admission_rules() -> Iterator[Obj]:
    yield _rule("", ["configmaps"], _WATCH)
    yield _rule("", ["services"], ("get",))
    yield _rule(_SCHEDULING, ["podgroups", "queues"], _WATCH)
    yield _rule(
        "admissionregistration.k8s.io",
        ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
        (*_WATCH, "create", "update"),
    )
    yield _rule("certificates.k8s.io", ["certificatesigningrequests"], ("get", "list", "create", "delete"))
    yield _rule("certificates.k8s.io", ["certificatesigningrequests/approval"], ("create", "update"))
