"""An installation on a fresh API server, by the commands of the README and of docs/install.md alone.

Programs run as processes with the flags, files and accounts of the installed Deployments; their pods are simulated.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.controlplane.install import MANIFESTS, write_kustomization
from tests.controlplane.nodes import create_nodes, node_object, wait_nodes_ready
from tests.controlplane.ports import free_ports
from tests.controlplane.rest import ApiFailure
from tests.controlplane.waiting import wait_until
from tests.e2e.commands import REPOSITORY, Reader, commands, files
from tests.e2e.control_plane import ControlPlane, Options
from tests.e2e.deployed import Deployed, NotStartable
from tests.e2e.installation import (
    JOBS,
    WEBHOOKS,
    Obj,
    apply_hello,
    changed,
    configurations,
    nodes_of,
    phase,
    queues,
    versions,
    wait_completed,
    wait_open,
)

README = REPOSITORY / "README.md"
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
PROGRAMS = ["volcano-admission", "volcano-controllers", "volcano-scheduler"]
CRITICAL = ["system-cluster-critical", "system-node-critical"]
INSTALL = REPOSITORY / "docs" / "install.md"
EXAMPLE_ADDRESS = "volcano-webhooks.example.com:443"
EVERY_KIND = "deployments,services,configmaps,serviceaccounts,roles,rolebindings,poddisruptionbudgets,networkpolicies"


@pytest.fixture
def fresh() -> Iterator[ControlPlane]:
    """An API server with nothing but three nodes, and a kube-scheduler for the pods of our Deployments."""
    with ControlPlane(Options(scheduler=True, fast=True)) as plane:
        names = [f"node-{index}" for index in range(3)]
        create_nodes(plane.cluster, [node_object(name, labels={"kubernetes.io/hostname": name}) for name in names])
        wait_nodes_ready(plane.cluster, names)
        yield plane


@pytest.fixture
def deployed(fresh: ControlPlane) -> Iterator[Deployed]:
    """The programs of what a test installs; whatever runs in the end is stopped."""
    found = Deployed(fresh)
    yield found
    found.stop()


# The README


def test_the_commands_of_the_readme_lead_to_a_completed_job(fresh: ControlPlane, deployed: Deployed) -> None:
    reader = Reader(fresh)
    build, *install = commands(README, "Into a cluster, with kustomize")
    assert build.startswith("docker build ")  # the processes below stand for the image

    said = {command: reader.types(command) for command in install}
    assert [line for line in said["kubectl apply -k manifests/"].splitlines() if not line.endswith(" created")] == []
    assert deployed.names() == PROGRAMS
    assert len(nodes_of(fresh, "volcano-admission")) == 2  # although these nodes have no zones
    deployed.start_all().ready()
    wait_open(fresh)
    said |= {command: reader.types(command) for command in commands(README, "Your first job")}

    assert phase(fresh) == "Completed"
    assert "Completed" in said["vcctl job list"]
    assert "hello" in said["vcctl job why hello"]
    groups = fresh.request("GET", "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups")["items"]
    assert [one["status"]["phase"] for one in groups] == ["Completed"] or groups == []
    assert {one["webhooks"][0]["clientConfig"]["url"].split("/")[2] for one in configurations(fresh)} != set()


def test_the_readme_from_source_runs_the_gang_of_the_readme(fresh: ControlPlane) -> None:
    reader = Reader(fresh)
    (fresh.processes.folder / ".kube").mkdir()
    (fresh.processes.folder / ".kube" / "config").write_bytes(fresh.kubeconfig.read_bytes())
    make, install, run = commands(README, "From source, against the cluster of your kubeconfig")
    assert make.startswith("python3 -m venv .venv ")  # the tests run in an environment of this kind
    reader.types(install)
    metrics, health = free_ports(2)
    listen = f"--listen-address=127.0.0.1:{metrics} --healthz-address=127.0.0.1:{health}"
    typed = f"{run.removeprefix('.venv/bin/')} {listen}"
    fresh.processes.start("from-source", ["bash", "-c", f"cd {REPOSITORY} && exec {typed}"], reader.environment)
    log = fresh.processes.log("from-source")
    wait_until("a scheduler from source", lambda: "scheduler is ready" in log.read_text(), 30.0)
    (gang,) = files(README, "Your first gang")

    fresh.kubectl("apply", "-f", "-", stdin=gang)
    wait_until("a reason", lambda: "2 minAvailable" in reader.types("kubectl get podgroup train -o yaml"), 20.0)
    wait_until("an event", lambda: "minAvailable" in reader.types("kubectl describe pod train-0"), 20.0)
    second = next(one for one in yaml.safe_load_all(gang) if one["kind"] == "Pod")
    second["metadata"]["name"] = "train-1"
    fresh.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(second))

    pods = "/api/v1/namespaces/default/pods"
    placed = lambda: all(one["spec"].get("nodeName") for one in fresh.request("GET", pods)["items"])  # noqa: E731
    wait_until("both pods on nodes", placed, 30.0)
    fresh.processes.stop("from-source")


def test_the_job_of_the_readme_is_the_example() -> None:
    (shown,) = files(README, "Your first job")

    assert (REPOSITORY / "examples" / "hello.yaml").read_text().endswith(shown)


# Applying


def test_the_same_manifests_again_change_nothing(fresh: ControlPlane) -> None:
    kinds = "deployments,configmaps,services,serviceaccounts,poddisruptionbudgets,networkpolicies,roles,rolebindings"
    everything = ("-n", "volcano-system", f"{kinds},clusterroles,mutatingwebhookconfigurations,priorityclasses")
    fresh.kubectl("apply", "-k", str(MANIFESTS))
    trusted = give_bundle(fresh)  # as the leader of the webhook managers does
    wait_until("a cluster at rest", lambda: versions(fresh, *everything) == versions(fresh, *everything), 20.0, every=1)
    before = versions(fresh, *everything)

    again = fresh.kubectl("apply", "-k", str(MANIFESTS)).stdout

    assert changed(again) == []
    after = versions(fresh, *everything)
    moved = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert {name for name in moved if not name.startswith("Deployment/")} == set()  # their status goes on
    assert {bundle_of(one) for one in configurations(fresh)} == {trusted}


def give_bundle(plane: ControlPlane) -> str:
    bundle = yaml.safe_load(plane.kubeconfig.read_text())["clusters"][0]["cluster"]["certificate-authority-data"]
    for one in configurations(plane):
        kind = one["webhooks"][0]["name"].startswith("mutate")
        path = f"{WEBHOOKS.format('mutating' if kind else 'validating')}/{one['metadata']['name']}"
        steps = [
            {"op": "add", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": bundle}
            for index in range(len(one["webhooks"]))
        ]
        plane.request("PATCH", path, steps, content_type="application/json-patch+json")
    return str(bundle)


def bundle_of(configuration: Obj) -> str:
    (bundle,) = {one["clientConfig"].get("caBundle", "") for one in configuration["webhooks"]}
    return str(bundle)


def test_server_side_apply_works_and_takes_nothing_from_the_programs(fresh: ControlPlane) -> None:
    fresh.kubectl("apply", "--server-side", "-k", str(MANIFESTS))
    trusted = give_bundle(fresh)

    fresh.kubectl("apply", "--server-side", "-k", str(MANIFESTS))

    assert {bundle_of(one) for one in configurations(fresh)} == {trusted}


def test_webhooks_that_nobody_answers_yet_delay_the_first_queues_and_do_not_prevent_them(
    fresh: ControlPlane, deployed: Deployed
) -> None:
    fresh.kubectl("apply", "-k", str(MANIFESTS))
    deployed.start("volcano-scheduler").start("volcano-controllers").ready()
    wait_until(
        "refused queues",
        lambda: all("failed calling webhook" in deployed.log(name) for name in PROGRAMS[1:]),
        40.0,
    )
    assert queues(fresh) == {}

    deployed.start("volcano-admission").ready()

    wait_open(fresh, 30.0)
    apply_hello(fresh)
    wait_completed(fresh)


# Overlays


def test_an_overlay_with_webhooks_at_a_url(fresh: ControlPlane, deployed: Deployed, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    folder = overlay(tmp_path, "webhook-url", port)
    fresh.kubectl("apply", "-k", str(folder))
    deployed.start_all().ready()
    wait_open(fresh)
    apply_hello(fresh)
    wait_completed(fresh)

    again = fresh.kubectl("apply", "-k", str(folder)).stdout

    addresses = {one["clientConfig"]["url"].split("/")[2] for c in configurations(fresh) for one in c["webhooks"]}
    assert addresses == {f"127.0.0.1:{port}"}
    assert changed(again) == []
    with pytest.raises(ApiFailure, match=r"denied the request.*minAvailable"):
        fresh.request("POST", JOBS, wrong_job())


def overlay(folder: Path, name: str, port: int) -> Path:
    """Return a copy of an overlay with an address of this machine, as a user edits it."""
    shipped = MANIFESTS / "overlays" / name
    document = yaml.safe_load((shipped / "kustomization.yaml").read_text())
    named = "address.yaml"
    (folder / named).write_text((shipped / named).read_text().replace(EXAMPLE_ADDRESS, f"127.0.0.1:{port}"))
    resources = [one if one == named else (shipped / one).resolve() for one in document["resources"]]
    write_kustomization(folder, resources, [Path(one).name for one in document["components"]])
    return folder


def wrong_job() -> Obj:
    job = yaml.safe_load((REPOSITORY / "examples" / "hello.yaml").read_text())
    job["metadata"]["name"] = "wrong"
    job["spec"]["minAvailable"] = 3
    return dict(job)


def test_admission_policies_in_place_of_webhooks(fresh: ControlPlane, deployed: Deployed) -> None:
    fresh.kubectl("apply", "-k", str(MANIFESTS / "overlays" / "admission-policies"))
    again = fresh.kubectl("apply", "-k", str(MANIFESTS / "overlays" / "admission-policies")).stdout
    deployed.start_all().ready()
    wait_open(fresh)
    apply_hello(fresh)
    wait_completed(fresh)

    assert changed(again) == []
    assert deployed.names() == ["volcano-controllers", "volcano-scheduler"]
    assert configurations(fresh) == []
    left = fresh.kubectl("get", EVERY_KIND, "-n", "volcano-system", "-oname").stdout.split()
    assert [one for one in left if "volcano-admission" in one] == []
    assert len(fresh.request("GET", POLICIES)["items"]) == 8  # one of them, for Commands, is in every variant
    wait_until("policies at work", lambda: refused(fresh, wrong_job()), 20.0)


def refused(plane: ControlPlane, job: Obj) -> bool:
    """Say whether a job is refused; delete it if it is not."""
    try:
        plane.request("POST", JOBS, job)
    except ApiFailure as failed:
        return "denied request" in str(failed)
    plane.request("DELETE", f"{JOBS}/{job['metadata']['name']}")
    return False


def test_high_availability_survives_the_loss_of_every_leader(fresh: ControlPlane, deployed: Deployed) -> None:
    fresh.kubectl("apply", "-k", str(MANIFESTS / "overlays" / "high-availability"))
    for name in PROGRAMS:
        fresh.kubectl("rollout", "status", f"deployment/{name}", "-n", "volcano-system", "--timeout=60s", timeout=90)
    for app in ("volcano-scheduler", "volcano-controller", "volcano-admission"):
        assert len(nodes_of(fresh, app)) == 2
    for name in PROGRAMS:
        deployed.start(name, replicas=2)
    deployed.ready()
    wait_open(fresh)
    apply_hello(fresh)
    wait_completed(fresh)

    for name in PROGRAMS:
        (leader,) = [one for one in deployed.replicas(name) if leads(fresh, one.process)]
        fresh.processes.kill(leader.process)
    second = yaml.safe_load((REPOSITORY / "examples" / "hello.yaml").read_text())
    second["metadata"]["name"] = "second"
    wait_until("webhooks of the new leader", lambda: accepted(fresh, second), 60.0)
    wait_completed(fresh, "second")


def leads(plane: ControlPlane, process: str) -> bool:
    """Say whether a process has become the leader; nobody lost a lease so far."""
    return "the lease is ours" in plane.processes.log(process).read_text()


def accepted(plane: ControlPlane, job: Obj) -> bool:
    """Say whether a job is accepted; while no webhook answers, it is not."""
    try:
        plane.request("POST", JOBS, job)
    except ApiFailure as failed:
        if "failed calling webhook" not in str(failed):
            raise
        return False
    return True


def test_a_scheduler_with_a_shard_keeps_to_its_nodes(fresh: ControlPlane, deployed: Deployed) -> None:
    install, divide = commands(INSTALL, "Variants")
    Reader(fresh).types(install)
    deployed.start_all().ready()
    wait_open(fresh)
    apply_hello(fresh)
    wait_until("a warning about the NodeShard", lambda: "NodeShard" in deployed.log("volcano-scheduler"), 20.0)
    assert phase(fresh) in {"", "Pending"}

    Reader(fresh).types(divide)

    wait_completed(fresh)
    pods = fresh.request("GET", "/api/v1/namespaces/default/pods")["items"]
    assert {one["spec"]["nodeName"] for one in pods} == {"node-1"}
    assert not [line for line in deployed.log("volcano-scheduler").splitlines() if "by RBAC" in line]


def test_pods_pass_the_webhooks_if_the_overlay_says_so(fresh: ControlPlane, deployed: Deployed) -> None:
    fresh.kubectl("apply", "-k", str(MANIFESTS / "overlays" / "pod-webhooks"))
    deployed.start_all().ready()
    wait_open(fresh)
    apply_hello(fresh)
    wait_completed(fresh)

    assert 'path="/pods/validate"' in deployed.metrics("volcano-admission")


def test_components_combine_as_the_page_says(fresh: ControlPlane, tmp_path: Path) -> None:
    shown = next(one for one in files(INSTALL, "Combine variants") if "kind: Kustomization" in one)
    (tmp_path / "mine").mkdir()
    (tmp_path / "volcano-py").symlink_to(REPOSITORY)
    (tmp_path / "mine" / "kustomization.yaml").write_text(shown)
    (tmp_path / "mine" / "address.yaml").write_text((MANIFESTS / "overlays/webhook-url/address.yaml").read_text())

    fresh.kubectl("apply", "-k", str(tmp_path / "mine"))

    found = fresh.request("GET", "/apis/apps/v1/namespaces/volcano-system/deployments")["items"]
    assert {one["spec"]["replicas"] for one in found} == {2}
    images = {one["spec"]["template"]["spec"]["containers"][0]["image"] for one in found}
    assert images == {"registry.example.com/volcano-py:0.1.0"}
    addresses = {one["clientConfig"]["url"].split("/")[2] for c in configurations(fresh) for one in c["webhooks"]}
    assert addresses == {EXAMPLE_ADDRESS}


# What goes wrong says so


def test_pods_with_a_critical_priority_are_admitted_where_that_needs_a_quota(tmp_path: Path) -> None:
    """Clusters such as those of GKE are configured like this."""
    limited = {
        "resource": "pods",
        "matchScopes": [{"scopeName": "PriorityClass", "operator": "In", "values": CRITICAL}],
    }
    quota = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "ResourceQuotaConfiguration"}
    plugins = [{"name": "ResourceQuota", "configuration": {**quota, "limitedResources": [limited]}}]
    admission = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": plugins}
    (tmp_path / "admission.yaml").write_text(yaml.safe_dump(admission))
    flag = f"--admission-control-config-file={tmp_path / 'admission.yaml'}"

    with ControlPlane(Options(fast=True, kwok=False, apiserver_args=(flag,))) as plane:
        plane.kubectl("apply", "-k", str(MANIFESTS))
        pods = "/api/v1/namespaces/volcano-system/pods"
        wait_until("pods", lambda: len(plane.request("GET", pods)["items"]) == 4, 30.0)

        strict = ("pod-security.kubernetes.io/enforce=restricted", "--dry-run=server")
        assert plane.kubectl("label", "namespace", "volcano-system", *strict).stderr == ""  # no pod violates it

        plane.kubectl("delete", "resourcequota", "volcano-critical-pods", "-n", "volcano-system")
        plane.kubectl("rollout", "restart", "deployment/volcano-scheduler", "-n", "volcano-system")
        with pytest.raises(NotStartable, match="insufficient quota to match these scopes"):
            Deployed(plane).start("volcano-scheduler")


def test_an_installation_without_its_parts_says_what_is_missing(fresh: ControlPlane, deployed: Deployed) -> None:
    fresh.kubectl("apply", "-k", str(MANIFESTS))
    system = ("-n", "volcano-system")
    fresh.kubectl("delete", "configmap", "volcano-scheduler-configmap", *system)
    with pytest.raises(NotStartable, match="configMap volcano-system/volcano-scheduler-configmap cannot be mounted"):
        deployed.start("volcano-scheduler")

    fresh.kubectl("delete", "clusterrolebinding", "volcano-controllers")
    deployed.start("volcano-controllers")
    wait_until("a refusal in the log", lambda: "is forbidden: User" in deployed.log("volcano-controllers"), 30.0)
    assert not any(deployed.is_ready(one) for one in deployed.replicas("volcano-controllers"))
    deployed.stop()

    fresh.kubectl("delete", "serviceaccount", "volcano-admission", *system)
    fresh.kubectl("rollout", "restart", "deployment/volcano-admission", *system)
    with pytest.raises(NotStartable, match='serviceaccount "volcano-admission" not found'):
        deployed.start("volcano-admission")

    fresh.kubectl("delete", "-k", str(MANIFESTS / "programs"), "--ignore-not-found", timeout=90)
    with pytest.raises(NotStartable, match="Deployment volcano-system/volcano-scheduler cannot be read"):
        deployed.start("volcano-scheduler")
    applied = fresh.kubectl("apply", "-k", str(MANIFESTS / "deployment"), check=False)
    assert 'namespaces "volcano-system" not found' in applied.stderr

    fresh.kubectl("apply", "-k", str(MANIFESTS))  # and again as it should be
    deployed.start_all().ready()
    wait_open(fresh)


# Users


def test_an_editor_of_a_namespace_runs_jobs_and_a_viewer_reads_them(fresh: ControlPlane, deployed: Deployed) -> None:
    fresh.kubectl("apply", "-k", str(MANIFESTS))
    deployed.start_all().ready()
    wait_open(fresh)
    readers = {}
    for role in ("edit", "view"):
        fresh.kubectl("create", "serviceaccount", role, "-n", "default")
        fresh.kubectl("create", "rolebinding", role, f"--clusterrole={role}", f"--serviceaccount=default:{role}")
        readers[role] = Reader(fresh, fresh.kubeconfig_for("default", role))
    allowed = "kubectl auth can-i create vcjob"
    wait_until("aggregated roles", lambda: "yes" in readers["edit"].types(f"{allowed} || true"), 20.0)
    (bind,) = commands(INSTALL, "Rights for users")

    readers["edit"].types("kubectl apply -f examples/hello.yaml")
    assert "default cannot be read with your rights" in readers["view"].types("vcctl job why hello")
    Reader(fresh).types(bind)
    readers["edit"].types("vcctl job suspend -n default -N hello")
    assert "hello" in readers["view"].types("vcctl job list")
    assert "cannot be read with your rights" not in readers["view"].types("vcctl job why hello")
    assert "default" in readers["view"].types("kubectl get queues")
    refused_to = readers["view"].types("kubectl delete vcjob hello", fails=True)
    assert "forbidden" in refused_to

    # Not with vcctl: it makes the queue an owner of the Command, which this API server refuses to editors, too.
    queue = fresh.request("GET", "/apis/scheduling.volcano.sh/v1beta1/queues/default")
    target = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "name": "default",
        "uid": queue["metadata"]["uid"],
    }
    meta = {"apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command", "metadata": {"generateName": "close-"}}
    command = json.dumps({**meta, "action": "CloseQueue", "target": target})
    close = f"echo '{command}' | kubectl create -f -"
    assert "you may not open or close queue default" in readers["edit"].types(close, fails=True)
    allow = (
        "kubectl create clusterrole closes --verb=patch --resource=queues.scheduling.volcano.sh --resource-name=default"
    )
    Reader(fresh).types(allow)
    Reader(fresh).types("kubectl create clusterrolebinding closes --clusterrole=closes --serviceaccount=default:edit")
    readers["edit"].types(close)
    wait_until("a closed queue", lambda: "Clos" in readers["view"].types("kubectl get queue default -oyaml"), 20.0)


# Uninstall


def test_programs_go_and_jobs_stay_and_then_everything_goes(fresh: ControlPlane, deployed: Deployed) -> None:
    webhooks_of_pods, keep, everything = commands(INSTALL, "Uninstall")
    reader = Reader(fresh)
    reader.types("kubectl apply -k manifests/")
    deployed.start_all().ready()
    wait_open(fresh)
    job = yaml.safe_load((REPOSITORY / "examples" / "hello.yaml").read_text())
    job["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["command"] = ["sleep", "1000"]
    fresh.request("POST", JOBS, job)
    wait_until("a running job", lambda: phase(fresh) == "Running", 60.0)
    pods = uids(fresh)
    deployed.stop()
    reader.types("kubectl apply -k manifests/webhooks/pods")

    reader.types(webhooks_of_pods)
    reader.types(keep)

    assert phase(fresh) == "Running"
    assert uids(fresh) == pods
    assert configurations(fresh) == []
    assert "volcano" not in fresh.kubectl("get", "namespaces", "-oname").stdout
    roles = fresh.kubectl("get", "clusterroles,clusterrolebindings", "-oname").stdout.split()
    kept = [one.partition("/")[2] for one in roles if "volcano" in one or "vcjob" in one]
    assert kept == ["vcjob-editor-role", "vcjob-viewer-role", "volcano-queue-viewer-role"]

    reader.types("kubectl apply -k manifests/")
    deployed.start_all().ready()
    wait_until("work that goes on", lambda: fresh.kubectl("get", "lease", "-n", "volcano-system").stdout, 20.0)
    assert uids(fresh) == pods
    deployed.stop()

    reader.types(everything)

    assert fresh.kubectl("get", "crd", "-oname").stdout == ""
    wait_until("pods that are gone", lambda: uids(fresh) == {}, 30.0)
    left = fresh.kubectl("get", "clusterroles,clusterrolebindings,priorityclasses,namespaces", "-oname").stdout.split()
    assert [one for one in left if "volcano" in one or "vcjob" in one] == []


def uids(plane: ControlPlane) -> dict[str, str]:
    """Return the UIDs of the pods in the namespace of the jobs."""
    items = plane.request("GET", "/api/v1/namespaces/default/pods")["items"]
    return {one["metadata"]["name"]: one["metadata"]["uid"] for one in items}
