"""Evicted pods of a scenario: how long they terminate, and the pods that replace them."""

from datetime import timedelta

import msgspec

from volcano_py.api.core import Pod, PodStatus
from volcano_py.testing.objects import EPOCH


class Leaving:
    """Terminating pods by namespace and name.

    A pod that is evicted in one cycle is terminating in the next ``grace`` cycles, and gone in the one after them.
    """

    def __init__(self, grace: int) -> None:
        if grace < 0:
            raise ValueError(f"grace is {grace}: a pod terminates for 0 or more cycles")
        self._grace = grace
        self._left: dict[tuple[str, str], int] = {}  # pod -> cycles that still see it

    def __len__(self) -> int:
        return len(self._left)

    def begin(self, pod: Pod) -> Pod:
        """Start the termination of a pod; return its new state."""
        self._left[pod.metadata.namespace, pod.metadata.name] = self._grace
        return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, deletion_timestamp=EPOCH))

    def gone(self) -> list[tuple[str, str]]:
        """Return the pods that the next cycle does not see any more."""
        gone = [key for key, left in self._left.items() if not left]
        self._left = {key: left - 1 for key, left in self._left.items() if left}
        return gone


def made_again(pod: Pod, number: int) -> Pod:
    """Return the pod by which its owner replaces this one: same name and spec, another uid, no node, no status."""
    metadata = msgspec.structs.replace(
        pod.metadata,
        uid=f"{pod.metadata.uid.partition('+')[0]}+{number}",
        creation_timestamp=EPOCH + timedelta(seconds=number),
        deletion_timestamp=None,
    )
    spec = msgspec.structs.replace(pod.spec, node_name="")
    return msgspec.structs.replace(pod, metadata=metadata, spec=spec, status=PodStatus(phase="Pending"))
