"""Releases of the Helm chart on a fresh API server: install, upgrade, rollback, uninstall, and in Volcano's place.

Programs run as processes with the flags, files and accounts of the installed Deployments; their pods are simulated.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chart.rendering import CHART, Helm, HelmFailed, Object, documents
from tests.chart.volcano_chart import write_chart
from tests.controlplane.nodes import create_nodes, node_object, wait_nodes_ready
from tests.controlplane.ports import free_ports
from tests.controlplane.rest import ApiFailure
from tests.controlplane.waiting import wait_until
from tests.e2e.control_plane import ControlPlane, Options
from tests.e2e.deployed import Deployed
from volcano_py.testing import a_queue, manifest

SYSTEM = "volcano-system"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
VALIDATING = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
SECRET_LIMIT = 1024 * 1024  # what an API server takes


@pytest.fixture
def fresh() -> Iterator[ControlPlane]:
    """An API server with nothing but two nodes, and a kube-scheduler for the pods of our Deployments."""
    if os.environ.get("KUBECONFIG"):
        pytest.skip("needs an API server of its own, and KUBECONFIG names one that is not ours")
    with ControlPlane(Options(scheduler=True, fast=True)) as plane:
        names = ["node-0", "node-1"]
        create_nodes(plane.cluster, [node_object(name, labels={"kubernetes.io/hostname": name}) for name in names])
        wait_nodes_ready(plane.cluster, names)
        yield plane


@pytest.fixture
def helm(fresh: ControlPlane, tmp_path: Path) -> Helm:
    """Helm as the administrator of the API server."""
    return Helm(fresh.binaries["helm"], tmp_path / "helm", fresh.kubeconfig)


def webhook_url() -> str:
    """Return an address for webhooks: the API servers of tests reach no Service."""
    return f"https://127.0.0.1:{free_ports(1)[0]}"


def install(helm: Helm, values: dict[str, Any], release: str = "volcano", namespace: str = SYSTEM) -> str:
    """Install the chart with the README's command, and return what helm says."""
    return helm.run("install", release, CHART, "-n", namespace, "--create-namespace", values=values)


