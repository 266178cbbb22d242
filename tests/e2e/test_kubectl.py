"""The same expectations hold for a real kubectl on the embedded API server and on a real one."""

from __future__ import annotations

import json
import re
import secrets
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane.install import ALWAYS_CONFIGURED, WEBHOOK_CONFIGURATIONS, write_kustomization
from tests.controlplane.waiting import wait_until
from tests.e2e.kubectl import Kubectl, Run, as_yaml, config, group, pod
from volcano_py.testing import a_queue, manifest

# get


def test_get_shows_pods_as_users_know_them(kubectl: Kubectl, node: str) -> None:
    kubectl.apply(pod(nodeName=node))
    kubectl("wait", "--for=condition=Ready", "pod/a", "--timeout=30s")
    head, row = kubectl.table("po")
    assert head == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert row[:4] == ["a", "1/1", "Running", "0"]
    head, row = kubectl.table("pods", "-o", "wide")
    assert head[5:] == ["IP", "NODE", "NOMINATED NODE", "READINESS GATES"]
    assert row[6] == node


def test_get_shows_nodes_with_state_and_roles(kubectl: Kubectl, node: str) -> None:
    head, row = kubectl.table("no", node)
    assert head[:4] == ["NAME", "STATUS", "ROLES", "AGE"]
    assert row[:3] == [node, "Ready", "worker"]
    kubectl("cordon", node)
    assert kubectl.table("node", node)[1][1] == "Ready,SchedulingDisabled"
    kubectl("uncordon", node)


def test_get_shows_custom_resources_with_their_columns(kubectl: Kubectl) -> None:
    kubectl.apply(group())
    head, row = kubectl.table("pg", "-o", "wide")
    assert head == ["NAME", "STATUS", "MINMEMBER", "RUNNINGS", "AGE", "QUEUE"]
    assert (row[0], row[1], row[-1]) == ("gang", "3", "default")


@pytest.mark.parametrize(
    ("flags", "names"),
    [
        pytest.param(["-l", "app=a"], ["a"], id="labels"),
        pytest.param(["-l", "app in (a,b),tier!=web"], ["a"], id="set-based"),
        pytest.param(["--field-selector", "metadata.name=b"], ["b"], id="fields"),
        pytest.param(["--field-selector", "status.phase=Pending"], ["a", "b"], id="phase"),
        pytest.param(["--sort-by", "{.metadata.name}"], ["a", "b"], id="sorted"),
    ],
)
def test_get_selects(kubectl: Kubectl, flags: list[str], names: list[str]) -> None:
    kubectl.apply([pod("a"), pod("b", {"app": "b", "tier": "web"})])
    assert [row[0] for row in kubectl.table("pods", *flags)[1:]] == names


def test_get_writes_names_yaml_and_jsonpath(kubectl: Kubectl) -> None:
    kubectl.apply(config())
    assert kubectl("get", "cm", "a", "-o", "name") == "configmap/a\n"
    assert yaml.safe_load(kubectl("get", "cm", "a", "-o", "yaml"))["data"] == {"key": "value"}
    assert kubectl("get", "cm", "a", "-o", "jsonpath={.data.key}") == "value"
    assert kubectl("get", "cm", "a", "-o", "custom-columns=K:.data.key").split() == ["K", "value"]


def test_get_looks_into_every_namespace(kubectl: Kubectl) -> None:
    kubectl.apply(config())
    rows = kubectl.table("cm", "-A", "--field-selector", f"metadata.namespace={kubectl.namespace},metadata.name=a")
    assert rows[0][:2] == ["NAMESPACE", "NAME"]
    assert rows[1][:2] == [kubectl.namespace, "a"]


def test_get_pages_through_long_lists(kubectl: Kubectl) -> None:
    kubectl.apply([config(f"c{i}") for i in range(7)])
    assert len(kubectl.table("cm", "--chunk-size=2", "-l", "!none", "--no-headers")) >= 7


def test_get_follows_changes(kubectl: Kubectl) -> None:
    kubectl.apply(config())
    lines = _watched(kubectl, "get", "cm", "a", "-w", "--output-watch-events")
    assert lines[0].split()[:3] == ["EVENT", "NAME", "DATA"]
    assert [line.split()[:3] for line in lines[1:]] == [["ADDED", "a", "1"], ["MODIFIED", "a", "2"]]


