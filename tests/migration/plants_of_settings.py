"""Further differences: what somebody has set on pods, Services, webhooks and definitions of an installation."""

from __future__ import annotations

from copy import deepcopy

from tests.migration.copies import Copy
from tests.migration.ordinary import job, job_spec, task
from tests.migration.planting import ADMISSION, CONTROLLERS, SCHEDULER, plant
from tests.migration.plants_of_installation import schema_of, webhook_of

# Pods of the programs


@plant((*CONTROLLERS, "variable-set"))
def a_variable_of_somebody(copy: Copy) -> None:
    copy.container("controllers")["env"].append({"name": "GOMAXPROCS", "value": "2"})


@plant((*ADMISSION, "variable-set"))
def variables_from_a_config_map(copy: Copy) -> None:
    copy.container("admission")["envFrom"] = [{"configMapRef": {"name": "proxy"}}]


@plant((*CONTROLLERS, "pod-setting"))
def a_secret_in_the_pods(copy: Copy) -> None:
    copy.program("controllers")["spec"]["template"]["spec"]["volumes"] = [
        {"name": "ufm", "secret": {"secretName": "ufm-credentials"}}
    ]


@plant((*CONTROLLERS, "pod-setting"))
def another_user(copy: Copy) -> None:
    copy.container("controllers")["securityContext"]["runAsUser"] = 0


@plant((*SCHEDULER, "pod-setting"))
def a_label_of_the_pods(copy: Copy) -> None:
    copy.program("scheduler")["spec"]["template"]["metadata"]["labels"]["team"] = "platform"


@plant((*ADMISSION, "pod-setting"))
def an_annotation_of_the_pods(copy: Copy) -> None:
    metadata = copy.program("admission")["spec"]["template"]["metadata"]
    metadata["annotations"] = {"rollme/helm-revision": "3", "sidecar.istio.io/inject": "false"}


@plant((*CONTROLLERS, "stopped"))
def controllers_that_are_stopped(copy: Copy) -> None:
    copy.program("controllers")["spec"]["replicas"] = 0


@plant((*ADMISSION, "paused"))
def webhooks_that_are_paused(copy: Copy) -> None:
    copy.program("admission")["spec"]["paused"] = True


@plant((*ADMISSION, "image"))
def an_image_of_a_fork(copy: Copy) -> None:
    copy.container("admission")["image"] = "registry.example.com/platform/checks:7"


@plant((*SCHEDULER, "flag-set"))
def no_metrics(copy: Copy) -> None:
    copy.argument("scheduler", "--enable-metrics=false")


@plant((*CONTROLLERS, "flag-set"))
def a_lease_in_another_namespace(copy: Copy) -> None:
    copy.argument("controllers", "--leader-elect=true", "--leader-elect-resource-namespace=kube-system")


@plant((*SCHEDULER, "conf-elsewhere"))
def a_configuration_that_cannot_be_found(copy: Copy) -> None:
    copy.argument("scheduler", "--scheduler-conf=/etc/batch/batch.conf")


@plant(("Deployment", "second-controllers", "several-programs"))
def two_controller_managers(copy: Copy) -> None:
    other = deepcopy(copy.program("controllers"))
    other["metadata"].update(name="second-controllers", namespace="volcano-systems")
    copy.add(other)


# Definitions, webhooks, Services and roles, further


@plant(("CustomResourceDefinition", "jobs.batch.volcano.sh", "definition-limits"))
def a_shorter_name_of_schedulers(copy: Copy) -> None:
    schema_of(copy, "jobs.batch.volcano.sh")["properties"]["spec"]["properties"]["schedulerName"]["maxLength"] = 20


@plant(("CustomResourceDefinition", "podgroups.scheduling.volcano.sh", "definition-limits"))
def a_rule_of_a_definition(copy: Copy) -> None:
    rules = [{"rule": "self.minMember < 100", "message": "too many"}]
    schema_of(copy, "podgroups.scheduling.volcano.sh")["properties"]["spec"]["x-kubernetes-validations"] = rules


