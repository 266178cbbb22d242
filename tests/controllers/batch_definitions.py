"""Permissive definitions of the kinds of jobs, for those that have no file in manifests/crds."""

from typing import Any

from tests.daemon.cluster import CRDS
from volcano_py.apiserver import ApiServer
from volcano_py.kube.resource import COMMANDS, CRON_JOBS, JOB_FLOWS, JOB_TEMPLATES, VCJOBS, Resource

BATCH = (VCJOBS, CRON_JOBS, COMMANDS, JOB_FLOWS, JOB_TEMPLATES)


def serve_batch_definitions(server: ApiServer) -> None:
    """Create a definition for every kind of jobs that the files do not define."""
    for resource in BATCH:
        if not (CRDS / f"{resource.group}_{resource.plural}.yaml").exists():
            server.create(permissive_definition(resource))


def permissive_definition(resource: Resource, *, has_status: bool = True) -> dict[str, Any]:
    """Return a definition that keeps every field."""
    version: dict[str, Any] = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    if has_status:
        version["subresources"] = {"status": {}}
    names = {"kind": resource.kind, "listKind": f"{resource.kind}List", "plural": resource.plural}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": resource.label},
        "spec": {
            "group": resource.group,
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "names": {**names, "singular": resource.kind.lower()},
            "versions": [version],
        },
    }