def _watched(kubectl: Kubectl, *arguments: str) -> list[str]:
    """The output of a watch while its object changes; the watch is ended afterwards."""
    patch = json.dumps({"data": {"more": "1"}})

    def change() -> None:
        time.sleep(1.0)  # kubectl does not report when its watch is open
        kubectl("patch", "cm", "a", "--type=merge", "-p", patch)

    worker = threading.Thread(target=change)
    worker.start()
    ran = kubectl.run("-n", kubectl.namespace, *arguments, "--request-timeout=3s")
    worker.join()
    return ran.stdout.splitlines()


def test_a_missing_name_is_reported(kubectl: Kubectl) -> None:
    assert kubectl.fails("get", "pod", "nobody") == 'Error from server (NotFound): pods "nobody" not found\n'
    assert "the server doesn't have a resource type" in kubectl.fails("get", "nonsense")


# describe


def test_describe_shows_a_pod_with_its_events(kubectl: Kubectl, node: str) -> None:
    kubectl.apply(pod())
    uid = kubectl.read("pod", "a")["metadata"]["uid"]
    about = {"kind": "Pod", "namespace": kubectl.namespace, "name": "a", "uid": uid, "apiVersion": "v1"}
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "a.1"},
        "involvedObject": about,
        "reason": "FailedScheduling",
        "message": "no room",
        "type": "Warning",
        "source": {"component": "volcano"},
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "count": 1,
    }
    kubectl("create", "-f", "-", stdin=event)
    said = kubectl("describe", "pod", "a")
    assert re.search(r"Warning +FailedScheduling +\S+ +volcano +no room", said)
    assert kubectl.table("events")[1][1:] == ["Warning", "FailedScheduling", "pod/a", "no room"]
    assert re.search(r"cpu: +4\n", kubectl("describe", "node", node))


def test_describe_shows_custom_resources(kubectl: Kubectl) -> None:
    kubectl.apply(group())
    assert re.search(r"Min Member: +3", kubectl("describe", "podgroup", "gang"))


# create, apply, patch, delete


def test_apply_creates_configures_and_leaves_alone(kubectl: Kubectl) -> None:
    assert kubectl.apply(config(a="1", b="2")) == "configmap/a created"
    assert kubectl.apply(config(a="1", b="2")) == "configmap/a unchanged"
    assert kubectl.apply(config(a="3")) == "configmap/a configured"
    assert kubectl.read("cm", "a")["data"] == {"a": "3"}


def test_apply_keeps_what_others_set(kubectl: Kubectl) -> None:
    kubectl.apply(pod())
    kubectl("label", "pod", "a", "other=1")
    kubectl.apply({**pod(), "metadata": {"name": "a", "labels": {"app": "b"}}})
    assert kubectl.read("pod", "a")["metadata"]["labels"] == {"app": "b", "other": "1"}


def test_apply_merges_custom_resources(kubectl: Kubectl) -> None:
    assert kubectl.apply(group()) == "podgroup.scheduling.volcano.sh/gang created"
    assert kubectl.apply(group(members=4)) == "podgroup.scheduling.volcano.sh/gang configured"
    assert kubectl.read("pg", "gang")["spec"]["minMember"] == 4


def test_apply_refuses_unknown_fields_and_kinds(kubectl: Kubectl) -> None:
    wrong = group()
    wrong["spec"]["minMembers"] = 3
    assert 'unknown field "spec.minMembers"' in kubectl.fails("apply", "-f", "-", stdin=wrong)
    wrong = pod()
    wrong["spec"]["schedulerNam"] = "volcano"
    assert 'unknown field "spec.schedulerNam"' in kubectl.fails("apply", "-f", "-", stdin=wrong)
    wrong = {"apiVersion": "training.volcano.sh/v1alpha1", "kind": "HyperJob", "metadata": {"name": "a"}}
    assert 'no matches for kind "HyperJob"' in kubectl.fails("apply", "-f", "-", stdin=wrong)


def test_apply_on_the_server_side_knows_owners(kubectl: Kubectl) -> None:
    assert kubectl.apply(config(a="1"), "--server-side") == "configmap/a serverside-applied"
    complaint = kubectl.fails("apply", "--server-side", "--field-manager=other", "-f", "-", stdin=config(a="2"))
    assert 'Apply failed with 1 conflict: conflict with "kubectl": .data.a' in complaint
    kubectl.apply(config(a="2"), "--server-side", "--field-manager=other", "--force-conflicts")
    assert kubectl.read("cm", "a")["data"] == {"a": "2"}
    managers = kubectl.read("cm", "a", "--show-managed-fields")["metadata"]["managedFields"]
    assert [entry["manager"] for entry in managers] == ["other"]


def test_apply_may_change_over_to_the_server_side(kubectl: Kubectl) -> None:
    kubectl.apply(config(a="1", b="1"))
    assert kubectl.apply(config(a="2"), "--server-side") == "configmap/a serverside-applied"
    assert kubectl.read("cm", "a")["data"]["a"] == "2"


