"""Nominations that are decided but not yet shown by the watch: they count as if they were written on their pods."""

from dataclasses import dataclass
from typing import Final, NamedTuple

from volcano_py.model.objects import TaskRef

NOMINATION_PATIENCE_S: Final = 60.0
"""An assumed nomination ends this long after it was written, if the watch has not shown it: it had no effect.

One that could not be written ends this long after it was decided.
"""


class Nomination(NamedTuple):
    """The node that a pod is nominated to, and whether this scheduler wrote that."""

    node: str  # "" for none
    ours: bool = True


@dataclass(slots=True)
class _Assumed:
    task: TaskRef
    node: str
    shown: Nomination  # what the watch shows meanwhile
    deadline: float
    written: bool = False


class AssumedNominations:
    """The nodes that waiting pods are nominated to, by uid of the pod; the records of the pods are in the store."""

    def __init__(self) -> None:
        self._assumed: dict[str, _Assumed] = {}

    def __len__(self) -> int:
        return len(self._assumed)

    def assume(self, task: TaskRef, node: str, shown: Nomination, now: float) -> None:
        """Assume that we have nominated a pod to ``node``; ``shown`` is the nomination that counted before."""
        known = self._assumed.get(task.uid)
        deadline = now + NOMINATION_PATIENCE_S
        self._assumed[task.uid] = _Assumed(task, node, known.shown if known else shown, deadline)

    def see(self, uid: str, shown: Nomination) -> Nomination:
        """Take in the nomination that the watch shows; return the one that counts.

        A nomination of another program ends a withdrawal of ours: what we have withdrawn is gone already.
        """
        known = self._assumed.get(uid)
        if known is None:
            return shown
        if known.node == shown.node or not (known.node or shown.ours):
            del self._assumed[uid]
            return shown
        known.shown = shown
        return Nomination(known.node)

    def written(self, uid: str, now: float) -> None:
        """Note that a nomination was written just now."""
        known = self._assumed.get(uid)
        if known is not None:
            known.written, known.deadline = True, now + NOMINATION_PATIENCE_S

    def unwritten(self) -> list[tuple[TaskRef, str]]:
        """Return the pods whose nomination was not written yet, each with its node."""
        return [(known.task, known.node) for known in self._assumed.values() if not known.written]

    def end(self, uid: str) -> Nomination | None:
        """End an assumption and return the nomination that the watch shows; None if nothing was assumed."""
        known = self._assumed.pop(uid, None)
        return None if known is None else known.shown

    def expired(self, now: float) -> list[TaskRef]:
        """Return the pods whose nomination the watch should have shown by now, or that could not be written so long."""
        return [known.task for known in self._assumed.values() if known.deadline <= now]
