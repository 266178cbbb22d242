"""Commands for the controllers: an object of kind Command that names what to do, and with what."""

from volcano_py.client.api import Api, Obj
from volcano_py.kube.resource import COMMANDS, Resource

_QUEUE_COMMANDS = "default"
"""Queues have no namespace, and commands do."""


def send_command(api: Api, kind: Resource, target: Obj, action: str) -> None:
    """Ask the controllers for an action on an object; they take the command away when they begin."""
    metadata = target["metadata"]
    reference = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "name": metadata["name"],
        "uid": metadata.get("uid", ""),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    namespace = metadata.get("namespace") or _QUEUE_COMMANDS
    command = {
        "apiVersion": COMMANDS.api_version,
        "kind": COMMANDS.kind,
        "metadata": {
            "generateName": f"{metadata['name']}-{action.lower()}-",
            "namespace": namespace,
            "ownerReferences": [reference],
        },
        "target": reference,
        "action": action,
    }
    api.create(COMMANDS, command, namespace)