def test_apply_can_run_dry(kubectl: Kubectl) -> None:
    assert kubectl.apply(config(), "--dry-run=server") == "configmap/a created (server dry run)"
    assert "+  key: value" in kubectl.run("-n", kubectl.namespace, "diff", "-f", "-", stdin=as_yaml(config())).stdout
    assert "NotFound" in kubectl.fails("get", "cm", "a")


def test_create_makes_objects_from_flags(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "c", "--from-literal=k=v")
    kubectl("create", "secret", "generic", "s", "--from-literal=k=v")
    kubectl("create", "serviceaccount", "robot")
    kubectl("create", "role", "reader", "--verb=get", "--resource=pods")
    kubectl("create", "rolebinding", "reads", "--role=reader", f"--serviceaccount={kubectl.namespace}:robot")
    kubectl("create", "deployment", "web", "--image=x", "--replicas=2")
    kubectl("create", "quota", "q", "--hard=pods=3")
    assert kubectl.read("secret", "s")["data"] == {"k": "dg=="}
    assert kubectl.table("rolebinding", "reads")[1][1] == "Role/reader"
    assert kubectl.table("deploy", "web")[1][1] in ("0/2", "1/2", "2/2")
    already = kubectl.fails("create", "configmap", "c")
    assert 'error: failed to create configmap: configmaps "c" already exists' in already


@pytest.mark.parametrize(
    ("kind", "patch"),
    [
        pytest.param("merge", {"metadata": {"labels": {"app": None, "new": "1"}}}, id="merge"),
        pytest.param(
            "json",
            [
                {"op": "remove", "path": "/metadata/labels/app"},
                {"op": "add", "path": "/metadata/labels/new", "value": "1"},
            ],
            id="json",
        ),
        pytest.param("strategic", {"metadata": {"labels": {"$patch": "replace", "new": "1"}}}, id="strategic"),
    ],
)
def test_patch_in_all_its_kinds(kubectl: Kubectl, kind: str, patch: Any) -> None:
    kubectl.apply(pod())
    kubectl("patch", "pod", "a", f"--type={kind}", "-p", json.dumps(patch))
    assert kubectl.read("pod", "a")["metadata"]["labels"] == {"new": "1"}


def test_a_strategic_patch_merges_containers_by_name(kubectl: Kubectl) -> None:
    kubectl.apply(pod())
    patch = {"spec": {"containers": [{"name": "main", "image": "busybox:2"}]}}
    kubectl("patch", "pod", "a", "-p", json.dumps(patch))
    assert [item["image"] for item in kubectl.read("pod", "a")["spec"]["containers"]] == ["busybox:2"]
    kubectl("set", "image", "pod/a", "main=busybox:3")
    assert kubectl.read("pod", "a")["spec"]["containers"][0]["image"] == "busybox:3"


def test_patch_reaches_the_status(kubectl: Kubectl) -> None:
    name = f"q-{secrets.token_hex(3)}"
    kubectl.apply(manifest(a_queue(name)))
    kubectl(
        "patch", "queue", name, "--subresource=status", "--type=merge", "-p", json.dumps({"status": {"state": "Open"}})
    )
    assert kubectl.read("queue", name)["status"]["state"] == "Open"
    kubectl("delete", "queue", name)


def test_labels_and_annotations_come_and_go(kubectl: Kubectl) -> None:
    kubectl.apply(config())
    kubectl("label", "cm", "a", "x=1")
    kubectl("annotate", "cm", "a", "note=hello")
    assert kubectl("get", "cm", "-l", "x=1", "-o", "name") == "configmap/a\n"
    assert "'x' already has a value (1), and --overwrite is false" in kubectl.fails("label", "cm", "a", "x=2")
    kubectl("label", "cm", "a", "x-")
    assert "labels" not in kubectl.read("cm", "a")["metadata"]


def test_replace_puts_a_new_object_in_place(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=config())
    kubectl("replace", "-f", "-", stdin=config(other="1"))
    assert kubectl.read("cm", "a")["data"] == {"other": "1"}


def test_delete_waits_until_a_pod_is_gone(kubectl: Kubectl, node: str) -> None:
    kubectl.apply(pod(nodeName=node))
    kubectl("wait", "--for=condition=Ready", "pod/a", "--timeout=30s")
    kubectl("delete", "pod", "a", "--timeout=30s")
    assert "NotFound" in kubectl.fails("get", "pod", "a")


