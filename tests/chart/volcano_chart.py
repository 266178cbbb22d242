"""A chart in place of Volcano's: names, selectors and values as Volcano's chart has them, without its programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from tests.chart.rendering import MANIFESTS, Object, documents

VALUES: dict[str, Any] = {
    "basic": {
        "controller_image_name": "volcanosh/vc-controller-manager",
        "scheduler_image_name": "volcanosh/vc-scheduler",
        "admission_image_name": "volcanosh/vc-webhook-manager",
        "agent_image_name": "volcanosh/vc-agent",
        "agent_scheduler_image_name": "volcanosh/vc-agent-scheduler",
        "hypernode_controller_image_name": "volcanosh/vc-hypernode-controller-manager",
        "controller_image_tag_version": "",
        "scheduler_image_tag_version": "v1.15.0",
        "admission_secret_name": "volcano-admission-secret",
        "admission_config_file": "config/volcano-admission.conf",
        "scheduler_config_file": "config/volcano-scheduler.conf",
        "agent_scheduler_config_file": "config/agent-scheduler.conf",
        "image_pull_secret": "",
        "image_pull_policy": "Always",
        "image_tag_version": "v1.15.0",
        "admission_port": 8443,
        "image_registry": "docker.io",
    },
    "custom": {
        "metrics_enable": False,
        "admission_enable": True,
        "admission_replicas": 1,
        "controller_enable": True,
        "controller_replicas": 1,
        "controller_metrics_enable": True,
        "scheduler_enable": True,
        "scheduler_replicas": 1,
        "scheduler_metrics_enable": True,
        "scheduler_pprof_enable": False,
        "scheduler_plugins_dir": "",
        "scheduler_name": None,
        "agent_scheduler_enable": False,
        "agent_scheduler_replicas": 1,
        "leader_elect_enable": False,
        "go_memlimit_enable": False,
        "vap_enable": False,
        "map_enable": False,
        "controller_kube_api_qps": 50,
        "controller_kube_api_burst": 100,
        "controller_worker_threads": 3,
        "controller_worker_threads_for_gc": 5,
        "controller_worker_threads_for_podgroup": 5,
        "controller_enabled_controllers": "*,-sharding-controller",
        "hypernode_controller_mode": "controller-manager",
        "hypernode_controller_replicas": 1,
        "scheduler_kube_api_qps": 2000,
        "scheduler_kube_api_burst": 2000,
        "scheduler_schedule_period": "1s",
        "scheduler_node_worker_threads": 20,
        "scheduler_percentage_nodes_to_find": None,
        "scheduler_sharding_mode": "none",
        "ignored_provisioners": None,
        "enabled_admissions": "/jobs/mutate,/jobs/validate,/podgroups/validate,/queues/mutate,/queues/validate,"
        "/hypernodes/validate,/cronjobs/validate",
        "colocation_enable": False,
        "sharding_configmap_enable": True,
        "sharding_configmap_data": None,
        "agent_tolerations": [{"key": "volcano.sh/offline-job-evicting", "operator": "Exists", "effect": "NoSchedule"}],
        "default_sc": {"seccompProfile": {"type": "RuntimeDefault"}, "seLinuxOptions": {"level": "s0:c123,c456"}},
        "admission_log_level": 4,
        "scheduler_log_level": 3,
        "controller_log_level": 4,
        "default_csc": {
            "runAsNonRoot": True,
            "runAsUser": 1000,
            "capabilities": {"add": ["DAC_OVERRIDE"], "drop": ["ALL"]},
            "allowPrivilegeEscalation": False,
        },
        "admission_init_csc": None,
        "agent_cni_config_path": "/etc/cni/net.d/cni.conflist",
        "scheduler_feature_gates": None,
        "common_labels": None,
    },
    "service": {"ipFamilyPolicy": "", "ipFamilies": []},
    "jobflow": {"global": {}},
}
"""The defaults of Volcano 1.15 that matter to an upgrade."""

PROGRAMS = {
    "scheduler": (
        "volcano-scheduler",
        ["--logtostderr", "--enable-healthz=true", "--leader-elect=false", "-v=3", "2>&1"],
    ),
    "controllers": ("volcano-controller", ["--logtostderr", "--enable-healthz=true", "--leader-elect=false", "-v=4"]),
    "admission": ("volcano-admission", ["--logtostderr", "--webhook-namespace={{ .Release.Namespace }}", "-v=4"]),
}
RELEASE = "{{ .Release.Name }}"
NAMESPACE = "{{ .Release.Namespace }}"


def write_chart(folder: Path) -> Path:
    """Write the chart into a folder and return it."""
    (folder / "templates").mkdir(parents=True)
    about = {"apiVersion": "v2", "name": "volcano", "version": "1.15.0", "appVersion": "0.1"}
    (folder / "Chart.yaml").write_text(yaml.safe_dump(about))
    (folder / "values.yaml").write_text(yaml.safe_dump(VALUES))
    (folder / "templates" / "programs.yaml").write_text(yaml.safe_dump_all(_objects()))
    for definition in sorted((MANIFESTS / "crds").glob("*.yaml")):
        (one,) = documents(definition.read_text())
        (folder / "templates" / f"{definition.stem}.yaml").write_text(json.dumps(as_volcano(one)))
    return folder


def as_volcano(definition: Object) -> Object:
    """Return a definition as an older one: without the queue's `deserved`, so that an upgrade has something to add."""
    if definition["metadata"]["name"] == "queues.scheduling.volcano.sh":
        (version,) = definition["spec"]["versions"]
        del version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["deserved"]
    return definition