@plant(("CustomResourceDefinition", "cronjobs.batch.volcano.sh", "definition-fields"))
def any_field_in_cron_jobs(copy: Copy) -> None:
    schema_of(copy, "cronjobs.batch.volcano.sh")["properties"]["spec"]["x-kubernetes-preserve-unknown-fields"] = True


@plant(("CustomResourceDefinition", "jobtemplates.flow.volcano.sh", "definition-scale"))
def a_scale_of_templates(copy: Copy) -> None:
    definition = copy.get("CustomResourceDefinition", "jobtemplates.flow.volcano.sh")
    scale = {"specReplicasPath": ".spec.minAvailable", "statusReplicasPath": ".status.replicas"}
    definition["spec"]["versions"][0].setdefault("subresources", {})["scale"] = scale


@plant(("CustomResourceDefinition", "queues.scheduling.volcano.sh", "definition-names"))
def a_short_name_of_queues(copy: Copy) -> None:
    names = copy.get("CustomResourceDefinition", "queues.scheduling.volcano.sh")["spec"]["names"]
    names["shortNames"] = [*names["shortNames"], "vq"]


@plant(("MutatingWebhookConfiguration", "volcano-admission-service-jobs-mutate", "webhook-changed"))
def a_webhook_that_is_asked_again(copy: Copy) -> None:
    webhook_of(copy, "/jobs/mutate")["reinvocationPolicy"] = "IfNeeded"


@plant(("ValidatingWebhookConfiguration", "volcano-admission-service-podgroups-validate", "webhook-changed"))
def a_webhook_for_every_namespace(copy: Copy) -> None:
    webhook_of(copy, "/podgroups/validate")["namespaceSelector"] = {}


@plant(("MutatingWebhookConfiguration", "volcano-admission-service-queues-mutate", "webhook-changed"))
def a_webhook_through_a_proxy(copy: Copy) -> None:
    webhook_of(copy, "/queues/mutate")["clientConfig"]["service"]["name"] = "proxy"


@plant(("ValidatingWebhookConfiguration", "volcano-admission-service-hypernodes-validate", "webhook-changed"))
def a_webhook_for_another_version(copy: Copy) -> None:
    webhook_of(copy, "/hypernodes/validate")["rules"][0]["apiVersions"] = ["v1alpha2"]


@plant(("Service", "@-admission-service", "service"))
def a_service_for_another_port(copy: Copy) -> None:
    copy.get("Service", f"{copy.release.name}-admission-service")["spec"]["ports"][0]["targetPort"] = 9443


@plant(("Service", "@-controllers-service", "service"))
def a_service_for_other_pods(copy: Copy) -> None:
    copy.get("Service", f"{copy.release.name}-controllers-service")["spec"]["selector"] = {"app": "exporter"}


@plant(("ClusterRole", "@-scheduler", "role-changed"))
def a_verb_for_nodes(copy: Copy) -> None:
    role = copy.get("ClusterRole", f"{copy.release.name}-scheduler")
    role["rules"].append({"apiGroups": [""], "resources": ["nodes"], "verbs": ["delete"]})


# Jobs, further


@plant(("Job", "asks", "job-plugin-argument"))
def an_unknown_argument_of_a_job_plugin(copy: Copy) -> None:
    copy.add(job("asks", spec=job_spec(plugins={"ssh": ["--no-such-argument=1"]})))


@plant(("Job", "part-of-npu", "shared-devices"))
def part_of_an_npu(copy: Copy) -> None:
    one = task()
    limits = {"huawei.com/Ascend310P": "1", "huawei.com/Ascend310P-memory": "1024"}
    one["template"]["spec"]["containers"][0]["resources"] = {"limits": limits}
    copy.add(job("part-of-npu", spec=job_spec(one)))
