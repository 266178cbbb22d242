"""The jobs of a flow: their names, the labels that mark them, and the objects that are created."""

import hashlib
from typing import Any, Final

from volcano_py.api import keys
from volcano_py.api.flow import JobFlow
from volcano_py.api.meta import ObjectMeta
from volcano_py.controllers.writes import Create
from volcano_py.kube.resource import JOB_FLOWS, VCJOBS

_LONGEST_LABEL: Final = 63  # characters of a label's value that the API server accepts
_HASH: Final = 8


def child_name(flow: str, step: str) -> str:
    """Return the name of the job of a step."""
    return f"{flow}-{step}"


def mark(namespace: str, name: str) -> str:
    """Return what the annotations of a job say about the flow or template that it comes from."""
    return f"{namespace}.{name}"


def label(text: str) -> str:
    """Return a mark as the value of a label: one that is too long is cut, and a hash of the whole is added."""
    if len(text) <= _LONGEST_LABEL:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:_HASH]
    return f"{text[: _LONGEST_LABEL - _HASH - 1].rstrip('.-_')}-{digest}"


def marked(meta: ObjectMeta, key: str) -> str:
    """Return the namespace and name that an annotation of a job names, else its label, as ``NAMESPACE/NAME``.

    A namespace has no dot, so the first dot ends it.
    """
    namespace, _, name = (meta.annotations.get(key) or meta.labels.get(key, "")).partition(".")
    return f"{namespace}/{name}" if name else ""


def child(flow: JobFlow, step: str, spec: dict[str, Any]) -> Create:
    """Return the write that creates the job of a step."""
    meta = flow.metadata
    marks = {
        keys.BY_JOB_TEMPLATE: mark(meta.namespace, step),
        keys.BY_JOB_FLOW: mark(meta.namespace, meta.name),
    }
    owner = {
        "apiVersion": JOB_FLOWS.api_version,
        "kind": JOB_FLOWS.kind,
        "name": meta.name,
        "uid": meta.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    body = {
        "apiVersion": VCJOBS.api_version,
        "kind": VCJOBS.kind,
        "metadata": {
            "name": child_name(meta.name, step),
            "namespace": meta.namespace,
            "labels": {key: label(text) for key, text in marks.items()},
            "annotations": marks,
            "ownerReferences": [owner],
        },
        "spec": spec,
    }
    return Create(VCJOBS, meta.namespace, body)