def test_delete_by_force_is_immediate(kubectl: Kubectl, node: str) -> None:
    kubectl.apply([pod("a", nodeName=node), pod("b")])
    kubectl("delete", "pod", "a", "--grace-period=0", "--force")
    kubectl("delete", "pods", "-l", "app=b", "--now")
    assert kubectl("get", "pods", "-o", "name") == ""


@pytest.mark.parametrize(("cascade", "left"), [("background", ""), ("foreground", ""), ("orphan", "configmap/part\n")])
def test_delete_takes_dependents_along_or_leaves_them(kubectl: Kubectl, cascade: str, left: str) -> None:
    kubectl.apply(config("whole"))
    uid = kubectl.read("cm", "whole")["metadata"]["uid"]
    part = config("part")
    part["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "whole", "uid": uid}]
    kubectl.apply(part)
    kubectl("delete", "cm", "whole", f"--cascade={cascade}")

    def rest() -> bool:
        return kubectl("get", "cm", "-o", "name", "--field-selector", "metadata.name=part") == left

    wait_until("what is left", rest, 30.0)


def test_wait_ends_when_a_field_has_its_value(kubectl: Kubectl) -> None:
    kubectl.apply(group())
    patch = json.dumps({"status": {"phase": "Running"}})
    kubectl("patch", "pg", "gang", "--type=merge", "-p", patch)
    kubectl("wait", "pg/gang", "--for=jsonpath={.status.phase}=Running", "--timeout=10s")
    assert "timed out" in kubectl.fails("wait", "pg/gang", "--for=jsonpath={.status.phase}=Lost", "--timeout=0.2s")


def test_scale_changes_the_number_of_replicas(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=x")
    kubectl("scale", "deployment", "web", "--replicas=0", "--current-replicas=1")
    assert kubectl.read("deploy", "web")["spec"]["replicas"] == 0


# What the server says about itself


def test_api_resources_know_short_names_and_scope(kubectl: Kubectl) -> None:
    rows = {line.split()[0]: line.split() for line in kubectl("api-resources").splitlines()}
    assert rows["pods"][1:] == ["po", "v1", "true", "Pod"]
    assert rows["podgroups"][-3:] == ["scheduling.volcano.sh/v1beta1", "true", "PodGroup"]
    assert rows["nodes"][-2:] == ["false", "Node"]


def test_the_server_names_its_versions(kubectl: Kubectl) -> None:
    assert {"v1", "apps/v1", "scheduling.volcano.sh/v1beta1"} <= set(kubectl("api-versions").splitlines())
    assert json.loads(kubectl("version", "-o", "json"))["serverVersion"]["minor"].startswith("36")
    assert "is running at" in kubectl("cluster-info")


def test_explain_knows_custom_resources(kubectl: Kubectl) -> None:
    assert "minMember\t<integer>" in kubectl("explain", "podgroup.spec")
    assert "FIELD: minMember <integer>" in kubectl("explain", "podgroup.spec.minMember")


def test_explain_knows_fields_of_built_in_kinds(kubectl: Kubectl) -> None:
    assert re.search(r"FIELD: schedulerName <string>", kubectl("explain", "pod.spec.schedulerName"))


def test_the_manifests_apply_as_a_whole_and_again(embedded: Run, tmp_path: Path) -> None:
    in_cel = "ValidatingAdmissionPolicy(Binding)?"  # and a webhook has a condition in it; this server evaluates none
    write_kustomization(tmp_path, without=f"{WEBHOOK_CONFIGURATIONS}|{in_cel}")
    first = embedded("apply", "-k", str(tmp_path))
    assert first.returncode == 0, first.stderr
    again = embedded("apply", "-k", str(tmp_path))
    changed = [line for line in again.stdout.splitlines() if not line.endswith("unchanged")]
    assert [line for line in changed if not line.startswith(ALWAYS_CONFIGURED)] == []


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        pytest.param(["logs", "a"], "nothing to read logs from", id="logs"),
        pytest.param(["exec", "a", "--", "ls"], "nothing to run a command in", id="exec"),
        pytest.param(["attach", "a"], "nothing to attach to", id="attach"),
        pytest.param(["debug", "a", "--image=x"], "nothing to debug", id="debug"),
        pytest.param(["create", "token", "default"], "issues no tokens", id="token"),
        pytest.param(["top", "pods"], "Metrics API not available", id="top"),
    ],
)
def test_requests_that_are_not_served_say_why(embedded: Run, arguments: list[str], hint: str) -> None:
    namespace = f"kubectl-{secrets.token_hex(4)}"
    kubectl = Kubectl(embedded, namespace)
    kubectl("create", "namespace", namespace)
    kubectl.apply(pod())
    assert hint in kubectl.fails(*arguments)
