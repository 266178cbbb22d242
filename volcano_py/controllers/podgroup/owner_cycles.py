"""Cycles of owner references: such objects are never garbage-collected, and no owner is the topmost one."""

from collections.abc import Mapping, Sequence

from volcano_py.api.meta import ObjectMeta
from volcano_py.controllers.podgroup.decision import GroupKey, Workload, controller_of


def owner_cycle(kind: str, meta: ObjectMeta, workloads: Mapping[GroupKey, Workload]) -> Sequence[str]:
    """Follow the controllers of an object to the first repeated one; return all of them in words, [] without a cycle.

    The search ends at a workload that is not watched. It visits every workload once at most.
    """
    passed = [(meta.uid, f"{kind} {meta.name}")]
    while (owner := controller_of(meta)) is not None:
        passed.append((owner.uid, f"{owner.kind} {owner.name}"))
        if any(owner.uid == uid for uid, _ in passed[:-1]):
            return [words for _, words in passed]
        workload = workloads.get(GroupKey(meta.namespace, owner.uid))
        if workload is None:
            break
        meta = workload.metadata
    return []