def deployment(plane: ControlPlane, name: str, namespace: str = SYSTEM) -> Object:
    return dict(plane.request("GET", f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}"))


def exists(plane: ControlPlane, path: str) -> bool:
    try:
        plane.request("GET", path)
    except ApiFailure as failed:
        if failed.code != 404:
            raise
        return False
    return True


def phase(plane: ControlPlane, name: str) -> str:
    return str(plane.request("GET", f"{JOBS}/{name}").get("status", {}).get("state", {}).get("phase", ""))


def run_job(plane: ControlPlane, name: str) -> None:
    """Create a job of two pods and wait until it has completed."""
    wait_until("queue default is open", lambda: queue_state(plane, "default") == "Open", 30)
    container = {"name": "main", "image": "busybox", "command": ["sleep", "1"], "resources": {"requests": {"cpu": "1"}}}
    pod = {"restartPolicy": "Never", "schedulerName": "volcano", "containers": [container]}
    spec = {"minAvailable": 2, "tasks": [{"name": "worker", "replicas": 2, "template": {"spec": pod}}]}
    job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": name}, "spec": spec}
    plane.request("POST", JOBS, job)
    wait_until(f"job {name} completes", lambda: phase(plane, name) == "Completed", 60)


def queue_state(plane: ControlPlane, name: str) -> str:
    found = {one["metadata"]["name"]: one for one in plane.request("GET", QUEUES)["items"]}
    return str(found.get(name, {}).get("status", {}).get("state", ""))


def test_from_install_to_a_completed_job_and_back(fresh: ControlPlane, helm: Helm) -> None:
    url = webhook_url()
    said = install(helm, {"custom": {"webhook_url": url}})
    assert "kubectl -n volcano-system get deployments" in said
    deployed = Deployed(fresh)
    assert deployed.names() == ["volcano-admission", "volcano-controllers", "volcano-scheduler"]
    deployed.start_all().ready()
    run_job(fresh, "hello")

    # An upgrade changes replicas and the configuration; the values of before stay.
    configuration = 'actions: "enqueue, allocate"\ntiers:\n- plugins:\n  - name: gang\n  - name: predicates\n'
    helm.run(
        "upgrade",
        "volcano",
        CHART,
        "-n",
        SYSTEM,
        "--reset-then-reuse-values",
        values={"custom": {"scheduler_replicas": 2, "scheduler_config_override": configuration}},
    )
    config_map = f"/api/v1/namespaces/{SYSTEM}/configmaps/volcano-scheduler-configmap"
    assert deployment(fresh, "volcano-scheduler")["spec"]["replicas"] == 2
    assert fresh.request("GET", config_map)["data"]["volcano-scheduler.conf"] == configuration
    (webhook, _) = fresh.request("GET", f"{VALIDATING}/volcano-admission-service-queues-validate")["webhooks"]
    assert webhook["clientConfig"]["url"] == f"{url}/queues/validate"
    assert base64.b64decode(webhook["clientConfig"]["caBundle"]).startswith(b"-----BEGIN CERTIFICATE-----")
    deployed.sync_files()
    run_job(fresh, "after-the-upgrade")

    # The rollback brings back what was.
    helm.run("rollback", "volcano", "1", "-n", SYSTEM)
    assert deployment(fresh, "volcano-scheduler")["spec"]["replicas"] == 1
    assert "backfill" in fresh.request("GET", config_map)["data"]["volcano-scheduler.conf"]
    deployed.sync_files()
    run_job(fresh, "after-the-rollback")
    deployed.stop()

    # What users wrote stays after the uninstall, and a new release takes it over.
    helm.run("uninstall", "volcano", "-n", SYSTEM)
    assert fresh.request("GET", f"/apis/apps/v1/namespaces/{SYSTEM}/deployments")["items"] == []
    assert fresh.request("GET", VALIDATING)["items"] == []
    assert {one["metadata"]["name"] for one in fresh.request("GET", JOBS)["items"]} == {
        "hello",
        "after-the-upgrade",
        "after-the-rollback",
    }
    install(helm, {"custom": {"webhook_url": webhook_url()}})
    deployed = Deployed(fresh).start_all().ready()
    run_job(fresh, "after-the-second-installation")
    deployed.stop()


def test_an_upgrade_changes_definitions_and_keeps_objects(fresh: ControlPlane, helm: Helm, tmp_path: Path) -> None:
    install(helm, {"custom": {"admission_enable": False}})
    fresh.kubectl("wait", "--for=condition=Established", "crd/queues.scheduling.volcano.sh", "--timeout=30s")
    fresh.request("POST", QUEUES, manifest(a_queue("old", weight=2)))
    with_field = manifest(a_queue("new"), spec={"floor": 3})
    assert "floor" not in fresh.request("POST", QUEUES, with_field)["spec"]
    fresh.request("DELETE", f"{QUEUES}/new")

    changed = copy_with_a_new_field(tmp_path / "changed")
    helm.run("upgrade", "volcano", changed, "-n", SYSTEM)

    def usable() -> bool:
        made = fresh.request("POST", QUEUES, with_field)["spec"]
        fresh.request("DELETE", f"{QUEUES}/new")
        return made.get("floor") == 3

    wait_until("the new field is served", usable, 30)
    assert fresh.request("GET", f"{QUEUES}/old")["spec"]["weight"] == 2


def copy_with_a_new_field(folder: Path) -> Path:
    """Copy the chart, as a package holds it, with one more field of queues."""
    shutil.copytree(CHART, folder)
    file = folder / "manifests" / "crds" / "scheduling.volcano.sh_queues.yaml"
    (definition,) = documents(file.read_text())
    (version,) = definition["spec"]["versions"]
    version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["floor"] = {"type": "integer"}
    file.write_text(json.dumps(definition))
    return folder


def test_two_releases_with_other_names_stand_side_by_side(fresh: ControlPlane, helm: Helm) -> None:
    install(helm, {"custom": {"webhook_url": webhook_url()}}, "batch", "batch-system")
    with pytest.raises(HelmFailed, match=r"exists and cannot be imported into the current release"):
        install(helm, {}, "research", "research")
    helm.run("uninstall", "research", "-n", "research", "--ignore-not-found")
    second = {
        "crds": {"enable": False},
        "users": {"enable": False},
        "custom": {"scheduler_name": "research", "controller_enable": False, "admission_enable": False},
    }
    install(helm, second, "research", "research")
    first = Deployed(fresh, "batch-system")
    other = Deployed(fresh, "research")
    assert first.names() == ["batch-admission", "batch-controllers", "batch-scheduler"]
    assert other.names() == ["research-scheduler"]

    first.start_all().ready()
    other.start_all().ready()
    run_job(fresh, "hello")

    leases = {
        namespace: {
            one["metadata"]["name"]
            for one in fresh.request("GET", f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases")["items"]
        }
        for namespace in ("batch-system", "research")
    }
    assert leases == {
        "batch-system": {"batch-scheduler", "batch-controller-manager", "batch-webhook-manager"},
        "research": {"research-scheduler"},
    }
    first.stop()
    other.stop()


def test_wrong_values_are_refused_before_anything_is_created(fresh: ControlPlane, helm: Helm) -> None:
    with pytest.raises(HelmFailed, match=r"custom\.colocation_enable is true, but there is no vc-agent"):
        install(helm, {"custom": {"colocation_enable": True}})
    with pytest.raises(HelmFailed, match=r"at '/custom/scheduler_replicas': got string, want"):
        install(helm, {"custom": {"scheduler_replicas": "two"}})

    assert fresh.request("GET", DEFINITIONS)["items"] == []


def test_a_release_fits_into_a_secret(fresh: ControlPlane, helm: Helm) -> None:
    """Helm keeps the chart and what it rendered in one Secret, which may not be larger than a mebibyte."""
    install(helm, {"custom": {"vap_enable": True, "map_enable": True, "vap_queues_enable": True}})

    (secret,) = fresh.request("GET", f"/api/v1/namespaces/{SYSTEM}/secrets?labelSelector=owner=helm")["items"]
    size = sum(len(base64.b64decode(one)) for one in secret["data"].values())
    print(f"the Secret of the release holds {size:,} bytes, {100 * size / SECRET_LIMIT:.0f} % of the limit")
    assert size < SECRET_LIMIT * 0.75


@pytest.mark.parametrize("flags", [["--reset-then-reuse-values"], ["--reuse-values"]], ids=" ".join)
def test_a_release_of_volcano_becomes_ours_and_volcanos_again(
    fresh: ControlPlane, helm: Helm, tmp_path: Path, flags: list[str]
) -> None:
    volcano = write_chart(tmp_path / "volcano")
    theirs = {"custom": {"scheduler_replicas": 1, "common_labels": {"team": "batch"}}}
    helm.run("install", "volcano", volcano, "-n", SYSTEM, "--create-namespace", values=theirs)
    fresh.kubectl("wait", "--for=condition=Established", "crd/queues.scheduling.volcano.sh", "--timeout=30s")
    fresh.request("POST", QUEUES, manifest(a_queue("old", weight=2)))
    fresh.request("POST", f"/api/v1/namespaces/{SYSTEM}/secrets", volcanos_certificate())
    uids = {name: deployment(fresh, name)["metadata"]["uid"] for name in Deployed(fresh).names()}

    said = helm.run(
        "upgrade", "volcano", CHART, "-n", SYSTEM, *flags, values={"custom": {"webhook_url": webhook_url()}}
    )

    assert ("basic.scheduler_image_name" in said) == (flags == ["--reuse-values"])
    for name, uid in uids.items():
        found = deployment(fresh, name)
        (container,) = found["spec"]["template"]["spec"]["containers"]
        assert found["metadata"]["uid"] == uid
        assert found["metadata"]["labels"]["team"] == "batch"
        assert container["image"].startswith("volcano-py:")
        assert "klog-sock" not in json.dumps(found["spec"])
    assert not exists(fresh, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/volcano-scheduler-role")
    deployed = Deployed(fresh).start_all().ready()
    run_job(fresh, "hello")
    wait_until("deserved is served", lambda: "deserved" in applied_spec(fresh), 30)
    deployed.stop()

    helm.run("rollback", "volcano", "1", "-n", SYSTEM)

    (container,) = deployment(fresh, "volcano-scheduler")["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "docker.io/volcanosh/vc-scheduler:v1.15.0"
    assert deployment(fresh, "volcano-scheduler")["spec"]["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"},
    }
    assert exists(fresh, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/volcano-scheduler-role")
    assert not exists(fresh, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/volcano-scheduler")
    assert fresh.request("GET", f"{QUEUES}/old")["spec"]["weight"] == 2
    assert phase(fresh, "hello") == "Completed"
    certificate = fresh.request("GET", f"/api/v1/namespaces/{SYSTEM}/secrets/volcano-admission-secret")
    assert certificate["data"].keys() >= {"tls.crt", "tls.key", "ca.crt"}  # what Volcano's pod mounts


def volcanos_certificate() -> Object:
    """Return the Secret as Volcano's init Job leaves it: made by no chart, and so kept by all."""
    keys = {name: base64.b64encode(b"of Volcano").decode() for name in ("tls.crt", "tls.key", "ca.crt")}
    metadata = {"name": "volcano-admission-secret"}
    return {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata, "data": keys}


def applied_spec(plane: ControlPlane) -> dict[str, Any]:
    """Change the queue `old` and return its spec as the API server keeps it."""
    change = {"spec": {"deserved": {"cpu": "1"}}}
    path, kind = f"{QUEUES}/old", "application/merge-patch+json"
    return dict(plane.request("PATCH", path, change, content_type=kind)["spec"])
