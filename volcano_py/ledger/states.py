"""The life of an assumed bind or eviction, as a table.

    ASSUMED ──▶ SENT ──▶ ACKNOWLEDGED ──▶ CONFIRMED     the watch shows the pod on the node, or leaving it
       │         │             │
       └─────────┴─────────────┴────────▶ FORGOTTEN     refused, failed, or overtaken by what the watch says

The watch may be faster than the answer to the request, so CONFIRMED can follow any state; an answer that arrives
without a note that the request was sent proves that it was.
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final


class AssumedState(Enum):
    """How far something assumed has come."""

    ASSUMED = "assumed"  # counted, not yet on its way
    SENT = "sent"  # the request is on its way
    ACKNOWLEDGED = "acknowledged"  # the API server said yes
    CONFIRMED = "confirmed"
    FORGOTTEN = "forgotten"


_ENDS: Final = frozenset({AssumedState.CONFIRMED, AssumedState.FORGOTTEN})

TRANSITIONS: Final[Mapping[AssumedState, frozenset[AssumedState]]] = MappingProxyType(
    {
        AssumedState.ASSUMED: frozenset({AssumedState.SENT, AssumedState.ACKNOWLEDGED}) | _ENDS,
        AssumedState.SENT: frozenset({AssumedState.ACKNOWLEDGED}) | _ENDS,
        AssumedState.ACKNOWLEDGED: _ENDS,
        AssumedState.CONFIRMED: frozenset(),
        AssumedState.FORGOTTEN: frozenset(),
    }
)
"""Which state may follow which."""


def is_live(state: AssumedState) -> bool:
    """Say whether something in this state is still waited for."""
    return bool(TRANSITIONS[state])