def _objects() -> list[Object]:
    found: list[Object] = []
    for component, (app, arguments) in PROGRAMS.items():
        found += [
            _meta("v1", "ServiceAccount", component),
            _meta("rbac.authorization.k8s.io/v1", "ClusterRole", component, namespaced=False)
            | {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch", "update"]}]},
            _meta("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", f"{component}-role", namespaced=False)
            | {
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "ClusterRole",
                    "name": f"{RELEASE}-{component}",
                },
                "subjects": [{"kind": "ServiceAccount", "name": f"{RELEASE}-{component}", "namespace": NAMESPACE}],
            },
            _deployment(component, app, arguments),
            _service(component, app),
        ]
    configuration = {
        "volcano-scheduler.conf": 'actions: "enqueue, allocate, backfill"\ntiers:\n- plugins:\n  - name: gang\n'
    }
    found.append(_meta("v1", "ConfigMap", "scheduler-configmap") | {"data": configuration})
    found.append(_meta("v1", "ConfigMap", "controller-configmap") | {"data": {"volcano-controller.conf": ""}})
    found.append(_meta("v1", "ConfigMap", "admission-configmap") | {"data": {"volcano-admission.conf": "#\n"}})
    found.append(_webhook())
    return found


def _meta(version: str, kind: str, name: str, *, namespaced: bool = True) -> Object:
    metadata = {"name": f"{RELEASE}-{name}", **({"namespace": NAMESPACE} if namespaced else {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata}


def _deployment(component: str, app: str, arguments: list[str]) -> Object:
    pod = {
        "serviceAccount": f"{RELEASE}-{component}",
        "priorityClassName": "system-cluster-critical",
        "containers": [
            {
                "name": f"{RELEASE}-{component}",
                "image": f"docker.io/volcanosh/vc-{component}:v1.15.0",
                "args": arguments,
                "env": [{"name": "DEBUG_SOCKET_DIR", "value": "/tmp/klog-socks"}],
                "volumeMounts": [{"name": "klog-sock", "mountPath": "/tmp/klog-socks"}],
            }
        ],
        "volumes": [{"name": "klog-sock", "emptyDir": {}}],
    }
    return _meta("apps/v1", "Deployment", component) | {
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": app}},
            "template": {"metadata": {"labels": {"app": app}}, "spec": pod},
        }
    }


def _service(component: str, app: str) -> Object:
    ports = {
        "scheduler": {"name": "metrics", "port": 8080, "targetPort": 8080},
        "controllers": {"name": "metrics", "port": 8081, "targetPort": 8081},
        "admission": {"port": 443, "protocol": "TCP", "targetPort": 8443},
    }
    spec = {"ports": [ports[component]], "selector": {"app": app}, "type": "ClusterIP"}
    return _meta("v1", "Service", f"{component}-service") | {"spec": spec}


def _webhook() -> Object:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "volcano-admission-service-queues-validate"},
        "webhooks": [
            {
                "name": "validatequeue.volcano.sh",
                "admissionReviewVersions": ["v1"],
                "clientConfig": {
                    "service": {
                        "name": f"{RELEASE}-admission-service",
                        "namespace": NAMESPACE,
                        "path": "/queues/validate",
                        "port": 443,
                    }
                },
                "rules": [
                    {
                        "apiGroups": ["scheduling.volcano.sh"],
                        "apiVersions": ["v1beta1"],
                        "operations": ["CREATE", "UPDATE", "DELETE"],
                        "resources": ["queues"],
                        "scope": "*",
                    }
                ],
                "failurePolicy": "Ignore",  # nobody answers
                "sideEffects": "NoneOnDryRun",
                "timeoutSeconds": 1,
            }
        ],
    }
