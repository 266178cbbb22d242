"""Reads a pod from the API server after an answer was lost: is it bound, free or gone?"""

import msgspec

from volcano_py.kube import errors
from volcano_py.kube.client import ApiClient
from volcano_py.kube.resource import PODS
from volcano_py.model.objects import TaskRef


class _Metadata(msgspec.Struct, rename="camel", gc=False):
    uid: str = ""
    deletion_timestamp: str | None = None


class _Spec(msgspec.Struct, rename="camel", gc=False):
    node_name: str = ""


class _Pod(msgspec.Struct, gc=False):
    metadata: _Metadata
    spec: _Spec = msgspec.field(default_factory=_Spec)


class PodPlace(msgspec.Struct, frozen=True, gc=False):
    """The pod that has a name at present."""

    uid: str
    node: str  # "" for none
    terminating: bool


async def read_place(client: ApiClient, task: TaskRef, timeout_s: float) -> PodPlace | None:
    """Return where the pod of this name is, None if there is none; raise ApiError if it cannot be read."""
    try:
        pod = await client.get(PODS, task.name, _Pod, namespace=task.namespace, timeout_s=timeout_s)
    except errors.NotFound:
        return None
    return PodPlace(pod.metadata.uid, pod.spec.node_name, pod.metadata.deletion_timestamp is not None)


def why_not_there(task: TaskRef, node: str, place: PodPlace | None) -> str:
    """Return why this pod is not bound to this node, "" if it is."""
    if place is None:
        return "the pod is gone"
    if place.uid != task.uid:
        return f"the pod was replaced by another of its name (uid {place.uid})"
    if place.node == node:
        return ""
    if place.node:
        return f"the pod is on node {place.node}"
    return "the pod is terminating" if place.terminating else "the pod is not bound"
