"""Differences of an installation: flags, programs, configurations, definitions, webhooks, rights and Services."""

from __future__ import annotations

from typing import Final

from tests.migration import ordinary
from tests.migration.copies import Copy
from tests.migration.planting import ADMISSION, CONTROLLERS, SCHEDULER, Obj, plant
from tests.migration.volcano_install import SCHEDULER_CONF

# Flags and variables


@plant((*SCHEDULER, "flag-refused"))
def a_node_selector(copy: Copy) -> None:
    copy.argument("scheduler", "--node-selector=pool:batch")


@plant((*SCHEDULER, "flag-refused"))
def priorities_switched_off(copy: Copy) -> None:
    copy.argument("scheduler", "--priority-class=false")


@plant((*SCHEDULER, "flag-refused"))
def health_over_tls(copy: Copy) -> None:
    copy.argument("scheduler", "--tls-cert-file=/tls/tls.crt")


@plant((*SCHEDULER, "flag-without-effect"))
def sampled_nodes(copy: Copy) -> None:
    copy.argument("scheduler", "--percentage-nodes-to-find=20")


@plant((*SCHEDULER, "flag-without-effect"))
def storage_capacity_ignored(copy: Copy) -> None:
    copy.argument("scheduler", "--csi-storage=false")


@plant((*SCHEDULER, "flag-set"))
def a_longer_period(copy: Copy) -> None:
    copy.argument("scheduler", "--schedule-period=5s")


@plant((*SCHEDULER, "flag-unknown"))
def a_flag_of_a_fork(copy: Copy) -> None:
    copy.argument("scheduler", "--corporate-mode=fast")


@plant((*SCHEDULER, "plugins-dir"))
def compiled_plugins(copy: Copy) -> None:
    copy.argument("scheduler", "--plugins-dir=/plugins")


@plant((*SCHEDULER, "several-scheduler-names"))
def two_scheduler_names(copy: Copy) -> None:
    copy.container("scheduler")["args"] += ["--scheduler-name=volcano", "--scheduler-name=batch"]


@plant((*SCHEDULER, "flag-without-effect"))
def a_feature_of_kubernetes(copy: Copy) -> None:
    copy.argument("scheduler", "--feature-gates=DynamicResourceAllocation=true")


@plant((*SCHEDULER, "flag-set"))
def gates_of_queues(copy: Copy) -> None:
    copy.argument("scheduler", "--feature-gates=SchedulingGatesQueueAdmission=true,WorkLoadSupport=true")


@plant((*SCHEDULER, "variable-refused"))
def pods_divided_among_schedulers(copy: Copy) -> None:
    env = copy.container("scheduler")["env"]
    env += [{"name": "MULTI_SCHEDULER_ENABLE", "value": "true"}, {"name": "SCHEDULER_NUM", "value": "3"}]
    copy.program("scheduler")["spec"]["replicas"] = 3


@plant((*SCHEDULER, "variable-without-effect"))
def binds_in_batches(copy: Copy) -> None:
    copy.container("scheduler")["env"].append({"name": "BATCH_BIND_NUM", "value": "50"})


@plant((*CONTROLLERS, "flag-set"))
def a_lease_of_another_name(copy: Copy) -> None:
    copy.argument("controllers", "--leader-elect=true", "--leader-elect-resource-name=batch")


@plant((*SCHEDULER, "replicas-without-lease"))
def several_schedulers_without_a_lease(copy: Copy) -> None:
    copy.program("scheduler")["spec"]["replicas"] = 3


@plant((*ADMISSION, "replicas"))
def several_webhook_managers(copy: Copy) -> None:
    copy.program("admission")["spec"]["replicas"] = 3


@plant((*CONTROLLERS, "controller-missing"))
def the_sharding_controller(copy: Copy) -> None:
    copy.argument("controllers", "--controllers=*,+sharding-controller")


