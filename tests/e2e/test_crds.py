"""The kinds of Volcano as kubectl shows and takes them, on the embedded API server and on a real one.

What values the servers take is in `tests/contract/test_volcano_limits.py`.
"""

from __future__ import annotations

import copy
import json
import re
import secrets
from typing import Any

import pytest

from tests.e2e.kubectl import Kubectl

TEMPLATE = "spec.tasks.template"
GROUPS = {
    "Job": "batch.volcano.sh/v1alpha1",
    "CronJob": "batch.volcano.sh/v1alpha1",
    "JobFlow": "flow.volcano.sh/v1alpha1",
    "JobTemplate": "flow.volcano.sh/v1alpha1",
    "HyperNode": "topology.volcano.sh/v1alpha1",
    "NodeShard": "shard.volcano.sh/v1alpha1",
    "Numatopology": "nodeinfo.volcano.sh/v1alpha1",
    "Command": "bus.volcano.sh/v1alpha1",
    "ColocationConfiguration": "config.volcano.sh/v1alpha1",
}
JOB: dict[str, Any] = {
    "minAvailable": 1,
    "tasks": [
        {
            "name": "worker",
            "replicas": 1,
            "template": {
                "spec": {
                    "containers": [{"name": "main", "image": "busybox:1", "ports": [{"containerPort": 1}]}],
                    "restartPolicy": "Never",
                }
            },
        }
    ],
}


def an_object(kind: str, name: str = "a", **fields: Any) -> dict[str, Any]:
    return {"apiVersion": GROUPS[kind], "kind": kind, "metadata": {"name": name}, **fields}


def vcjob(**spec: Any) -> dict[str, Any]:
    return an_object("Job", spec={**copy.deepcopy(JOB), **spec})


@pytest.mark.parametrize(
    ("field", "said"),
    [
        (f"vcjob.{TEMPLATE}.spec.containers.resources", r"Compute Resources required by this container"),
        (f"vcjob.{TEMPLATE}.spec.containers.resources", r"limits\s+<map\[string\]"),
        (f"vcjob.{TEMPLATE}.spec.affinity.podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution"),
        (f"vcjob.{TEMPLATE}.spec.restartPolicy", "Always, Never, OnFailure"),
        (f"vcjob.{TEMPLATE}.metadata", r"annotations\s+<map\[string\]string>"),
        ("vcjob.spec.tasks", "Pods of one template"),
        ("vcjob.spec.policies.event", r"ENUM: \* .*PodEvicted"),
        ("vcjob.spec.volumes.volumeClaim", r"storageClassName\s+<string>"),
        ("cronvj.spec.jobTemplate.spec.tasks.template.spec.containers.image", "Container image name"),
        ("jf.spec.flows.patch.jobSpec.tasks.template.spec.nodeSelector", r"<map\[string\]string>"),
        ("jt.spec.maxRetry", "How often the job may start"),
        ("commands.target", "uid"),
        ("hn.spec.members.selector", "exactMatch"),
        ("numatopo.spec.cpuDetail", "socket"),
        ("nsh.spec.nodesDesired", r"<\[\]string>"),
        ("colocationconfigurations.spec.memoryQos.highRatio", "slowed down"),
        ("pg.spec.subGroupPolicy", "matchLabelKeys"),
        ("q.spec.dequeueStrategy", "traverse"),
    ],
)
def test_explain_describes_every_kind(kubectl: Kubectl, field: str, said: str) -> None:
    assert re.search(said, " ".join(kubectl("explain", field).split()))


def test_a_job_is_shown_with_the_columns_that_users_know(kubectl: Kubectl) -> None:
    kubectl.apply(vcjob())
    status = {"status": {"state": {"phase": "Running"}, "minAvailable": 1, "running": 2}}
    kubectl("patch", "vj", "a", "--subresource=status", "--type=merge", "-p", json.dumps(status))
    head, row = kubectl.table("vcjob", "-o", "wide")
    assert head == ["NAME", "STATUS", "MINAVAILABLE", "RUNNINGS", "AGE", "QUEUE"]
    assert (row[:4], row[-1]) == (["a", "Running", "1", "2"], "default")
    assert kubectl.table("vcjob")[0] == head[:-1]


