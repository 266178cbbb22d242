"""The controller manager uses exactly the rights that manifests/rbac grants it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from tests.controllers.hypernode.test_controller import settings
from tests.controllers.jobflow.flows import a_step
from tests.controllers.jobflow.test_controller import job as job_of_flow
from tests.controllers.jobflow.test_controller import put_flow, put_templates
from tests.controllers.managing import (
    GROUPS,
    controllers,
    group,
    group_of,
    pod_spec,
    put_pod,
    put_queue,
    put_workload,
    state,
)
from tests.controllers.queue.test_commands import put_command as put_queue_command
from tests.controllers.vcjobs import active, ago, put_cron_job, set_status
from tests.daemon.cluster import event_reasons
from tests.effects.waiting import until
from volcano_py.api.timestamp import wire_time
from volcano_py.apiserver import ApiServer
from volcano_py.controllers.manager import ControllerManager
from volcano_py.controllers.options import LEASE as DEFAULT_LEASE
from volcano_py.controllers.podgroup.names import GROUP_MIN_MEMBER, LWS_NAME, LWS_WORKER_INDEX, QUEUE_NAME
from volcano_py.kube.client import ApiClient, PatchType
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.resource import COMMANDS, HYPER_NODES, NODES, PODGROUPS, PODS, REPLICA_SETS, VCJOBS
from volcano_py.testing import a_group, a_namespace, a_node, manifest

RULES = Path(__file__).parents[2] / "manifests" / "rbac" / "controllers.yaml"
LEASE = replace(DEFAULT_LEASE, retry_period_s=0.1)
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
ASKED_BY_ADMISSION = {
    ("update", "pods/finalizers"),
    ("update", "jobs.batch.volcano.sh/finalizers"),
    ("update", "cronjobs.batch.volcano.sh/finalizers"),
    ("update", "jobflows.flow.volcano.sh/finalizers"),
}
JOBS = VCJOBS.label


def granted() -> set[tuple[str, str]]:
    """Return verb and resource (NAME[.GROUP][/SUBRESOURCE]) of every right."""
    documents = yaml.safe_load_all(RULES.read_text())
    roles = [document for document in documents if document["kind"] in ("ClusterRole", "Role")]
    rights = set()
    for rule in (rule for role in roles for rule in role["rules"]):
        for api_group in rule["apiGroups"]:
            for resource in rule["resources"]:
                name, slash, subresource = resource.partition("/")
                full = (f"{name}.{api_group}" if api_group else name) + slash + subresource
                rights |= {(verb, full) for verb in rule["verbs"]}
    return rights


def used(manager: ControllerManager) -> set[tuple[str, str]]:
    """Return verb and resource of every request that the manager has made."""
    samples = (sample for metric in manager.registry.collect() for sample in metric.samples)
    return {
        (sample.labels["verb"], sample.labels["resource"])
        for sample in samples
        if sample.name == "volcano_py_api_requests_total"
    }


def put_foreign_workload(server: ApiServer, kind: str, name: str) -> dict[str, Any]:
    """Create a workload whose template names another scheduler: its pods are made ours on admission."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {**pod_spec(), "schedulerName": "default-scheduler"}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    meta = {"name": name, "namespace": "default"}
    return server.create({"apiVersion": "apps/v1", "kind": kind, "metadata": meta, "spec": spec})


def put_replication_controller(server: ApiServer) -> dict[str, Any]:
    labels = {"app": "old"}
    template = {"metadata": {"labels": labels}, "spec": {**pod_spec(), "restartPolicy": "Always"}}
    body = {"kind": "ReplicationController", "metadata": {"name": "old", "namespace": "default"}}
    return server.create({**body, "apiVersion": "v1", "spec": {"selector": labels, "template": template}})


async def test_every_right_is_used_and_no_other(server: ApiServer) -> None:
    server.create(manifest(a_namespace(DEFAULT_LEASE.namespace)))
    async with ApiClient(Credentials(server.url)) as user, controllers(server.url, attempts=2, lease=LEASE) as manager:
        for kind in ("ReplicaSet", "StatefulSet"):
            put_pod(server, f"{kind.lower()}-0", put_foreign_workload(server, kind, kind.lower()))
        for kind in ("DaemonSet", "Job"):
            put_pod(server, f"{kind.lower()}-0", put_workload(server, kind, kind.lower()))
        put_pod(server, "old-0", put_replication_controller(server))
        put_pod(server, "llm-0", labels={LWS_NAME: "llm", LWS_WORKER_INDEX: "0"})
        await until(lambda: state(server, "default") == "Open")
        put_queue_command(server, "CloseQueue", "default")
        put_templates(server, "a")
        put_flow(server, a_step("a"), policy="delete")
        await until(lambda: job_of_flow(server, "a"))
        for phase in ("Running", "Completed"):
            body = {"status": {"state": {"phase": phase}}}
            await user.patch(VCJOBS, "f-a", body, dict, namespace="default", subresource="status")
        web = put_workload(server, "ReplicaSet", "web")
        put_pod(server, "web-0", web)
        await until(lambda: group_of(server, "web-0"))
        for body in ({"metadata": {"annotations": {GROUP_MIN_MEMBER: "2"}}}, {"spec": {"replicas": 0}}):
            await user.patch(REPLICA_SETS, "web", body, dict, namespace="default")
            await until(lambda minimum=2 if "metadata" in body else None: _minimum(server, web) == minimum)
        wrong = put_pod(server, "wrong", annotations={QUEUE_NAME: "No Queue"})
        await until(lambda: "FailedPodGroup" in event_reasons(server, "Pod", "wrong"))
        body = {"metadata": {"labels": {"tried": "again"}}}
        await user.patch(PODS, wrong["metadata"]["name"], body, dict, namespace="default")
        await run_jobs(server, user)
        await run_cron_jobs(server, user)
        await find_hyper_nodes(server, user)

        await until(lambda: granted() - ASKED_BY_ADMISSION <= used(manager))

        assert used(manager) == granted() - ASKED_BY_ADMISSION


