"""What each value changes in what the chart installs, and which values it refuses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.chart.rendering import CHART, Helm, HelmFailed, Object, Objects
from tests.chart.test_same_as_kustomize import differing
from tests.chart.volcano_chart import VALUES as VOLCANOS
from volcano_py import __version__
from volcano_py.cli.vc_controller_manager import controllers_parser
from volcano_py.cli.vc_scheduler import scheduler_parser
from volcano_py.cli.vc_webhook_manager import webhooks_parser

COMPONENTS = ("scheduler", "controllers", "admission")
PARSERS = {"scheduler": scheduler_parser, "controllers": controllers_parser, "admission": webhooks_parser}


def deployment(objects: Objects, component: str, release: str = "volcano") -> Object:
    return objects["Deployment", f"{release}-{component}"]


def pod(objects: Objects, component: str, release: str = "volcano") -> Object:
    return dict(deployment(objects, component, release)["spec"]["template"]["spec"])


def container(objects: Objects, component: str, release: str = "volcano") -> Object:
    (only,) = pod(objects, component, release)["containers"]
    return dict(only)


def added_flags(base: Objects, changed: Objects, component: str) -> list[str]:
    return [flag for flag in container(changed, component)["args"] if flag not in container(base, component)["args"]]


@pytest.fixture(scope="module")
def base(helm: Helm) -> Objects:
    return helm.template()


FLAGS = {
    "scheduler": {
        "scheduler_schedule_period": ("2s", "--schedule-period=2s"),
        "scheduler_plugins_dir": ("/plugins", "--plugins-dir=/plugins"),
        "ignored_provisioners": ("a.csi,b.csi", "--ignored-provisioners=a.csi,b.csi"),
        "scheduler_sharding_mode": ("soft", "--scheduler-sharding-mode=soft"),
        "scheduler_sharding_name": ("mine", "--scheduler-sharding-name=mine"),
        "scheduler_feature_gates": ("A=true, SchedulingGatesQueueAdmission = true", None),
        "scheduler_metrics_enable": (False, "--enable-metrics=false"),
        "scheduler_log_level": ("debug", "--log-level=debug"),
        "scheduler_name": ("mine", "--scheduler-name=mine"),
        "leader_elect_enable": (False, "--leader-elect=false"),
        "scheduler_extra_args": (["--seed=7"], "--seed=7"),
    },
    "controllers": {
        "controller_enabled_controllers": ("*,-gc-controller", "--controllers=*,-gc-controller"),
        "hypernode_controller_mode": ("disabled", "--controllers=*,-hyperNode-controller"),
        "controller_kube_api_qps": (50, "--kube-api-qps=50"),
        "controller_kube_api_burst": (100, "--kube-api-burst=100"),
        "controller_worker_threads": (3, "--worker-threads=3"),
        "controller_worker_threads_for_gc": (5, "--worker-threads-for-gc=5"),
        "controller_worker_threads_for_podgroup": (7, "--worker-threads-for-podgroup=7"),
        "controller_feature_gates": ("CronVolcanoJobSupport=true", None),
        "controller_metrics_enable": (False, "--enable-metrics=false"),
        "controller_log_level": (5, "--log-level=debug"),
        "scheduler_name": ("mine", "--scheduler-name=mine"),
        "leader_elect_enable": (False, "--leader-elect=false"),
        "controller_extra_args": (["--max-requeue-num=3"], "--max-requeue-num=3"),
    },
    "admission": {
        "enabled_admissions": ("/jobs/mutate, /jobs/validate", "--enabled-admission=/jobs/mutate,/jobs/validate"),
        "webhook_url": ("https://10.0.0.1:8443", "--webhook-url=https://10.0.0.1:8443"),
        "admission_feature_gates": ("SchedulingGatesQueueAdmission=true", None),
        "admission_metrics_enable": (False, "--enable-metrics=false"),
        "admission_log_level": (4, "--log-level=info"),
        "scheduler_name": ("mine", "--scheduler-name=mine"),
        "leader_elect_enable": (False, "--leader-elect=false"),
        "admission_extra_args": (["--max-queue-depth=9"], "--max-queue-depth=9"),
    },
}


@pytest.mark.parametrize("component", COMPONENTS)
def test_each_value_becomes_a_flag_that_the_program_takes(helm: Helm, base: Objects, component: str) -> None:
    """One rendering shows all of a component; the two that set the same flag are told apart below."""
    wanted = {name: value for name, value in FLAGS[component].items() if name != "hypernode_controller_mode"}
    changed = helm.template({"custom": {name: value for name, (value, _) in wanted.items()}})

    expected = [flag or f"--feature-gates={value.replace(' ', '')}" for value, flag in wanted.values()]
    assert sorted(added_flags(base, changed, component)) == sorted(expected)
    PARSERS[component]().parse_args(container(changed, component)["args"])


def test_large_numbers_are_written_out_and_zero_is_not_set_as_in_volcanos_chart(helm: Helm, base: Objects) -> None:
    large = helm.template({"custom": {"controller_kube_api_burst": 1000000, "controller_kube_api_qps": 0.5}})
    zero = helm.template({"custom": {"controller_kube_api_qps": 0, "controller_worker_threads": 0}})

    assert added_flags(base, large, "controllers") == ["--kube-api-burst=1000000", "--kube-api-qps=0.5"]
    assert added_flags(base, zero, "controllers") == []


def test_the_hypernode_controller_can_be_switched_off(helm: Helm, base: Objects) -> None:
    off = helm.template({"custom": {"hypernode_controller_mode": "disabled"}})
    also = helm.template(
        {"custom": {"hypernode_controller_mode": "disabled", "controller_enabled_controllers": "*,-gc-controller"}}
    )

    assert added_flags(base, off, "controllers") == ["--controllers=*,-hyperNode-controller"]
    assert added_flags(base, also, "controllers") == ["--controllers=*,-gc-controller,-hyperNode-controller"]


def test_values_about_pods(helm: Helm, base: Objects) -> None:
    """The value of a component goes before the default; security contexts are merged, resources replaced."""
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}
    toleration = {"key": "control", "operator": "Exists"}
    changed = helm.template(
        {
            "image": {"name": "registry.example.org:5000/batch/volcano-py", "tag": "1.2.3"},
            "basic": {"image_pull_policy": "Always", "image_pull_secret": "pull", "admission_port": 9443},
            "custom": {
                "scheduler_replicas": 3,
                "default_affinity": affinity,
                "default_tolerations": [toleration],
                "scheduler_tolerations": [{"key": "own", "operator": "Exists"}],
                "default_ns": {"pool": "system"},
                "default_sc": {"fsGroup": 2000},
                "scheduler_main_csc": {"runAsUser": 3000},
                "scheduler_resources": {"limits": {"memory": "8Gi"}},
                "scheduler_labels": {"of": "deployment"},
                "scheduler_podLabels": {"of": "pod"},
                "common_labels": {"team": "batch", "app": "never"},
            },
        }
    )

    for component in COMPONENTS:
        assert container(changed, component)["image"] == "registry.example.org:5000/batch/volcano-py:1.2.3"
        assert container(changed, component)["imagePullPolicy"] == "Always"
        assert pod(changed, component)["imagePullSecrets"] == [{"name": "pull"}]
        assert pod(changed, component)["affinity"] == {**pod(base, component)["affinity"], **affinity}
        assert pod(changed, component)["nodeSelector"] == {"kubernetes.io/os": "linux", "pool": "system"}
        assert pod(changed, component)["securityContext"] == {
            **pod(base, component)["securityContext"],
            "fsGroup": 2000,
        }
        assert deployment(changed, component)["spec"]["selector"] == deployment(base, component)["spec"]["selector"]
    assert [one["key"] for one in pod(changed, "scheduler")["tolerations"]] == ["own"]
    assert pod(changed, "admission")["tolerations"] == [toleration]
    scheduler = container(changed, "scheduler")
    assert scheduler["securityContext"] == {**container(base, "scheduler")["securityContext"], "runAsUser": 3000}
    assert scheduler["resources"] == {"limits": {"memory": "8Gi"}}
    assert deployment(changed, "scheduler")["spec"]["replicas"] == 3
    assert deployment(changed, "scheduler")["metadata"]["labels"] == {
        "app": "volcano-scheduler",
        "of": "deployment",
        "team": "batch",
    }
    labels = deployment(changed, "scheduler")["spec"]["template"]["metadata"]["labels"]
    assert labels == {"app": "volcano-scheduler", "of": "pod", "team": "batch"}
    assert "--port=9443" in container(changed, "admission")["args"]
    assert {"name": "webhooks", "containerPort": 9443} in container(changed, "admission")["ports"]
    bare = {kind for (kind, _), one in changed.items() if "team" not in one["metadata"].get("labels", {})}
    assert bare == {"CustomResourceDefinition"}


def test_a_digest_names_an_image(helm: Helm) -> None:
    found = helm.template({"image": {"name": "r.example.org/v", "tag": "sha256:abc"}})

    assert container(found, "scheduler")["image"] == "r.example.org/v@sha256:abc"


def test_configurations_can_be_replaced(helm: Helm) -> None:
    text = 'actions: "allocate"\ntiers: []\n'
    found = helm.template(
        {"custom": {f"{one}_config_override": text for one in ("scheduler", "controller", "admission")}}
    )

    assert found["ConfigMap", "volcano-scheduler-configmap"]["data"] == {"volcano-scheduler.conf": text}
    assert found["ConfigMap", "volcano-controller-configmap"]["data"] == {"volcano-controller.conf": text}
    assert found["ConfigMap", "volcano-admission-configmap"]["data"] == {"volcano-admission.conf": text}


def test_services_get_their_families(helm: Helm) -> None:
    found = helm.template({"service": {"ipFamilyPolicy": "RequireDualStack", "ipFamilies": ["IPv6", "IPv4"]}})

    services = [one["spec"] for (kind, _), one in found.items() if kind == "Service"]
    assert len(services) == 3
    for spec in services:
        assert (spec["ipFamilyPolicy"], spec["ipFamilies"]) == ("RequireDualStack", ["IPv6", "IPv4"])


def test_only_the_webhooks_that_are_enabled_are_installed(helm: Helm) -> None:
    found = helm.template({"custom": {"enabled_admissions": "/jobs/validate,/pods/mutate"}})

    names = {name for kind, name in found if kind.endswith("WebhookConfiguration")}
    assert names == {"volcano-admission-service-jobs-validate", "volcano-admission-service-pods-mutate"}


def test_namespaces_can_be_left_out_of_webhooks_and_policies(helm: Helm, base: Objects) -> None:
    expression = {"key": "workload", "operator": "In", "values": ["batch"]}
    values = {"vap_enable": True, "webhooks_namespace_selector_expressions": [expression]}
    found = helm.template({"custom": values})

    selectors = [
        one["namespaceSelector"]["matchExpressions"]
        for (kind, _), wanted in found.items()
        for one in [*wanted.get("webhooks", []), wanted.get("spec", {}).get("matchConstraints", {})]
        if ("Webhook" in kind or "AdmissionPolicy" in kind) and "namespaceSelector" in one
    ]
    ignored = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["volcano-system", "kube-system"]}
    assert len(selectors) > 12
    assert all(one == [ignored, expression] for one in selectors)


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_component_can_be_left_out(helm: Helm, base: Objects, component: str) -> None:
    found = helm.template({"custom": {f"{component.removesuffix('s')}_enable": False}})

    gone = {name for kind, name in base.keys() - found.keys()}
    assert found.keys() < base.keys()
    assert gone
    assert all(name.startswith(f"volcano-{component.removesuffix('s')}") for name in gone)
    assert not any(name.startswith(f"volcano-{component}") for _, name in found)


def test_definitions_and_what_users_need_can_be_left_out(helm: Helm, base: Objects) -> None:
    found = helm.template({"crds": {"enable": False}, "users": {"enable": False}})

    kinds = {kind for kind, _ in base.keys() - found.keys()}
    policy = {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
    assert kinds == {"CustomResourceDefinition", "PriorityClass", "ClusterRole", *policy}
    assert differing({key: one for key, one in base.items() if key in found}, found) == []


# Other releases


def test_a_release_with_another_name_fits_together(helm: Helm) -> None:
    found = helm.template({"custom": {"vap_enable": True}}, release="batch", namespace="research")

    namespaces = {one["metadata"]["namespace"] for one in found.values() if "namespace" in one["metadata"]}
    assert namespaces == {"research"}
    ours = {key: one for key, one in found.items() if key[0] != "CustomResourceDefinition"}
    assert "volcano-system" not in str(ours)
    for component in COMPONENTS:
        _refers_to_what_exists(found, component)
        flags = container(found, component, "batch")["args"]
        assert "--leader-elect-resource-namespace=research" in flags
        assert any(flag.startswith("--leader-elect-resource-name=batch-") for flag in flags)
        PARSERS[component]().parse_args(flags)
        variables = {one["name"]: one["value"] for one in container(found, component, "batch")["env"]}
        assert variables == {"HELM_RELEASE_NAME": "batch", "KUBE_POD_NAMESPACE": "research"}
    (configured,) = [
        rule["resourceNames"]
        for rule in found["Role", "batch-controllers"]["rules"]
        if "configmaps" in rule["resources"]
    ]
    assert configured == ["batch-controller-configmap"]
    assert ("ConfigMap", "batch-controller-configmap") in found
    may_patch = [rule for rule in found["ClusterRole", "batch-admission"]["rules"] if "patch" in rule["verbs"]]
    assert {name for kind, name in found if "Webhook" in kind} <= {
        one for rule in may_patch for one in rule["resourceNames"]
    }
    webhooks = [one for (kind, _), each in found.items() if "Webhook" in kind for one in each["webhooks"]]
    services = {tuple(one["clientConfig"]["service"][field] for field in ("name", "namespace")) for one in webhooks}
    assert services == {("batch-admission-service", "research")}
    assert "--webhook-service-name=batch-admission-service" in container(found, "admission", "batch")["args"]


def test_a_namespace_may_look_like_a_number(helm: Helm) -> None:
    found = helm.template({"custom": {"vap_enable": True}}, namespace="123")

    assert {one["metadata"]["namespace"] for one in found.values() if "namespace" in one["metadata"]} == {"123"}
    for (kind, _), one in found.items():
        if kind.endswith("RoleBinding"):
            assert [subject["namespace"] for subject in one["subjects"]] == ["123"]
        for webhook in one.get("webhooks", []):
            assert webhook["clientConfig"]["service"]["namespace"] == "123"


def test_the_critical_pods_of_kube_system_get_no_quota(helm: Helm, base: Objects) -> None:
    found = helm.template(namespace="kube-system")

    assert base.keys() - found.keys() == {("ResourceQuota", "volcano-critical-pods")}


@pytest.mark.parametrize("release", ["batch.v2", "2nd", "a" * 44])
def test_a_name_that_no_service_can_have_is_refused(helm: Helm, release: str) -> None:
    with pytest.raises(HelmFailed, match="choose a name of at most 43 lower-case letters, digits and dashes"):
        helm.template(release=release)


def test_the_longest_name_of_a_release_leaves_room_for_its_objects(helm: Helm) -> None:
    release = "a" * 43
    found = helm.template(release=release)

    names = [name for kind, name in found if kind == "Service"]
    names += [container(found, component, release)["name"] for component in COMPONENTS]
    assert max(map(len, names)) == 63


def _refers_to_what_exists(found: Objects, component: str) -> None:
    """Check that every name that a Deployment and its bindings mention is an object of the release."""
    spec = pod(found, component, "batch")
    assert ("ServiceAccount", spec["serviceAccountName"]) in found
    for volume in spec.get("volumes", []):
        assert ("ConfigMap", volume["configMap"]["name"]) in found
    for kind in ("ClusterRoleBinding", "RoleBinding"):
        binding = found[kind, f"batch-{component}"]
        assert (binding["roleRef"]["kind"], binding["roleRef"]["name"]) in found
        for subject in binding["subjects"]:
            assert subject == {"kind": "ServiceAccount", "name": spec["serviceAccountName"], "namespace": "research"}
    labels = deployment(found, component, "batch")["spec"]["template"]["metadata"]["labels"]
    assert found["Service", f"batch-{component}-service"]["spec"]["selector"].items() <= labels.items()


# Volcano's values


def test_the_values_of_volcano_are_accepted_and_its_images_never_run(helm: Helm) -> None:
    found = helm.template(VOLCANOS)

    for component in COMPONENTS:
        assert container(found, component)["image"] == f"volcano-py:{__version__}"
        PARSERS[component]().parse_args(container(found, component)["args"])
    assert container(found, "scheduler")["securityContext"]["capabilities"] == {
        "add": ["DAC_OVERRIDE"],
        "drop": ["ALL"],
    }


def test_notes_name_the_values_that_have_no_effect(helm: Helm) -> None:
    custom = {"scheduler_kube_api_qps": 100, "agent_ns": {"a": "b"}, "scheduler_replicas": 2}
    said = _notes(helm, {"basic": {"scheduler_image_name": "mirror/vc-scheduler"}, "custom": custom})
    silent = _notes(helm, {"custom": {"scheduler_replicas": 2}})

    assert "  basic.scheduler_image_name: one image has all programs, see image.name\n" in said
    assert "  custom.agent_ns: there is no vc-agent and no vc-agent-scheduler\n" in said
    assert max(map(len, _notes(helm, VOLCANOS).splitlines())) < 80
    assert "custom.scheduler_kube_api_qps: requests adapt" in said
    assert "scheduler_replicas" not in said
    assert "no effect" not in silent


def _notes(helm: Helm, values: dict[str, Any]) -> str:
    return helm.run("install", "volcano", CHART, "--dry-run=client", "-n=volcano-system", values=values).partition(
        "NOTES:"
    )[2]


# Wrong values


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"custom": {"scheduler_replica": 2}}, "at '/custom': additional properties 'scheduler_replica' not allowed"),
        ({"scheduler": {}}, "additional properties 'scheduler' not allowed"),
        ({"custom": {"scheduler_replicas": "two"}}, "at '/custom/scheduler_replicas': got string, want"),
        ({"custom": {"scheduler_replicas": -1}}, "at '/custom/scheduler_replicas': minimum: got -1, want 0"),
        ({"custom": {"vap_enable": "yes"}}, "at '/custom/vap_enable': got string, want"),
        ({"custom": {"scheduler_schedule_period": "soon"}}, "'soon' does not match pattern"),
        ({"custom": {"scheduler_log_level": "loud"}}, "at '/custom/scheduler_log_level'"),
        ({"custom": {"scheduler_sharding_mode": "strict"}}, "value must be one of 'none', 'hard', 'soft'"),
        ({"custom": {"webhook_url": "http://10.0.0.1"}}, "at '/custom/webhook_url': 'http://10.0.0.1' does not match"),
        ({"custom": {"default_tolerations": {"key": "a"}}}, "at '/custom/default_tolerations': got object, want"),
        ({"image": {"tag": 1.0}}, "at '/image/tag': got number, want"),
        ({"image": {"tag": "@sha256:abc"}}, "at '/image/tag': '@sha256:abc' does not match pattern"),
        ({"basic": {"admission_port": 443}}, "at '/basic/admission_port': minimum: got 443, want 1,024"),
        ({"custom": {"metrics_enable": True}}, "custom.metrics_enable is true, but Prometheus and Grafana"),
        ({"custom": {"agent_scheduler_enable": True}}, "custom.agent_scheduler_enable is true, but there is no"),
        ({"custom": {"enabled_admissions": "/jobs/mutat"}}, 'names "/jobs/mutat", and no webhook has this path'),
        ({"custom": {"vap_queues_enable": True}}, "custom.vap_queues_enable needs custom.vap_enable"),
        (
            {"custom": {"leader_elect_enable": False, "controller_replicas": 2}},
            "custom.controller_replicas is 2 and custom.leader_elect_enable is false",
        ),
        (
            {"custom": {"leader_elect_enable": False, "high_availability_enable": True}},
            "custom.leader_elect_enable is false, so both replicas would work at once",
        ),
        (
            {"custom": {"high_availability_enable": True, "admission_replicas": 1}},
            "custom.high_availability_enable is true and custom.admission_replicas is 1, so nobody would stand by",
        ),
        ({"basic": {"admission_port": 8082}}, "basic.admission_port is 8082, where the webhook manager serves metrics"),
        ({"basic": {"admission_port": 11251}}, "11251, where the webhook manager serves its health"),
    ],
    ids=str,
)
def test_wrong_values_are_refused_by_name(helm: Helm, values: dict[str, Any], message: str) -> None:
    with pytest.raises(HelmFailed) as refused:
        helm.template(values)

    assert message in str(refused.value)


def test_policies_need_a_cluster_that_has_them(helm: Helm) -> None:
    with pytest.raises(
        HelmFailed, match=r"custom\.map_enable is true, and its policies need Kubernetes 1\.36 or later"
    ):
        helm.run("template", CHART, "--kube-version=1.34.0", "--set=custom.map_enable=true")
    helm.run("template", CHART, "--kube-version=1.34.0", "--set=custom.vap_enable=true")


@pytest.mark.parametrize("flags", [[], ["--strict"]], ids=["lint", "lint --strict"])
def test_helm_lint_finds_nothing(helm: Helm, flags: Sequence[str]) -> None:
    said = helm.run("lint", CHART, *flags)

    assert "1 chart(s) linted, 0 chart(s) failed" in said
    assert "[WARNING]" not in said