@pytest.mark.parametrize(
    ("names", "kind", "fields", "head"),
    [
        (["cronvcjob", "cronvj"], "CronJob", {"spec": {"schedule": "@daily", "jobTemplate": {}}}, ["NAME", "AGE"]),
        (["jf"], "JobFlow", {"spec": {}}, ["NAME", "STATUS", "AGE"]),
        (["jt"], "JobTemplate", {"spec": JOB}, ["NAME", "AGE"]),
        (["hn"], "HyperNode", {"spec": {"tier": 1}}, ["NAME", "TIER", "TIERNAME", "NODECOUNT", "AGE"]),
        (["nsh"], "NodeShard", {"spec": {"nodesDesired": []}}, ["NAME", "AGE"]),
        (["numatopo"], "Numatopology", {}, ["NAME", "AGE"]),
        (["commands"], "Command", {"action": "AbortJob"}, ["NAME", "AGE"]),
        (["colocationconfigurations"], "ColocationConfiguration", {"spec": {}}, ["NAME", "AGE"]),
    ],
)
def test_every_kind_has_its_short_names_and_columns(
    kubectl: Kubectl, names: list[str], kind: str, fields: dict[str, Any], head: list[str]
) -> None:
    made = an_object(kind, f"a-{secrets.token_hex(3)}", **fields)
    kubectl.apply(made)
    try:
        for name in names:
            table = kubectl("get", name, made["metadata"]["name"], "-o", "wide").splitlines()
            assert re.split(r" {2,}", table[0].strip()) == head
    finally:
        kubectl("delete", names[0], made["metadata"]["name"])


@pytest.mark.parametrize(
    ("where", "misspelt"),
    [
        (("spec",), "minAvailible"),
        (("spec", "tasks", 0), "replica"),
        (("spec", "tasks", 0, "template", "spec"), "nodeselector"),
        (("spec", "tasks", 0, "template", "spec", "containers", 0), "resource"),
    ],
)
def test_apply_refuses_a_misspelt_field_of_a_job(kubectl: Kubectl, where: tuple[str | int, ...], misspelt: str) -> None:
    job = vcjob()
    inside: Any = job
    for step in where:
        inside = inside[step]
    inside[misspelt] = "x"
    path = re.sub(r"\.(\d+)", r"[\1]", ".".join(map(str, (*where, misspelt))))
    assert f'unknown field "{path}"' in kubectl.fails("apply", "-f", "-", stdin=job)


def test_a_job_may_have_no_tasks_yet_but_no_empty_list_of_them(kubectl: Kubectl) -> None:
    kubectl.apply(an_object("Job", spec={}))
    assert "should have at least 1 items" in kubectl.fails("apply", "-f", "-", stdin=vcjob(tasks=[]))


def test_a_job_applied_on_the_server_side_keeps_its_template(kubectl: Kubectl) -> None:
    kubectl.apply(vcjob(), "--server-side")
    other = vcjob()
    other["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["image"] = "busybox:2"
    kubectl.apply(other, "--server-side")
    assert kubectl.read("vcjob", "a")["spec"]["tasks"] == other["spec"]["tasks"]


def test_every_kind_is_listed_with_its_group_and_scope(kubectl: Kubectl) -> None:
    said = kubectl("api-resources", "--no-headers").splitlines()
    found = {(row[-1], row[-3], row[-2]) for row in map(str.split, said) if "volcano.sh/" in row[-3]}
    cluster_wide = {"HyperNode", "NodeShard", "Numatopology", "Queue"}
    expected = GROUPS | dict.fromkeys(("PodGroup", "Queue"), "scheduling.volcano.sh/v1beta1")
    assert found == {(kind, group, str(kind not in cluster_wide).lower()) for kind, group in expected.items()}
