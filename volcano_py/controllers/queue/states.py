"""The states of a queue.

                 open                     close, PodGroups left: Closing, none: Closed
    any state ─────────▶ Open      Open, Closing, Unknown ─────────▶ Closing or Closed

Synchronising compares the last known state with the stored one, which another client may have changed:

    was \\ stored   "" or Open   Closing              Closed               other
    Open           Open         Unknown              Closing or Closed    Unknown
    Closing        Open         Closing or Closed    Unknown              Unknown
    Closed         Open         Unknown              Closed               Unknown
    Unknown        Open         Unknown              Closing or Closed    Unknown
"""

from collections.abc import Mapping
from typing import Final

from volcano_py.api import keys

_OPEN, _CLOSED, _CLOSING, _UNKNOWN = keys.QUEUE_OPEN, keys.QUEUE_CLOSED, keys.QUEUE_CLOSING, keys.QUEUE_UNKNOWN
_BY_GROUPS: Final = ""  # Closing while there are PodGroups, then Closed

_SYNC: Final[Mapping[tuple[str, str], str]] = {
    **{(state, _OPEN): _OPEN for state in (_OPEN, _CLOSING, _CLOSED, _UNKNOWN)},
    (_OPEN, _CLOSED): _BY_GROUPS,
    (_UNKNOWN, _CLOSED): _BY_GROUPS,
    (_CLOSING, _CLOSING): _BY_GROUPS,
    (_CLOSED, _CLOSED): _CLOSED,
}
SHUT: Final = frozenset({_CLOSED, _CLOSING})
"""The states of a closed queue, which accepts no new PodGroups."""


def sync(state: str, stored: str, has_groups: bool) -> str:
    """Return the state of a queue from its last known state and the stored one; "" counts as Open."""
    return _settled(_SYNC.get((state or _OPEN, stored or _OPEN), _UNKNOWN), has_groups)


def close(state: str, has_groups: bool) -> str:
    """Return the state after closing."""
    return _CLOSED if state == _CLOSED else _settled(_BY_GROUPS, has_groups)


def open_() -> str:
    """Return the state after opening, which is possible from every state."""
    return _OPEN


def _settled(state: str, has_groups: bool) -> str:
    if state == _BY_GROUPS:
        return _CLOSING if has_groups else _CLOSED
    return state