@plant((*CONTROLLERS, "controllers-left-out"))
def no_garbage_collector(copy: Copy) -> None:
    copy.argument("controllers", "--controllers=*,-gc-controller,-sharding-controller")


@plant((*CONTROLLERS, "flag-set"))
def more_workers(copy: Copy) -> None:
    copy.argument("controllers", "--worker-threads=50")


@plant((*CONTROLLERS, "flag-set"))
def annotations_of_owners_left_out(copy: Copy) -> None:
    copy.argument("controllers", "--inherit-owner-annotations=false")


@plant((*ADMISSION, "flag-set"))
def deeper_queues(copy: Copy) -> None:
    copy.argument("admission", "--max-queue-depth=9")


@plant((*ADMISSION, "admission-paths"))
def fewer_webhooks(copy: Copy) -> None:
    copy.argument("admission", "--enabled-admission=/jobs/mutate,/jobs/validate,/queues/mutate,/queues/validate")
    for kind in ("podgroups", "hypernodes", "cronjobs"):
        copy.remove("ValidatingWebhookConfiguration", f"volcano-admission-service-{kind}-validate")


@plant((*SCHEDULER, "version"))
def an_older_version(copy: Copy) -> None:
    copy.container("scheduler")["image"] = "registry.example.com/mirror/vc-scheduler:v1.9.0"


@plant((*SCHEDULER, "pod-setting"))
def a_node_for_the_scheduler(copy: Copy) -> None:
    copy.program("scheduler")["spec"]["template"]["spec"]["nodeSelector"] = {"role": "control"}


@plant((*CONTROLLERS, "resources"))
def limits_of_the_controllers(copy: Copy) -> None:
    copy.container("controllers")["resources"] = {"limits": {"cpu": "4", "memory": "8Gi"}}


@plant((*SCHEDULER, "sidecar"))
def a_further_container(copy: Copy) -> None:
    containers = copy.program("scheduler")["spec"]["template"]["spec"]["containers"]
    containers.append({"name": "log-shipper", "image": "fluent-bit:3"})


@plant((*SCHEDULER, "pod-setting"))
def an_account_of_somebody(copy: Copy) -> None:
    copy.program("scheduler")["spec"]["template"]["spec"]["serviceAccountName"] = "batch-robot"


@plant((*CONTROLLERS, "pod-setting"))
def a_folder_of_the_host(copy: Copy) -> None:
    volumes = copy.program("controllers")["spec"]["template"]["spec"]["volumes"]
    volumes.append({"name": "time", "hostPath": {"path": "/etc/localtime"}})


# Further programs


def _program(copy: Copy, name: str, image: str, kind: str = "Deployment") -> Obj:
    pod = {"containers": [{"name": name, "image": f"docker.io/volcanosh/{image}:v1.15.0", "args": []}]}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": copy.release.namespace},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": pod},
        },
    }


@plant(("Deployment", "fast-scheduler", "agent-scheduler"))
def the_agent_scheduler(copy: Copy) -> None:
    copy.add(_program(copy, "fast-scheduler", "vc-agent-scheduler"))


@plant(("DaemonSet", "volcano-agent", "agent"))
def the_node_agent(copy: Copy) -> None:
    copy.add(_program(copy, "volcano-agent", "vc-agent", "DaemonSet"))


@plant(("Deployment", "hypernode-controller", "hypernode-controller"))
def a_hyper_node_controller_of_its_own(copy: Copy) -> None:
    copy.add(_program(copy, "hypernode-controller", "vc-hypernode-controller-manager"))


@plant(("Deployment", "zz-second", "several-schedulers"), ("Deployment", "zz-second", "flag-set"))
def a_second_scheduler(copy: Copy) -> None:
    other = _program(copy, "zz-second", "vc-scheduler")
    pod = other["spec"]["template"]["spec"]
    pod["priorityClassName"] = "system-cluster-critical"
    pod["containers"][0]["args"] = ["--scheduler-name=batch"]
    copy.add(other)


