"""Owner references that lead back to where they began: nothing collects such objects, and their owner is nobody."""

from collections.abc import Mapping, Sequence

from volcano_py.api.meta import ObjectMeta
from volcano_py.controllers.podgroup.decision import GroupKey, Workload, controller_of


def owner_cycle(kind: str, meta: ObjectMeta, workloads: Mapping[GroupKey, Workload]) -> Sequence[str]:
    """Return the controllers from an object round to one that has been passed, in words; nothing if there is no cycle.

    Workloads that no watch shows end the walk; as each step goes to another object, it is at most as long as there are
    workloads.
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
