"""The Deployment: its probes, ports, account and flags fit the program and the other manifests."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.packaging.dockerfile import read_dockerfile
from tests.packaging.pages import REPOSITORY
from volcano_py import __version__
from volcano_py.cli.vc_scheduler import scheduler_parser
from volcano_py.cli.volcano_flags import left_aside
from volcano_py.daemon.options import DaemonOptions

MANIFESTS = REPOSITORY / "manifests"


def objects(folder: Path = MANIFESTS) -> Iterator[dict[str, Any]]:
    """Yield what `kubectl apply -k` applies, following kustomization files."""
    for name in yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]:
        if (folder / name).is_dir():
            yield from objects(folder / name)
        else:
            yield from yaml.safe_load_all((folder / name).read_text())


def the(kind: str, name: str = "") -> dict[str, Any]:
    (found,) = [one for one in objects() if one["kind"] == kind and name in one["metadata"]["name"]]
    return found


def pod() -> dict[str, Any]:
    return dict(the("Deployment", "scheduler")["spec"]["template"]["spec"])


def container() -> dict[str, Any]:
    (only,) = pod()["containers"]
    return dict(only)


def port(name: str) -> int:
    return int({port["name"]: port["containerPort"] for port in container()["ports"]}[name])


def test_everything_in_the_folder_is_applied():
    listed = {(one["kind"], one["metadata"]["name"]) for one in objects()}
    parts = ("crds", "rbac", "deployment")
    files = [file for part in parts for file in (MANIFESTS / part).glob("*.yaml") if file.name != "kustomization.yaml"]
    present = {(one["kind"], one["metadata"]["name"]) for file in files for one in yaml.safe_load_all(file.read_text())}

    assert present <= listed


def test_its_flags_are_accepted_without_a_warning():
    flags = scheduler_parser().parse_args(container()["args"])

    assert left_aside(flags, {}) == []


def test_ports_are_those_that_the_program_listens_on():
    options = DaemonOptions()

    assert options.metrics_address is not None
    assert options.health_address is not None
    assert (port("metrics"), port("health")) == (options.metrics_address.port, options.health_address.port)


def test_probes_ask_for_health_and_readiness():
    asked = {kind: container()[kind]["httpGet"] for kind in ("livenessProbe", "readinessProbe")}

    assert asked == {
        "livenessProbe": {"path": "/healthz", "port": "health"},
        "readinessProbe": {"path": "/readyz", "port": "health"},
    }


def test_it_may_do_nothing_that_it_does_not_need():
    assert pod()["securityContext"]["runAsNonRoot"] is True
    assert pod()["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container()["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_it_runs_as_the_user_of_the_image():
    _, stages = read_dockerfile(REPOSITORY / "Dockerfile")
    (user,) = stages[-1].all("USER")
    context = pod()["securityContext"]

    assert user.text == f"{context['runAsUser']}:{context['runAsGroup']}"


def test_it_runs_the_image_of_this_version():
    assert container()["image"] == f"volcano-py:{__version__}"


def test_its_account_has_the_rights_of_the_scheduler():
    (subject,) = the("ClusterRoleBinding", "scheduler")["subjects"]

    assert subject["name"] == pod()["serviceAccountName"]
    assert subject["namespace"] == the("Deployment", "scheduler")["metadata"]["namespace"]


def test_its_configuration_is_a_folder_that_the_kubelet_can_update():
    (volume,) = pod()["volumes"]
    (mount,) = container()["volumeMounts"]
    (conf,) = [argument for argument in container()["args"] if argument.startswith("--scheduler-conf=")]

    assert volume["configMap"]["name"] == the("ConfigMap", "scheduler")["metadata"]["name"]
    assert "subPath" not in mount
    folder, _, file = conf.partition("=")[2].rpartition("/")
    assert folder == mount["mountPath"]
    assert file in the("ConfigMap", "scheduler")["data"]


def test_two_schedulers_never_run_side_by_side():
    spec = the("Deployment", "scheduler")["spec"]

    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})


def test_there_is_time_to_end_in_order():
    options = DaemonOptions()

    assert pod()["terminationGracePeriodSeconds"] > options.stop_patience_s + options.flush_patience_s


def test_prometheus_finds_the_metrics():
    service = the("Service", "scheduler")
    (ports,) = service["spec"]["ports"]

    assert service["metadata"]["annotations"]["prometheus.io/scrape"] == "true"
    assert service["metadata"]["annotations"]["prometheus.io/port"] == str(port("metrics"))
    assert ports["targetPort"] == "metrics"
    labels = the("Deployment", "scheduler")["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
