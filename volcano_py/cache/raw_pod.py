"""As much of a pod as can be told from JSON that does not fit its type."""

from typing import Any, NamedTuple

import msgspec


class KnownOfPod(NamedTuple):
    """What decides how dangerous an unreadable pod is."""

    node: str  # "" for none
    ended: bool
    scheduler_name: str | None  # None if even that cannot be read


def peek(raw: bytes) -> KnownOfPod:
    """Return what can be told; whatever is not there or has the wrong type counts as absent."""
    try:
        decoded: Any = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        decoded = None  # the reflector has reported it; nothing can be told
    node = _text(decoded, "spec", "nodeName")
    phase = _text(decoded, "status", "phase")
    return KnownOfPod(node or "", phase in ("Succeeded", "Failed"), _text(decoded, "spec", "schedulerName"))


def _text(decoded: Any, section: str, field: str) -> str | None:
    part = decoded.get(section) if isinstance(decoded, dict) else None
    value = part.get(field) if isinstance(part, dict) else None
    return value if isinstance(value, str) else None
