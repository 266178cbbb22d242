"""The Deployments: probes, ports, accounts and flags fit the programs and the other manifests."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.packaging.dockerfile import read_dockerfile
from tests.packaging.pages import REPOSITORY
from volcano_py import __version__
from volcano_py.admission.options import WebhookOptions
from volcano_py.cli import vc_controller_manager
from volcano_py.cli.vc_scheduler import scheduler_parser
from volcano_py.cli.volcano_flags import ignored_flags
from volcano_py.controllers.options import ManagerOptions
from volcano_py.daemon.options import DaemonOptions

MANIFESTS = REPOSITORY / "manifests"
OPTIONS: dict[str, DaemonOptions | ManagerOptions | WebhookOptions] = {
    "volcano-scheduler": DaemonOptions(),
    "volcano-controllers": ManagerOptions(),
    "volcano-admission": WebhookOptions(service="volcano-admission-service"),
}
KILLED_AFTER_S = 30  # what Kubernetes waits unless the manifest says otherwise

each = pytest.mark.parametrize("name", OPTIONS)


def objects(folder: Path = MANIFESTS) -> Iterator[dict[str, Any]]:
    """Yield what `kubectl apply -k` applies, following kustomization files."""
    for name in kustomization(folder)["resources"]:
        if (folder / name).is_dir():
            yield from objects(folder / name)
        else:
            yield from documents(folder / name)


def kustomization(folder: Path) -> dict[str, Any]:
    (file,) = [one for name in ("kustomization.yaml", "Kustomization") if (one := folder / name).exists()]
    return dict(yaml.safe_load(file.read_text()))


@cache
def documents(file: Path) -> tuple[dict[str, Any], ...]:
    return tuple(yaml.load_all(file.read_text(), yaml.CSafeLoader))


def the(kind: str, name: str) -> dict[str, Any]:
    (found,) = [one for one in objects() if (one["kind"], one["metadata"]["name"]) == (kind, name)]
    return found


def pod(name: str) -> dict[str, Any]:
    return dict(the("Deployment", name)["spec"]["template"]["spec"])


def container(name: str) -> dict[str, Any]:
    (only,) = pod(name)["containers"]
    return dict(only)


def port(name: str, port_name: str) -> int:
    return int({port["name"]: port["containerPort"] for port in container(name)["ports"]}[port_name])


def test_everything_in_the_folder_is_applied():
    listed = {(one["kind"], one["metadata"]["name"]) for one in objects()}
    parts = ("crds", "users", "programs", "rbac", "deployment", "webhooks")
    files = [file for part in parts for file in (MANIFESTS / part).glob("*.yaml") if file.name != "kustomization.yaml"]
    present = {(one["kind"], one["metadata"]["name"]) for file in files for one in documents(file)}

    assert present <= listed


def test_everything_is_in_the_one_namespace_or_in_none():
    assert {one["metadata"].get("namespace", "volcano-system") for one in objects()} == {"volcano-system"}


def test_the_flags_of_the_scheduler_are_accepted_without_a_warning():
    flags = scheduler_parser().parse_args(container("volcano-scheduler")["args"])

    assert ignored_flags(flags, {}) == []


def test_the_flags_of_the_controllers_are_accepted():
    vc_controller_manager.controllers_parser().parse_args(container("volcano-controllers")["args"])


@each
def test_ports_are_those_that_the_program_listens_on(name: str):
    options = OPTIONS[name]

    assert options.metrics_address is not None
    assert options.health_address is not None
    assert port(name, "metrics") == options.metrics_address.port
    assert port(name, "health") == options.health_address.port


@each
def test_probes_ask_for_health_and_readiness(name: str):
    asked = {kind: container(name)[kind]["httpGet"] for kind in ("livenessProbe", "readinessProbe")}

    assert asked == {
        "livenessProbe": {"path": "/healthz", "port": "health"},
        "readinessProbe": {"path": "/readyz", "port": "health"},
    }


@each
def test_its_security_context_is_restricted(name: str):
    assert pod(name)["securityContext"]["runAsNonRoot"] is True
    assert pod(name)["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container(name)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


@each
def test_it_runs_as_the_user_of_the_image(name: str):
    _, stages = read_dockerfile(REPOSITORY / "Dockerfile")
    (user,) = stages[-1].all("USER")
    context = pod(name)["securityContext"]

    assert user.text == f"{context['runAsUser']}:{context['runAsGroup']}"


@each
def test_it_runs_the_image_of_this_version(name: str):
    assert container(name)["image"] == f"volcano-py:{__version__}"


@each
def test_its_account_exists_and_is_given_the_rights_of_its_name(name: str):
    account = the("ServiceAccount", pod(name)["serviceAccountName"])["metadata"]
    binding = the("ClusterRoleBinding", name)

    assert binding["roleRef"]["name"] == the("ClusterRole", name)["metadata"]["name"]
    assert {"kind": "ServiceAccount", "name": account["name"], "namespace": account["namespace"]} in binding["subjects"]


def test_its_configuration_is_a_folder_that_the_kubelet_can_update():
    (volume,) = pod("volcano-scheduler")["volumes"]
    (mount,) = container("volcano-scheduler")["volumeMounts"]
    (conf,) = [flag for flag in container("volcano-scheduler")["args"] if flag.startswith("--scheduler-conf=")]

    assert "subPath" not in mount
    folder, _, file = conf.partition("=")[2].rpartition("/")
    assert folder == mount["mountPath"]
    assert file in the("ConfigMap", volume["configMap"]["name"])["data"]


@pytest.mark.parametrize("name", ["volcano-scheduler", "volcano-controllers"])
def test_an_old_pod_ends_before_a_new_one_starts(name: str):
    spec = the("Deployment", name)["spec"]

    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}
    assert (spec["replicas"], spec["strategy"]) == (1, rolling)


def test_the_grace_period_is_long_enough_for_a_graceful_stop():
    daemon, manager = DaemonOptions(), ManagerOptions()

    patience_s = pod("volcano-scheduler")["terminationGracePeriodSeconds"]
    assert patience_s > daemon.stop_patience_s + daemon.flush_patience_s
    assert pod("volcano-controllers").get("terminationGracePeriodSeconds", KILLED_AFTER_S) > manager.stop_patience_s


@each
def test_prometheus_finds_the_metrics(name: str):
    service = the("Service", f"{name}-service")
    (ports,) = [one for one in service["spec"]["ports"] if one["name"] == "metrics"]

    assert service["metadata"]["annotations"]["prometheus.io/scrape"] == "true"
    assert service["metadata"]["annotations"]["prometheus.io/port"] == str(port(name, "metrics"))
    assert ports["targetPort"] == "metrics"
    labels = the("Deployment", name)["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()


# What keeps replicas apart, and what may reach them


@each
def test_a_budget_lets_one_replica_go_at_a_time(name: str):
    spec = the("PodDisruptionBudget", name)["spec"]

    assert (spec["maxUnavailable"], spec["unhealthyPodEvictionPolicy"]) == (1, "AlwaysAllow")
    assert "minAvailable" not in spec  # with one replica, no node could be drained
    assert spec["selector"] == the("Deployment", name)["spec"]["selector"]


@each
def test_replicas_go_to_different_nodes_and_zones_but_never_wait_for_that(name: str):
    affinity = pod(name)["affinity"]["podAntiAffinity"]
    terms = affinity["preferredDuringSchedulingIgnoredDuringExecution"]

    assert affinity.keys() == {"preferredDuringSchedulingIgnoredDuringExecution"}
    assert [one["podAffinityTerm"]["topologyKey"] for one in terms] == [
        "kubernetes.io/hostname",
        "topology.kubernetes.io/zone",
    ]
    assert all(one["podAffinityTerm"]["labelSelector"] == the("Deployment", name)["spec"]["selector"] for one in terms)


@each
def test_only_the_ports_of_the_container_are_open(name: str):
    spec = the("NetworkPolicy", name)["spec"]
    (rule,) = spec["ingress"]

    assert spec["policyTypes"] == ["Ingress"]
    assert spec["podSelector"] == the("Deployment", name)["spec"]["selector"]
    assert rule.keys() == {"ports"}
    assert {one["port"] for one in rule["ports"]} == {one["name"] for one in container(name)["ports"]}


@each
def test_memory_is_limited_and_cpu_is_not(name: str):
    resources = container(name)["resources"]

    assert resources["requests"].keys() == {"cpu", "memory"}
    assert resources["limits"].keys() == {"memory"}


def test_every_configuration_of_volcano_is_there_under_its_name():
    names = {one["metadata"]["name"] for one in objects() if one["kind"] == "ConfigMap"}

    assert names == {f"volcano-{one}-configmap" for one in ("scheduler", "controller", "admission")}


# What users of jobs get


def test_no_priority_is_a_default_and_the_lowest_preempts_nothing():
    classes = {one["metadata"]["name"]: one for one in objects() if one["kind"] == "PriorityClass"}
    values = {name: one["value"] for name, one in classes.items()}

    assert values == {"volcano-batch-high": 1000, "volcano-batch-normal": 0, "volcano-batch-low": -10}
    assert not any(one.get("globalDefault") for one in classes.values())
    assert {name for name, one in classes.items() if one.get("preemptionPolicy") == "Never"} == {"volcano-batch-low"}


def test_deleting_the_programs_keeps_definitions_and_what_users_have():
    kept = {one["kind"] for one in objects()} - {one["kind"] for one in objects(MANIFESTS / "programs")}
    gone = {(one["kind"], one["metadata"]["name"]) for one in objects(MANIFESTS / "programs")}

    policy = {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
    assert kept == {"CustomResourceDefinition", "PriorityClass", *policy}
    users = [one for one in objects(MANIFESTS / "users") if (one["kind"], one["metadata"]["name"]) in gone]
    assert users == []


# Overlays


@pytest.mark.parametrize("overlay", sorted((MANIFESTS / "overlays").iterdir()), ids=lambda path: path.name)
def test_an_overlay_is_the_whole_and_one_component(overlay: Path):
    document = kustomization(overlay)
    whole = [f"../../{one}" for one in kustomization(MANIFESTS)["resources"]]

    assert document["resources"][: len(whole)] == whole
    assert document["components"] == [f"../../components/{overlay.name}"]
    assert (overlay / document["components"][0] / "kustomization.yaml").exists()


def test_every_component_has_an_overlay():
    assert {one.name for one in (MANIFESTS / "components").iterdir()} == {
        one.name for one in (MANIFESTS / "overlays").iterdir()
    }


def test_every_webhook_gets_the_address_of_the_overlay():
    component = kustomization(MANIFESTS / "components" / "webhook-url")
    folders = (MANIFESTS / "webhooks", MANIFESTS / "webhooks" / "pods")
    written = [one for folder in folders for one in objects(folder) if one["kind"].endswith("WebhookConfiguration")]
    patched = {one["target"]["name"]: yaml.safe_load(one["patch"]) for one in component["patches"]}
    replaced = {one["select"]["name"] for rule in component["replacements"] for one in rule["targets"]}

    for configuration in written:
        paths = [one["clientConfig"]["service"]["path"] for one in configuration["webhooks"]]
        assert patched[configuration["metadata"]["name"]] == [
            {"op": "replace", "path": f"/webhooks/{index}/clientConfig", "value": {"url": f"https://ADDRESS{path}"}}
            for index, path in enumerate(paths)
        ]
    assert replaced == {one["metadata"]["name"] for one in written} | {"volcano-admission"}