@plant(("Deployment", "volcano-controllers", "program-absent"))
def no_controllers(copy: Copy) -> None:
    copy.remove("Deployment", f"{copy.release.name}-controllers")


# Configurations

CONF: Final = ("ConfigMap", "@-scheduler-configmap")


@plant((*CONF, "plugin-missing"))
def shared_devices(copy: Copy) -> None:
    copy.config(
        "scheduler", f"{SCHEDULER_CONF}  - name: deviceshare\n    arguments: {{deviceshare.VGPUEnable: true}}\n"
    )


@plant((*CONF, "plugin-missing"))
def numa_nodes(copy: Copy) -> None:
    copy.config("scheduler", f"{SCHEDULER_CONF}  - name: numa-aware\n")


@plant((*CONF, "plugin-missing"))
def an_extender(copy: Copy) -> None:
    copy.config("scheduler", f"{SCHEDULER_CONF}  - name: extender\n")


@plant((*CONF, "plugin-missing"))
def an_action_of_older_volcanos(copy: Copy) -> None:
    copy.config("scheduler", SCHEDULER_CONF.replace("backfill", "backfill, elect"))


@plant((*CONF, "conf-refused"))
def a_plugin_of_somebody(copy: Copy) -> None:
    copy.config("scheduler", f"{SCHEDULER_CONF}  - name: magic\n")


@plant((*CONF, "conf-refused"))
def an_unknown_action(copy: Copy) -> None:
    copy.config("scheduler", SCHEDULER_CONF.replace("backfill", "backfill, defragment"))


@plant((*CONF, "conf-refused"))
def a_plugin_twice(copy: Copy) -> None:
    copy.config("scheduler", f"{SCHEDULER_CONF}  - name: gang\n")


@plant((*CONF, "conf-ignored"))
def an_unknown_argument(copy: Copy) -> None:
    copy.config("scheduler", f"{SCHEDULER_CONF}    arguments: {{binpack.colour: 3}}\n")


@plant((*CONF, "conf-ignored"))
def a_misspelt_switch(copy: Copy) -> None:
    copy.config("scheduler", SCHEDULER_CONF.replace("enablePreemptable", "enabledPreemptable", 1))


@plant((*CONF, "conf-replaced"))
def another_policy(copy: Copy) -> None:
    text = SCHEDULER_CONF.replace("proportion", "capacity").replace("backfill", "backfill, preempt, reclaim")
    copy.config("scheduler", text)


@plant(("ConfigMap", "@-controller-configmap", "discovery-source"))
def hyper_nodes_from_a_server(copy: Copy) -> None:
    copy.config(
        "controller",
        "networkTopologyDiscovery:\n- source: ufm\n  enabled: true\n  config: {endpoint: 'https://ufm'}\n",
    )


@plant(("ConfigMap", "@-controller-configmap", "discovery"))
def hyper_nodes_from_labels(copy: Copy) -> None:
    levels = "[{nodeLabel: example.com/rack}, {nodeLabel: kubernetes.io/hostname}]"
    types = f"config: {{networkTopologyTypes: {{roce: {levels}}}}}"
    copy.config("controller", f"networkTopologyDiscovery:\n- source: label\n  enabled: true\n  {types}\n")


@plant(("ConfigMap", "volcano-sharding-configmap", "sharding"))
def nodes_divided(copy: Copy) -> None:
    copy.config("sharding", "schedulerConfigs:\n- name: volcano\n  type: volcano\n")


@plant(("ConfigMap", "@-admission-configmap", "resource-groups"))
def resource_groups(copy: Copy) -> None:
    copy.config("admission", "resourceGroups:\n- resourceGroup: gpu\n  labels: {pool: gpu}\n")


@plant(("ConfigMap", "@-admission-configmap", "admission-conf"))
def resource_groups_that_cannot_be_read(copy: Copy) -> None:
    copy.config("admission", "resourceGroups: {gpu: 1}\n")


