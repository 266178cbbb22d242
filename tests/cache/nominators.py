"""Pods whose metadata says which programs wrote their nomination, as the API server records it."""

import msgspec

from volcano_py.api.core import Pod


def managed_fields(*programs: str, field: str = "f:nominatedNodeName") -> bytes:
    """Return metadata.managedFields of a pod: these programs wrote the field of its status, others wrote others."""
    entries = [
        {
            "manager": program,
            "operation": "Update",
            "apiVersion": "v1",
            "time": "2026-01-01T00:00:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:status": {field: {}}},
            "subresource": "status",
        }
        for program in programs
    ]
    maker = {"manager": "vc-controller-manager", "fieldsV1": {"f:spec": {"f:containers": {'k:{"name":"main"}': {}}}}}
    kubelet = {"manager": "kubelet", "fieldsV1": {"f:status": {"f:conditions": {".": {}}}}}
    return msgspec.json.encode([maker, *entries, kubelet])


def written_by(pod: Pod, *programs: str) -> Pod:
    """Return a pod whose nomination these programs wrote."""
    metadata = msgspec.structs.replace(pod.metadata, managed_fields=msgspec.Raw(managed_fields(*programs)))
    return msgspec.structs.replace(pod, metadata=metadata)
