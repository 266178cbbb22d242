"""The objects that the plugins svc and ssh of Volcano create for a job."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

from tests.migration.volcano_job_kinds import Obj, owner


def plugin_objects(job: Obj) -> Iterator[Obj]:
    """Yield ConfigMap, Service, NetworkPolicy and Secret of a job."""
    name, spec = job["metadata"]["name"], job["spec"]
    plugins = spec.get("plugins") or {}
    labels = {"volcano.sh/job-name": name, "volcano.sh/job-namespace": job["metadata"]["namespace"]}
    if "svc" in plugins:
        data = {}
        for task in spec["tasks"]:
            key = task["name"].replace("-", "_")
            hosts = [f"{name}-{task['name']}-{index}.{name}" for index in range(task["replicas"])]
            data |= {f"{key}.host": "\n".join(hosts), f"VC_{key.upper()}_HOSTS": ",".join(hosts)}
            data[f"VC_{key.upper()}_NUM"] = str(len(hosts))
        yield _owned(job, "v1", "ConfigMap", f"{name}-svc", data=data)
        service = {"clusterIP": "None", "selector": labels, "publishNotReadyAddresses": False}
        yield _owned(job, "v1", "Service", name, spec=service)
        peers = [{"podSelector": {"matchLabels": labels}}]
        policy = {"podSelector": {"matchLabels": labels}, "policyTypes": ["Ingress"], "ingress": [{"from": peers}]}
        yield _owned(job, "networking.k8s.io/v1", "NetworkPolicy", name, spec=policy)
    if "ssh" in plugins:
        lines = ["StrictHostKeyChecking no", "UserKnownHostsFile /dev/null"]
        for task in spec["tasks"]:
            for index in range(task["replicas"]):
                host = f"{name}-{task['name']}-{index}"
                lines += [f"Host {host}", f"  HostName {host}.{name}", "  Port 22"]
        texts = {"id_rsa": "private", "id_rsa.pub": "public", "authorized_keys": "public"}
        texts["config"] = "\n".join([*lines, ""])
        data = {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}
        yield _owned(job, "v1", "Secret", f"{name}-ssh", type="Opaque", data=data)


def _owned(job: Obj, version: str, kind: str, name: str, **fields: Any) -> Obj:
    found = {**_meta(job, name), "ownerReferences": [owner(job)]}
    return {"apiVersion": version, "kind": kind, "metadata": found, **fields}


def _meta(job: Obj, name: str) -> Obj:
    return {"name": name, "namespace": job["metadata"]["namespace"]}
