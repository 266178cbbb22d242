"""The life of an assumed bind, as a table.

    ASSUMED ──▶ SENT ──▶ ACKNOWLEDGED ──▶ CONFIRMED     the watch shows the pod on the node
       │         │             │
       └─────────┴─────────────┴────────▶ FORGOTTEN     refused, failed, or overtaken by what the watch says

The watch may be faster than the answer to the request, so CONFIRMED can follow any state; an answer that arrives
without a note that the request was sent proves that it was.
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final


class BindState(Enum):
    """How far an assumed bind has come."""

    ASSUMED = "assumed"  # counted on its node, not yet on its way
    SENT = "sent"  # the request is on its way
    ACKNOWLEDGED = "acknowledged"  # the API server said yes
    CONFIRMED = "confirmed"
    FORGOTTEN = "forgotten"


_ENDS: Final = frozenset({BindState.CONFIRMED, BindState.FORGOTTEN})

TRANSITIONS: Final[Mapping[BindState, frozenset[BindState]]] = MappingProxyType(
    {
        BindState.ASSUMED: frozenset({BindState.SENT, BindState.ACKNOWLEDGED}) | _ENDS,
        BindState.SENT: frozenset({BindState.ACKNOWLEDGED}) | _ENDS,
        BindState.ACKNOWLEDGED: _ENDS,
        BindState.CONFIRMED: frozenset(),
        BindState.FORGOTTEN: frozenset(),
    }
)
"""Which state may follow which."""


def is_live(state: BindState) -> bool:
    """Say whether a bind in this state is still waited for."""
    return bool(TRANSITIONS[state])