async def run_jobs(server: ApiServer, user: ApiClient) -> None:
    """Have a job run, grow and end, and let others meet objects that exist already."""
    job = put_job(
        server, "train", plugins={"svc": [], "ssh": []}, volumes=[{"mountPath": "/data", "volumeClaim": CLAIM}]
    )
    await enqueued(server, user, job)
    await until(lambda: server.get("pods", "train-worker-0", "default"))
    body = [{"op": "replace", "path": "/spec/tasks/0/replicas", "value": 2}]
    await user.patch(VCJOBS, "train", body, dict, kind=PatchType.JSON, namespace="default")
    await until(lambda: server.get("pods", "train-worker-1", "default"))
    put_command(server, "train", job["metadata"]["uid"])
    put_command(server, "nobody", "uid-nobody")
    await until(lambda: phase(server, "train") == "Terminated" and not server.list(COMMANDS.label))

    put_pod(server, "blocked-worker-0")
    blocked = put_job(server, "blocked")
    await enqueued(server, user, blocked)
    await until(lambda: "FailedCreate" in event_reasons(server, "Job", "blocked"))

    late = put_job(server, "late", queue="later")
    server.create(manifest(a_group(f"late-{late['metadata']['uid']}")))
    put_queue(server, "later")


async def run_cron_jobs(server: ApiServer, user: ApiClient) -> None:
    """Have a cron job look for a job that is gone, create one and delete it when it has ended."""
    put_cron_job(server, "hourly", "@every 1h", failedJobsHistoryLimit=0)
    gone = {"name": "hourly-1", "namespace": "default", "uid": "gone"}
    await set_status(user, "hourly", lastScheduleTime=wire_time(ago(3600)), active=[gone])
    await until(lambda: active(server, "hourly") not in ([], ["hourly-1"]))
    (name,) = active(server, "hourly")
    put_command(server, name, server.get(JOBS, name, "default")["metadata"]["uid"])
    await until(lambda: server.get(JOBS, name, "default") is None)


async def find_hyper_nodes(server: ApiServer, user: ApiClient) -> None:
    """Have HyperNodes found, and one of them replaced when its node moves to another rack."""
    server.create(manifest(a_node("n", labels={"rack": "r1", "spine": "s"})))
    server.create(settings("spine", "rack", "kubernetes.io/hostname"))
    await until(lambda: len(server.list(HYPER_NODES.label)) == 2)
    await user.patch(NODES, "n", {"metadata": {"labels": {"rack": "r2"}}}, dict)

    def racks() -> set[str | None]:
        return {one["metadata"]["labels"].get("rack") for one in server.list(HYPER_NODES.label)}

    await until(lambda: racks() == {"r2", None})


async def enqueued(server: ApiServer, user: ApiClient, job: dict[str, Any]) -> None:
    """Wait for the PodGroup of a job, and let it into its queue, as the scheduler does."""
    name = f"{job['metadata']['name']}-{job['metadata']['uid']}"
    await until(lambda: server.get(GROUPS, name, "default"))
    await user.patch(PODGROUPS, name, {"status": {"phase": "Inqueue"}}, dict, namespace="default")


def put_job(server: ApiServer, name: str, **spec: Any) -> dict[str, Any]:
    """Create a job with one task of one pod."""
    task = {"name": "worker", "replicas": 1, "template": {"spec": pod_spec()}}
    meta = {"name": name, "namespace": "default"}
    return server.create(
        {"apiVersion": VCJOBS.api_version, "kind": "Job", "metadata": meta, "spec": {"tasks": [task], **spec}}
    )


def put_command(server: ApiServer, job: str, uid: str) -> None:
    """Ask for the end of a job."""
    target = {"apiVersion": VCJOBS.api_version, "kind": "Job", "name": job, "uid": uid}
    meta = {"name": f"end-{job}", "namespace": "default"}
    body = {"metadata": meta, "action": "TerminateJob", "target": target}
    server.create({"apiVersion": COMMANDS.api_version, "kind": "Command", **body})


def phase(server: ApiServer, name: str) -> str:
    found = server.get(JOBS, name, "default")
    return "" if found is None else str(found.get("status", {}).get("state", {}).get("phase", ""))


def _minimum(server: ApiServer, owner: dict[str, Any]) -> int | None:
    found = group(server, owner)
    return None if found is None else int(found["spec"]["minMember"])
