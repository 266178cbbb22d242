"""The manifests of the webhooks: the configurations, and a Deployment that fits the program."""

from pathlib import Path
from typing import Any

import pytest

from tests.packaging.pages import REPOSITORY
from tests.packaging.test_deployment import documents, objects
from volcano_py.admission.options import CONFIG_FILE_KEY, SECRET, WebhookOptions
from volcano_py.admission.paths import WEBHOOKS, Webhook
from volcano_py.admission.queue_guard import QUEUE_PATH, STATE_CHANGES
from volcano_py.cli.vc_webhook_manager import _options, webhooks_parser
from volcano_py.cli.volcano_flags import ADMISSION_FLAGS, ignored_flags

LOSES_ITS_QUEUE = (
    'request.operation == "CREATE" || '
    '((has(object.spec) && has(object.spec.queue) ? object.spec.queue : "") in ["", "default"] && '
    '!((has(oldObject.spec) && has(oldObject.spec.queue) ? oldObject.spec.queue : "") in ["", "default"]))'
)
FOLDER = REPOSITORY / "manifests" / "webhooks"
NAMESPACE = "volcano-system"


def applied(folder: Path = FOLDER) -> dict[tuple[str, str], dict[str, Any]]:
    return {(one["kind"], one["metadata"]["name"]): one for one in objects(folder)}


def configuration(webhook: Webhook) -> dict[str, Any]:
    found = {**applied(), **applied(FOLDER / "pods")}
    kind = "Mutating" if webhook.mutates else "Validating"
    return found[f"{kind}WebhookConfiguration", webhook.configuration]


def container() -> dict[str, Any]:
    (only,) = applied()["Deployment", "volcano-admission"]["spec"]["template"]["spec"]["containers"]
    return dict(only)


def options() -> WebhookOptions:
    return _options(webhooks_parser().parse_args(container()["args"]), queue_gate=False)


def test_each_path_has_its_configuration_and_no_other_exists() -> None:
    kinds = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
    files = [FOLDER / "configurations.yaml", FOLDER / "pods" / "configurations.yaml"]
    written = [(one["kind"], one["metadata"]["name"]) for file in files for one in documents(file)]

    assert {name for kind, name in written if kind in kinds} == {one.configuration for one in WEBHOOKS.values()}
    assert len(written) == len(WEBHOOKS)


@pytest.mark.parametrize("webhook", WEBHOOKS.values(), ids=WEBHOOKS)
def test_a_configuration_is_volcanos(webhook: Webhook) -> None:
    found, *more = configuration(webhook)["webhooks"]
    (rule,) = found["rules"]
    service = {"name": "volcano-admission-service", "namespace": NAMESPACE, "path": webhook.path, "port": 443}
    others = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": [NAMESPACE, "kube-system"]}
    cluster_wide = webhook.plural == "hypernodes"

    assert found["name"] == webhook.name
    assert found["clientConfig"] == {"service": service}
    assert (rule["apiGroups"], rule["resources"]) == ([webhook.group], [webhook.plural])
    assert tuple(rule["operations"]) == webhook.operations
    assert (found["failurePolicy"], found["matchPolicy"], found["timeoutSeconds"]) == ("Fail", "Equivalent", 10)
    assert found["sideEffects"] == ("None" if cluster_wide else "NoneOnDryRun")
    assert found.get("namespaceSelector") == (None if cluster_wide else {"matchExpressions": [others]})
    assert found.get("reinvocationPolicy") == ("Never" if webhook.mutates else None)
    assert [one["name"] for one in more] == (["validatequeuestatus.volcano.sh"] if webhook.path == QUEUE_PATH else [])


def test_podgroups_that_keep_their_queue_are_not_reviewed() -> None:
    """The scheduler writes the statuses of PodGroups with the whole object."""
    (hook,) = configuration(WEBHOOKS["/podgroups/mutate"])["webhooks"]

    assert [condition["expression"] for condition in hook["matchConditions"]] == [LOSES_ITS_QUEUE]


def test_states_of_queues_are_reviewed_where_queues_are_and_only_if_they_change() -> None:
    """The guard of queues needs it, and a controller that writes numbers does not pay for it."""
    queues, states = configuration(WEBHOOKS[QUEUE_PATH])["webhooks"]
    (rule,) = states["rules"]

    assert (rule["resources"], rule["operations"]) == (["queues/status"], ["UPDATE"])
    assert [condition["expression"] for condition in states["matchConditions"]] == [STATE_CHANGES]
    for field in ("clientConfig", "failurePolicy", "matchPolicy", "timeoutSeconds", "sideEffects"):
        assert states[field] == queues[field]


def test_the_program_accepts_its_flags_without_a_warning() -> None:
    assert ignored_flags(webhooks_parser().parse_args(container()["args"]), {}, ADMISSION_FLAGS) == []


def test_every_path_is_served() -> None:
    assert set(options().paths) == set(WEBHOOKS)


def test_ports_probes_and_times_fit() -> None:
    ports = {port["name"]: port["containerPort"] for port in container()["ports"]}
    service = {one["name"]: one["targetPort"] for one in applied()["Service", options().service]["spec"]["ports"]}
    pod = applied()["Deployment", "volcano-admission"]["spec"]["template"]["spec"]
    metrics, health = options().metrics_address, options().health_address
    assert metrics is not None
    assert health is not None

    assert ports == {"webhooks": options().server.port, "metrics": metrics.port, "health": health.port}
    assert service == {"webhooks": "webhooks", "metrics": "metrics"}
    assert container()["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "health"}
    assert pod["terminationGracePeriodSeconds"] > options().graceful_s


def test_its_configuration_is_a_folder_that_the_kubelet_can_update() -> None:
    (mount,) = container()["volumeMounts"]
    assert options().conf is not None

    assert str(options().conf) == f"{mount['mountPath']}/{CONFIG_FILE_KEY}"
    assert "subPath" not in mount
    assert CONFIG_FILE_KEY in applied()["ConfigMap", "volcano-admission-configmap"]["data"]


def test_its_account_may_use_its_secret_alone() -> None:
    rules = applied()["Role", "volcano-admission"]["rules"]
    secrets = [rule for rule in rules if rule["resources"] == ["secrets"]]

    assert [(rule.get("resourceNames"), rule["verbs"]) for rule in secrets] == [
        ([SECRET], ["list", "watch", "patch"]),
        (None, ["create"]),
    ]


def test_its_account_may_change_its_webhook_configurations_alone() -> None:
    rules = [rule for rule in applied()["ClusterRole", "volcano-admission"]["rules"] if "patch" in rule["verbs"]]

    assert {tuple(rule["resources"]): set(rule["resourceNames"]) for rule in rules} == {
        (f"{kind}webhookconfigurations",): {one.configuration for one in WEBHOOKS.values() if one.mutates is mutates}
        for kind, mutates in (("mutating", True), ("validating", False))
    }


def test_it_is_applied_with_the_rest_but_for_the_webhooks_of_pods() -> None:
    rest = {(one["kind"], one["metadata"]["name"]) for one in objects()}

    assert set(applied()) <= rest
    assert rest & set(applied(FOLDER / "pods")) == set()
