"""`volcano-py migrate check` on a real API server that holds Volcano's objects, with an account that may only look."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.install import wait_established
from tests.e2e.control_plane import ControlPlane, Options
from tests.migration import ordinary
from tests.migration.copies import Copy
from tests.migration.volcano_install import SCHEDULER_CONF, Release

Obj = dict[str, Any]

ACCOUNT = "looker"
PLURALS = {"Queue": "queues", "HyperNode": "hypernodes", "PodGroup": "podgroups", "JobFlow": "jobflows"}
_MERGE = "application/merge-patch+json"


def path_of(one: Obj) -> str:
    """Return the path of an object's collection."""
    version, namespace = one["apiVersion"], one["metadata"].get("namespace")
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    kind = one["kind"].lower()
    plural = PLURALS.get(one["kind"]) or (f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s")
    return f"{root}/namespaces/{namespace}/{plural}" if namespace else f"{root}/{plural}"


def put(plane: ControlPlane, objects: Iterable[Obj]) -> None:
    """Create objects with their status; what belongs to a job gets the uid that the job really has."""
    uids: dict[str, str] = {}
    for one in objects:
        metadata = {key: value for key, value in one["metadata"].items() if key != "uid"}
        for reference in metadata.get("ownerReferences", ()):
            reference["uid"] = uids.get(reference["name"], reference["uid"])
        status = one.get("status")
        created = plane.request("POST", path_of(one), {**one, "metadata": metadata})
        uids[metadata["name"]] = created["metadata"]["uid"]
        if status and one["kind"] != "PodGroup":  # whose status is written with the object
            path = f"{path_of(one)}/{metadata['name']}/status"
            plane.request("PATCH", path, {"status": status}, content_type=_MERGE)


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """An API server that holds a Volcano installation and ordinary objects of users, and nothing that acts on them."""
    options = Options(controller_manager=False, kwok=False, taint_new_nodes=False)
    with ControlPlane(options) as plane:
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        plane.kubectl("create", "namespace", ACCOUNT)
        plane.kubectl("-n", ACCOUNT, "create", "serviceaccount", ACCOUNT)
        plane.kubectl("create", "clusterrole", ACCOUNT, "--verb=get,list", "--resource=*.*")
        plane.kubectl(
            "create", "clusterrolebinding", ACCOUNT, f"--clusterrole={ACCOUNT}", f"--serviceaccount={ACCOUNT}:{ACCOUNT}"
        )
        copy = Copy()
        late = [one for one in copy.objects if "Webhook" in one["kind"]]
        custom = [one for one in copy.objects if "volcano.sh" in one["apiVersion"] and one not in late]
        first = [one for one in copy.objects if one not in late and one not in custom]
        pods = [one for one in first if one["kind"] == "Pod"]
        put(plane, [one for one in first if one not in pods])
        wait_established(plane.cluster)
        put(plane, [{**account, "metadata": {**account["metadata"], "namespace": ordinary.NAMESPACE}}])
        put(plane, sorted([*custom, *pods], key=lambda one: one["kind"] != "Job"))
        put(plane, late)
        yield plane


class Checked:
    """What a run of the command said."""

    def __init__(self, plane: ControlPlane, *arguments: str) -> None:
        kubeconfig = plane.kubeconfig_for(ACCOUNT, ACCOUNT)
        command = [sys.executable, "-m", "volcano_py.cli.volcano_py", "migrate", "check", f"--kubeconfig={kubeconfig}"]
        ran = subprocess.run(
            [*command, *arguments], capture_output=True, text=True, timeout=120, check=False, env={**os.environ}
        )
        self.code, self.output, self.errors = ran.returncode, ran.stdout, ran.stderr

    @property
    def found(self) -> set[tuple[str, str, str]]:
        """Kind and name of the objects with findings, and the rules."""
        findings = json.loads(self.output)["findings"]
        return {(one["object"]["kind"], one["object"]["name"], one["rule"]) for one in findings}


def test_a_clean_installation_then_changes_then_a_missing_right(plane: ControlPlane) -> None:
    nothing_differs(plane)
    changes_are_found_and_nothing_else(plane)
    a_missing_right_is_named(plane)


def nothing_differs(plane: ControlPlane) -> None:
    """Looking needs only get and list, and leaves every object as it is."""
    before = versions(plane)
    checked = Checked(plane, "-o", "json", "--verbose")

    assert checked.found == set(), checked.output
    assert json.loads(checked.output)["notLookedAt"] == []
    assert (checked.code, checked.errors) == (0, "")
    same = {(one["kind"], one["name"]) for one in json.loads(checked.output)["same"]}
    assert {("Deployment", "volcano-scheduler"), ("Job", "job-running"), ("Queue", "research")} <= same
    assert versions(plane) == before
    table = Checked(plane)
    assert table.output.startswith("can be switched: "), table.output
    assert "without leader election" in table.output


def changes_are_found_and_nothing_else(plane: ControlPlane) -> None:
    """Every change is reported as what it is."""
    kubectl, release = plane.kubectl, Release()
    patch = ("patch", "--type=json", "-n", release.namespace)
    args = "/spec/template/spec/containers/0/args/-"
    added = json.dumps([{"op": "add", "path": args, "value": "--node-selector=pool:batch"}])
    kubectl(*patch, "deployment", "volcano-scheduler", f"--patch={added}")
    data = json.dumps({"data": {"volcano-scheduler.conf": _conf("deviceshare")}})
    kubectl("patch", "configmap", "volcano-scheduler-configmap", "-n", release.namespace, f"--patch={data}")
    policy = json.dumps([{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}])
    kubectl(*patch, "validatingwebhookconfiguration", "volcano-admission-service-jobs-validate", f"--patch={policy}")
    space = ordinary.NAMESPACE
    strict = json.dumps({"spec": {"dequeueStrategy": "fifo"}})
    # The webhooks are configured, but nothing answers them; queues and jobs are changed behind their back.
    for kind in ("validatingwebhookconfiguration", "mutatingwebhookconfiguration"):
        ignore = json.dumps([{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}])
        for name in kubectl("get", kind, "-oname").stdout.split():
            kubectl("patch", "--type=json", name, f"--patch={ignore}")
    kubectl("patch", "queue", "ml", "--type=merge", f"--patch={strict}")
    put(plane, [ordinary.job("numa", "Running", ordinary.job_spec(ordinary.task(topologyPolicy="restricted")))])
    put(plane, [ordinary.cron_job("zoned", "TZ=Asia/Shanghai 0 3 * * *")])
    kubectl("delete", "crd", "nodeshards.shard.volcano.sh", "jobflows.flow.volcano.sh")

    checked = Checked(plane, "-o", "json")

    webhooks = {one for one in checked.found if one[2] == "webhook-changed"}
    assert len(webhooks) == 7
    assert checked.found - webhooks == {
        ("Deployment", "volcano-scheduler", "flag-refused"),
        ("ConfigMap", "volcano-scheduler-configmap", "plugin-missing"),
        ("Queue", "ml", "queue-fifo"),
        ("Job", "numa", "numa-policy"),
        ("CronJob", "zoned", "cronjob-refused"),
        ("CustomResourceDefinition", "jobflows.flow.volcano.sh", "definition-missing"),
    }
    assert checked.code == 1
    table = Checked(plane)
    assert table.output.startswith("cannot be switched yet: "), table.output
    assert f"Job {space}/numa" in table.output
    assert "Traceback" not in table.output + table.errors


def a_missing_right_is_named(plane: ControlPlane) -> None:
    """The rest is looked at all the same."""
    plane.kubectl("delete", "clusterrole", ACCOUNT)
    plane.kubectl("create", "clusterrole", ACCOUNT, "--verb=get,list", "--resource=deployments.apps,configmaps")

    checked = Checked(plane, "-o", "json")

    assert ("Deployment", "volcano-scheduler", "flag-refused") in checked.found
    refused = json.loads(checked.output)["notLookedAt"]
    assert any(line.startswith("jobs.batch.volcano.sh") for line in refused)
    assert not any(line.startswith("deployments") for line in refused)
    assert "Traceback" not in checked.errors


def test_a_server_that_cannot_be_reached_is_an_error_of_one_line(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "volcano_py.cli.volcano_py", "migrate", "check", "--master=http://127.0.0.1:9"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "KUBECONFIG": str(tmp_path / "none")},
    )
    assert ran.returncode == 2
    assert ran.stderr.startswith("volcano-py migrate check: ")
    assert len(ran.stderr.splitlines()) == 1


def versions(plane: ControlPlane) -> dict[str, str]:
    """Return the resource versions of the objects that the check looks at."""
    kinds = "deployments,configmaps,queues,podgroups,crds,jobs.batch.volcano.sh,cronjobs.batch.volcano.sh,clusterroles"
    found = json.loads(plane.kubectl("get", kinds, "-A", "-ojson").stdout)["items"]
    return {f"{one['kind']} {one['metadata']['name']}": one["metadata"]["resourceVersion"] for one in found}


def _conf(plugin: str) -> str:
    return f"{SCHEDULER_CONF}  - name: {plugin}\n"
