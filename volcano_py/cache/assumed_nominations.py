"""Nominations that are decided and that the watch has not shown yet: they count as if they stood on their pods."""

from dataclasses import dataclass
from typing import Final

NOMINATION_PATIENCE_S: Final = 60.0
"""A nomination that no watch event has shown for so long does not count any more: writing it did not help."""


@dataclass(slots=True)
class _Nomination:
    node: str
    shown: str  # what the watch says meanwhile
    deadline: float


class AssumedNominations:
    """Nodes that waiting pods are to be nominated to, by uid; the pods' own records live in the store."""

    def __init__(self) -> None:
        self._assumed: dict[str, _Nomination] = {}

    def __len__(self) -> int:
        return len(self._assumed)

    def assume(self, uid: str, node: str, shown: str, now: float) -> None:
        """Count a node as written on a pod whose present record says ``shown``."""
        known = self._assumed.get(uid)
        self._assumed[uid] = _Nomination(node, known.shown if known else shown, now + NOMINATION_PATIENCE_S)

    def see(self, uid: str, shown: str) -> str:
        """Take what the watch says of a pod; return the node that counts."""
        known = self._assumed.get(uid)
        if known is None:
            return shown
        if known.node == shown:
            del self._assumed[uid]
            return shown
        known.shown = shown
        return known.node

    def end(self, uid: str) -> str | None:
        """Count what the watch says again and return it; None if nothing was assumed of this pod."""
        known = self._assumed.pop(uid, None)
        return None if known is None else known.shown

    def expired(self, now: float) -> list[str]:
        """Return the pods whose nomination should have been seen by now."""
        return [uid for uid, known in self._assumed.items() if known.deadline <= now]
