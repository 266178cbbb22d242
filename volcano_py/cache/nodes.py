"""Converts nodes to records.

Volcano's agent sets the annotations ``volcano.sh/oversubscription-cpu`` (millicores) and ``-memory`` (bytes). These
amounts are added to the node's allocatable resources, for every pod (Volcano: NodeInfo, setOversubscription). As in
Volcano, text that is not a number does not count; nor does a number that is negative or too large.
"""

import math
from collections.abc import Mapping
from sys import intern

from volcano_py.api import keys
from volcano_py.api.core import Node
from volcano_py.model.objects import NodeRecord, TaintRecord
from volcano_py.model.pod_request import amounts, read_resource_list

BEING_DELETED = "the node is being deleted"
_MEASURED = (keys.CPU, keys.MEMORY)  # loads are fractions of these
_TOO_MUCH = 2.0**50  # bytes; sums of larger numbers would not be exact
NO_ALLOCATABLE = "status.allocatable is empty"


def node_record(node: Node, closed: str = "") -> NodeRecord:
    """Return the record of a node; raise QuantityError naming the field that cannot be read.

    ``closed`` is a reason outside the node why nothing may be placed there.
    """
    allocatable = amounts(read_resource_list(node.status.allocatable, "status.allocatable"))
    more = _oversubscription(node.metadata.annotations)
    written = {name: node.status.capacity[name] for name in _MEASURED if name in node.status.capacity}
    capacity = amounts(read_resource_list(written, "status.capacity"))
    if not closed and node.metadata.deletion_timestamp is not None:
        closed = BEING_DELETED
    if not closed and not allocatable:
        closed = NO_ALLOCATABLE
    for name, amount in zip(_MEASURED, more, strict=True):
        if amount:
            allocatable[name] = allocatable.get(name, 0.0) + amount
    return NodeRecord(
        name=node.metadata.name,
        allocatable=allocatable,
        labels=node.metadata.labels,
        taints=tuple(sorted(TaintRecord(taint.key, taint.value, taint.effect) for taint in node.spec.taints)),
        unschedulable=node.spec.unschedulable,
        capacity=(capacity.get(keys.CPU, 0.0) + more[0], capacity.get(keys.MEMORY, 0.0) + more[1]),
        oversubscription=more,
        closed=closed,
        images={intern(name): image.size_bytes for image in node.status.images for name in image.names},
    )


def _oversubscription(annotations: Mapping[str, str]) -> tuple[float, float]:
    """Return the oversubscribed cpu (millicores) and memory (bytes) of a node."""
    return _oversubscribed(annotations.get(keys.OVERSUBSCRIPTION_CPU)), _oversubscribed(
        annotations.get(keys.OVERSUBSCRIPTION_MEMORY)
    )


def _oversubscribed(text: str | None) -> float:
    try:
        found = float(text or 0)
    except ValueError:
        return 0.0
    return float(math.floor(found)) if 0 < found < _TOO_MUCH else 0.0


def could_take_more(before: NodeRecord | None, after: NodeRecord) -> bool:
    """Say whether a node may accept a pod now that it refused before.

    A changed label or taint may help one pod and hinder another, so the answer is yes.
    """
    if after.closed:
        return False
    if before is None or before.closed or (before.unschedulable and not after.unschedulable):
        return True
    if before.labels != after.labels or before.taints != after.taints:
        return True
    return any(amount > before.allocatable.get(name, 0.0) for name, amount in after.allocatable.items())


def answers_changed(before: NodeRecord | None, after: NodeRecord) -> bool:
    """Say whether a placement that was decided on the old state of a node must be decided again."""
    if before is None:
        return True
    return (
        bool(after.closed)
        or before.labels != after.labels
        or before.taints != after.taints
        or (after.unschedulable and not before.unschedulable)
    )