# Definitions


def schema_of(copy: Copy, name: str) -> Obj:
    found: Obj = copy.get("CustomResourceDefinition", name)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


@plant(("CustomResourceDefinition", "queues.scheduling.volcano.sh", "definition-fields"))
def a_field_of_a_fork(copy: Copy) -> None:
    fields = schema_of(copy, "queues.scheduling.volcano.sh")["properties"]["spec"]["properties"]
    fields["budget"] = {"type": "object", "properties": {"owner": {"type": "string"}}}


@plant(("CustomResourceDefinition", "jobs.batch.volcano.sh", "definition-older"))
def a_definition_without_a_field(copy: Copy) -> None:
    del schema_of(copy, "jobs.batch.volcano.sh")["properties"]["spec"]["properties"]["minSuccess"]


@plant(("CustomResourceDefinition", "cronjobs.batch.volcano.sh", "definition-missing"))
def no_cron_jobs(copy: Copy) -> None:
    copy.remove("CustomResourceDefinition", "cronjobs.batch.volcano.sh")
    copy.objects[:] = [one for one in copy.objects if one["kind"] != "CronJob"]


@plant(("CustomResourceDefinition", "hyperjobs.training.volcano.sh", "definition-unknown"))
def hyper_jobs(copy: Copy) -> None:
    names = {"kind": "HyperJob", "plural": "hyperjobs", "singular": "hyperjob"}
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1alpha1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    copy.add(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "hyperjobs.training.volcano.sh"},
            "spec": {"group": "training.volcano.sh", "names": names, "scope": "Namespaced", "versions": [version]},
        }
    )


@plant(("CustomResourceDefinition", "podgroups.scheduling.volcano.sh", "definition-status"))
def podgroups_with_a_status_subresource(copy: Copy) -> None:
    definition = copy.get("CustomResourceDefinition", "podgroups.scheduling.volcano.sh")
    definition["spec"]["versions"][0]["subresources"] = {"status": {}}


@plant(("CustomResourceDefinition", "jobs.batch.volcano.sh", "definition-version"))
def jobs_of_a_further_version(copy: Copy) -> None:
    versions = copy.get("CustomResourceDefinition", "jobs.batch.volcano.sh")["spec"]["versions"]
    versions.append({**versions[0], "name": "v1alpha2", "storage": False})


# Webhooks and policies


def webhook_of(copy: Copy, path: str) -> Obj:
    kind = "Mutating" if path.endswith("mutate") else "Validating"
    found: Obj = copy.get(f"{kind}WebhookConfiguration", f"volcano-admission-service{path.replace('/', '-')}")[
        "webhooks"
    ][0]
    return found


VALIDATING: Final = "ValidatingWebhookConfiguration"


@plant((VALIDATING, "volcano-admission-service-jobs-validate", "webhook-changed"))
def a_webhook_that_may_fail(copy: Copy) -> None:
    webhook_of(copy, "/jobs/validate")["failurePolicy"] = "Ignore"


@plant(("MutatingWebhookConfiguration", "volcano-admission-service-jobs-mutate", "webhook-changed"))
def a_namespace_without_webhooks(copy: Copy) -> None:
    selector = webhook_of(copy, "/jobs/mutate")["namespaceSelector"]["matchExpressions"]
    selector.append({"key": "volcano", "operator": "NotIn", "values": ["off"]})


@plant((VALIDATING, "volcano-admission-service-queues-validate", "webhook-changed"))
def queues_deleted_without_a_check(copy: Copy) -> None:
    webhook_of(copy, "/queues/validate")["rules"][0]["operations"].remove("DELETE")


@plant((VALIDATING, "volcano-admission-service-jobs-validate", "webhook-url"))
def a_webhook_by_address(copy: Copy) -> None:
    webhook_of(copy, "/jobs/validate")["clientConfig"] = {"url": "https://10.0.0.1:8443/jobs/validate"}


