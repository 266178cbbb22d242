"""The states of an assumed bind or eviction, as a table.

    ASSUMED ──▶ SENT ──▶ ACKNOWLEDGED ──▶ CONFIRMED     the watch shows the pod on the node, or leaving it
       │         │             │
       └─────────┴─────────────┴────────▶ FORGOTTEN     refused, failed, or overtaken by what the watch says

The watch may be faster than the answer to the request, so CONFIRMED can follow any live state. An answer proves that
the request was sent, so ACKNOWLEDGED can follow ASSUMED.
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final


class AssumedState(Enum):
    """The state of an assumed bind or eviction."""

    ASSUMED = "assumed"  # counted, not yet on its way
    SENT = "sent"  # the request is on its way
    ACKNOWLEDGED = "acknowledged"  # the API server accepted it
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
    """Say whether an entry in this state still waits for its confirmation."""
    return bool(TRANSITIONS[state])