@plant((VALIDATING, "volcano-admission-service-hyperjobs-validate", "webhook-missing"))
def a_webhook_of_a_fork(copy: Copy) -> None:
    configuration = copy.get(VALIDATING, "volcano-admission-service-podgroups-validate")
    webhook = {**configuration["webhooks"][0], "name": "validatehyperjob.volcano.sh"}
    service = {**webhook["clientConfig"]["service"], "path": "/hyperjobs/validate"}
    other = {**configuration, "webhooks": [{**webhook, "clientConfig": {"service": service}}]}
    copy.add({**other, "metadata": {"name": "volcano-admission-service-hyperjobs-validate"}})


@plant((VALIDATING, "volcano-admission-service-cronjobs-validate", "webhook-absent"))
def a_webhook_that_was_deleted(copy: Copy) -> None:
    copy.remove(VALIDATING, "volcano-admission-service-cronjobs-validate")


@plant(("ValidatingAdmissionPolicy", "job-validation-policy", "policy"))
def an_admission_policy(copy: Copy) -> None:
    copy.add(
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": "job-validation-policy"},
            "spec": {"validations": [{"expression": "true"}]},
        }
    )


@plant(("Namespace", ordinary.NAMESPACE, "namespace-queue"))
def a_namespace_with_a_queue(copy: Copy) -> None:
    copy.get("Namespace", ordinary.NAMESPACE)["metadata"]["annotations"] = {"scheduling.volcano.sh/queue-name": "ml"}


@plant(("CustomResourceDefinition", "queues.scheduling.volcano.sh", "definition-limits"))
def another_default(copy: Copy) -> None:
    fields = schema_of(copy, "queues.scheduling.volcano.sh")["properties"]["spec"]["properties"]
    fields["weight"]["default"] = 10


# Rights, Services, quotas


@plant(("ClusterRole", "@-scheduler", "role-changed"))
def a_right_for_secrets(copy: Copy) -> None:
    copy.get("ClusterRole", f"{copy.release.name}-scheduler")["rules"].append(
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}
    )


@plant(("ClusterRole", "vcjob-editor-role", "role-changed"))
def a_right_of_users(copy: Copy) -> None:
    copy.get("ClusterRole", "vcjob-editor-role")["rules"].append(
        {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["create"]}
    )


@plant(("NetworkPolicy", "volcano-scheduler", "network-policy"))
def a_network_policy_with_our_name(copy: Copy) -> None:
    metadata = {"name": "volcano-scheduler", "namespace": copy.release.namespace}
    spec = {"podSelector": {}}
    copy.add({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata, "spec": spec})


@plant(("ClusterRoleBinding", "ci", "binding"))
def a_binding_of_somebody(copy: Copy) -> None:
    binding = copy.get("ClusterRoleBinding", f"{copy.release.name}-controllers-role")
    subject = {"kind": "ServiceAccount", "name": "ci", "namespace": "ci"}
    copy.add({**binding, "metadata": {"name": "ci"}, "subjects": [subject]})


@plant(("Service", "@-scheduler-service", "service"))
def a_service_for_outside(copy: Copy) -> None:
    copy.get("Service", f"{copy.release.name}-scheduler-service")["spec"]["type"] = "NodePort"


@plant(("ResourceQuota", "compute", "quota"))
def a_quota_for_cpu_limits(copy: Copy) -> None:
    copy.add(
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "compute", "namespace": copy.release.namespace},
            "spec": {"hard": {"limits.cpu": "20", "pods": "30"}},
        }
    )


@plant(("PodDisruptionBudget", "volcano", "budget"))
def a_budget_for_the_scheduler(copy: Copy) -> None:
    copy.add(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "volcano", "namespace": copy.release.namespace},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "volcano-scheduler"}}},
        }
    )
